#!/bin/sh
# Lists the exercises of docs/learn, or checks your answer to one of them.
#
# usage: sh tests/learn.sh                  lists the exercises, and which of them are solved
#        sh tests/learn.sh NAME [FILE]      checks one exercise, in examples/exercises/NAME.hpp or in FILE
#        sh tests/learn.sh --check [NAME]   for the library's tests: solutions, files as they are given and known wrong
#                                           answers, of these only each EVERY-th of all if EVERY is set
#
# An exercise is solved if its hidden test, learn/exercises/NAME_test.cpp, compiles with the file and ends with 0.
# learn/wrong.txt has wrong answers and a part of the sentence that each must get.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
tests=$(cd "$(dirname "$0")" && pwd) && root=$(dirname "$tests") || exit 1
given=$root/examples/exercises
learn=$tests/learn
CUDA_HOME=${CUDA_HOME:-$(sh "$tests/cuda_home.sh")} || exit 1
export CUDA_HOME
export LEARN_SECONDS="${LEARN_SECONDS:-20}"  # that a program may take
[ -n "${CXX-}" ] || for CXX in g++ clang++; do ! command -v "$CXX" > /dev/null || break; done
command -v "$CXX" > /dev/null || { echo "no C++ compiler was found: install g++ or clang++, or set CXX" >&2; exit 1; }

# verdict WORK NAME FILE: prints a sentence unless the exercise is solved. 0: solved, 1: wrong, 2: does not compile.
verdict() {
  flags=$(sed -n 's,^// flags: ,,p' "$learn/exercises/$2_test.cpp")
  # shellcheck disable=SC2086  # lists
  if ! $CXX -std=c++20 -Wall $flags "-I$root/include" "-I$given" -isystem "$CUDA_HOME/include" -include "$3" \
    "$learn/exercises/$2_test.cpp" -o "$1/program" > "$1/log" 2>&1; then
    echo "the file does not compile:"
    awk -v file="$3:" 'index($0, file) == 1 && /error:/ && !/condition for static assertion/ {n++; left = 3} n <= 3 && left-- > 0' "$1/log" > "$1/errors"
    if [ -s "$1/errors" ]; then cat "$1/errors"; else grep -m 3 -A 3 'error:' "$1/log"; fi
    return 2
  fi
  timeout "$LEARN_SECONDS" "$1/program" 2>&1
  case $? in
    0) return 0 ;;
    1) return 1 ;;
    124) echo "the program did not end within $LEARN_SECONDS seconds; does a loop never end?" ;;
    *) echo "the program crashed; is an index out of range?" ;;
  esac
  return 1
}

# check NAME: everything about one exercise; prints what is not as it should be, and `count` of what was checked.
check() {
  work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
  solution=$learn/solutions/$1.hpp
  checked=0 failed=0
  fail() { failed=$((failed + 1)); printf '%s: %s\n' "$name" "$*"; }
  name=$1
  if sentence=$(verdict "$work" "$1" "$solution"); then :; else fail "the solution is refused: $sentence"; fi
  grep "^$1: " "$learn/wrong.txt" > "$work/wrong" || fail "has no line in learn/wrong.txt"
  grep -q "^$1: given => " "$work/wrong" || fail "learn/wrong.txt does not say what the file as given gets"
  awk -v every="${EVERY:-1}" -v name="$1: " 'index($0, name) == 1 && (/: given => / || NR % every == 0)' "$learn/wrong.txt" \
    > "$work/some"
  while IFS= read -r line; do
    line=${line#*: } checked=$((checked + 1))
    want=${line##* => } expression=${line% => *}
    file=$work/answer.hpp
    if [ "$expression" = given ]; then file=$given/$1.hpp
    else
      sed -e "$expression" "$solution" > "$file"
      ! cmp -s "$file" "$solution" || fail "'$expression' changes nothing"
    fi
    sentence=$(verdict "$work" "$1" "$file") && fail "'$expression' passes" && continue
    case $sentence in
      *"$want"*) [ -z "${SHOW-}" ] || printf '%s: %s\n    %s\n' "$1" "$expression" "$sentence" ;;
      *) fail "'$expression' should be told '$want', but is told: $sentence" ;;
    esac
  done < "$work/some"
  echo "count $checked $failed"
}

one() {
  work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
  file=${2:-$given/$1.hpp}
  # shellcheck disable=SC2046  # a list
  [ -f "$learn/exercises/$1_test.cpp" ] || { python3 "$tests/nearest.py" 'no exercise' "$1" $(names) >&2; exit 2; }
  [ -f "$file" ] || { echo "there is no file $file" >&2; exit 2; }
  case $file in /*) ;; *) file=$PWD/$file ;; esac
  if sentence=$(verdict "$work" "$1" "$file"); then echo "$1: solved${sentence:+, $sentence}"; else echo "$1: $sentence"; return 1; fi
}

# row NAME: a line of the list.
row() {
  work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
  awk -v name="$1" '$2 == name' "$learn/exercises.txt" > "$work/row"
  read -r number name minutes title < "$work/row"
  verdict "$work" "$name" "$given/$name.hpp" > "$work/sentence"
  case $? in 0) state=solved ;; 1) state=open ;; *) state='does not compile' ;; esac
  printf '%-4s %-28s %3s min  %-8s %s\n' "$number" "$name" "$minutes" "$state" "$title"
}

# quotes: every sentence that teacher.md quotes is one of a test.
quotes() {
  sed -n 's/^| `[a-z_]*` | .* | \(.*\) |$/\1/p' "$root/docs/learn/teacher.md" > "$1"
  [ -s "$1" ] || echo "docs/learn/teacher.md quotes no sentence"
  while IFS= read -r sentence; do
    grep -qF "$sentence" "$learn"/exercises/*_test.cpp || echo "docs/learn/teacher.md quotes what no test says: $sentence"
  done < "$1"
}

names() { awk '!/^#/ {print $2}' "$learn/exercises.txt"; }

jobs=${JOBS:-$(nproc)}
case ${1-} in
  --check)
    work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
    if [ $# -gt 1 ]; then shift && printf '%s\n' "$@" > "$work/names"; else names > "$work/names"; fi
    quotes "$work/quotes" | tee "$work/misquoted"
    xargs -P "$jobs" -n 1 sh "$0" --check-one < "$work/names" | tee "$work/results" | grep -v '^count '
    awk -v all="$(wc -l < "$work/names")" -v misquoted="$(wc -l < "$work/misquoted")" '
      /^count / {n++; wrong += $2 - 1; failed += $3}
      END {
        failed += misquoted + all - n
        printf "%d exercises, %d wrong answers beside the files as given: %d failed\n", n, wrong, failed
        exit failed > 0
      }' "$work/results" ;;
  --check-one) check "$2" ;;
  --row) row "$2" ;;
  '') echo "checking all exercises, which takes a minute" >&2
    names | xargs -P "$jobs" -n 1 sh "$0" --row | sort -n ;;
  -*) python3 "$tests/nearest.py" 'unknown option' "$1" --check --help >&2; exit 2 ;;
  *) one "$@" ;;
esac
