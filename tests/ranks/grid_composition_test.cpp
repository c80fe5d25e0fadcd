// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Random calls on grids of ranks: each row has the parts of a model, each column the parts of a batch, which a loader
// deals out. At random moments all is saved in memory or in files, and others go on. After every call all ranks have
// the bits of one process that makes the same calls and is not interrupted.
#include <descent/comm/threads.hpp>
#include <descent/data/loader.hpp>
#include <descent/data/sources.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/model_parallel.hpp>
#include <descent/policies/noise.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/schedules/plateau.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"
#include "support/twin.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ds = descent;
using test::bytes, test::bytes_of, test::for_seeds, test::random_numbers, test::refused, test::temporary_folder;

namespace {

/// A call made by all ranks.
struct call {
  enum kind { update, rate, freeze, norm, norm_of_one, average, observe, zero_grad, flush, memory, file, kinds } what;
  int group, phase;
  double number;
  std::size_t tensor;  // whose norm is asked for
  bool spoiled;        // whether its gradient is not finite in an update
  bool other_data;     // whether a loader of other data on one rank is tried before
};

/// A grid, a model, how it is cut, and what is called.
struct script {
  int rows, columns;
  std::vector<std::size_t> sizes;
  std::vector<int> column_of;  // of each tensor
  std::uint64_t order;
  std::vector<call> calls;

