// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer/detail/optimizer_core.hpp>
#include <descent/optimizer/detail/pieces.hpp>
#include <descent/engine/step/explain.hpp>
#include <descent/engine/step/owned.hpp>
#include <descent/engine/step/passes.hpp>
#include <descent/engine/step/row_moves.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace descent {
namespace detail {

inline void require_blocks(std::string const& name, std::int64_t rows, std::int64_t count) {
  auto const refuse = [&](std::string const& what) {
    throw std::invalid_argument("scale_rows of '" + name + "': " + what);
  };
  if (count < 1) refuse("count must be at least 1, is " + std::to_string(count));
  if (rows % count != 0)
    refuse("the " + std::to_string(rows) + " rows must be a multiple of count, which is " + std::to_string(count));
}
}  // namespace detail

/// Read and write access to what the optimizer owns. Views are spans over the backend's memory: on CUDA, wait for the
/// stream before you read one. With sharded, a view covers this rank's part. Setters take a vector, span or array in
/// memory that the backend can copy from; on CUDA they enqueue the copy. Its elements must have the stored type;
/// std::invalid_argument is thrown if the length differs.
template <class Plan, class Engine> class optimizer_state {
 protected:
  using core = detail::optimizer_core<Plan, Engine>;
  using rule_type = typename Plan::rule;
  using buffer_number = detail::owned_index<Plan>;

  optimizer_state(typename core::tensors where, rule_type const& r) : core_(std::move(where), r) {}

  static constexpr bool has_plateau = detail::has<Plan, kind::plateau>, has_average = detail::has<Plan, kind::average>,
                        has_slow = detail::has<Plan, kind::lookahead>;

 public:
  /// The number of groups: 1 more than the largest group of a parameter.
  int groups() const { return int(core_.groups.size()); }

  /// A member of one parameter's state, by its number, or, if all members have one type, by its name in the rule's
  /// `slots`. Empty if it is not stored.
  template <std::size_t Slot>
  auto state(std::string const& name) const
      requires(detail::otherwise("the rule's state has fewer members") || Slot < Plan::slots) {
    return state_of<Slot>(core_.number_of(name));
  }
  auto state(std::string const& name, std::size_t slot) const
      requires(detail::otherwise("the state's members have several types: use state<number>(name)") ||
               detail::has_one_state_type<Plan>) {
    if (slot >= Plan::slots)
      throw std::invalid_argument("state of '" + name + "': the rule has " + std::to_string(Plan::slots) +
                                  " members of state, asked for number " + std::to_string(slot));
    return state_view<typename Plan::template slot<0>>(slot, core_.number_of(name));
  }
  auto state(std::string const& name, std::string_view slot) const requires has_slot_names<rule_type> {
    for (std::size_t i = 0; i != Plan::slots; ++i)
      if (slot == rule_type::slots[i]) return state(name, i);
    throw std::invalid_argument("state of '" + name + "': the rule has no member '" + std::string(slot) + "'");
  }

  /// A member of one matrix's state. The numbers after the last member are the parts of the matrix rule's memory. Empty
  /// for parameters that are not matrices.
  template <std::size_t Part>
  auto matrix_state(std::string const& name) const
      requires(detail::otherwise("give the policy matrices{rule}") || Plan::has_matrices) {
    return matrix_state_of<Part>(core_.number_of(name));
  }
  template <std::size_t Part>
  void set_matrix_state(std::string const& name, auto const& from)
      requires(detail::otherwise("give matrices{rule}") || Plan::has_matrices) {
    put("set_matrix_state of '" + name + "'", matrix_state<Part>(name), from);
  }

  /// Restores a member of the state.
  template <std::size_t Slot>
  void set_state(std::string const& name, auto const& from)
      requires(detail::otherwise("the rule's state has fewer members") || Slot < Plan::slots) {
    put("set_state of '" + name + "'", state<Slot>(name), from);
  }
  /// The rule's memory: a Rule::memory for each group, or for each tensor if sums or clipping are per tensor, in the
  /// order of add(). With model_parallel{} these are the tensors of the whole model, rank by rank, each once.
  auto rule_memory() const
      requires(detail::otherwise("rule_memory(): the rule has no memory beside its state") || has_memory<rule_type>) {
    return std::span<detail::memory_of<rule_type> const>(core_.alive().memories());
  }
  void set_rule_memory(auto const& from)
      requires(detail::otherwise("rule_memory(): the rule has no memory beside its state") || has_memory<rule_type>) {
    put_memory("set_rule_memory", rule_memory(), from);
  }
  /// With overlap{}: says that the gradient of one parameter is complete, so that it can be sent. On CUDA it is
  /// complete when `stream`, by default the optimizer's, has reached this point. Takes the parameter's index, or its
  /// name, which costs a lookup. Do not change the gradient until step(). Throws std::logic_error, with nothing
  /// changed, if it was called before for this step; otherwise throws like step().
  void ready(std::size_t parameter, auto... stream)
      requires(detail::otherwise("give replicated or sharded overlap{}") || Plan::overlaps) {
    core_.alive().ready(core_.groups, parameter, stream...);
  }
  void ready(std::string const& name, auto... stream)
      requires(detail::otherwise("give replicated or sharded overlap{}") || Plan::overlaps) {
    ready(core_.number_of(name), stream...);
  }

  /// Passes a metric, such as the validation loss, to on_plateau: a value, or a pointer into the backend's memory, but
  /// not into values, gradients or state. Enqueued on CUDA. A captured call uses the same value at each replay, and
  /// reads the memory again.
  void observe(double metric)
      requires(detail::otherwise("observe(), plateau(): give the policy on_plateau{}") || has_plateau) {
    core_.alive().observe(nullptr, metric, core_.groups);
  }
  void observe(float const* metric)
      requires(detail::otherwise("observe(), plateau(): give the policy on_plateau{}") || has_plateau) {
    core_.alive().storage.require_input({metric, 1, sizeof *metric, "observe: the metric"}, core_.where);
    core_.alive().observe(metric, 0, core_.groups);
  }
  /// The master copy of one parameter. If the value already has the master's type, the value itself.
  auto master(std::string const& name) const
      requires(detail::otherwise("no master: give the policy master<float>{}") || Plan::has_master) {
    return master_of(core_.number_of(name));
  }

  /// Restores a master copy and rounds the value from it; with sharded, restores only this rank's part of the master.
  /// Throws std::logic_error while values are replaced or moved, and so does set_remainder().
  void set_master(std::string const& name, auto const& from)
      requires(detail::otherwise("give the policy master<float>{}") || Plan::has_master) {
    core_.refuse_averages("set_master()");
    core_.refuse_elsewhere("set_master()");
    put("set_master of '" + name + "'", master(name), from);
    if constexpr (!Plan::shards) core_.alive().in_tensor(core_.where, core_.number_of(name), detail::round_all{});
  }

  /// Multiplies the rows of a parameter by factors: `count` blocks of as many rows each by f(s[0]), f(s[1]), ..., which
  /// are computed in double. f is qk_clip (training/qk_clip.hpp) or your own function, on CUDA one for device
  /// code. s is in memory that the backend reads. Values, masters and slow weights are multiplied, state and averages
  /// are not. On CUDA it is enqueued and may be captured. On the host f may throw, and nothing has changed then. All
  /// ranks that have the parameter call it with the same s. Throws std::invalid_argument if there is no such parameter,
  /// s is null, misaligned, out of reach or in values, gradients or state, or the rows are no multiple of count.
  template <class F>
  void scale_rows(std::string const& name, float const* s, std::int64_t count, F const& f)
      requires(detail::otherwise("scale_rows cannot be combined with sharded, whose masters are in parts") ||
               !Plan::shards) {
    core_.refuse_averages("scale_rows()");
    core_.refuse_elsewhere("scale_rows()");
    std::size_t const t = core_.number_of(name);
    std::int64_t const columns = core_.where.columns[t], rows = core_.where.tensors[t].count / columns;
    detail::require_blocks(name, rows, count);
    descent::check_rule<typename Plan::real>(f);
    core_.alive().storage.require_input({s, count, sizeof *s, "scale_rows of '" + name + "': s"}, core_.where);
    core_.alive().scale_rows(core_.where, t, f, {s, std::size_t(count)}, rows / count * columns);
  }

  /// Rebuilds master copies and slow weights from the values. Call it after something else has written the values:
  /// loaded, clamped or tied them. Otherwise the next step, whose arithmetic starts at the masters, undoes that. State
  /// and averages stay.
  void reload_values() {
    core_.refuse_averages("reload_values()");
    core_.refuse_elsewhere("reload_values()");
    core_.alive().reload_values();
  }
  /// Whether a value is no longer what its master is rounded to, because something else has written it. Reads values
  /// and masters, with sharded those of this rank's part; on CUDA waits for the stream.
  bool values_changed() requires(
      (detail::otherwise("values_changed(): without master<M> a step starts at the values") || Plan::has_master) &&
      (detail::otherwise("values_changed(): stochastic_values are not the masters rounded") || !Plan::rounds_beside)) {
    core_.refuse_averages("values_changed()");
    core_.refuse_elsewhere("values_changed()");
    return core_.waiting("values_changed()").values_changed();
  }

  /// The average of one parameter.
  auto average(std::string const& name) const
      requires(detail::otherwise("no average: give the policy ema{} or swa{}") || has_average) {
    return view<typename Plan::real>(buffer_number::average, core_.number_of(name));
  }
  void set_average(std::string const& name, auto const& from)
      requires(detail::otherwise("give the policy ema{} or swa{}") || has_average) {
    put("set_average of '" + name + "'", average(name), from);
  }
  /// The slow weights of lookahead, outer or ema_nesterov of one parameter.
  auto slow(std::string const& name) const requires(detail::otherwise("give the policy lookahead{}") || has_slow) {
    return view<typename Plan::slow>(buffer_number::slow, core_.number_of(name));
  }
  void set_slow(std::string const& name, auto const& from) requires(detail::otherwise("give lookahead{}") || has_slow) {
    put("set_slow of '" + name + "'", slow(name), from);
  }
  /// The momentum of outer or ema_nesterov of one parameter.
  auto outer_momentum(std::string const& name) const
      requires(detail::otherwise("no outer momentum: give the policy outer{}") || Plan::has_outer) {
    return view<typename Plan::real>(buffer_number::outer, core_.number_of(name));
  }
  void set_outer_momentum(std::string const& name, auto const& from)
      requires(detail::otherwise("give outer{}") || Plan::has_outer) {
    put("set_outer_momentum of '" + name + "'", outer_momentum(name), from);
  }
  /// The low 16 bits of one parameter's masters, whose high bits are the bfloat16 values.
  auto remainder(std::string const& name) const
      requires(detail::otherwise("give the policy master_remainder{}") || Plan::has_remainder) {
    return view<std::uint16_t>(buffer_number::remainder, core_.number_of(name));
  }
  void set_remainder(std::string const& name, auto const& from)
      requires(detail::otherwise("give master_remainder{}") || Plan::has_remainder) {
    core_.refuse_averages("set_remainder()");
    core_.refuse_elsewhere("set_remainder()");
    put("set_remainder of '" + name + "'", remainder(name), from);
  }

  /// Selects the rows of one parameter that the next steps update: those whose byte in the mask is not 0. Null selects
  /// all rows. The mask, one byte per row in the backend's memory, belongs to the caller; every step, captured or not,
  /// reads it. Enqueued on CUDA.
  void select_rows(std::string const& name, std::uint8_t const* mask)
      requires(detail::otherwise("give masked_rows{}") || Plan::selects_rows) {
    std::size_t const t = core_.number_of(name);
    if (mask) core_.alive().storage.require_input(detail::mask_of(core_.where, t, mask), core_.where);
    core_.alive().select_rows(t, detail::rows_of(core_.where, t), mask);
  }
  template <std::same_as<bool> Bool>
  void select_rows(std::string const& name, Bool const* mask)
      requires(detail::otherwise("give masked_rows{}") || Plan::selects_rows) {
    static_assert(sizeof(bool) == 1);
    select_rows(name, reinterpret_cast<std::uint8_t const*>(mask));
  }
  /// Selects the rows whose numbers are in a list in the backend's memory, which is read once, now. Negative numbers
  /// are ignored, so a list can be padded; duplicates count once. A number that is too large throws
  /// std::invalid_argument on the host and is ignored on CUDA, where the call is enqueued. The first call for a
  /// parameter allocates one byte per row.
  template <std::signed_integral Index>
  void select_rows(std::string const& name, Index const* list, std::int64_t count)
      requires(detail::otherwise("give masked_rows{}") || Plan::selects_rows) {
    detail::require(count >= 0 && count <= detail::most_elements, "select_rows", "count", "in [0, 2^48]", count);
    std::size_t const t = core_.number_of(name);
    core_.alive().storage.require_input({list, count, sizeof *list, "select_rows of '" + name + "': the list"},
                                        core_.where);
    core_.alive().select_rows(t, detail::rows_of(core_.where, t), list, count);
  }
  /// How often each row of one parameter was updated. Setting a negative count throws std::invalid_argument; on CUDA,
  /// counts in device memory are not checked.
  auto row_updates(std::string const& name) const
      requires(detail::otherwise("give masked_rows<row_step::own>{}") || Plan::per_row_step) {
    return row_updates_of(core_.number_of(name));
  }
  void set_row_updates(std::string const& name, auto const& from)
      requires(detail::otherwise("give masked_rows<row_step::own>{}") || Plan::per_row_step) {
    std::string const what = "set_row_updates of '" + name + "'";
    detail::require_size(what, row_updates(name).size(), std::size(from));
    require_counts(what, std::span(from));
    put(what, row_updates(name), from);
  }

 protected:
  // The same by the number of the parameter.
  template <std::size_t Slot> auto state_of(std::size_t t) const {
    return state_view<typename Plan::template slot<Slot>>(Slot, t);
  }
  template <std::size_t Part> auto matrix_state_of(std::size_t t) const {
    return matrix_part<Plan, Part>(core_.alive().matrices, core_.where.tensors, t);
  }
  auto master_of(std::size_t t) const {
    using master_or_value = typename Plan::master_or_value;
    auto const& x = core_.where.tensors[t];
    return detail::with_types<Plan>(x.types, [&]<class Typed>() {
      if constexpr (Typed::has_master) return view<master_or_value>(buffer_number::master, t);
      else return view_of(static_cast<master_or_value const*>(static_cast<void const*>(x.value)), x.count);
    });
  }
  auto row_updates_of(std::size_t t) const {
    return view_of(core_.alive().row_updates(t), detail::rows_of(core_.where, t));
  }

  /// This rank's part of one parameter in a buffer, by its owned_index. Empty if there is no buffer.
  template <class T> std::span<T const> view(std::size_t number, std::size_t t) const {
    auto const& x = core_.where.tensors[t];
    auto const& storage = core_.alive().storage;
    if constexpr (Plan::has_given)
      if (void* const at = storage.given[t][number]) return view_of(static_cast<T const*>(at), x.count);
    void const* const buffer = storage.buffer(number);
    if (!buffer) return {};
    if constexpr (Plan::shards) {
      auto const [begin, size] = core_.where.own.parts[t];
      detail::arena_offset const& place =
          detail::is_slot<Plan>(number) ? detail::rule_offset<Plan>(core_.where, t) : core_.where.own.arena_offsets[t];
      return view_of(static_cast<T const*>(buffer) + place(x.arena + begin), size);
    } else {
      return view_of(static_cast<T const*>(buffer) + x.arena, x.count);
    }
  }

  /// Copies into the memory of a view.
  template <class T> void put(std::string const& what, std::span<T const> to, auto const& from) {
    static_assert(
        requires { std::span(from); }, "set_...(name, elements): the elements are a vector, a span or an array");
    if constexpr (requires { std::span(from); }) {
      std::span const elements(from);
      static_assert(std::is_same_v<T, typename decltype(elements)::value_type>,
                    "set_...(name, elements): it is stored in another type than the elements'; convert on purpose");
      detail::require_size(what, to.size(), elements.size());
      core_.alive().storage.require_source(
          {elements.data(), std::int64_t(elements.size()), sizeof(T), what + ": the memory"});
      core_.alive().storage.copy(const_cast<T*>(to.data()), elements.data(), elements.size_bytes());
    }
  }
  void put_memory(std::string const& what, std::span<detail::memory_of<rule_type> const> to, auto const& from) {
    put(what, to, from);
    if constexpr (Plan::sums) core_.alive().set_groups(core_.groups);  // what the next sums need depends on it
  }
  void require_counts(std::string const& what, auto const& counts) const {
    if (counts.empty() || !core_.alive().on_host(counts.data())) return;
    for (std::size_t row = 0; row < counts.size(); ++row)
      if (counts[row] < 0)
        throw std::invalid_argument(what + ": the count of row " + std::to_string(row) + " must be at least 0, is " +
                                    std::to_string(counts[row]));
  }

 private:
  template <class T> static std::span<T const> view_of(T const* p, std::int64_t count) {
    return {p, std::size_t(count)};
  }
  template <class T> std::span<T const> state_view(std::size_t slot, std::size_t t) const {
    return core_.where.tensors[t].matrix ? std::span<T const>{} : view<T>(slot, t);
  }

 protected:
  core core_;
};

}  // namespace descent
