// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/cost.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/polyak.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/sgd.hpp>
#if !defined(DESCENT_THREAD_SANITIZER)  // the libraries of TBB and OpenMP are not instrumented
#include <descent/backends/tbb.hpp>
#endif

#include <doctest/doctest.h>
#include "support/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// Each member function, policy and kind of parameter under ranks: the bits of one process with the sum of the
/// gradients, or what the documentation says instead.

namespace ds = descent;
using ds::half, ds::bfloat16;
using namespace ranks;

namespace {

constexpr int team = 3;

/// do_steps(optimizer, model, first rank, last rank, weight) gives the same values in one process and on each rank.
template <class Model = model<float>, class Rule, class Steps, class... Ps>
void same_steps(Steps const& do_steps, Rule const& rule, Ps... policies) {
  Model want;
  {
    ds::optimizer opt{want.list(), rule, policies...};
    do_steps(opt, want, 0, team, double(team));
  }
  on_both(team, [&](auto& comm, auto policy) {
    Model mine;
    ds::optimizer opt{mine.list(), rule, policies..., policy};
    do_steps(opt, mine, comm.rank(), comm.rank() + 1, 1.0);
    CHECK(mine == want);
  });
}

}  // namespace

TEST_CASE("norms over groups and tensors, the largest element, and adaptive clipping") {
  same_as_alone<float>(ds::adam{}, ds::clip<ds::norm::l2, ds::scope::group>{0.5});
  same_as_alone<float>(ds::sgd{}, ds::clip<ds::norm::inf>{0.5});
  same_as_alone<float>(ds::sgd{}, ds::clip<ds::norm::inf, ds::scope::tensor>{0.5});
  same_as_alone<float>(ds::sgd{.lr = 0.1}, ds::clip_adaptive{0.01});
  same_as_alone<float>(ds::lamb{}, ds::clip_norm{0.5}, ds::outer{.every = 3}, ds::ema{.decay = 0.9},
                       ds::gradient_noise{.eta = 0.01});
  same_as_alone<float>(ds::lamb{}, ds::clip_adaptive{0.01}, ds::ema_nesterov{}, ds::ema{.decay = 0.9});
}

TEST_CASE("flush divides by the micro-batches of all ranks") {
  auto const steps = [](auto& opt, auto& m, int first, int last, double weight) {
    for (int t = 0; t < 3; ++t) {
      m.set(t, first, last);
      opt.step(weight);
      CHECK_FALSE(opt.report().applied);
      opt.flush();
      CHECK(opt.report().applied);
    }
  };
  same_steps(steps, ds::adamw{}, ds::accumulate{4});
}

TEST_CASE("flush: one rank may have counted more micro-batches than another, and later updates are right") {
  model<float> want;
  ds::optimizer alone{want.list(), ds::adamw{}, ds::accumulate{4}};
  for (int t = 0; t < 3; ++t) {
    for (std::size_t k = 0; k < sizes.size(); ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i)
        want.gradient[k][i] =
            float(3 * gradient_of(0, t, k, i) + 2 * gradient_of(1, t, k, i) + gradient_of(2, t, k, i));
    alone.step(3 + 2 + 1), alone.flush();
  }
  on_both(team, [&](auto& comm, auto policy) {
    model<float> mine;
    ds::optimizer opt{mine.list(), ds::adamw{}, ds::accumulate{4}, policy};
    for (int t = 0; t < 3; ++t) {
      for (int batches = 1; batches <= team - comm.rank(); ++batches) {
        mine.set(t, comm.rank(), comm.rank() + 1, batches);
        opt.step();
      }
      opt.flush();
    }
    CHECK(mine == want);
  });
}

