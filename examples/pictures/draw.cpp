// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "draw.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace example::pictures {
namespace {

// Pixels
constexpr double panel_width = 220, panel_height = 180, top = 52, left = 10, gap = 18, axis_room = 40, bottom = 34;
constexpr double width = left + 3 * panel_width + 2 * gap + axis_room + 12, height = top + panel_height + bottom;

constexpr char const* own_colour = "#d55e00";
constexpr char const* grey = "#b0b0b0";

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
  return format("<clipPath id=\"c%d\"><rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"/></clipPath>\n", number,
                f.x, top, panel_width, panel_height) +
         format("<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"#666\" "
                "data-range=\"%g %g %g %g\"/>\n",
                f.x, top, panel_width, panel_height, f.low.x, f.high.x, f.low.y, f.high.y);
}

std::string title(frame const& f, std::string const& name, double lr) {
  return text(f.x + panel_width / 2, top - 7, " text-anchor=\"middle\"", name + (lr > 0 ? format(", lr %g", lr) : ""));
}

std::string under(frame const& f, double y, std::string const& words) {
  if (words.empty()) return "";
  return text(f.x + panel_width / 2, top + panel_height + y, " text-anchor=\"middle\" fill=\"#555\"", words);
}

/// The coordinates of a corner, which give both axes.
std::string corner(double x, double y, char const* anchor, point const& p) {
  return text(x, y, format(" text-anchor=\"%s\" font-size=\"9\" fill=\"#666\"", anchor).c_str(),
              format("(%g, %g)", p.x, p.y));
}

std::string draw_surface(frame const& f, int number, surface const& s, path const& p, std::string const& note) {
  std::string svg = title(f, s.name, p.lr) + format("<g clip-path=\"url(#c%d)\" fill=\"none\">\n", number);
  svg += "<path stroke=\"#a9bccb\" d=\"";
  for (double level : s.levels)
    for (line const& one : contour(s.value, s.low, s.high, level, 110, 90)) svg += moves(f.at(one), 0.3);
  svg += "\"/>\n";

  line const way = f.at(p.points);
  svg += format("<path class=\"path\" stroke=\"%s\" stroke-width=\"1.4\" stroke-linejoin=\"round\" d=\"", own_colour) +
         moves(way, 0.25) + "\"/>\n";
  svg += format("<path stroke=\"%s\" stroke-width=\"4\" stroke-linecap=\"round\" d=\"", own_colour);
  std::size_t const mark = p.told.empty() ? std::size_t(s.mark) : 1;
  for (std::size_t i = mark; i < way.size(); i += mark) svg += format("M%.1f %.1fh0", way[i].x, way[i].y);
  point const start = f.at(s.start), end = f.at(s.minimum);
  svg +=
      format("\"/>\n<path stroke=\"#000\" stroke-width=\"1.4\" d=\"M%.1f %.1fh9m-4.5-4.5v9\"/>\n", end.x - 4.5, end.y);
  svg += format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#fff\" stroke=\"#000\" stroke-width=\"1.4\"/>\n",
                start.x, start.y) +
         "</g>\n";
  svg +=
      corner(f.x + 3, top + panel_height - 4, "start", s.low) + corner(f.x + panel_width - 3, top + 11, "end", s.high);
  svg += under(f, 16, p.told.empty() ? format("%d steps, a dot every %d", s.steps, s.mark) : p.told);
  svg += under(f, 29, note);
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

  double const x = f.x + 10, y = top + panel_height - 14;
  svg += format("<path stroke=\"%s\" stroke-width=\"2\" d=\"M%g %gh16\"/>\n", own_colour, x, y - 20);
  svg += format("<path stroke=\"%s\" stroke-width=\"4\" d=\"M%g %gh16\"/>\n", grey, x, y - 4);
  svg += text(x + 21, y - 16, "", name) + text(x + 21, y, "", format("plain sgd, lr %g", sgd.lr));
  svg += under(f, 29, note.empty() ? "training loss against epochs" : "loss against epochs; " + note);
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
  frame const f{left + trains_at + axis_room, {0, -3.5}, {double(own.losses.size()) - 1, 0.5}};
  return svg + draw_training(f, name, own, sgd, notes.network) + "</svg>\n";
}

}  // namespace example::pictures
