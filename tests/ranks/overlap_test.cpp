// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>
#include "support/message.hpp"
#include "support/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

/// Gradients that are sent in buckets as they become ready.

namespace ds = descent;
using ranks::none, ranks::on_ranks;
using test::message;
using namespace std::chrono_literals;

namespace {

using model = ranks::model<float>;
std::size_t const count = ranks::sizes.size();

/// All tensors in a random order.
std::vector<std::size_t> shuffled(unsigned seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

/// Gradients whose sum depends on the order.
void set_uneven(model& m, int rank, int t) {
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t i = 0; i < m.gradient[k].size(); ++i)
      m.gradient[k][i] = float(std::sin(1.7 * double(i) + double(k) + 0.3 * t + 5.1 * rank));
}

/// Every rank's model after a few steps, with averages swapped in at the end.
template <class Policy>
std::vector<model> train(int ranks, Policy const& policy) {
  std::vector<model> all;
  for (int r = 0; r < ranks; ++r) all.emplace_back(r);
  ranks::with_ranks(ranks, [&](auto& comm) {
    auto& m = all[std::size_t(comm.rank())];
    ds::optimizer opt{m.list(), ds::lamb{}, ds::clip_norm{0.5}, ds::ema{.decay = 0.5}, policy(comm)};
    for (int t = 0; t < 4; ++t) {
      set_uneven(m, comm.rank(), t);
      if constexpr (decltype(policy(comm))::overlaps)
        for (std::size_t k : shuffled(unsigned(31 * t + comm.rank()))) opt.ready(k);
      opt.step(1 + comm.rank());
    }
    opt.swap_average();
  });
  return all;
}

std::int64_t const bucket_sizes[] = {1, 30, 4 * 4096, 4 * 4200, 4 * 13000, std::int64_t{1} << 40};

/// Runs work with the communicator of a single rank.
template <class Work> void alone_with_policy(Work const& work) {
  ds::comm::threads world{1, 60s};
  auto comm = world.rank(0);
  work(comm);
}

}  // namespace

TEST_CASE("trap 29: ordered sums: no size of buckets and no order of marks changes a bit") {
  for (int ranks : {1, 2, 3, 5}) {
    auto const want = train(ranks, ranks::replicated_ordered);
    for (std::int64_t bytes : bucket_sizes) {
      INFO("ranks ", ranks, ", buckets of ", bytes, " bytes");
      auto const replicated = [=](auto& comm) {
        return ds::replicated{comm, ds::ordered_sum{}, ds::overlap{.bucket_bytes = bytes}};
      };
      auto const sharded = [=](auto& comm) {
        return ds::sharded{comm, ds::ordered_sum{}, ds::overlap{.bucket_bytes = bytes}};
      };
      for (auto const& got : train(ranks, replicated)) CHECK(got == want[0]);
      for (auto const& got : train(ranks, sharded)) CHECK(got == want[0]);
    }
  }
}

TEST_CASE("native sums in buckets, wires and mixed storage: the values of one process where sums are exact") {
  auto const holds = [&]<class Value, class Gradient>(auto policy, auto... policies) {
    for (int ranks : {2, 3}) {
      auto const want = ranks::alone<Value, Gradient>(ranks, ds::adamw{}, policies...);
      ranks::with_ranks(ranks, [&](auto& comm) {
        ranks::model<Value, Gradient> m(comm.rank());
        ds::optimizer opt{m.list(), ds::adamw{}, policies..., policy(comm)};
        for (int t = 0; t < ranks::steps; ++t) {
          m.set(t, comm.rank(), comm.rank() + 1);
          for (std::size_t k : shuffled(unsigned(t + 7 * comm.rank()))) opt.ready("w" + std::to_string(k));
          opt.step();
        }
        CHECK(m == want);
      });
    }
  };
  ds::overlap const some{.bucket_bytes = 9000};
  holds.operator()<float, float>([&](auto& c) { return ds::replicated{c, some}; }, ds::zero_grad{});
  holds.operator()<float, float>([&](auto& c) { return ds::sharded{c, some}; });
  holds.operator()<ds::half, float>([&](auto& c) { return ds::sharded{c, some, ds::wire<double>{}}; },
                                    ds::master<float>{});
}

