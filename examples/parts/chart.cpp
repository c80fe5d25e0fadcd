// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>

namespace example {
namespace {

/// Lengths of a panel, in pixels.
struct sizes {
  double width, height, left, right, top, bottom;
  double font, drop, stroke, tick, title_gap, label_gap;  // drop: from the middle of a letter to its base
  int x_parts, y_parts;

  double letter() const { return 0.585 * font; }  // the mean width
};
constexpr sizes large{440, 380, 62, 14, 80, 48, 13, 4.5, 2, 5, 14, 8, 6, 5},
    small{216, 150, 34, 12, 22, 20, 10, 3.5, 1.5, 3, 7, 0, 4, 3};
constexpr double legend_line = 24, legend_dash = 28, letter = 7.6;
constexpr double small_line = 13, small_dash = 16;

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

std::vector<double> ticks(axis scale, range r, int parts) {
  auto marked = scale == axis::linear ? round_numbers(r, parts)
                : scale == axis::logarithmic
                    ? logarithmic_numbers(r)
                    : std::vector{0., 50., 80., 90., 95., 98., 99., 99.5, 99.8, 99.9, 99.95, 99.98, 99.99};
  std::erase_if(marked, [&](double y) { return along(scale, y) < r.low || along(scale, y) > r.high; });
  return marked;
}

std::vector<double> x_ticks(panel const& p, range r, int parts) {
  if (p.across != x_axis::doubling) return round_numbers(r, parts);
  std::vector<double> ticks;
  double const every = std::ceil((r.high - r.low) / parts);
  for (double power = std::ceil(r.low - 1e-9); power <= r.high + 1e-9; power += every)
    ticks.push_back(std::exp2(power));
  return ticks;
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

/// The horizontal axis: the logarithm of x, or x.
double across(panel const& p, double x) {
  return p.across != x_axis::doubling ? x : x > 0 ? std::log2(x) : std::nan("");
}

/// The pens by name.
using pens = std::vector<std::pair<std::string, pen>>;

/// A pen for each name: the next colour, and after the last colour the next dash. Where lines lie on each other,
/// `dashed` gives each another dash.
pens pens_of(std::vector<panel> const& panels, bool dashed = false) {
  pens all;
  for (auto const& p : panels)
    for (auto const& c : p.curves)
      if (std::ranges::count(all, c.name, &pens::value_type::first) == 0)
        all.emplace_back(c.name,
                         c.with.value_or(pen{all.size(), dashed ? all.size() : all.size() / std::size(colours)}));
  return all;
}

char const* colour_of(pen p) { return colours[p.colour % std::size(colours)]; }

/// SVG attributes of a line.
std::string stroke(pen p, double width) {
  auto const dash = dashes[p.dash % std::size(dashes)];
  return format("stroke=\"%s\" stroke-width=\"%g\" fill=\"none\"", colour_of(p), width) +
         (*dash ? format(" stroke-dasharray=\"%s\"", dash) : "");
}

std::string text(double x, double y, char const* attributes, std::string const& content) {
  return format("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes) + escaped(content) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, char const* attributes) {
  return format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, attributes);
}

/// The names of curves at the heights where they end, as near as they can be without covering each other.
struct end_label {
  std::string name;
  pen with;
  point end;
  double y;
};

void spread(std::vector<end_label>& labels, double distance, double top, double bottom) {
  std::ranges::sort(labels, {}, [](end_label const& l) { return l.end.y; });
  // Labels that touch are a block around the mean of its ends.
  struct block { double sum, count; };
  std::vector<block> blocks;
  auto const first = [&](block const& b) { return b.sum / b.count - distance * (b.count - 1) / 2; };
  for (auto const& l : labels) {
    blocks.push_back({l.end.y, 1});
    while (blocks.size() > 1) {
      auto& before = blocks[blocks.size() - 2];
      if (first(before) + distance * before.count <= first(blocks.back())) break;
      before.sum += blocks.back().sum, before.count += blocks.back().count;
      blocks.pop_back();
    }
  }
  auto label = labels.begin();
  for (auto const& b : blocks)
    for (double k = 0; k < b.count; ++k) (label++)->y = first(b) + distance * k;
  for (double low = top; auto& l : labels) l.y = std::max(l.y, low), low = l.y + distance;
  double high = bottom;
  for (auto l = labels.rbegin(); l != labels.rend(); ++l) l->y = std::min(l->y, high), high = l->y - distance;
}

double label_room(panel const& p, sizes const& s) {
  std::size_t longest = 0;
  for (auto const& c : p.curves) longest = std::max(longest, c.name.size());
  return p.labelled ? 18 + s.letter() * double(longest) : 0;
}

std::string draw_panel(panel const& p, point offset, pens const& all, sizes const& s) {
  range xs, ys;
  if (p.across == x_axis::from_zero) xs.include(0);
  for (auto const& c : p.curves) {
    for (auto const* points : {&c.points, &c.marks})
      for (auto const [x, y] : *points) xs.include(across(p, x)), ys.include(along(p.scale, y));
    for (auto const [x, low, high] : c.bars)
      xs.include(across(p, x)), ys.include(along(p.scale, low)), ys.include(along(p.scale, high));
  }
  xs = xs.with_margin(0);
  ys = ys.with_margin(0.04);

  double const x0 = offset.x + s.left, x1 = offset.x + s.width - s.right - label_room(p, s);
  double const y0 = offset.y + s.height - s.bottom, y1 = offset.y + s.top;
  auto const at_x = [&](double x) { return x0 + (x1 - x0) * xs.fraction(across(p, x)); };
  auto const at_y = [&](double y) { return y0 + (y1 - y0) * ys.fraction(along(p.scale, y)); };

  std::string svg = text((x0 + x1) / 2, y1 - s.title_gap, "text-anchor=\"middle\" font-weight=\"bold\"", p.title);
  for (double y : ticks(p.scale, ys, s.y_parts)) {
    svg += line(x0, at_y(y), x1, at_y(y), "stroke=\"#e2e2e2\"");
    svg += text(x0 - s.tick - 2, at_y(y) + s.drop, "text-anchor=\"end\"", tick_label(y));
  }
  for (double x : x_ticks(p, xs, s.x_parts)) {
    svg += line(at_x(x), y0, at_x(x), y0 + s.tick, "stroke=\"#444\"");
    svg += text(at_x(x), y0 + s.tick + 2 + s.font, "text-anchor=\"middle\"", tick_label(x));
  }
  svg += line(x0, y0, x1, y0, "stroke=\"#444\"") + line(x0, y0, x0, y1, "stroke=\"#444\"");
  if (!p.x_label.empty())
    svg += text((x0 + x1) / 2, offset.y + s.height - s.label_gap, "text-anchor=\"middle\"", p.x_label);

  std::vector<end_label> labels;
  for (auto const& c : p.curves) {
    std::string path;
    auto const with = c.with.value_or(std::ranges::find(all, c.name, &pens::value_type::first)->second);
    std::optional<point> end;
    bool pen_down = false;
    for (auto const [x, y] : c.points) {
      bool const shown = std::isfinite(along(p.scale, y));
      if (shown) path += format("%c%.1f %.1f", pen_down ? 'L' : 'M', at_x(x), at_y(y));
      if (shown) end = {at_x(x), at_y(y)};
      pen_down = shown;
    }
    if (!path.empty())
      svg += "<path d=\"" + path + "\" " + stroke(with, s.stroke) +
             " stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n";
    for (auto const [x, y] : c.marks) {
      if (!std::isfinite(across(p, x) + along(p.scale, y))) continue;
      svg += format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" ", at_x(x), at_y(y)) + stroke(with, s.stroke) + "/>\n";
    }
    for (auto const [x, low, high] : c.bars) {
      if (!std::isfinite(across(p, x) + along(p.scale, low) + along(p.scale, high))) continue;
      svg += format(
          "<path d=\"M%.1f %.1fV%.1fm-2 0h4M%.1f %.1fh4\" stroke=\"%s\" stroke-opacity=\"0.5\" fill=\"none\"/>\n",
          at_x(x), at_y(low), at_y(high), at_x(x) - 2, at_y(low), colour_of(with));
    }
    if (end && p.labelled) labels.push_back({c.name, with, *end, 0});
  }

  spread(labels, 1.15 * s.font, y1, y0);
  for (auto const& [name, with, end, y] : labels) {
    svg += line(end.x + 3, end.y, x1 + 12, y, format("stroke=\"%s\" stroke-width=\"0.7\"", colour_of(with)).c_str());
    svg += text(x1 + 15, y + s.drop, "", name);
  }
  return svg;
}

std::string head(std::string const& title, double width, double height, double font) {
  return format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
             "height=\"%.0f\" "
             "font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"%g\" fill=\"#222\">\n",
             width, height, width, height, font) +
         "<title>" + escaped(title) + "</title>\n" +
         format("<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", width, height);
}

}  // namespace

