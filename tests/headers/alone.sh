#!/bin/sh
# usage: alone.sh include-folder hpp|cuh compiler arguments...
# Each public header compiles in a unit that includes nothing else but, on the host, the standard headers and CUDA's of
# half and bfloat16, which are precompiled; names.py checks that each header includes those of the standard that it
# uses. It is included twice, to test the guard.
include=$1 kind=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The folder of MPI's header. Without it, the library's MPI headers are left out.
mpi=$(pkg-config --cflags-only-I mpi-c 2>/dev/null) && some= || some='! -name mpi*.hpp'
mpi=$(echo "$mpi" | sed 's/-I */-isystem /g')
case $kind in
  hpp) unit=cpp warnings='-Wall -Wextra -Werror -fsyntax-only' ;;
  cuh) unit=cu warnings='-Werror all-warnings -ptx -o /dev/null' ;;  # programs check the headers with the host compiler
esac
if [ $kind = hpp ]; then
  grep -rhoE '^#include <([a-z_]+|cuda_(bf|fp)16\.h)>' "$include" | grep -v descent | sort -u > "$work/standard.hpp"
  "$@" -x c++-header "$work/standard.hpp" -o "$work/standard.hpp.gch" || exit 1
  set -- "$@" -include "$work/standard.hpp"
fi
cat > "$work/one" <<'EOF'
# usage: one unit-suffix folder header compiler...
suffix=$1 work=$2 header=$3
shift 3
unit=$work/$(echo "$header" | tr / _).$suffix
printf '#include <%s>\n#include <%s>\n' "$header" "$header" > "$unit"
if "$@" "$unit" > "$unit.log" 2>&1; then echo "pass $header"; else echo "FAIL $header"; grep -m 5 -i error "$unit.log"; fi
EOF
(cd "$include" && find descent -name "*.$kind" ! -path '*/detail/*' ! -path '*/engine/*' $some | sort) |
  xargs -P 2 -I{} sh "$work/one" $unit "$work" {} "$@" $mpi $warnings > "$work/report"
cat "$work/report"
grep -q '^pass' "$work/report" || { echo "there are no public *.$kind files in $include/descent"; exit 1; }
! grep -q '^FAIL' "$work/report"
