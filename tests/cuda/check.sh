#!/bin/sh
# usage: check.sh cubin ptx log
# The unit has kernels. Where its source has `guard:` lines, they hold. Elsewhere only says which
# kernels spill registers or have a stack.
cubin=$1 ptx=$2 log=$3
here=$(dirname "$0")
source=$here/$(basename "$cubin" | sed 's/\.sm_.*//').cu
[ -s "$cubin" ] || { echo "$cubin was not built"; exit 1; }
grep -q '\.entry' "$ptx" || { echo "there is no kernel in $ptx"; exit 1; }
python3 "$here/guard.py" "$source" "$ptx" "$log"
