// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Two losses and two optimizers share a loss scale, in half. One loss overflows once: its optimizer skips that step,
// the other does not, and the scale backs off for both.
#include "parts/arguments.hpp"
#include "parts/claim.hpp"
#include "parts/device.hpp"
#include "parts/least_squares.hpp"

#include <descent/descent.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {

using namespace example;
namespace ds = descent;

constexpr int rows = 32, columns = 12, iterations = 60, overflow_at = 30;

/// A linear model in half and its loss, times a factor.
struct model {
  linear_data data;
  device::array<float> x, y;
  device::array<ds::half> w, g;

  explicit model(int seed)
      : data(rows, columns, std::uint64_t(seed)), x(data.x), y(data.y), w(std::vector<ds::half>(columns)),
        g(std::vector<ds::half>(columns)) {}

  ds::parameters<ds::half> parameters() {
    ds::parameters<ds::half> p;
    p.add("w", w.data(), g.data(), columns);
    return p;
  }
  void backward(device& d, float factor, float const* loss_scale) {
    d.each(columns, add_gradient_of_squares<ds::half>{x.data(), y.data(), rows, columns, w.data(), g.data(),
                                                      factor / float(rows), loss_scale});
  }
  double loss(device& d) {
    auto const weights = d.to_host(w);
    double sum = 0;
    for (int r = 0; r < rows; ++r) {
      double error = -data.y[std::size_t(r)];
      for (int k = 0; k < columns; ++k)
        error += double(data.x[std::size_t(r * columns + k)]) * double(float(weights[std::size_t(k)]));
      sum += error * error;
    }
    return sum / rows;
  }
};

void run() {
  device d;
  model first{1}, second{2};

  // snippet: two_losses
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 4096, .interval = 1000}, d.backend()};
  ds::optimizer a{first.parameters(), ds::adamw{.lr = 0.05}, ds::master<float>{},
                  ds::zero_grad{}, ds::shared_loss_scale{scaler}, d.backend()};
  ds::optimizer b{second.parameters(), ds::adamw{.lr = 0.05}, ds::master<float>{},
                  ds::zero_grad{}, ds::shared_loss_scale{scaler}, d.backend()};
  // end

  std::puts("iteration  loss scale     first loss            second loss");
  for (int i = 1; i <= iterations; ++i) {
    double const scale = scaler.loss_scale(), first_loss = first.loss(d), second_loss = second.loss(d);
    // snippet: iteration
    first.backward(d, 1, scaler.loss_scale_pointer());
    second.backward(d, i == overflow_at ? 1e6f : 1, scaler.loss_scale_pointer());
    a.step();
    b.step();
    scaler.update();
    // end

    auto const ra = a.report(), rb = b.report();
    if (std::abs(i - overflow_at) <= 1 || i == 1 || i == iterations)
      std::printf("%9d %11g %14.5f %s %14.5f %s\n", i, scale, first_loss, ra.applied ? "step" : "skip", second_loss,
                  rb.applied ? "step" : "skip");
    claim(ra.applied, "the optimizer of the loss that is finite steps in every iteration");
    claim(rb.applied == (i != overflow_at), "the other one skips where its loss overflows");
    claim(scale == (i <= overflow_at ? 4096 : 2048), "the scale is lower from the next iteration on");
    claim(ra.loss_scale == rb.loss_scale, "both optimizers see one scale");
    if (i == overflow_at) std::printf("%60s\n", rb.why.c_str());
  }
  claim(a.report().step == iterations && b.report().step == iterations - 1, "each counts its own updates");
  claim(first.loss(d) < 0.02 && second.loss(d) < 0.02, "both losses are small in the end");
}

constexpr char const* help = R"(usage: two_losses

Trains with two losses and two optimizers that share a loss scale, one of which overflows once.
)";

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run); }
