// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/ranks/parallel.hpp>

#include "nccl/ranks.cuh"

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

/// What a rank trains on its device, compared with one process on the host that has the sum of the gradients: the
/// values are the same to the bit.
namespace side_by_side {

namespace ds = descent;
using test::joined;

using tensors = std::vector<test::tensor>;
inline tensors const usual{{4099}, {1, 1}, {0}, {7}, {130, 1, 0, 0, 13}};
inline tensors const of_many_chunks{{4099}, {1, 1}, {0}, {12291, 1, 0, 0, 3}, {7}, {4096, 1}};

// ---- gradients whose sums over a few ranks are exact ---------------------------------------------------------------

/// Multiples of 2^-10 in [-1, 1).
inline double fine(int rank, int t, std::size_t k, std::int64_t i) {
  return ranks::gradient_of(rank, t, k, std::size_t(i));
}
/// Multiples of 2^-6: sums are exact in 16 bits, too.
inline double coarse(int rank, int t, std::size_t k, std::int64_t i) {
  return std::floor(fine(rank, t, k, i) * 64) / 64;
}
/// Numbers that 16 bits round to the coarse ones.
inline double nearly_coarse(int rank, int t, std::size_t k, std::int64_t i) {
  return coarse(rank, t, k, i) * (1 + 0x1p-13);
}
/// Sums that float rounds in any order, and double does not.
inline double of_double(int rank, int t, std::size_t k, std::int64_t i) {
  return rank == 0 ? 0x1p24 : 0.5 + coarse(rank, t, k, i) / 4;
}
using numbers = double (*)(int, int, std::size_t, std::int64_t);

/// The values and gradients of one process, on the host or on its device.
template <class Value, class Gradient, bool Device> struct side {
  static constexpr bool on_device = Device;
  test::tensors<Value, Gradient> x;
  joined& comm;
  numbers number;
  double weight = on_device ? 1 : comm.size();  // of a step
  std::vector<std::vector<Value>> seen;

  side(tensors const& list, test::stream const& s, joined& comm, numbers number = fine)
      : x(list, s), comm(comm), number(number) {}

  auto list() {
    if constexpr (on_device) return x.on_device();
    else return x.on_host();
  }
  /// Makes values differ between ranks until the constructor of an optimizer broadcasts those of rank 0.
  void differ() {
    auto other = x.value;
    x.each([&](std::size_t k, std::int64_t i) {
      auto& p = other[x.place(k, i)];
      p = ds::narrow<Value>(ds::widen<double>(p) + comm.rank());
    });
    x.device_value.put(other, x.s);
  }
  /// Sets the sum of the gradients of ranks first, ..., last - 1 at step t.
  void sum(int t, int first, int last, double factor = 1) {
    x.each([&](std::size_t k, std::int64_t i) {
      double total = 0;
      for (int r = first; r < last; ++r) total += number(r, t, k, i);
      x.gradient_of(k, i) = ds::narrow<Gradient>(total * factor);
    });
  }
  /// Sets the gradients of step t: this rank's own, or the sum of all ranks'.
  void set(int t, double factor = 1) {
    if (on_device) sum(t, comm.rank(), comm.rank() + 1, factor);
    else sum(t, 0, comm.size(), factor);
    x.send_gradients();
  }
  /// Checks that call() allocates nothing, copies nothing and waits for nothing.
  template <class Call> void enqueue(Call const& call) const {
    if (!on_device || !test::in_software()) return call();
    auto const counted = [](std::string const& what) { return cudasim_count(what.c_str()); };
    std::string const at_once[] = {"allocations", "frees", "synchronisations"};
    x.s.wait();
    std::uint64_t const copies = counted("memcpys");
    std::vector<std::uint64_t> before;
    for (auto const& what : at_once) before.push_back(counted(what));
    call();
    for (std::size_t i = 0; i < before.size(); ++i) {
      INFO(at_once[i]);
      CHECK(counted(at_once[i]) == before[i]);
    }
    x.s.wait();
    CHECK(counted("memcpys") == copies);
  }
  template <class Opt> void step(Opt& opt) const {
    enqueue([&] { opt.step(weight); });
  }
  /// Changes the values from outside.
  void halve_values() {
    auto other = seen.back();
    for (auto& x : other) x = ds::narrow<Value>(ds::widen<double>(x) / 2);
    if (on_device) x.device_value.put(other, x.s);
    else x.value = other;
  }
  /// The values, and the memory between them.
  std::vector<Value> values() const { return on_device ? x.device_value.get(x.s) : x.value; }
  void look() { seen.push_back(values()); }
};

/// Three steps.
inline auto const steps = [](auto& opt, auto& at) {
  for (int t = 0; t < 3; ++t) at.set(t), at.step(opt), at.look();
};

/// A model with its gradients: those of the ranks, and those of the single process.
template <class Value, class Gradient = Value, class HostGradient = Gradient> struct trial {
  joined& comm;
  tensors list = usual;
  numbers sent = fine, summed = sent;

  /// Checks that train(optimizer, side) sees the same values on this rank's device as in one process on the host.
  template <class Train, class Policy, class Rule, class... Ps>
  void same(Train const& train, Policy policy, Rule const& rule, Ps... policies) const {
    std::string const how = Policy::shards ? "sharded" : "replicated";
    INFO(how, ", rank ", comm.rank(), " of ", comm.size());
    test::stream s;
    side<Value, HostGradient, false> h{list, s, comm, summed};
    constexpr bool takes_weights = (std::is_same_v<Ps, ds::accumulate> || ...);
    if constexpr (takes_weights) {
      ds::optimizer opt{h.list(), rule, policies...};
      train(opt, h);
    } else {
      ds::optimizer opt{h.list(), rule, policies..., ds::accumulate{1}};
      train(opt, h);
    }
    side<Value, Gradient, true> d{list, s, comm, sent};
    d.differ();
    ds::optimizer opt{d.list(), rule, policies..., policy, ds::cuda{s}};
    train(opt, d);
    REQUIRE(h.seen.size() == d.seen.size());
    for (std::size_t i = 0; i < h.seen.size(); ++i) {
      INFO("look ", i);
      CHECK(test::same_bits(h.seen[i], d.seen[i]));
    }
    CHECK(test::same_bits(d.x.gradient, d.x.device_gradient.get(s)));
  }
  template <class Train, class Rule, class... Ps>
  void both(Train const& train, Rule const& rule, Ps... policies) const {
    same(train, ds::replicated{comm}, rule, policies...);
    same(train, ds::sharded{comm}, rule, policies...);
  }
};

struct halve {
  DESCENT_HD float operator()(float g) const { return g / 2; }
};

}  // namespace side_by_side
