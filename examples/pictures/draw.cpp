// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "draw.hpp"

#include "../parts/svg.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace example::pictures {
namespace {

using svg::format;

constexpr double left = 44, right = 16, gap = 48, top_gap = 26, training_height = 190;
constexpr double panel_width = (svg::page - left - right - gap) / 2, panel_height = 0.82 * panel_width;

constexpr std::size_t several[] = {0, 1, 2, 3};  // the style's colours of lines

/// Maps points of the plane to a panel.
struct frame {
  double x, y;  // of the panel's top left corner
  point low, high;
  double width = panel_width, height = panel_height;

  double right() const { return x + width; }
  double base() const { return y + height; }
  point at(point p) const {
    return {x + width * (p.x - low.x) / (high.x - low.x), y + height * (high.y - p.y) / (high.y - low.y)};
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

std::string box(frame const& f, int number) {
  auto const place = format("x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", f.x, f.y, f.width, f.height);
  return format("<clipPath id=\"c%d\"><rect ", number) + place + "/></clipPath>\n<rect class=\"axis ring\" " + place +
         format(" data-range=\"%g %g %g %g\"/>\n", f.low.x, f.high.x, f.low.y, f.high.y);
}

std::string title(frame const& f, std::string const& name, double lr) {
  return svg::text(f.x, f.y - 9, name + (lr > 0 ? format(", lr %g", lr) : ""), "font-weight=\"bold\"");
}

/// Lines of words under a panel, which has labels at its ticks.
std::string under(frame const& f, std::vector<std::string> const& words) {
  return svg::lines(f.x, f.base() + 36, 16, words, "font-size=\"12\" class=\"soft\"");
}

std::vector<std::string> notes_of(surface const& s, path const& p, std::string const& note) {
  auto words =
      svg::wrapped(p.told.empty() ? format("%d steps, a dot every %d", s.steps, s.mark) : p.told, 12, panel_width);
  if (!note.empty())
    for (auto const& one : svg::wrapped(note, 12, panel_width)) words.push_back(one);
  return words;
}

/// The two weights, with a tick at each integer.
std::string axes(frame const& f) {
  std::string body, marks;
  std::string const small = "font-size=\"12\" class=\"soft\" ";
  for (double x = std::ceil(f.low.x); x <= f.high.x; ++x) {
    double const at = f.at({x, f.low.y}).x;
    marks += format("M%.1f %.1fv4", at, f.base());
    body += svg::text(at, f.base() + 17, format("%g", x + 0.0), small + "text-anchor=\"middle\"");
  }
  for (double y = std::ceil(f.low.y); y <= f.high.y; ++y) {
    double const at = f.at({f.low.x, y}).y;
    marks += format("M%.1f %.1fh-4", f.x, at);
    body += svg::text(f.x - 8, at + 4, format("%g", y + 0.0), small + "text-anchor=\"end\"");
  }
  return body + "<path class=\"axis\" d=\"" + marks + "\"/>\n";
}

std::string contours(frame const& f, surface const& s) {
  std::string body = "<path id=\"levels\" class=\"level\" d=\"";
  for (double level : s.levels)
    for (line const& one : contour(s.value, s.low, s.high, level, 110, 90)) body += moves(f.at(one), 0.45);
  return body + "\"/>\n";
}

/// A circle at the start and a cross at the minimum.
std::string ends(frame const& f, surface const& s) {
  point const start = f.at(s.start), end = f.at(s.minimum);
  return format("<path class=\"p6\" stroke-width=\"1.8\" d=\"M%.1f %.1fh12m-6-6v12\"/>\n", end.x - 6, end.y) +
         format("<circle class=\"bg p6\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" stroke-width=\"1.8\"/>\n", start.x, start.y);
}

std::string clipped(int number) { return format("<g clip-path=\"url(#c%d)\">\n", number); }

std::string draw_surface(frame const& f, int number, surface const& s, path const& p, std::string const& levels,
                         std::string const& note) {
  std::string body = title(f, s.name, p.lr) + clipped(number) + levels;
  line const way = f.at(p.points);
  body += "<path class=\"path\" stroke-width=\"1.6\" stroke-linejoin=\"round\" d=\"" + moves(way, 0.35) + "\"/>\n";
  body += "<path class=\"p1\" stroke-width=\"5\" stroke-linecap=\"round\" d=\"";
  std::size_t const mark = p.told.empty() ? std::size_t(s.mark) : 1;
  for (std::size_t i = mark; i < way.size(); i += mark) body += format("M%.1f %.1fh0", way[i].x, way[i].y);
  return body + "\"/>\n" + ends(f, s) + "</g>\n" + axes(f) + under(f, notes_of(s, p, note)) + box(f, number);
}

/// The horizontal axis shows the epochs, the vertical axis log10 of the loss.
std::string draw_training(frame const& f, std::string const& name, training const& own, training const& sgd,
                          std::string const& note) {
  auto const lr = own.lr > 0 ? format(", lr %g", own.lr) : "";
  std::string body = svg::text(svg::margin, f.y - 9, "Training loss of the digits" + lr, "font-weight=\"bold\"");
  std::string const small = "font-size=\"12\" class=\"soft\" ";
  for (int power = int(std::ceil(f.low.y)); power <= f.high.y; ++power) {
    point const p = f.at({f.low.x, double(power)});
    body += svg::line(f.x, p.y, f.right(), p.y, "class=\"grid\"");
    body += svg::text(p.x - 8, p.y + 4, format("%g", std::pow(10, power)), small + "text-anchor=\"end\"");
  }
  for (int epoch = 0; epoch <= f.high.x; epoch += 5) {
    point const p = f.at({double(epoch), f.low.y});
    body += svg::text(p.x, p.y + 17, format("%d", epoch), small + "text-anchor=\"middle\"");
  }
  body += svg::text(f.x + f.width / 2, f.base() + 34, "epoch", "text-anchor=\"middle\"");
  auto const points_of = [&](training const& t) {
    line points;
    for (std::size_t i = 0; i < t.losses.size(); ++i) points.push_back({double(i), std::log10(t.losses[i])});
    return f.at(points);
  };
  line const mine = points_of(own), plain = points_of(sgd);
  body += "<g clip-path=\"url(#c2)\">\n<path class=\"p7\" stroke-width=\"4\" d=\"" + moves(plain, 0) +
          "\"/>\n<path class=\"training\" stroke-width=\"2\" stroke-linejoin=\"round\" d=\"" + moves(mine, 0) +
          "\"/>\n</g>\n";

  // the names at the ends, at least a line apart
  double y = std::clamp(mine.back().y, f.y + 4, f.base() - 4),
         of_sgd = std::clamp(plain.back().y, f.y + 4, f.base() - 4);
  double const apart = std::fmax(0, 17 - std::fabs(y - of_sgd)) / 2 * (y < of_sgd ? 1 : -1);
  y -= apart, of_sgd += apart;
  body += svg::text(f.right() + 10, y + 4.5, name, "class=\"n1\"");
  body += svg::text(f.right() + 10, of_sgd + 4.5, format("plain sgd, lr %g", sgd.lr), "class=\"n7\"");
  if (!note.empty()) body += svg::text(svg::page - right, f.base() + 34, note, small + "text-anchor=\"end\"");
  return body + box(f, 2);
}

}  // namespace

std::string draw(std::string const& name, std::vector<surface> const& surfaces, std::vector<path> const& paths,
                 training const& own, training const& sgd, notes const& notes) {
  double y = svg::heading(name);
  std::string body;
  if (!surfaces.empty()) {
    std::size_t lines = 0;
    for (std::size_t k = 0; k < surfaces.size(); ++k) {
      frame const f{left + double(k) * (panel_width + gap), y + top_gap, surfaces[k].low, surfaces[k].high};
      bool const again = k > 0 && surfaces[k].value == surfaces[0].value;
      body +=
          draw_surface(f, int(k), surfaces[k], paths[k],
                       again ? format("<use href=\"#levels\" x=\"%.1f\"/>\n", f.x - left) : contours(f, surfaces[k]),
                       notes.surfaces);
      lines = std::max(lines, notes_of(surfaces[k], paths[k], notes.surfaces).size());
    }
    y += top_gap + panel_height + 28 + 16 * double(lines);
  }
  if (own.losses.empty()) return svg::document(name, y, body);
  // from 0.0003 to 3, and beyond where the curve leaves this
  auto const [least, most] = std::ranges::minmax(own.losses);
  double const low = std::fmin(-3.5, std::log10(least) - 0.1), high = std::fmax(0.5, std::log10(most) + 0.1);
  double const names = std::fmax(svg::width(name, 13), svg::width(format("plain sgd, lr %g", sgd.lr), 13)) + 14;
  frame const f{left + 12, y + top_gap + 4, {0, low}, {double(own.losses.size()) - 1, high},
                svg::page - left - 12 - right - names, training_height};
  body += draw_training(f, name, own, sgd, notes.network);
  return svg::document(name, f.base() + 46, body);
}

std::string draw_together(std::vector<surface> const& surfaces, std::vector<together> const& rules) {
  constexpr double line_height = 18, half = panel_width / 2;
  std::string const name = "Rules on the same surfaces, from the same start";
  double const y = svg::heading(name) + top_gap, lines = std::ceil(double(rules.size()) / 2);
  std::string body;
  for (std::size_t k = 0; k < surfaces.size(); ++k) {
    surface const& s = surfaces[k];
    frame const f{left + double(k) * (panel_width + gap), y, s.low, s.high};
    body += title(f, format("%s, %d steps", s.name.c_str(), s.steps), 0) + clipped(int(k)) + contours(f, s);
    for (std::size_t j = 0; j < rules.size(); ++j)
      body += format("<path class=\"p%zu\" stroke-width=\"1.6\" stroke-linejoin=\"round\" d=\"",
                     several[j % std::size(several)]) +
              moves(f.at(rules[j].paths[k].points), 0.35) + "\"/>\n";
    body += ends(f, s) + "</g>\n" + axes(f) + box(f, int(k));
    for (std::size_t j = 0; j < rules.size(); ++j) {
      std::size_t const colour = several[j % std::size(several)];
      double const x = f.x + half * double(j % 2), at = f.base() + 40 + line_height * double(j / 2);
      body += svg::line(x, at - 4, x + 18, at - 4, format("class=\"p%zu\" stroke-width=\"2.4\"", colour));
      body += svg::text(x + 24, at, rules[j].name + format(", lr %g", rules[j].paths[k].lr),
                        format("font-size=\"12\" class=\"n%zu\"", colour));
    }
  }
  return svg::document(name, y + panel_height + 34 + line_height * lines, body);
}

}  // namespace example::pictures
