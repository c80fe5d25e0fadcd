#!/bin/sh
# usage: together.sh include-folder cpp|cu compiler arguments...
# Two units that include every header link into one program: nothing is defined twice.
set -e
include=$1 kind=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $kind in
  cpp) headers=$(cd "$include" && find descent -name '*.hpp' | sort) ;;
  cu) headers=$(cd "$include" && find descent -name '*.hpp' -o -name '*.cuh' | sort) ;;
esac
printf '#include <%s>\n' $headers > "$work/first.$kind"
{ cat "$work/first.$kind"; echo 'int main() {}'; } > "$work/second.$kind"
"$@" -c "$work/first.$kind" -o "$work/first.o" &
"$@" -c "$work/second.$kind" -o "$work/second.o"
wait $!
"$@" "$work/first.o" "$work/second.o" -o "$work/program" -ltbb   # of host_tbb.hpp
"$work/program"
