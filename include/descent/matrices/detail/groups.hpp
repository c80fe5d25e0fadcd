// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/matrices/detail/plan.hpp>
#include <descent/matrices/detail/blas_threads.hpp>
#include <descent/engine/step/explain.hpp>
#include <descent/core/detail/containers.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// The host's part of the matrix rule: the rules of the groups, the layout of its memory, and which updates are due.
namespace descent::detail {

/// Columns are summed over segments of this many rows, then over the segments.
inline constexpr std::int64_t segment_rows = 64;
inline constexpr int matrix_sums = 8;
/// The number of elements from which a matrix is worth several threads.
inline constexpr std::int64_t matrix_worth = 32 * 1024;
/// Several matrices that are processed at once: their largest number, and the elements of their scratch memory.
inline constexpr int most_at_once = 16;
inline constexpr std::int64_t most_scratch_at_once = std::int64_t{1} << 26;

template <class Plan>
inline constexpr bool is_on_device = requires { typename Plan::template policy<kind::backend>::stream_type; };

/// The layout of the matrices, their memory and the scratch memory, in elements of the arithmetic type.
template <class Plan> struct matrix_layout {
  using rule = typename Plan::matrix_rule;
  static constexpr std::size_t slots = matrix_plan<Plan>::slots;

  struct record {
    std::int32_t tensor, group;
    descent::shape shape;
    bool owned;          // by this rank, which then has its state and memory
    std::int64_t state;  // where its state begins
    std::vector<std::int64_t> memory, sizes;  // begin and size of each part
    std::int64_t scratch = 0;
  };
  /// Matrices of one group and one shape that a device processes at once. Products are for `size` matrices, even if
  /// there are fewer: cuBLAS chooses an algorithm by the number, and ranks that share matrices get the same bits.
  struct batch {
    std::vector<std::size_t> matrices;  // of this rank
    int size;
  };
  std::vector<record> matrices;  // of all ranks
  std::vector<batch> batches;
  std::array<bool, slots> used{};
  std::int64_t state = 0, memory = 0, scratch = 0, partials = 0;  // for the matrices that this rank owns
  int threads = 1;  // of the host that have a matrix each at the same time, and a part of the scratch memory

  template <class Layout, class Policies> matrix_layout(Layout const& where, Policies const& policies) {
    auto const& policy = get<kind::matrices>(policies);
    for (std::size_t i = 0; i < slots; ++i) used[i] = needs(policy.rule, policies, i);
    for (std::size_t t = 0; t < where.tensors.size(); ++t)
      if (auto const& x = where.tensors[t]; x.matrix) {
        bool const owned = !Plan::shards || where.own.parts[t].size > 0;
        add({std::int32_t(t), x.group, {x.count / where.columns[t], where.columns[t]}, owned, state, {}, {}},
            policy.rule, where.names[t]);
      }
    if constexpr (is_on_device<Plan>) group_into_batches(policy.at_once);
    else share_among_threads(policy, matrix_team<system_of<typename Plan::template policy<kind::backend>>>());
  }

  template <class Policies> static bool needs(rule r, Policies const& policies, [[maybe_unused]] std::size_t slot) {
    if constexpr (!has_optional_state<rule>) return true;
    else return unscheduled(r, policies).uses(slot);
  }

  /// The offsets of the inputs, followed by those of the rule's scratch.
  static std::vector<std::int64_t> scratch_of(rule const& r, descent::shape s, std::int64_t& end) {
    std::vector<std::int64_t> begins;
    end = 0;
    auto const add = [&](std::int64_t size) { begins.push_back(end), add_room(end, size); };
    for (int c = 0; c < input_count<Plan>; ++c) add(s.rows * s.columns);
    for (std::int64_t size : r.scratch(s)) add(size);
    return begins;
  }

  /// The index of a tensor's matrix, or the number of matrices if none. Matrices are in the order of the tensors.
  std::size_t find(std::size_t tensor) const {
    auto const before = [&](record const& x) { return std::size_t(x.tensor) < tensor; };
    auto const u = std::partition_point(matrices.begin(), matrices.end(), before);
    bool const is_one = u != matrices.end() && std::size_t(u->tensor) == tensor;
    return is_one ? std::size_t(u - matrices.begin()) : matrices.size();
  }
  /// The tensor's matrix if this rank owns it, or null.
  record const* owned(std::size_t tensor) const {
    std::size_t const u = find(tensor);
    return u < matrices.size() && matrices[u].owned ? &matrices[u] : nullptr;
  }

 private:
  /// Makes room for a part. The limit also keeps sizes in bytes within 64 bits.
  static void add_room(std::int64_t& end, std::int64_t size) {
    constexpr std::int64_t most = std::int64_t{1} << 56;
    require(size <= most && end <= most - size, "matrices",
            "a part of the rule's memory or scratch, with the parts before it,", "at most 2^56 elements", size);
    end += arena_of(size);
  }
  void add(record x, rule const& r, std::string const& name) {
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    auto const s = x.shape;
    if (s.rows > most || s.columns > most)
      throw std::invalid_argument("parameter '" + name + "': a matrix must have at most " + std::to_string(most) +
                                  " rows and columns, has " + std::to_string(s.rows) + " x " +
                                  std::to_string(s.columns));
    x.sizes = r.memory(s);
    std::int64_t end = 0;
    scratch_of(r, s, end);
    x.scratch = end;
    if (x.owned) {
      state += arena_of(s.rows * s.columns);
      for (std::int64_t size : x.sizes) x.memory.push_back(memory), add_room(memory, size);
      scratch = std::max(scratch, end);
      std::int64_t const largest = std::max(end, s.rows * s.columns);
      partials = std::max({partials, chunks_of(largest), (s.rows + segment_rows - 1) / segment_rows * s.columns});
    }
    matrices.push_back(std::move(x));
  }
  /// One thread at a time takes a matrix if several would wait long for the last ones or need too much scratch memory.
  template <class Policy> void share_among_threads(Policy const& policy, int team) {
    double all = 0, largest = 0;
    std::int64_t elements = 0;
    for (auto const& x : matrices) {
      if (!x.owned) continue;
      double const cost = policy.cost(x.shape);
      all += cost, largest = std::max(largest, cost);
      elements += x.shape.rows * x.shape.columns;
    }
    if (team > policy.at_once || team > most_scratch_at_once / std::max<std::int64_t>(scratch, 1)) return;
    if (elements < team * matrix_worth || all < 2 * team * largest) return;
    threads = team, scratch *= team;
  }
  void group_into_batches(int at_once) {
    std::map<std::array<std::int64_t, 3>, std::size_t> numbers;
    std::vector<std::vector<std::size_t>> kinds;  // matrices of one group and shape
    for (std::size_t u = 0; u < matrices.size(); ++u) {
      auto const& x = matrices[u];
      auto const [at, is_new] = numbers.try_emplace({x.group, x.shape.rows, x.shape.columns}, kinds.size());
      if (is_new) kinds.emplace_back();
      kinds[at->second].push_back(u);
    }
    for (auto const& kind : kinds) {
      auto const& one = matrices[kind[0]];
      int const all = int(kind.size());
      std::vector<std::size_t> own;
      std::ranges::copy_if(kind, std::back_inserter(own), [&](std::size_t u) { return matrices[u].owned; });
      std::int64_t const fit = most_scratch_at_once / std::max<std::int64_t>(one.scratch, 1);
      int const most = int(std::clamp<std::int64_t>(fit, 1, at_once));
      int const rounds = (all + most - 1) / most, size = (all + rounds - 1) / rounds;
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (i % std::size_t(size) == 0) batches.push_back({{}, size});
        batches.back().matrices.push_back(own[i]);
      }
      if (!own.empty()) scratch = std::max(scratch, size * one.scratch);
    }
  }
};