TEST_CASE("buckets hold all tensors once, from the last to the first, none larger than asked but single tensors") {
  std::vector<std::int64_t> const sizes{4099, 1, 0, (std::int64_t{3} << 30) + 5, 7, 4096, 0, 12289};  // fake memory
  ds::parameters<float> list;
  std::uintptr_t at = 1 << 20;
  for (std::size_t t = 0; t < sizes.size(); ++t, at += std::uintptr_t{1} << 36)
    list.add("w" + std::to_string(t), reinterpret_cast<float*>(at),
             reinterpret_cast<float*>(at + (std::uintptr_t{1} << 35)), std::size_t(sizes[t]));
  for (int ranks : {1, 2, 3, 7, 64})
    for (std::int64_t bytes : bucket_sizes) {
      INFO("ranks ", ranks, ", buckets of ", bytes, " bytes");
      ds::comm::threads world{ranks, 60s};
      auto comm = world.rank(0);
      auto const check = [&](auto policy) {
        using plan = ds::detail::plan<float, float, ds::sgd, decltype(policy)>;
        ds::detail::layout<float, float> const where(ds::detail::sum_over_ranks{},
                                                     ds::detail::layout<float, float>(list));
        auto const all = ds::detail::partition_of<plan>(where, policy);
        std::size_t end = sizes.size();
        std::int64_t part = 0, chunks = 0, elements = 0;
        for (auto const& b : all.buckets) {
          CHECK(b.first_tensor + b.tensors == end);
          end = b.first_tensor;
          chunks += b.of_rule.chunks;
          if (b.tensors > 1) CHECK(b.size() * 4 <= bytes);
          CHECK(b.part == part);
          part += plan::shards ? b.room : ranks * b.room;
          CHECK(ranks * b.room >= b.size());
          std::int64_t next = b.of_rule.first_chunk;
          for (auto const& share : b.shares) {  // consecutive, none with more room than the bucket's parts
            CHECK(share.first_chunk == next);
            next += share.chunks;
            CHECK(share.size <= b.room);
            CHECK(share.size <= b.size() / ranks + 2 * 4096);
          }
          if (plan::shards) {
            CHECK(next == b.of_rule.first_chunk + b.of_rule.chunks);
            for (std::size_t t = b.first_tensor; t < b.first_tensor + b.tensors; ++t)
              for (std::size_t r = 0; r < std::size_t(ranks); ++r) elements += all.part_of(where, t, r).size;
          }
        }
        CHECK(end == 0);
        CHECK(part == all.part);
        CHECK(chunks == where.chunks());
        if (plan::shards) CHECK(elements == where.elements);
        for (std::size_t t = 0; t < sizes.size(); ++t) {
          auto const& b = all.buckets[all.bucket_of[t]];
          CHECK((t >= b.first_tensor && t < b.first_tensor + b.tensors));
        }
      };
      check(ds::replicated{comm, ds::overlap{.bucket_bytes = bytes}});
      check(ds::sharded{comm, ds::overlap{.bucket_bytes = bytes}});
    }
}

