// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Each field of each policy and schedule shows in what ranks compare, in the fingerprint of a file, which has the same
// facts, and in explain(). What does not stands in a list, with the reason.
#include <descent/descent.hpp>
#include <descent/engine/step/explain.hpp>
#include <descent/matrices/matrices.hpp>
#include <descent/ranks/detail/agreement.hpp>
#include <descent/rules/muon.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace ds = descent;

namespace {

std::set<std::string> seen;

struct slope {
  double by = 1;
  DESCENT_HD double operator()(double x) const { return by * x; }
};

template <class P> std::vector<std::string> facts_of(P const& policy) {
  std::vector<std::string> facts;
  ds::detail::add_policy_facts(facts, policy);
  return facts;
}
template <class T> void change(T& x) {
  if constexpr (std::is_same_v<T, bool>) x = !x;
  else if constexpr (std::is_enum_v<T>) x = T(int(x) == 0);
  else x = x == T(1) ? T(2) : T(1);
}

/// Changes one field after the other.
template <class P> void shows_fields(P policy) {
  static_assert(ds::detail::has_named_settings<P>());
  std::string const name = ds::detail::rule_name<P>();
  seen.insert(name == "clip_norm" ? "clip" : name);
  int fields = 0;
  ds::detail::each_setting(policy, "", [&](auto const&, auto&) { ++fields; });
  CHECK(fields > 0);
  for (int chosen = 0; chosen < fields; ++chosen) {
    P other = policy;
    int number = 0;
    ds::detail::each_setting(other, "", [&](std::string const& field, auto& x) {
      if (number++ != chosen) return;
      CAPTURE(name + ": " + field);
      change(x);
      CHECK(facts_of(other) != facts_of(policy));
      CHECK(ds::detail::explain_policy(other) != ds::detail::explain_policy(policy));
    });
  }
}
template <class... S> void shows_schedules(S const&... schedules) {
  (seen.insert(ds::detail::rule_name<S>()), ...);
  (shows_fields(ds::learning_rate(schedules)), ...);
}
template <class... S> void has_hidden_fields() {
  static_assert((!ds::detail::has_named_settings<S>() && ...));
  (seen.insert(ds::detail::rule_name<S>()), ...);
}

/// The classes in these folders with a line that has this text.
std::set<std::string> classes_with(std::vector<std::string> const& folders, std::string const& mark) {
  std::set<std::string> found;
  for (auto const& folder : folders)
    for (auto const& file : std::filesystem::directory_iterator(test::tests_dir() + "/../include/descent/" + folder)) {
      if (!file.is_regular_file()) continue;
      std::ifstream in(file.path());
      std::string line, last;
      std::smatch match;
      while (std::getline(in, line)) {
        if (std::regex_search(line, match, std::regex("(?:struct|class) (\\w+)(?: : .*)? \\{"))) last = match[1];
        if (line.find(mark) != std::string::npos) found.insert(last);
      }
    }
  return found;
}

class hidden {
 public:
  DESCENT_HD double operator()(std::int64_t) const { return value_; }

 private:
  double value_ = 1;
};

struct begins_with_reference {
  int& where;
  double lr = 1;
};
static_assert(!ds::detail::has_named_settings<begins_with_reference>());

}  // namespace

