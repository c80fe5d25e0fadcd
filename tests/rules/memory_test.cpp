// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

/// Rules with memory, and start values that depend on a rule's fields.

namespace ds = descent;

namespace {

/// p <- p - lr n in the n-th update of the group.
struct counting {
  double lr = 1;
  template <class Real> struct state {};
  template <class Real> struct terms { Real n; };
  struct memory { double n = 0; };

  DESCENT_HD terms<double> at(std::int64_t, memory& old) const {
    old.n = old.n + 1;
    return {lr * old.n};
  }
  template <class Real> DESCENT_HD static Real update(Real p, Real, state<Real>&, terms<Real> const& k) {
    return p - k.n;
  }
};
static_assert(ds::update_rule<counting> && ds::has_memory<counting> && !ds::has_sums<counting>);

/// p moves by, and n grows by, the sum of g n over the model or the tensor, with the n of the memory before the update.
template <ds::scope Over = ds::scope::model> struct weighed {
  template <class Real> struct state {};
  template <class Real> struct terms { Real n; };
  template <class Real> struct sums { Real s; };
  struct memory { double n = 10; };
  static constexpr ds::scope sums_over = Over;

  DESCENT_HD terms<double> at(std::int64_t) const { return {0}; }
  DESCENT_HD terms<double> at(std::int64_t, memory const& old) const { return {old.n}; }
  DESCENT_HD terms<double> at(std::int64_t, sums<double> const& total, memory& old) const {
    old.n = old.n + total.s;
    return {total.s};
  }
  template <class Real> DESCENT_HD static sums<Real> sum(Real, Real g, terms<Real> const& k) { return {g * k.n}; }
  template <class Real> DESCENT_HD static Real update(Real p, Real, state<Real>&, terms<Real> const& k) {
    return p - k.n;
  }
};
static_assert(ds::update_rule<weighed<>> && ds::has_sums_of_memory<weighed<>>);

/// The state starts at `first`.
struct starting {
  double first = 3;
  template <class Real> struct state { Real s; };
  template <class Real> struct terms {};

  template <class Real> DESCENT_HD state<Real> start(Real p) const { return {Real(first) + p}; }
  DESCENT_HD terms<double> at(std::int64_t) const { return {}; }
  template <class Real> DESCENT_HD static Real update(Real p, Real, state<Real>&, terms<Real> const&) { return p; }
};
static_assert(ds::update_rule<starting> && ds::has_start<starting>);

struct two_groups {
  std::vector<float> x = std::vector<float>(9), y = std::vector<float>(5), gx = x, gy = y;
  ds::parameters<float> list() {
    ds::parameters<float> all;
    all.add("x", x.data(), gx.data(), 9);
    all.add("y", y.data(), gy.data(), 5, ds::group{1});
    return all;
  }
};

}  // namespace

TEST_CASE("memory without sums: one for each group, which neither a skip nor a frozen group advances") {
  two_groups p;
  ds::optimizer opt{p.list(), counting{}, ds::skip_nonfinite{}};
  opt.step();
  CHECK(p.x == std::vector<float>(9, -1));
  CHECK(p.y == std::vector<float>(5, -1));
  opt.freeze(1);
  opt.step();
  CHECK(p.x == std::vector<float>(9, -3));
  CHECK(p.y == std::vector<float>(5, -1));
  opt.freeze(1, false);
  p.gx[4] = std::numeric_limits<float>::infinity();
  opt.step();
  CHECK(p.x == std::vector<float>(9, -3));
  p.gx[4] = 0;
  opt.group(1).lr = 10;
  opt.step();
  CHECK(p.x == std::vector<float>(9, -6));
  CHECK(p.y == std::vector<float>(5, -21));
}

TEST_CASE("memory without sums: tensors that are clipped separately have equal memories") {
  two_groups p;
  ds::optimizer opt{p.list(), counting{}, ds::clip<ds::norm::l2, ds::scope::tensor>{1}};
  opt.step();
  opt.step();
  CHECK(p.x == std::vector<float>(9, -3));
  CHECK(p.y == std::vector<float>(5, -3));
}

TEST_CASE("sums of memory: they see it as the last update left it") {
  two_groups p;
  p.gx[0] = 1;
  p.gy[4] = 2;
  ds::optimizer opt{p.list(), weighed<>{}};
  opt.step();
  CHECK(p.x[8] == -30);
  opt.step();
  CHECK(p.x[8] == -30 - 120);
  CHECK(p.y[0] == -30 - 120);
}

TEST_CASE("sums of memory over each tensor: they see its own, also with clipping, and a frozen group's waits") {
  two_groups p;
  p.gx[0] = 1;
  p.gy[4] = 2;
  ds::optimizer opt{p.list(), weighed<ds::scope::tensor>{}};
  opt.step();
  CHECK(p.x[8] == -10);
  CHECK(p.y[0] == -20);
  opt.freeze(0);
  opt.step();
  CHECK(p.x[8] == -10);
  CHECK(p.y[0] == -20 - 60);
  opt.freeze(0, false);
  opt.step();
  CHECK(p.x[8] == -10 - 20);
  CHECK(p.y[0] == -20 - 60 - 180);

  two_groups q;
  q.gx[0] = 1;
  q.gy[4] = 2;
  ds::parameters<float> one_group;
  one_group.add("x", q.x.data(), q.gx.data(), 9);
  one_group.add("y", q.y.data(), q.gy.data(), 5);
  ds::optimizer opt_of_one{one_group, weighed<ds::scope::tensor>{}};
  opt_of_one.step();
  opt_of_one.step();
  CHECK(q.x[8] == -10 - 20);
  CHECK(q.y[0] == -20 - 60);

  two_groups clipped;
  clipped.gx[0] = 2;
  clipped.gy[4] = 4;
  ds::optimizer opt_clipped{clipped.list(), weighed<ds::scope::tensor>{}, ds::clip<ds::norm::l2, ds::scope::tensor>{1}};
  opt_clipped.step();
  opt_clipped.step();
  CHECK(clipped.x[8] == doctest::Approx(-10 - 20));
  CHECK(clipped.y[0] == doctest::Approx(-10 - 20));
}

TEST_CASE("a start that depends on a field takes that of its group at construction") {
  two_groups p;
  p.x[2] = 1;
  ds::optimizer opt{p.list(), starting{.first = 5}};
  CHECK(opt.state("x", 0)[2] == 6);
  CHECK(opt.state("y", 0)[4] == 5);
}
