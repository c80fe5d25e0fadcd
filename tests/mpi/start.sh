#!/bin/sh
# usage: start.sh mpirun arguments...
# Open MPI's mpirun sometimes ends on a busy machine before it has started a process (once in 45 starts). If it fails
# before a test has begun, it is started again, up to three times.
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
for start in 1 2 3; do
  "$@" > "$log" 2>&1
  status=$?
  cat "$log"
  if [ $status -eq 0 ] || grep -q '\[doctest\]' "$log"; then break; fi
  echo "start $start: no test has begun, exit status $status"
done
exit $status
