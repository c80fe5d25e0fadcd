// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Gradient accumulation: micro-batches give the result of one batch that does not fit into memory.
#include "parts/arguments.hpp"
#include "parts/claim.hpp"
#include "parts/device.hpp"
#include "parts/least_squares.hpp"

#include <descent/descent.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace example;
namespace ds = descent;

constexpr int rows = 70, columns = 12, epochs = 10;

/// How an epoch is divided: for each update, the number of rows of each of its micro-batches.
using cut = std::vector<std::vector<int>>;

template <class... Policies> struct problem {
  device d{};
  device::array<float> x, y, w, g;
  ds::parameters<float> params;
  ds::optimizer<float, float, ds::adamw, Policies..., decltype(d.backend())> opt;

  problem(linear_data const& data, Policies... policies)
      : x(data.x), y(data.y), w(std::vector<float>(columns)), g(std::vector<float>(columns)), params(view(w, g)),
        opt(params, ds::adamw{.lr = 0.1}, policies..., d.backend()) {}

  static ds::parameters<float> view(device::array<float>& w, device::array<float>& g) {
    ds::parameters<float> p;
    p.add("w", w.data(), g.data(), columns);
    return p;
  }

  /// Adds the gradient of the sum of the losses of n rows, times a weight.
  void backward(int first, int n, float weight) {
    d.each(columns, add_gradient_of_squares<float>{x.data() + first * columns, y.data() + first, n, columns, w.data(),
                                                   g.data(), weight, opt.loss_scale_pointer()});
  }
  std::vector<float> result() const { return d.to_host(w); }
};
template <class... Policies> problem(linear_data const&, Policies...) -> problem<Policies...>;

/// One backward pass over each whole batch, with the mean loss.
std::vector<float> in_batches(linear_data const& data, cut const& updates) {
  problem p{data, ds::static_loss_scale{1024}, ds::zero_grad{}};
  for (int epoch = 0; epoch < epochs; ++epoch) {
    int first = 0;
    for (auto const& update : updates) {
      int const n = std::accumulate(update.begin(), update.end(), 0);
      p.backward(first, n, 1.f / float(n));
      p.opt.step();
      first += n;
    }
  }
  return p.result();
}

// snippet: equal
/// Equal micro-batches, each with its mean loss: step() after each, and every n-th call updates.
std::vector<float> in_equal_parts(linear_data const& data, int n, int size) {
  problem p{data, ds::accumulate{n}, ds::static_loss_scale{1024}, ds::zero_grad{}};
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (int first = 0; first + n * size <= rows; first += n * size)
      for (int k = 0; k < n; ++k) {
        p.backward(first + k * size, size, 1.f / float(size));
        p.opt.step();
      }
  return p.result();
}
// end

// snippet: unequal
/// Parts of any size, each with the sum of its losses: step(rows) says what the mean is over, and flush() updates with
/// the parts that are left at the end of an epoch.
std::vector<float> in_parts(linear_data const& data, int n, cut const& updates) {
  problem p{data, ds::accumulate{n}, ds::static_loss_scale{1024}, ds::zero_grad{}};
  for (int epoch = 0; epoch < epochs; ++epoch) {
    int first = 0;
    for (auto const& update : updates)
      for (int const size : update) {
        p.backward(first, size, 1);
        p.opt.step(size);
        first += size;
      }
    p.opt.flush();
  }
  claim(p.opt.report().step == epochs * std::int64_t(updates.size()), "only every n-th step() and flush() update");
  return p.result();
}
// end

void compare(char const* what, std::vector<float> const& got, std::vector<float> const& want) {
  double largest = 0, moved = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::fabs(double(got[i]) - double(want[i])));
    moved = std::max(moved, std::fabs(double(want[i])));
  }
  std::printf("%-52s differ by at most %.1e of %.2f\n", what, largest, moved);
  claim(moved > 0.2 && largest < 1e-5, std::string{what} + " equal the whole batch");
}

void run() {
  linear_data const data{rows, columns, 1};
  compare("4 micro-batches of 8", in_equal_parts(data, 4, 8), in_batches(data, {{32}, {32}}));

  cut const unequal{{5, 11, 16}, {20, 1, 11}};
  compare("3 micro-batches of 5, 11, 16 or 20, 1, 11", in_parts(data, 3, unequal), in_batches(data, unequal));

  cut const incomplete{{8, 8, 8, 8}, {8, 8, 8, 8}, {4, 2}};
  compare("4 micro-batches of 8, the last two of 4 and 2", in_parts(data, 4, incomplete), in_batches(data, incomplete));
}

constexpr char const* help = R"(usage: accumulation

Shows that micro-batches give the result of one batch that does not fit into memory.
)";

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run); }
