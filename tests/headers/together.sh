#!/bin/sh
# usage: together.sh tests-folder include-folder cpp|cu compiler arguments...
# A unit that includes every header has no strong symbol but the functions of flags.cpp, so any number of such units link
# into one program. It has no warning of these flags, needs no RTTI and none of the operators and conversions of half and
# bfloat16 that the macros of PyTorch's extensions remove, and has optimizers of every rule (flags.cpp).
set -e
tests=$1 include=$2 kind=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The folder of MPI's header. Without it, the library's MPI headers are left out.
mpi=$(pkg-config --cflags-only-I mpi-c 2>/dev/null) && some= || some='! -name mpi*.hpp'
mpi=$(echo "$mpi" | sed 's/-I */-isystem /g')
flags='-Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror -fno-rtti'
macros='-D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__ -D__CUDA_NO_HALF2_OPERATORS__'
case $kind in
  cpp)
    blas=-lopenblas
    headers=$(cd "$include" && find descent -name '*.hpp' $some | sort) ;;
  cu)
    blas='-lcublas -lopenblas'
    headers=$(cd "$include" && find descent \( -name '*.hpp' -o -name '*.cuh' \) $some | sort)
    flags="-Xcompiler=$(echo "$flags" | tr ' ' ,) -Werror=all-warnings" ;;
esac
{ printf '#include <%s>\n' $headers; echo '#include "headers/flags.cpp"'; } > "$work/unit.$kind"
"$@" -I"$include" -isystem "$tests" $mpi $flags $macros -c "$work/unit.$kind" -o "$work/unit.o"
nm -C --defined-only "$work/unit.o" > "$work/symbols"
grep ' [A-TX-Z] ' "$work/symbols" > "$work/strong"  # at least those of flags.cpp
if grep -vE ' (of_every_kind|of_every_rule|of_matrices|of_ranks|on_a_device)\(\)$' "$work/strong"; then
  echo 'Each unit that includes the headers defines these symbols, so two units do not link.'
  exit 1
fi
echo 'int main() {}' > "$work/main.cpp"
"$@" "$work/unit.o" "$work/main.cpp" -o "$work/program" -ltbb $blas $(pkg-config --libs mpi-c 2>/dev/null)
"$work/program"
