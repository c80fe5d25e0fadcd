// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/host/storage.hpp>
#include <descent/engine/step/profiler.hpp>
#include <descent/engine/step/sending.hpp>
#include <descent/engine/step/measure.hpp>
#include <descent/core/detail/containers.hpp>

#include <bit>
#include <cstring>
#include <string>

// g++ warns of each array whose bound is an int.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

/// The part of the host engine that reads gradients before the update: the sum over ranks and the read-only passes.
namespace descent::detail {

template <class Plan, class System> class host_gradients {
  using rule = typename Plan::rule;
  using real = typename Plan::real;
  using entry = group_entry<rule>;

 public:
  host_gradients(host_control<Plan>& control, host_storage<Plan, System>& storage, host_ranks<Plan>& ranks)
      : control_(control), storage_(storage), ranks_(ranks) {}

  /// `call` is the one that measures, and `name` its name.
  template <measure What>
  void measure_all(plain_vector<entry> const& groups, double factor, [[maybe_unused]] step_call const& call,
                   [[maybe_unused]] char const* name) {
    [[maybe_unused]] auto const range = begin_range<Plan>("measure");
    constexpr bool of_rows = Plan::clips_rows && What != measure::sums;
    if constexpr (Plan::shards || Plan::splits) control_.partial.assign(control_.partial.size(), 0);
    if constexpr ((Plan::shards || Plan::splits) && of_rows)
      control_.row_clip.partial.assign(control_.row_clip.partial.size(), 0);
    storage_.for_chunks(measure_body<What>{this, groups.data(), factor});
    if constexpr (Plan::shards) ranks_.add(control_.partial);
    if constexpr (Plan::shards && of_rows) ranks_.add(control_.row_clip.partial);
    if constexpr (Plan::splits) {
      auto& model = control_.model;
      double const weight = weight_of<Plan>(control_.block, call);
      model.add(control_.partial, model.hash_of(name, control_, call), name,
                [&] { return facts_of_call(name, control_.block, control_.scale(), groups, &weight); });
      if constexpr (of_rows)
        model.add_rows(control_.row_clip.partial.data(), Plan::norm_sums * control_.row_clip.rows.shared);
    }
  }
  /// Calls change(), which changes the caller's gradients. Restores them if it throws.
  template <class F> void change_gradients(F const& change) {
    auto const each = [&](auto const& f) {
      std::int64_t at = 0;
      for (std::size_t t = 0; t < control_.where.tensors.size(); ++t)
        if (std::int64_t const count = control_.where.tensors[t].count) {
          gradient_memory const g = control_.where.callers_gradient(t);
          f(static_cast<std::byte*>(g.at), at, std::size_t(count * g.size));
          at += count * g.size;
        }
      return at;
    };
    host_memory const kept = allocate_host(std::size_t(each([](auto...) {})));
    each([&](std::byte* g, std::int64_t at, std::size_t bytes) { std::memcpy(kept.get() + at, g, bytes); });
    try {
      change();
    } catch (...) {
      each([&](std::byte* g, std::int64_t at, std::size_t bytes) { std::memcpy(g, kept.get() + at, bytes); });
      throw;
    }
  }
  /// Marks the gradient of a tensor as ready to be sent.
  void ready(plain_vector<entry> const& groups, std::size_t tensor) {
    ranks_.ready(groups, tensor, sends(), packing(groups, Plan::zeroes_own));
  }
  /// Whether any gradient is marked in a micro-batch that sends gradients.
  bool any_ready() const { return ranks_.any_ready() && sends(); }

  void meet(plain_vector<entry> const& groups, step_call const& call) {
    if (completes<Plan>(control_.block, control_.policies, call))
      reduce(groups, call, way_to_send(call), Plan::zeroes_own, call.flush ? "flush()" : "step()");
    else if constexpr (Plan::overlaps)
      if (!call.flush) ranks_.end_unsent(groups, needs_marks(call), "step()");
  }
  void meet_to_measure(plain_vector<entry> const& groups, step_call const& call, char const* name) {
    reduce(groups, call, sends() ? sending::marked_to_measure : sending::all_to_measure, false, name);
  }

 private:
  template <measure What> struct measure_body {
    host_gradients* e;
    entry const* groups;
    double factor;
    template <class Real> void operator()(std::int64_t chunk) const {
      double of_four[sums][chunk_threads / 4] = {};
      auto const& storage = e->storage_;
      auto const& t = storage.record(chunk);
      auto const g = std::size_t(t.group);
      bool const counts = e->control_.model.counts(storage.index_of(t));
      if (counts && !groups[g].frozen) {
        auto const k = [&] {
          if constexpr (Plan::sums && What != measure::norm) {
            auto const u = storage.tensor_or_group(chunk, Plan::sum_terms_per_tensor);
            return storage.template spread<Real>(e->control_.sum_terms[u]);
          } else return typename Plan::update::template terms<Real>{};
        }();
        auto const& sum_step_terms = e->control_.sum_step_terms;
        Real const scaled(
            real(What == measure::sums && Plan::clip_over != scope::model ? storage.factor_of(chunk) : factor));
        auto const one = [&]<class Typed>(buffers<Typed> const& x, std::int64_t begin, int size) {
          add_lanes<Real>(of_four, size, [&](double (&total)[sums][4], int i, packet_extent part, int ahead = 0) {
            if (ahead) fetch_measured<Typed, What>(x, begin + i + chunk_size, ahead);
            if constexpr (Plan::has_matrices && Plan::sums)
              if (t.matrix) return measure_matrix_packet<Typed, What, Real>(total, x, begin + i, part);
            unsigned in = all_selected;
            if constexpr (Plan::selects_rows) in = selected(storage.rows_of_chunk(chunk), begin + i, part.size);
            if (in) measure_packet<Typed, What, Real>(total, x, begin + i, part, scaled, k, sum_step_terms, in);
          });
        };
        storage.template with_buffers<Real>(chunk, one);
      }
      constexpr int first = What == measure::sums ? Plan::norm_sums : 0;
      if (counts)
        unrolled<sums>([&](auto c) {
          constexpr bool largest = largest_first && int(c) == 0;
          e->control_.partial_at(first + int(c), chunk) = add_block<largest>(of_four[c], chunk_threads / 4, warp / 4);
        });
      if constexpr (Plan::clips_rows && What != measure::sums) e->measure_pieces(chunk, groups[g].frozen);
    }

   private:
    static constexpr int sums = measured<Plan, What>;
    static constexpr bool largest_first = first_is_largest<Plan, What>;

    /// Sums each group of four lanes. add(total, element, packet_extent, ahead) adds a packet to a lane. A lane's two
    /// packets are half a chunk apart, so reads alternate between two places, in runs too short for the hardware
    /// prefetcher. `ahead` tells add() how many elements of the next chunk to fetch.
    template <class Real, class Add>
    static void add_lanes(double (&of_four)[sums][chunk_threads / 4], int size, Add const& add) {
      constexpr int packet = int(packet_size), second = chunk_threads * packet;
      static_assert(2 * second == chunk_size);
      double total[4][sums][4];
      auto const fold_all = [&](int i) {
        unrolled<sums>([&](auto c) {
          constexpr bool largest = largest_first && int(c) == 0;
          of_four[c][i / (4 * packet)] = fold_four<Real, largest>(total[0][c], total[1][c], total[2][c], total[3][c]);
        });
      };
      int i = 0;
      if constexpr (lanes<Real> > 1) {
        for (; i + second + 4 * packet <= size; i += 4 * packet) {
          unrolled<4>([&](auto lane) {
            unrolled<sums>([&](auto c) { clear<Real>(total[lane][c]); });
            int const at = i + int(lane) * packet;
            add(total[lane], at, {packet, true}, lane == 0 ? 4 * packet : 0);
            add(total[lane], at + second, {packet, true}, lane == 0 ? 4 * packet : 0);
          });
          fold_all(i);
        }
      }
      for (; i < size && i < second; i += 4 * packet) {
        for (auto& of_lane : total)
          for (auto& sum : of_lane) clear<Real>(sum);
        for (int lane = 0; lane < 4; ++lane)
          for (int at = i + lane * packet; at < size; at += second)
            add(total[lane], at, host_storage<Plan, System>::part_of(size, at));
        fold_all(i);
      }
    }
  };
  /// The contribution of each piece of a chunk to the norm of its row. Lane k mod warp adds element k of the piece.
  /// Lanes without elements are omitted: they would add 0.
  void measure_pieces(std::int64_t chunk, bool frozen) {
    auto const& t = storage_.record(chunk);
    row_pieces const& rows = control_.row_clip.rows.of[control_.model.unit(storage_.index_of(t))];
    if (!rows.units) return;
    chunk_span const span = span_of(chunk, t);
    storage_.template with_buffers<real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t begin, int) {
      std::int64_t const first = rows.piece_at(span.begin), count = pieces_in(rows, span);
      for (std::int64_t k = 0; k < count; ++k) {
        auto const piece = piece_in(rows, span, k);
        std::int64_t const size = piece.end - piece.begin;
        int const lanes = size < warp ? int(std::bit_ceil(unsigned(size))) : warp;
        double lane[Plan::norm_sums][warp], square[Plan::norm_sums];
        for (auto& of_row : lane)
          for (int i = 0; i < lanes; ++i) of_row[i] = 0;
        for (std::int64_t i = 0; i < size && !frozen; i += lanes)
          for (int j = 0; j < lanes && i + j < size; ++j) {
            squares_at<Typed, real>(square, x, begin + (piece.begin - span.begin) + i + j);
            for (int c = 0; c < Plan::norm_sums; ++c) lane[c][j] += square[c];
          }
        for (int c = 0; c < Plan::norm_sums; ++c)
          control_.row_clip.partial_at(c, first + k) = add_block(lane[c], lanes, lanes);
      }
    });
  }

  /// Writes gradients to the wire, in its type and divided by the wire divisor to keep their sum from overflowing.
  /// Absent ones become zeros and are not read.
  struct send_body {
    host_gradients* e;
    entry const* groups;
    real wire_divisor;
    bool zero, absent;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const& storage = e->storage_;
      auto const& t = storage.record(chunk);
      auto* const to = e->ranks_.place_on_wire(e->control_.where, chunk);
      auto const [begin, size] = span_of(chunk, t);
      bool const lacks = e->ranks_.lacks(storage.index_of(t));
      bool const then_zero = zero && !lacks && !groups[std::size_t(t.group)].frozen;
      if (absent || lacks) {
        for (int i = 0; i < size; ++i) to[i] = typename Plan::gradient_sum::wire{};
        if (!then_zero) return;
      }
      storage.template each_own_packet<Real>(
          chunk, [&, begin = begin]<class Typed>(buffers<Typed> const& x, std::int64_t i, packet_extent part) {
            if (!absent) {
              Real g[reals<Real>];
              read(g, x.gradient + i, part);
              for (auto& one : g) one = one * Real(wire_divisor);
              write(to + (i - begin), g, part);
            }
            if (then_zero) zero_packet<Typed, Real>(x, i, part);
          });
    }
  };
  /// Whether this micro-batch sends gradients.
  bool sends() const { return completes<Plan>(control_.block, control_.policies, {1, false}); }

  void reduce(plain_vector<entry> const& groups, step_call const& call, sending how, bool zero, char const* name) {
    double loss = 0;
    if constexpr (has_loss<rule>) loss = *get<kind::loss>(control_.policies).where;
    std::uint64_t const kind = kind_of_look<Plan>(how);
    auto const facts = [&] {
      std::string const called = std::string(name) + (kind ? " of marked gradients" : "");
      return facts_of_call(called, control_.block, control_.scale(), groups);
    };
    ranks_.reduce(
        groups, how, weight_of<Plan>(control_.block, call), loss, name,
        ranks_.hash_of(name, control_.block, control_.scale(), kind), facts,
        packing(groups, zero && !keeps_gradients(control_.block, call), adds_nothing<Plan>(control_.block, call)));
  }
  auto packing(plain_vector<entry> const& groups, bool zero, bool absent = false) {
    return [this, &groups, zero, absent](auto const& b) {
      send_body const body{this, groups.data(), real(ranks_.wire_divisor()), zero, absent};
      storage_.for_chunks_in(b.of_rule, body);
      if constexpr (Plan::has_matrices) storage_.for_chunks_in(b.matrices, body);
    };
  }

  host_control<Plan>& control_;
  host_storage<Plan, System>& storage_;
  host_ranks<Plan>& ranks_;
};

}  // namespace descent::detail

#pragma GCC diagnostic pop
