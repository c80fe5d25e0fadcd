// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "chart.hpp"

#include "svg.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace example {
namespace {

using svg::format;

constexpr double margin = svg::margin, right = 16, tick = 5, title_line = 18;
constexpr std::size_t colours = 6;
constexpr char const* dashes[] = {"", "7 5", "2 4", "11 4 2 4", "15 6", "1 6"};

/// Lengths that depend on the columns.
struct sizes {
  double width, plot, font;
  int x_parts, y_parts;

  double line() const { return font + 4; }
  bool is_small() const { return font < 13; }
};

sizes sizes_of(std::size_t columns, std::size_t panels) {
  double const width = svg::page / double(columns);
  if (columns == 1) return {width, panels == 1 ? 300. : 220., 13, 10, 5};
  if (columns == 2) return {width, 230, 13, 6, 5};
  return {width, 110, 12, 4, 3};
}

/// What the pixels of a curve are.
struct drawn {
  curve const* of;
  pen with;
  std::vector<point> points;  // NaN where it cannot be shown
};

/// Which share of b's points is within so many pixels of a.
double covered(drawn const& a, drawn const& b, double pixels) {
  double shown = 0, same = 0;
  for (point const q : b.points) {
    if (!std::isfinite(q.x + q.y)) continue;
    ++shown;
    same += std::ranges::any_of(a.points,
                                [&](point p) { return std::abs(p.x - q.x) < 0.5 && std::abs(p.y - q.y) < pixels; });
  }
  return shown > 1 ? same / shown : 0;
}

/// Whether the two lie on each other from end to end.
bool are_equal(drawn const& a, drawn const& b) { return covered(a, b, 0.6) == 1 && covered(b, a, 0.6) == 1; }

/// Pens by name: the next colour for each, and after the last colour the next dash.
using pens = std::vector<std::pair<std::string, pen>>;

pen& pen_of(pens& all, curve const& c) {
  auto const found = std::ranges::find(all, c.name, &pens::value_type::first);
  if (found != all.end()) return found->second;
  all.emplace_back(c.name, c.with.value_or(pen{all.size() % colours, all.size() / colours}));
  return all.back().second;
}

std::string stroke(pen p, double width) {
  auto const dash = dashes[p.dash % std::size(dashes)];
  return format("class=\"p%zu\" stroke-width=\"%g\"", p.colour, width) +
         (*dash ? format(" stroke-dasharray=\"%s\"", dash) : "");
}

/// A name at the end of a curve, or the names of curves that lie on each other.
struct label {
  std::vector<std::pair<std::string, pen>> names;
  point end;
  double y = 0;
  bool continues = false;  // the label before it