TEST_CASE("trap 31: a gradient that is marked twice or never is an error that names it, and nothing is lost") {
  ranks::with_ranks(2, [&](auto& comm) {
    model m(comm.rank());
    ds::optimizer opt{m.list(), ds::sgd{.lr = 1}, ds::sharded{comm, ds::overlap{.bucket_bytes = 9000}}};
    m.set(0, comm.rank(), comm.rank() + 1);
    auto const before = m;
    CHECK(message([&] { opt.ready(count); }) ==
          "ready(): the parameter must be in [0, " + std::to_string(count) + "), is " + std::to_string(count));
    for (std::size_t k = count; k-- > 2;) opt.ready(k);
    CHECK(message([&] { opt.ready("w3"); }) ==
          "ready(): the gradient of 'w3' is already marked, and no step() has used it since");
    std::string const missing = "no ready() for the gradient of 'w0', 'w1'; if that is intended, add missing_is_zero{} "
                                "to overlap{}";
    CHECK(message([&] { opt.step(); }) == "step(): " + missing);
    CHECK(message([&] { opt.gradient_norm(); }) == "gradient_norm(): " + missing);
    for (char const* name : {"zero_grad()", "transform_gradients()", "freeze()"}) {
      std::string const text = std::string(name) + " after ready(): gradients are on their way until step()";
      CHECK(message([&] {
              if (name[0] == 'z') opt.zero_grad();
              else if (name[0] == 't') opt.transform_gradients([](float g) { return g; });
              else opt.freeze(0);
            }) == text);
    }
    CHECK(m == before);
    opt.ready(1);
    opt.ready(0);
    opt.step();
    model want;
    ds::optimizer alone{want.list(), ds::sgd{.lr = 1}, ds::accumulate{1}};
    want.set(0, 0, 2);
    alone.step(2);
    CHECK(m == want);
    opt.freeze(1);  // its gradients are not waited for
    alone.freeze(1);
    m.set(1, comm.rank(), comm.rank() + 1);
    want.set(1, 0, 2);
    for (std::size_t k = 0; k < count; k += 2) opt.ready(k);
    opt.step();
    alone.step(2);
    CHECK(m == want);
    CHECK(message([&] { opt.step(); }).starts_with("step(): no ready() for the gradient of 'w0'"));
  });
}

TEST_CASE("overlap: after ready() has lost a rank, every call says so") {
  ds::comm::threads world{2};
  ranks::on_ranks(world, [&](auto& comm) {
    model m(comm.rank());
    ds::optimizer opt{m.list(), ds::sgd{}, ds::replicated{comm, ds::overlap{.bucket_bytes = 50}}};
    if (comm.rank() == 1) return;  // it ends
    CHECK_THROWS_AS(opt.ready(count - 1), ds::comm_error);
    std::string const lost = "this optimizer lost its ranks in an earlier call: make a new one";
    CHECK(message<std::logic_error>([&] { opt.step(); }) == lost);
    CHECK(message<std::logic_error>([&] { opt.ready(0); }) == lost);
  });
}

TEST_CASE("missing_is_zero: a gradient without a mark counts as zero, on that rank") {
  for (bool shards : {false, true}) {
    ranks::with_ranks(2, [&](auto& comm) {
      auto const run = [&](auto policy) {
        model m(comm.rank()), want;
        ds::optimizer opt{m.list(), ds::adamw{}, policy};
        ds::optimizer alone{want.list(), ds::adamw{}, ds::accumulate{1}};
        for (int t = 0; t < 3; ++t) {
          m.set(t, comm.rank(), comm.rank() + 1);
          want.set(t, 0, 2);
          model one;  // rank 0's gradients: rank 1 marks 'w0' only
          one.set(t, 0, 1);
          for (std::size_t k = 1; k < count; ++k) want.gradient[k] = one.gradient[k];
          if (comm.rank() == 0)
            for (std::size_t k = 0; k < count; ++k) opt.ready(k);
          else opt.ready(0);
          opt.step();
          alone.step(2);
          CHECK(m == want);
        }
      };
      ds::overlap const some{.bucket_bytes = 9000};
      if (shards) run(ds::sharded{comm, some, ds::missing_is_zero{}});
      else run(ds::replicated{comm, ds::ordered_sum{}, ds::missing_is_zero{}, some});
    });
  }
}

TEST_CASE("an overflow in any bucket of any rank skips the step on all") {
  ranks::with_ranks(3, [&](auto& comm) {
    auto const run = [&](auto policy) {
      model m;
      ds::optimizer opt{m.list(), ds::adamw{}, ds::dynamic_loss_scale{.init = 4}, policy};
      int t = 0;
      for (int bad = 0; bad < comm.size(); ++bad)
        for (std::size_t k = 0; k < count; ++k) {
          if (ranks::sizes[k] == 0) continue;
          m.set(t, comm.rank(), comm.rank() + 1);
          if (comm.rank() == bad) m.gradient[k].back() = std::numeric_limits<float>::infinity();
          auto const before = m;
          for (std::size_t one : shuffled(unsigned(comm.rank()))) opt.ready(one);
          opt.step();
          CHECK(!opt.report().applied);
          CHECK(opt.report().why == "the gradient of 'w" + std::to_string(k) + "' is not finite");
          CHECK(m == before);
          ++t;
        }
      CHECK(opt.report().step == 0);
    };
    run(ds::replicated{comm, ds::overlap{.bucket_bytes = 1}});
    run(ds::sharded{comm, ds::ordered_sum{}, ds::overlap{.bucket_bytes = 1}});
  });
}

