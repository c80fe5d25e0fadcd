#!/bin/sh
# usage: compile.sh "arch..." source depfile outputs... -- compiler arguments...
# One run of nvcc writes three files for each architecture, in the order of the arguments: its code, its PTX, and what
# ptxas reports about registers, stack and spills.
#
# Each architecture gets its own PTX, as with -arch. CUDA's headers choose by __CUDA_ARCH__ how half and bfloat16 are
# computed, and the compiler optimizes PTX for one architecture. PTX for sm_80 that is assembled for sm_100 has
# different loops and registers than a program for sm_100.
set -e
archs=$1 source=$2 depfile=$3 first=$4
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
outputs=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  outputs="$outputs $1"
  shift
done
code=
for arch in $archs; do code="$code -gencode=arch=compute_${arch#sm_},code=$arch"; done
rm -f $outputs
shift
"$@" $code -fatbin --resource-usage --keep --keep-dir "$work" -MD -MF "$depfile" -MT "$first" "$source" \
  -o "$work/all.fatbin" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

unit=$work/$(basename "$source" .cu)
set -- $outputs
for arch in $archs; do
  kept=$unit.compute_${arch#sm_}
  [ -f "$kept.ptx" ] || kept=$unit  # if there is one architecture
  cp "$kept.cubin" "$1"
  cp "$kept.ptx" "$2"
  awk -v arch="'$arch'" '/Compiling entry function/ { mine = $NF == arch } mine' "$work/log" > "$3"
  shift 3
done
