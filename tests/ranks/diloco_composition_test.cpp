// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Random calls on ranks that train apart and meet with diloco, beside averages, slow weights, masters, frozen groups.
// The same calls are made twice: once as they are, and once by ranks whose memory moves, that look at averages, are
// given calls that are refused, and are saved and restored. Both have the same bits after every call, and every
// meeting does what the algorithm says in double.
#include <descent/io/checkpoint.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/training/diloco.hpp>

#include <doctest/doctest.h>
#include "support/larger.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"
#include "support/twin.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds = descent;
using namespace test;

namespace {

struct call {
  enum kind { update, freeze, rate, kinds } what;
  int group, phase;
  double number;
  int spoiled;  // the rank whose gradients are not finite, or -1
};

struct script {
  int ranks;
  std::optional<sizes_and_places> where;
  ds::outer how;
  std::vector<call> calls;

  explicit script(std::uint64_t seed) {
    random_numbers random(seed);
    ranks = 1 + random.below(3);
    where.emplace(random);
    how = {.every = 1 + random.below(3), .lr = random.between(0.3, 1), .momentum = random.one_in(3) ? 0 : 0.75};
    for (int i = 0; i < 20; ++i) {
      int const what = random.below(2 * call::kinds);
      calls.push_back({what < call::kinds ? call::kind(what) : call::update, random.below(2), random.below(1000),
                       random.between(0.5, 1), random.one_in(8) ? random.below(ranks) : -1});
    }
  }
};

using numbers = std::vector<std::vector<double>>;
template <class All> std::vector<double> widened(All const& x) {
  std::vector<double> all;
  for (auto const& one : x) all.push_back(ds::widen<double>(one));
  return all;
}

/// What a rank had at a meeting: its parameters before and after, and whether group 0 or 1 was frozen.
struct meeting {
  numbers before, after;
  bool frozen[2];
};

/// One rank. make(list) returns its optimizer, and parameter(opt, name, view) what the optimizer has reached.
template <class Value, class Make, class Parameter> class learner {
  using comm_type = ds::comm::threads::member;
  using optimizer = decltype(std::declval<Make const&>()(std::declval<ds::parameters<Value> const&>()));
  using outer = decltype(ds::diloco{std::declval<ds::parameters<Value>>(), ds::outer{},
                                    ds::replicated{std::declval<comm_type&>(), ds::ordered_sum{}}});

 public:
  learner(script const& s, comm_type& comm, Make const& make, Parameter const& parameter, std::uint64_t seed)
      : s_(s), comm_(comm), make_(make), parameter_(parameter), random_(seed) {
    move_in(std::vector<std::vector<Value>>(s.where->sizes.size()));
    for (std::size_t k = 0; k < sizes(); ++k)
      for (std::size_t i = 0; i < size(k); ++i)
        value(k)[i] = ds::narrow<Value>(std::sin(double(17 * k + 3 * i + 1) + comm.rank()));
    start();
  }

  void make(call const& c) {
    switch (c.what) {
      case call::freeze: return opt_->freeze(c.group, frozen_[c.group] = !frozen_[c.group]);
      case call::rate: opt_->group(c.group).lr = 0.05 * c.number; return;
      default: break;
    }
    for (std::size_t k = 0; k < sizes(); ++k)
      for (std::size_t i = 0; i < size(k); ++i) {
        bool const bad = c.spoiled == comm_.rank() && i == 0;
        double const slope = std::cos(c.phase + double(5 * k + i) + 1.7 * comm_.rank());
        gradient(k)[i] = ds::narrow<Value>(bad ? double(INFINITY) : slope + 0.5 * ds::widen<double>(value(k)[i]));
      }
    opt_->step();
    numbers const before = parameters();
    if (global_->step(*opt_)) meetings.push_back({before, parameters(), {frozen_[0], frozen_[1]}});
  }

  /// What leaves no trace and no other rank notices.
  void disturb() {
    auto const refuses = [&](auto& opt) {
      int const steps = global_->steps();
      if (!refused<std::logic_error>([&] { global_->step(opt); }) || global_->steps() != steps)
        throw std::runtime_error("diloco::step() was not refused");
    };
    switch (random_.below(4)) {
      case 0: {  // to other memory; what is left behind keeps its bits
        left_.push_back(std::move(values_)), left_.push_back(std::move(gradients_));
        move_in(left_[left_.size() - 2]);
        opt_->rebind(list());
        kept_.push_back(bytes_of_all(left_[left_.size() - 2])), kept_.push_back(bytes_of_all(left_.back()));
        break;
      }
      case 1:
        opt_->swap_average();
        refuses(*opt_);
        opt_->swap_average();
        break;
      case 2: {
        std::vector<Value> more(3), slopes(3);
        auto all = list();
        all.add("one more", more.data(), slopes.data(), 3);
        auto other = make_(all);
        refuses(other);
        break;
      }
      default: opt_->explain(), opt_->report(), global_->optimizer_of_slow().report();
    }
  }

  /// Goes on in a new diloco and optimizer, from files. Called by all ranks.
  void resume(std::string const& folder) {
    std::string const own = folder + "/" + std::to_string(comm_.rank()), slow = folder + "/slow";
    int const steps = global_->steps();
    ds::save_file(own, *opt_);
    ds::save_file(slow, global_->optimizer_of_slow());
    start();
    ds::load_file(own, *opt_);
    ds::load_file(slow, global_->optimizer_of_slow());
    global_->set_steps(steps);
  }

  bool kept_what_it_left() const {
    for (std::size_t i = 0; i < left_.size(); ++i)
      if (bytes_of_all(left_[i]) != kept_[i]) return false;
    return true;
  }
  bytes now() const {
    bytes all;
    for (std::size_t k = 0; k < sizes(); ++k) {
      bytes const one = bytes_of(std::span(value(k), size(k)));
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  numbers parameters() const {
    numbers all;
    for (std::size_t k = 0; k < sizes(); ++k)
      all.push_back(widened(parameter_(*opt_, "w" + std::to_string(k), std::span<Value const>(value(k), size(k)))));
    return all;
  }

  std::vector<meeting> meetings;

 private:
  std::size_t sizes() const { return s_.where->sizes.size(); }
  std::size_t size(std::size_t k) const { return s_.where->sizes[k]; }
  Value* value(std::size_t k) { return values_[k].data() + s_.where->behind[k]; }
  Value const* value(std::size_t k) const { return values_[k].data() + s_.where->behind[k]; }
  Value* gradient(std::size_t k) { return gradients_[k].data() + s_.where->behind[k]; }
  static bytes bytes_of_all(std::vector<std::vector<Value>> const& x) {
    bytes all;
    for (auto const& v : x) {
      bytes const one = bytes_of(v);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  void move_in(std::vector<std::vector<Value>> const& from) {
    values_.clear(), gradients_.clear();
    for (std::size_t k = 0; k < sizes(); ++k) {
      values_.push_back(from[k]), gradients_.emplace_back(size(k) + s_.where->behind[k]);
      values_.back().resize(gradients_.back().size());
    }
  }
  ds::parameters<Value> list() {
    ds::parameters<Value> all;
    for (std::size_t k = 0; k < sizes(); ++k)
      all.add("w" + std::to_string(k), value(k), gradient(k), size(k), ds::group{int(k % 2)});
    return all;
  }
  void start() {
    opt_.reset(), global_.reset();
    global_ = std::make_unique<outer>(list(), s_.how, ds::replicated{comm_, ds::ordered_sum{}});
    opt_ = std::make_unique<optimizer>(make_(list()));
  }

  script const& s_;
  comm_type& comm_;
  Make const& make_;
  Parameter const& parameter_;
  random_numbers random_;
  std::vector<std::vector<Value>> values_, gradients_;
  std::vector<std::vector<std::vector<Value>>> left_;
  std::vector<bytes> kept_;
  std::unique_ptr<outer> global_;
  std::unique_ptr<optimizer> opt_;
  bool frozen_[2] = {};
};

/// What each rank had after each call, and its meetings.
struct outcome {
  std::vector<std::vector<bytes>> log;
  std::vector<numbers> start;
  std::vector<std::vector<meeting>> meetings;
  std::vector<std::string> thrown;
};

template <class Value, class Make, class Parameter>
outcome perform(script const& s, std::uint64_t seed, Make const& make, Parameter const& parameter, bool disturbed) {
  auto const n = std::size_t(s.ranks);
  outcome all{std::vector<std::vector<bytes>>(n), std::vector<numbers>(n), std::vector<std::vector<meeting>>(n), {}};
  temporary_folder const folder;
  ds::comm::threads world{s.ranks, std::chrono::seconds(60)};
  all.thrown = ranks::on_ranks(world, [&](auto& comm) {
    auto const r = std::size_t(comm.rank());
    random_numbers together(seed), apart(seed * 31 + r);
    learner<Value, Make, Parameter> self(s, comm, make, parameter, seed * 17 + r);
    all.start[r] = self.parameters();
    for (call const& c : s.calls) {
      if (disturbed && together.one_in(5)) self.resume(folder / ".");
      if (disturbed && apart.one_in(2)) self.disturb();
      self.make(c);
      all.log[r].push_back(self.now());
    }
    all.meetings[r] = self.meetings;
    if (!self.kept_what_it_left()) throw std::runtime_error("memory that was left behind has changed");
  });
  return all;
}

/// The largest distance of what the ranks had after their meetings from the algorithm in double.
double off_the_algorithm(script const& s, outcome const& all) {
  numbers slow = all.start[0], momentum = slow;
  for (auto& tensor : momentum) tensor.assign(tensor.size(), 0);
  double most = 0;
  for (auto const& start : all.start)
    for (std::size_t k = 0; k < slow.size(); ++k)
      if (start[k] != slow[k]) return INFINITY;
  for (std::size_t m = 0; m < all.meetings[0].size(); ++m)
    for (std::size_t k = 0; k < slow.size(); ++k)
      for (std::size_t i = 0; i < slow[k].size(); ++i) {
        bool const frozen = all.meetings[0][m].frozen[k % 2];
        double d = 0;
        for (auto const& rank : all.meetings) d += (slow[k][i] - rank[m].before[k][i]) / s.ranks;
        if (!frozen) {
          momentum[k][i] = s.how.momentum * momentum[k][i] + d;
          slow[k][i] -= s.how.lr * (d + s.how.momentum * momentum[k][i]);
        }
        for (auto const& rank : all.meetings)
          most = larger(most, std::abs(rank[m].after[k][i] - (frozen ? rank[m].before[k][i] : slow[k][i])));
      }
  return most;
}

template <class Value, class Make, class Parameter> void try_seeds(Make const& make, Parameter const& parameter) {
  for_seeds(12, [&](std::uint64_t seed) {
    script const s(seed);
    CAPTURE(s.ranks);
    outcome const want = perform<Value>(s, seed, make, parameter, false);
    outcome const got = perform<Value>(s, seed, make, parameter, true);
    for (auto const* one : {&want, &got})
      for (auto const& thrown : one->thrown) REQUIRE(thrown == "");
    CHECK(off_the_algorithm(s, want) < 1e-5);
    for (std::size_t r = 0; r < want.log.size(); ++r)
      for (std::size_t i = 0; i < s.calls.size(); ++i) {
        CAPTURE(r);
        CAPTURE(i);
        REQUIRE(want.log[r][i] == got.log[r][i]);
      }
  });
}

}  // namespace

TEST_CASE("ranks that rarely communicate: interruptions leave no trace, outer steps follow the algorithm: in float") {
  try_seeds<float>(
      [](auto const& list) {
        return ds::optimizer{list, ds::sgd{.lr = 0.02, .momentum = 0.5}, ds::skip_nonfinite{}, ds::ema{.decay = 0.9},
                             ds::lookahead{.k = 2}};
      },
      [](auto const&, std::string const&, auto const& values) { return values; });
}

TEST_CASE("ranks that rarely communicate: interruptions leave no trace, outer steps follow the algorithm: masters") {
  try_seeds<ds::half>(
      [](auto const& list) {
        return ds::optimizer{list, ds::adamw{.lr = 0.02}, ds::skip_nonfinite{}, ds::master<float>{}, ds::swa{},
                             ds::ema_nesterov{.momentum = 0.5}};
      },
      [](auto const& opt, std::string const& name, auto const&) { return opt.slow(name); });
}
