// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "contour.hpp"

#include <array>
#include <map>
#include <utility>

namespace example::pictures {
namespace {

/// An edge of the grid: from corner (column, row) to the right, or upwards.
struct edge {
  int column, row;
  bool up;
  auto operator<=>(edge const&) const = default;
};
using links = std::multimap<edge, edge>;

/// Follows a line from an edge and removes it from `all`.
std::vector<edge> walk(links& all, edge at) {
  std::vector<edge> way{at};
  for (auto next = all.find(at); next != all.end(); next = all.find(at)) {
    edge const to = next->second;
    all.erase(next);
    for (auto [back, end] = all.equal_range(to); back != end; ++back)
      if (back->second == at) {
        all.erase(back);
        break;
      }
    way.push_back(at = to);
  }
  return way;
}

}  // namespace

std::vector<line> contour(std::function<double(point)> const& f, point low, point high, double value, int columns,
                          int rows) {
  auto const corner = [&](int c, int r) {
    return point{low.x + (high.x - low.x) * c / columns, low.y + (high.y - low.y) * r / rows};
  };
  auto const above = [&](int c, int r) { return f(corner(c, r)) - value; };
  auto const crossing = [&](edge e) {
    int const c = e.column + !e.up, r = e.row + e.up;
    double const from = above(e.column, e.row), to = above(c, r), share = from / (from - to);
    point const a = corner(e.column, e.row), b = corner(c, r);
    return point{a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)};
  };

  links all;
  for (int c = 0; c < columns; ++c)
    for (int r = 0; r < rows; ++r) {
      std::array const edges{edge{c, r, false}, edge{c + 1, r, true}, edge{c, r + 1, false}, edge{c, r, true}};
      std::array const corners{above(c, r) > 0, above(c + 1, r) > 0, above(c + 1, r + 1) > 0, above(c, r + 1) > 0};
      std::vector<edge> crossed;
      for (std::size_t i = 0; i < 4; ++i)
        if (corners[i] != corners[(i + 1) % 4]) crossed.push_back(edges[i]);
      // four crossings are a saddle: both ways to pair them look the same
      for (std::size_t i = 0; i + 1 < crossed.size(); i += 2) {
        all.emplace(crossed[i], crossed[i + 1]);
        all.emplace(crossed[i + 1], crossed[i]);
      }
    }

  std::vector<line> lines;
  auto const follow = [&](edge start) {
    line points;
    for (edge const e : walk(all, start)) points.push_back(crossing(e));
    lines.push_back(std::move(points));
  };
  for (auto it = all.begin(); it != all.end();) {  // lines that end at the border of the box
    if (all.count(it->first) == 1) follow(edge{it->first}), it = all.begin();
    else ++it;
  }
  while (!all.empty()) follow(edge{all.begin()->first});
  return lines;
}

}  // namespace example::pictures
