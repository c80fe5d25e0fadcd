// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>

#include "nccl/side.cuh"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

/// Gradients that several streams compute on each device, sent in buckets as they become ready. They are NaN before and
/// after a step, so that reading too early or too late, or sending over a buffer in use, is detected.

namespace ds = descent;
using test::joined;
using namespace side_by_side;

namespace {

tensors const& model = of_many_chunks;
constexpr std::int64_t bucket_sizes[] = {1, 30, 4 * 4096, 4 * 4200, 4 * 13000, std::int64_t{1} << 40};

/// A model whose gradients come, on three streams, from the buffers in which they were computed.
struct made : side<float, float, true> {
  using device_floats = test::device_vector<float>;
  test::stream const& s = x.s;
  test::stream makers[3];
  device_floats results{x.gradient, s};
  device_floats poison{std::vector<float>(x.gradient.size(), std::numeric_limits<float>::quiet_NaN()), s};

  made(test::stream const& s, joined& comm) : side(model, s, comm) { differ(); }

  /// Computes this rank's gradients of step t.
  void set(int t) {
    sum(t, comm.rank(), comm.rank() + 1);
    results.put(x.gradient, s);
  }
  cudaStream_t maker(std::size_t tensor) const { return makers[tensor % 3]; }
  void copy(std::size_t k, device_floats const& from, cudaStream_t on) {
    auto const at = x.place(k, 0);  // gradients are at the same places as values
    if (model[k].count)
      test::cuda(cudaMemcpyAsync(x.device_gradient.data() + at, from.data() + at,
                                 std::size_t(model[k].count) * sizeof(float), cudaMemcpyDeviceToDevice, on));
  }
  /// A backward pass that calls mark(tensor, stream) in its own order. The streams begin where s is.
  template <class F> void backward(unsigned seed, F const& mark) {
    std::vector<std::size_t> order(model.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    for (auto const& one : makers) after(s, one);
    for (std::size_t k : order) {
      copy(k, results, maker(k));
      mark(k, maker(k));
    }
    for (auto const& one : makers) after(one, s);  // while s captures, they must join it again
  }
  void spoil() {
    for (std::size_t k = 0; k < model.size(); ++k) copy(k, poison, s);
  }

 private:
  static void after(cudaStream_t ahead, cudaStream_t behind) {
    cudaEvent_t e;
    test::cuda(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    test::cuda(cudaEventRecord(e, ahead));
    test::cuda(cudaStreamWaitEvent(behind, e, 0));
    test::cuda(cudaEventDestroy(e));
  }
};

/// Values after `steps` steps of one process with the sum of the gradients.
std::vector<float> values_alone(joined& comm, int steps) {
  test::stream s;
  side<float, float, false> h{model, s, comm};
  ds::optimizer opt{h.list(), ds::lamb{}, ds::clip_norm{1}, ds::accumulate{1}};
  for (int t = 0; t < steps; ++t) h.set(t), opt.step(h.weight);
  return h.values();
}

auto const replicated = [](joined& comm, std::int64_t bytes) {
  return ds::replicated{comm, ds::ordered_sum{}, ds::overlap{.bucket_bytes = bytes}};
};
auto const sharded = [](joined& comm, std::int64_t bytes) {
  return ds::sharded{comm, ds::ordered_sum{}, ds::overlap{.bucket_bytes = bytes}};
};
auto const native = [](joined& comm, std::int64_t bytes) {
  return ds::replicated{comm, ds::missing_is_zero{}, ds::overlap{.bucket_bytes = bytes}};
};

/// Steps `first`, ..., `last` - 1, with a mark for each gradient.
template <class Optimizer> void train(Optimizer& opt, made& m, int first, int last) {
  for (int t = first; t < last; ++t) {
    m.set(t);
    m.spoil();
    m.backward(unsigned(31 * t + m.comm.rank()), [&](std::size_t k, cudaStream_t maker) { opt.ready(k, maker); });
    opt.step();
    m.spoil();
  }
}

}  // namespace

TEST_CASE("trap 28: whatever the buckets, streams and order of marks: the values of one process") {
  joined comm;
  auto const want = values_alone(comm, 3);
  auto const run = [&](auto const& policy, std::int64_t bytes) {
    INFO("rank ", comm.rank(), " of ", comm.size(), ", buckets of ", bytes, " bytes");
    test::stream s;
    made m(s, comm);
    ds::optimizer opt{m.list(), ds::lamb{}, ds::clip_norm{1}, policy(comm, bytes), ds::cuda{s}};
    train(opt, m, 0, 3);
    CHECK(m.values() == want);
  };
  for (std::size_t i = 0; i < std::size(bucket_sizes); ++i) {
    if (i % 2 == 0 || i == 3) run(replicated, bucket_sizes[i]);
    if (i % 2 == 1 || i == 0) run(sharded, bucket_sizes[i]);
  }
  run(native, bucket_sizes[3]);
}

TEST_CASE("trap 28: gradients that are ready early wait for the step that still reads the sums of the last ones") {
  joined comm;
  test::stream s;
  made m(s, comm);
  side<float, float, false> h{model, s, comm};
  ds::optimizer opt{m.list(), ds::lamb{}, ds::clip_norm{1}, native(comm, 4 * 4200), ds::cuda{s}};
  ds::optimizer alone{h.list(), ds::lamb{}, ds::clip_norm{1}, ds::accumulate{1}};
  m.set(0);
  for (std::size_t k = 0; k < model.size(); ++k) m.copy(k, m.results, s);
  s.wait();
  h.set(0);
  for (int t = 0; t < 6; ++t) {  // the same gradients each time: nothing computes them
    for (std::size_t k = 0; k < model.size(); ++k) opt.ready(k, m.maker(k));
    opt.step();
    alone.step(h.weight);
  }
  CHECK(m.values() == h.values());
}

TEST_CASE("captured with its marks, a step replays as an eager one, and has as many launches as explain says") {
  joined comm;
  auto const run = [&](bool capture) {
    test::stream s;
    made m(s, comm);
    ds::optimizer opt{m.list(), ds::lamb{}, ds::clip_norm{1}, sharded(comm, 4 * 4200), ds::cuda{s}};
    auto const enqueue = [&](int t) {
      m.backward(unsigned(t + comm.rank()), [&](std::size_t k, cudaStream_t maker) { opt.ready(k, maker); });
      opt.step();
      m.spoil();
    };
    auto const launches = ds::detail::launches;
    if (capture) {
      test::graph const recorded(s, [&] { enqueue(0); });
      for (int t = 0; t < 4; ++t) m.set(t), recorded.launch(s);
      CHECK(opt.report().step == 4);
    } else {
      for (int t = 0; t < 4; ++t) m.set(t), enqueue(t);
      std::string const said = " update, " + std::to_string((ds::detail::launches - launches) / 4) + " launches";
      CHECK(opt.explain().find(said) != std::string::npos);
    }
    return m.values();
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("a mark that lacks or comes twice is an error that names it, and can be made good") {
  joined comm;
  test::stream s;
  made m(s, comm);
  ds::optimizer opt{m.list(), ds::lamb{}, ds::clip_norm{1}, replicated(comm, 9000), ds::cuda{s}};
  m.set(0);
  m.backward(1, [&](std::size_t k, cudaStream_t maker) {
    if (k > 0) opt.ready(k, maker);
  });
  CHECK_THROWS_WITH_AS(opt.ready("w3"), "ready(): the gradient of 'w3' is already marked, and no step() has used it "
                                        "since", std::logic_error);
  std::string const why =
      "no ready() for the gradient of 'w0'; if that is intended, add missing_is_zero{} to overlap{}";
  CHECK_THROWS_WITH_AS(opt.step(), ("step(): " + why).c_str(), std::logic_error);
  CHECK_THROWS_WITH_AS(opt.gradient_norm(), ("gradient_norm(): " + why).c_str(), std::logic_error);
  CHECK_THROWS_WITH_AS(opt.zero_grad(), "zero_grad() after ready(): gradients are on their way until step()",
                       std::logic_error);
  opt.ready("w0");
  CHECK(opt.gradient_norm() > 0);
  opt.step();
  train(opt, m, 1, 3);
  CHECK(m.values() == values_alone(comm, 3));
}

TEST_CASE("missing_is_zero: what the last rank does not mark is zero there") {
  joined comm;
  test::stream s;
  made m(s, comm);
  side<float, float, false> h{model, s, comm};
  ds::optimizer opt{m.list(), ds::lamb{}, ds::clip_norm{1}, native(comm, 4 * 13000), ds::cuda{s}};
  ds::optimizer alone{h.list(), ds::lamb{}, ds::clip_norm{1}, ds::accumulate{1}};
  bool const last = comm.rank() == comm.size() - 1;
  for (int t = 0; t < 3; ++t) {
    m.set(t);
    m.spoil();
    m.backward(unsigned(t), [&](std::size_t k, cudaStream_t maker) {
      if (!last || k % 2) opt.ready(k, maker);
      else m.copy(k, m.poison, maker);
    });
    opt.step();
    h.sum(t, 0, comm.size());
    auto const all = h.x.gradient;
    h.sum(t, 0, comm.size() - 1);
    h.x.each([&](std::size_t k, std::int64_t i) {
      if (k % 2) h.x.gradient_of(k, i) = all[h.x.place(k, i)];
    });
    alone.step(h.weight);
    CHECK(m.values() == h.values());
  }
}

TEST_CASE("an overflow in any bucket of any rank is skipped by all") {
  joined comm;
  test::stream s;
  made m(s, comm);
  ds::optimizer opt{m.list(), ds::lamb{}, ds::clip_norm{1}, sharded(comm, 1), ds::cuda{s}};
  for (int bad = 0; bad < comm.size(); ++bad)
    for (std::size_t k = 0; k < model.size(); ++k) {
      if (model[k].count == 0) continue;
      m.set(0);
      if (comm.rank() == bad) {
        m.x.gradient_of(k, model[k].count - 1) = std::numeric_limits<float>::infinity();
        m.results.put(m.x.gradient, s);
      }
      auto const before = m.values();
      m.backward(unsigned(k), [&](std::size_t one, cudaStream_t maker) { opt.ready(one, maker); });
      opt.step();
      CHECK(!opt.report().applied);
      CHECK(opt.report().why.starts_with("the gradient of 'w" + std::to_string(k) + "' is not finite"));
      CHECK(m.values() == before);
    }
  m.set(0);
  m.backward(0, [&](std::size_t one, cudaStream_t maker) { opt.ready(one, maker); });
  opt.step();
  CHECK(opt.report().applied);
}

TEST_CASE("micro-batches: marks send nothing before the last; groups may change and averages be looked at meanwhile") {
  joined comm;
  test::stream s;
  made m(s, comm);
  side<float, float, false> h{model, s, comm};
  ds::optimizer opt{m.list(), ds::adamw{}, ds::ema{.decay = 0.5}, ds::accumulate{2}, sharded(comm, 4 * 4200),
                    ds::cuda{s}};
  ds::optimizer alone{h.list(), ds::adamw{}, ds::ema{.decay = 0.5}, ds::accumulate{1}};
  auto const marks = [&](int t) {
    m.backward(unsigned(t), [&](std::size_t k, cudaStream_t maker) { opt.ready(k, maker); });
  };
  for (int t = 0; t < 4; ++t) {
    m.set(t), h.set(t);
    CHECK(test::launches([&] { marks(t); }) == 0);
    opt.step();
    CHECK(test::launches([&] { marks(t + 1); }) > 0);
    opt.swap_average(), opt.swap_average();
    opt.group(0).lr = alone.group(0).lr = 0.001 * (t + 1);
    opt.step();
    alone.step(2 * h.weight);
    CHECK(m.values() == h.values());
  }
}
