// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// Every kernel of every rule, with what can stand around it: all of it compiles.
#include <descent/descent.cuh>

namespace ds = descent;
namespace detail = descent::detail;

template <class Plan>
void reach(detail::device_view<Plan> const& v, typename Plan::policies const& policies) {
  auto const go = [](auto kernel, auto const&... arguments) {
    detail::launch(kernel, 1, 1, nullptr, arguments...);
  };
  go(detail::each_packet<detail::start_packets<Plan>>, detail::start_packets<Plan>{v});
  go(detail::each_packet<detail::zero_packets<Plan>>, detail::zero_packets<Plan>{v});
  go(detail::each_packet<detail::update_packets<Plan>>, detail::update_packets<Plan>{v});
  go(detail::set_step_groups<Plan>, v, policies, detail::group_batch<typename Plan::rule>{});
  if constexpr (Plan::norm_first) {
    go(detail::measure_chunks<Plan, detail::measure::norm>, v);
    go(detail::decide_step<Plan>, v, policies);
    go(detail::measure_chunks<Plan, detail::measure::sums>, v);
    go(detail::find_step_terms<Plan>, v, policies);
  } else {
    constexpr auto what = Plan::sums ? detail::measure::norm_and_sums : detail::measure::norm;
    if constexpr (Plan::measures) go(detail::measure_chunks<Plan, what>, v);
    go(detail::control_step<Plan>, v, policies);
  }
}

#define REACH(...)                                                             \
  template void reach(detail::device_view<detail::plan<__VA_ARGS__>> const& v, \
                      detail::plan<__VA_ARGS__>::policies const& policies);
using schedule = ds::warmup<ds::cosine>;
using rate = decltype(ds::learning_rate(schedule{}));

REACH(float, float, ds::sgd)
REACH(ds::half, ds::half, ds::sgd, ds::skip_nonfinite, ds::states<ds::half>)
REACH(float, float, ds::adam, ds::clip_norm, rate)
REACH(ds::half, float, ds::adam, ds::states<ds::half, ds::bfloat16>)
REACH(float, ds::bfloat16, ds::adamw, ds::clip_norm, ds::master<double>)
REACH(double, double, ds::adamw, ds::skip_nonfinite)
REACH(ds::bfloat16, ds::half, ds::lion, ds::skip_nonfinite, ds::states<ds::bfloat16>)
REACH(ds::half, ds::half, ds::rmsprop, ds::clip_norm, ds::master<float>)
REACH(ds::half, ds::half, ds::lars, ds::master<float>, rate)
REACH(float, float, ds::lars, ds::clip_norm)
REACH(ds::bfloat16, ds::bfloat16, ds::lamb, ds::clip_norm, ds::master<float>,
      ds::states<ds::bfloat16>)
REACH(float, float, ds::lamb)
REACH(float, float, ds::dog)
REACH(ds::half, ds::half, ds::dog, ds::clip_norm, ds::master<float>, ds::states<ds::half>)
