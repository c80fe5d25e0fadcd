// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>

#include <doctest/doctest.h>

#include "support/larger.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Counters of a simulated CUDA device; null on a real one.
extern "C" {
[[gnu::weak]] void cudasim_reset_counters();
[[gnu::weak]] std::uint64_t cudasim_count(char const* what);
[[gnu::weak]] std::uint64_t cudasim_traffic(void const* pointer, int writes);
}

/// What the tests of the CUDA backend share: streams, memory, and optimizers that run side by side on host and device.
namespace test {

namespace ds = descent;

/// Host and device agree bit for bit where the device does not contract a * b + c (nvcc -fmad=false); otherwise, with
/// DESCENT_CONTRACTED defined, within 4 ulp of the largest element.
#if defined(DESCENT_CONTRACTED)
inline constexpr bool contracted = true;
#else
inline constexpr bool contracted = false;
#endif

inline bool in_software() { return cudasim_count != nullptr; }

/// Whether kernels cannot reach memory of malloc: the system does not page it in for them. False without a device.
inline bool host_memory_is_out_of_reach() {
  int pageable = 0;
  return cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, 0) == cudaSuccess && !pageable;
}

/// The number of launches that f makes.
template <class F> std::int64_t launches(F const& f) {
  auto const before = ds::detail::launches;
  f();
  return ds::detail::launches - before;
}

inline void cuda(cudaError_t code) {
  if (code != cudaSuccess) FAIL(std::string(cudaGetErrorName(code)));
}

