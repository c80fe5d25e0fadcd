// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Number formats as bit fields, and what each makes of a number: docs/learn/formats.md.
#include "experiment.hpp"
#include "format_claims.hpp"
#include "number_format.hpp"

#include <descent/core/precision.hpp>
#if __has_include(<cuda_fp8.h>)
#include <cuda_fp8.h>
#endif

#include <bit>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;
using namespace example::learn;

void show(double x) {
  std::printf("\n%-9.6g %-34s %-13s %-13s %-13s %s\n", x, "sign, exponent, fraction", "value", "toward 0",
              "away from 0", "relative error");
  for_each_format([&](char const* name, auto f) {
    double const y = f.round(x), inner = y - std::copysign(f.spacing(std::nextafter(y, 0)), y);
    double const outer = y + std::copysign(f.spacing(y), y);
    if (!std::isfinite(y)) std::printf("%-9s %-34s %g\n", name, f.fields(y).c_str(), y);
    else std::printf("%-9s %-34s %-13.9g %-13.9g %-13.9g %.1e\n", name, f.fields(y).c_str(), y, y == 0 ? 0 : inner,
                     f.round(outer), std::fabs((y - x) / x));
  });
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::options const options{
        argc,
        argv,
        {.what = "Shows numbers as bit fields of several formats, and what each format makes of them.",
         .words = "[NUMBER...]"}};
    compare("half", binary16, [](float x) { return std::bit_cast<std::uint16_t>(ds::narrow<ds::half>(x)); });
    compare("bfloat16", brain16, [](float x) { return std::bit_cast<std::uint16_t>(ds::narrow<ds::bfloat16>(x)); });
#if __has_include(<cuda_fp8.h>)
    compare("e4m3", e4m3, [](float x) { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3); });
    compare("e5m2", e5m2, [](float x) { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2); });
#endif
    for (auto const& word : options.words) show(number("each argument", word));
    if (!options.words.empty()) return;
    std::puts("          bits     largest  least normal       least  next to 1: 1+  next to 100: 100+");
    for_each_format([](char const* name, auto f) {
      std::printf("%-9s %4d %11.6g %13.3g %11.3g %14.3g %18.3g\n", name, f.width(), f.largest(), f.least_normal(),
                  f.least(), f.spacing(1), f.spacing(100));
    });
    show(0.1);
    std::puts("\nnearest to       1/3       300       464       465     65519     65520      1e-8");
    for_each_format([](char const* name, auto f) {
      std::printf("%-9s", name);
      for (double y : {1. / 3, 300., 464., 465., 65519., 65520., 1e-8}) std::printf(" %9.6g", f.round(y));
      std::puts("");
    });

    panel relative{"spacing / |x|", "|x|", axis::logarithmic, {}, x_axis::doubling};
    panel absolute{"spacing", "|x|", axis::logarithmic, {}, x_axis::doubling};
    for_each_format([&](char const* name, auto f) {
      curve r{name, {}}, a{name, {}};
      for (int e = -40; e <= 40; ++e) {
        double const y = std::ldexp(1, e);
        if (f.round(y) != y) continue;
        r.points.push_back({y, f.spacing(y) / y});
        a.points.push_back({y, f.spacing(y)});
      }
      relative.curves.push_back(r), absolute.curves.push_back(a);
    });
    options.write("Range and precision: the distance to the next number", {relative, absolute});
  });
}
