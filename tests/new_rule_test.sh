#!/bin/sh
# usage: new_rule_test.sh project-root compiler arguments...
# A rule that new_rule.py creates compiles, with and without state, and is in every list. A name that is taken or
# invalid changes nothing.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
root=$1 compiler=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tests" "$work/docs"
cp -r "$root/include" "$work"
cp -r "$root/tests/support" "$root/tests/cuda" "$root/tests/new_rule.py" "$work/tests"
mkdir "$work/tests/docs"
cp "$root/tests/docs/optimizers.py" "$work/tests/docs"
cp -r "$root/docs/optimizers.md" "$root/docs/optimizers" "$work/docs"
begin() { python3 "$work/tests/new_rule.py" "$@" > "$work/log" 2>&1; }
fail() { cat "$work/log"; echo "$*"; exit 1; }

begin --page adam with_two m v && begin without || fail 'a rule is not begun'
printf '#include <descent/descent.hpp>\ntemplate <class R> auto f(descent::parameters<float> const& p) { return descent::optimizer{p, R{}}; }
auto a = f<descent::with_two>;\nauto b = f<descent::without>;\n' > "$work/unit.cpp"
"$compiler" -I"$work/include" "$@" -fsyntax-only "$work/unit.cpp" > "$work/log" 2>&1 || fail 'it does not compile'
for rule in with_two without; do
  for place in include/descent/descent.hpp tests/support/rows_more.hpp tests/cuda/rules.cu docs/optimizers.md; do
    grep -q "\b$rule\b" "$work/$place" || fail "$rule is not in $place"
  done
  grep -q "src=.pictures/$rule.svg" "$work/docs/optimizers.md" || fail "the index does not show the picture of $rule"
done
grep -q '^## with_two$' "$work/docs/optimizers/adam.md" && grep -q '^## without$' "$work/docs/optimizers/momentum.md" ||
  fail 'the sections are in other pages'
grep -A1 'id="optimistic"' "$work/docs/optimizers.md" | grep -q 'id="without"' || fail 'the row is in another place'
(cd "$work" && find . -type f ! -name log -exec sha256sum {} + | sort) > "$work/log.before"
for name in adam Adam '' 'a b'; do ! begin "$name" || fail "'$name' is taken for a new rule"; done
! begin --page nowhere rule || fail 'a page that does not exist is taken'
(cd "$work" && find . -type f ! -name 'log*' -exec sha256sum {} + | sort) > "$work/log.after"
grep -v 'log.before' "$work/log.before" | cmp -s - "$work/log.after" || fail 'a refused name changes files'
