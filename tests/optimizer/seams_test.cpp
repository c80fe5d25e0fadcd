// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Random calls where two features meet, against the formulas in double: micro-batches of any weight with a shared loss
// scale, selected rows and zero_grad(); masters, slow weights and averages with values that the caller writes.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/rows.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/training/loss_scaler.hpp>

#include <doctest/doctest.h>
#include "support/twin.hpp"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace ds = descent;
using namespace test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool near(double a, double b) { return std::fabs(a - b) <= 1e-9 * (1 + std::fabs(b)); }

/// Rows that share a loss scale with a second optimizer, and what the formulas say of them.
class shared_rows {
 public:
  explicit shared_rows(std::uint64_t seed) : random_(seed) {
    list_.add("w", w_.data(), g_.data(), ds::shape{rows, columns});
    other_.add("v", &v_, &h_, 1);
    opt_.emplace(make());
    second_.emplace(make_second());
  }

  void run(int calls) {
    for (int call = 0; call < calls; ++call) {
      CAPTURE(call);
      proceed();
      CHECK(opt_->report().step == step_);
      CHECK(opt_->report().skipped == skipped_);
      REQUIRE(scaler_.loss_scale() == scale_);
      for (std::size_t i = 0; i < w_.size(); ++i) REQUIRE(near(w_[i], p_[i]));
    }
  }

 private:
  static constexpr int rows = 5, columns = 3, full = 3;
  using numbers = std::vector<double>;

  using optimizer =
      ds::optimizer<double, double, ds::sgd, ds::accumulate, ds::masked_rows<>, ds::shared_loss_scale, ds::zero_grad>;
  using second_optimizer = ds::optimizer<double, double, ds::sgd, ds::shared_loss_scale>;

  optimizer make() {
    return {list_,
            ds::sgd{.lr = 0.1, .momentum = 0.5},
            ds::accumulate{full},
            ds::masked_rows{},
            ds::shared_loss_scale{scaler_},
            ds::zero_grad{}};
  }
  second_optimizer make_second() { return {other_, ds::sgd{}, ds::shared_loss_scale{scaler_}}; }

  void proceed() {
    switch (random_.below(9)) {
      case 0:
        for (auto& x : mask_) x = std::uint8_t(random_.below(2));
        selects_all_ = random_.one_in(5);
        select();
        break;
      case 1:
        opt_->zero_grad();
        drop();
        break;
      case 2:
        opt_->flush();
        if (batches_ > 0) {
          add_selected();
          weight_ > 0 ? update() : skip();
        }
        end_iteration();
        break;
      case 3: {
        double const wanted = random_.one_in(2) ? 8 : 4;
        CHECK(refused<std::logic_error>([&] { scaler_.set_state({float(wanted), 0, 1, 0}); }) == (batches_ > 0));
        if (batches_ == 0) scale_ = wanted, found_ = false;
        break;
      }
      case 4: {  // the new optimizer and the old one are both alive for a while
        auto next = opt_->gathered(list_);
        opt_.reset();
        opt_.emplace(std::move(next));
        select();
        break;
      }
      default: micro_batch();
    }
  }
  bool selects(std::size_t row) const { return selects_all_ || mask_[row]; }
  void add_selected() {
    for (std::size_t r = 0; r < rows; ++r) selected_[r] = selected_[r] || selects(r);
  }
  void select() { opt_->select_rows("w", selects_all_ ? nullptr : mask_.data()); }

  void micro_batch() {
    double const weight = random_.one_in(4) ? 0 : random_.between(0.5, 3);
    bool const bad = weight > 0 && random_.one_in(8);
    add_selected();
    for (std::size_t i = 0; i < w_.size(); ++i) {
      if (!selects(i / columns)) continue;
      double const x = bad && i % columns == 0 ? infinity : weight * random_.between(-1, 1);
      g_[i] += scale_ * x, sum_[i] += x;
    }
    int const modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    int const mode = modes[random_.below(4)];
    std::fesetround(mode);
    opt_->step(weight);
    int const left = std::fegetround();
    std::fesetround(FE_TONEAREST);
    CHECK(left == mode);
    weight_ += weight;
    if (++batches_ == full) weight_ > 0 ? update() : skip();
    end_iteration();
  }