TEST_CASE("policies: each field is compared by ranks and by files, and is in explain()") {
  ds::constant const one{1};
  shows_fields(ds::clip_norm{});
  shows_fields(ds::clip_adaptive{});
  shows_fields(ds::clip_value{});
  shows_fields(ds::cautious_decay{});
  shows_fields(ds::gradient_noise{});
  shows_fields(ds::sam{});
  shows_fields(ds::accumulate{});
  shows_fields(ds::accumulate_by{one});
  shows_fields(ds::ema{});
  shows_fields(ds::swa{});
  shows_fields(ds::lookahead{});
  shows_fields(ds::outer{});
  shows_fields(ds::ema_nesterov{});
  shows_fields(ds::dynamic_loss_scale{});
  shows_fields(ds::static_loss_scale{});
  shows_fields(ds::stochastic_rounding{});
  shows_fields(ds::stochastic_values{});
  shows_fields(ds::on_plateau{});
  shows_fields(ds::learning_rate(one));
  shows_fields(ds::scale_learning_rate(one));
  shows_fields(ds::vary<&ds::sgd::momentum>(one));
  shows_fields(ds::scale<&ds::sgd::momentum>(one));
  ds::matrices routed{ds::muon{}}, other = routed;
  other.only = 1;
  CHECK(facts_of(other) != facts_of(routed));
  CHECK(ds::detail::explain_policy(other) != ds::detail::explain_policy(routed));
  other = routed, other.at_once = 2;
  CHECK(facts_of(other) != facts_of(routed));
  CHECK(ds::detail::explain_policy(other) != ds::detail::explain_policy(routed));
  seen.insert("matrices");
  for (auto const& name : {
           "skip_nonfinite", "gradient_ahead", "maximize", "nvtx_ranges", "zero_grad",  // have no fields
           "master", "master_remainder", "states", "masked_rows",        // only types, which ranks and files compare
           "gradient_factor_at", "loss_at", "shared_loss_scale",         // pointers: each rank has its own
           "memory_from", "state_in", "cuda", "host", "single",          // where, not what is computed
           "parallel_policy", "model_parallel",                          // need ranks: see tests/ranks
       })
    seen.insert(name);
  for (auto const& name :
       classes_with({"policies", "schedules", "training", "matrices", "backends", "ranks"}, "using policy_kind ="))
    CHECK_MESSAGE(seen.contains(name), name);
}

TEST_CASE("schedules: each field is compared by ranks and by files, and is in explain()") {
  using ds::constant;
  shows_schedules(constant{1}, ds::cosine{}, ds::cosine_restarts{}, ds::cyclic{}, ds::cyclic_momentum{},
                  ds::cyclical_decay{}, ds::exponential{}, ds::interval_decay{}, ds::inverse_sqrt{}, ds::inverse_time{},
                  ds::linear{}, ds::multi_step<2>{}, ds::noam{}, ds::one_cycle{}, ds::one_cycle_momentum{},
                  ds::piecewise_constant<2>{}, ds::piecewise_interpolated<2>{}, ds::polynomial{}, ds::step{},
                  ds::table<3>{}, ds::wsd{});
  shows_schedules(ds::warmup<constant>{}, ds::scaled<constant>{}, ds::clamped<constant>{}, ds::delayed<constant>{},
                  ds::per_epoch<constant>{}, ds::fractional_epochs<slope>{}, ds::swa_rate<constant>{});
  shows_schedules(ds::join{{5}, constant{1}, ds::linear{}}, ds::chained{constant{1}, ds::linear{}},
                  ds::per_group{constant{1}, ds::linear{}}, ds::table_schedule<2>{{0, 1}, {5, 2}});
  using any = ds::any_of<constant, ds::linear>;
  seen.insert("any_of");
  std::set<std::string> texts;
  for (any const& one : {any(constant{1}), any(constant{2}), any(ds::linear{}), any(ds::linear{.to = 1})}) {
    CHECK(texts.insert(ds::detail::explain_policy(ds::learning_rate(one))).second);
    std::string facts;
    for (auto const& fact : facts_of(ds::learning_rate(one))) facts += fact;
    CHECK(texts.insert(facts).second);
  }
  // A schedule that hides its fields hides those of what it is in. Ranks compare its values at some updates.
  has_hidden_fields<hidden, ds::join<constant, hidden>, ds::any_of<constant, hidden>>();
  CHECK(ds::detail::explain_policy(ds::learning_rate(ds::chained{constant{1}, hidden{}})) ==
        "schedule of lr, chained<constant, hidden>: factors.0.value 1, fields that cannot be read");
  for (auto const& name : classes_with({"schedules"}, "DESCENT_HD double operator()(std::int64_t"))
    CHECK_MESSAGE(seen.contains(name), name);
}
