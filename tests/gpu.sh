#!/bin/sh
# Builds and runs everything that needs a CUDA device, with nvcc alone, and ends with
# `N passed, N failed, N skipped`.
#
# usage: DOCTEST=folder-with-doctest/doctest.h sh tests/gpu.sh [result-file]
#
# Every test runs twice: with floating-point contraction off, where the device agrees with the host
# bit for bit, and on, within 4 ulp. With it off also under the tools of compute-sanitizer, where
# that is installed.
#
# Libraries that are not there leave out their tests: NCCL, a BLAS, zlib (the main job). FLAGS may say where they are.
#
#   NVCC    the compiler (nvcc)
#   FLAGS   its flags for the device (-arch=native)
#   RUN     a command that runs the programs, for a device in software; it wants
#           FLAGS='-gencode=arch=compute_80,code=compute_80 --no-compress -cudart=shared'
#   TESTS   names of the tests, without _test.cu, such as 'skip nccl_paths' (all)
#   SANITIZER  compute-sanitizer, where it is not on the PATH; empty: without it
#   BUILD   a folder for the programs, to keep them: what is there is not built again (a temporary one)
#   RUNS    no: only builds
#   JOBS    how many compilers run at once (as many as there are processors)
result=$(realpath "${1:-gpu.txt}") || exit 1
cd "$(dirname "$0")" || exit 1
nvcc=${NVCC:-nvcc}
flags=${FLAGS:--arch=native}
if [ -n "$BUILD" ]; then
  mkdir -p "$BUILD" && build=$(realpath "$BUILD") && rm -f "$build/objects" || exit 1
else
  build=$(mktemp -d) || exit 1
  trap 'rm -rf "$build"' EXIT
fi
trap 'exit 130' HUP INT TERM
passed=0 failed=0 skipped=0
: > "$result" || exit 1
say() { echo "$*" | tee -a "$result"; }

say "$(date -u '+%Y-%m-%d %H:%M UTC')"
say "DOCTEST='$DOCTEST' FLAGS='$flags' RUN='$RUN' TESTS='$TESTS' sh tests/gpu.sh $*"
say "$(nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader 2>/dev/null ||
  echo 'no GPU')"
say "$("$nvcc" --version | tail -n 2 | head -n 1)"

# What is built: a line of name, variant, sources and arguments for each program.
common="-std=c++20 -O2 -lineinfo -Xcompiler=-ffp-contract=off -I../include -I. ${DOCTEST:+-I$DOCTEST}"
wanted() { [ -z "$TESTS" ] || case " $TESTS " in *" $1 "*) ;; *) return 1 ;; esac; }
with() { echo "#include <$1>" > "$build/with.cu"; "$nvcc" -E "$build/with.cu" > /dev/null 2>&1; }
# Code that this device cannot run.
case $(__nvcc_device_query 2>/dev/null) in 9*) other=sm_80 ;; *) other=sm_90 ;; esac
others=$(echo "$flags" | sed 's/-arch=[^ ]*//; s/-gencode=[^ ]*//')
{
  for source in gpu/*_test.cu; do
    name=$(basename "$source" _test.cu)
    wanted "$name" || continue
    libraries=
    if [ "$name" = matrix ]; then
      with cblas.h || continue
      libraries='-lcublas -lopenblas'
    fi
    echo "$name exact $source gpu/main.cpp $flags -fmad=false $libraries"
    echo "$name contracted $source gpu/main.cpp $flags -DDESCENT_CONTRACTED $libraries"
  done
  # Libraries that a machine may lack. Ranks share a device where there are not enough.
  for source in nccl/*_test.cu; do
    name=$(basename "$source" _test.cu)
    ! wanted "$name" || ! with nccl.h || echo "$name exact $source nccl/main.cpp $flags -fmad=false -lnccl"
  done
  if [ -z "$TESTS" ]; then
    echo "no_code exact gpu/no_code.cu gpu/main.cpp $others -arch=$other"
    for program in contract/*.cu; do
      [ ! -f "$program" ] || echo "$(basename "$program" .cu) exact $program $flags -fmad=false"
    done
    ! with cblas.h || echo "gpu_network exact examples/gpu_network_test.cu gpu/main.cpp" ../examples/parts/*.cpp \
      "$flags -lcublas -lopenblas -lz"
    # Other launches of the update make the same bits, from grids of any size.
    echo "experiments exact benchmarks/experiments/experiments.cu $flags -fmad=false"
    # The main job, in each precision; too long for a device in software.
    if [ -z "$RUN" ] && with zlib.h; then
      for source in ../examples/train.cu ../examples/optimizers/*.cu ../examples/parts/*.cpp; do
        echo "$source $flags -c" >> "$build/objects"
      done
      echo "train exact $(sed "s,.*/\([^ ]*\) .*,$build/\1.o," "$build/objects" | tr '\n' ' ') $flags -lcublas -lz"
    fi
  fi
} | sed 's/ *$//' > "$build/programs"  # to xargs a line that ends in a blank goes on in the next
for name in $TESTS; do
  grep -q "^$name " "$build/programs" || { failed=$((failed + 1)); say "FAIL $name: there is no such test here"; }
