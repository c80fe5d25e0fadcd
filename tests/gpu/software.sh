#!/bin/sh
# usage: software.sh folder cudasim-run name order command...
# Runs one GPU test in the folder, on a CUDA device in software. Leaks and all other complaints of the device are
# failures, except in a test that loses ranks: calls for them may be in flight when their streams end.
folder=$1 simulator=$2 name=$3 order=$4
shift 4
cd "$folder" || exit 1
log=$(mktemp)
started=$(date +%s)
trap 'rm -f "$log"' EXIT
case $name in
  nccl/nccl_faults*) expected='' ;;
  *) expected='nothing' ;;
esac
if env CUDASIM_CHECK=1 CUDASIM_INITCHECK=1 CONTRACT_N=20011 $order timeout 900 sh "$simulator" "$@" > "$log" 2>&1 &&
    ! grep '^cudasim: ' "$log" | grep -qv "^cudasim: $expected"; then
  echo "pass $name $order ($(($(date +%s) - started)) s)"
else
  { echo "FAIL $name $order ($(($(date +%s) - started)) s)"; tail -n 40 "$log"; } | sed 's/^pass /  &/'
fi
