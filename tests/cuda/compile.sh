#!/bin/sh
# usage: compile.sh arch source depfile cubin ptx log compiler arguments...
# One run of nvcc leaves the code, its PTX and what ptxas says about registers, stack and spills.
set -e
arch=$1 source=$2 depfile=$3 cubin=$4 ptx=$5 log=$6
shift 6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f "$cubin" "$ptx" "$log"
"$@" -arch="$arch" -cubin --resource-usage --keep --keep-dir "$work" -MD -MF "$depfile" -MT "$cubin" \
  "$source" -o "$cubin" > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
cp "$work"/*.ptx "$ptx"
