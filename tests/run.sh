#!/bin/sh
# Installs what is missing, builds, runs every suite that can run on this machine, and ends with
# `N passed, N failed, N skipped`.    usage: sh tests/run.sh
#
# DESCENT_BUILD names the build folder. A CUDA device in software, if one is given by DESCENT_CUDA_SIMULATOR, takes the
# place of a missing GPU: a folder with a program cudasim-run that runs the program its arguments name.
cd "$(dirname "$0")/.." || exit 1
trap 'exit 130' HUP INT TERM
. tests/setup.sh
build=${DESCENT_BUILD:-build}
simulator=${DESCENT_CUDA_SIMULATOR:+$(cd "$DESCENT_CUDA_SIMULATOR" 2>/dev/null && pwd)/cudasim-run}
passed=0 failed=0 skipped=0
finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
  exit
}

echo "Building in $build"
mkdir -p "$build"
configured=
[ ! -f "$build/build.ninja" ] || configured=--reconfigure
if ! meson setup $configured "$build" > "$build/setup.log" 2>&1; then
  cat "$build/setup.log"
  failed=1
  finish
fi
# What does not build counts once; the rest still runs, although Meson runs nothing if one test lacks its program.
ninja -C "$build" -k 0 > "$build/build.log" 2>&1 || { grep -v '^\[' "$build/build.log"; failed=1; }
meson introspect "$build" --tests | python3 -c '
import json, os, sys
for test in json.load(sys.stdin):
    print("built:" if os.path.exists(test["cmd"][0]) else "not built:", test["name"])' > "$build/programs"
set --
if grep '^not built' "$build/programs"; then
  IFS='
'
  set -- $(sed -n 's/^built: //p' "$build/programs")
  unset IFS
fi

in_software=no
if has_nvcc && [ -f "$simulator" ] && ! has_gpu; then in_software=yes; fi
suites=
[ $in_software = no ] || suites='--no-suite gpu'
meson test -C "$build" --no-rebuild --print-errorlogs $suites "$@" 2>&1 | tee "$build/test.log"
count() { sed -n "s/^$1: *\([0-9]*\) *$/\1/p" "$build/test.log" | grep . || echo 0; }
passed=$(count Ok)
skipped=$(count Skipped)
failed=$((failed + $(count Fail) + $(count Timeout)))
[ "$passed" -gt 0 ] || failed=$((failed + 1))
grep -h '^include cost' "$build/meson-logs/testlog.txt"

if [ $in_software = yes ]; then
  # Once in order, then with blocks, threads and streams in several other orders.
  echo 'On a CUDA device in software:'
  sh "$simulator" true || failed=$((failed + 1))
  meson introspect "$build" --tests | python3 -c '
import json, shlex, sys
for test in json.load(sys.stdin):
    if any(suite.endswith("gpu") for suite in test["suite"]):
        orders = "", "CUDASIM_SEED=1", "CUDASIM_SEED=2", "CUDASIM_ASYNC=1", "CUDASIM_ASYNC=2", "CUDASIM_ASYNC=3"
        fewer = {"nccl": ("", "CUDASIM_ASYNC=1 CUDASIM_NCCL_DELAY=1"), "benchmarks": ("CUDASIM_ASYNC=1",)}
        for order in fewer.get(test["name"].split("/")[0], orders):
            folder = test["workdir"] or sys.argv[1]
            print(shlex.join([folder, sys.argv[2], test["name"], order, *test["cmd"]]))' \
    "$build" "$simulator" > "$build/software_runs"
  xargs -P "$(nproc)" -L 1 sh tests/gpu/software.sh < "$build/software_runs" | tee "$build/software.log"
  ok=$(grep -c '^pass ' "$build/software.log")
  passed=$((passed + ok))
  failed=$((failed + $(wc -l < "$build/software_runs") - ok))
fi
finish
