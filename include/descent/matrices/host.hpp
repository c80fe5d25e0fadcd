// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/host/engine.hpp>
#include <descent/detail/host/memory.hpp>
#include <descent/detail/matrix/groups.hpp>
#include <descent/detail/ranks/divergence.hpp>
#include <descent/detail/rule/thread_team.hpp>
#include <descent/detail/util/summation_order.hpp>
#include <descent/policies/matrices.hpp>

#include <cblas.h>

#include <cstring>
#include <memory>
#include <vector>

/// The policy matrices on the host, with products by the BLAS that the program links (any with the CBLAS interface).
namespace descent::detail {

/// The number of elements from which a matrix is worth several threads.
inline constexpr std::int64_t matrix_worth = 32 * 1024;

/// The operations for the transform of a matrix rule, on the host. Functors get the indices of elements and may be
/// called concurrently. Sums are in double and in a fixed order, the same on host and device.
template <class Plan, class System> class host_work {
 public:
  using real = typename Plan::real;
  using terms = typename Plan::matrix_rule::template terms<real>;
  static constexpr bool immediate = true;         // sums can be read immediately
  static constexpr bool rounds_operands = false;  // of products, if the rule asks for that

  std::int64_t rows, columns, updates;
  real *memory_begin, *scratch_begin;
  std::vector<std::int64_t> const &memory_parts, &scratch_parts;
  terms const* k;
  double *sum_begin, *partials;
  bool always = false;

  std::int64_t size() const { return rows * columns; }
  real* input(int c) const { return scratch_begin + scratch_parts[std::size_t(c)]; }
  real* scratch(int i) const { return input(input_count<Plan> + i); }
  real* memory(int i) const { return memory_begin + memory_parts[std::size_t(i)]; }
  /// Memory for the sums of total().
  double* sums() const { return sum_begin; }
  /// Whether work for every n-th update, starting with the first, is due. Always true in a captured step on a device.
  bool due(std::int64_t n) const { return always || (updates - 1) % n == 0; }

  /// Calls f(i) for i in [0, n).
  template <class F> void each(std::int64_t n, F const& f) const {
    auto const chunk = [&](std::int64_t c) {
      for (std::int64_t i = c * chunk_size; i < n && i < (c + 1) * chunk_size; ++i) f(i);
    };
    over(n, chunks_of(n), chunk);
  }

  /// to <- sum of f(i) over [0, n), in double
  template <class F> void total(std::int64_t n, F const& f, double* to) const {
    auto const chunk = [&](std::int64_t c) {
      std::int64_t const begin = c * chunk_size, left = n - begin;
      auto const value = [&](std::int64_t i) { return f(begin + i); };
      partials[c] = add_strided<chunk_threads>(value, left < chunk_size ? left : chunk_size);
    };
    over(n, chunks_of(n), chunk);
    *to = add_strided<total_threads>([&](std::int64_t c) { return partials[c]; }, chunks_of(n));
  }

  /// Calls f(i c + j, i, j) for all rows i and columns j of this matrix or of one of r rows and c columns.
  template <class F> void each_element(F const& f) const { each_element(rows, columns, f); }
  template <class F> void each_element(std::int64_t r, std::int64_t c, F const& f) const {
    auto const row = [&](std::int64_t i) {
      for (std::int64_t j = 0; j < c; ++j) f(i * c + j, i, j);
    };
    over(r * c, r, row);
  }

  /// Calls store(i, x) for each row i; x is the sum, or the largest, of f(i columns + j, i, j). The same over columns.
  template <bool Largest = false, class F, class Store> void each_row(F const& f, Store const& store) const {
    auto const row = [&](std::int64_t i) {
      store(i, add_strided<chunk_threads, Largest>([&](std::int64_t j) { return f(i * columns + j, i, j); }, columns));
    };
    over(size(), rows, row);
  }
  template <bool Largest = false, class F, class Store> void each_column(F const& f, Store const& store) const {
    std::int64_t const segments = (rows + segment_rows - 1) / segment_rows;
    auto const segment = [&](std::int64_t s) {
      double* sum = partials + s * columns;
      for (std::int64_t j = 0; j < columns; ++j) sum[j] = 0;
      for (std::int64_t i = s * segment_rows; i < rows && i < (s + 1) * segment_rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) sum[j] = combine<Largest>{}(sum[j], f(i * columns + j, i, j));
    };
    over(size(), segments, segment);
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::int64_t s = 0; s < segments; ++s) sum = combine<Largest>{}(sum, partials[s * columns + j]);
      store(j, sum);
    }
  }

  /// Calls f(thread_team, b) for b in [0, n).
  template <class F> void teams(std::int64_t n, F const& f) const {
    auto const one = [&](std::int64_t b) {
      double sum[thread_team::capacity];
      f(thread_team{sum}, b);
    };
    over(size(), n, one);
  }

  /// c <- a a'. c must not overlap a. Half of the operations of a product.
  void square(dense<real> a, real* c) const {
    auto const form = a.transposed ? CblasTrans : CblasNoTrans;
    int const n = int(a.height()), inner = int(a.width());
    if constexpr (std::is_same_v<real, double>)
      cblas_dsyrk(CblasRowMajor, CblasLower, form, n, inner, 1, a.data, int(a.columns), 0, c, n);
    else cblas_ssyrk(CblasRowMajor, CblasLower, form, n, inner, 1, a.data, int(a.columns), 0, c, n);
    mirror(c, a.height());
  }
  /// c <- a b where a and b are n x n and not transposed, and a b is symmetric. Half of the operations of a product.
  void symmetric_product(dense<real> a, dense<real> b, real* c) const {
    constexpr std::int64_t rows_at_once = 128;
    std::int64_t const n = a.rows;
    for (std::int64_t i = 0; i < n; i += rows_at_once) {
      std::int64_t const below = i + rows_at_once < n ? i + rows_at_once : n;
      multiply({a.data + i * n, below - i, n}, b, below, c + i * n, n);
    }
    mirror(c, n);
  }

  /// c <- a b. c must not overlap a or b.
  void product(dense<real> a, dense<real> b, real* c) const { multiply(a, b, b.width(), c, b.width()); }

 private:
  static constexpr std::int64_t tile = 32;

  /// The first columns of a b, to rows of c that are `stride` apart.
  static void multiply(dense<real> a, dense<real> b, std::int64_t columns, real* c, std::int64_t stride) {
    auto const form = [](dense<real> x) { return x.transposed ? CblasTrans : CblasNoTrans; };
    int const m = int(a.height()), n = int(columns), inner = int(a.width());
    if constexpr (std::is_same_v<real, double>)
      cblas_dgemm(CblasRowMajor, form(a), form(b), m, n, inner, 1, a.data, int(a.columns), b.data, int(b.columns), 0, c,
                  int(stride));
    else
      cblas_sgemm(CblasRowMajor, form(a), form(b), m, n, inner, 1, a.data, int(a.columns), b.data, int(b.columns), 0, c,
                  int(stride));
  }

  /// Copies what is below the diagonal of an n x n matrix to above it.
  void mirror(real* c, std::int64_t n) const {
    auto const rows_of_tiles = [&](std::int64_t upper) {
      for (std::int64_t first = upper * tile; first < n; first += tile)
        for (std::int64_t i = upper * tile; i < n && i < (upper + 1) * tile; ++i)
          for (std::int64_t j = first > i ? first : i + 1; j < n && j < first + tile; ++j) c[i * n + j] = c[j * n + i];
    };
    over(n * n, (n + tile - 1) / tile, rows_of_tiles);
  }

  template <class F> static void over(std::int64_t elements, std::int64_t n, F const& f) {
    each_of<System>(elements, n, f, matrix_worth);
  }
};

