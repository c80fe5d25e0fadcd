#!/bin/sh
# usage: flags.sh tests-folder include-folder compiler arguments...
# The headers have no warning of these flags of the second compiler, and need nothing that they take away; together.sh
# does the same with the others.
tests=$1 include=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The folder of MPI's header. Without it, the library's MPI headers are left out.
mpi=$(pkg-config --cflags-only-I mpi-c 2>/dev/null) && some= || some='! -name mpi*.hpp'
mpi=$(echo "$mpi" | sed 's/-I */-isystem /g')
{
  # shellcheck disable=SC2086  # a list
  (cd "$include" && find descent -name '*.hpp' $some | sort | sed 's/.*/#include <&>/')
  echo '#include "headers/flags.cpp"'
} > "$work/unit.cpp"
# shellcheck disable=SC2086  # lists
"$@" -I"$include" -isystem "$tests" $mpi -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror -fno-rtti -fsyntax-only \
  -D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__ -D__CUDA_NO_HALF2_OPERATORS__ \
  "$work/unit.cpp"
