#!/bin/sh
# Builds and runs everything that needs a CUDA device, with nvcc alone, and ends with
# `N passed, N failed, N skipped`.
#
# usage: sh tests/gpu.sh [result-file]
#        sh tests/gpu.sh --gather FOLDER    copies what a machine without a network may lack into FOLDER, for GATHERED
#
# Every test runs twice: without floating-point contraction, where the device agrees with the host bit for bit, and with
# contraction, where it agrees within 4 ulp. Without contraction, tests also run under the tools of compute-sanitizer,
# if it is installed.
#
# Needs doctest. Tests of missing libraries are left out: NCCL (PyTorch's is enough), a BLAS, zlib (the main job),
# nlohmann-json and xxHash (files). FLAGS may say where the libraries are.
#
# Environment variables, with defaults in parentheses:
#   GATHERED   the folder that --gather filled on a machine with the packages of tests/setup.sh
#   NVCC       the compiler (nvcc)
#   FLAGS      its flags for the device (-arch=native)
#   RUN        a command that runs the programs, for a device in software, which needs
#              FLAGS='-gencode=arch=compute_80,code=compute_80 --no-compress -cudart=shared'
#   TESTS      names of the tests, without _test.cu, such as 'step nccl_paths' (all)
#   SANITIZER  compute-sanitizer, if it is not on the PATH; empty: do not use it
#   BUILD      a folder in which the programs are kept and not built again (a temporary folder)
#   RUNS       no: only builds
#   RANKS      numbers of ranks for the tests of NCCL (1 2 3)
#   TOOLS      tools of compute-sanitizer (memcheck racecheck initcheck synccheck)
#   LIMIT      seconds for one run (1800)
#   AT_ONCE    number of programs that run at once (1)
#   JOBS       number of compilers that run at once, and of runs at the end: those under a tool, and training that is
#              stopped and resumed (number of processors)
#   LAST_LIMIT seconds for one run at the end (LIMIT)
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
soname() { objdump -p "$1" | sed -n 's/ *SONAME *//p'; }
# The file that the linker looks for is a linker script instead of a symbolic link.
gather_library() {
  library=$(g++ -print-file-name="lib$2.so") && name=$(soname "$library") && cp -L "$library" "$1/lib/$name" &&
    echo "INPUT(-l:$name)" > "$1/lib/lib$2.so" || return 1
  ldd "$library" | sed -n '/gfortran\|quadmath/s/.*=> \([^ ]*\).*/\1/p' | xargs -r cp -L -t "$1/lib"
}
gather() {
  mkdir -p "$1/include/doctest" "$1/include/nlohmann" "$1/lib" || return 1
  for header in doctest/doctest.h zlib.h zconf.h cblas.h openblas_config.h xxhash.h nlohmann/json.hpp; do
    path=$(echo "#include <$header>" | g++ -x c++ -M - | tr ' ' '\n' | grep "/$header\$") &&
      cp -L "$path" "$1/include/$header" || return 1
  done
  cp -LR "$(dirname "$path")/." "$1/include/nlohmann" || return 1
  gather_library "$1" openblas && gather_library "$1" z && du -sh "$1"
}
if [ "$1" = --gather ]; then
  gather "${2:?a folder}"
  exit
fi

case ${1-} in -*) python3 "$(dirname "$0")/nearest.py" 'unknown option' "$1" --gather --help >&2; exit 2 ;; esac
result=$(realpath "${1:-gpu.txt}") || exit 1
[ -z "$GATHERED" ] || GATHERED=$(realpath "$GATHERED") || exit 1
[ -z "$BUILD" ] || { mkdir -p "$BUILD" && build=$(realpath "$BUILD"); } || exit 1
cd "$(dirname "$0")" || exit 1
nvcc=${NVCC:-nvcc}
flags=${FLAGS:--arch=native}
if [ -n "$BUILD" ]; then
  rm -f "$build/objects" || exit 1
else
  build=$(mktemp -d) || exit 1
  trap 'rm -rf "$build"' EXIT
