// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/chart.hpp"

#include "../../examples/parts/history.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace example;

namespace {

/// Whether every element is closed in order and no number is missing.
bool well_formed(std::string const& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = xml.find('<', at)) != xml.npos;) {
    auto const end = xml.find('>', at);
    if (end == xml.npos) return false;
    auto const tag = xml.substr(at + 1, end - at - 1);
    auto const name = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() && xml.find("nan") == xml.npos && xml.find("inf") == xml.npos;
}

std::size_t count(std::string const& text, std::string const& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

}  // namespace

TEST_CASE("chart: all scales and names give well-formed SVG with a line per curve and a legend") {
  for (auto const scale : {axis::linear, axis::logarithmic, axis::nines}) {
    curve const a{"a < b & \"c\"", {{1, 30}, {2, 90}, {3, 99.5}}}, b{"b", {{1, 20}, {3, 100}}, {{3, 100}}};
    auto const svg = draw("title", {{"left", "epoch", scale, {a, b}}, {"right", "epoch", scale, {b, a}}});
    CHECK(well_formed(svg));
    CHECK(count(svg, "<path") == 4);
    CHECK(count(svg, "<circle") == 2);
    CHECK(count(svg, "a &lt; b &amp; &quot;c&quot;") == 1);
  }
}

TEST_CASE("chart: points that cannot be shown interrupt a line") {
  curve const c{"c", {{1, 1}, {2, 2}, {3, 0}, {4, 4}, {5, NAN}, {6, INFINITY}, {7, 1}}};
  auto const svg = draw("gaps", {{"log", "x", axis::logarithmic, {c}}});
  CHECK(well_formed(svg));
  auto const path = svg.substr(svg.find("<path"));
  CHECK(count(path.substr(0, path.find('>')), "M") == 3);
}

TEST_CASE("chart: marks and bars that cannot be shown are omitted") {
  panel p{"loss", "step", axis::logarithmic, {{"only", {{0, 1}, {1, 2}}}}};
  p.curves[0].marks = {{0, 1}, {1, -1}, {1, NAN}};
  p.curves[0].bars = {{0, 0.5, 2}, {1, 0, 3}};
  auto const svg = draw("t", {p});
  CHECK(well_formed(svg));
  CHECK(count(svg, "<circle") == 1);
  CHECK(count(svg, "stroke-opacity") == 1);
}

TEST_CASE("chart: one point, equal values or none at all still give a picture") {
  for (auto const scale : {axis::linear, axis::logarithmic, axis::nines})
    for (auto const& points : std::vector<std::vector<point>>{{}, {{1, 50}}, {{1, 50}, {2, 50}}, {{1, NAN}}})
      CHECK(well_formed(draw("few", {{"panel", "x", scale, {{"c", points}}}})));
}

TEST_CASE("chart: bars, names at the ends of curves, and ticks at powers of two") {
  curve const a{"a", {{1, 30}, {8, 50}}, {}, {{8, 40, 60}}}, b{"b", {{1, 30}, {8, 50}}};
  auto const svg = draw("title", {{"panel", "GPUs", axis::linear, {a, b}, x_axis::doubling, true}});
  CHECK(well_formed(svg));
  CHECK(count(svg, "<path") == 3);
  for (auto const* tick : {">1<", ">2<", ">4<", ">8<"}) CHECK(count(svg, tick) == 1);
  for (auto const* name : {">a<", ">b<"}) CHECK(count(svg, name) == 1);
  auto const height = [&](char const* name) {
    auto const at = svg.rfind("y=\"", svg.find(name));
    return std::stod(svg.substr(at + 3));
  };
  CHECK(std::abs(height(">a<") - height(">b<")) > 13);  // pixels: the lines end together, their names do not
}

TEST_CASE("chart: small panels have a legend each, except one curve with the panel's name") {
  curve const a{"a", {{0, 1}, {9, 2}}}, b{"b", {{0, 2}, {9, 1}}};
  auto const svg = draw_small("title", {{"two", "", axis::linear, {a, b}}, {"a", "", axis::linear, {a}}}, 1);
  CHECK(well_formed(svg));
  CHECK(count(svg, "<path") == 3);
  CHECK(count(svg, ">a<") == 2);  // once in a legend, once as a title
  CHECK(count(svg, ">b<") == 1);
}

TEST_CASE("csv: a line per epoch under one header") {
  epoch_record const first{1, 10, 0.5, 80, 0.75, 70, 0.1, 1.5, 2, 3, 0.25};
  auto second = first;
  second.epoch = 2;
  CHECK(to_csv({{"sgd", {first, second}}}) ==
        "optimizer,epoch,steps,train_loss,train_accuracy,test_loss,test_accuracy,learning_rate,"
        "gradient_norm,"
        "skipped,seconds,optimizer_seconds\n"
        "sgd,1,10,0.5,80,0.75,70,0.1,1.5,2,3,0.25\n"
        "sgd,2,10,0.5,80,0.75,70,0.1,1.5,2,3,0.25\n");
}
