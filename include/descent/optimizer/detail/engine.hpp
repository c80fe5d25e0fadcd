// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/control_block.hpp>
#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/passes.hpp>
#include <descent/engine/step/row_moves.hpp>
#include <descent/core/detail/containers.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace descent::detail {

/// What an optimizer calls of an engine, which takes the steps and owns all buffers. The engine of a device enqueues
/// where no comment says that it waits. Members that only some policies need (ready, select_rows, row_updates, ascend,
/// agree, broadcast) are called only with these policies.
template <class E, class Plan>
concept engine = requires(E& e, E const& c, control_block const& block, step_call const& call,
                          plain_vector<group_entry<typename Plan::rule>>& groups,
                          layout<typename Plan::value, typename Plan::gradient> const& where,
                          row_changes<layout<typename Plan::value, typename Plan::gradient>> const& changes,
                          std::size_t tensor, void* p, std::int64_t n) {
  e.await_start();  // after the constructor: waits until the state is initialized

  // The step.
  e.step(groups, call);
  { e.set_groups(groups) } -> std::same_as<bool>;  // takes new rules; false if a capture keeps them from the device
  e.matrices;                                      // the matrix rule's part, or no_matrices
  e.commit_matrices(groups);                       // takes new matrix rules

  // Gradients in memory.
  e.measure_norm(groups);                                      // for norm_partials()
  { c.norm_partials() } -> std::same_as<std::vector<double>>;  // as last measured, [sum][chunk]; waits
  { c.inverse(block, call) } -> std::same_as<double>;  // the factor from gradients in memory to true ones; waits
  e.zero_gradients();
  e.unscale_gradients();
  e.mark_unscaled(true);  // says whether the gradients are free of the loss scale
  e.ready(groups, tensor);
  { c.any_ready() } -> std::same_as<bool>;  // whether ready() was called since the last step

  // Values.
  e.reload_values();  // rebuilds masters from the values
  { e.values_changed() } -> std::same_as<bool>;  // whether a value is not its master, rounded; waits
  e.in_tensor(where, tensor, round_all{});  // applies a body of passes.hpp to one tensor
  e.ascend(groups);  // saves the values and moves them uphill
  e.template swap_in<swap_target::average>(groups);  // saves the values and replaces them by their averages,
  e.template swap_in<swap_target::ahead>(groups);  // or moves them ahead
  e.restore_values();  // puts the saved values back

  e.rebind(where, std::vector<tensor_addresses>());  // takes new addresses of the values and gradients

  // What is owned, in the memory of the backend; null if it does not exist.
  { c.storage.buffer(tensor) } -> std::same_as<void*>;  // by owned_index: all tensors in the order of the arena
  e.storage.copy(p, p, tensor);  // bytes, from memory of either side
  e.storage.require_source(outside_memory());        // throws unless copy() can read this memory
  e.storage.require_input(outside_memory(), where);  // throws unless calls can, and no step writes it
  { e.memories() } -> std::same_as<std::span<memory_of<typename Plan::rule>>>;  // of each group or tensor
  { c.row_updates(tensor) } -> std::same_as<std::int32_t const*>;
  e.select_rows(tensor, n, static_cast<std::uint8_t const*>(nullptr));
  // For an engine with other rows: the control block, after a check that all source rows exist, waits; then the copies.
  { c.read_for(changes) } -> std::same_as<control_block>;
  e.take(c, block, changes, groups);

  // The control block.
  { c.read_control() } -> std::same_as<control_block>;  // waits
  { c.late_control() } -> std::same_as<control_block>;  // of the newest finished step that the host knows of
  { c.read_scale() } -> std::same_as<loss_scale_state>;  // waits
  { c.loss_scale_pointer() } -> std::same_as<float const*>;
  e.set_control(&control_block::step, n, groups);
  e.observe(static_cast<float const*>(nullptr), 0.0, groups);

  // Ranks.
  e.broadcast(groups, 0);  // gives all ranks what one has; waits
  e.agree(where, groups);  // throws unless all ranks have the same; waits

  { c.policies() } -> std::same_as<typename Plan::policies const&>;
  { E::on_host(p) } -> std::same_as<bool>;  // whether the host may read there
  c.refuse_capture("a function");  // throws where waiting would break a capture
  { c.name() } -> std::same_as<std::string>;
};

}  // namespace descent::detail
