// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/host_storage.hpp>
#include <descent/detail/measure.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

/// What the host backend does with gradients before the update: the sum over ranks, and the read-only passes.
namespace descent::detail {

template <class Plan, class System> class host_gradients : protected host_storage<Plan, System> {
 protected:
  using base = host_storage<Plan, System>;
  using typename base::rule;
  using typename base::real;
  using typename base::entry;
  using base::base;
  using base::control_, base::partial_, base::pending_, base::pending_step_, base::policies_, base::ranks_;
  using base::where_;
  using base::each_own_packet, base::each_packet, base::factor_of, base::for_chunks;
  using base::partial_at, base::record, base::rows_of_chunk, base::spread, base::tensor_or_group;

  template <measure What> struct measure_body {
    host_gradients* e;
    entry const* groups;
    double factor;
    template <class Real> void operator()(std::int64_t chunk) const {
      constexpr int sums = measured<Plan, What>;
      double lane[sums][chunk_threads] = {};
      auto const g = std::size_t(e->record(chunk).group);
      if (!groups[g].frozen) {
        typename rule::template terms<Real> k{};
        if constexpr (Plan::sums && What != measure::norm)
          k = e->template spread<Real>(e->pending_[e->tensor_or_group(chunk, Plan::pending_per_tensor)]);
        Real const scaled(
            real(What == measure::sums && Plan::clip_over != scope::model ? e->factor_of(chunk) : factor));
        int const packets = (span_of(chunk, e->record(chunk)).size + int(packet_size) - 1) / int(packet_size);
        int const used = packets < chunk_threads ? packets : chunk_threads;
        double four[chunk_threads][sums][4];
        std::memset(four, 0, std::size_t(used) * sizeof four[0]);
        int q = 0;
        e->template each_packet<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, extent part) {
          if constexpr (Plan::has_matrices && Plan::sums)
            if (e->record(chunk).matrix)
              return measure_matrix_packet<Typed, What, Real>(four[q++ % chunk_threads], x, i, part);
          unsigned in = all_selected;
          if constexpr (Plan::selects_rows) in = selected(e->rows_of_chunk(chunk), i, part.size);
          auto& lanes = four[q++ % chunk_threads];
          if (in) measure_packet<Typed, What, Real>(lanes, x, i, part, scaled, k, e->pending_step_, in);
        });
        for (int t = 0; t < used; ++t) lane[0][t] = fold<first_is_largest<Plan, What>>(four[t][0]);
        for (int c = 1; c < sums; ++c)
          for (int t = 0; t < used; ++t) lane[c][t] = fold(four[t][c]);
      }
      constexpr int first = What == measure::sums ? Plan::norm_rows : 0;
      e->partial_at(first, chunk) = add_block<first_is_largest<Plan, What>>(lane[0], chunk_threads);
      for (int c = 1; c < sums; ++c) e->partial_at(first + c, chunk) = add_block(lane[c], chunk_threads);
    }
  };
  template <measure What> void measure_all(std::vector<entry> const& groups, double factor) {
    if constexpr (Plan::shards) std::fill(partial_.begin(), partial_.end(), 0.0);
    for_chunks(measure_body<What>{this, groups.data(), factor});
    if constexpr (Plan::shards) ranks_.add(partial_);
  }

  /// Gradients to the wire, in its type and free of what would make their sum overflow.
  struct send_body {
    host_gradients* e;
    entry const* groups;
    real shrink;
    bool zero;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto* const to = e->ranks_.place_on_wire(e->where_, chunk);
      if (e->ranks_.lacks(e->index_of(e->record(chunk)))) {
        std::fill_n(to, span_of(chunk, e->record(chunk)).size, typename Plan::reduced::wire{});
        return;
      }
      bool const then_zero = zero && !groups[std::size_t(e->record(chunk).group)].frozen;
      std::int64_t const begin = span_of(chunk, e->record(chunk)).begin;
      e->template each_own_packet<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, extent part) {
        Real g[reals<Real>];
        read(g, x.gradient + i, part);
        for (auto& one : g) one = one * Real(shrink);
        write(to + (i - begin), g, part);
        if (then_zero) zero_packet<Typed, Real>(x, i, part);
      });
    }
  };
  /// change() and, where each rank changes a part of the values only, the others' parts: all of it or nothing.
  template <class F> void share_values(F const& change) {
    if constexpr (Plan::shards) ranks_.keep(where_);
    change();
    if constexpr (Plan::shards) ranks_.gather(where_);
  }
  /// The gradient of one tensor may be sent.
  void ready(std::vector<entry> const& groups, std::size_t tensor) {
    ranks_.ready(groups, tensor, sends(), packing(groups, Plan::zeroes_own));
  }
  /// Whether some are on their way.
  bool any_ready() const { return ranks_.any_ready() && sends(); }

  void meet(std::vector<entry> const& groups, step_call const& call) {
    if (completes<Plan>(control_, policies_, call))
      reduce(groups, call, call.flush ? sending::all : sending::marked, Plan::zeroes_own, "step()");
    else if constexpr (Plan::overlaps)
      if (!call.flush) ranks_.end_unsent(groups, "step()");
  }
  void meet_to_look(std::vector<entry> const& groups, char const* name) {
    reduce(groups, {control_.batches > 0 ? 0.0 : 1.0, false}, sends() ? sending::marked_to_look : sending::all_to_look,
           false, name);
  }

 private:
  /// Whether gradients go over the wire in this micro-batch.
  bool sends() const { return completes<Plan>(control_, policies_, {1, false}); }

  void reduce(std::vector<entry> const& groups, step_call const& call, sending how, bool zero, char const* name) {
    double loss = 0;
    if constexpr (has_loss<rule>) loss = *static_cast<typename Plan::loss const&>(policies_).where;
    ranks_.reduce(groups, how, weight_of<Plan>(control_, call), loss, name,
                  hash_of_call(ranks_.call_of(name), control_, groups.data(), int(groups.size())),
                  packing(groups, zero));
  }
  auto packing(std::vector<entry> const& groups, bool zero) {
    return [this, &groups, zero](bucket const& b) {
      this->for_chunks_in(b.all, send_body{this, groups.data(), real(ranks_.shrink()), zero});
    };
  }
};

}  // namespace descent::detail
