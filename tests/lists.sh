#!/bin/sh
# usage: lists.sh tests-folder listed sources...     Fails if a test source is in no list of tests/meson.build.
cd "$1" || exit 1
shift
status=0
for source in $(find . \( -name '*_test.cpp' -o -name '*_test.cu' -o -path './cuda/*.cu' \
    -o -path './contract/*.c*' \) | sed 's,^\./,,' | sort); do
  case " $* " in
    *" $source "*) ;;
    *) echo "tests/$source is in no list of tests/meson.build"; status=1 ;;
  esac
done
exit $status
