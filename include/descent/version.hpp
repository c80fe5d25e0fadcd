// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

// Every header includes this one before any code of its own. The missing file ends the compilation.
#if __cplusplus < 202002L
#error descent needs C++20: compile with -std=c++20
#include <descent_needs_cxx20>
#endif
#if defined(__CUDACC__) && __CUDACC_VER_MAJOR__ < 12
#error descent needs nvcc 12.0 or newer, which knows C++20
#include <descent_needs_nvcc_12>
#endif
#if !defined(__cpp_exceptions)
#error descent needs exceptions: omit -fno-exceptions, or use it in a file that has them (examples/c_api)
#include <descent_needs_exceptions>
#endif
#if !__has_include(<cuda_fp16.h>)
#error descent needs the headers of the CUDA Toolkit, also on the host: add -isystem <CUDA Toolkit>/include
#include <descent_needs_cuda_headers>
#endif

namespace descent {

/// The version of the headers, as in meson.build.
inline constexpr char version[] = "0.1.0";

}  // namespace descent
