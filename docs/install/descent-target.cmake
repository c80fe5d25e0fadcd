# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
# Included by the package's descent-config.cmake and by CMakeLists.txt. Finds what a program with descent needs of the
# CUDA Toolkit. The host part needs only headers, so nvcc need not be there. descent_MISSING is empty, or a message.

find_package(OpenMP QUIET COMPONENTS CXX)   # threads of the host backend; without it, one thread
find_package(CUDAToolkit QUIET)             # needs nvcc; the two lines below do not
find_path(descent_CUDA_INCLUDE_DIR cuda_fp16.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} $ENV{CUDA_HOME}/include /usr/local/cuda/include)
find_path(descent_CCCL_INCLUDE_DIR thrust/version.h
  HINTS ${descent_CUDA_INCLUDE_DIR}/cccl ${descent_CUDA_INCLUDE_DIR})

set(descent_MISSING "")
if(NOT descent_CUDA_INCLUDE_DIR OR NOT descent_CCCL_INCLUDE_DIR)
  set(descent_MISSING "descent needs the headers of the CUDA Toolkit: set the environment variable CUDA_HOME.")
endif()

# Gives an interface target the flags of a program whose headers of descent are in include_dir.
function(descent_describe target include_dir)
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_include_directories(${target} INTERFACE "${include_dir}")
  target_include_directories(${target} SYSTEM INTERFACE "${descent_CCCL_INCLUDE_DIR}" "${descent_CUDA_INCLUDE_DIR}")
  target_link_libraries(${target} INTERFACE Threads::Threads)
  if(OpenMP_CXX_FOUND)
    target_link_libraries(${target} INTERFACE OpenMP::OpenMP_CXX)
  endif()
endfunction()