/// A stream that the default stream does not wait for.
class stream {
 public:
  stream() { cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~stream() { cudaStreamDestroy(stream_); }
  stream(stream const&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { cuda(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_;
};

/// What the stream gets between begin and end of a capture.
class graph {
 public:
  template <class F> graph(stream const& s, F const& enqueue) {
    cuda(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    enqueue();
    cudaGraph_t recorded;
    cuda(cudaStreamEndCapture(s, &recorded));
    cuda(cudaGraphGetNodes(recorded, nullptr, &nodes));
    cuda(cudaGraphInstantiate(&exec_, recorded, 0));
    cuda(cudaGraphDestroy(recorded));
  }
  ~graph() { cudaGraphExecDestroy(exec_); }
  graph(graph const&) = delete;
  void launch(stream const& s) const { cuda(cudaGraphLaunch(exec_, s)); }

  std::size_t nodes = 0;

 private:
  cudaGraphExec_t exec_;
};

/// Copies of the results of all kernels enqueued so far.
template <class T> std::vector<T> from_device(T const* p, std::size_t count, stream const& s) {
  std::vector<T> host(count);
  cuda(cudaMemcpyAsync(host.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost, s));
  s.wait();
  return host;
}

template <class T> class device_vector {
 public:
  device_vector(std::vector<T> const& host, stream const& s) : size_(host.size()) {
    cuda(cudaMalloc(&data_, size_ * sizeof(T)));
    put(host, s);
  }
  ~device_vector() { cudaFree(data_); }
  device_vector(device_vector const&) = delete;

  T* data() const { return data_; }
  void put(std::vector<T> const& host, stream const& s) {
    cuda(cudaMemcpyAsync(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice, s));
  }
  std::vector<T> get(stream const& s) const { return from_device(data_, size_, s); }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

/// A number in [-1, 1), from a hash.
inline float noise(std::uint64_t i, std::uint64_t seed) {
  std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 31)) * 0x94d049bb133111ebu;
  return float(std::int32_t(x >> 32)) * 0x1p-31f;
}

template <class T> double number(T x) { return descent::widen<double>(x); }

template <class T> bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Bits of the significand.
template <class T>
inline constexpr int digits = std::is_same_v<T, double>     ? 53
                              : std::is_same_v<T, float>    ? 24
                              : std::is_same_v<T, ds::half> ? 11
                                                            : 8;

/// Expects equal bits or, if `contracted`, a difference within 4 ulp of the largest element in a type with this number
/// of bits: a state that rounds the other way affects everything computed from it.
template <class T>
void expect_same(std::vector<T> const& host, std::vector<T> const& device, std::string const& what,
                 int bits = digits<T>) {
  REQUIRE(host.size() == device.size());
  double largest = 0;
  for (T const x : host) largest = std::max(largest, std::abs(number(x)));
  double const tolerance = contracted ? 4 * std::ldexp(1.0, std::ilogb(largest) + 1 - bits) : 0;
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = host.size(); i-- > 0;)
    if (std::memcmp(&host[i], &device[i], sizeof(T)) != 0 &&
        !(std::abs(number(host[i]) - number(device[i])) <= tolerance && tolerance > 0))
      ++wrong, first = i;
  INFO(what, ": ", wrong, " of ", host.size(), " differ; element ", first, " is ",
       host.empty() ? 0 : number(host[first]), " on the host, ", device.empty() ? 0 : number(device[first]),
       " on the device");
  CHECK(wrong == 0);
}

/// The same for a number of a report.
inline void expect_same(double host, double device, std::string const& what, bool exact = !contracted) {
  INFO(what, ": ", host, " on the host, ", device, " on the device");
  bool const close = !exact && std::abs(host - device) <= 1e-14 * std::abs(host);
  bool const no_numbers = std::isnan(host) && std::isnan(device);  // any bits of NaN
  CHECK((std::memcmp(&host, &device, sizeof host) == 0 || close || no_numbers));
}
inline void expect_same(ds::step_report const& a, ds::step_report const& b, bool exact = !contracted) {
  CHECK(a.step == b.step);
  CHECK(a.skipped == b.skipped);
  CHECK(a.applied == b.applied);
  CHECK(a.why == b.why);
  CHECK(a.loss_scale == b.loss_scale);
  expect_same(a.learning_rate, b.learning_rate, "learning rate", exact);
  expect_same(a.clip_factor, b.clip_factor, "clip factor", exact);
  expect_same(a.grad_norm, b.grad_norm, "norm", exact);
}

/// One tensor: its size, its group, the offset of its memory from a multiple of 16 elements, and the length of its rows
/// if it has a shape.
struct tensor {
  std::int64_t count;
  int group = 0, value_shift = 0, gradient_shift = 0;
  std::int64_t columns = 0;
};

/// Values and gradients of several tensors, on the host and on the device, between guards that must not change.
template <class Value, class Gradient = Value> class tensors {
  std::vector<std::size_t> value_at_, gradient_at_;

 public:
  std::vector<tensor> list;
  std::vector<Value> value;
  std::vector<Gradient> gradient;
  stream const& s;
  device_vector<Value> device_value;
  device_vector<Gradient> device_gradient;

  tensors(std::vector<tensor> where, stream const& on)
      : list(std::move(where)), value(lay_out<Value>(&tensor::value_shift, value_at_)),
        gradient(lay_out<Gradient>(&tensor::gradient_shift, gradient_at_)), s(on), device_value(fill_values(), s),
        device_gradient(gradient, s) {}

  static std::string name(std::size_t t) { return "w" + std::to_string(t); }
  ds::parameters<Value, Gradient> on_host() { return views(value.data(), gradient.data()); }
  ds::parameters<Value, Gradient> on_device() { return views(device_value.data(), device_gradient.data()); }

  /// Where an element is in `value`, and on the device.
  std::size_t place(std::size_t t, std::int64_t i) const { return value_at_[t] + std::size_t(i); }
  Value& value_of(std::size_t t, std::int64_t i) { return value[place(t, i)]; }
  Gradient& gradient_of(std::size_t t, std::int64_t i) { return gradient[gradient_at_[t] + std::size_t(i)]; }

  /// Sets the host's gradients for step t; does not send them yet.
  void new_gradients(std::uint64_t t) {
    each([&](std::size_t k, std::int64_t i) {
      gradient_of(k, i) = Gradient(noise(gradient_at_[k] + std::size_t(i), t));
    });
  }
  void send_gradients() { device_gradient.put(gradient, s); }

  /// Calls f(tensor, element) for all.
  template <class F> void each(F const& f) const {
    for (std::size_t k = 0; k < list.size(); ++k)
      for (std::int64_t i = 0; i < list[k].count; ++i) f(k, i);
  }

  /// The largest difference between a value on the host and on the device; NaN if one of them is NaN.
  double furthest() const {
    auto const device = device_value.get(s);
    double worst = 0;
    for (std::size_t i = 0; i < device.size(); ++i)
      worst = larger(worst, std::abs(number(device[i]) - number(value[i])));
    return worst;
  }

  /// Expects the same values, gradients and guards on host and device, and guards that have not changed.
  void expect_same(int bits = digits<Value>) {
    test::expect_same(value, device_value.get(s), "value", bits);
    test::expect_same(gradient, device_gradient.get(s), "gradient");
    auto v = value;
    auto g = gradient;
    for (std::size_t k = 0; k < list.size(); ++k) {
      std::fill_n(v.begin() + std::ptrdiff_t(value_at_[k]), list[k].count, Value(guard));
      std::fill_n(g.begin() + std::ptrdiff_t(gradient_at_[k]), list[k].count, Gradient(guard));
    }
    CHECK(std::all_of(v.begin(), v.end(), [](Value x) { return number(x) == guard; }));
    CHECK(std::all_of(g.begin(), g.end(), [](Gradient x) { return number(x) == guard; }));
  }

 private:
  static constexpr float guard = -77;

  template <class T> std::vector<T> lay_out(int tensor::* shift, std::vector<std::size_t>& at) {
    std::size_t end = 16;
    for (tensor const& t : list) {
      at.push_back(end + std::size_t(t.*shift));
      end = (at.back() + std::size_t(t.count) + 8 + 15) / 16 * 16;
    }
    return std::vector<T>(end, T(guard));
  }

  std::vector<Value> const& fill_values() {
    each([&](std::size_t k, std::int64_t i) {
      float const x = noise(place(k, i), 0);
      value_of(k, i) = Value(std::copysign(0.5f, x) + x);
    });
    new_gradients(1);
    return value;
  }

  ds::parameters<Value, Gradient> views(Value* v, Gradient* g) {
    ds::parameters<Value, Gradient> p;
    for (std::size_t k = 0; k < list.size(); ++k) {
      auto const add = [&](auto size) {
        p.add(name(k), v + value_at_[k], g + gradient_at_[k], size, ds::group{list[k].group});
      };
      if (std::int64_t const columns = list[k].columns) add(ds::shape{list[k].count / columns, columns});
      else add(list[k].count);
    }
    return p;
  }
};

/// Calls f(view of a's, view of b's, its name) for everything that two optimizers of a plan own for a tensor.
template <class Plan, class A, class B, class F>
void each_owned(A& a, B& b, std::string const& name, F const& f) {
  if constexpr (Plan::has_master) f(a.master(name), b.master(name), "master");
  if constexpr (Plan::has_remainder) f(a.remainder(name), b.remainder(name), "remainder");
  if constexpr (ds::detail::has<Plan, ds::kind::average>) f(a.average(name), b.average(name), "average");
  if constexpr (ds::detail::has<Plan, ds::kind::lookahead>) f(a.slow(name), b.slow(name), "slow weights");
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f(a.template state<I>(name), b.template state<I>(name), "a state"), ...);
  }(typename Plan::every_slot{});
}

/// The same optimizer on host and device, and its tensors.
template <class Value, class Gradient, class Rule, class... Ps> class twins {
  using plan = ds::detail::plan<Value, Gradient, Rule, Ps...>;

  /// Digits of the narrowest type in which values, masters or states are stored, or random numbers are drawn.
  template <std::size_t... I> static constexpr int fewest_digits(std::index_sequence<I...>) {
    constexpr bool draws = ds::detail::has<plan, ds::kind::noise> || ds::takes_normal<Rule>;
    return std::min({digits<Value>, digits<typename plan::master_or_value>, draws ? digits<float> : digits<double>,
                     digits<typename plan::template slot<I>>...});
  }
  static constexpr int bits = fewest_digits(typename plan::every_slot{});

 public:
  stream s;
  tensors<Value, Gradient> x;
  ds::optimizer<Value, Gradient, Rule, Ps...> host;
  ds::optimizer<Value, Gradient, Rule, Ps..., ds::cuda> device;

  twins(std::vector<tensor> const& list, Rule rule, Ps... policies)
      : x(list, s), host(x.on_host(), rule, policies...), device(x.on_device(), rule, policies..., ds::cuda{s}) {}

  /// Does the same with both.
  template <class F> void each(F const& f) { f(host), f(device); }

  /// One step of both with the host's current gradients.
  void step(double weight = 1) {
    x.send_gradients();
    each([&](auto& opt) { opt.step(weight); });
  }
  void steps(int count) {
    for (int t = 1; t <= count; ++t) x.new_gradients(std::uint64_t(t)), step();
  }

  /// Expects the same values, owned memory and reports.
  void expect_same() {
    x.expect_same(bits);
    auto const on_host = host.report();
    auto on_device = device.report();
    if constexpr (contracted && plan::measures_parameters) {  // norms of values with different bits
      CHECK(on_device.clip_factor == doctest::Approx(on_host.clip_factor).epsilon(0x1p-20));
      on_device.clip_factor = on_host.clip_factor;
    }
    test::expect_same(on_host, on_device);
    std::size_t const all = x.list.size(), stride = all / 50 + 1;
    for (std::size_t k = 0; k < all; k += stride)
      each_owned<plan>(host, device, x.name(k), [&](auto h, auto d, std::string const& what) {
        using element = std::remove_const_t<typename decltype(h)::element_type>;
        std::vector<element> const on_host(h.begin(), h.end()), on_device = from_device(d.data(), d.size(), s);
        if constexpr (!std::is_integral_v<element>) test::expect_same(on_host, on_device, what, bits);
        else if (!contracted) CHECK(on_host == on_device);
      });
  }
};
/// Twins whose values and gradients have these types.
template <class Value, class Gradient = Value, class Rule, class... Ps>
twins<Value, Gradient, Rule, Ps...> twins_of(std::vector<tensor> const& list, Rule rule, Ps... policies) {
  return {list, rule, policies...};
}

/// Expects that three steps give the same on the device as on the host.
template <class Value, class Gradient = Value, class Rule, class... Ps>
void same_on_device(std::vector<tensor> const& list, Rule rule, Ps... policies) {
  auto both = twins_of<Value, Gradient>(list, rule, policies...);
  both.steps(3);
  both.expect_same();
}

/// Two equal optimizers on the device: one runs call(optimizer), the other replays the capture of such a call.
template <class Value, class Call, class Rule, class... Ps> class replayed {
  using optimizer = ds::optimizer<Value, Value, Rule, Ps..., ds::cuda>;
  Call call_;

 public:
  stream s;
  tensors<Value> x, y;
  optimizer eager, captured;
  graph recorded;

  replayed(std::vector<tensor> const& list, Call const& call, Rule rule, Ps... policies)
      : call_(call), x(list, s), y(list, s), eager(x.on_device(), rule, policies..., ds::cuda{s}),
        captured(y.on_device(), rule, policies..., ds::cuda{s}), recorded(s, [&] { call(captured); }) {}

  /// Sends gradients of step t to both, with one `bad` element if given.
  void send(std::uint64_t t, float bad = 0) {
    for (auto* data : {&x, &y}) {
      data->new_gradients(t);
      if (bad != 0) data->gradient_of(1, 30) = Value(bad);
      data->send_gradients();
    }
  }
  void step(std::uint64_t t, float bad = 0) {
    send(t, bad);
    call_(eager);
    recorded.launch(s);
  }

  /// Expects the same bits in values, gradients, owned memory and reports, contracted or not.
  void expect_same() {
    CHECK(same_bits(x.device_value.get(s), y.device_value.get(s)));
    CHECK(same_bits(x.device_gradient.get(s), y.device_gradient.get(s)));
    test::expect_same(eager.report(), captured.report(), true);
    for (std::size_t k = 0; k < x.list.size(); ++k)
      each_owned<ds::detail::plan<Value, Value, Rule, Ps...>>(
          eager, captured, x.name(k), [&](auto a, auto b, std::string const& what) {
            INFO(what);
            CHECK(same_bits(from_device(a.data(), a.size(), s), from_device(b.data(), b.size(), s)));
          });
  }
};
/// The same for values of this type.
template <class Value, class Call, class Rule, class... Ps>
replayed<Value, Call, Rule, Ps...> replayed_of(std::vector<tensor> const& list, Call const& call, Rule rule,
                                               Ps... policies) {
  return {list, call, rule, policies...};
}
inline auto const one_step = [](auto& opt) { opt.step(); };

}  // namespace test
