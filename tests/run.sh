#!/bin/sh
# Installs what is missing, builds and runs tests, and ends with `N passed, N failed, N skipped`. If something fails,
# failures.log in the build folder says what.
#
# usage: sh tests/run.sh             the suite quick: the most important tests, in 6 to 12 minutes on two processors
#        sh tests/run.sh --all       everything that this machine can run
#        sh tests/run.sh --rest      the tests of --all that are not in quick
#        sh tests/run.sh NAME...     the tests with one of these in their names; builds only what they need
#        sh tests/run.sh rule NAME   the tests of one rule, in less than a minute
#
# Add --orders to run GPU programs in six orders on a CUDA device in software. Without it they run in order (quick), or in
# order and in one order drawn from the revision (--all).
#
# DESCENT_BUILD names the build folder. DESCENT_CUDA_SIMULATOR names a folder with a program cudasim-run, a CUDA device in
# software, which takes the place of a missing GPU. With ccache, nothing is compiled twice, not even in another clone.
# `python3 tests/times.py build` says where the time went.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "$0")/.." || exit 1
software=  # the process that runs tests on the device in software
trap '[ -z "$software" ] || kill "$software"; exit 130' HUP INT TERM
tier=quick orders=
while [ $# -gt 0 ]; do
  case $1 in
    --all | --rest) tier=${1#--} ;;
    --orders) orders=all ;;
    -*) python3 tests/nearest.py 'unknown option' "$1" --all --rest --orders --help >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done
[ $# -eq 0 ] || tier=names
if [ $# -eq 2 ] && [ "$1" = rule ]; then
  . tests/setup.sh
  exec sh tests/rule.sh "$2"
fi
[ -n "$orders" ] || case $tier in all | rest) orders=ci ;; *) orders=plain ;; esac
build=${DESCENT_BUILD:-build}
# For a new build folder: clang++ takes half of GCC's time, see tests/meson.build.
[ -f "$build/build.ninja" ] || wanted_packages='clang libomp-dev libclang-rt-dev lld'
# For the lab of docs/learn: a browser, and clang 14 for WebAssembly.
case $tier in
  all | rest) wanted_packages="${wanted_packages-} chromium clang-14 lld-14 wasi-libc libc++-14-dev-wasm32 libclang-rt-14-dev-wasm32" ;;
esac
. tests/setup.sh
simulator=${DESCENT_CUDA_SIMULATOR:+$(cd "$DESCENT_CUDA_SIMULATOR" 2>/dev/null && pwd)/cudasim-run}
# Clones share what ccache keeps; threads that wait leave the processor to others.
# What the compiler writes about headers spares ccache a run of the preprocessor.
export CCACHE_BASEDIR="${CCACHE_BASEDIR-$PWD}" CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR-1}" CCACHE_DEPEND="${CCACHE_DEPEND-1}"
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY-passive}"
passed=0 failed=0 skipped=0
failures() {  # what did not build, and what failed tests wrote
  [ -f "$build/build.log" ] || tail -n 40 "$build/setup.log"
  grep -vE '^\[|^ninja: ' "$build/build.log" | head -n 200
  grep -vE '^ *[0-9]+/[0-9]+ .* (OK|SKIP) ' "$build/test.log"
  grep -v '^pass ' "$build/software.log"
}
finish() {
  [ ! -f "$build/not_chosen" ] || case $tier in
    quick) sed 's/^/`sh tests\/run.sh --all` adds /' "$build/not_chosen" ;;
    names) sed 's/^/Not run: /' "$build/not_chosen" ;;
    rest) sed 's/^/Run by `sh tests\/run.sh`: /' "$build/not_chosen" ;;
  esac
  if [ "$failed" -gt 0 ]; then
    failures > "$build/failures.log" 2> /dev/null
    echo "$build/failures.log says what failed"
  fi
  echo "$tier: $passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
  exit
}

echo "Building in $build, which takes minutes the first time; $build/build.log shows the progress"
mkdir -p "$build"
# what an earlier run left; a program has been where the folder of its tests is now
[ ! -f "$build/tests/ranks" ] || rm -f "$build/tests/ranks"
rm -f "$build/not_chosen" "$build/build.log" "$build/test.log" "$build/software.log" "$build/meson-logs/testlog.json" \
  "$build/failures.log"