/// The part that both backends share: the layout, the rules of the groups and the count of updates.
template <class Plan> struct matrix_groups {
  using rule = typename Plan::matrix_rule;

  /// Counts micro-batches as the control block does, because the control block may be on a device.
  void count(typename Plan::policies const& policies, step_call const& call) {
    completes = true;
    if constexpr (has<Plan, kind::accumulation>) {
      std::int64_t const n = micro_batches_at(get<kind::accumulation>(policies), 0);
      completes = call.flush ? Plan::parallel || batches_ > 0 : batches_ + 1 >= n;
      if (completes) batches_ = 0;
      else if (!call.flush) ++batches_;
    }
    if (completes) ++updates;
  }

  template <class Layout>
  void prepare(Layout const& tensors, typename Plan::policies const& policies) {
    where = std::make_unique<matrix_layout<Plan>>(tensors, policies);
    rules = plain_vector<rule>(std::size_t(tensors.groups), get<kind::matrices>(policies).rule);
    accepted = rules;
  }

  /// Whether a rule was changed. Throws std::invalid_argument if the change is not allowed.
  bool changed(typename Plan::policies const& policies) const {
    if (std::memcmp(rules.data(), accepted.data(), rules.size() * sizeof(rule)) == 0) return false;
    for (std::size_t g = 0; g < rules.size(); ++g) {
      try {
        check_rule<typename Plan::real>(rules[g]);
      } catch (std::invalid_argument const& e) {
        throw std::invalid_argument("group " + std::to_string(g) + ": " + e.what());
      }
      for (std::size_t i = 0; i < matrix_layout<Plan>::slots; ++i)
        if (!where->used[i] && where->needs(rules[g], policies, i))
          throw std::invalid_argument("group " + std::to_string(g) + ": the matrix rule needs the state '" +
                                      slot_name<rule>(i) +
                                      "', which it did not need at construction, so it was not allocated");
    }
    for (auto const& x : where->matrices) {
      rule const& r = rules[std::size_t(x.group)];
      std::int64_t end = 0;
      matrix_layout<Plan>::scratch_of(r, x.shape, end);
      if (end > x.scratch || r.memory(x.shape) != x.sizes)
        throw std::invalid_argument("group " + std::to_string(x.group) + ": the matrix rule now needs " +
                                    "other memory than at construction");
    }
    return true;
  }

  /// The matrices whose terms this rank finds: its own, or those of the whole model, so that all ranks skip an update
  /// for the terms of any.
  int known_count() const { return int(Plan::splits ? model_.size() : where->matrices.size()); }
  auto const& known(int u) const { return (Plan::splits ? model_ : where->matrices)[std::size_t(u)]; }
  /// The number of a known matrix among this rank's, or -1.
  int own(int u) const { return Plan::splits ? own_[std::size_t(u)] : u; }
  template <class Model> void find_others(Model const& model) {
    auto const& whole = model.whole();
    std::vector<int> own(whole.tensors.size(), -1);
    for (std::size_t u = 0; u < where->matrices.size(); ++u)
      own[model.unit(std::size_t(where->matrices[u].tensor))] = int(u);
    for (std::size_t t = 0; t < whole.tensors.size(); ++t)
      if (auto const& x = whole.tensors[t]; x.matrix) {
        model_.push_back(
            {std::int32_t(t), x.group, {x.count / whole.columns[t], whole.columns[t]}, own[t] >= 0, 0, {}, {}});
        own_.push_back(own[t]);
      }
  }

  std::unique_ptr<matrix_layout<Plan>> where;
  plain_vector<rule> rules, accepted;  // as the caller sets them, and as they are in use
  std::int64_t updates = 0;           // so far, skipped or not; determines what is due
  bool completes = true;              // whether the last call ended in an update

 private:
  int batches_ = 0;
  std::vector<typename matrix_layout<Plan>::record> model_;  // if ranks share the model: its matrices,
  std::vector<int> own_;                                     // and their numbers on this rank
};