TEST_CASE("a rank without examples takes part and adds nothing, whatever its gradients hold") {
  float const none = std::numeric_limits<float>::quiet_NaN();
  auto const weight_of = [](int rank, int t) { return t == 3 ? 0 : (rank + t) % team; };  // 0, 1, 2; once all 0
  model<float> want;
  ds::optimizer alone{want.list(), ds::adamw{}, ds::clip_norm{1}, ds::accumulate{1}};
  std::vector<model<float>> expected;
  for (int t = 0; t < 5; ++t) {
    for (std::size_t k = 0; k < sizes.size(); ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) {
        want.gradient[k][i] = 0;
        for (int r = 0; r < team; ++r) want.gradient[k][i] += float(weight_of(r, t) * gradient_of(r, t, k, i));
      }
    alone.step(t == 3 ? 0 : 3);
    expected.push_back(want);
  }
  auto const check = [&](auto& opt, auto& mine, int rank, auto const& mark) {
    for (int t = 0; t < 5; ++t) {
      int const weight = weight_of(rank, t);
      mine.set(t, rank, rank + 1, weight);
      if (weight == 0)
        for (auto& g : mine.gradient) std::fill(g.begin(), g.end(), none);
      else mark();
      opt.step(weight);
      CHECK(mine == expected[std::size_t(t)]);
      auto const report = opt.report();
      CHECK(report.applied == (t != 3));
      CHECK(report.skipped == (t < 3 ? 0 : 1));
      if (t == 3) CHECK(report.why == "there are no examples: the weights since the last update are all 0");
      for (auto const& g : mine.gradient)
        for (float x : g) CHECK(x == 0);  // zero_grad{}
    }
  };
  on_both(team, [&](auto& comm, auto policy) {
    model<float> mine;
    ds::optimizer opt{mine.list(), ds::adamw{}, ds::clip_norm{1}, ds::zero_grad{}, policy};
    check(opt, mine, comm.rank(), [] {});
  });
  ranks::with_ranks(team, [&](auto& comm) {
    model<float> mine;
    ds::optimizer opt{mine.list(), ds::adamw{}, ds::clip_norm{1}, ds::zero_grad{},
                      ds::sharded{comm, ds::overlap{.bucket_bytes = 9000}}};
    check(opt, mine, comm.rank(), [&] {
      for (std::size_t k = 0; k < sizes.size(); ++k) opt.ready(k);
    });
  });
}

TEST_CASE("flush: a rank without micro-batches meets the others, adds nothing and keeps its gradients") {
  float const none = std::numeric_limits<float>::quiet_NaN();
  auto const check = [&](auto const& policy_of, auto overlaps) {
    model<float> want;
    float loss = 2;
    ds::optimizer alone{want.list(), ds::polyak{}, ds::loss_at{&loss}, ds::clip_norm{1}, ds::accumulate{4}};
    std::vector<model<float>> expected;
    auto const batches = [](int rank, int t) { return (rank + t) % team; };  // 0, 1, 2
    for (int t = 0; t < 3; ++t) {
      for (std::size_t k = 0; k < sizes.size(); ++k)
        for (std::size_t i = 0; i < sizes[k]; ++i) {
          want.gradient[k][i] = 0;
          for (int r = 0; r < team; ++r) want.gradient[k][i] += float(batches(r, t) * gradient_of(r, t, k, i));
        }
      alone.step(0.5 * 3), alone.flush();
      expected.push_back(want);
    }
    ranks::with_ranks(team, [&](auto& comm) {
      model<float> mine;
      float own_loss = 0;
      ds::optimizer opt{mine.list(), ds::polyak{}, ds::loss_at{&own_loss}, ds::clip_norm{1},
                        ds::accumulate{4}, ds::zero_grad{}, policy_of(comm)};
      auto const flush = [&] { opt.flush(), own_loss = none; };
      flush();
      for (int t = 0; t < 3; ++t) {
        int const n = batches(comm.rank(), t);
        own_loss = n ? 2.f : none;
        mine.set(t, comm.rank(), comm.rank() + 1, n ? n : double(none));
        for (int batch = 0; batch < n; ++batch) {
          if constexpr (overlaps)
            for (std::size_t k = sizes.size(); k-- > 0;) opt.ready(k);
          opt.step(0.5);
        }
        flush();
        CHECK(opt.report().applied);
        CHECK(opt.report().step == t + 1);
        CHECK(mine == expected[std::size_t(t)]);
        CHECK((n ? mine.gradient[0][0] == 0 : std::isnan(mine.gradient[0][0])));
        flush();  // no rank has any
        CHECK_FALSE(opt.report().applied);
        CHECK(opt.report().why == "no gradients were waiting");
        CHECK(opt.report().step == t + 1);
        CHECK(mine == expected[std::size_t(t)]);
      }
    });
  };
  check(ranks::replicated, std::false_type{}), check(ranks::sharded_ordered, std::false_type{});
  check([](auto& comm) { return ds::sharded{comm, ds::overlap{.bucket_bytes = 9000}}; }, std::true_type{});
}

