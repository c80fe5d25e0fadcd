// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace example {
namespace {

// Pixels
constexpr double panel_width = 440, panel_height = 380;
constexpr double left = 62, right = 14, top = 80, bottom = 48;
constexpr double legend_line = 24, legend_dash = 28, letter = 7.6;

// Okabe and Ito's colours, which colour-blind readers can tell apart, without the yellow
constexpr char const* colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
constexpr char const* dashes[] = {"", "7 3", "2 3", "10 3 2 3", "14 5", "1 5"};

template <class... T> std::string format(char const* form, T... values) {
  char text[512];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

std::string escaped(std::string const& text) {
  std::string result;
  for (char const c : text)
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string{c};
  return result;
}

/// The position of a value along its axis, in the axis' own unit; NaN if it cannot be shown.
double along(axis scale, double y) {
  switch (scale) {
    case axis::logarithmic: return y > 0 ? std::log10(y) : std::nan("");
    case axis::nines: return y < 100 ? -std::log10(1 - y / 100) : 4;
    default: return y;
  }
}

struct range {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void include(double x) {
    if (!std::isfinite(x)) return;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  /// Makes a range that can be drawn even from an empty one.
  range with_margin(double share) const {
    if (!(low <= high)) return {0, 1};
    double const margin = high > low ? share * (high - low) : std::max(0.05 * std::abs(high), 1e-12);
    return {low - margin, high + margin};
  }
  double fraction(double x) const { return (x - low) / (high - low); }
};

/// The multiples of 1, 2 or 5 times a power of ten that divide a range into about `parts`.
std::vector<double> round_numbers(range r, int parts) {
  double const rough = (r.high - r.low) / parts;
  double const power = std::pow(10, std::floor(std::log10(rough)));
  double const ratio = rough / power;
  double const step = power * (ratio > 5 ? 10 : ratio > 2 ? 5 : ratio > 1 ? 2 : 1);
  std::vector<double> ticks;
  for (double k = std::ceil(r.low / step); k * step <= r.high; ++k) ticks.push_back(k * step + 0.0);  // no -0
  return ticks;
}

/// Powers of ten, with 2 and 5 times these if there are few; round numbers if there is hardly one. The range is that of
/// the logarithm.
std::vector<double> logarithmic_numbers(range r) {
  double const decades = r.high - r.low;
  if (decades < 0.7) return round_numbers({std::pow(10, r.low), std::pow(10, r.high)}, 4);

  std::vector<double> ticks;
  int const every = int(std::ceil(decades / 8));
  for (int k = int(std::floor(r.low / every)) * every; k <= r.high; k += every) {
    ticks.push_back(std::pow(10, k));
    if (decades < 3) ticks.push_back(2 * std::pow(10, k)), ticks.push_back(5 * std::pow(10, k));
  }
  return ticks;
}

std::vector<double> ticks(axis scale, range r) {
  auto marked = scale == axis::linear ? round_numbers(r, 5)
                : scale == axis::logarithmic
                    ? logarithmic_numbers(r)
                    : std::vector{0., 50., 80., 90., 95., 98., 99., 99.5, 99.8, 99.9, 99.95, 99.98, 99.99};
  std::erase_if(marked, [&](double y) { return along(scale, y) < r.low || along(scale, y) > r.high; });
  return marked;
}

std::string superscript(int x) {
  constexpr char const* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string result = x < 0 ? "⁻" : "";
  for (char const c : std::to_string(std::abs(x))) result += digits[c - '0'];
  return result;
}

/// 0.002, 50 or, where zeros would have to be counted, 2×10⁻⁵
std::string tick_label(double y) {
  double const size = std::abs(y);
  if (size == 0 || (size >= 0.999e-3 && size < 0.999e5)) return format("%g", std::round(y * 1e6) / 1e6);
  int const power = int(std::floor(std::log10(size * 1.000001)));
  auto const mantissa = format("%g", y / std::pow(10, power));
  return (mantissa == "1" ? "" : mantissa + "×") + "10" + superscript(power);
}

std::vector<std::string> names_of(std::vector<panel> const& panels) {
  std::vector<std::string> names;
  for (auto const& p : panels)
    for (auto const& c : p.curves)
      if (std::ranges::count(names, c.name) == 0) names.push_back(c.name);
  return names;
}

/// SVG attributes of line `number` of the legend.
std::string stroke(std::size_t number) {
  auto const dash = dashes[number / std::size(colours) % std::size(dashes)];
  return format("stroke=\"%s\" stroke-width=\"2\" fill=\"none\"", colours[number % std::size(colours)]) +
         (*dash ? format(" stroke-dasharray=\"%s\"", dash) : "");
}

std::string text(double x, double y, char const* attributes, std::string const& content) {
  return format("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes) + escaped(content) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, char const* attributes) {
  return format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, attributes);
}

std::string draw_panel(panel const& p, double offset, std::vector<std::string> const& names) {
  range xs{0, 0}, ys;
  for (auto const& c : p.curves)
    for (auto const [x, y] : c.points) xs.include(x), ys.include(along(p.scale, y));
  xs = xs.with_margin(0);
  ys = ys.with_margin(0.04);

  double const x0 = offset + left, x1 = offset + panel_width - right;
  double const y0 = panel_height - bottom, y1 = top;
  auto const at_x = [&](double x) { return x0 + (x1 - x0) * xs.fraction(x); };
  auto const at_y = [&](double y) { return y0 + (y1 - y0) * ys.fraction(along(p.scale, y)); };

  std::string svg = text((x0 + x1) / 2, top - 14, "text-anchor=\"middle\" font-weight=\"bold\"", p.title);
  for (double y : ticks(p.scale, ys)) {
    svg += line(x0, at_y(y), x1, at_y(y), "stroke=\"#e2e2e2\"");
    svg += text(x0 - 7, at_y(y) + 4.5, "text-anchor=\"end\"", tick_label(y));
  }
  for (double x : round_numbers(xs, 6)) {
    svg += line(at_x(x), y0, at_x(x), y0 + 5, "stroke=\"#444\"");
    svg += text(at_x(x), y0 + 20, "text-anchor=\"middle\"", tick_label(x));
  }
  svg += line(x0, y0, x1, y0, "stroke=\"#444\"") + line(x0, y0, x0, y1, "stroke=\"#444\"");
  svg += text((x0 + x1) / 2, panel_height - 8, "text-anchor=\"middle\"", p.x_label);

  for (auto const& c : p.curves) {
    std::string path;
    bool pen_down = false;
    for (auto const [x, y] : c.points) {
      bool const shown = std::isfinite(along(p.scale, y));
      if (shown) path += format("%c%.1f %.1f", pen_down ? 'L' : 'M', at_x(x), at_y(y));
      pen_down = shown;
    }
    auto const number = std::size_t(std::ranges::find(names, c.name) - names.begin());
    if (!path.empty())
      svg += "<path d=\"" + path + "\" " + stroke(number) + " stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n";
    for (auto const [x, y] : c.marks)
      svg += format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" ", at_x(x), at_y(y)) + stroke(number) + "/>\n";
  }
  return svg;
}

}  // namespace

std::string draw(std::string const& title, std::vector<panel> const& panels) {
  auto const names = names_of(panels);
  double const width = panel_width * double(panels.size());
  std::size_t longest = 0;
  for (auto const& name : names) longest = std::max(longest, name.size());
  double const entry = legend_dash + 44 + letter * double(longest);
  auto const columns = std::max<std::size_t>(1, std::size_t((width - left) / entry));
  double const height = panel_height + legend_line * (1 + std::ceil(double(names.size()) / double(columns)));

  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" "
      "font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"13\" fill=\"#222\">\n",
      width, height, width, height);
  svg += "<title>" + escaped(title) + "</title>\n";
  svg += format("<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", width, height);
  svg += text(width / 2, 30, "text-anchor=\"middle\" font-size=\"17\"", title);
  for (std::size_t k = 0; k < panels.size(); ++k) svg += draw_panel(panels[k], panel_width * double(k), names);

  for (std::size_t k = 0; k < names.size(); ++k) {
    double const x = left + entry * double(k % columns);
    double const y = panel_height + legend_line * (1 + double(k / columns));
    svg += line(x, y - 4.5, x + legend_dash, y - 4.5, stroke(k).c_str());
    svg += text(x + legend_dash + 8, y, "", names[k]);
  }
  return svg + "</svg>\n";
}

}  // namespace example
