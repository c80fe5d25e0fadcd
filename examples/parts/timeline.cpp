// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include "scale.hpp"
#include "svg.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace example {
namespace {

using svg::format;

constexpr double right = 24, lane_height = 26, lane_gap = 6;

/// The order of the style's colours, so that neighbours differ much.
constexpr std::size_t colours[] = {5, 0, 4, 2, 3, 1};

/// The place of a name in a list, at whose end it is added if it is new.
std::size_t place(std::vector<std::string>& names, std::string const& name) {
  auto const found = std::ranges::find(names, name);
  auto const k = std::size_t(found - names.begin());
  if (found == names.end()) names.push_back(name);
  return k;
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
  double end = 0, left = svg::width(unit, 13);
  for (auto const& t : timelines) {
    end = std::max(end, length(t.pieces));
    for (auto const& piece : t.pieces) left = std::max(left, svg::width(piece.lane, 13));
  }
  if (!(end > 0)) end = 1;
  left += svg::margin + 10;
  auto const at = [&](double time) { return left + (svg::page - left - right) * time / end; };

  std::string body;
  std::vector<std::string> kinds;
  double y = svg::heading(title) + 4;
  for (auto const& t : timelines) {
    auto const heading = svg::wrapped(t.title, 13, svg::page - 2 * svg::margin, true);
    body += svg::lines(svg::margin, y + 18, 18, heading, "font-weight=\"bold\"");
    y += 12 + 18 * double(heading.size());
    double const start = start_of(t.pieces);
    std::vector<std::string> lanes;
    for (auto const& piece : t.pieces) place(lanes, piece.lane);
    for (std::size_t k = 0; k < lanes.size(); ++k) {
      double const top = y + double(k) * (lane_height + lane_gap);
      body += format("<rect class=\"lane\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", left, top,
                     svg::page - left - right, lane_height);
      body += svg::text(left - 10, top + 18, lanes[k], "text-anchor=\"end\"");
    }
    for (auto const& piece : t.pieces) {
      double const top = y + double(place(lanes, piece.lane)) * (lane_height + lane_gap);
      std::size_t const colour = colours[place(kinds, piece.kind) % std::size(colours)];
      double const from = at(piece.from - start), wide = std::max(at(piece.to - start) - from, 2.0);
      body += format("<rect class=\"f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", colour, from, top,
                     wide > 4 ? wide - 0.6 : wide, lane_height);
      if (svg::width(piece.text, 12) + 3 <= wide)
        body += svg::text(from + wide / 2, top + 17.5, piece.text,
                          format("text-anchor=\"middle\" font-size=\"12\" class=\"t%zu\"", colour));
    }
    y += double(lanes.size()) * (lane_height + lane_gap);
  }
  body += svg::line(left, y + 4, svg::page - right, y + 4, "class=\"axis\"");
  for (auto const& [time, name] : ticks(axis::linear, {0, end}, 8)) {
    body += svg::line(at(time), y + 4, at(time), y + 9, "class=\"axis\"");
    body += svg::text(at(time), y + 24, name, "text-anchor=\"middle\" font-size=\"12\" class=\"soft\"");
  }
  body += svg::text(left - 10, y + 24, unit, "text-anchor=\"end\"");
  y += 52;
  double x = svg::margin;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    double const entry = 22 + svg::width(kinds[k], 13);
    if (x > svg::margin && x + entry > svg::page - svg::margin) x = svg::margin, y += 22;
    body += format("<rect class=\"f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"16\" height=\"14\"/>\n",
                   colours[k % std::size(colours)], x, y - 11);
    body += svg::text(x + 22, y + 1, kinds[k]);
    x += entry + 20;
  }
  return svg::document(title, y + 18, body);
}

}  // namespace example
