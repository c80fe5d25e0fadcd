#!/bin/sh
# usage: rebuild.sh build-folder target
# A changed header rebuilds a target. CUDA targets before Meson 1.4, and targets with precompiled headers, need extra
# rules for this; see tests/meson.build.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$1" || exit 1
target=$2
header=$(ninja -t deps "$(ninja -t query "$target" | grep -oE "[^ ]*\.(cu|cpp)\.o" | head -n 1)" |
  grep -o '[^ ]*include/descent/[^ ]*' | head -n 1)
[ -n "$header" ] || { echo "ninja knows of no header that $target depends on"; exit 1; }
if ninja -n "$target" | grep -q Compiling; then echo "$target is not built"; exit 1; fi

stamp=$(mktemp)
touch -r "$header" "$stamp"
trap 'touch -r "$stamp" "$header"; rm -f "$stamp"' EXIT
touch "$header"
ninja -n "$target" | grep Compiling || { echo "$target is not rebuilt when $header changes"; exit 1; }