TEST_CASE("gradients may be unscaled and transformed between backward and step: each rank's own") {
  on_both(team, [](auto& comm, auto policy) {
    model<float> touched, plain;
    ds::optimizer one{touched.list(), ds::adamw{}, ds::dynamic_loss_scale{.init = 256}, policy};
    ds::optimizer other{plain.list(), ds::adamw{}, ds::dynamic_loss_scale{.init = 256}, policy};
    for (int t = 0; t < 3; ++t) {
      touched.set(t, comm.rank(), comm.rank() + 1, 256);
      one.unscale();
      CHECK(touched.gradient[0][0] == float(gradient_of(comm.rank(), t, 0, 0)));
      one.transform_gradients([](auto g) { return 2 * g; });
      one.step();
      plain.set(t, comm.rank(), comm.rank() + 1, 512);
      other.step();
      CHECK(touched == plain);
    }
  });
}

TEST_CASE("a frozen group keeps its values, state and gradients, with zero_grad, too") {
  on_both(team, [&](auto& comm, auto policy) {
    model<float> m;
    ds::optimizer opt{m.list(), ds::adamw{}, ds::zero_grad{}, ds::clip_norm{1}, policy};
    opt.freeze(1);
    m.set(0, comm.rank(), comm.rank() + 1);
    m.gradient[1][0] = std::numeric_limits<float>::infinity();
    auto const before = m;
    opt.step();
    CHECK(opt.report().applied);
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      std::vector<float> const zeros(sizes[t]);
      CHECK(m.gradient[t] == (t % 2 ? before.gradient[t] : zeros));
      CHECK((m.value[t] == before.value[t]) == (t % 2 == 1 || sizes[t] == 0));
    }
  });
}

TEST_CASE("tensors of several types: gradients go over the wire in float") {
  using two = ds::mixed<half, float>;
  struct both {
    std::vector<half> w = std::vector<half>(5001), dw = std::vector<half>(5001);
    std::vector<float> b = std::vector<float>(333), db = std::vector<float>(333);
    ds::parameters<two> list() {
      ds::parameters<two> p;
      p.add("w", w.data(), dw.data(), w.size());
      p.add("b", b.data(), db.data(), b.size());
      return p;
    }
    void set(int t, int first, int last) {
      for (std::size_t i = 0; i < w.size(); ++i) {
        double sum = 0;
        for (int r = first; r < last; ++r) sum += std::floor(gradient_of(r, t, 0, i) * 64);  // sums are exact in half
        dw[i] = ds::narrow<half>(sum / 64);
      }
      for (std::size_t i = 0; i < b.size(); ++i) {
        double sum = 0;
        for (int r = first; r < last; ++r) sum += gradient_of(r, t, 1, i);
        db[i] = float(sum);
      }
    }
    bool operator==(both const& o) const {
      return b == o.b && std::memcmp(w.data(), o.w.data(), w.size() * sizeof(half)) == 0;
    }
  };
  auto const steps = [](auto& opt, auto& m, int first, int last, double weight) {
    for (int t = 0; t < 4; ++t) {
      m.set(t, first, last);
      opt.step(weight);
    }
  };
  same_steps<both>(steps, ds::adamw{}, ds::master<float>{}, ds::clip_norm{1}, ds::accumulate{1});
}

TEST_CASE("pointers without alignment, and no parameters at all") {
  on_both(team, [](auto& comm, auto policy) {
    model<float> m, want;
    ds::parameters<float> list;
    std::vector<std::vector<float>> value, gradient;
    m.set(0, comm.rank(), comm.rank() + 1);
    for (std::size_t t = 0; t < sizes.size(); ++t) {  // shifted by one element: 4 bytes past an aligned address
      value.emplace_back(sizes[t] + 1), gradient.emplace_back(sizes[t] + 1);
      std::copy(m.value[t].begin(), m.value[t].end(), value[t].begin() + 1);
      std::copy(m.gradient[t].begin(), m.gradient[t].end(), gradient[t].begin() + 1);
      list.add("w" + std::to_string(t), value[t].data() + 1, gradient[t].data() + 1, sizes[t]);
    }
    ds::optimizer opt{list, ds::adamw{}, policy};
    opt.step();
    ds::optimizer alone{want.list(), ds::adamw{}, ds::accumulate{1}};
    want.set(0, 0, team);
    alone.step(team);
    for (std::size_t t = 0; t < sizes.size(); ++t)
      CHECK(std::vector<float>(value[t].begin() + 1, value[t].end()) == want.value[t]);

    ds::optimizer nothing{ds::parameters<float>{}, ds::adamw{}, ds::clip_norm{1}, policy};
    nothing.step();
    CHECK(nothing.report().applied);
  });
}

