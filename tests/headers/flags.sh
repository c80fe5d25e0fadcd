#!/bin/sh
# usage: flags.sh tests-folder include-folder compiler arguments...
# The headers, included by -I, have no warning of these and need no RTTI. GCC's -Wsign-conversion warns of each array
# whose bound is an int, so only other compilers are given it.
tests=$1 include=$2
shift 2
flags='-Wall -Wextra -Wshadow -Wconversion -fno-rtti'
"$1" --version | grep -qi clang && flags="$flags -Wsign-conversion"
# shellcheck disable=SC2086  # a list
exec "$@" -I"$include" $flags -Werror -fsyntax-only "$tests/headers/flags.cpp"
