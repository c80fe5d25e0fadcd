#!/bin/sh
# usage: links.sh compiler [argument...]     Succeeds if the compiler can link OpenMP and the sanitizers.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
program=$(mktemp) || exit 1
trap 'rm -f "$program"' EXIT
for flags in -fopenmp -fsanitize=address,undefined -fsanitize=thread; do
  echo 'int main() {}' | "$@" -x c++ $flags - -o "$program" || exit 1
done
