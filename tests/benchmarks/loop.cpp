// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "contest.hpp"

int main() {
  return bench::serve("\"name\": \"hand-written loop\", \"compiler\": \"g++ " __VERSION__
                      "\", \"flags\": \"" BENCH_FLAGS ", functions with target avx2,fma,f16c\"");
}
