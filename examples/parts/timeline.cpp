// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

namespace example {
namespace {

// Pixels
constexpr double width = 960, left = 150, right = 24, lane_height = 26, lane_gap = 6, title_height = 36;
constexpr double letter = 6.8;

/// Colours of Okabe and Ito, which colour-blind readers can tell apart, with that of the text on them.
constexpr struct {
  char const *fill, *text;
} colours[] = {{"#56b4e9", "#000"}, {"#0072b2", "#fff"}, {"#e69f00", "#000"},
               {"#009e73", "#fff"}, {"#cc79a7", "#000"}, {"#d55e00", "#fff"}};

template <class... T> std::string format(char const* form, T... values) {
  char text[512];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

std::string text(double x, double y, char const* attributes, std::string const& content) {
  return format("<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, attributes, content.c_str());
}

/// The place of a name in a list, at whose end it is added if it is new.
std::size_t place(std::vector<std::string>& names, std::string const& name) {
  auto const found = std::ranges::find(names, name);
  auto const k = std::size_t(found - names.begin());
  if (found == names.end()) names.push_back(name);
  return k;
}

/// 1, 2 or 5 times a power of ten, for about eight ticks.
double tick_step(double end) {
  double const power = std::pow(10, std::floor(std::log10(end / 8))), ratio = end / 8 / power;
  return power * (ratio > 5 ? 10 : ratio > 2 ? 5 : ratio > 1 ? 2 : 1);
}

double start_of(std::vector<work> const& pieces) {
  return pieces.empty() ? 0 : std::ranges::min(pieces, {}, &work::from).from;
}

}  // namespace

double length(std::vector<work> const& pieces) {
  return pieces.empty() ? 0 : std::ranges::max(pieces, {}, &work::to).to - start_of(pieces);
}

double milliseconds_now() {
  using clock = std::chrono::steady_clock;
  static clock::time_point const start = clock::now();
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

void sleep_until(double milliseconds) {
  double const left = milliseconds - milliseconds_now();
  if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(left));
}

std::string draw(std::string const& title, std::string const& unit, std::vector<timeline> const& timelines) {
  double end = 0;
  for (auto const& t : timelines) end = std::max(end, length(t.pieces));
  if (!(end > 0)) end = 1;
  auto const at = [&](double time) { return left + (width - left - right) * time / end; };

  std::string body;
  std::vector<std::string> kinds;
  double y = 50;
  for (auto const& t : timelines) {
    body += text(left, y + 24, "font-weight=\"bold\"", t.title);
    y += title_height;
    double const start = start_of(t.pieces);
    std::vector<std::string> lanes;
    for (auto const& piece : t.pieces) place(lanes, piece.lane);
    for (std::size_t k = 0; k < lanes.size(); ++k) {
      double const top = y + double(k) * (lane_height + lane_gap);
      body += format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#f3f3f3\"/>\n", left, top,
                     width - left - right, lane_height);
      body += text(left - 8, top + 18, "text-anchor=\"end\"", lanes[k]);
    }
    for (auto const& piece : t.pieces) {
      double const top = y + double(place(lanes, piece.lane)) * (lane_height + lane_gap);
      auto const& colour = colours[place(kinds, piece.kind) % std::size(colours)];
      double const from = at(piece.from - start), wide = std::max(at(piece.to - start) - from, 2.0);
      body += format(
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"#fff\" "
          "stroke-width=\"0.5\"/>\n",
          from, top, wide, lane_height, colour.fill);
      if (letter * double(piece.text.size()) + 4 <= wide)
        body += text(from + wide / 2, top + 17.5,
                     format("text-anchor=\"middle\" font-size=\"11\" fill=\"%s\"", colour.text).c_str(), piece.text);
    }
    y += double(lanes.size()) * (lane_height + lane_gap);
  }
  body += format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#444\"/>\n", left, y + 4,
                 width - right, y + 4);
  double const step = tick_step(end);
  for (double time = 0; time <= end * (1 + 1e-9); time += step) {
    body += format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#444\"/>\n", at(time), y + 4,
                   at(time), y + 9);
    body += text(at(time), y + 24, "text-anchor=\"middle\"", format("%g", std::round(time * 1e6) / 1e6));
  }
  body += text(left - 8, y + 24, "text-anchor=\"end\"", unit);
  y += 54;
  double x = left;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    body += format("<rect x=\"%.1f\" y=\"%.1f\" width=\"16\" height=\"14\" fill=\"%s\"/>\n", x, y - 11,
                   colours[k % std::size(colours)].fill);
    body += text(x + 22, y + 1, "", kinds[k]);
    x += 50 + 8 * double(kinds[k].size());
  }
  double const height = y + 16;
  return format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
             "font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"13\" fill=\"#222\">\n",
             width, height, width, height) +
         "<title>" + title + "</title>\n" +
         format("<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", width, height) +
         text(width / 2, 32, "text-anchor=\"middle\" font-size=\"17\"", title) + body + "</svg>\n";
}

}  // namespace example
