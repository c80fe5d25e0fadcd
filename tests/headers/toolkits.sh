#!/bin/sh
# usage: toolkits.sh project-root cache-folder compiler...
# The library works with the headers of older CUDA Toolkits: for a host compiler, a program compiles without a warning and
# runs; nvcc, of whatever version, compiles kernels with their CUDA runtime, Thrust and libcu++. The headers come from PyPI
# and stay in the cache folder; without them the test is skipped. A compiler named *nvcc is nvcc.
root=$1 cache=$2
shift 2
mkdir -p "$cache" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 tried=0

has() {  # CUDA-version: its headers are in the cache
  [ ! -f "$cache/$1/complete" ] || return 0
  rm -rf "${cache:?}/$1"
  timeout 240 python3 -m pip install -q --disable-pip-version-check --no-deps --only-binary=:all: --retries 0 --timeout 15 \
    --target "$cache/$1" "nvidia-cuda-runtime-cu12==$1.*" "nvidia-cuda-nvcc-cu12==$1.*" "nvidia-cuda-cccl-cu12==$1.*" \
    > "$work/log" 2>&1 && touch "$cache/$1/complete"
}
report() {  # sentence command...
  sentence=$1
  shift
  tried=$((tried + 1))
  if "$@" > "$work/log" 2>&1; then echo "pass $sentence"; else echo "FAIL $sentence"; head -n 20 "$work/log"; failed=1; fi
}

compile() {  # CUDA-version its-number its-CCCL compiler
  wheels=$cache/$1/nvidia name="CUDA $1, ${4##*/}"
  set -- "$4" -std=c++20 -DDESCENT_CUDA="$2" -DDESCENT_CCCL="$3" -I"$root/include"
  case $1 in
    # -I, because nvcc looks into the headers of its own toolkit before any other -isystem.
    *nvcc) report "$name: compiles kernels" "$@" -I"$wheels/cuda_cccl/include" -I"$wheels/cuda_runtime/include" \
      -ptx "$root/tests/headers/toolkits.cu" -o "$work/kernels.ptx" ;;
    *)
      rm -f "$work/program"
      report "$name: compiles for the host" "$@" -Wall -Wextra -Werror -isystem "$wheels/cuda_cccl/include" \
        -isystem "$wheels/cuda_runtime/include" -isystem "$wheels/cuda_nvcc/include" "$root/tests/headers/toolkits.cpp" \
        -o "$work/program"
      [ ! -x "$work/program" ] || report "$name: runs on the host" "$work/program" ;;
  esac
}

while read -r cuda number cccl; do
  has "$cuda" || { echo "skipped: the headers of CUDA $cuda are neither here nor on PyPI"; tail -n 3 "$work/log"; continue; }
  for compiler; do compile "$cuda" "$number" "$cccl" "$compiler"; done
done <<END
12.4 12040 2003000
12.6 12060 2005000
12.9 12090 2008000
END
[ $tried -gt 0 ] || exit 77
exit $failed