done

say "Building $(wc -l < "$build/programs") programs"
export nvcc common build
[ ! -f "$build/objects" ] || xargs -P "${JOBS:-$(nproc)}" -L 1 sh -c '
  object=$build/${0##*/}
  [ -f "$object.o" ] || $nvcc $common "$0" "$@" -o "$object.o" > "$object.log" 2>&1 || cat "$object.log"' \
  < "$build/objects" | tee -a "$result"
xargs -P "${JOBS:-$(nproc)}" -L 1 sh -c '
  program=$build/$0.$1
  shift
  [ -x "$program" ] || $nvcc $common "$@" -o "$program" > "$program.log" 2>&1 || cat "$program.log"' \
  < "$build/programs" | tee -a "$result"
[ "$RUNS" != no ] || exit 0

# trains FOLDER PROGRAM options...: to at least the 96 % of right answers on the test images that every precision
# reaches on the CPU, too.
trains() {
  to=$1
  shift
  "$@" --out "$to" &&
    awk -F , 'END { print "MESSAGE: right on the test images: " $7 " %, skipped: " $10; exit !($7 >= 96) }' \
      "$to/curves.csv"
}

# run name how command...
run() {
  name=$1 how=$2
  shift 2
  if [ "$1" = trains ]; then "$@"; else timeout 1800 "$@"; fi > "$build/log" 2>&1
  case $? in
    0) passed=$((passed + 1)) word=pass ;;
    77) skipped=$((skipped + 1)) word=skip ;;
    *) failed=$((failed + 1)) word=FAIL ;;
  esac
  say "$word $name, $how"
  case $word in
    FAIL) tail -n 60 "$build/log" ;;
    *) grep -A 1 MESSAGE "$build/log" ;;
  esac | tee -a "$result"
}

sanitizer=${SANITIZER-$(command -v compute-sanitizer)}
[ -n "$sanitizer" ] || say 'There is no compute-sanitizer here.'
while read -r name variant rest; do
  if [ ! -x "$build/$name.$variant" ]; then
    failed=$((failed + 1))
    say "FAIL $name, $variant: it was not built"
    continue
  fi
  # shellcheck disable=SC2086  # RUN is a command with arguments
  if [ -f "nccl/${name}_test.cu" ]; then
    for ranks in 1 2 3; do run "$name" "$ranks ranks" $RUN "$build/$name.$variant" "$ranks"; done
    continue
  fi
  if [ "$name" = train ]; then
    for precision in float half bfloat16; do
      run train "in $precision" trains "$build/results" "$build/train.exact" --precision "$precision"
    done
    continue
  fi
  quick=
  [ "$name" != experiments ] || quick=--quick
  # shellcheck disable=SC2086
  run "$name" "$variant" $RUN "$build/$name.$variant" $quick
  [ "$variant" = exact ] && [ "$name" != no_code ] && [ "$name" != experiments ] || continue
  [ -n "$sanitizer" ] && [ -z "$RUN" ] || continue
  for tool in memcheck racecheck initcheck synccheck; do
    run "$name" "$tool" "$sanitizer" --tool "$tool" --error-exitcode 1 --report-api-errors no \
      "$build/$name.$variant" --test-case-exclude='*2^31*,*does not fit*'
  done
done < "$build/programs"

say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
