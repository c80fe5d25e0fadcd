#!/bin/sh
# usage: lists.sh tests-folder [--quick sources of the suite quick... --] listed sources...
#
# Fails if a test source is in no list of a meson.build of tests/, if the header of a simple rule has more than 40 lines
# of code, if a rule has no mutant or no row in support/rows_*.hpp (the tests of every rule use these rows), if the code
# that a mutant changes no longer exists, if operators.py makes a change that is none, or, with --quick, if tests of
# that suite must notice fewer than 95 % of the mutants.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$1" || exit 1
shift
quick=
if [ "$1" = --quick ]; then
  while shift; [ "$1" != -- ]; do quick="$quick $1 "; done
  shift
fi
status=0
for source in $(find . \( -name '*_test.cpp' -o -name '*_test.cu' -o -path './cuda/*.cu' \
    -o -path './contract/*.c*' \) | sed 's,^\./,,' | sort); do
  case " $* " in
    *" $source "*) ;;
    *) echo "tests/$source is in no list of a meson.build of tests/"; status=1 ;;
  esac
done

# A simple rule has no sums, no memory and no inner rule, and is not for matrices. Lines of code are neither empty nor
# only a comment.
simple=0
for header in ../include/descent/rules/*.hpp; do
  rule=$(basename "$header" .hpp)
  grep -q "^rules/$rule\.hpp " mutants.txt || { echo "$rule has no line in tests/mutants.txt"; status=1; }
  grep -qE 'struct (sums|memory)|inner_rule|matrices/matrices' "$header" && continue
  simple=$((simple + 1))
  lines=$(grep -cvE '^[[:space:]]*(//.*)?$' "$header")
  [ "$lines" -le 40 ] || { echo "rules/$rule.hpp is simple and has $lines lines of code, more than 40"; status=1; }
done
[ "$simple" -ge 25 ] || { echo "only $simple simple rules: what makes one is no longer found"; status=1; }

rows=$(find support -name 'rows_*.hpp' ! -name rows_chain.hpp)
of_matrices_alone='muon shampoo soap kl_shampoo'  # tests/matrices/matrices_test.cpp and rules_test.cpp
for header in ../include/descent/rules/*.hpp; do
  rule=$(basename "$header" .hpp)
  case " $of_matrices_alone " in *" $rule "*) continue ;; esac
  grep -Eq "row\{\"[^\"]*\", *descent::$rule[{<]|^ +descent::$rule[{<]" $rows ||
    { echo "the rule $rule has no row in tests/support/rows_*.hpp"; status=1; }
done

mutants=0 of_quick=0
while read -r header names name expression; do
  case $header in '#' | '') continue ;; esac
  mutants=$((mutants + 1))
  IFS=,
  for test in $names; do
    case "$quick " in *" ${test}_test.cpp "*) of_quick=$((of_quick + 1)); break ;; esac
  done
  unset IFS
  [ -f "../include/descent/$header" ] || { echo "the mutant $name is of $header, which is not there"; status=1; continue; }
  ! sed -e "$expression" "../include/descent/$header" |
    cmp -s - "../include/descent/$header" || { echo "the mutant $name fits nothing in $header"; status=1; }
done < mutants.txt

by_operators=0
while read -r header names name expression; do
  by_operators=$((by_operators + 1))
  [ "$(sed -e "$expression" "../include/descent/$header" | diff - "../include/descent/$header" | grep -c '^<')" = 1 ] ||
    { echo "operators.py: $name does not change one line"; status=1; }
done <<END
$(python3 operators.py mutants.txt --in rules/adamw.hpp policies/loss_scale.hpp --most 60 2> /dev/null)
END
[ "$by_operators" -eq 60 ] || { echo "operators.py makes $by_operators of 60 mutants"; status=1; }

[ -z "$quick" ] || [ $((100 * of_quick)) -ge $((95 * mutants)) ] ||
  { echo "tests of the suite quick notice $of_quick of $mutants mutants, fewer than 95 %"; status=1; }
exit $status
