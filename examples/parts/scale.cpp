// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "scale.hpp"

#include "svg.hpp"

#include <algorithm>
#include <cmath>

namespace example {
namespace {

/// The multiples of 1, 2 or 5 times a power of ten that divide a range into about `parts`.
std::vector<double> round_numbers(range r, int parts) {
  double const rough = (r.high - r.low) / parts;
  double const power = std::pow(10, std::floor(std::log10(rough)));
  double const ratio = rough / power;
  double const step = power * (ratio > 5 ? 10 : ratio > 2 ? 5 : ratio > 1 ? 2 : 1);
  std::vector<double> all;
  for (double k = std::ceil(r.low / step); k * step <= r.high; ++k) all.push_back(k * step + 0.0);  // no -0
  return all;
}

/// Powers of ten, with 2 and 5 times these if there are few; round numbers if there is hardly one. The range is that of
/// the logarithm.
std::vector<double> logarithmic_numbers(range r, int parts) {
  double const decades = r.high - r.low;
  if (decades < 0.7) return round_numbers({std::pow(10, r.low), std::pow(10, r.high)}, std::min(parts, 4));

  std::vector<double> all;
  int const every = int(std::ceil(decades / (parts + 2)));
  for (int k = int(std::floor(r.low / every)) * every; k <= r.high; k += every) {
    all.push_back(std::pow(10, k));
    if (decades < 3) all.push_back(2 * std::pow(10, k)), all.push_back(5 * std::pow(10, k));
  }
  return all;
}

std::vector<double> powers_of_two(range r, int parts) {
  std::vector<double> all;
  double const rough = (r.high - r.low) / (parts + 2);
  double every = 1;
  while (every < rough) every *= 2;
  double const first = every > 2 ? std::ceil(r.low / every - 1e-9) * every : std::ceil(r.low - 1e-9);
  for (double power = first; power <= r.high + 1e-9; power += every) all.push_back(std::exp2(power));
  return all;
}

std::string superscript(int x) {
  constexpr char const* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string result = x < 0 ? "⁻" : "";
  for (char const c : std::to_string(std::abs(x))) result += digits[c - '0'];
  return result;
}

/// Whether there are no zeros to be counted.
bool is_plain(double x) {
  double const size = std::abs(x);
  return size == 0 || (size >= 0.999e-3 && size < 0.999e5);
}

/// 10³ or 2×10⁻⁵
std::string with_power(double x) {
  double const size = std::abs(x);
  int const power = int(std::floor(std::log10(size * 1.000001)));
  auto const mantissa = svg::format("%g", x / std::pow(10, power));
  return (mantissa == "1" ? "" : mantissa + "×") + "10" + superscript(power);
}

std::string label_of(double x) {
  if (!is_plain(x)) return with_power(x);
  return (x < 0 ? "−" : "") + svg::format("%g", std::round(std::abs(x) * 1e6) / 1e6);
}

}  // namespace

double along(axis scale, double x) {
  switch (scale) {
    case axis::logarithmic: return x > 0 ? std::log10(x) : std::nan("");
    case axis::doubling: return x > 0 ? std::log2(x) : std::nan("");
    case axis::nines: return x < 100 ? -std::log10(1 - x / 100) : 4;
    default: return x;
  }
}

void range::include(double x) {
  if (!std::isfinite(x)) return;
  low = std::min(low, x);
  high = std::max(high, x);
}

range range::with_margin(double share) const {
  if (!(low <= high)) return {0, 1};
  double const margin = high > low ? share * (high - low) : std::max(0.05 * std::abs(high), 1e-12);
  return {low - margin, high + margin};
}

std::vector<tick> ticks(axis scale, range r, int parts) {
  std::vector<double> values;
  switch (scale) {
    case axis::linear: values = round_numbers(r, parts); break;
    case axis::logarithmic: values = logarithmic_numbers(r, parts); break;
    case axis::doubling: values = powers_of_two(r, parts); break;
    case axis::nines: values = {0, 50, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99};
  }
  double const tolerance = 1e-9 * (r.high - r.low);
  std::vector<tick> all;
  for (double const x : values)
    if (along(scale, x) >= r.low - tolerance && along(scale, x) <= r.high + tolerance) all.push_back({x, label_of(x)});
  bool const plain = std::ranges::all_of(all, [](tick const& t) { return t.value > 0.1 && t.value < 1e5; });
  if (scale == axis::logarithmic && !std::ranges::all_of(all, [](tick const& t) { return is_plain(t.value); }))
    for (tick& t : all)
      if (t.value < 0.0999 || t.value > 999) t.label = with_power(t.value);
  if (scale == axis::doubling && !plain)
    for (tick& t : all) t.label = "2" + superscript(int(std::lround(std::log2(t.value))));
  return all;
}

}  // namespace example