std::string draw(std::string const& title, std::vector<panel> const& panels) {
  auto const all = pens_of(panels);
  std::vector<panel> with_legend = panels;
  std::erase_if(with_legend, &panel::labelled);
  auto const names = pens_of(with_legend);
  double const width = large.width * double(panels.size());
  std::size_t longest = 0;
  for (auto const& [name, with] : names) longest = std::max(longest, name.size());
  double const entry = legend_dash + 44 + letter * double(longest);
  auto const columns = std::max<std::size_t>(1, std::size_t((width - large.left) / entry));
  double const legend =
      names.empty() && !all.empty() ? 0 : legend_line * (1 + std::ceil(double(names.size()) / double(columns)));
  double const height = large.height + legend;

  std::string svg = head(title, width, height, large.font);
  svg += text(width / 2, 30, "text-anchor=\"middle\" font-size=\"17\"", title);
  for (std::size_t k = 0; k < panels.size(); ++k)
    svg += draw_panel(panels[k], {large.width * double(k), 0}, all, large);

  for (std::size_t k = 0; k < names.size(); ++k) {
    double const x = large.left + entry * double(k % columns);
    double const y = large.height + legend_line * (1 + double(k / columns));
    svg += line(x, y - 4.5, x + legend_dash, y - 4.5, stroke(names[k].second, large.stroke).c_str());
    svg += text(x + legend_dash + 8, y, "", names[k].first);
  }
  return svg + "</svg>\n";
}