fi
trap 'exit 130' HUP INT TERM
words=$build/words  # how each run ended
: > "$result" && : > "$words" || exit 1
say() { echo "$*" | tee -a "$result"; }

say "$(date -u '+%Y-%m-%d %H:%M UTC')"
say "GATHERED='$GATHERED' FLAGS='$flags' RUN='$RUN' TESTS='$TESTS' sh tests/gpu.sh $*"
say "$(nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader 2>/dev/null ||
  echo 'no GPU')"
say "$("$nvcc" --version | tail -n 2 | head -n 1)"

# The programs to build, one per line: name, variant, sources and arguments.
in_folder() { echo "-I$1/include -L$1/lib -Xlinker=--disable-new-dtags,-rpath,$1/lib"; }
common="-std=c++20 -O2 -lineinfo -Xcompiler=-ffp-contract=off -I../include -I. ${GATHERED:+$(in_folder "$GATHERED")}"
wanted() { [ -z "$TESTS" ] || case " $TESTS " in *" $1 "*) ;; *) return 1 ;; esac; }
others=$(echo "$flags" | sed 's/-arch=[^ ]*//; s/-gencode=[^ ]*//')
# shellcheck disable=SC2086  # lists of flags
with() { echo "#include <$1>" > "$build/with.cu"; "$nvcc" -E $common $others "$build/with.cu" > /dev/null 2>&1; }
there() { ! with "$1" || echo yes; }
nccl=$("${PYTHON:-python3}" -c 'import nvidia.nccl; print(*nvidia.nccl.__path__)' 2>/dev/null)
if ! with nccl.h && [ -n "$nccl" ]; then
  mkdir -p "$build/lib" && echo "INPUT($nccl/lib/libnccl.so.2)" > "$build/lib/libnccl.so"
  common="$common $(in_folder "$nccl") -L$build/lib"
