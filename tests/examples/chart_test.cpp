// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/chart.hpp"

#include "../../examples/parts/dots.hpp"
#include "../../examples/parts/history.hpp"
#include "../../examples/parts/svg.hpp"
#include "../../examples/parts/timeline.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

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

/// The value of an attribute in a tag, or `otherwise`.
std::string attribute(std::string const& tag, std::string const& name, std::string const& otherwise) {
  auto const at = tag.find(' ' + name + "=\"");
  if (at == tag.npos) return otherwise;
  auto const begin = at + name.size() + 3;
  return tag.substr(begin, tag.find('"', begin) - begin);
}

/// The texts that are not inside the picture or are written small.
std::string cut_texts(std::string const& picture) {
  double const wide = std::stod(attribute(picture, "width", "0")), high = std::stod(attribute(picture, "height", "0"));
  std::string cut;
  for (std::size_t at = 0; (at = picture.find("<text ", at)) != picture.npos; ++at) {
    auto const end = picture.find('>', at);
    auto const tag = picture.substr(at, end - at);
    std::string text;
    bool inside_tag = false;
    for (char const c : picture.substr(end + 1, picture.find("</text>", end) - end - 1)) {
      if (!inside_tag && c != '<') text += c;
      inside_tag = c == '<' || (inside_tag && c != '>');
    }
    double const size = std::stod(attribute(tag, "font-size", "13")), x = std::stod(attribute(tag, "x", "0"));
    double const long_ = svg::width(text, size, attribute(tag, "font-weight", "") == "bold");
    auto const anchor = attribute(tag, "text-anchor", "start");
    double const left = x - (anchor == "end" ? long_ : anchor == "middle" ? long_ / 2 : 0);
    double const y = std::stod(attribute(tag, "y", "0"));
    if (left < 0 || left + long_ > wide || y < 0.75 * size || y + 0.25 * size > high || size < 11) cut += text + '\n';
  }
  return cut;
}

std::string const long_title =
    "What a batch of 512 rows needs in a network of 784-1024-1024-10, in parts of 8, 16, 32 and 64 rows, with the "
    "memory of the optimizer beside the weights and the gradients";

}  // namespace

TEST_CASE("svg: widths are those of DejaVu Sans, and lines are broken where they become too long") {
  CHECK(svg::width("M", 1000) == 863);
  CHECK(svg::width("10×", 10) == doctest::Approx(6.36 + 6.36 + 8.38));
  CHECK(svg::wrapped("one two three", 10, svg::width("one two", 10)) == std::vector<std::string>{"one two", "three"});
  CHECK(svg::wrapped("one two three", 10, 1) == std::vector<std::string>{"one", "two", "three"});
}

TEST_CASE("chart, dot plot, timeline: no text is cut or small, however long titles and names are") {
  for (std::size_t columns : {1, 2, 3})
    for (std::string const& name : {std::string{"short"}, std::string{"a name of a curve that is longer than usual"}}) {
      if (columns == 3 && name != "short") continue;  // wider than such a panel
      CAPTURE(columns);
      CAPTURE(name);
      std::vector<curve> curves;
      for (int k = 0; k < 8; ++k)
        curves.push_back({name + ' ' + std::to_string(k), {{1, 1e-7 * k + 1e-9}, {4000, 7.}}});
      panel const p{long_title, "training images", axis::logarithmic, curves, x_axis::doubling};
      panel map{long_title, "x", axis::linear, {{name, {{0, 0}, {3, 2}}}}, x_axis::from_data, true, "y"};
      auto const svg = draw(long_title, {p, p, map}, columns);
      CHECK(well_formed(svg));
      CHECK(cut_texts(svg) == "");
    }
  std::vector<dot_row> const rows{{"a rule with a long name, lr 0.0001", {90, 91, 99.99}}, {"b", {20, 30}}};
  CHECK(cut_texts(draw_dots(long_title, {{long_title, axis::nines, rows}, {"loss", axis::logarithmic, rows, 4}})) ==
        "");
  std::vector<work> const pieces{{"rank 0: compute", "forward", "1 to 5", 0, 3}, {"wire", "all-reduce", "all", 2, 9}};
  CHECK(cut_texts(draw(long_title, "milliseconds", {{long_title, pieces}, {"b", pieces}})) == "");
  CHECK(cut_texts("<svg width=\"100\" height=\"50\"><text x=\"80\" y=\"30\">cut</text></svg>") == "cut\n");
}

TEST_CASE("chart: a picture has a light and a dark form, and no colour beside them") {
  auto const svg = draw("t", {{"p", "x", axis::linear, {{"a", {{1, 2}, {2, 3}}}}}});
  CHECK(count(svg, "@media(prefers-color-scheme:dark)") == 1);
  CHECK(count(svg.substr(svg.find("</style>")), "#") == 0);
}

TEST_CASE("chart: curves that lie on each other share a label, those that meet have another dash") {
  curve const a{"a", {{0, 1}, {1, 3}, {2, 5}, {3, 8}}}, b{"b", {{0, 1}, {1, 3}, {2, 5}, {3, 2}}};
  curve c = a;
  c.name = "c";
  auto const svg = draw("t", {{"p", "x", axis::linear, {a, b, c}}});
  CHECK(count(svg, "<tspan class=\"n0\">a</tspan> = <tspan class=\"n2\">c</tspan></text>") == 1);
  CHECK(count(svg, ">b</tspan></text>") == 1);
  CHECK(count(svg, "stroke-dasharray") == 2);
  curve const apart{"d", {{0, 2}, {1, 4}, {2, 6}, {3, 9}}};
  CHECK(count(draw("t", {{"p", "x", axis::linear, {a, apart}}}), "stroke-dasharray") == 0);
}

TEST_CASE("chart: a dot for each value, and where the mean is") {
  auto const svg = draw_dots("t", {{"accuracy", axis::linear, {{"warm", {90, 92, 94}}, {"cold", {80}}}}});
  CHECK(well_formed(svg));
  CHECK(count(svg, "<circle") == 4);
  CHECK(count(svg, ">92.0 ± 2.0<") == 1);
  CHECK(count(svg, ">80.0 ± 0.0<") == 1);
}

TEST_CASE("chart: all scales and names give well-formed SVG with a line and a name for each curve") {
  for (auto const scale : {axis::linear, axis::logarithmic, axis::nines}) {
    curve const a{"a < b & \"c\"", {{1, 30}, {2, 90}, {3, 99.5}}}, b{"b", {{1, 20}, {3, 100}}, {{3, 100}}};
    auto const svg = draw("title", {{"left", "epoch", scale, {a, b}}, {"right", "epoch", scale, {b, a}}});
    CHECK(well_formed(svg));
    CHECK(count(svg, "<path") == 4);
    CHECK(count(svg, "<circle") == 2);
    CHECK(count(svg, "a &lt; b &amp; &quot;c&quot;") == 2);
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
  curve const a{"a", {{1, 30}, {8, 50}}, {}, {{8, 40, 60}}}, b{"b", {{1, 20}, {8, 50}}};
  auto const svg = draw("title", {{"panel", "GPUs", axis::linear, {a, b}, x_axis::doubling}});
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

TEST_CASE("chart: one curve that the title names has no label") {
  curve const a{"a", {{0, 1}, {9, 2}}}, b{"b", {{0, 2}, {9, 1}}};
  auto const svg = draw("title", {{"two", "", axis::linear, {a, b}}, {"a", "", axis::linear, {a}}}, 3);
  CHECK(well_formed(svg));
  CHECK(count(svg, "<path") == 3);
  CHECK(count(svg, ">a<") == 2);  // once as a label, once as a title
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