template <class Plan, class System> requires(Plan::has_matrices) class host_matrices<Plan, System> {
  using real = typename Plan::real;
  using mrule = typename Plan::matrix_rule;

 public:
  matrix_groups<Plan> common;

  template <class Engine> void start(Engine& e) {
    common.prepare(e.control.where, e.control.policies);
    policies_ = &e.control.policies;
    auto const zeros = [&](std::int64_t n) {
      std::size_t const bytes = std::size_t(n) * sizeof(real);
      host_memory x = allocate_host(bytes, e.storage.source);
      if (bytes) std::memset(x.get(), 0, bytes);
      return x;
    };
    memory_ = zeros(common.where->memory), scratch_ = zeros(common.where->scratch);
    partials_.resize(std::size_t(common.where->partials)), sums_.resize(matrix_sums);
    units_.resize(common.where->matrices.size());
    if constexpr (Plan::splits) common.find_others(e.control.model);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((state_[I] = common.where->used[I] ? allocate_host(std::size_t(common.where->state) *
                                                              sizeof(typename matrix_plan<Plan>::template slot<I>),
                                                          e.storage.source)
                                          : nullptr,
        states_.at[I] = state_[I].get()), ...);
    }(typename matrix_plan<Plan>::every_slot{});
    for (std::size_t u = 0; u < common.where->matrices.size(); ++u) {
      if (!common.where->matrices[u].owned) continue;
      states_.begin = common.where->matrices[u].state;
      chunks(e, u, start_body<Engine>{&e, this, u});
      if constexpr (requires { mrule::starts_memory; }) common.rules[0].start_memory(work(u));
    }
  }

  /// The terms of the matrices in an update, for the controller. They are kept for step().
  template <class Engine, class Groups> struct all_terms {
    host_matrices& m;
    Engine const& e;
    Groups const& groups;
    int count;

    DESCENT_CALLS
    DESCENT_HD matrix_unit<Plan> const& terms(int u, std::int64_t t, rate_change const& rates) const {
      auto const& x = m.common.known(u);
      int const own = m.common.own(u);
      auto& unit = own < 0 ? m.unit_ : m.units_[std::size_t(own)];
      if (groups[std::size_t(x.group)].frozen) unit = {{}, 0, true};
      else unit = m.terms_of(e, x, t, rates);
      return unit;
    }
    mrule const& rule(int u) const { return m.common.accepted[std::size_t(m.common.known(u).group)]; }
    std::int64_t tensor(int u) const { return m.common.known(u).tensor; }
  };
  template <class Engine, class Groups> all_terms<Engine, Groups> terms_in(Engine const& e, Groups const& groups) {
    return {*this, e, groups, common.known_count()};
  }

  template <class Engine, class Groups> void step(Engine& e, Groups const& groups) {
    for (std::size_t u = 0; u < common.where->matrices.size(); ++u) {
      auto const g = std::size_t(common.where->matrices[u].group);
      if (groups[g].frozen || !common.where->matrices[u].owned) continue;
      unit_ = units_[u];
      states_.begin = common.where->matrices[u].state;
      auto const w = work(u);
      for (int c = 0; c < input_count<Plan>; ++c) inputs_.at[c] = w.input(c);
      chunks(e, u, front_body<Engine>{&e, this});
      real* const direction = common.accepted[g].transform(w);
      chunks(e, u, back_body<Engine>{&e, this, direction});
    }
  }

  /// Takes changed rules; returns whether there are any.
  bool commit() {
    if (!common.changed(*policies_)) return false;
    common.accepted = common.rules;
    return true;
  }

  template <class F> void each_buffer(F const& f) const { each_matrix_buffer<Plan>(*this, f); }
  std::uint64_t hash() const { return hash_of_matrix_rules<Plan>(common.rules, *policies_); }
  std::vector<std::string> facts(std::vector<std::string> const& names) const {
    return facts_of_matrices<Plan>(*this, names, [](auto const* x, std::int64_t n) {
      std::uint64_t print = 0;
      for (std::int64_t i = 0; i < n; ++i) print += print_of(bits_at(x, i, sizeof *x), i);
      return print;
    });
  }
  /// Replaces the rules, their state and memory by those of another rank. send(data, bytes) is a broadcast.
  template <class Send> void broadcast(Send const& send) {
    each_buffer([&](auto const&, auto const&, auto* x, std::int64_t n) { send(x, n * std::int64_t(sizeof *x)); });
    send(common.rules.data(), std::int64_t(common.rules.size() * sizeof(mrule)));
    send(&common.updates, sizeof common.updates);
    common.accepted = common.rules;
  }

  void* state(std::size_t i) const { return state_[i].get(); }
  real* memory() const { return reinterpret_cast<real*>(memory_.get()); }

 private:
  template <class Engine, class Matrix>
  matrix_unit<Plan> terms_of(Engine const& e, Matrix const& x, std::int64_t t, rate_change const& rates) const {
    auto const tensor = std::size_t(x.tensor), g = std::size_t(x.group);
    double factor = e.control.block.factor;
    if constexpr (Plan::clip_over != scope::model)
      factor = e.control.factors[Plan::clip_over == scope::tensor ? tensor : g];
    return matrix_terms_of<Plan>(common.accepted[g], *policies_, t, x.shape, factor, false, x.group, rates);
  }

  host_work<Plan, System> work(std::size_t u) {
    auto const& x = common.where->matrices[u];
    std::int64_t end = 0;
    parts_ = common.where->scratch_of(common.accepted[std::size_t(x.group)], x.shape, end);
    return {x.shape.rows, x.shape.columns, common.updates, memory(), reinterpret_cast<real*>(scratch_.get()),
            x.memory, parts_, &unit_.terms, sums_.data(), partials_.data()};
  }

  template <class Engine, class Body> void chunks(Engine& e, std::size_t u, Body const& body) {
    auto const& t = e.control.where.tensors[std::size_t(common.where->matrices[u].tensor)];
    std::int64_t const first = t.first_chunk;
    chunk_pass<real, Body> const pass{&body, has_lanes()};
    auto const one = [&](std::int64_t c) { pass(first + c); };
    each_of<System>(t.count, chunks_of(t.count), one, matrix_worth);
  }

  template <class Real> auto terms() const {
    typename mrule::template terms<Real> k{};
    for (std::size_t i = 0; i < members<mrule::template terms>; ++i)
      real_at<Real>(k, i) = Real(real_at<real>(unit_.terms, i));
    return k;
  }

  template <class Engine> struct start_body {
    Engine* e;
    host_matrices* m;
    std::size_t u;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const one = [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, packet_extent part) {
        using plan = front_plan<Typed>;
        start_packet<plan, Real>(matrix_buffers<plan>(x, x.gradient, m->states_), i, part, m->common.rules[0]);
      };
      e->storage.template each_packet<Real>(chunk, one);
    }
  };
  template <class Engine> struct front_body {
    Engine* e;
    host_matrices* m;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const k = m->template terms<Real>();
      Real const factor(m->unit_.factor);
      auto const one = [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, packet_extent part) {
        using plan = front_plan<Typed>;
        front_packet<plan, Real>(matrix_buffers<plan>(x, x.gradient, m->states_), i, part, factor, k,
                                 e->control.step_terms, m->inputs_.at);
      };
      e->storage.template each_packet<Real>(chunk, one);
    }
  };
  template <class Engine> struct back_body {
    Engine* e;
    host_matrices* m;
    real* direction;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const k = m->template terms<Real>();
      auto const one = [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, packet_extent part) {
        using plan = back_plan<Typed>;
        update_packet<plan, Real>(matrix_buffers<plan>(x, direction, m->states_), i, part, Real(1), k,
                                  e->control.step_terms);
      };
      e->storage.template each_packet<Real>(chunk, one);
    }
  };

  typename Plan::policies const* policies_ = nullptr;
  host_memory memory_, scratch_;
  std::vector<double> partials_, sums_;
  std::vector<std::int64_t> parts_;
  std::array<host_memory, matrix_plan<Plan>::slots> state_;
  matrix_states<Plan> states_{};
  matrix_inputs<Plan> inputs_{};
  std::vector<matrix_unit<Plan>> units_;
  matrix_unit<Plan> unit_{};  // of the current matrix
};

}  // namespace descent::detail
