// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// All ways to clip, on gradients whose norms are known: 3 and 4 in one group, 12 in the other, 13 together. Each runs
// without a loss scale and with a scale of 1024, and gives the same bits.
#include "parts/arguments.hpp"
#include "parts/claim.hpp"
#include "parts/device.hpp"

#include <descent/descent.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace example;
namespace ds = descent;

/// What a step of plain gradient descent with a rate of 1 subtracts: the clipped gradient. The parameters are 0 in "a",
/// 1/4 in "b" and 1 in "c".
struct outcome {
  std::vector<float> a, b, c;
  ds::step_report report;
  double norm, norm_0, norm_1, norm_b;
};

template <class... Policies> outcome step_with(float scale, Policies... policies) {
  device d;
  device::array<float> a(std::vector<float>{0, 0}), b(std::vector<float>(4, 0.25f)), c(std::vector<float>(9, 1));
  device::array<float> da(std::vector<float>{3 * scale, 0}), db(std::vector<float>(4, 2 * scale)),
      dc(std::vector<float>(9, -4 * scale));

  ds::parameters<float> params;
  params.add("a", a.data(), da.data(), 2);
  params.add("b", b.data(), db.data(), 4);
  params.add("c", c.data(), dc.data(), 9, ds::group{1});
  ds::optimizer opt{params, ds::sgd{.lr = 1}, ds::static_loss_scale{double(scale)}, policies..., d.backend()};

  outcome o{};
  o.norm = opt.gradient_norm();
  o.norm_0 = opt.gradient_norm(ds::group{0});
  o.norm_1 = opt.gradient_norm(ds::group{1});
  o.norm_b = opt.gradient_norm("b");
  opt.step();
  o.report = opt.report();
  auto const taken = [&](device::array<float> const& p, float start) {
    auto x = d.to_host(p);
    for (float& one : x) one = start - one;
    return x;
  };
  o.a = taken(a, 0), o.b = taken(b, 0.25f), o.c = taken(c, 1);
  return o;
}

bool same_bits(std::vector<float> const& x, std::vector<float> const& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

/// Expected values: the clipped elements of a, b and c, the norm that clipping uses, and the smallest factor.
struct expected { double a, b, c, norm, factor; };

template <class... Policies> void show(std::string const& name, expected const& want, Policies... policies) {
  auto const o = step_with(1, policies...), scaled = step_with(1024, policies...);
  std::printf("%-34s %8.4f %8.4f %8.4f %9.4f %8.4f\n", name.c_str(), o.a[0], o.b[0], o.c[0], o.report.grad_norm,
              o.report.clip_factor);
  claim(close(o.a[0], want.a, 1e-6) && close(o.b[0], want.b, 1e-6) && close(o.c[0], want.c, 1e-6),
        name + ": the gradients are clipped as expected");
  claim(close(o.norm, want.norm, 1e-6) && close(o.report.clip_factor, want.factor, 1e-6),
        name + ": norm and factor are as expected");
  claim(same_bits(o.a, scaled.a) && same_bits(o.b, scaled.b) && same_bits(o.c, scaled.c) && o.norm == scaled.norm &&
            o.norm_0 == scaled.norm_0 && o.norm_1 == scaled.norm_1 && o.norm_b == scaled.norm_b &&
            o.report.clip_factor == scaled.report.clip_factor,
        name + ": the loss scale changes no bit");
}

void run() {
  auto const o = step_with(1024, ds::clip_norm{1});
  std::printf("norms with a loss scale of 1024: all %g, group 0 %g, group 1 %g, \"b\" %g\n\n", o.norm, o.norm_0,
              o.norm_1, o.norm_b);
  claim(o.norm == 13 && o.norm_0 == 5 && o.norm_1 == 12 && o.norm_b == 4, "norms are those of the true gradients");

  std::puts("                                          a        b        c      norm   factor");
  show("nothing is clipped", {3, 2, -4, 13, 1}, ds::clip_norm{14});
  show("clip_norm{6.5}", {1.5, 1, -2, 13, 0.5}, ds::clip_norm{6.5});
  show("clip_norm{1, torch_eps}", {3 / 13., 2 / 13., -4 / 13., 13, 1 / (13 + 1e-6)}, ds::clip_norm{1, ds::torch_eps});
  show("clip<norm::l1>{23.5}", {1.5, 1, -2, 47, 0.5}, ds::clip<ds::norm::l1>{23.5});
  show("clip<norm::inf>{1}", {0.75, 0.5, -1, 4, 0.25}, ds::clip<ds::norm::inf>{1});
  show("clip<norm::l2, scope::group>{6}", {3, 2, -2, 13, 0.5}, ds::clip<ds::norm::l2, ds::scope::group>{6});
  show("clip<norm::l2, scope::tensor>{3}", {3, 1.5, -1, 13, 0.25}, ds::clip<ds::norm::l2, ds::scope::tensor>{3});
  // The parameters' norms are 0 (so eps applies), 1/2 and 3.
  show("clip_adaptive{.c = 1, .eps = 0.25}", {0.25, 0.25, -1, 13, 1 / 12.}, ds::clip_adaptive{.c = 1, .eps = 0.25});
  show("clip_value{2.5}", {2.5, 2, -2.5, 13, 1}, ds::clip_value{2.5}, ds::skip_nonfinite{});
  show("clip_norm{6.5}, clip_value{1.25}", {1.25, 1, -1.25, 13, 0.5}, ds::clip_norm{6.5}, ds::clip_value{1.25});
}

constexpr char const* help = R"(usage: clipping

Clips gradients of known norms in every way, with and without a loss scale.
)";

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run); }
