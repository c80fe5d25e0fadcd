// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Points that are added and removed, as in Gaussian splatting: bumps a exp(-(x - m)^2 / 2 s^2) add up to a curve. Each
// step looks through a window and updates the points visible there. At intervals, points with large gradients are
// doubled and points that hardly show are dropped, together with the optimizer's state.
#include "parts/arguments.hpp"
#include "parts/claim.hpp"

#include <descent/descent.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

namespace ds = descent;

constexpr int samples = 512;
double place(int i) { return (i + 0.5) / samples; }
/// The curve: a chirp, which needs more points on the right.
double curve(int i) { return std::sin(20 * place(i) * place(i)); }

struct point { float m, log_s, a; };
static_assert(sizeof(point) == 3 * sizeof(float));

struct cloud {
  std::vector<point> points, gradients;
  std::vector<float> pull;  // the sum of |dL/dm| of each point since the last change

  ds::parameters<float> list() {
    ds::parameters<float> all;
    all.add("points", &points[0].m, &gradients[0].m, ds::shape{std::int64_t(points.size()), 3});
    return all;
  }
  void resize_gradients() {
    gradients.assign(points.size(), {});
    pull.assign(points.size(), 0);
  }
};

/// The mean squared error over samples [begin, end), and its gradient.
double backward(cloud& c, int begin, int end) {
  std::fill(c.gradients.begin(), c.gradients.end(), point{});
  double loss = 0;
  for (int i = begin; i < end; ++i) {
    double y = 0;
    for (point const& p : c.points) {
      double const u = (place(i) - p.m) * std::exp(-p.log_s);
      y += p.a * std::exp(-u * u / 2);
    }
    double const error = y - curve(i);
    loss += error * error / (end - begin);
    for (std::size_t j = 0; j < c.points.size(); ++j) {
      point const& p = c.points[j];
      double const inverse = std::exp(-p.log_s), u = (place(i) - p.m) * inverse;
      double const bump = std::exp(-u * u / 2), d = 2 * error / (end - begin);
      c.gradients[j].m += float(d * p.a * bump * u * inverse);
      c.gradients[j].log_s += float(d * p.a * bump * u * u);
      c.gradients[j].a += float(d * bump);
    }
  }
  return loss;
}

/// Which points are visible in the window.
std::vector<std::uint8_t> seen(cloud const& c, int begin, int end) {
  std::vector<std::uint8_t> mask;
  for (point const& p : c.points) {
    float const reach = 4 * std::exp(p.log_s);
    mask.push_back(p.m + reach > place(begin) && p.m - reach < place(end));
  }
  return mask;
}

double error_of(cloud c) { return backward(c, 0, samples); }

}  // namespace

constexpr char const* help = R"(usage: points

Fits a curve by points that are added and removed during the training.
)";

int main(int argc, char** argv) {
  return example::exit_code(argc, argv, help, [] {
    auto const train = [](bool changing) {
      cloud c;
      for (int j = 0; j < 12; ++j) c.points.push_back({(float(j) + 0.5f) / 12, std::log(0.05f), 0.1f});
      c.resize_gradients();
      // snippet: rows
      ds::optimizer opt{c.list(), ds::adam{}, ds::masked_rows<ds::row_step::own>{},
                        ds::learning_rate(ds::cosine{.peak = 0.02, .steps = 3000})};
      for (int t = 0; t < 3000; ++t) {
        int const begin = t * 97 % (samples - 128);  // the window moves
        backward(c, begin, begin + 128);
        auto const mask = seen(c, begin, begin + 128);
        opt.select_rows("points", mask.data());
        opt.step();
        // end
        for (std::size_t j = 0; j < c.points.size(); ++j) c.pull[j] += std::abs(c.gradients[j].m);
        if (!changing || t % 200 != 199 || t > 1500) continue;

        // snippet: gathered
        std::vector<std::int64_t> from;  // the old row of each new one
        std::vector<point> now;
        float const hardest = *std::max_element(c.pull.begin(), c.pull.end());
        for (std::size_t j = 0; j < c.points.size(); ++j) {
          point const p = c.points[j];
          if (std::abs(p.a) < 0.02f) continue;  // dropped
          from.push_back(std::int64_t(j));
          now.push_back(p);
          if (c.pull[j] < 0.5f * hardest || c.points.size() >= 24) continue;
          float const s = std::exp(p.log_s);
          now.back() = {p.m - s / 2, p.log_s - 0.5f, 0.7f * p.a};
          from.push_back(-1);  // its double starts anew
          now.push_back({p.m + s / 2, p.log_s - 0.5f, 0.7f * p.a});
        }
        cloud next{now, {}, {}};
        next.resize_gradients();
        opt = opt.gathered(next.list(), {{"points", from.data()}});
        c = std::move(next);  // a moved vector stays where it is in memory
        // end
      }
      auto const updates = opt.row_updates("points");
      auto const [fewest, most] = std::minmax_element(updates.begin(), updates.end());
      std::printf("%s %3zu points, mean squared error %.5f, updates of a point %d to %d\n",
                  changing ? "coming and going:" : "always the same:  ", c.points.size(), error_of(c), *fewest, *most);
      example::claim(*most < 3000, "a point is updated only where it is seen");
      return error_of(c);
    };
    double const fixed = train(false), changing = train(true);
    example::claim(changing < fixed / 3, "points that come and go fit the curve better");
  });
}
