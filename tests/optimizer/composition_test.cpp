// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Random calls of an optimizer's whole interface, on twins. One is left alone; the other is interrupted, saved and
// restored into a new optimizer, moved, gathered, and given calls that are refused and functions that throw. After
// every call both have the same bits: values, gradients and all pieces of a saved run.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/vary.hpp>

#include <doctest/doctest.h>
#include "support/own_policies.hpp"
#include "support/temporary_folder.hpp"
#include "support/twin.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace ds = descent;
using namespace test;

namespace {

template <int Abilities, class Value, class Make> class composition {
 public:
  composition(std::uint64_t seed, Make const& make) : random_(seed) {
    sizes_and_places const where(random_);
    a_ = std::make_unique<side>(where, make);
    b_ = std::make_unique<side>(where, make);
  }

  void run(int calls) {
    for (call_ = 0; call_ < calls; ++call_) {
      CAPTURE(call_);
      if (random_.one_in(2)) disturb();
      compare();
      proceed();
      compare();
    }
  }

 private:
  using side = twin<Value, Make>;
  static constexpr bool has(int ability) { return (Abilities & ability) != 0; }

  template <class F> void both(F const& f) { f(*a_), f(*b_); }

  void backward() {
    double const size = random_.one_in(6) ? random_.between(1, 1e4) : random_.between(0.01, 1);
    double const phase = random_.between(0, 6), bad[] = {std::nan(""), std::numeric_limits<double>::infinity()};
    bool const spoiled = random_.one_in(7);
    double const instead = bad[random_.below(2)];
    both([&](side& s) {
      double const scale = size * (has(scales) ? s.opt->loss_scale() : 1);
      for (std::size_t k = 0; k < s.gradients.size(); ++k)
        for (std::size_t i = 0; i < s.gradients[k].size(); ++i)
          s.gradients[k][i] = ds::narrow<Value>(scale * std::cos(phase + double(5 * k + i)));
      if (spoiled && !s.gradients[0].empty()) s.gradients[0].back() = ds::narrow<Value>(instead);
    });
    unscaled_ = false;
  }

  /// A call made on both.
  void proceed() {
    switch (random_.below(12)) {
      case 0:
        both([](side& s) { s.opt->zero_grad(); });
        unscaled_ = false;
        break;
      case 1: {
        int const g = random_.below(2);
        double const lr = random_.between(0, 0.05);
        both([&](side& s) { s.opt->group(g).lr = lr; });
        break;
      }
      case 2: {
        int const g = random_.below(2);
        both([&](side& s) { s.opt->freeze(g, s.frozen[g] = !s.frozen[g]); });
        break;
      }
      case 3: {
        double norm[2];
        norm[0] = a_->opt->gradient_norm(), norm[1] = b_->opt->gradient_norm();
        CHECK(std::memcmp(&norm[0], &norm[1], sizeof norm[0]) == 0);
        break;
      }
      case 4:
        if constexpr (has(accumulates)) {
          both([](side& s) { s.opt->flush(); });
          waiting_ = 0;
        }
        break;
      case 5:
        if constexpr (has(unscales))
          if (!unscaled_) {
            both([](side& s) { s.opt->unscale(); });
            unscaled_ = true;
          }
        break;
      case 6:
        if constexpr (has(plateau)) {
          double const metric = random_.between(0, 1);
          both([&](side& s) { s.opt->observe(metric); });
        }
        break;
      case 7:
        if constexpr (has(averages)) both([](side& s) { s.opt->swap_average(), s.opt->swap_average(); });
        break;
      case 8: both([](side& s) { s.opt->transform_gradients([](auto g) { return g * 0.5f; }); }); break;
      default: {
        if (!unscaled_) backward();
        double const weight = !has(accumulates) ? 1 : random_.one_in(4) ? 0 : random_.between(0.5, 2);
        both([&](side& s) { s.opt->step(weight); });
        unscaled_ = false;
        if (has(accumulates)) waiting_ = (waiting_ + 1) % 3;
        CHECK(a_->opt->report().applied == b_->opt->report().applied);
        CHECK(a_->opt->report().step == b_->opt->report().step);
      }
    }
  }

  /// An event that happens to one of them and must leave no trace.
  void disturb() {
    side& s = *b_;
    auto& opt = *s.opt;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    int const which = random_.below(14);
    CAPTURE(which);
    switch (which) {
      case 0:
        if (!unscaled_ && waiting_ == 0) random_.one_in(2) ? s.resume() : s.resume(folder_ / "run");
        break;
      case 1: {
        auto moved = std::make_unique<typename side::optimizer>(std::move(opt));
        CHECK(refused<std::logic_error>([&] { opt.step(); }));
        opt = std::move(*moved);
        auto& same = opt;
        opt = std::move(same);
        break;
      }
      case 2:
        if (!unscaled_) {
          auto next = std::make_unique<typename side::optimizer>(opt.gathered(s.list));
          for (int g = 0; g < 2; ++g) next->freeze(g, s.frozen[g]);
          s.opt = std::move(next);
        }
        break;
      case 3:
        for (double weight : {-1.0, nan, std::numeric_limits<double>::infinity(), 1e-310})
          CHECK(refused<std::invalid_argument>([&] { opt.step(weight); }));
        break;
      case 4:
        CHECK(refused<std::invalid_argument>([&] { opt.group(2); }));
        CHECK(refused<std::invalid_argument>([&] { opt.freeze(-1); }));
        CHECK(refused<std::invalid_argument>([&] { opt.gradient_norm("nobody"); }));
        break;
      case 5:
        for (std::int64_t t : {std::int64_t(-1), std::numeric_limits<std::int64_t>::max()})
          CHECK(refused<std::invalid_argument>([&] { opt.set_step(t); }));
        break;
      case 6: {  // a field out of its range
        auto const before = opt.group(1);
        opt.group(1).weight_decay = random_.one_in(2) ? -1 : nan;
        CHECK(refused<std::invalid_argument>([&] { opt.step(); }));
        opt.group(1) = before;
        break;
      }
      case 7:
        if (!unscaled_ && waiting_ == 0) random_.one_in(2) ? spoil_load(s) : flip(s);
        break;
      case 8: {
        std::int64_t left = random_.below(500);
        auto const some = [&](auto g) {
          if (left-- == 0) throw refusal();
          return g + g;
        };
        auto const kept = s.gradients;
        if (!refused<refusal>([&] { opt.transform_gradients(some); })) s.put_back(kept);
        break;
      }
      case 9:
        if constexpr (has(scheduled)) {
          s.throws = true;
          if (waiting_ == (has(accumulates) ? 2 : 0)) {
            auto const kept = s.gradients;  // the step may be skipped before the schedule is called
            for (auto& g : s.gradients) std::fill(g.begin(), g.end(), ds::narrow<Value>(0.5));
            CHECK(refused<refusal>([&] { opt.step(); }));
            s.put_back(kept);
          }
          s.throws = false;
        }
        break;
      case 10:
        if constexpr (has(scales)) {
          ds::loss_scale_state bad = opt.scale_state();
          bad.scale = random_.one_in(2) ? -1 : std::numeric_limits<float>::quiet_NaN();
          CHECK(refused<std::invalid_argument>([&] { opt.set_scale_state(bad); }));
        }
        break;
      case 11:
        if constexpr (has(unscales))
          if (unscaled_) CHECK(refused<std::logic_error>([&] { opt.unscale(); }));
        break;
      case 12:
        if constexpr (has(averages)) {
          opt.swap_average();
          CHECK(refused<std::logic_error>([&] { opt.step(); }));
          CHECK(refused<std::logic_error>([&] { opt.reload_values(); }));
          opt.swap_average();
        }
        break;
      default: opt.explain(), opt.memory(), opt.diagnose(), opt.last_report();
    }
  }

  /// Pieces that end in an exception or have the wrong length.
  void spoil_load(side& s) {
    int at = random_.below(6);
    bool const longer = random_.one_in(2);
    auto const spoiled = [&] {
      s.opt->load([&]<class T>(std::string const&, std::span<T const> now) {
        std::vector<T> elements(now.begin(), now.end());
        if (at-- == 0) {
          if (!longer) throw refusal();
          elements.push_back(elements.front());
        }
        return elements;
      });
    };
    if (longer) refused<std::invalid_argument>(spoiled);
    else refused<refusal>(spoiled);
  }

  /// Flips one bit of what was saved: load() refuses or accepts it, and the original can be loaded afterwards.
  void flip(side& s) {
    auto const good = s.saved();
    auto bad = good;
    auto piece = bad.begin();
    std::advance(piece, random_.below(int(bad.size())));
    bytes& x = piece->second;
    x[std::size_t(random_.below(int(x.size())))] ^= std::byte(1 << random_.below(8));
    if (refused<std::invalid_argument>([&] { s.load(bad); })) CHECK(s.saved() == good);
    else s.load(good);
  }

  void compare() {
    for (std::size_t k = 0; k < a_->values.size(); ++k) {
      CAPTURE(k);
      REQUIRE(bytes_of(a_->values[k]) == bytes_of(b_->values[k]));
      REQUIRE(bytes_of(a_->gradients[k]) == bytes_of(b_->gradients[k]));
    }
    if (waiting_ == 0) REQUIRE(a_->saved() == b_->saved());
  }

  random_numbers random_;
  std::unique_ptr<side> a_, b_;
  temporary_folder folder_;
  int call_ = 0, waiting_ = 0;
  bool unscaled_ = false;
};

template <int Abilities, class Value, class Make> void try_seeds(Make const& make) {
  for_seeds(12, [&](std::uint64_t seed) { composition<Abilities, Value, Make>(seed, make).run(60); });
}

}  // namespace

