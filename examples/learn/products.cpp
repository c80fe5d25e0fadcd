// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Which products tensor cores make faster, and what padding costs: docs/learn/tensor_cores.md.
#include "experiment.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

using namespace example;

// snippet: model
/// H100 SXM, by NVIDIA's data sheet: dense products in half with sums in float, and float without tensor cores.
constexpr double half_peak = 989e12, float_peak = 67e12, bandwidth = 3.35e12;  // flop/s, flop/s, bytes/s

double padded(double n, double to) { return std::ceil(n / to) * to; }

/// C = A B with m x k and k x n elements, each read or written once.
struct product {
  char const* name;
  double m, n, k;

  double flops() const { return 2 * m * n * k; }
  double bytes(int size) const { return size * (m * k + k * n + m * n); }
  double intensity(int size) const { return flops() / bytes(size); }
  double seconds(int size, double peak) const { return std::max(flops() / peak, bytes(size) / bandwidth); }
  double gain() const { return seconds(4, float_peak) / seconds(2, half_peak); }
  double tiles(double size) const { return padded(m, size) / size * padded(n, size) / size; }
};
// end

std::vector<product> const products{
    {"digits, 64 to 100, batch 32", 32, 100, 64},   {"MNIST, 784 to 300, batch 128", 128, 300, 784},
    {"1024 to 1024, batch 128", 128, 1024, 1024},   {"4096 to 4096, batch 1", 1, 4096, 4096},
    {"4096 to 4096, batch 128", 128, 4096, 4096},   {"4096 to 4096, batch 512", 512, 4096, 4096},
    {"4096 to 4096, batch 8192", 8192, 4096, 4096}, {"768 to 50257, batch 8192", 8192, 50257, 768}};

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::options const options{argc, argv, {.what = "Shows which products tensor cores make faster."}};
    std::printf("flops per byte at which the two sides are equal: half %.0f, float %.0f\n\n", half_peak / bandwidth,
                float_peak / bandwidth);
    std::puts("product y = x W                     Mflop  flops per byte      bound by    at most   tiles");
    std::puts("                                            half   float   half    float    faster   of 128");
    for (auto const& p : products) {
      auto const side = [&](int size, double peak) { return p.intensity(size) < peak / bandwidth ? "memory" : "peak"; };
      std::printf("%-29s %11.1f %6.1f %7.1f   %-7s %-7s %6.1f %8.0f\n", p.name, p.flops() / 1e6, p.intensity(2),
                  p.intensity(4), side(2, half_peak), side(4, float_peak), p.gain(), p.tiles(128));
    }
    claim(products.front().gain() <= 2 && products.back().gain() > 14,
          "only large products gain what the peak promises");

    std::puts("\ncolumns     to a multiple of 8     to tiles of 128");
    for (int n : {10, 100, 1000, 1001, 1024, 1025, 50257}) {
      std::printf("%7d", n);
      for (int to : {8, 128}) std::printf("  %9.0f %8.1f %%", padded(n, to), 100 * (padded(n, to) / n - 1));
      std::puts("");
    }

    panel roofline{"Tflop/s at most, H100 SXM; a circle for each product of the table",
                   "flops per byte",
                   axis::logarithmic,
                   {},
                   x_axis::doubling};
    for (auto [name, size, peak] : {std::tuple{"half, tensor cores", 2, half_peak}, {"float", 4, float_peak}}) {
      curve c{name, {}};
      for (double x = -1; x <= 12; x += 0.125)
        c.points.push_back({std::exp2(x), std::min(peak, bandwidth * std::exp2(x)) / 1e12});
      for (auto const& p : products) c.marks.push_back({p.intensity(size), p.flops() / p.seconds(size, peak) / 1e12});
      roofline.curves.push_back(c);
    }
    panel gain{"how many times as fast half is as float, at most", "batch", axis::linear, {}, x_axis::doubling};
    for (int n : {256, 1024, 4096}) {
      curve c{std::to_string(n) + " to " + std::to_string(n), {}};
      for (double x = 0; x <= 14; x += 0.125)
        c.points.push_back({std::exp2(x), product{"", std::exp2(x), double(n), double(n)}.gain()});
      gain.curves.push_back(c);
    }
    options.write("What a product can gain from tensor cores", {roofline, gain});
  });
}