  std::string before(std::size_t k) const { return k > 0 ? " = " : continues ? "= " : ""; }
  std::string whole() const {
    std::string all;
    for (std::size_t k = 0; k < names.size(); ++k) all += before(k) + names[k].first;
    return all;
  }
};

/// Labels that are wider than `most` become one for each name, below each other.
std::vector<label> narrow(std::vector<label> const& all, double font, double most) {
  std::vector<label> result;
  for (auto const& l : all) {
    bool const fits = l.names.size() == 1 || svg::width(l.whole(), font) <= most;
    if (fits) result.push_back(l);
    for (std::size_t k = 0; !fits && k < l.names.size(); ++k)
      result.push_back({{l.names[k]}, {l.end.x, l.end.y + 1e-3 * double(k)}, 0, k > 0});
  }
  return result;
}

std::string text_of(label const& l, double x, double y, std::string const& attributes) {
  std::string inside;
  for (std::size_t k = 0; k < l.names.size(); ++k) {
    auto const& [name, with] = l.names[k];
    inside += l.before(k) + format("<tspan class=\"n%zu\">", with.colour) + svg::escaped(name) + "</tspan>";
  }
  return format("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes.c_str()) + inside + "</text>\n";
}

/// Moves labels to the heights of their ends, as near as they can be without covering each other.
void spread(std::vector<label>& labels, double distance, double top, double bottom) {
  std::ranges::sort(labels, {}, [](label const& l) { return l.end.y; });
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

/// One panel: its ranges, then its place, then its parts.
class panel_drawing {
 public:
  panel_drawing(panel const& p, sizes const& s, pens& all) : p_{p}, s_{s}, title_{title_of(p, s)} {
    if (p.across == x_axis::from_zero) xs_.include(0);
    for (auto const& c : p.curves) {
      for (auto const* points : {&c.points, &c.marks})
        for (auto const [x, y] : *points) xs_.include(along(x_scale(), x)), ys_.include(along(p.scale, y));
      for (auto const [x, low, high] : c.bars)
        xs_.include(along(x_scale(), x)), ys_.include(along(p.scale, low)), ys_.include(along(p.scale, high));
      if (!c.name.empty()) longest_ = std::max(longest_, svg::width("= " + c.name, s.font) + 20);
    }
    xs_ = xs_.with_margin(0), ys_ = ys_.with_margin(p.map ? 0 : 0.04);
    std::size_t const named =
        std::size_t(std::ranges::count_if(p.curves, [](curve const& c) { return !c.name.empty(); }));
    bool const own_title = named == 1 && p.title.ends_with(p.curves.back().name);
    below_ = longest_ > 0 && !own_title && (p.map || s.is_small() || longest_ > 0.42 * s.width);
    beside_ = longest_ > 0 && !own_title && !below_;
    for (auto const& [y, name] : ticks(p.scale, ys_, s.y_parts))
      left_ = std::max(left_, margin + svg::width(name, s.font - 1) + 2 + tick);
    for (auto const& c : p.curves) curves_.push_back({&c, pen_of(all, c), {}});
  }

  /// From the panel's edge to the plot; at least what the numbers of the vertical axis need.
  double left() const { return left_; }

  void set_left(double left) {
    left_ = left;
    plot_ = p_.map ? (s_.width - left_ - right) * (ys_.high - ys_.low) / (xs_.high - xs_.low) : s_.plot;
    auto const draw_at_origin = [&] {
      place({0, 0}, 0);
      for (auto& c : curves_) c = pixels_of(*c.of, c.with);
    };
    draw_at_origin();
    if (!beside_) return;
    for (auto const& l : named())
      if (double const wide = svg::width(l.whole(), s_.font) + 20; wide <= 0.42 * s_.width)
        longest_ = std::max(longest_, wide);
    draw_at_origin();
  }

  /// Gives a dash to each curve that partly hides an earlier one.
  void dash(pens& all) const {
    for (std::size_t j = 0; j < curves_.size(); ++j)
      for (std::size_t i = 0; i < j; ++i) {
        auto& with = pen_of(all, *curves_[j].of);
        if (!curves_[j].of->with && with.dash == pen_of(all, *curves_[i].of).dash &&
            covered(curves_[i], curves_[j], 1.8) > 0.34)
          ++with.dash;
      }
  }

  double above_plot() const { return title_line * double(title_.size()) + 8; }
  double below_plot() const {
    return tick + s_.line() + (p_.x_label.empty() ? 0 : s_.line()) + (below_ ? 4 + s_.line() * legend_lines() : 0) + 10;
  }
  double plot() const { return plot_; }

  /// With the plot at y from its top left corner.
  std::string draw(point corner, double above, pens& all) {
    place(corner, above);
    for (auto& c : curves_) c = pixels_of(*c.of, pen_of(all, *c.of));
    std::string body = svg::lines(corner.x + margin, y1_ - 10 - title_line * double(title_.size() - 1), title_line,
                                  title_, "font-weight=\"bold\"");
    body += axes();
    for (auto const& c : curves_) body += ranges_of(*c.of, c.with);
    for (auto const& c : curves_) body += line_of(c);
    for (auto const& c : curves_) body += marks_of(*c.of, c.with);
    return body + (below_ ? legend() : beside_ ? labels() : "");
  }

 private:
  axis x_scale() const {
    return p_.across == x_axis::doubling  ? axis::doubling
           : p_.across == x_axis::decades ? axis::logarithmic
                                          : axis::linear;
  }
  static std::vector<std::string> title_of(panel const& p, sizes const& s) {
    std::string const title = p.title + (p.scale == axis::nines ? " (axis: logarithm of the error)" : "");
    return svg::wrapped(title, 13, s.width - margin - right, true);
  }

  void place(point corner, double above) {
    x0_ = corner.x + left_, x1_ = corner.x + s_.width - right - (beside_ ? longest_ : 0);
    y1_ = corner.y + above, y0_ = y1_ + plot_;
  }
  double at_x(double x) const { return x0_ + (x1_ - x0_) * xs_.fraction(along(x_scale(), x)); }
  double at_y(double y) const { return y0_ + (y1_ - y0_) * ys_.fraction(along(p_.scale, y)); }

  drawn pixels_of(curve const& c, pen with) const {
    drawn d{&c, c.with.value_or(with), {}};
    for (auto const [x, y] : c.points) d.points.push_back({at_x(x), at_y(y)});
    return d;
  }

  std::string axes() const {
    std::string body;
    std::string const small = format("font-size=\"%g\" class=\"soft\"", s_.font - 1);
    for (auto const& [y, name] : ticks(p_.scale, ys_, s_.y_parts)) {
      if (!p_.map) body += svg::line(x0_, at_y(y), x1_, at_y(y), "class=\"grid\"");
      else body += svg::line(x0_ - tick, at_y(y), x0_, at_y(y), "class=\"axis\"");
      body += svg::text(x0_ - tick - 2, at_y(y) + 4, name, small + " text-anchor=\"end\"");
    }
    double free = -1e9;  // ticks whose labels would touch have none
    for (auto const& [x, name] : ticks(x_scale(), xs_, s_.x_parts)) {
      double const half = svg::width(name, s_.font - 1) / 2;
      body += svg::line(at_x(x), y0_, at_x(x), y0_ + tick, "class=\"axis\"");
      if (at_x(x) - half < free) continue;
      body += svg::text(at_x(x), y0_ + tick + s_.font, name, small + " text-anchor=\"middle\"");
      free = at_x(x) + half + 6;
    }
    if (p_.map)
      body += format("<rect class=\"axis\" fill=\"none\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", x0_,
                     y1_, x1_ - x0_, y0_ - y1_);
    else body += svg::line(x0_, y0_, x1_, y0_, "class=\"axis\"");
    if (!p_.y_label.empty()) body += svg::text(x0_ + 6, y1_ + 17, p_.y_label, "class=\"halo\"");
    if (!p_.x_label.empty())
      body += svg::text((x0_ + x1_) / 2, y0_ + tick + s_.font + s_.line(), p_.x_label,
                        format("font-size=\"%g\" text-anchor=\"middle\"", s_.font));
    return body;
  }

  std::string ranges_of(curve const& c, pen with) const {
    std::vector<bar> shown;
    for (auto const [x, low, high] : c.bars)
      if (std::isfinite(along(x_scale(), x) + along(p_.scale, low) + along(p_.scale, high)))
        shown.push_back({at_x(x), at_y(low), at_y(high)});
    if (shown.empty()) return "";
    std::string path;
    if (shown.size() > 8) {
      for (auto const& b : shown) path += format("%s%.1f %.1f", path.empty() ? "M" : "L", b.x, b.low);
      std::ranges::reverse(shown);
      for (auto const& b : shown) path += format("L%.1f %.1f", b.x, b.high);
      return "<path d=\"" + path + format("Z\" class=\"f%zu\" fill-opacity=\"0.18\"/>\n", with.colour);
    }
    for (auto const& b : shown)
      path += format("M%.1f %.1fV%.1fm-3 0h6M%.1f %.1fh6", b.x, b.low, b.high, b.x - 3, b.low);
    return "<path d=\"" + path + format("\" class=\"p%zu\" stroke-opacity=\"0.6\"/>\n", with.colour);
  }

  std::string line_of(drawn const& c) const {
    std::string path;
    polyline piece;
    auto const end_piece = [&] {
      if (c.of->name.empty() && piece.size() == 1) piece.clear();  // it only widens the axes
      char move = 'M';
      for (auto const [x, y] : simplified(piece, 0.2)) path += format("%c%.1f %.1f", move, x, y), move = 'L';
      piece.clear();
    };
    for (point const p : c.points) {
      if (std::isfinite(p.x + p.y)) piece.push_back(p);
      else end_piece();
    }
    end_piece();
    if (path.empty()) return "";
    return "<path d=\"" + path + "\" " + stroke(c.with, c.with.colour == grey ? 1 : 2) +
           " stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n";
  }

  std::string marks_of(curve const& c, pen with) const {
    std::string body;
    for (auto const [x, y] : c.marks)
      if (std::isfinite(along(x_scale(), x) + along(p_.scale, y)))
        body += p_.map ? format("<circle class=\"f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"/>\n", with.colour, at_x(x),
                                at_y(y))
                       : format("<circle class=\"ring p%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\" stroke-width=\"1.6\"/>\n",
                                with.colour, at_x(x), at_y(y));
    return body;
  }

  /// The names of curves; those that lie on each other from end to end are together.
  std::vector<label> named() const {
    std::vector<label> all;
    std::map<drawn const*, std::size_t> of;
    for (auto const& c : curves_) {
      if (c.of->name.empty()) continue;
      auto const last =
          std::ranges::find_if(c.points.rbegin(), c.points.rend(), [](point p) { return std::isfinite(p.x + p.y); });
      if (last == c.points.rend()) continue;
      auto const same =
          std::ranges::find_if(curves_.begin(), curves_.begin() + (&c - curves_.data()),
                               [&](drawn const& before) { return of.contains(&before) && are_equal(before, c); });
      if (!p_.map && same != curves_.begin() + (&c - curves_.data())) {
        of[&c] = of[&*same];
        all[of[&c]].names.emplace_back(c.of->name, c.with);
      } else {
        of[&c] = all.size();
        all.push_back({{{c.of->name, c.with}}, *last});
      }
    }
    return all;
  }

  /// How much of the curves is in a box of text from (x, y) on, y being its middle.
  double covered_by(double x, double y, double wide) const {
    double inside = 0;
    for (auto const& c : curves_)
      for (std::size_t i = 1; i < c.points.size(); ++i)
        for (double share = 0; share < 1; share += 0.05) {
          point const a = c.points[i - 1], b = c.points[i];
          double const u = a.x + share * (b.x - a.x), v = a.y + share * (b.y - a.y);
          inside += (u > x && u < x + wide && std::abs(v - y) < s_.font / 2) * (std::hypot(b.x - a.x, b.y - a.y) / 20);
        }
    return inside;
  }

  /// The height beside the end of a curve where its name covers least.
  double free_height(label const& l) const {
    double best = l.end.y, least = 1e9;
    for (double const away : {0., -14., 14., -26., 26.}) {
      double const y = l.end.y + away;
      if (away != 0 && (y < y1_ + 6 || y > y0_ - 12)) continue;
      double const inside = covered_by(l.end.x + 8, y, svg::width(l.whole(), s_.font)) + 0.1 * std::abs(away);
      if (inside < least) least = inside, best = y;
    }
    return best;
  }

  std::string labels() const {
    std::string body;
    std::vector<label> at_edge, inside;
    for (auto const& l : named())
      (l.end.x + svg::width(l.whole(), s_.font) + 12 < x1_ - 20 ? inside : at_edge).push_back(l);
    for (auto& l : inside) {
      double const tip = l.end.y;
      l.end.y = free_height(l);
      if (std::abs(l.end.y - tip) > 8)
        body += svg::line(l.end.x + 2, tip, l.end.x + 8, l.end.y,
                          format("class=\"p%zu\" stroke-width=\"0.8\"", l.names[0].second.colour));
    }
    at_edge = narrow(at_edge, s_.font, longest_ - 16);
    spread(inside, s_.font + 2, y1_ + 6, y0_ - 12), spread(at_edge, s_.font + 2, y1_, y0_);
    std::string const size = format("font-size=\"%g\"", s_.font);
    for (auto const& l : inside) body += text_of(l, l.end.x + 8, l.y + 4.5, size + " class=\"halo\"");
    for (auto const& l : at_edge) {
      auto const with = format("class=\"p%zu\" stroke-width=\"0.8\"", l.names[0].second.colour);
      if (std::abs(l.y - l.end.y) > 3 || l.end.x < x1_ - 4)
        body += svg::line(l.end.x + 3, l.end.y, x1_ + 12, l.y, with);
      body += text_of(l, x1_ + 15, l.y + 4.5, size);
    }
    return body;
  }

  double legend_room() const { return s_.width - margin - right; }
  std::vector<label> entries() const { return narrow(named(), s_.font - 1, legend_room() - 26); }

  /// The place of each name below the panel.
  std::vector<point> legend_places() const {
    std::vector<point> all;
    double x = 0, line = 0;
    for (auto const& l : entries()) {
      double const entry = 26 + svg::width(l.whole(), s_.font - 1) + 14;
      if (x > 0 && x + entry - 14 > legend_room()) x = 0, ++line;
      all.push_back({x, line});
      x += entry;
    }
    return all;
  }
  double legend_lines() const {
    auto const all = legend_places();
    return all.empty() ? 0 : all.back().y + 1;
  }
  std::string legend() const {
    std::string body;
    auto const places = legend_places();
    auto const all = entries();
    double const top = y0_ + tick + s_.font + (p_.x_label.empty() ? 0 : s_.line()) + 4;
    for (std::size_t k = 0; k < all.size(); ++k) {
      double const x = x0_ - left_ + margin + places[k].x, y = top + s_.line() * (1 + places[k].y);
      body += svg::line(x, y - 4, x + 20, y - 4, stroke(all[k].names[0].second, 2));
      body += text_of(all[k], x + 26, y, format("font-size=\"%g\"", s_.font - 1));
    }
    return body;
  }

  panel const& p_;
  sizes const s_;
  std::vector<std::string> const title_;
  range xs_{}, ys_{};
  double longest_ = 0;  // room for the names beside the plot
  bool below_ = false, beside_ = false;
  double left_ = 44, plot_ = 0, x0_ = 0, x1_ = 0, y0_ = 0, y1_ = 0;
  std::vector<drawn> curves_{};
};

}  // namespace

std::string draw(std::string const& title, std::vector<panel> const& panels, std::size_t columns) {
  sizes const s = sizes_of(columns, panels.size());
  pens of_all;
  std::vector<pens> of_each(panels.size());  // each small panel is a picture of its own
  auto const pens_at = [&](std::size_t k) -> pens& { return s.is_small() ? of_each[k] : of_all; };
  std::vector<panel_drawing> all;
  for (std::size_t k = 0; k < panels.size(); ++k) all.emplace_back(panels[k], s, pens_at(k));
  double left = 0;
  for (auto const& p : all) left = std::max(left, p.left());
  for (std::size_t k = 0; k < panels.size(); ++k) all[k].set_left(left), all[k].dash(pens_at(k));

  double y = svg::heading(title) + 4;
  std::string inside;
  for (std::size_t first = 0; first < panels.size(); first += columns) {
    double above = 0, plot = 0, below = 0;  // of this row
    std::size_t const last = std::min(first + columns, panels.size());
    for (std::size_t k = first; k < last; ++k)
      above = std::max(above, all[k].above_plot()), plot = std::max(plot, all[k].plot()),
      below = std::max(below, all[k].below_plot());
    for (std::size_t k = first; k < last; ++k)
      inside += all[k].draw({s.width * double(k - first), y}, above, pens_at(k));
    y += above + plot + below;
  }
  return svg::document(title, y + 4, inside);
}

}  // namespace example