  /// The scale halves if gradients were not finite, once no micro-batch waits.
  void end_iteration() {
    bool const bad = random_.one_in(3);
    h_ = bad ? infinity : scale_;
    second_->step();
    scaler_.update();
    found_ = found_ || bad;
    if (batches_ > 0) return;
    if (found_) scale_ = std::max(scale_ / 2, 1.0);
    found_ = false;
  }
  void update() {
    for (double x : sum_)
      if (!std::isfinite(x)) {
        found_ = true;
        return skip();
      }
    ++step_;
    for (std::size_t i = 0; i < sum_.size(); ++i)
      if (selected_[i / columns]) {
        m_[i] = 0.5 * m_[i] + sum_[i] / weight_;
        p_[i] -= 0.1 * m_[i];
      }
    forget();
  }
  void skip() { ++skipped_, forget(); }
  void forget() { drop(), batches_ = 0; }
  void drop() { sum_.assign(sum_.size(), 0), selected_.assign(rows, false), weight_ = 0; }

  random_numbers random_;
  numbers w_ = numbers(rows * columns, 1), g_ = numbers(rows * columns);
  std::vector<std::uint8_t> mask_ = std::vector<std::uint8_t>(rows);
  double v_ = 1, h_ = 0;
  ds::parameters<double> list_, other_;
  ds::loss_scaler<> scaler_{ds::dynamic_loss_scale{.init = 16, .interval = 1000000}};
  std::optional<optimizer> opt_;
  std::optional<second_optimizer> second_;

  // What the formulas say. Gradients are those of the loss without a scale, times the weight of their micro-batch.
  numbers p_ = numbers(rows * columns, 1), m_ = numbers(rows * columns), sum_ = numbers(rows * columns);
  std::vector<bool> selected_ = std::vector<bool>(rows);
  double weight_ = 0, scale_ = 16;
  int batches_ = 0;
  std::int64_t step_ = 0, skipped_ = 0;
  bool found_ = false, selects_all_ = true;
};

/// Values beside masters, slow weights and averages, written by the caller, too.
class written_values {
 public:
  explicit written_values(std::uint64_t seed) : random_(seed) {
    list_.add("w", value_.data(), g_.data(), n);
    opt_.emplace(make());
  }

  void run(int calls) {
    for (int call = 0; call < calls; ++call) {
      CAPTURE(call);
      proceed();
      REQUIRE(opt_->report().step == step_);
      REQUIRE(opt_->loss_scale() == scale_);
      bool changed = false;
      for (std::size_t i = 0; i < n; ++i) {
        CAPTURE(i);
        REQUIRE(near(opt_->master("w")[i], master_[i]));
        REQUIRE(near(opt_->slow("w")[i], slow_[i]));
        REQUIRE(near(opt_->average("w")[i], average_[i]));
        if (written_[i]) REQUIRE(value_[i] == *written_[i]);
        else REQUIRE(value_[i] == float(opt_->master("w")[i]));
        changed = changed || value_[i] != float(opt_->master("w")[i]);
      }
      REQUIRE(opt_->values_changed() == changed);
    }
  }

 private:
  static constexpr std::size_t n = 11;
  static constexpr int full = 2;
  using numbers = std::vector<double>;

  using optimizer = ds::optimizer<float, float, ds::sgd, ds::accumulate, ds::master<double>, ds::lookahead, ds::ema,
                                  ds::dynamic_loss_scale>;

  optimizer make() {
    return {list_,
            ds::sgd{.lr = 0.1},
            ds::accumulate{full},
            ds::master<double>{},
            ds::lookahead{.k = 2, .alpha = 0.5},
            ds::ema{.decay = 0.5},
            ds::dynamic_loss_scale{.init = 8, .interval = 1000000}};
  }

