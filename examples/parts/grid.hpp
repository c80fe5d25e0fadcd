// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "projection.hpp"

/// A model of a step on a grid of GPUs: each layer is cut over `tensor` of them, the layers over `pipeline` stages, and
/// `data` copies of that share the batch. In seconds and bytes.
namespace example::projection {

struct grid {
  int tensor = 1, pipeline = 1, data = 1;
  int gpus() const { return tensor * pipeline * data; }
};

/// The layers of a model, and how its batch is cut.
struct layers {
  int count;
  double width;
  double micro_batch = 2048;  // tokens

  /// The activations between two layers, in 16 bits.
  double activations() const { return 2 * micro_batch * width; }
};

struct grid_step {
  double compute, tensor, sends, idle, gradients, norm, update, products;
  double memory;  // bytes of a GPU for values, gradients, masters and moments; activations come on top
  double total() const { return compute + tensor + sends + idle + gradients + norm + update + products; }
};

/// A GPU has as many tokens as without a grid, so each copy of the model has m = tokens tensor pipeline / micro_batch
/// micro-batches, and
///
///     T = T_fwd + T_bwd + T_tensor + T_sends + T_idle + T_gradients + T_norm + T_update
///
///     T_tensor = m layers / pipeline * 4 all-reduces of the activations over `tensor` GPUs (Shoeybi et al. 2019)
///     T_sends  = 2 m (activations / B + network), between stages
///     T_idle   = (pipeline - 1) / m of the work before it (Huang et al. 2019)
///
/// Gradients are those of a GPU's share of the parameters, summed over `data` GPUs: reduced, and with sharded state
/// the values gathered. The norm is model_parallel's: 8 bytes for 4096 parameters of the model. Muon's matrices are
/// whole, so that `tensor` is 1 with it; each stage has its own, shared among the `data` ranks if sharded.
inline grid_step step_of(cluster const& c, model const& m, layers const& l, grid const& g, bool sharded) {
  double const share = m.parameters / (g.tensor * g.pipeline),
               batches = m.tokens * g.tensor * g.pipeline / l.micro_batch;
  cluster of_data = c;  // the GPUs of a node are `tensor` of each copy
  of_data.gpus_per_node = std::max(1, c.gpus_per_node / g.tensor);
  grid_step s{};
  s.compute = m.forward() + m.backward();
  if (g.tensor > 1)
    s.tensor = batches * l.count / g.pipeline * 4 * ring_all_reduce(c, g.tensor, l.activations()).total();
  if (g.pipeline > 1) s.sends = 2 * batches * (l.activations() / c.bus + c.network);
  s.idle = (g.pipeline - 1) / batches * (s.compute + s.tensor + s.sends);
  double const ring_time = ring(of_data, g.data, 2 * share).total();
  s.gradients = sharded ? 2 * ring_time : std::min(2 * ring_time, tree_all_reduce(of_data, g.data, 2 * share).total());
  int const parts = g.tensor * g.pipeline;
  if (parts > 1) s.norm = ring_all_reduce(c, parts, m.parameters / 512).total();
  s.norm += tiny(of_data, g.data) * (sharded ? 2 : 1);
  int const owners = sharded ? g.data : 1;
  s.update = share * m.bytes_of_step / (m.memory * m.memory_share) / owners;
  s.products = std::max(m.products / (g.pipeline * owners), m.costliest) / (m.peak * m.utilization);
  s.memory = share * (4 + 12.0 / owners);
  return s;
}

/// The fastest grid of n GPUs that fits into `room` bytes of each; {0, 0, 0} if none does. `widest`: the most GPUs that
/// a layer is cut over.
inline grid fastest(cluster const& c, model const& m, layers const& l, int n, double room, int widest, bool sharded) {
  grid best{0, 0, 0};
  double time = 0;
  for (int t = 1; t <= std::min(widest, n); t *= 2)
    for (int p = 1; t * p <= n && p <= l.count; p *= 2) {
      grid const g{t, p, n / (t * p)};
      grid_step const s = step_of(c, m, l, g, sharded);
      if (s.memory > room || (best.data && s.total() >= time)) continue;
      best = g, time = s.total();
    }
  return best;
}

}  // namespace example::projection
