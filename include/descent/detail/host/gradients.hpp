// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/host/storage.hpp>
#include <descent/detail/step/measure.hpp>

#include <algorithm>
#include <bit>
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
  using base::each_own_packet, base::with_buffers, base::part_of, base::factor_of, base::for_chunks;
  using base::partial_at, base::record, base::rows_of_chunk, base::spread, base::tensor_or_group;

  template <measure What> struct measure_body {
    host_gradients* e;
    entry const* groups;
    double factor;
    template <class Real> void operator()(std::int64_t chunk) const {
      double of_four[sums][chunk_threads / 4] = {};
      auto const g = std::size_t(e->record(chunk).group);
      if (!groups[g].frozen) {
        auto const k = [&] {
          if constexpr (Plan::sums && What != measure::norm)
            return e->template spread<Real>(e->pending_[e->tensor_or_group(chunk, Plan::pending_per_tensor)]);
          else return typename rule::template terms<Real>{};
        }();
        Real const scaled(
            real(What == measure::sums && Plan::clip_over != scope::model ? e->factor_of(chunk) : factor));
        e->template with_buffers<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t begin, int size) {
          add_lanes<Real>(of_four, size, [&](double(&total)[sums][4], int i, extent part, int ahead = 0) {
            if (ahead) fetch_measured<Typed, What>(x, begin + i + chunk_size, ahead);
            if constexpr (Plan::has_matrices && Plan::sums)
              if (e->record(chunk).matrix) return measure_matrix_packet<Typed, What, Real>(total, x, begin + i, part);
            unsigned in = all_selected;
            if constexpr (Plan::selects_rows) in = selected(e->rows_of_chunk(chunk), begin + i, part.size);
            if (in) measure_packet<Typed, What, Real>(total, x, begin + i, part, scaled, k, e->pending_step_, in);
          });
        });
      }
      constexpr int first = What == measure::sums ? Plan::norm_rows : 0;
      unrolled<sums>([&](auto c) {
        e->partial_at(first + int(c), chunk) =
            add_block<c == 0 && largest_first>(of_four[c], chunk_threads / 4, warp / 4);
      });
      if constexpr (Plan::clips_rows && What != measure::sums) e->measure_pieces(chunk, groups[g].frozen);
    }

   private:
    static constexpr int sums = measured<Plan, What>;
    static constexpr bool largest_first = first_is_largest<Plan, What>;

    /// The sums of four lanes each; add(total, element, extent) adds a packet to a lane. A lane has two packets, so a
    /// chunk is read in two places at a time, in runs too short for the processor to fetch ahead by itself: add() is
    /// told to fetch as many elements of the next chunk.
    template <class Real, class Add>
    static void add_lanes(double (&of_four)[sums][chunk_threads / 4], int size, Add const& add) {
      constexpr int packet = int(packet_size), second = chunk_threads * packet;
      static_assert(2 * second == chunk_size);
      double total[4][sums][4];
      auto const fold_all = [&](int i) {
        unrolled<sums>([&](auto c) {
          of_four[c][i / (4 * packet)] =
              fold_four<Real, c == 0 && largest_first>(total[0][c], total[1][c], total[2][c], total[3][c]);
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
        unrolled<4>([&](auto lane) { unrolled<sums>([&](auto c) { clear<Real>(total[lane][c]); }); });
        for (int lane = 0; lane < 4; ++lane)
          for (int at = i + lane * packet; at < size; at += second) add(total[lane], at, part_of(size, at));
        fold_all(i);
      }
    }
  };
  template <measure What> void measure_all(std::vector<entry> const& groups, double factor) {
    constexpr bool of_rows = Plan::clips_rows && What != measure::sums;
    if constexpr (Plan::shards) std::fill(partial_.begin(), partial_.end(), 0.0);
    if constexpr (Plan::shards && of_rows)
      std::fill(base::row_clip_.partial.begin(), base::row_clip_.partial.end(), 0.0);
    for_chunks(measure_body<What>{this, groups.data(), factor});
    if constexpr (Plan::shards) ranks_.add(partial_);
    if constexpr (Plan::shards && of_rows) ranks_.add(base::row_clip_.partial);
  }
  /// What the pieces of a chunk add to the norms of their rows: element k of one by lane k mod warp. Lanes that have
  /// none would add 0.
  void measure_pieces(std::int64_t chunk, bool frozen) {
    auto const& t = record(chunk);
    row_pieces const& rows = base::row_clip_.rows.of[base::index_of(t)];
    if (!rows.several()) return;
    chunk_span const span = span_of(chunk, t);
    this->template with_buffers<real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t begin, int) {
      std::int64_t const first = rows.piece_at(span.begin), count = pieces_in(rows, span);
      for (std::int64_t k = 0; k < count; ++k) {
        auto const piece = piece_in(rows, span, k);
        std::int64_t const size = piece.end - piece.begin;
        int const lanes = int(std::bit_ceil(std::uint64_t(std::min<std::int64_t>(size, warp))));
        double lane[Plan::norm_rows][warp], square[Plan::norm_rows];
        for (auto& of_row : lane) std::fill_n(of_row, lanes, 0.0);
        for (std::int64_t i = 0; i < size && !frozen; i += lanes)
          for (int j = 0; j < lanes && i + j < size; ++j) {
            squares_at<Typed, real>(square, x, begin + (piece.begin - span.begin) + i + j);
            for (int c = 0; c < Plan::norm_rows; ++c) lane[c][j] += square[c];
          }
        for (int c = 0; c < Plan::norm_rows; ++c)
          base::row_clip_.partial_at(c, first + k) = add_block(lane[c], lanes, lanes);
      }
    });
  }

  /// Whether the step goes on, its factors and terms, and what is wrong with those; measures what they need.
  term_fault judge(std::vector<entry> const& groups, step_call const& call, [[maybe_unused]] bool complete) {
    norm_totals totals;
    if constexpr (Plan::measures) {
      if (complete) {
        if constexpr (Plan::norm_first || !Plan::sums) measure_all<measure::norm>(groups, 1);
        else
          measure_all<measure::norm_and_sums>(groups, inverse_of<Plan>(control_, policies_, this->scale(), call));
        totals = norm_totals_from<Plan>([&](int row) { return this->total(row); });
      }
    }
    decide<Plan>(control_, policies_, this->scale(), totals, call);
    if (!control_.applied) {
      if constexpr (Plan::measures)
        if (!control_.waiting && control_.fault.what == term_fault::none) control_.bad_chunk = this->first_bad_chunk();
      return {};
    }
    if (Plan::clip_over != scope::model) this->find_factors();
    if constexpr (Plan::norm_first) measure_all<measure::sums>(groups, control_.factor);
    return this->find_terms(groups);
  }

  /// Gradients to the wire, in its type and free of what would make their sum overflow.
  struct send_body {
    host_gradients* e;
    entry const* groups;
    real shrink;
    bool zero, absent;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto* const to = e->ranks_.place_on_wire(e->where_, chunk);
      if (absent || e->ranks_.lacks(e->index_of(e->record(chunk)))) {
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
  /// change() of the caller's gradients: all of it or, where it throws, nothing.
  template <class F> void change_gradients(F const& change) {
    auto const each = [&](auto const& f) {
      std::int64_t at = 0;
      for (std::size_t t = 0; t < where_.tensors.size(); ++t)
        if (std::int64_t const count = where_.tensors[t].count) {
          gradient_memory const g = where_.callers_gradient(t);
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
      reduce(groups, call, call.flush ? sending::all : sending::marked, Plan::zeroes_own,
             call.flush ? "flush()" : "step()");
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
                  hash_of_call(ranks_.call_of(name) + kind_of_look<Plan>(how), control_, this->scale(),
                               ranks_.groups()),
                  packing(groups, zero, adds_nothing(control_, call)));
  }
  auto packing(std::vector<entry> const& groups, bool zero, bool absent = false) {
    return [this, &groups, zero, absent](bucket const& b) {
      this->for_chunks_in(b.all, send_body{this, groups.data(), real(ranks_.shrink()), zero, absent});
    };
  }
};

}  // namespace descent::detail