fi
has_nccl=$(there nccl.h) has_blas=$(there cblas.h) has_zlib=$(there zlib.h)
has_json=$(there nlohmann/json.hpp) && [ -n "$(there xxhash.h)" ] || has_json=
# An architecture that this device cannot run. The program has no PTX, which the driver could compile.
case $(__nvcc_device_query 2>/dev/null) in 7*) other=80 ;; *) other=75 ;; esac
{
  for source in gpu/*_test.cu; do
    name=$(basename "$source" _test.cu)
    wanted "$name" || continue
    [ "$name" != saved ] || [ "$has_json" ] || continue
    libraries=
    if [ "$name" = matrix ]; then
      [ "$has_blas" ] || continue
      libraries='-lcublas -lopenblas'
    fi
    # nvcc cannot instantiate all rules in one unit.
    parts=$name
    [ "$name" != families ] || parts='1 2'
    for part in $parts; do
      program=$name define=
      [ "$name" != families ] || program=families_$part define=-DDESCENT_PART=$part
      echo "$program exact $source gpu/main.cpp $flags -fmad=false $define $libraries"
      echo "$program contracted $source gpu/main.cpp $flags -DDESCENT_CONTRACTED $define $libraries"
    done
  done
  # NCCL may be missing. Ranks share a device if there are not enough.
  for source in nccl/*_test.cu; do
    name=$(basename "$source" _test.cu)
    [ "$name" != rank_files ] || [ "$has_json" ] || continue
    libraries=-lnccl
    if [ "$name" = matrices ]; then
      [ "$has_blas" ] || continue
      libraries='-lnccl -lcublas -lopenblas'
    fi
    ! wanted "$name" || [ ! "$has_nccl" ] || echo "$name exact $source nccl/main.cpp $flags -fmad=false $libraries"
  done
  if [ -z "$TESTS" ]; then
    echo "no_code exact gpu/no_code.cu gpu/main.cpp $others -gencode=arch=compute_$other,code=sm_$other"
    for program in contract/*.cu; do
      math=-fmad=false
      [ "$program" != contract/fast_math.cu ] || math='--use_fast_math -Xcompiler=-ffast-math'
      [ ! -f "$program" ] || echo "$(basename "$program" .cu) exact $program $flags $math"
    done
    [ ! "$has_blas" ] || echo "c_api exact c_api/device_test.cu gpu/main.cpp ../examples/c_api/descent_c.cpp" \
      "../examples/c_api/on_host.cpp -I../examples/c_api $flags -fmad=false -lcublas -lopenblas"
    # Two .cu files, compiled separately. A device in software has no linked code.
    torch="-D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__"
    echo "separate exact consumers/separate.cu consumers/separate_other.cu $flags $([ -n "$RUN" ] || echo -rdc=true)" \
      "$torch -D__CUDA_NO_HALF2_OPERATORS__"
    echo "jax_device exact frameworks/jax_device_test.cu gpu/main.cpp -I../examples/jax $flags -fmad=false"
    echo "client exact consumers/client/main.cpp consumers/client/memory_cuda.cpp consumers/client/before.cu" \
      "consumers/client/after.cu $flags -fmad=false"
    # Other launches of the update give the same bits, for grids of any size.
    echo "experiments exact benchmarks/experiments/experiments.cu $flags -fmad=false"
    # The examples, the main job among them, which take too long on a device in software.
    if [ "$has_blas" ] && [ "$has_zlib" ] && [ "$has_json" ]; then
      parts= optimizers=
      for source in ../examples/parts/*.cpp $([ -n "$RUN" ] || echo ../examples/optimizers/*.cu); do
        object=$build/${source##*/}.o
        echo "$object $source $flags -c" >> "$build/objects"
        case $source in *.cpp) parts="$parts $object" ;; *) optimizers="$optimizers $object" ;; esac
      done
      echo "gpu_network exact examples/gpu_network_test.cu gpu/main.cpp $parts $flags -lcublas -lopenblas -lz"
      for source in $([ -n "$RUN" ] || echo ../examples/*.cu); do
        name=$(basename "$source" .cu) libraries='-lcublas -lz'
        case $name in
          train_ranks) [ "$has_nccl" ] && libraries="$libraries -lnccl" || continue ;;
          train | compare) libraries="$optimizers $libraries" ;;
        esac
        echo "example_$name exact $source $parts $flags $libraries"
      done
    fi
  fi
} | sed 's/ *$//' > "$build/programs"  # xargs joins a line that ends in a blank with the next one
for name in $TESTS; do
  grep -Eq "^$name(_[0-9])? " "$build/programs" ||
    { echo FAIL >> "$words"; say "FAIL $name: there is no such test here"; }
done

say "Building $(wc -l < "$build/programs") programs"
export nvcc common build result words
[ ! -f "$build/objects" ] || xargs -P "${JOBS:-$(nproc)}" -L 1 sh -c '
  [ -f "$0" ] || $nvcc $common "$@" -o "$0" > "$0.log" 2>&1 || cat "$0.log"' \
  < "$build/objects" | tee -a "$result"
xargs -P "${JOBS:-$(nproc)}" -L 1 sh -c '
  program=$build/$0.$1
  shift
  [ -x "$program" ] || $nvcc $common "$@" -o "$program" > "$program.log" 2>&1 || cat "$program.log"' \
  < "$build/programs" | tee -a "$result"
[ "$RUNS" != no ] || exit 0

export DESCENT_TEST_DEADLINE="${DESCENT_TEST_DEADLINE:-20}"  # of a meeting of ranks, below LIMIT

# run name how limit command...
cat > "$build/run" <<'END'
name=$1 how=$2 limit=$3 log=$build/log.$$
shift 3
began=$(date +%s)
timeout "$limit" "$@" < /dev/null > "$log" 2>&1  # standard input holds the names of the other programs
case $? in
  0) word=pass ;;
  77) word=skip ;;
  *) word=FAIL ;;
esac
echo $word >> "$words"
{
  echo "$word $name, $how, $(($(date +%s) - began)) s"
  case $word in
    FAIL) tail -n 60 "$log" ;;
    *) grep -A 1 MESSAGE "$log" ;;
  esac
} > "$log.said"
tee -a "$result" < "$log.said"
rm "$log" "$log.said"
END
# Trains to an accuracy of at least 96 % on the test images, which every precision also reaches on the CPU.
cat > "$build/trains" <<'END'
"$build/example_train.exact" --out "$build/results/$1" --precision "$1" &&
  awk -F , 'END { print "MESSAGE: right on the test images: " $7 " %, skipped: " $10; exit !($7 >= 96) }' \
    "$build/results/$1/curves.csv"
END

sanitizer=${SANITIZER-$(command -v compute-sanitizer)}
[ -n "$sanitizer" ] || say 'There is no compute-sanitizer here.'
# Programs that measure or take the free memory of the device, or whose ranks share it, run alone. The longest of the
# runs at the end begin first.
mkdir -p "$build/results"
: > "$build/runs" && : > "$build/alone" && : > "$build/last" && : > "$build/long" || exit 1
limit=${LIMIT:-1800} last_limit=${LAST_LIMIT:-${LIMIT:-1800}}
while read -r name variant rest; do
  if [ ! -x "$build/$name.$variant" ]; then
    echo FAIL >> "$words"
    say "FAIL $name, $variant: it was not built"
    continue
  fi
  if [ -f "nccl/${name}_test.cu" ]; then
    for ranks in ${RANKS:-1 2 3}; do
      echo "$name '$ranks ranks' $limit $RUN '$build/$name.$variant' $ranks" >> "$build/alone"
    done
    continue
  fi
  program="$RUN '$build/$name.$variant'"
  case $name in example_*) program="env -C '$build/results' $program" ;; esac  # where some leave pictures
  case $name in
    example_train)
      for precision in float half bfloat16; do
        echo "$name 'in $precision' $limit sh '$build/trains' $precision" >> "$build/runs"
      done
      echo "$name 'stopped and resumed' $last_limit '${PYTHON:-python3}' '$PWD/examples/train_saved.py'" \
        "'$build/$name.$variant'" >> "$build/long" ;;
    example_train_ranks)
      echo "$name exact $limit '${PYTHON:-python3}' '$PWD/examples/train_ranks_cuda.py' true" \
        "'$build/$name.$variant'" >> "$build/alone" ;;
    example_compare)
      echo "$name exact $limit $program --data digits --networks softmax --optimizers sgd,adam --rates 0.01,0.1,1 --search 1" \
        "--epochs 1 --seeds 1 --out '$build/results/compare'" >> "$build/runs" ;;
    experiments) echo "$name exact $limit $program --quick /dev/null" >> "$build/runs" ;;
    step) echo "$name $variant $limit $program" >> "$build/alone" ;;
    *) echo "$name $variant $limit $program" >> "$build/runs" ;;
  esac
  case $name.$variant in example_* | experiments.* | no_code.* | *.contracted) continue ;; esac
  [ -n "$sanitizer" ] && [ -z "$RUN" ] || continue
  case $name in graph | matrix) last=long ;; *) last=last ;; esac
  for tool in ${TOOLS-memcheck racecheck initcheck synccheck}; do
    echo "$name $tool $last_limit '$sanitizer' --tool $tool --error-exitcode 1 --report-api-errors no" \
      "'$build/$name.exact' '--test-case-exclude=*2^31*,*does not fit*'" >> "$build/$last"
  done
done < "$build/programs"

xargs -r -P "${AT_ONCE:-1}" -L 1 sh "$build/run" < "$build/runs"
xargs -r -L 1 sh "$build/run" < "$build/alone"
cat "$build/long" "$build/last" | xargs -r -P "${JOBS:-$(nproc)}" -L 1 sh "$build/run"

ended() { grep -c "^$1$" "$words"; }
say "$(ended pass) passed, $(ended FAIL) failed, $(ended skip) skipped"
[ "$(ended FAIL)" -eq 0 ]