  void proceed() {
    std::size_t const at = std::size_t(random_.below(int(n)));
    switch (random_.below(9)) {
      case 0: written_[at] = value_[at] = float(random_.between(-1, 1)); break;
      case 1:
        opt_->reload_values();
        for (std::size_t i = 0; i < n; ++i) master_[i] = slow_[i] = double(value_[i]);
        written_.assign(n, {});
        break;
      case 2: {
        numbers x(n);
        for (double& one : x) one = random_.between(-1, 1);
        opt_->set_master("w", x);
        master_ = x;
        written_.assign(n, {});
        break;
      }
      case 3: between_swaps(); break;
      case 4: {
        double const wanted = random_.one_in(2) ? 16 : 4;
        CHECK(refused<std::logic_error>([&] { opt_->set_scale_state({float(wanted), 0, 1, 0}); }) == (batches_ > 0));
        if (batches_ == 0) scale_ = wanted;
        break;
      }
      case 5:
        opt_->zero_grad();
        sum_.assign(n, 0), weight_ = 0;
        break;
      case 6:
        opt_->flush();
        if (batches_ > 0 && weight_ > 0) update();
        batches_ = 0;
        break;
      default: {
        double const weight = random_.one_in(4) ? 0 : 1 + random_.below(3);
        if (batches_ == 0) g_.assign(n, 0), sum_.assign(n, 0), weight_ = 0;
        for (std::size_t i = 0; i < n; ++i) {
          float const x = float(weight * std::round(64 * random_.between(-1, 1)) / 64);
          g_[i] += float(scale_) * x, sum_[i] += double(x);
        }
        opt_->step(weight);
        weight_ += weight;
        if (++batches_ < full) break;
        batches_ = 0;
        if (weight_ > 0) update();
      }
    }
  }
  void between_swaps() {
    std::vector<float> const values = value_;
    opt_->swap_average();
    for (std::size_t i = 0; i < n; ++i) CHECK(value_[i] == float(opt_->average("w")[i]));
    std::vector<float> const averages = value_;
    CHECK(refused<std::logic_error>([&] { opt_->set_master("w", numbers(n, 3)); }));
    CHECK(refused<std::logic_error>([&] { opt_->step(); }));
    CHECK(refused<std::logic_error>([&] { opt_->flush(); }));
    CHECK(refused<std::logic_error>([&] { opt_->reload_values(); }));
    CHECK(refused<std::logic_error>([&] { opt_->values_changed(); }));
    CHECK(value_ == averages);
    opt_->swap_average();
    CHECK(value_ == values);
  }
  void update() {
    ++step_;
    for (std::size_t i = 0; i < n; ++i) {
      master_[i] -= 0.1 * sum_[i] / weight_;
      if (step_ % 2 == 0) master_[i] = slow_[i] += 0.5 * (master_[i] - slow_[i]);
      average_[i] = 0.5 * (average_[i] + master_[i]);
    }
    written_.assign(n, {});
  }

  random_numbers random_;
  std::vector<float> value_ = std::vector<float>(n, 0.5f), g_ = std::vector<float>(n);
  ds::parameters<float> list_;
  std::optional<optimizer> opt_;

  numbers master_ = numbers(n, 0.5), slow_ = master_, average_ = master_, sum_ = numbers(n);
  std::vector<std::optional<float>> written_ = std::vector<std::optional<float>>(n);  // by the caller since then
  double weight_ = 0, scale_ = 8;
  int batches_ = 0;
  std::int64_t step_ = 0;
};

}  // namespace

TEST_CASE("micro-batches of any weight, selected rows, zero_grad() and a shared scale: the formulas") {
  for_seeds(24, [](std::uint64_t seed) { shared_rows(seed).run(120); });
}

TEST_CASE("masters, slow weights and averages beside values that the caller writes: the formulas") {
  for_seeds(24, [](std::uint64_t seed) { written_values(seed).run(120); });
}
