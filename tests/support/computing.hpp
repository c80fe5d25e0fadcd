// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace test {

inline constexpr std::array roundings{FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

/// Gives this thread a rounding mode and, on x86, one in which denormal numbers are 0, until the end of the block.
class computing {
 public:
  explicit computing(int rounding, bool flushes) {
    std::fegetenv(&before_);
    std::fesetround(rounding);
#if defined(__x86_64__)
    if (flushes) _mm_setcsr(_mm_getcsr() | 0x8040);
#else
    (void)flushes;
#endif
  }
  ~computing() { std::fesetenv(&before_); }
  computing(computing const&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace test
