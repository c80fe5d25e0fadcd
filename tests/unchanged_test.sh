#!/bin/sh
# unchanged.py runs a command again if and only if what it reads, its own text or an output is not as it was.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
tests=$(cd "$(dirname "$0")" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
status=0
cat > compile <<'EOF'
echo >> runs
printf 'out: a \\\n  b\n' > d
cat a b runs > out
EOF
expect() {  # expect count what: the number of runs so far
  python3 "$tests/unchanged.py" d out -- sh compile $argument || true
  [ "$(wc -l < runs)" -eq "$1" ] || { echo "$2: $(wc -l < runs) runs instead of $1"; status=1; }
  [ -f d ] || { echo "$2: there is no dependency file"; status=1; }
  rm -f d
}
argument=
echo 1 > a
echo 2 > b
expect 1 'at first'
expect 1 'nothing has changed'
touch -d 2001-01-01 out
touch b
expect 1 'a file is newer'
[ -z "$(find out -not -newermt 2002-01-01)" ] || { echo 'an output that is kept stays old'; status=1; }
echo 3 > b
expect 2 'a file differs'
rm out
expect 3 'an output is gone'
argument=-
expect 4 'another argument'
printf '{' > d.json
expect 5 'the record is cut off'
argument=out
expect 6 'an argument is an output'
echo 4 > b
expect 7 'a file differs, and so does the output in the arguments'
expect 7 'an output in the arguments has not changed since'
mv a 'a file'
sed 's/: a/: a\\\\ file/; s/cat a/cat "a file"/' compile > changed
mv changed compile
expect 8 'a name has a space'
expect 8 'a name has a space, and nothing has changed'
rm 'a file'
expect 9 'a file is gone'
expect 10 'it failed before'
exit $status
