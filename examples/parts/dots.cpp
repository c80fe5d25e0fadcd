// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "dots.hpp"

#include "svg.hpp"

#include <algorithm>
#include <cmath>

namespace example {

using svg::format;

sample sample_of(std::vector<double> const& values) {
  double mean = 0, squares = 0;
  for (double const x : values) mean += x / double(values.size());
  for (double const x : values) squares += (x - mean) * (x - mean);
  return {mean, values.size() > 1 ? std::sqrt(squares / double(values.size() - 1)) : 0};
}

namespace {

std::string in_words(dot_panel const& p, dot_row const& r) {
  auto const [mean, deviation] = sample_of(r.values);
  return format("%.*f ± %.*f", p.digits, mean, p.digits, deviation);
}

}  // namespace

std::string draw_dots(std::string const& title, std::vector<dot_panel> const& panels) {
  constexpr double row = 24;
  double y = svg::heading(title) + 4, longest = 0, right = 0;
  for (auto const& p : panels)
    for (auto const& r : p.rows)
      longest = std::max(longest, svg::width(r.name, 13)), right = std::max(right, svg::width(in_words(p, r), 13));
  double const x0 = svg::margin + longest + 14, x1 = svg::page - svg::margin - right - 16;

  std::string body;
  for (auto const& p : panels) {
    range xs;
    for (auto const& r : p.rows) {
      auto const [mean, deviation] = sample_of(r.values);
      for (double const x : r.values) xs.include(along(p.scale, x));
      for (double const x : {mean - deviation, mean + deviation}) xs.include(along(p.scale, x));
    }
    xs = xs.with_margin(0.03);
    auto const at = [&](double x) { return x0 + (x1 - x0) * xs.fraction(along(p.scale, x)); };
    std::string const error = p.scale == axis::nines ? " (axis: logarithm of the error)" : "";
    auto const heading = svg::wrapped(p.title + error, 13, svg::page - 2 * svg::margin, true);
    body += svg::lines(svg::margin, y + 18, 18, heading, "font-weight=\"bold\"");
    y += 18 * double(heading.size()) + 12;
    double const top = y, base = y + row * double(p.rows.size());
    for (auto const& [x, name] : ticks(p.scale, xs, 7)) {
      body += svg::line(at(x), top, at(x), base, "class=\"grid\"");
      body += svg::text(at(x), base + 17, name, "font-size=\"12\" class=\"soft\" text-anchor=\"middle\"");
    }
    body += svg::line(x0, base, x1, base, "class=\"axis\"");
    for (auto const& r : p.rows) {
      double const middle = y + row / 2;
      auto const [mean, deviation] = sample_of(r.values);
      body += svg::text(x0 - 10, middle + 4.5, r.name, "text-anchor=\"end\"");
      for (double const x : r.values)
        if (std::isfinite(along(p.scale, x)))
          body +=
              format("<circle class=\"f0\" fill-opacity=\"0.45\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", at(x), middle);
      if (std::isfinite(along(p.scale, mean))) {
        double const low = std::isfinite(along(p.scale, mean - deviation)) ? at(mean - deviation) : x0;
        body += svg::line(low, middle, at(mean + deviation), middle, "class=\"p6\" stroke-width=\"1.4\"");
        body += svg::line(at(mean), middle - 7, at(mean), middle + 7, "class=\"p6\" stroke-width=\"2.4\"");
      }
      body += svg::text(x1 + 14, middle + 4.5, in_words(p, r));
      y += row;
    }
    y += 34;
  }
  return svg::document(title, y, body);
}

}  // namespace example
