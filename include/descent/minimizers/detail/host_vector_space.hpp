// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>
#include <descent/core/precision.hpp>
#include <descent/engine/host/memory_check.hpp>
#include <descent/engine/step/layout.hpp>
#include <descent/core/detail/summation_order.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

/// Vectors over all elements of a list of parameters, for algorithms that control the evaluation. Sums are in double:
/// over each chunk, then over the chunks in order, so the bits are the same for any number of threads.
namespace descent::detail {

template <class Value, class Gradient, class Backend> class vector_space;

template <class Value, class Gradient, class System> class vector_space<Value, Gradient, host<System>> {
 public:
  using real = std::conditional_t<std::is_same_v<Value, double>, double, float>;
  using vector = std::vector<real>;

  vector_space(parameters<Value, Gradient> const& params, host<System> const&)
      : where_(params), partial_(std::size_t(chunks_of(where_.arena))) {
    require_host_tensors(where_);
  }

  vector zeros() const { return vector(std::size_t(where_.arena)); }

  void load_values(vector& to) const {
    each_element([&](auto const& t, std::int64_t i) { at(to, t.arena + i) = widen<real>(t.value[i]); });
  }
  void load_gradients(vector& to) const {
    each_element([&](auto const& t, std::int64_t i) { at(to, t.arena + i) = widen<real>(t.gradient[i]); });
  }
  /// Sets the values to x, or to x + a d, rounded to their type.
  void store_values(vector const& x) const {
    each_element([&](auto const& t, std::int64_t i) { t.value[i] = narrow<Value>(at(x, t.arena + i)); });
  }
  void store_values(vector const& x, double a, vector const& d) const {
    each_element([&](auto const& t, std::int64_t i) {
      t.value[i] = narrow<Value>(at(x, t.arena + i) + real(a) * at(d, t.arena + i));
    });
  }

  double dot(vector const& x, vector const& y) const {
    return reduced([&](std::int64_t i) { return double(at(x, i)) * double(at(y, i)); }, std::plus<>{});
  }
  double abs_sum(vector const& x) const {
    return reduced([&](std::int64_t i) { return std::abs(double(at(x, i))); }, std::plus<>{});
  }
  double abs_max(vector const& x) const {
    return reduced([&](std::int64_t i) { return std::abs(double(at(x, i))); }, larger);
  }
  /// y <- a x + b y
  void combine(double a, vector const& x, double b, vector& y) const {
    each_chunk([&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) at(y, i) = real(a) * at(x, i) + real(b) * at(y, i);
    });
  }

 private:
  template <class Vector> static auto& at(Vector& x, std::int64_t i) { return x[std::size_t(i)]; }

  template <class F> void each_element(F const& f) const {
    auto const chunk = [&](std::int64_t c) {
      auto const& t = where_.tensors[std::size_t(where_.tensor_of_chunk[std::size_t(c)])];
      auto const [begin, size] = span_of(c, t);
      for (std::int64_t i = begin; i < begin + size; ++i) f(t, i);
    };
    each_of<System>(where_.elements, where_.chunks(), chunk);
  }
  template <class F> void each_chunk(F const& f) const {
    std::int64_t const n = where_.arena;
    auto const chunk = [&](std::int64_t c) { f(c * chunk_size, std::min(n, (c + 1) * chunk_size)); };
    each_of<System>(n, chunks_of(n), chunk);
  }
  template <class Element, class Combine> double reduced(Element const& element, Combine const& combine) const {
    each_chunk([&](std::int64_t begin, std::int64_t end) {
      double sum = 0;
      for (std::int64_t i = begin; i < end; ++i) sum = combine(sum, element(i));
      partial_[std::size_t(begin / chunk_size)] = sum;
    });
    double sum = 0;
    for (double one : partial_) sum = combine(sum, one);
    return sum;
  }

  layout<Value, Gradient> where_;
  mutable std::vector<double> partial_;
};

}  // namespace descent::detail
