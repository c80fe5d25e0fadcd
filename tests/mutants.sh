#!/bin/sh
# usage: mutants.sh [every | name...]
#        mutants.sh --changed [REV] [option...]
#        mutants.sh --in HEADER[:LINE[-LINE]]... [option...]
# Breaks the headers on purpose, one change at a time; tests must detect each.
#
# Each line of mutants.txt is a change: the header; the tests, such as rules/traps, separated by commas; a name; a sed
# expression. The change is applied to a copy of include/, and the tests are built against it. At least one test must
# fail when it runs. A change that changes nothing, does not compile or survives is an error. With an argument of 5,
# every fifth change is tried; with names of changes or of rules, only those.
#
# With --changed or --in, operators make the changes: in the lines that differ from REV, or from the merge base with
# main, or in these headers, such as rules/adam.hpp:30-40. operators.py says which, and its options: --most N, --seed N,
# --tests a,b. What does not compile counts for nothing. What survives is a gap of the tests, or changes no result.
#
# Ends with `N mutants, N killed, N survived, N not compiled`. CXX, CXXFLAGS and JOBS (2 at a time) may be set.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
tests=$(cd "$(dirname "$0")" && pwd) || exit 1
root=$(dirname "$tests")

build() {  # build program test include-folder
  $compiler -include "$scratch/common.hpp" -I"$3" "$tests/${2}_test.cpp" "$scratch/main.o" -o "$1" -lopenblas -ltbb -lz
}

try() {  # try line-number
  sed -n "$1p" "$scratch/list" > "$scratch/$1.line"
  read -r header names name expression < "$scratch/$1.line"
  copy=$scratch/$1
  cp -r "$root/include" "$copy"
  sed -e "$expression" "$root/include/descent/$header" > "$copy/descent/$header"
  if cmp -s "$root/include/descent/$header" "$copy/descent/$header"; then
    echo "unchanged $name: its expression fits nothing in $header"
    return
  fi
  for test in $(echo "$names" | tr , ' '); do
    if ! build "$copy/broken" "$test" "$copy" > "$copy/log" 2>&1; then
      echo "broken    $name: does not compile: $(grep -m 1 error: "$copy/log")"
      return
    fi
    if ! timeout 60 "$copy/broken" > "$copy/log" 2>&1; then
      echo "killed    $name, by $test: $(sed -n 's/^TEST CASE: *//p' "$copy/log" | head -n 1)"
      return
    fi
  done
  echo "SURVIVED  $name ($header: $expression), against $names"
}

CUDA_HOME=${CUDA_HOME:-$(sh "$tests/cuda_home.sh")} || exit 1
compiler="${CXX:-c++} -std=c++20 -O0 -w -fopenmp -DDESCENT_TEST_PATIENCE=10 ${CXXFLAGS:-}
  -I$tests -isystem $CUDA_HOME/include/cccl -isystem $CUDA_HOME/include"
if [ "$1" = --sound ]; then
  scratch=$2
  program=$scratch/$(echo "$3" | tr / _).sound
  build "$program" "$3" "$root/include" > "$program.log" 2>&1 && timeout 300 "$program" >> "$program.log" 2>&1 ||
    { tail -n 20 "$program.log"; echo "$3 fails without any change"; exit 1; }
  rm -f "$program"
  exit 0
fi
if [ "$1" = --one ]; then
  scratch=$2
  result=$(try "$3")
  rm -rf "${scratch:?}/$3"
  echo "$result"
  exit 0
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' HUP INT TERM
every=1 names= by_operators=
case ${1:-1} in
  --changed | --in) by_operators=yes ;;
  *[!0-9]*) names=" $* " ;;
  *) every=${1:-1} ;;
esac
if [ -n "$by_operators" ]; then
  python3 "$tests/operators.py" "$tests/mutants.txt" "$@" > "$scratch/list" || exit 2
else
  cp "$tests/mutants.txt" "$scratch/list"
fi
lines=$(awk -v every="$every" -v names="$names" '
  function rule(header) { return header ~ /^rules\// && sub(/^rules\//, "", header) && sub(/\.hpp$/, "", header) ? header : "-" }
  !/^#/ && NF && (names == "" || index(names, " " $3 " ") || index(names, " " rule($1) " ")) &&
  n++ % every == 0 { print NR }' "$scratch/list")
# shellcheck disable=SC2046  # a list
[ -n "$lines$by_operators" ] || {
  python3 "$tests/nearest.py" 'no mutant and no rule' "$*" --changed --in $(awk '!/^#/ && NF {
    print $3; if (sub(/^rules\//, "", $1) && sub(/\.hpp$/, "", $1)) print $1 }' "$scratch/list" | sort -u) >&2
  exit 2
}
[ -n "$lines" ] || exit 0
started=$(date +%s)
cat > "$scratch/common.hpp" <<'END'
#include <doctest/doctest.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <random>
#include <unordered_set>
END
$compiler -x c++-header "$scratch/common.hpp" -o "$scratch/common.hpp.gch" || exit 1
$compiler -c "$tests/main.cpp" -o "$scratch/main.o" || exit 1

# A test that fails without a change would kill every mutant.
for line in $lines; do sed -n "${line}p" "$scratch/list"; done | awk '{ print $2 }' | tr , '\n' | sort -u |
  xargs -n 1 -P "${JOBS:-2}" sh "$0" --sound "$scratch" || exit 1

echo "$lines" | xargs -n 1 -P "${JOBS:-2}" sh "$0" --one "$scratch" | tee "$scratch/results"
count() { grep -c "^$1 " "$scratch/results"; }
tried=$(echo "$lines" | wc -l)
killed=$(count killed) broken=$(count broken)
echo "$(($(date +%s) - started)) s"
echo "$tried mutants, $killed killed, $(count SURVIVED) survived, $broken not compiled"
[ -z "$by_operators" ] || tried=$((tried - broken))
[ "$tried" -eq "$killed" ]