TEST_CASE("what interrupts, is refused or throws leaves no trace: sgd, scheduled, averaged, skipping, in float") {
  try_seeds<scheduled | averages, float>([](auto const& list, bool const* throws) {
    return ds::optimizer{list, ds::sgd{.momentum = 0.9, .weight_decay = 0.01}, ds::learning_rate(fragile_rate{throws}),
                         ds::skip_nonfinite{}, ds::ema{.decay = 0.9}};
  });
}

TEST_CASE("what interrupts, is refused or throws leaves no trace: adamw, accumulated, clipped, in double") {
  try_seeds<scheduled | accumulates, double>([](auto const& list, bool const* throws) {
    return ds::optimizer{list, ds::adamw{}, ds::scale_learning_rate(fragile_rate{throws}), ds::accumulate{3},
                         ds::clip_norm{1.0}, ds::outer{.every = 3}, test::bounded_update{.most = 0.5}};
  });
}

TEST_CASE("what interrupts, is refused or throws leaves no trace: adamw in half with a loss scale and a master") {
  try_seeds<scales | plateau, ds::half>([](auto const& list, bool const*) {
    return ds::optimizer{list, ds::adamw{}, ds::master<float>{}, ds::zero_grad{}, ds::on_plateau{{.patience = 2}},
                         ds::dynamic_loss_scale{.init = 1024, .interval = 4}};
  });
}

TEST_CASE("what interrupts, is refused or throws leaves no trace: lamb in bfloat16, rounded stochastically") {
  try_seeds<scales | unscales, ds::bfloat16>([](auto const& list, bool const*) {
    return ds::optimizer{list, ds::lamb{}, ds::states<ds::bfloat16>{}, ds::stochastic_rounding{7},
                         ds::static_loss_scale{64}};
  });
}

TEST_CASE("what interrupts, is refused or throws leaves no trace: prodigy, which remembers, in float") {
  try_seeds<scheduled, float>([](auto const& list, bool const* throws) {
    return ds::optimizer{list, ds::prodigy{}, ds::scale_learning_rate(fragile_rate{throws}), ds::clip_norm{10}};
  });
}
