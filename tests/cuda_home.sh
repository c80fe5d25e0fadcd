#!/bin/sh
# Prints the folder of the CUDA Toolkit: $CUDA_HOME, else /usr/local/cuda, else the toolkit that nvcc belongs to.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
nvcc=$(command -v nvcc) && nvcc=$(readlink -f "$nvcc")
for home in "${CUDA_HOME:-/usr/local/cuda}" "${nvcc%/bin/nvcc}"; do
  [ -n "$home" ] && [ -f "$home/include/cuda_fp16.h" ] && echo "$home" && exit
done
echo 'No CUDA Toolkit was found: install version 13 from https://developer.nvidia.com/cuda-downloads' \
  '(its headers are enough for the host part), or set CUDA_HOME to where it is.' >&2
exit 1