  explicit script(std::uint64_t seed) {
    random_numbers random(seed);
    rows = 1 << random.below(3), columns = 1 + random.below(3);
    int const tensors = 2 + random.below(5);
    for (int k = 0; k < tensors; ++k) {
      std::size_t const usual[] = {0, 1, 6, 15, 63, 300, 4096 + 9};
      sizes.push_back(usual[random.below(random.one_in(4) ? 7 : 6)]);
      column_of.push_back(random.below(columns));
    }
    std::ranges::sort(column_of);  // the order of one process is that of the ranks
    order = std::uint64_t(random.below(1000));
    for (int i = 0; i < 20; ++i) {
      int const what = random.below(2 * call::kinds);
      calls.push_back({what < call::kinds ? call::kind(what) : call::update, random.below(2), random.below(1000),
                       random.between(0.5, 1), std::size_t(random.below(tensors)), random.one_in(6), random.one_in(6)});
    }
  }
};

/// What a rank has after a call: the bytes of its tensors, and what it says.
struct moment {
  std::vector<bytes> values;
  std::string said;
};
using journal = std::vector<moment>;

std::vector<int> const records = [] {
  std::vector<int> all(36);
  std::iota(all.begin(), all.end(), 0);
  return all;
}();

/// What differs on a rank with other data.
enum class difference { size, batches, order, seed };
auto loader_of(std::uint64_t order, ds::comm::threads::member& comm, bool other = false, difference in = {}) {
  auto const extra = [&](difference here) { return std::size_t(other && in == here); };
  return ds::loader{ds::in_memory{ds::column{ds::field<"n", int>{},
                                             std::span(records).first(records.size() - extra(difference::size))}},
                    ds::batches{std::int64_t(6 + extra(difference::batches))},
                    ds::shuffled{.seed = order + extra(difference::order)},
                    ds::workers{.seed = extra(difference::seed)}, comm};
}

/// One rank. make(list, in_row, in_column): its optimizer.
template <class Value, class Gradient, class Make> class actor {
  using comm = ds::comm::threads::member;
  using model = ranks::model<Value, Gradient>;

 public:
  actor(script const& s, Make const& make, comm& in_row, comm& in_column, int columns)
      : script_(s), make_(make), in_row_(in_row), in_column_(in_column), columns_(columns), model_(0, s.sizes),
        list_(share()), opt_(make(list_, in_row, in_column)), data_(loader_of(s.order, in_column)) {}

  /// `resumes`: whether this run is interrupted; `folder`: where it saves.
  moment make(call const& c, bool resumes, temporary_folder const& folder) {
    if (c.other_data && resumes) refuse_other_data(c);
    said_.clear();
    switch (c.what) {
      case call::rate: opt_->group(c.group).lr = 0.02 * c.number; break;
      case call::freeze: opt_->freeze(c.group, frozen_[c.group] = !frozen_[c.group]); break;
      case call::norm: add_norm(opt_->gradient_norm()); break;
      case call::norm_of_one: add_norm(opt_->gradient_norm("w" + std::to_string(c.tensor))); break;
      case call::average:
        if constexpr (requires { opt_->swap_average(); }) opt_->swap_average(), look(), opt_->swap_average();
        break;
      case call::observe:
        if constexpr (requires { opt_->observe(1.0); }) opt_->observe(c.number);
        break;
      case call::zero_grad:
        if (!waiting_) opt_->zero_grad();
        break;
      case call::flush:
        if constexpr (requires { opt_->flush(); }) opt_->flush(), waiting_ = false, report();
        break;
      case call::memory:
        if (resumes) resume_from_memory();
        break;
      case call::file:
        if (resumes) resume_from_file(folder / ("stage" + std::to_string(in_row_.rank())));
        break;
      default: update(c);
    }
    look();
    return {std::exchange(values_, {}), said_};
  }

 private:
  bool mine(std::size_t k) const { return columns_ == 1 || script_.column_of[k] == in_row_.rank(); }

  /// The rank's tensors. An empty copy gives each rank both groups.
  ds::parameters<Value, Gradient> share() {
    auto const all = model_.list();
    ds::parameters<Value, Gradient> some;
    some.add("both groups", model_.value[0].data(), model_.gradient[0].data(), 0, ds::group{1});
    some.mark_copied("both groups");
    for (std::size_t k = 0; k < script_.sizes.size(); ++k)
      if (auto const& v = all.views()[k]; mine(k))
        some.add(v.name, v.value, v.gradient, ds::shape{v.count / v.columns, v.columns}, ds::group{v.group});
    return some;
  }
  /// One rank of a column has other data: all are told.
  void refuse_other_data(call const& c) {
    if (in_column_.size() == 1) return;
    bool const other = in_column_.rank() == c.phase % in_column_.size();
    if (!refused<std::invalid_argument>([&] { loader_of(script_.order, in_column_, other, difference(c.phase % 4)); }))
      throw std::runtime_error("a loader of other data was not refused");
  }

  void update(call const& c) {
    auto const batch = data_.next();
    double const scale = opt_->loss_scale();
    for (std::size_t k = 0; k < script_.sizes.size(); ++k)
      for (std::size_t i = 0; i < script_.sizes[k]; ++i) {
        double sum = waiting_ ? ds::widen<double>(model_.gradient[k][i]) : 0;
        for (int n : batch.template get<"n">())  // exact in every type
          sum += scale * std::round(16 * ranks::gradient_of(n, c.phase, k, i)) / 16;
        bool const bad = c.spoiled && k == c.tensor && in_column_.rank() == 0 && i + 1 == script_.sizes[k];
        model_.gradient[k][i] = ds::narrow<Gradient>(bad ? std::numeric_limits<double>::infinity() : sum);
      }
    opt_->step(double(batch.size()));
    auto const r = opt_->report();
    waiting_ = ranks::has(r.why, "are being accumulated");
    report();
  }
  /// A run that goes on has no report of the last step.
  void report() {
    auto const r = opt_->report();
    add(double(r.step)), add(r.loss_scale), said_ += r.why;
    if (r.applied) add(r.grad_norm), add(r.clip_factor);
  }
  void add(double x) { said_ += std::to_string(x) + " "; }
  /// Without micro-batches a norm is of the mean over ranks, whose number is a power of 2.
  void add_norm(double x) { add(waiting_ ? x : x * in_column_.size()); }
  void look() {
    for (auto const& v : model_.value) values_.push_back(bytes_of(v));
  }

  /// Whether a run may be saved now; if not, save() must say so.
  bool can_save() {
    if (!waiting_) return true;
    if (!refused<std::logic_error>([&] { ranks::saved(*opt_); }))
      throw std::runtime_error("save() while micro-batches wait was not refused");
    return false;
  }
  void resume_from_memory() {
    if (!can_save()) return;
    auto const pieces = ranks::saved(*opt_), position = ranks::saved(data_);
    auto next = make_(list_, in_row_, in_column_);
    for (int g = 0; g < 2; ++g) next->group(g) = opt_->group(g), next->freeze(g, frozen_[g]);
    ranks::load(*next, pieces);
    opt_ = std::move(next);
    data_ = loader_of(script_.order, in_column_);
    ranks::load(data_, position);
  }
  /// On other values and another position.
  void resume_from_file(std::string const& path) {
    if (!can_save()) return;
    ds::save_file(path, *opt_, ds::named("data", data_));
    for (auto const& v : list_.views()) std::fill_n(v.value, v.count, ds::narrow<Value>(7.0));
    opt_ = make_(list_, in_row_, in_column_);
    data_ = loader_of(script_.order, in_column_);
    data_.next();
    ds::load_file(path, *opt_, ds::named("data", data_));
  }

  script const& script_;
  Make const& make_;
  comm &in_row_, &in_column_;
  int columns_;
  model model_;
  ds::parameters<Value, Gradient> list_;
  decltype(std::declval<Make const&>()(list_, in_row_, in_column_)) opt_;
  decltype(loader_of(0, std::declval<comm&>())) data_;
  bool frozen_[2] = {}, waiting_ = false;
  std::vector<bytes> values_;
  std::string said_;
};

/// What every rank had after each call, by row, then column.
template <class Value, class Gradient, class Make>
std::vector<journal> performed(script const& s, Make const& make, int rows, int columns, bool resumes) {
  std::vector<journal> all(std::size_t(rows * columns));
  temporary_folder const folder;
  ranks::on_grid(rows, columns, [&](auto& in_row, auto& in_column) {
    auto& mine = all[std::size_t(in_column.rank() * columns + in_row.rank())];
    actor<Value, Gradient, Make> one(s, make, in_row, in_column, columns);
    for (call const& c : s.calls) mine.push_back(one.make(c, resumes, folder));
  });
  return all;
}

template <class Value, class Gradient = Value, class Make> void try_grids(Make const& make) {
  for_seeds(6, [&](std::uint64_t seed) {
    script const s(seed);
    INFO(s.rows, " x ", s.columns);
    auto const want = performed<Value, Gradient>(s, make, 1, 1, false)[0];
    auto const got = performed<Value, Gradient>(s, make, s.rows, s.columns, true);
    for (std::size_t r = 0; r < got.size(); ++r) {
      INFO("rank ", r);
      REQUIRE(got[r].size() == want.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        INFO("call ", i, " of kind ", int(s.calls[i].what));
        REQUIRE(got[r][i].said == want[i].said);
        for (std::size_t k = 0; k < want[i].values.size(); ++k)
          if (int const column = s.column_of[k % s.sizes.size()]; column == int(r) % s.columns)
            REQUIRE(got[r][i].values[k] == want[i].values[k]);
      }
    }
  });
}

/// make(list, policies...) as a unique optimizer with the policies of ranks.
template <class Make> auto replicated(Make const& make) {
  return [make](auto const& list, auto& in_row, auto& in_column) {
    return make(list, ds::replicated{in_column, ds::ordered_sum{}}, ds::model_parallel{in_row});
  };
}
template <class Make> auto sharded(Make const& make) {
  return [make](auto const& list, auto& in_row, auto& in_column) {
    return make(list, ds::sharded{in_column, ds::ordered_sum{}}, ds::model_parallel{in_row});
  };
}
template <class List, class... Ps> auto optimizer_of(List const& list, Ps... policies) {
  return std::make_unique<decltype(ds::optimizer{list, policies...})>(list, policies...);
}

}  // namespace

