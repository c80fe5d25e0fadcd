// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Trainers with optimizers of their own, before and after the port that docs/porting.md describes: which bits stay, how
// far the others move, and what each line costs.
#include <descent/cost.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/gradient_factor_at.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/rows.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>

#include <doctest/doctest.h>

#include "consumers/client/after.hpp"
#include "support/files.hpp"
#include "support/ranks.hpp"

#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

namespace {

template <class T> bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}
template <class T> std::vector<T> copy(std::span<T const> x) { return {x.begin(), x.end()}; }

/// In [-1/2, 1/2), a function of t and i.
float noise(int t, std::size_t i) {
  std::uint32_t const x = (std::uint32_t(i) * 2654435761u + std::uint32_t(t)) * 2246822519u;
  return float(x >> 8) / 16777216 - 0.5f;
}
/// The largest |a - b| / (|b| + floor).
float distance(std::vector<float> const& a, std::vector<float> const& b, float floor) {
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]) / (std::abs(b[i]) + floor));
  return most;
}

// ---- flat arrays: bfloat16 with float masters, a clipped norm, decay of matrices only

constexpr float beta1 = 0.9f, beta2 = 0.95f, eps = 1e-8f, weight_decay = 0.1f;

struct flat {
  struct tensor {
    char const* name;
    std::int64_t size;
    int dimensions;
  };
  std::vector<tensor> tensors{{"wte", 16 * 24, 2}, {"norm", 24, 1}, {"qkv", 24 * 72, 2}, {"bias", 72, 1}};
  std::vector<ds::bfloat16> value, gradient;
  std::vector<float> master, m, v;
  float clip = 1;

  flat() {
    for (std::size_t i = 0; i < 16 * 24 + 24 + 24 * 72 + 72; ++i) value.push_back(ds::bfloat16(noise(0, i)));
    for (ds::bfloat16 const x : value) master.push_back(ds::widen<float>(x));
    gradient.resize(value.size()), m.resize(value.size()), v.resize(value.size());
  }
  void backward(int t) {
    for (std::size_t i = 0; i < value.size(); ++i)
      gradient[i] = ds::bfloat16(noise(t, i) + ds::widen<float>(value[i]) / 8);
  }
  float norm() const {
    double sum = 0;
    for (ds::bfloat16 const g : gradient) sum += ds::widen<double>(g) * ds::widen<double>(g);
    return float(std::sqrt(sum));
  }
};

// snippet: flat_before
void update(flat& x, int t, float lr) {
  float const norm = x.norm();
  x.clip = norm > 1 ? 1 / norm : 1;
  float const c1 = 1 - std::pow(beta1, float(t)), c2 = 1 - std::pow(beta2, float(t));
  std::size_t i = 0;
  for (auto const& tensor : x.tensors) {
    float const wd = tensor.dimensions > 1 ? weight_decay : 0;
    for (std::size_t const end = i + std::size_t(tensor.size); i < end; ++i) {
      float const g = ds::widen<float>(x.gradient[i]) * x.clip;
      float const m = x.m[i] = g + beta1 * (x.m[i] - g);
      float const v = x.v[i] = g * g + beta2 * (x.v[i] - g * g);
      float const p = x.master[i];
      x.master[i] = p - lr * (m / c1 / (std::sqrt(v / c2) + eps) + wd * p);
      x.value[i] = ds::bfloat16(x.master[i]);
    }
  }
}
// end

ds::parameters<ds::bfloat16> list(flat& x) {
  // snippet: flat_list
  ds::parameters<ds::bfloat16> params;
  std::int64_t first = 0;
  for (auto const& [name, size, dimensions] : x.tensors) {
    params.add(name, x.value.data() + first, x.gradient.data() + first, size, ds::group{dimensions > 1 ? 0 : 1});
    first += size;
  }
  // end
  return params;
}

template <class... Ps> auto ported(flat& x, Ps const&... shards) {
  auto const params = list(x);
  // snippet: flat_after
  ds::optimizer opt{params, ds::adamw{.lr = 1e-3, .beta2 = 0.95, .weight_decay = 0.1}, ds::master<float>{},
                    ds::clip_norm{1}, shards...};
  opt.group(1).weight_decay = 0;
  // end
  return opt;
}

// ---- points with selected rows, which come and go

