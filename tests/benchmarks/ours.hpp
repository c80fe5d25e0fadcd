// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "contest.hpp"

#if defined(__CUDACC__)
#include "device.cuh"

#include <descent/descent.cuh>
#else
#include <descent/descent.hpp>
#endif
#if defined(BENCH_TBB)
#include <descent/backends/tbb.hpp>
#endif

/// The library as a contestant.
namespace bench {

namespace ds = descent;

#if defined(__CUDACC__)
template <class T> using numbers_here = device_numbers<T>;
inline ds::cuda backend() { return {stream()}; }
template <class T> double number_at(T const* p) { return double(float(from_device(p))); }
inline std::unique_ptr<contest> placed(std::unique_ptr<contest> of) {
  return std::make_unique<enqueued>(std::move(of), replays);
}
#else
#if defined(BENCH_TBB)
using system = ds::tbb;
#elif defined(BENCH_CPP)
using system = ds::cpp;
#else
using system = ds::default_system;
#endif
template <class T> using numbers_here = numbers<T>;
inline ds::host<system> backend() { return {}; }
template <class T> double number_at(T const* p) { return double(float(*p)); }
inline std::unique_ptr<contest> placed(std::unique_ptr<contest> of) { return of; }
#endif

template <class T> ds::parameters<T> named(numbers_here<T> const& n, int groups) {
  ds::parameters<T> params;
  for (std::size_t t = 0; t < n.of.tensors.size(); ++t) {
    auto const& x = n.of.tensors[t];
    params.add(std::to_string(t), n.values.get() + x.begin, n.gradients.get() + x.begin, x.count,
               ds::group{int(t % std::size_t(groups))});
  }
  return params;
}

/// A rule with policies; a gradient in memory is `scale` times the true one.
template <class T, class Rule, class... Policies> class ours : public contest {
  using optimizer = decltype(ds::optimizer{std::declval<ds::parameters<T>>(), std::declval<Rule>(),
                                           std::declval<Policies>()..., backend()});
  template <class P> static constexpr bool given = (std::is_same_v<P, Policies> || ...);
  static constexpr bool keeps_average = given<ds::ema>;
  static constexpr bool zeroes = given<ds::zero_grad>;
  static constexpr bool has_master = given<ds::master<float>>;

 public:
  ours(problem const& p, float scale, int groups, Rule const& rule, Policies... policies)
      : numbers_(p, scale), opt_{named(numbers_, groups), rule, policies..., backend()} {}

  void step() override { opt_.step(); }
  void refill() override {
    if constexpr (zeroes) numbers_.refill();
  }
  std::string streams() const override { return keeps_average ? "pwe" : has_master ? "pw" : "p"; }
  double read(char stream, std::int64_t tensor, std::int64_t i) const override {
    T const* const value = numbers_.values.get() + numbers_.of.tensors[std::size_t(tensor)].begin + i;
    std::string const name = std::to_string(tensor);
    if constexpr (keeps_average)
      if (stream == 'e') return number_at(opt_.average(name).data() + i);
    if constexpr (has_master)
      if (stream == 'p') return number_at(opt_.master(name).data() + i);
    return number_at(value);
  }
  std::int64_t extra_bytes() const override { return opt_.memory().bytes; }
  double step_bytes() const override { return opt_.bytes_per_parameter() * double(numbers_.of.elements); }

 private:
  numbers_here<T> numbers_;
  optimizer opt_;
};

template <class T, class Rule, class... Policies>
maker make(float scale, int groups, Rule const& rule, Policies const&... policies) {
  return [=](problem const& p) -> std::unique_ptr<contest> {
    return placed(std::make_unique<ours<T, Rule, Policies...>>(p, scale, groups, rule, policies...));
  };
}

}  // namespace bench
