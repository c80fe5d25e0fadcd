#!/bin/sh
# Tests tests/gpu.sh with a stand-in for the compiler: every program is built by its own command and runs as often as it
# should, and programs that are not built, that fail, or that train to a low accuracy are counted.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
here=$(cd "$(dirname "$0")" && pwd) || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cat > "$scratch/nvcc" <<'END'
#!/bin/sh
# If NCCL names a folder, nccl.h is found only there.
case "$*" in -E*" -I$NCCL/include "*) exit 0 ;; esac
for word in "$@"; do
  case $word in
    */with.cu) [ -n "$NCCL" ] && grep -q nccl.h "$word" && exit 1 ;;
    -L*) [ -n "$NCCL" ] && grep -q "($NCCL/lib/libnccl.so.2)" "${word#-L}/libnccl.so" 2>/dev/null && NCCL= ;;
    -lnccl) [ -z "$NCCL" ] || { echo "a program is linked without $NCCL"; exit 1; } ;;
  esac
done
case "$*" in
  --version* | -E*" -Iwhere_they_are "*) exit 0 ;;
  -E* | *"$MISSING"*) exit 1 ;;
  *no_code.cu*code=sm_*) ;;
  *no_code.cu*) echo "no_code has PTX, which the driver compiles"; exit 1 ;;
esac
outputs=$(printf '%s\n' "$@" | grep -c '^-o$')
[ "$outputs" = 1 ] || { echo "a command with $outputs outputs: $*"; exit 1; }
while [ "$1" != -o ]; do shift; done
cat > "$2" <<PROGRAM
#!/bin/sh
case \$0 in *"/$FAILING."*) exit 1 ;; esac
[ "\$RANK" != 0 ] || echo "parameters 0123456789abcdef on \$WORLD_SIZE ranks"
while [ \$# -gt 0 ]; do
  [ "\$1" != --out ] || { mkdir -p "\$2" && echo "adamw,5,1,1,97,1,$LEARNED,0,0,3" > "\$2/curves.csv"; }
  shift
done
PROGRAM
chmod +x "$2"
END
cat > "$scratch/sanitizer" <<'END'
#!/bin/sh
[ "$1 $2" != "--tool $HARMED" ]
END
cat > "$scratch/resuming" <<'END'
#!/bin/sh
case "$1" in */train_saved.py) [ "$FAILING" != resumed ] ;; *) exec python3 "$@" ;; esac
END
chmod +x "$scratch/nvcc" "$scratch/sanitizer" "$scratch/resuming"
flags='-arch=sm_90 -Iwhere_they_are'

wrong=0
expect() {  # expect "N passed, N failed" status settings...
  want=$1 status=$2
  shift 2
  env MISSING=none FAILING=none LEARNED=97 SANITIZER= GATHERED= NCCL= PYTHON="$scratch/resuming" "$@" NVCC="$scratch/nvcc" FLAGS="$flags" \
    sh "$here/gpu.sh" "$scratch/result" > "$scratch/log" 2>&1
  got=$?
  if [ "$(tail -n 1 "$scratch/log")" != "$want, 0 skipped" ] || [ $got != "$status" ]; then
    echo "$*: wanted '$want, 0 skipped' and $status, got '$(tail -n 1 "$scratch/log")' and $got"
    cat "$scratch/log"
    wrong=1
  fi
}
# families_test.cu is two programs
device=$(($(ls "$here"/gpu/*_test.cu | wc -l) + 1)) ranks=$(ls "$here"/nccl/*_test.cu | wc -l)
contract=$(ls "$here"/contract/*.cu | wc -l)
examples=$(ls "$here"/../examples/*.cu | wc -l)
# no_code, gpu_network, c_api, separate, jax_device, client, experiments, and three more runs of train
all=$((2 * device + 3 * ranks + contract + examples + 10))
expect "$all passed, 0 failed" 0 AT_ONCE=4
expect "$((all - 2)) passed, 2 failed" 1 FAILING=step
expect "$((all - 1)) passed, 1 failed" 1 FAILING=resumed
expect "$((all - 3)) passed, 1 failed" 1 MISSING=overlap_test
expect "$((all - 3)) passed, 3 failed" 1 LEARNED=95.9
expect "2 passed, 0 failed" 0 TESTS=step
expect "7 passed, 0 failed" 0 TESTS='families overlap'
expect "2 passed, 0 failed" 0 TESTS=overlap RANKS='1 3'
expect "6 passed, 0 failed" 0 TESTS=step SANITIZER="$scratch/sanitizer"
expect "3 passed, 1 failed" 1 TESTS=step SANITIZER="$scratch/sanitizer" TOOLS='memcheck racecheck' HARMED=racecheck
# Kept programs are not built again: the compiler here always fails.
env MISSING=none FAILING=none LEARNED=97 NVCC="$scratch/nvcc" FLAGS="$flags" BUILD="$scratch/kept" RUNS=no \
  sh "$here/gpu.sh" "$scratch/result" > "$scratch/log"
expect "$all passed, 0 failed" 0 BUILD="$scratch/kept" MISSING=_
expect "0 passed, 1 failed" 1 TESTS=nothing
# NCCL that came with PyTorch.
mkdir -p "$scratch/python/nvidia/nccl"
expect "$((all - 3 * ranks - 1)) passed, 0 failed" 0 NCCL="$scratch/python/nvidia/nccl"
expect "$all passed, 0 failed" 0 NCCL="$scratch/python/nvidia/nccl" PYTHONPATH="$scratch/python"
# After --gather, a program that uses the gathered files is built and runs.
cat > "$scratch/gathered.cpp" <<'END'
#define DOCTEST_CONFIG_DISABLE
#include <cblas.h>
#include <doctest/doctest.h>
#include <zlib.h>
int main() {
  double x[] = {3, 4};
  return cblas_dnrm2(2, x, 1) == 5 && zlibVersion()[0] == '1' ? 0 : 1;
}
END
g=$scratch/gathered
sh "$here/gpu.sh" --gather "$g" > "$scratch/log" || wrong=1
g++ -I"$g/include" -M "$scratch/gathered.cpp" | tr ' ' '\n' > "$scratch/includes"
for header in cblas.h openblas_config.h doctest/doctest.h zlib.h zconf.h; do
  grep -q "^$g/include/$header\$" "$scratch/includes" || { echo "$header was not gathered"; wrong=1; }
done
g++ -I"$g/include" -L"$g/lib" -Wl,--disable-new-dtags,-rpath,"$g/lib" "$scratch/gathered.cpp" -lopenblas -lz \
  -o "$scratch/uses_gathered" && "$scratch/uses_gathered" || wrong=1
for library in openblas gfortran quadmath z; do
  ldd "$scratch/uses_gathered" | grep -q "$g/lib/lib$library" || { echo "lib$library was not gathered"; wrong=1; }
done
[ $wrong = 0 ] && echo "tests/gpu.sh: $all programs and runs"
exit $wrong