TEST_CASE("micro-batches: marks send nothing before the last; flush() needs none") {
  ds::comm::threads world{2, 60s};
  std::vector<std::int64_t> begun(2);
  world.before = [&](int r, std::int64_t number) {
    return begun[std::size_t(r)] = number, ds::comm::threads::fault::none;
  };
  CHECK(none(on_ranks(world, [&](auto& comm) {
    auto const& sent = begun[std::size_t(comm.rank())];
    model m(comm.rank()), want;
    ds::optimizer opt{m.list(), ds::lamb{}, ds::accumulate{3}, ds::zero_grad{},
                      ds::sharded{comm, ds::overlap{.bucket_bytes = 9000}}};
    ds::optimizer alone{want.list(), ds::lamb{}, ds::accumulate{1}};
    for (int t = 0; t < 2; ++t) {
      m.set(t, comm.rank(), comm.rank() + 1);
      want.set(t, 0, 2);
      for (int batch = 0; batch < 3; ++batch) {
        auto const before = sent;
        for (std::size_t k = count; k-- > 0;) opt.ready(k);
        if (batch < 2) CHECK(sent == before);
        else CHECK(sent > before);
        if (batch < 2) opt.step(1);
        if (batch < 2) CHECK(sent == before);
      }
      CHECK(opt.gradient_norm() > 0);  // of the gradients that were sent, which remains
      opt.step(1);
      alone.step(6);
      CHECK(m == want);
    }
    CHECK(message([&] { opt.step(); }).starts_with("step(): no ready() for the gradient of 'w0'"));
    m.set(2, comm.rank(), comm.rank() + 1);
    want.set(2, 0, 2);
    for (std::size_t k = count; k-- > 0;) opt.ready(k);
    opt.step(1);
    opt.flush();
    alone.step(2);
    CHECK(m == want);
  })));
}

TEST_CASE("ranks that measure different gradients, sent or in memory, all get the error") {
  ds::comm::threads world{2, 60s};
  auto const thrown = on_ranks(world, [&](auto& comm) {
    model m;
    ds::optimizer opt{m.list(), ds::lamb{}, ds::accumulate{3}, ds::zero_grad{},
                      ds::sharded{comm, ds::overlap{.bucket_bytes = 9000}}};
    for (int batch = 0; batch < 3 && (comm.rank() == 0 || batch == 0); ++batch) {
      for (std::size_t k = count; k-- > 0;) opt.ready(k);  // the third micro-batch sends
      if (batch < 2) opt.step(1);
    }
    opt.gradient_norm();
  });
  for (auto const& text : thrown)
    CHECK(text.find("is in gradient_norm(), but ranks differ: gradient_norm() of marked gradients (rank 0); "
                    "gradient_norm() (rank 1)") != text.npos);
}

TEST_CASE("sizes of buckets that differ or make no sense are refused") {
  alone_with_policy([](auto& comm) {
    model m;
    CHECK_THROWS_WITH_AS((ds::optimizer{m.list(), ds::sgd{}, ds::replicated{comm, ds::overlap{.bucket_bytes = 0}}}),
                         "overlap: bucket_bytes must be above 0, is 0", std::invalid_argument);
  });
  ds::comm::threads world{2, 60s};
  auto const thrown = on_ranks(world, [&](auto& comm) {
    model m;
    ds::optimizer{m.list(), ds::sgd{}, ds::sharded{comm, ds::overlap{.bucket_bytes = 100 + comm.rank()}}};
  });
  for (auto const& text : thrown)
    CHECK(text == "ranks disagree about the training setup: bucket_bytes of sharded is 100 (rank 0); "
                  "bucket_bytes of sharded is 101 (rank 1)");
}

