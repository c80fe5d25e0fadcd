#!/bin/sh
# usage: standard.sh include-folder CUDA-include-folder compiler...
# Every public header asks for C++20 before anything else is parsed: with -std=c++17 each compiler prints that sentence
# and stops. nvcc 12, exceptions, the CUDA Toolkit and Thrust are asked for in the same way. A compiler named *nvcc
# checks the .cuh headers; the first other one checks all .hpp headers, and the rest those at the top.
include=$1 cuda=$2
shift 2
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 tried=0 depth=

# says sentence arguments...: the compiler prints this sentence and that a file is missing, and no other error
says() {
  sentence=$1
  shift
  tried=$((tried + 1))
  "$@" > "$work/log" 2>&1 && { echo "compiles, but must not: $*"; failed=1; return; }
  errors=$(grep -c 'error:' "$work/log")
  grep -q "error: .*$sentence" "$work/log" && grep -q 'fatal error: .descent_needs_\|fatal error: descent_needs_' "$work/log" &&
    [ "$errors" -le 2 ] && return
  echo "$* does not just say '$sentence':"
  head -n 5 "$work/log"
  failed=1
}

for compiler; do
  case $compiler in
    *nvcc) kind=cuh unit=$work/unit.cu options='-ptx -o /dev/null' no_exceptions=-Xcompiler=-fno-exceptions ;;
    *) kind=hpp unit=$work/unit.cpp options=-fsyntax-only no_exceptions=-fno-exceptions ;;
  esac
  # shellcheck disable=SC2086  # a list
  for header in $(cd "$include" && find descent $depth -name "*.$kind" ! -path '*/detail/*' ! -path '*/engine/*' | sort); do
    echo "#include <$header>" > "$unit"
    # shellcheck disable=SC2086  # a list
    says 'descent needs C++20' "$compiler" -std=c++17 -I"$include" -isystem "$cuda" $options "$unit"
  done
  echo "#include <descent/descent.$kind>" > "$unit"
  # shellcheck disable=SC2086  # a list
  says 'descent needs exceptions' "$compiler" -std=c++20 $no_exceptions -I"$include" -isystem "$cuda" $options "$unit"
  [ $kind = cuh ] && continue
  # shellcheck disable=SC2086  # a list
  says 'descent needs nvcc 12' "$compiler" -std=c++20 -D__CUDACC__ -D__CUDACC_VER_MAJOR__=11 -I"$include" $options "$unit"
  depth='-maxdepth 1'
  echo '#include <cuda_fp16.h>' > "$unit"
  "$compiler" -fsyntax-only "$unit" 2>/dev/null && continue  # it finds the CUDA Toolkit by itself
  echo '#include <descent/descent.hpp>' > "$unit"
  says 'descent needs the headers of the CUDA Toolkit' "$compiler" -std=c++20 -I"$include" -fsyntax-only "$unit"
  echo '#include <descent/backends/thrust.hpp>' > "$unit"
  says 'needs Thrust' "$compiler" -std=c++20 -I"$include" -isystem "$cuda" -fsyntax-only "$unit"
done
echo "$tried compilations"
[ $failed -eq 0 ] && [ $tried -gt 100 ]
