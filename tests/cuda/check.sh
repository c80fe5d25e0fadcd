#!/bin/sh
# usage: check.sh cubin ptx log
# Checks what the code of a unit promises. The unit has kernels. No kernel reads through a cache that misses concurrent
# writes, and none has approximate instructions, whose bits depend on the device, except the reciprocal that pow and log
# refine. The requirements of guard.py hold. Then reports, without failing, what differs from figures.txt, sizes.txt and
# the `code:` lines of the source.
cubin=$1 ptx=$2 log=$3
here=$(dirname "$0")
folder=$(dirname "$cubin")
unit=$(basename "$cubin" | sed 's/\.sm_.*//')
arch=$(basename "$cubin" .cubin | sed 's/.*\.//')
source=$here/$unit.cu
[ -s "$cubin" ] || { echo "$cubin was not built"; exit 1; }
grep -q '\.entry' "$ptx" || { echo "there is no kernel in $ptx"; exit 1; }
if grep -nE 'ld\.global(\.[[:alnum:]:]+)*\.nc|ldu\.|\.(approx|full)' "$ptx" |
    grep -vE 'rcp\.approx\.ftz\.f(32|64)'; then
  echo 'these instructions are not allowed'
  exit 1
fi
python3 "$here/guard.py" "$source" "$ptx" "$log" || exit 1
if grep -q 'code: ' "$source"; then
  version=$(sed -n 's/.*Cuda compilation tools, release .*, V\([0-9.]*\).*/\1/p' "$ptx" | head -n 1)
  python3 "$here/code.py" "$source" "$cubin" "$arch" "$version" || exit 1
fi
case $unit in
  rules | update) python3 "$here/figures.py" "$here/figures.txt" "$folder" "$unit" "$arch" ;;
  matrix | paths) python3 "$here/sizes.py" "$here/sizes.txt" "$folder" "$unit" "$arch" ;;
  *) echo "neither figures nor sizes are recorded of $unit"; exit 1 ;;
esac