TEST_CASE("broadcast: what was restored on one rank is on all, which continue as if each had restored it") {
  auto const run = [](bool each) {
    std::vector<model<half, float>> all(3);
    with_ranks(3, [&](auto& comm) {
      auto& m = all[std::size_t(comm.rank())];
      ds::optimizer opt{m.list(), ds::prodigy{}, ds::master<float>{}, ds::ema{.decay = 0.5}, ds::lookahead{},
                        ds::dynamic_loss_scale{.init = 4}, ds::replicated{comm}};
      auto const train = [&](int first, int last) {
        for (int t = first; t < last; ++t) {
          m.set(t, comm.rank(), comm.rank() + 1);
          opt.step();
        }
      };
      train(0, 2);
      if (each || comm.rank() == 1) {
        opt.set_step(7);
        opt.set_scale_state({8, 1, 0});
        opt.group(1).weight_decay = 0.25;
        opt.freeze(0);
        for (auto& x : m.value) std::fill(x.begin(), x.end(), half(0.5f));
        opt.reload_values();
        std::vector<float> const threes(sizes[3], 3);
        opt.template set_state<0>("w3", std::span<float const>(threes));
      }
      if (!each) opt.broadcast(1);
      CHECK(opt.report().step == 7);
      CHECK(opt.group(1).weight_decay == 0.25);
      CHECK(opt.loss_scale() == 8);
      train(2, steps);
      CHECK_THROWS_WITH_AS(opt.broadcast(3), "broadcast: root must be in [0, 3), is 3", std::invalid_argument);
    });
    return all;
  };
  auto const want = run(true), got = run(false);
  for (std::size_t r = 0; r < 3; ++r) CHECK(got[r] == want[r]);
}

#if !defined(DESCENT_THREAD_SANITIZER)
TEST_CASE("each rank may have its own parallel backend") {
  model<float> want;
  {
    ds::optimizer opt{want.list(), ds::lamb{}, ds::clip_norm{1}, ds::accumulate{1}};
    for (int t = 0; t < 3; ++t) want.set(t, 0, team), opt.step(team);
  }
  auto const check = [&](auto backend) {
    on_both(team, [&](auto& comm, auto policy) {
      model<float> m;
      ds::optimizer opt{m.list(), ds::lamb{}, ds::clip_norm{1}, policy, backend};
      for (int t = 0; t < 3; ++t) m.set(t, comm.rank(), comm.rank() + 1), opt.step();
      CHECK(m == want);
    });
  };
  check(ds::host<ds::tbb>{});
#if defined(_OPENMP)
  check(ds::host<ds::omp>{});
#endif
  check(ds::host<ds::cpp>{});
}
#endif