constexpr std::int64_t columns = 3;

struct points {
  std::vector<float> value, gradient, m, v;
  std::vector<std::uint8_t> visible;

  explicit points(std::size_t rows = 50) : value(rows * columns), gradient(value), m(value), v(value), visible(rows) {
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = noise(0, i);
  }
  void backward(int t) {
    for (std::size_t i = 0; i < value.size(); ++i) gradient[i] = noise(t, i);
    for (std::size_t j = 0; j < visible.size(); ++j) visible[j] = noise(-t, j) < 0.1f;
  }
  ds::parameters<float> list() {
    ds::parameters<float> params;
    params.add("means", value, gradient, ds::shape{std::int64_t(visible.size()), columns});
    return params;
  }
};

// snippet: points_before
void update(points& x, float lr) {
  for (std::size_t i = 0; i < x.value.size(); ++i) {
    if (!x.visible[i / columns]) continue;
    float const g = x.gradient[i];
    float const m = x.m[i] = beta1 * x.m[i] + (1 - beta1) * g;
    float const v = x.v[i] = beta2 * x.v[i] + (1 - beta2) * g * g;
    x.value[i] += -lr * m / (std::sqrt(v) + eps);
  }
}
points keep(points const& x, std::vector<std::int64_t> const& from) {  // -1: new, with moments of 0
  points now(from.size());
  for (std::size_t j = 0; j < from.size(); ++j)
    for (std::size_t k = 0; k < columns && from[j] >= 0; ++k) {
      std::size_t const to = j * columns + k, at = std::size_t(from[j]) * columns + k;
      now.value[to] = x.value[at], now.m[to] = x.m[at], now.v[to] = x.v[at];
    }
  return now;
}
// end

// snippet: points_rule
struct points_adam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, eps; };
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, beta1, 1 - beta1, beta2, 1 - beta2, eps}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using ds::sqrt;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    return p + -k.lr * s.m / (sqrt(s.v) + k.eps);
  }
};
// end

/// Trains twice and changes the rows after 10 steps. Calls compare(client, optimizer, values) after each step.
template <class Rule, class Compare> void port_points(Rule const& rule, Compare const& compare) {
  points client, x;
  ds::optimizer opt{x.list(), rule, ds::masked_rows{}};
  for (int t = 1; t <= 20; ++t) {
    client.backward(t), x.backward(t);
    update(client, 1e-2f);
    // snippet: points_after
    opt.select_rows("means", x.visible.data());
    opt.step();
    // end
    compare(client, opt, x.value);
    if (t != 10) continue;
    std::vector<std::int64_t> from;
    for (std::int64_t j = 0; j < 50; ++j)
      if (j % 7) from.push_back(j % 11 ? j : -1);
    client = keep(client, from);
    points now = keep(x, from);
    // snippet: points_gathered
    opt = opt.gathered(now.list(), {{"means", from.data()}});
    // end
    x = std::move(now);
  }
}

}  // namespace

TEST_CASE("a port of flat arrays by the client's own formula and clip factor keeps every bit") {
  flat client, x;
  ds::optimizer opt{list(x),
                    clients_adam{.lr = 1e-3f, .beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = weight_decay},
                    ds::master<float>{}, ds::gradient_factor_at{&x.clip}};
  for (int t = 1; t <= 50; ++t) {
    client.backward(t), x.backward(t);
    update(client, t, 1e-3f);
    x.clip = x.norm() > 1 ? 1 / x.norm() : 1;
    for (int g : {0, 1}) {
      opt.group(g).correction1 = 1 - std::pow(beta1, float(t));
      opt.group(g).correction2 = 1 - std::pow(beta2, float(t));
      opt.group(g).weight_decay = g == 0 ? weight_decay : 0;
    }
    opt.step();
  }
  CHECK(same_bits(x.value, client.value));
  std::size_t first = 0;
  for (auto const& tensor : client.tensors) {
    auto const part = [&](std::vector<float> const& all) {
      return std::vector<float>(all.begin() + std::ptrdiff_t(first), all.begin() + std::ptrdiff_t(first) + tensor.size);
    };
    CHECK(same_bits(copy(opt.master(tensor.name)), part(client.master)));
    CHECK(same_bits(copy(opt.state<0>(tensor.name)), part(client.m)));
    CHECK(same_bits(copy(opt.state<1>(tensor.name)), part(client.v)));
    first += std::size_t(tensor.size);
  }
}

