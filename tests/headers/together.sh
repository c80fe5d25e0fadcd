#!/bin/sh
# usage: together.sh include-folder cpp|cu compiler arguments...
# Two units that include every header link into one program, so nothing is defined twice.
set -e
include=$1 kind=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The folder of MPI's header. Without it, the library's MPI headers are left out.
mpi=$(pkg-config --cflags-only-I mpi-c 2>/dev/null) && some= || some='! -name mpi*.hpp'
mpi=$(echo "$mpi" | sed 's/-I */-isystem /g')
case $kind in
  cpp) headers=$(cd "$include" && find descent -name '*.hpp' $some | sort) ;;
  cu) headers=$(cd "$include" && find descent \( -name '*.hpp' -o -name '*.cuh' \) $some | sort) ;;
esac
printf '#include <%s>\n' $headers > "$work/first.$kind"
{ cat "$work/first.$kind"; echo 'int main() {}'; } > "$work/second.$kind"
"$@" $mpi -c "$work/first.$kind" -o "$work/first.o" &
"$@" $mpi -c "$work/second.$kind" -o "$work/second.o"
wait $!
"$@" "$work/first.o" "$work/second.o" -o "$work/program" -ltbb $(pkg-config --libs mpi-c 2>/dev/null)  # for tbb.hpp, mpi.hpp
"$work/program"
