#!/bin/sh
# usage: check.sh cubin ptx log
# The unit has kernels. Where its source has `guard:` or `code:` lines, they hold. Elsewhere only says which
# kernels spill registers or have a stack. The figures of some units are not worse than in figures.txt, the code of the
# optimizers of others is not larger than in sizes.txt.
cubin=$1 ptx=$2 log=$3
here=$(dirname "$0")
source=$here/$(basename "$cubin" | sed 's/\.sm_.*//').cu
[ -s "$cubin" ] || { echo "$cubin was not built"; exit 1; }
grep -q '\.entry' "$ptx" || { echo "there is no kernel in $ptx"; exit 1; }
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
