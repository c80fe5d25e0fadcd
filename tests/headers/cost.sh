#!/bin/sh
# usage: cost.sh cpp|cu compiler arguments...
# Prints what including costs, in seconds. Fails only if something does not compile: times depend on the machine.
kind=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
measure() {  # measure "what" "headers" compiler arguments...
  what=$1
  for header in $2; do echo "#include <$header>"; done > "$work/unit.$kind"
  shift 2
  start=$(date +%s%N)
  "$@" -c "$work/unit.$kind" -o "$work/unit.o" || status=1
  awk -v what="$what (.$kind)" -v ns=$(($(date +%s%N) - start)) 'BEGIN { printf "include cost: %s: %.2f s\n", what, ns / 1e9 }'
}
measure nothing '' "$@"
measure 'one rule and one schedule' 'descent/rules/adamw.hpp descent/schedules/cosine.hpp' "$@"
measure descent.hpp descent/descent.hpp "$@"
[ "$kind" = cpp ] || measure descent.cuh descent/descent.cuh "$@"
exit $status