options=--reconfigure compiler='' linker=
if [ ! -f "$build/build.ninja" ]; then
  options=-Doptimization=0 compiler=${CXX-}
  if [ -z "$compiler" ] && sh tests/links.sh clang++ 2> /dev/null; then
    compiler=clang++
    ! sh tests/links.sh clang++ -fuse-ld=lld 2> /dev/null || linker=CXX_LD=lld  # a fifth of the time of GNU's linker
    [ "$(clang++ -dumpversion | cut -d. -f1)" -le 14 ] || options="$options -Dwerror=false"  # it may have more warnings
  fi
  # Meson itself looks for ccache only if CXX is not set.
  case $compiler in '' | *ccache*) ;; *) ! command -v ccache > /dev/null || compiler="ccache $compiler" ;; esac
fi
# shellcheck disable=SC2086  # a list
if ! env ${compiler:+CXX="$compiler"} $linker meson setup $options "$build" > "$build/setup.log" 2>&1; then
  cat "$build/setup.log"
  failed=1
  finish
fi
device=none
if has_gpu; then device=hardware; elif has_nvcc && [ -f "$simulator" ]; then device=software; fi
[ $tier = names ] || set -- $tier
python3 tests/choose.py "$build" $device "$@" || { failed=1; finish; }
# What does not build counts once; the rest still runs, although Meson runs nothing if one test lacks its program.
if [ -s "$build/chosen_targets" ]; then
  xargs ninja -C "$build" -j "$(nproc)" -k 0 < "$build/chosen_targets" > "$build/build.log" 2>&1 ||
    { grep -v '^\[' "$build/build.log"; failed=1; }
fi
python3 -c '
import os, sys
for line in sys.stdin:
    name, *files = line.rstrip("\n").split("\t")
    print("built:" if all(map(os.path.exists, files)) else "not built:", name)' < "$build/chosen_tests" > "$build/programs"
grep '^not built' "$build/programs"
IFS='
'
set -- $(sed -n 's/^built: //p' "$build/programs")
unset IFS
# Tests on the device in software run at the same time as the other tests, so that no processor idles.
if [ -s "$build/chosen_gpu" ]; then
  runs() { tr '\n' '\0' < "$build/$1" | xargs -0 python3 tests/gpu/orders.py "$build" "$simulator" "$2"; }
  runs chosen_gpu $orders > "$build/software_runs"
  if [ -s "$build/done_gpu" ]; then
    runs done_gpu plain > "$build/software_done"
    grep -vxF -f "$build/software_done" "$build/software_runs" > "$build/software_left"
    mv "$build/software_left" "$build/software_runs"
  fi
  sh "$simulator" true || failed=$((failed + 1))
  xargs -P "$(nproc)" -L 1 sh tests/gpu/software.sh < "$build/software_runs" > "$build/software.log" &
  software=$!
fi
if [ $# -gt 0 ]; then
  # One more test than processors, because some wait for a disk, a network or a deadline.
  meson test -C "$build" --no-rebuild --print-errorlogs --num-processes $(($(nproc) + 1)) "$@" 2>&1 | tee "$build/test.log"
  count() { sed -n "s/^$1: *\([0-9]*\) *$/\1/p" "$build/test.log" | grep . || echo 0; }
  passed=$(count Ok)
  skipped=$(count Skipped)
  failed=$((failed + $(count Fail) + $(count Timeout)))
  [ $((passed + skipped + failed)) -gt 0 ] || failed=1
  grep -hE '^(include cost|(figures|sizes|costs) of )' "$build/meson-logs/testlog.txt"
fi

if [ -s "$build/chosen_gpu" ]; then
  wait "$software"
  echo 'On a CUDA device in software:'
  cat "$build/software.log"
  ok=$(grep -c '^pass ' "$build/software.log")
  passed=$((passed + ok))
  failed=$((failed + $(wc -l < "$build/software_runs") - ok))
fi
finish