/// Calls f(matrix, name, buffer, elements) for the state and the memory of each matrix that this rank owns.
template <class Plan, class Stage, class F> void each_matrix_buffer(Stage const& stage, F const& f) {
  using plan = matrix_plan<Plan>;
  auto const& where = *stage.common.where;
  for (auto const& x : where.matrices) {
    if (!x.owned) continue;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      auto const one = [&]<class T>(std::type_identity<T>, std::size_t slot) {
        if (auto* const all = static_cast<T*>(stage.state(slot)))
          f(x, "matrix state " + slot_name<typename plan::rule>(slot), all + x.state, x.shape.rows * x.shape.columns);
      };
      (one(std::type_identity<typename plan::template slot<I>>{}, I), ...);
    }(typename plan::every_slot{});
    for (std::size_t part = 0; part < x.sizes.size(); ++part)
      f(x, "matrix memory " + std::to_string(part), stage.memory() + x.memory[part], x.sizes[part]);
  }
}

/// A part of a matrix's memory; empty if the tensor is no matrix of this rank or has no such part.
template <class Plan, class Stage> auto matrix_memory(Stage const& stage, std::size_t t, std::size_t part) {
  using element = typename Plan::real;
  auto const* const x = stage.common.where->owned(t);
  if (!x || part >= x->sizes.size()) return std::span<element const>{};
  return std::span<element const>(stage.memory() + x->memory[part], std::size_t(x->sizes[part]));
}