TEST_CASE("memory and explain list what ranks need to meet, beforehand, too") {
  with_ranks(4, [&](auto& comm) {
    std::vector<bfloat16> p(100000), g(100000);
    ds::parameters<bfloat16> list;
    list.add("p", p.data(), g.data(), p.size());
    auto const bytes = [&](std::string const& name, auto policy) {
      ds::optimizer opt{list, ds::sgd{}, policy};
      CHECK(opt.memory().bytes == ds::memory(list, ds::sgd{}, policy).bytes);
      for (auto const& b : opt.memory().buffers)
        if (b.name == name) return b.bytes;
      return std::int64_t(0);
    };
    std::int64_t const sum = 100032;  // 4 parts that are multiples of 64
    std::int64_t const part = 7 * 4096;  // the largest share, in chunks of 4096
    CHECK(bytes("sum of gradients over ranks", ds::replicated{comm}) == 2 * (sum + 64 * 4 - sum % (64 * 4)));
    CHECK(bytes("gradients for other ranks", ds::replicated{comm}) == 0);
    CHECK(bytes("sum of gradients over ranks", ds::sharded{comm}) == 2 * part);
    CHECK(bytes("gradients for other ranks", ds::sharded{comm}) == 2 * 4 * part);
    CHECK(bytes("values of all ranks", ds::sharded{comm}) == 2 * 6 * part);
    CHECK(bytes("gradients of other ranks", ds::sharded{comm, ds::ordered_sum{}}) == 2 * 4 * part);
    CHECK(bytes("sum of gradients over ranks", ds::sharded{comm, ds::ordered_sum{}}) == 4 * part);

    ds::optimizer opt{list, ds::sgd{}, ds::zero_grad{}, ds::sharded{comm, ds::wire<half>{}}};
    std::string const text = opt.explain();
    CHECK(has(text, "rank " + std::to_string(comm.rank()) + " of 4: updates "));
    CHECK(has(text, " parameters, sharded\n  gradients are sent in half and added by the communicator\n"));
    CHECK(has(text, "\n  traffic to send them: 6 bytes per parameter of this rank\n"));
    CHECK(has(text, "gradients are set to zero"));
  });
}

TEST_CASE("memory that is not the host's is refused before any rank's values change") {
  ds::comm::threads world{2, std::chrono::seconds(60)};
  std::vector<float> value{1, 2};
  auto const thrown = on_ranks(world, [&](auto& comm) {
    float* const p = &value[std::size_t(comm.rank())];
    float own = 0;
    auto* const nowhere = reinterpret_cast<float*>(std::uintptr_t(64));
    ds::parameters<float> list;
    list.add("p", p, comm.rank() == 1 ? nowhere : &own, 1);
    ds::optimizer opt{list, ds::sgd{}, ds::replicated{comm}};
  });
  CHECK(thrown[1] ==
        "parameter 'p': its gradient is not host memory: there is none at 0x40; for device memory use the backend "
        "cuda{stream}");
  CHECK(has(thrown[0], "rank 1 ended with an exception"));
  CHECK(value == std::vector<float>{1, 2});
}

TEST_CASE("a step whose last collective fails did not happen: values, t and report are those before it") {
  ds::comm::threads world{2, std::chrono::seconds(60)};
  std::int64_t const gather = 2 + 2 * 3;  // the agreement and one tensor, then three collectives in each step
  world.before = [&](int r, std::int64_t number) {
    return r == 1 && number == gather ? ds::comm::threads::fault::killed : ds::comm::threads::fault::none;
  };
  CHECK(none(on_ranks(world, [&](auto& comm) {
    std::vector<float> p(5000, 1), g(5000, 1);
    ds::parameters<float> list;
    list.add("p", p.data(), g.data(), p.size());
    ds::optimizer opt{list, ds::sgd{.lr = 0.5}, ds::sharded{comm}};
    opt.step();
    CHECK_THROWS_AS(opt.step(), ds::comm_error);
    CHECK(opt.report().step == 1);
    CHECK(p == std::vector<float>(5000, 0.5f));
  })));
}

TEST_CASE("averages that do not arrive from all ranks are not put in: values stay as they were") {
  ds::comm::threads world{2, std::chrono::seconds(60)};
  std::int64_t const gather = 2 + 3 + 1;  // the start, one step, swap_average
  world.before = [&](int r, std::int64_t number) {
    return r == 1 && number == gather ? ds::comm::threads::fault::killed : ds::comm::threads::fault::none;
  };
  CHECK(none(on_ranks(world, [&](auto& comm) {
    std::vector<float> p(5000, 1), g(5000, 1);
    ds::parameters<float> list;
    list.add("p", p.data(), g.data(), p.size());
    ds::optimizer opt{list, ds::sgd{.lr = 0.5}, ds::ema{.decay = 0.5}, ds::sharded{comm}};
    opt.step();
    CHECK_THROWS_AS(opt.swap_average(), ds::comm_error);
    CHECK(p == std::vector<float>(5000, 0.5f));
    CHECK_THROWS_AS(opt.swap_average(), std::logic_error);
    CHECK(p == std::vector<float>(5000, 0.5f));
  })));
}
