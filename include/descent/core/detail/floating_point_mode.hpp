// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstdint>

namespace descent::detail {

/// How a thread of the host rounds, whether it takes denormal numbers as 0, and which exceptions it traps: on x86 the
/// control bits of MXCSR and of the x87 unit, which printf and strtod round by; on Arm FPCR. On other processors always
/// equal.
class floating_point_mode {
 public:
  static floating_point_mode of_this_thread() {
    floating_point_mode m;
    m.bits_ = read() & control;
    return m;
  }
  /// That in which a program starts: to nearest, with denormal numbers, without traps.
  static floating_point_mode standard() {
    floating_point_mode m;
    m.bits_ = at_start;
    return m;
  }
  bool operator==(floating_point_mode const&) const = default;

  /// Gives this thread the mode. Exceptions that it has raised stay raised.
  void set() const { write((read() & ~control) | bits_); }

 private:
#if defined(__x86_64__)
  using word = std::uint64_t;  // MXCSR, and above it the control word of the x87 unit
  static constexpr word control = 0xffff'0000'ffc0;  // the others are the exceptions raised so far
  static constexpr word at_start = 0x037f'0000'1f80;
  static word read() {
    std::uint32_t sse;
    std::uint16_t x87;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(sse), "=m"(x87)::"memory");
    return word(x87) << 32 | sse;
  }
  static void write(word x) {
    std::uint32_t const sse = std::uint32_t(x);
    std::uint16_t const x87 = std::uint16_t(x >> 32);
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" ::"m"(sse), "m"(x87) : "memory");
  }
#elif defined(__aarch64__)
  using word = std::uint64_t;
  static constexpr word control = ~word(0), at_start = 0;
  static word read() {
    word x;
    __asm__ volatile("mrs %0, fpcr" : "=r"(x)::"memory");
    return x;
  }
  static void write(word x) { __asm__ volatile("msr fpcr, %0" ::"r"(x) : "memory"); }
#else
  using word = std::uint32_t;
  static constexpr word control = 0, at_start = 0;
  static word read() { return 0; }
  static void write(word) {}
#endif

  word bits_ = 0;
};

/// Gives the calling thread another mode until the end of the block: without an argument the standard one, for what is
/// not a computation of the caller, such as reading a number from text.
class floating_point_scope {
 public:
  floating_point_scope() : floating_point_scope(floating_point_mode::standard()) {}
  explicit floating_point_scope(floating_point_mode const& wanted)
      : before_(floating_point_mode::of_this_thread()), differs_(before_ != wanted) {
    if (differs_) wanted.set();
  }
  ~floating_point_scope() {
    if (differs_) before_.set();
  }
  floating_point_scope(floating_point_scope const&) = delete;
  floating_point_scope& operator=(floating_point_scope const&) = delete;

 private:
  floating_point_mode before_;
  bool differs_;
};

}  // namespace descent::detail
