// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// What the storage types can hold and what they lose: the numbers that docs/mixed_precision.md quotes.
#include "parts/arguments.hpp"
#include "parts/claim.hpp"

#include <descent/descent.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <type_traits>
#include <vector>

namespace {

namespace ds = descent;
using example::claim;

// snippet: bytes
template <class Value, class... Policies>
constexpr auto bytes = ds::bytes_per_parameter<Value, Value, ds::adamw, Policies...>();

// half values, float master, float state: everything in one step
static_assert(bytes<ds::half, ds::master<float>, ds::dynamic_loss_scale, ds::clip_norm, ds::ema, ds::zero_grad> == 40);
// bfloat16 values, float master, float state; no loss scale
static_assert(bytes<ds::bfloat16, ds::master<float>, ds::clip_norm> == 30);
// the same master, of the value and the 16 bits that it lacks
static_assert(bytes<ds::bfloat16, ds::master_remainder, ds::clip_norm> == 28);
// a float master, from which the value is rounded at random
static_assert(bytes<ds::bfloat16, ds::master<float>, ds::stochastic_values, ds::clip_norm> == 30);
// bfloat16 alone: values and state, rounded at random
static_assert(bytes<ds::bfloat16, ds::states<ds::bfloat16>, ds::stochastic_rounding, ds::clip_norm> == 16);
// float, for comparison
static_assert(bytes<float, ds::clip_norm> == 32);
// end

template <class T> double wide(T x) { return ds::widen<double>(x); }
template <class T> double rounded(double x) { return wide(ds::narrow<T>(x)); }

template <class T> using bits_of = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>;
template <class T> double number(bits_of<T> bits) { return wide(std::bit_cast<T>(bits)); }

template <class T> void row(bits_of<T> infinity, bits_of<T> smallest_normal) {
  double const largest = number<T>(bits_of<T>(infinity - 1)), smallest = number<T>(1);
  double const spacing = number<T>(bits_of<T>(std::bit_cast<bits_of<T>>(ds::narrow<T>(1.f)) + 1)) - 1;
  std::printf("%-9s %10.5g %13.3g %9.3g %14.3g %8.5g %8.6g %9.4g\n", ds::type_name<T>(), largest,
              number<T>(smallest_normal), smallest, spacing, rounded<T>(1.001), rounded<T>(3.14159265),
              rounded<T>(1e-8));
  claim(std::isinf(number<T>(infinity)) && std::isfinite(largest), "the largest number is the last before infinity");
  claim(rounded<T>(1 + 0.4 * spacing) == 1 && rounded<T>(1 + 0.6 * spacing) > 1, "half the spacing is what moves 1");
}

/// The mean of elements that start at 1, after 1000 updates of 1e-4.
template <class T, class... Policies> double after_updates(Policies... policies) {
  std::vector<T> p(4096, ds::narrow<T>(1.f)), g(4096, ds::narrow<T>(-1.f));
  ds::parameters<T> params;
  params.add("p", p.data(), g.data(), p.size());
  ds::optimizer opt{params, ds::sgd{.lr = 1e-4}, policies...};
  for (int t = 0; t < 1000; ++t) opt.step();
  double sum = 0;
  for (auto const x : p) sum += wide(x) / double(p.size());
  return sum;
}

void run() {
  std::puts("type         largest  least normal     least  next to 1: 1+    1.001       pi      1e-8");
  row<float>(0x7f800000, 0x00800000);
  row<ds::half>(0x7c00, 0x0400);
  row<ds::bfloat16>(0x7f80, 0x0080);

  double const exact = after_updates<float>(), half = after_updates<ds::half>();
  double const bfloat16 = after_updates<ds::bfloat16>();
  double const with_master = after_updates<ds::bfloat16>(ds::master<float>{});
  double const with_remainder = after_updates<ds::bfloat16>(ds::master_remainder{});
  double const from_master = after_updates<ds::bfloat16>(ds::master<float>{}, ds::stochastic_values{1});
  double const at_random = after_updates<ds::bfloat16>(ds::stochastic_rounding{1});
  std::puts("\n1 after 1000 updates of +0.0001");
  std::printf("float                                      %.4f\n", exact);
  std::printf("half                                       %.4f\n", half);
  std::printf("bfloat16                                   %.4f\n", bfloat16);
  std::printf("bfloat16, master<float>                    %.4f\n", with_master);
  std::printf("bfloat16, master_remainder                 %.4f\n", with_remainder);
  std::printf("bfloat16, master<float>, stochastic_values %.4f\n", from_master);
  std::printf("bfloat16, stochastic_rounding, mean        %.4f\n", at_random);
  claim(half == 1 && bfloat16 == 1, "small updates are lost in 16 bits");
  claim(std::fabs(with_master - exact) < 0.004 && with_remainder == with_master, "a master keeps them");
  claim(std::fabs(from_master - exact) < 0.0003, "from a master it loses nothing on average");
  claim(std::fabs(at_random - exact) < 0.004, "random rounding keeps them on average");
}

constexpr char const* help = R"(usage: formats

Prints what the storage types can hold and what they lose.
)";

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run); }
