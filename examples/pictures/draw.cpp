// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "draw.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

namespace example::pictures {
namespace {

// Pixels
constexpr double panel_width = 220, panel_height = 180, top = 52, left = 24, gap = 26, axis_room = 40, bottom = 46;
constexpr double width = left + 3 * panel_width + 2 * gap + axis_room + 12, height = top + panel_height + bottom;

constexpr char const* own_colour = "#d55e00";
constexpr char const* grey = "#b0b0b0";
constexpr char const* several[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7"};  // Okabe and Ito's

template <class... T> std::string format(char const* form, T... values) {
  char text[512];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

/// Maps points of the plane to a panel.
struct frame {
  double x;  // of the panel's left edge
  point low, high;

  point at(point p) const {
    return {x + panel_width * (p.x - low.x) / (high.x - low.x), top + panel_height * (high.y - p.y) / (high.y - low.y)};
  }
  line at(line const& points) const {
    line result;
    for (point const p : points) {
      point const q = at(p);
      if (!std::isfinite(q.x) || !std::isfinite(q.y)) break;
      result.push_back({std::clamp(q.x, -9999., 9999.), std::clamp(q.y, -9999., 9999.)});
    }
    return result;
  }
};

std::string moves(line const& points, double tolerance) {
  std::string d;
  for (point const p : simplified(points, tolerance)) d += format(d.empty() ? "M%.1f %.1f" : " %.1f %.1f", p.x, p.y);
  return d;
}

std::string text(double x, double y, char const* attributes, std::string const& content) {
  return format("<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, attributes) + content + "</text>\n";
}

std::string box(frame const& f, int number) {
  return format("<clipPath id=\"c%d\"><rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"/></clipPath>\n", number, f.x,
                top, panel_width, panel_height) +
         format(
             "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"#666\" "
             "data-range=\"%g %g %g %g\"/>\n",
             f.x, top, panel_width, panel_height, f.low.x, f.high.x, f.low.y, f.high.y);
}

std::string title(frame const& f, std::string const& name, double lr) {
  return text(f.x + panel_width / 2, top - 7, " text-anchor=\"middle\"", name + (lr > 0 ? format(", lr %g", lr) : ""));
}

std::string under(frame const& f, double y, std::string const& words) {
  if (words.empty()) return "";
  double const most = 36, size = 11 * std::fmin(1, most / double(words.size()));
  return text(f.x + panel_width / 2, top + panel_height + y,
              format(" text-anchor=\"middle\" fill=\"#555\" font-size=\"%.1f\"", size).c_str(), words);
}

/// The two weights, with a tick at each integer.
std::string axes(frame const& f) {
  std::string svg, ticks;
  double const base = top + panel_height;
  for (double x = std::ceil(f.low.x); x <= f.high.x; ++x) {
    double const at = f.at({x, f.low.y}).x;
    ticks += format("M%.1f %gv3", at, base);
    svg += text(at, base + 12, " text-anchor=\"middle\" font-size=\"9\"", format("%g", x + 0.0));
  }
  for (double y = std::ceil(f.low.y); y <= f.high.y; ++y) {
    double const at = f.at({f.low.x, y}).y;
    ticks += format("M%g %.1fh-3", f.x, at);
    svg += text(f.x - 5, at + 3, " text-anchor=\"end\" font-size=\"9\"", format("%g", y + 0.0));
  }
  svg += text(f.x + panel_width, base + 12, " text-anchor=\"end\" font-size=\"9\" font-style=\"italic\"", "x") +
         text(f.x - 5, top - 3, " text-anchor=\"end\" font-size=\"9\" font-style=\"italic\"", "y");
  return svg + "<path stroke=\"#666\" d=\"" + ticks + "\"/>\n";
}

std::string contours(frame const& f, surface const& s) {
  std::string svg = "<path stroke=\"#a9bccb\" d=\"";
  for (double level : s.levels)
    for (line const& one : contour(s.value, s.low, s.high, level, 110, 90)) svg += moves(f.at(one), 0.3);
  return svg + "\"/>\n";
}

/// A circle at the start and a cross at the minimum.
std::string ends(frame const& f, surface const& s) {
  point const start = f.at(s.start), end = f.at(s.minimum);
  return format("<path stroke=\"#000\" stroke-width=\"1.4\" d=\"M%.1f %.1fh9m-4.5-4.5v9\"/>\n", end.x - 4.5, end.y) +
         format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#fff\" stroke=\"#000\" stroke-width=\"1.4\"/>\n",
                start.x, start.y);
}

std::string clipped(int number) { return format("<g clip-path=\"url(#c%d)\" fill=\"none\">\n", number); }

std::string draw_surface(frame const& f, int number, surface const& s, path const& p, std::string const& note) {
  std::string svg = title(f, s.name, p.lr) + clipped(number) + contours(f, s);
  line const way = f.at(p.points);
  svg += format("<path class=\"path\" stroke=\"%s\" stroke-width=\"1.4\" stroke-linejoin=\"round\" d=\"", own_colour) +
         moves(way, 0.25) + "\"/>\n";
  svg += format("<path stroke=\"%s\" stroke-width=\"4\" stroke-linecap=\"round\" d=\"", own_colour);
  std::size_t const mark = p.told.empty() ? std::size_t(s.mark) : 1;
  for (std::size_t i = mark; i < way.size(); i += mark) svg += format("M%.1f %.1fh0", way[i].x, way[i].y);
  svg += "\"/>\n" + ends(f, s) + "</g>\n" + axes(f);
  svg += under(f, 27, p.told.empty() ? format("%d steps, a dot every %d", s.steps, s.mark) : p.told);
  svg += under(f, 40, note);
  return svg + box(f, number);
}

/// The horizontal axis shows the epochs, the vertical axis log10 of the loss.
std::string draw_training(frame const& f, std::string const& name, training const& own, training const& sgd,
                          std::string const& note) {
  std::string svg = title(f, "Digits", own.lr);
  for (int power = int(std::ceil(f.low.y)); power <= f.high.y; ++power) {
    point const p = f.at({f.low.x, double(power)});
    svg += format("<path stroke=\"#ddd\" d=\"M%.1f %.1fh%g\"/>\n", p.x, p.y, panel_width);
    svg += text(p.x - 5, p.y + 4, " text-anchor=\"end\"", format("%g", std::pow(10, power)));
  }
  for (int epoch = 0; epoch <= f.high.x; epoch += 5) {
    point const p = f.at({double(epoch), f.low.y});
    svg += text(p.x, p.y + 16, " text-anchor=\"middle\"", format("%d", epoch));
  }
  auto const curve = [&](training const& t) {
    line points;
    for (std::size_t i = 0; i < t.losses.size(); ++i) points.push_back({double(i), std::log10(t.losses[i])});
    return moves(f.at(points), 0);
  };
  svg += "<g clip-path=\"url(#c2)\" fill=\"none\" stroke-width=\"1.8\">\n";
  svg += format("<path stroke=\"%s\" stroke-width=\"4\" d=\"", grey) + curve(sgd) +
         format("\"/>\n<path class=\"training\" stroke=\"%s\" d=\"", own_colour) + curve(own) + "\"/>\n</g>\n";

  // below, unless the curve is there in the first ten epochs
  auto const first = std::min<std::size_t>(10, own.losses.size());
  bool const free_below = *std::min_element(own.losses.begin(), own.losses.begin() + std::ptrdiff_t(first)) > 4e-3;
  double const x = f.x + (free_below ? 10 : 72), y = free_below ? top + panel_height - 14 : top + 34;
  svg += format("<path stroke=\"%s\" stroke-width=\"2\" d=\"M%g %gh16\"/>\n", own_colour, x, y - 20);
  svg += format("<path stroke=\"%s\" stroke-width=\"4\" d=\"M%g %gh16\"/>\n", grey, x, y - 4);
  svg += text(x + 21, y - 16, "", name) + text(x + 21, y, "", format("plain sgd, lr %g", sgd.lr));
  svg += under(f, 29, "epoch");
  svg += text(f.x - axis_room + 6, top - 7, "", "loss") + under(f, 42, note);
  return svg + box(f, 2);
}

}  // namespace

std::string draw(std::string const& name, std::vector<surface> const& surfaces, std::vector<path> const& paths,
                 training const& own, training const& sgd, notes const& notes) {
  double const trains_at = double(surfaces.size()) * (panel_width + gap);
  bool const trains = !own.losses.empty();
  double const wide = width - 2 * (panel_width + gap) + trains_at - (trains ? 0 : gap + axis_room + panel_width);
  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" "
      "font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"11\" fill=\"#222\">\n",
      wide, height, wide, height);
  svg += "<title>" + name + "</title>\n";
  svg += format("<rect width=\"%g\" height=\"%g\" fill=\"#fff\"/>\n", wide, height);
  svg += text(left, 22, " font-size=\"15\" font-weight=\"bold\"", name);
  for (std::size_t k = 0; k < surfaces.size(); ++k) {
    frame const f{left + double(k) * (panel_width + gap), surfaces[k].low, surfaces[k].high};
    svg += draw_surface(f, int(k), surfaces[k], paths[k], notes.surfaces);
  }
  if (!trains) return svg + "</svg>\n";
  // from 0.0003 to 3, and beyond where the curve leaves this
  auto const [least, most] = std::ranges::minmax(own.losses);
  double const low = std::fmin(-3.5, std::log10(least) - 0.1), high = std::fmax(0.5, std::log10(most) + 0.1);
  frame const f{left + trains_at + axis_room, {0, low}, {double(own.losses.size()) - 1, high}};
  return svg + draw_training(f, name, own, sgd, notes.network) + "</svg>\n";
}

std::string draw_together(std::vector<surface> const& surfaces, std::vector<together> const& rules) {
  constexpr double scale = 1.6, line_height = 14, half = panel_width / 2;
  double const lines = std::ceil(double(rules.size()) / 2);
  double const wide = left + double(surfaces.size()) * (panel_width + gap),
               high = top + panel_height + 32 + line_height * lines;
  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" "
      "font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"10\" fill=\"#222\">\n",
      wide, high, scale * wide, scale * high);
  std::string const name = "Rules on the same surfaces, from the same start";
  svg += "<title>" + name + "</title>\n" + format("<rect width=\"%g\" height=\"%g\" fill=\"#fff\"/>\n", wide, high);
  svg += text(left, 22, " font-size=\"13\" font-weight=\"bold\"", name);
  for (std::size_t k = 0; k < surfaces.size(); ++k) {
    surface const& s = surfaces[k];
    frame const f{left + double(k) * (panel_width + gap), s.low, s.high};
    svg += title(f, format("%s, %d steps", s.name.c_str(), s.steps), 0) + clipped(int(k)) + contours(f, s);
    for (std::size_t j = 0; j < rules.size(); ++j) {
      path const& p = rules[j].paths[k];
      char const* colour = several[j % std::size(several)];
      svg += format("<path stroke=\"%s\" stroke-width=\"1.1\" stroke-linejoin=\"round\" d=\"", colour) +
             moves(f.at(p.points), 0.25) + "\"/>\n";
    }
    svg += ends(f, s) + "</g>\n" + axes(f) + box(f, int(k));
    for (std::size_t j = 0; j < rules.size(); ++j) {
      double const x = f.x + half * double(j % 2), y = top + panel_height + 28 + line_height * double(j / 2);
      svg += format("<path stroke=\"%s\" stroke-width=\"2\" d=\"M%g %gh14\"/>\n", several[j % std::size(several)], x,
                    y - 3.5);
      svg += text(x + 18, y, " font-size=\"8.5\"", rules[j].name + format(", lr %g", rules[j].paths[k].lr));
    }
  }
  return svg + "</svg>\n";
}

}  // namespace example::pictures