TEST_CASE("a port of flat arrays to adamw and clip_norm differs by roundings, on one rank and sharded") {
  flat client, x;
  auto opt = ported(x);
  for (int t = 1; t <= 50; ++t) {
    client.backward(t), x.backward(t);
    update(client, t, 1e-3f);
    opt.step();
  }
  std::vector<float> master;
  for (auto const& tensor : x.tensors)
    for (float const p : opt.master(tensor.name)) master.push_back(p);
  float const far = distance(master, client.master, 1e-3f);
  CHECK(far > 0);
  CHECK(far < 1e-5f);
  ranks::with_ranks(2, [&](auto& comm) {
    flat part;
    auto sharded = ported(part, ds::sharded{comm});
    for (int t = 1; t <= 50; ++t) part.backward(t), sharded.step();
    CHECK(same_bits(part.value, x.value));
  });
}

TEST_CASE("a port of points: adam has the client's moments bit for bit, the client's formula also the values") {
  port_points(ds::adam{.lr = 1e-2f, .beta1 = beta1, .beta2 = beta2, .eps = eps, .bias_correction = false},
              [](points const& client, auto const& opt, std::vector<float> const& value) {
                CHECK(same_bits(copy(opt.template state<0>("means")), client.m));
                CHECK(same_bits(copy(opt.template state<1>("means")), client.v));
                CHECK(distance(value, client.value, 1e-3f) < 1e-5f);
              });
  port_points(points_adam{.lr = 1e-2f, .beta1 = beta1, .beta2 = beta2, .eps = eps},
              [](points const& client, auto const& opt, std::vector<float> const& value) {
                CHECK(same_bits(value, client.value));
                CHECK(same_bits(copy(opt.template state<0>("means")), client.m));
                CHECK(same_bits(copy(opt.template state<1>("means")), client.v));
              });
}

namespace {

template <class... Ps> std::string row(char const* line, Ps const&... policies) {
  using value = ds::bfloat16;
  using plan = typename ds::detail::optimizer_traits<value, value, ds::adamw, Ps...>::plan;
  constexpr int n = 1 << 20;
  static std::vector<value> memory(2 * n);
  ds::parameters<value> params;
  params.add("W", memory.data(), memory.data() + n, ds::shape{n / 64, 64});
  double const owned = double(ds::memory(params, ds::adamw{}, policies...).bytes) / n;
  char text[200];
  std::snprintf(text, sizeof text, "| `%s` | %lld | %.4g | %d |\n", line,
                (long long)ds::bytes_per_parameter<value, value, ds::adamw, Ps...>(), owned, int(plan::launches));
  return text;
}

}  // namespace

TEST_CASE("what each line costs is what docs/porting.md says") {
  float factor = 1;
  std::string const table =
      row("ds::adamw{}") + row("ds::master<float>{}", ds::master<float>{}) +
      row("ds::master_remainder{}", ds::master_remainder{}) +
      row("ds::master<float>{}, ds::clip_norm{1}", ds::master<float>{}, ds::clip_norm{1}) +
      row("ds::master<float>{}, ds::skip_nonfinite{}", ds::master<float>{}, ds::skip_nonfinite{}) +
      row("ds::master<float>{}, ds::zero_grad{}", ds::master<float>{}, ds::zero_grad{}) +
      row("ds::master<float>{}, ds::ema{}", ds::master<float>{}, ds::ema{}) +
      row("ds::master<float>{}, ds::gradient_factor_at{&x}", ds::master<float>{}, ds::gradient_factor_at{&factor}) +
      row("ds::master<float>{}, ds::masked_rows{}", ds::master<float>{}, ds::masked_rows{}) +
      row("ds::master<float>{}, ds::stochastic_values{}", ds::master<float>{}, ds::stochastic_values{}) +
      row("ds::stochastic_rounding{}", ds::stochastic_rounding{});
  std::ifstream page(test::tests_dir() + "/../docs/porting.md");
  std::string const text(std::istreambuf_iterator<char>(page), {});
  CHECK_MESSAGE(text.find(table) != std::string::npos, "docs/porting.md must have:\n" << table);
}
