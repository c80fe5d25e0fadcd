#!/bin/sh
# Installs PyTorch for the CPU into a virtual environment, and creates the file `ready` there once it can be imported.
# usage: torch.sh FOLDER
#
# The Linux wheel is built for CUDA and loads CUDA's libraries when it is imported. Installing all of its dependencies
# would take 4 GB. Libraries of the local CUDA Toolkit are linked into a folder, which LD_LIBRARY_PATH must name. Of the
# others, only those that the import needs are installed.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
folder=$1
[ ! -f "$folder/ready" ] || exit 0
say() { echo "PyTorch: $*"; }
needed=5000000  # KiB
mkdir -p "$folder/cuda" || exit 1
free=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
if [ "$free" -lt $needed ]; then
  say "needs $((needed / 1000000)) GB in $folder, $((free / 1000000)) GB are free; going on without it"
  exit 1
fi
say 'installing into a virtual environment, about 1 GB to load'
python3 -m venv "$folder" > "$folder/log" 2>&1 || { say 'python3 -m venv failed; going on without it'; exit 1; }
pip() { "$folder/bin/pip" install -q --disable-pip-version-check "$@" >> "$folder/log" 2>&1; }
imports() { LD_LIBRARY_PATH=$folder/cuda "$folder/bin/python" -W ignore -c 'import torch' >> "$folder/log" 2>&1; }
for library in cublas cublasLt cudart cufft cusparse cupti nvrtc nvJitLink cusolver cudnn; do
  for file in "${CUDA_HOME:-/usr/local/cuda}"/lib64/lib$library*.so.*; do
    [ ! -e "$file" ] || ln -sf "$file" "$folder/cuda/"
  done
done
if ! { pip --no-deps torch && pip --no-deps nvidia-cufile nvidia-cusparselt-cu13 nvidia-nvshmem-cu13 nvidia-nccl-cu13 &&
  pip filelock typing-extensions sympy networkx jinja2 fsspec numpy && imports; }; then
  say 'needs all that its package names'
  rm -f "$folder"/cuda/*
  { pip torch numpy && imports; } || { say "cannot be had, see $folder/log; going on without it"; exit 1; }
fi
touch "$folder/ready"