/// A member of a matrix's state or, for a number beyond these, a part of its memory.
template <class Plan, std::size_t Part, class Stage, class Tensors>
auto matrix_part(Stage const& stage, Tensors const& tensors, std::size_t t) {
  using plan = matrix_plan<Plan>;
  if constexpr (Part < plan::slots) {
    using element = typename plan::template slot<Part>;
    auto const* p = static_cast<element const*>(stage.state(Part));
    auto const* const x = stage.common.where->owned(t);
    if (!x || !p) return std::span<element const>{};
    return std::span<element const>(p + x->state, std::size_t(tensors[t].count));
  } else {
    return matrix_memory<Plan>(stage, t, Part - plan::slots);
  }
}

/// Calls f(end of the name, elements, read) for each piece of a matrix that is saved: its state, which has an element
/// for each of the matrix's and says 0 elements here, and the parts of its memory.
template <class Plan, class Stage, class Tensors, class F>
void each_matrix_piece(Stage const& stage, Tensors const& tensors, std::size_t t, F const& f) {
  using plan = matrix_plan<Plan>;
  if (!tensors[t].matrix) return;
  auto const& where = *stage.common.where;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((where.used[I] ? f(".matrix." + slot_in_piece<typename Plan::matrix_rule>(I), 0,
                        [&] { return matrix_part<Plan, I>(stage, tensors, t); }) : void()), ...);
  }(typename plan::every_slot{});
  auto const& sizes = where.matrices[where.find(t)].sizes;
  for (std::size_t part = 0; part < sizes.size(); ++part)
    f(".matrix." + std::to_string(plan::slots + part), sizes[part],
      [&] { return matrix_memory<Plan>(stage, t, part); });
}

/// Calls add() for each buffer that is owned for matrices. Used by memory().
template <class Plan, class Layout, class Add>
void add_matrix_buffers(Layout const& layout, typename Plan::policies const& policies, Add const& add) {
  using plan = matrix_plan<Plan>;
  matrix_layout<Plan> const where(layout, policies);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((where.used[I] ? add(std::type_identity<typename plan::template slot<I>>{},
                          "matrices: state " + slot_name<typename Plan::matrix_rule>(I), where.state) : void()), ...);
  }(typename plan::every_slot{});
  if (where.memory) add(std::type_identity<typename Plan::real>{}, "matrices: memory", where.memory);
  add(std::type_identity<typename Plan::real>{}, "matrices: scratch", where.scratch);
}

}  // namespace descent::detail