std::string draw_small(std::string const& title, std::vector<panel> const& panels, std::size_t columns) {
  double const title_room = 40;
  double y = title_room;
  std::string inside;
  for (std::size_t first = 0; first < panels.size(); first += columns) {
    double most = 0;  // lines of a legend in this row
    for (std::size_t k = first; k < std::min(first + columns, panels.size()); ++k) {
      double const left = small.width * double(k - first);
      auto const all = pens_of({panels[k]}, true);
      inside += draw_panel(panels[k], {left, y}, all, small);
      double x = left + small.left, lines = 0;
      if (all.size() == 1 && all[0].first == panels[k].title) continue;
      for (auto const& [name, with] : all) {
        double const entry = small_dash + 5 + small.letter() * double(name.size());
        if (x > left + small.left && x + entry > left + small.width) x = left + small.left, ++lines;
        double const at = y + small.height + 11 + small_line * lines;
        inside += line(x, at - 3.5, x + small_dash, at - 3.5, stroke(with, small.stroke).c_str());
        inside += text(x + small_dash + 4, at, "", name);
        x += entry + 10;
      }
      most = std::max(most, lines + 1);
    }
    y += small.height + small_line * most + 12;
  }
  double const width = small.width * double(std::min(columns, panels.size()));
  return head(title, width, y, small.font) + text(width / 2, 24, "text-anchor=\"middle\" font-size=\"17\"", title) +
         inside + "</svg>\n";
}

}  // namespace example
