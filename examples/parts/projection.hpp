// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

/// A model of a training step on many GPUs: the results of a projection, with all of its inputs, in seconds and bytes.
namespace example::projection {

/// Bandwidths are assumptions. Latencies are those by which NCCL chooses between its algorithms (src/graph/tuning.cc of
/// NCCL 2.28: hwLat and baseLat, Simple for gradients, LL for a few bytes, tree bandwidth * 0.92).
struct cluster {
  int gpus_per_node = 8;
  double bus = 360e9;                                                  // of a GPU, in the node and between nodes
  double tree = 0.92;                                                  // share of the bus bandwidth
  double ring_link = 3.4e-6, tree_link = 4.0e-6, network = 14e-6;      // per step
  double tiny_base = 6.8e-6, tiny_link = 0.6e-6, tiny_network = 5e-6;  // of a tree for a few bytes

  int in_node(int n) const { return std::min(n, gpus_per_node); }
  int nodes(int n) const { return n / in_node(n); }
};

struct cost {
  double wire, latency;
  double total() const { return wire + latency; }
};

/// One way around a ring: S (n - 1) / (n B) (nccl-tests, doc/PERFORMANCE.md), with n - 1 steps, nodes - 1 of them over
/// the network. The time of a reduce-scatter or an all-gather.
inline cost ring(cluster const& c, int n, double bytes) {
  double const between = c.nodes(n) - 1;
  return {bytes * (n - 1) / (n * c.bus), (n - 1 - between) * c.ring_link + between * c.network};
}
/// Twice around.
inline cost ring_all_reduce(cluster const& c, int n, double bytes) {
  cost const once = ring(c, n, bytes);
  return {2 * once.wire, 2 * once.latency};
}
/// 2 S / (0.92 B), with 2 [(g - 1) link + log2(nodes) network].
inline cost tree_all_reduce(cluster const& c, int n, double bytes) {
  if (n == 1) return {0, 0};
  return {2 * bytes / (c.tree * c.bus), 2 * ((c.in_node(n) - 1) * c.tree_link + std::log2(c.nodes(n)) * c.network)};
}
/// An exchange of a few bytes between all GPUs.
inline double tiny(cluster const& c, int n) {
  return n == 1 ? 0 : c.tiny_base + 2 * ((c.in_node(n) - 1) * c.tiny_link + std::log2(c.nodes(n)) * c.tiny_network);
}

/// Each GPU has its own tokens, whatever the number of GPUs. An H100's peak in bfloat16 and memory bandwidth are from
/// its data sheet (SXM, dense); the shares of them are assumptions. The step of adamw with masters reads the gradient
/// (2), reads and writes master and moments (24), and writes the value (2).
struct model {
  double parameters, tokens = 8192;
  double peak = 989e12, utilization = 0.4;
  double memory = 3.35e12, memory_share = 0.9, bytes_of_step = 28;
  int buckets = 1;  // sent during the backward pass; 1: after it
  // A rule of matrices: operations of a step, of all matrices and of the most expensive one, and the elements of the
  // largest.
  double products = 0, costliest = 0, largest = 0;

  double payload() const { return 2 * parameters; }
  /// Sharded, no matrix is divided, and the parts of all ranks are padded to the largest.
  double padded(int n) const { return 2 * std::max(parameters, n * largest); }
  double forward() const { return 2 * parameters * tokens / (peak * utilization); }
  double backward() const { return 2 * forward(); }
  double update() const { return parameters * bytes_of_step / (memory * memory_share); }
  /// The products of the rank that has most: its share of n is the mean or, with few matrices, the most expensive one.
  double multiply(int n) const { return std::max(products / n, costliest) / (peak * utilization); }

  /// What Muon's five iterations take for a matrix of n <= m.
  void add_matrix(double rows, double columns) {
    double const n = std::min(rows, columns), m = std::max(rows, columns);
    double const operations = 2 * n * n * (m > 1.5 * n ? 4 * m + 14 * n : 10 * m + 5 * n);
    products += operations;
    costliest = std::max(costliest, operations);
    largest = std::max(largest, n * m);
  }
};

enum class way { ring, tree, sharded };

struct step {
  double compute, wire, latency, tiny, update, products = 0;
  double total() const { return compute + wire + latency + tiny + update + products; }
  /// The largest part besides the forward and backward pass.
  char const* dominant() const {
    double const most = std::max({wire, latency, tiny, update, products});
    return most == wire       ? "wire"
           : most == latency  ? "latency"
           : most == tiny     ? "norm"
           : most == products ? "products"
                              : "update";
  }
};

/// T = T_fwd + T_bwd + max(0, sum over all buckets but the last - (T_bwd - t_first)) + T_last + T_tiny + T_update
///
/// where buckets are equal and the first is ready at t_first = T_bwd / buckets. Sharded: T_update / n, buckets are
/// reduce-scatters, and an all-gather of the values follows. Ranks exchange weights (once) and norms (sharded). With a
/// rule of matrices T_products is added: all of them on each rank, or, sharded, those of one rank.
inline step step_of(cluster const& c, model const& m, int n, way w) {
  double const bytes = w == way::sharded ? m.padded(n) : m.payload(), part = bytes / m.buckets;
  double const backward = m.backward();
  cost const bucket = w == way::tree   ? tree_all_reduce(c, n, part)
                      : w == way::ring ? ring_all_reduce(c, n, part)
                                       : ring(c, n, part);
  double const before = (m.buckets - 1) * bucket.total();
  double const exposed = std::max(0.0, before - (backward - backward / m.buckets)) + bucket.total();
  double const share = n == 1 ? 0 : exposed / bucket.total();
  step s{m.forward() + backward, bucket.wire * share, bucket.latency * share, tiny(c, n), m.update(), m.multiply(1)};
  if (w == way::sharded) {
    cost const values = ring(c, n, bytes);
    s.wire += values.wire;
    s.latency += values.latency;
    s.tiny *= 2;
    s.update /= n;
    s.products = m.multiply(n);
  }
  return s;
}

/// The efficiency of n GPUs: T_1 / T_n. It exceeds 1 where the update is divided.
inline double efficiency(cluster const& c, model const& m, int n, way w) {
  return step_of(c, m, 1, way::tree).total() / step_of(c, m, n, w).total();
}

/// The faster of NCCL's two algorithms for an all-reduce.
inline way replicated(cluster const& c, model const& m, int n) {
  return step_of(c, m, n, way::tree).total() < step_of(c, m, n, way::ring).total() ? way::tree : way::ring;
}

}  // namespace example::projection
