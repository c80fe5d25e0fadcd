#!/bin/sh
# Installs what is missing, builds, and trains on the embedded digits: on the GPU where there is one, else on the CPU.
# usage: sh examples/run.sh [options of the program; --help lists them]
cd "$(dirname "$0")/.." || exit 1
. tests/setup.sh
build=build-release
program=examples/train
if has_nvcc && has_gpu; then program=examples/train_cuda; fi

echo "Building $program in $build"
mkdir -p "$build"
configured=
[ ! -f "$build/build.ninja" ] || configured=--reconfigure
meson setup $configured "$build" > "$build/setup.log" 2>&1 || { cat "$build/setup.log"; exit 1; }
ninja -C "$build" "$program" > "$build/build.log" 2>&1 || { cat "$build/build.log"; exit 1; }

[ $# -gt 0 ] || set -- --compare common --out "$build/results"
exec "$build/$program" "$@"
