#!/bin/sh
# Trains a classifier of handwritten digits with eight optimizers and draws the curves. Installs what is missing, builds,
# and trains on the GPU if there is one, otherwise on the CPU.
#
# usage: sh examples/run.sh                compares eight optimizers
#        sh examples/run.sh OPTION...      the same program with other options
#        sh examples/run.sh --help         this text, and these options if the program has been built
#
# DESCENT_RELEASE names the build folder (default: build-release).
cd "$(dirname "$0")/.." || exit 1
build=${DESCENT_RELEASE:-build-release}
program=examples/train
case ${1-} in
  -h | --help)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' examples/run.sh
    [ ! -x "$build/$program" ] || { echo && "$build/$program" --help; }
    exit ;;
esac
. tests/setup.sh
if has_nvcc && has_gpu; then program=examples/train_cuda; fi

echo "Building $build/$program, which takes some minutes the first time; $build/build.log shows the progress"
mkdir -p "$build"
configured=
[ ! -f "$build/build.ninja" ] || configured=--reconfigure
meson setup $configured "$build" > "$build/setup.log" 2>&1 || { cat "$build/setup.log"; exit 1; }
ninja -C "$build" "$program" > "$build/build.log" 2>&1 || { cat "$build/build.log"; exit 1; }

[ $# -gt 0 ] || set -- --compare common --out "$build/results"
echo "$build/$program $*"
exec "$build/$program" "$@"
