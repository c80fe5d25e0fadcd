#!/bin/sh
# usage: clang.sh project-root arguments...
# If clang++ is installed, it compiles the code in the documentation without a warning, and packs compute correctly.
# Unlike GCC, clang 14 does not deduce template arguments of aggregates, and assumes that a vector behind a reference is
# aligned. Each clang++-N that is installed as well parses optimizers with matrices and scheduled fields: from 16 on, a
# nested requirement in a generic lambda is an error where its expression does not exist.
root=$1
shift
version=$(clang++ -dumpversion 2>/dev/null) || { echo 'skipped: there is no clang++'; exit 77; }
[ "${version%%.*}" -ge 14 ] || { echo "skipped: clang++ is $version, older than 14"; exit 77; }
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root/tests"
python3 docs/check.py "$root" clang++ "$@"
set -- "$@" -Wall -Wextra
[ "${version%%.*}" -gt 14 ] || set -- "$@" -Werror  # later versions may have more warnings
clang++ "$@" -I. -fsyntax-only headers/optimizers.cpp
clang++ "$@" -O2 main.cpp core/summation_order_test.cpp engine/packet_io_test.cpp -o "$work/packs"
"$work/packs"
for newer in /usr/bin/clang++-1[5-9] /usr/bin/clang++-2?; do
  [ -x "$newer" ] || continue
  "$newer" "$@" -Wno-error -I. -fsyntax-only optimizer/fields_test.cpp matrices/rules_test.cpp
done
clang++ "$@" -Ofast contract/fast_math.cpp -o "$work/fast_math"  # -Ofast has -ffinite-math-only in it
"$work/fast_math"