TEST_CASE("sharded: the parts of the state that ranks have are the whole, in buckets too") {
  std::vector<std::vector<float>> whole(count);
  {
    model m;
    ds::optimizer opt{m.list(), ds::sgd{.momentum = 0.9}, ds::accumulate{1}};
    m.set(0, 0, 3);
    opt.step(3);
    for (std::size_t k = 0; k < count; ++k) {
      auto const s = opt.state("w" + std::to_string(k), 0);
      whole[k].assign(s.begin(), s.end());
    }
  }
  std::vector<std::vector<std::vector<float>>> parts(3, std::vector<std::vector<float>>(count));
  ranks::with_ranks(3, [&](auto& comm) {
    model m;
    ds::optimizer opt{m.list(), ds::sgd{.momentum = 0.9}, ds::sharded{comm, ds::overlap{.bucket_bytes = 4 * 5000}}};
    m.set(0, comm.rank(), comm.rank() + 1);
    for (std::size_t k = 0; k < count; ++k) opt.ready(k);
    opt.step();
    for (std::size_t k = 0; k < count; ++k) {
      auto const s = opt.state("w" + std::to_string(k), 0);
      parts[std::size_t(comm.rank())][k].assign(s.begin(), s.end());
    }
  });
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<float> got;
    for (auto const& of_rank : parts) got.insert(got.end(), of_rank[k].begin(), of_rank[k].end());
    CHECK(got == whole[k]);
  }
}

TEST_CASE("step(0) after some, all or no marks: what was sent is zeros, and what was not is not read") {
  for (int marks : {0, 1, int(count) - 1, int(count)})
    ranks::with_ranks(2, [&](auto& comm) {
      auto const run = [&](auto policy) {
        CAPTURE(marks);
        model m(comm.rank()), want;
        ds::optimizer opt{m.list(), ds::adamw{}, ds::zero_grad{}, policy};
        ds::optimizer alone{want.list(), ds::adamw{}, ds::zero_grad{}, ds::accumulate{1}};
        for (int t = 0; t < 3; ++t) {
          want.set(t, 0, 1);
          if (comm.rank() == 0) {
            m.set(t, 0, 1);
            for (std::size_t k = 0; k < count; ++k) opt.ready(k);
            opt.step(1);
          } else {
            for (std::size_t k = 0; k < count; ++k)
              for (auto& g : m.gradient[k])
                g = k < count - std::size_t(marks) ? std::numeric_limits<float>::quiet_NaN() : 0.f;
            for (std::size_t k = count - std::size_t(marks); k < count; ++k) opt.ready(k);
            opt.step(0);
          }
          alone.step(1);
          CHECK(m.value == want.value);
          CHECK(m.gradient == want.gradient);  // zeros
        }
      };
      run(ds::sharded{comm, ds::overlap{.bucket_bytes = 50}});
      run(ds::replicated{comm, ds::ordered_sum{}, ds::overlap{.bucket_bytes = 9000}});
    });
}

TEST_CASE("step(0) as the last micro-batch, with some marks: the gradients of the first one count") {
  for (bool first : {false, true})  // or as the first one
    ranks::with_ranks(2, [&](auto& comm) {
      model m(comm.rank()), want;
      ds::optimizer opt{m.list(), ds::sgd{.lr = 1}, ds::accumulate{2},
                        ds::sharded{comm, ds::overlap{.bucket_bytes = 50}}};
      ds::optimizer alone{want.list(), ds::sgd{.lr = 1}, ds::accumulate{1}};
      for (int t = 0; t < 3; ++t) {
        auto const without_examples = [&] {
          for (std::size_t k = count - std::size_t(comm.rank()) * 2; k < count; ++k) opt.ready(k);
          opt.step(0);
        };
        for (auto& g : m.gradient) std::fill(g.begin(), g.end(), 0.f);
        if (first) without_examples();
        m.set(t, comm.rank(), comm.rank() + 1);
        for (std::size_t k = 0; k < count; ++k) opt.ready(k);
        opt.step(1);
        if (!first) without_examples();
        want.set(t, 0, 2);
        alone.step(2);
        CHECK(m.value == want.value);
      }
    });
}