TEST_CASE("grids resume from all that is saved: novograd, accumulated, averaged, with slow weights and noise") {
  try_grids<float>(replicated([](auto const& list, auto... ranks) {
    return optimizer_of(list, ds::novograd{.lr = 0.01}, ds::clip<ds::norm::l2, ds::scope::tensor>{0.5},
                        ds::ema{.decay = 0.9}, ds::accumulate{2}, ds::lookahead{.k = 2}, ds::gradient_noise{},
                        ranks...);
  }));
}

TEST_CASE("grids resume from all that is saved: adamw in half, with a loss scale, a master and a plateau") {
  try_grids<ds::half>(sharded([](auto const& list, auto... ranks) {
    return optimizer_of(list, ds::adamw{.lr = 0.01}, ds::master<float>{}, ds::stochastic_values{}, ds::clip_norm{1.0},
                        ds::on_plateau{{.patience = 2}}, ds::dynamic_loss_scale{.init = 16, .interval = 3, .max = 64},
                        ranks...);
  }));
}

TEST_CASE("grids resume from all that is saved: prodigy, clipped by group, with outer steps") {
  try_grids<float>(sharded([](auto const& list, auto... ranks) {
    return optimizer_of(list, ds::prodigy{.d0 = 1e-3}, ds::clip<ds::norm::inf, ds::scope::group>{0.5},
                        ds::outer{.every = 2}, ds::skip_nonfinite{}, ranks...);
  }));
}

TEST_CASE("grids resume from all that is saved: nadam and muon in bfloat16, clipped by tensor, with remainders") {
  try_grids<ds::bfloat16, float>(sharded([](auto const& list, auto... ranks) {
    return optimizer_of(list, ds::nadam{.lr = 0.01}, ds::matrices{ds::muon{.lr = 0.02}}, ds::master_remainder{},
                        ds::clip<ds::norm::l2, ds::scope::tensor>{0.5}, ranks...);
  }));
}
