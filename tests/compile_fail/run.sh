#!/bin/sh
# usage: run.sh case compiler arguments...
# The case must not compile, and the compiler must print the sentence of its first line, `// expect: sentence`.
# A case named *.pass.cpp or *.pass.cu must compile: it shows that the other cases fail only because of their mistake.
case=$1
shift
export LC_ALL=C
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" -c "$case" -o /dev/null > "$log" 2>&1
status=$?
case $case in
  *.pass.*)
    [ $status -eq 0 ] || { cat "$log"; echo "$case does not compile"; exit 1; }
    exit 0 ;;
esac
expected=$(sed -n '1s,^// expect: *,,p' "$case")
[ -n "$expected" ] || { echo "the first line of $case is not '// expect: sentence'"; exit 1; }
[ $status -ne 0 ] || { echo "$case compiles, but must not"; exit 1; }
grep -qF -- "$expected" "$log" || { head -n 60 "$log"; echo "the compiler does not say: $expected"; exit 1; }
