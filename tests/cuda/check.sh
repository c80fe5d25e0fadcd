#!/bin/sh
# usage: check.sh cubin ptx log
# The unit has kernels. None reads through a cache that does not see what is written meanwhile, nor has approximate
# instructions, whose bits are the device's own, but for the reciprocal that pow and log refine. Where its source has
# `guard:` or `code:` lines, they hold. Elsewhere only says which kernels spill registers or have a stack. The figures
# of some units are not worse than in figures.txt, the code of the optimizers of others is not larger than in sizes.txt.
cubin=$1 ptx=$2 log=$3
here=$(dirname "$0")
source=$here/$(basename "$cubin" | sed 's/\.sm_.*//').cu
[ -s "$cubin" ] || { echo "$cubin was not built"; exit 1; }
grep -q '\.entry' "$ptx" || { echo "there is no kernel in $ptx"; exit 1; }
if grep -nE 'ld\.global(\.[[:alnum:]:]+)*\.nc|ldu\.|\.(approx|full)' "$ptx" |
    grep -vE 'rcp\.approx\.ftz\.f(32|64)'; then
  echo 'these instructions are not allowed'
  exit 1
fi
arch=$(basename "$cubin" .cubin | sed 's/.*\.//')
if grep -q 'code: ' "$source"; then
  version=$(sed -n 's/.*compiler.*V\([0-9.]*\).*/\1/p; s/.*Cuda compilation tools, release .*, V\([0-9.]*\).*/\1/p' "$ptx" | head -n 1)
  python3 "$here/code.py" "$source" "$cubin" "$arch" "$version" || exit 1
fi
python3 "$here/guard.py" "$source" "$ptx" "$log" || exit 1
unit=$(basename "$source" .cu)
case $unit in
  chains | rules | update) python3 "$here/figures.py" "$here/figures.txt" "$(dirname "$cubin")" "$unit" "$arch" ;;
  matrix | paths) python3 "$here/sizes.py" "$here/sizes.txt" "$(dirname "$cubin")" "$unit" "$arch" ;;
esac
