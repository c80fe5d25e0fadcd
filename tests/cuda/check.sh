#!/bin/sh
# usage: check.sh cubin ptx log
# The unit has kernels. Where its source has `guard:` or `code:` lines, they hold. Elsewhere only says which
# kernels spill registers or have a stack.
cubin=$1 ptx=$2 log=$3
here=$(dirname "$0")
source=$here/$(basename "$cubin" | sed 's/\.sm_.*//').cu
[ -s "$cubin" ] || { echo "$cubin was not built"; exit 1; }
grep -q '\.entry' "$ptx" || { echo "there is no kernel in $ptx"; exit 1; }
if grep -q 'code: ' "$source"; then
  arch=$(basename "$cubin" .cubin | sed 's/.*\.//')
  version=$(sed -n 's/.*compiler.*V\([0-9.]*\).*/\1/p; s/.*Cuda compilation tools, release .*, V\([0-9.]*\).*/\1/p' "$ptx" | head -n 1)
  python3 "$here/code.py" "$source" "$cubin" "$arch" "$version" || exit 1
fi
python3 "$here/guard.py" "$source" "$ptx" "$log"
