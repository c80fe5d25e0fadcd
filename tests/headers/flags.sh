#!/bin/sh
# usage: flags.sh tests-folder include-folder compiler arguments...
# The headers, included by -I, have no warning of these, and need no RTTI and none of the operators and conversions of
# half and bfloat16 that the macros of PyTorch's extensions remove.
tests=$1 include=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
host='-Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror -fno-rtti -fsyntax-only'
# The folder of MPI's header. Without it, the library's MPI headers are left out.
mpi=$(pkg-config --cflags-only-I mpi-c 2>/dev/null) && some= || some='! -name mpi*.hpp'
mpi=$(echo "$mpi" | sed 's/-I */-isystem /g')
case $1 in
  *nvcc) kind=cu flags="-Xcompiler=$(echo "$host" | tr ' ' ,) -Werror=all-warnings -c -o $work/unit.o" ;;
  *) kind=cpp flags=$host ;;
esac
{
  # shellcheck disable=SC2086  # a list
  (cd "$include" && find descent \( -name '*.hpp' -o -name "*.${kind}h" \) $some | sort | sed 's/.*/#include <&>/')
  echo '#include "headers/flags.cpp"'
} > "$work/unit.$kind"
# shellcheck disable=SC2086  # lists
"$@" -I"$include" -isystem "$tests" $mpi $flags -D__CUDA_NO_HALF_OPERATORS__ \
  -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__ -D__CUDA_NO_HALF2_OPERATORS__ "$work/unit.$kind"
