// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/io/checkpoints.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/training/loss_scaler.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

/// One rank runs out of memory, at each allocation in turn: it throws, nothing leaks, and the other ranks learn of it.

namespace {
/// For this thread: the number of allocations until one fails; none fails at 0.
thread_local long until_failure = 0;
std::atomic<long> living{0};

void* allocated(std::size_t size, std::size_t alignment) {
  if (until_failure > 0 && --until_failure == 0) throw std::bad_alloc();
  std::size_t const whole = (size + alignment) / alignment * alignment;  // not 0
  void* const p = alignment > alignof(std::max_align_t) ? std::aligned_alloc(alignment, whole) : std::malloc(whole);
  if (!p) throw std::bad_alloc();
  ++living;
  return p;
}
void freed(void* p) {
  if (p) --living;
  std::free(p);
}
}  // namespace

void* operator new(std::size_t n) { return allocated(n, alignof(std::max_align_t)); }
void* operator new(std::size_t n, std::align_val_t a) { return allocated(n, std::size_t(a)); }
void* operator new(std::size_t n, std::nothrow_t const&) noexcept try {
  return operator new(n);
} catch (std::bad_alloc const&) {
  return nullptr;
}
void operator delete(void* p) noexcept { freed(p); }
void operator delete(void* p, std::size_t) noexcept { freed(p); }
void operator delete(void* p, std::nothrow_t const&) noexcept { freed(p); }
void operator delete(void* p, std::align_val_t) noexcept { freed(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { freed(p); }

namespace ds = descent;

namespace {

constexpr int team = 3;

struct part {
  std::vector<float> value = std::vector<float>(100, 1), gradient = std::vector<float>(100, 0.5f);
  ds::parameters<float> list() {
    ds::parameters<float> all;
    all.add("a", value.data(), gradient.data(), 60);
    all.add("b", value.data() + 60, gradient.data() + 60, 40);
    return all;
  }
};

/// Where the allocations of rank `victim` fail.
enum phase { constructor, step, norm, swap, phases };
std::string const names[] = {"the constructor", "step()", "gradient_norm()", "swap_average()"};

/// Fails allocation number k of one rank in one phase; returns whether there was one. `late` counts those that the
/// others notice only at the deadline: before a call's first collective and after its last, the rank may retry.
template <class Policy>
bool fails_at(Policy const& policy, int victim, phase in, long k, bool keeps_comm, long& late) {
  std::string const keeps = keeps_comm ? ", which keeps its communicator" : "";
  INFO(names[in], ", allocation ", k, " of rank ", victim, keeps);
  long const before = living;
  bool failed = false;
  {
    ds::comm::threads world{team, std::chrono::seconds(60)};
    std::vector<part> parts(team);
    std::atomic<int> ended{0};
    auto const thrown = ranks::on_ranks(world, [&](auto& comm) {
      part& mine = parts[std::size_t(comm.rank())];
      auto const list = mine.list();
      bool const is_victim = comm.rank() == victim;
      auto const run = [&] {
        auto const call = [&](phase now, auto const& f) {
          until_failure = is_victim && now == in ? k : 0;
          struct clear {
            ~clear() { until_failure = 0; }
          } const after;
          f();
          if (is_victim && now == in) failed = until_failure == 0;
        };
        std::optional<decltype(ds::optimizer{list, ds::lamb{}, ds::clip_norm{1}, ds::ema{}, ds::host<ds::cpp>{},
                                             policy(comm)})>
            opt;
        call(constructor,
             [&] { opt.emplace(list, ds::lamb{}, ds::clip_norm{1}, ds::ema{}, ds::host<ds::cpp>{}, policy(comm)); });
        call(step, [&] { opt->step(); });
        call(norm, [&] { opt->gradient_norm(); });
        call(swap, [&] { opt->swap_average(); });
        opt->swap_average();
        opt->step();  // here at the latest, the others notice
      };
      try {
        run();
        ++ended;
      } catch (std::bad_alloc const&) {
        if (keeps_comm) {
          world.comes_too_late(victim);
          CHECK(test::comes_true([&] { return ended == team - 1; }));
        }
        throw;
      } catch (...) {
        ++ended;
        throw;
      }
    });
    auto const& text = thrown[std::size_t(victim)];
    if (text == std::bad_alloc().what()) {
      failed = true;
      for (int r = 0; r < team; ++r) {
        INFO("rank ", r, ": ", thrown[std::size_t(r)]);
        if (r != victim) CHECK(ranks::has(thrown[std::size_t(r)], "rank " + std::to_string(victim)));
      }
      late += ranks::has(thrown[std::size_t((victim + 1) % team)], " waited 60 s in ");
      CHECK(parts[std::size_t((victim + 1) % team)].value == parts[std::size_t((victim + 2) % team)].value);
    }
  }
  CHECK(living == before);
  return failed;
}

template <class Policy> void every_allocation_fails(Policy const& policy) {
  for (int in = 0; in < phases; ++in) {
    long all = 0;
    for (bool keeps_comm : {false, true}) {
      long k = 1, late = 0;
      // Most allocations of a constructor are made before the ranks meet.
      while (fails_at(policy, int(k % team), phase(in), k, keeps_comm, late) && k < 2000)
        k += keeps_comm && in == constructor && k + 40 < all ? 4 : 1;
      all = k;
      INFO(names[in], ": ", k - 1, " allocations, ", late, " told late");
      if (in == constructor) CHECK(k > 50);
      int const may_try_again[phases] = {20, 0, 2, 1};
      CHECK(late <= (keeps_comm ? may_try_again[in] : 0));
      CHECK(k < 2000);
    }
  }
}

}  // namespace

TEST_CASE("trap 37: every allocation of one rank fails, replicated: no leak, and the others report it") {
  every_allocation_fails(ranks::replicated);
}
TEST_CASE("trap 37: every allocation of one rank fails, sharded: no leak, and the others report it") {
  every_allocation_fails(ranks::sharded_ordered);
}

namespace {

/// What a program loads at once, with names that are too long for a string without memory.
struct loaded {
  std::vector<float> value = std::vector<float>(100, 1), gradient = std::vector<float>(100, 0.5f);
  std::string const name = "a parameter with a name that needs memory";
  ds::parameters<float> list() {
    ds::parameters<float> all;
    all.add(name, value.data(), gradient.data(), 60);
    all.add("b", value.data() + 60, gradient.data() + 60, 40, ds::group{1});
    return all;
  }
  ds::parameters<float> const mine = list();
  decltype(ds::optimizer{mine, ds::lamb{}, ds::clip_norm{1}, ds::ema{}, ds::dynamic_loss_scale{}, ds::on_plateau{},
                         ds::host<ds::cpp>{}}) opt{
      mine, ds::lamb{}, ds::clip_norm{1}, ds::ema{}, ds::dynamic_loss_scale{}, ds::on_plateau{}, ds::host<ds::cpp>{}};
  std::vector<float> other = std::vector<float>(7, 1), of_other = other;
  ds::parameters<float> others;
  ds::loss_scaler<> scaler;
  std::string text = "a text that is longer than any short string";
  int number = 1;

  explicit loaded(int steps = 0) {
    others.add("another parameter with a name that needs memory", other, of_other);
    for (int t = 0; t < steps; ++t) opt.step();
    if (steps > 3) {
      opt.group(1).lr = 0.5, opt.set_scale_state({.scale = 8, .good = 2}), opt.observe(2.0);
      scaler.set_state({.scale = 8}), other.assign(7, 2.0f), text += ", and then some", number = 2;
    }
  }
  template <class F> auto with(F const& f) {
    return f(ds::named("the name of an optimizer, long, too", opt), ds::named("the values of the others", others),
             ds::named("a loss scale with a long name", scaler), ds::named("text", text), ds::named("number", number));
  }
  std::vector<std::byte> pieces() {
    std::vector<std::byte> all;
    auto const add = [&](auto const& x) {
      auto const bytes = std::as_bytes(std::span(x));
      all.insert(all.end(), bytes.begin(), bytes.end());
    };
    opt.save([&](std::string const&, auto x) { add(x); });
    double const rest[] = {opt.group(1).lr, scaler.state().scale, double(number)};
    add(rest), add(value), add(other), add(text);
    return all;
  }
};
/// Lets each allocation of f fail in turn, until none does: then nothing has changed in `of`.
template <class F> long changes_nothing_if_it_fails(loaded& of, F const& f) {
  auto const before = of.pieces();
  for (long k = 1; k < 5000; ++k) {
    INFO("allocation ", k);
    until_failure = k;
    try {
      f();
      until_failure = 0;
      return k - 1;
    } catch (std::exception const&) {}  // std::bad_alloc, or what says why a file cannot be read
    until_failure = 0;
    CHECK((of.pieces() == before));
  }
  return 0;
}

}  // namespace

TEST_CASE("load() and load_file() change nothing if an allocation fails, whichever") {
  test::temporary_folder const folder;
  loaded saved(5);
  saved.with([&](auto&&... parts) { ds::save_file(folder / "run", parts...); });
  std::vector<std::vector<std::byte>> pieces;
  saved.opt.save([&](std::string const&, auto x) {
    auto const bytes = std::as_bytes(x);
    pieces.emplace_back(bytes.begin(), bytes.end());
  });

  loaded x(1);
  long const n = changes_nothing_if_it_fails(x, [&] {
    std::size_t next = 0;
    x.opt.load([&]<class T>(std::string const&, std::span<T const>) {
      auto const& bytes = pieces[next++];
      return std::span<T const>(reinterpret_cast<T const*>(bytes.data()), bytes.size() / sizeof(T));
    });
  });
  CHECK(n > 10);
  CHECK(x.opt.report().step == 5);

  loaded y(1);
  std::string const path = folder / "run";
  bool same = false;
  CHECK(changes_nothing_if_it_fails(y, [&] {
          y.with([&](auto&&... parts) { same = ds::load_file(path, parts...).same_configuration; });
        }) > 50);
  CHECK((same && y.pieces() == saved.pieces()));
}

TEST_CASE("checkpoints: where memory runs out, each call throws std::bad_alloc, and what was saved stays") {
  test::temporary_folder const root;
  ds::checkpoints const folder(root / "run", {.last = 2, .best = 1});
  std::int64_t next = 0;
  auto const save = [&] {
    int n = int(next);
    ds::checkpoints(folder).save(next, double(next), ds::named("n", n));
  };
  for (; next < 4; ++next) save();
  auto const runs_out = [&](auto const& call) {
    bool done = false;
    for (long k = 1; !done; ++k) {
      INFO("allocation ", k);
      REQUIRE(k < 5000);
      until_failure = k;
      try {
        call();
        done = until_failure > 0;
      } catch (std::bad_alloc const&) {}
      until_failure = 0;
      auto const newest = folder.newest();
      REQUIRE(newest);
      int n = -1;
      ds::load_file(newest->path, ds::named("n", n));
      CHECK((n == newest->step && n >= next - 1));
      next = n + 1;
      save(), ++next;  // removes what the failed call has left
    }
  };
  runs_out(save);
  runs_out([&] { static_cast<void>((folder.best(), folder.damaged(), folder.last_good())); });
  runs_out([&] { folder.remove_after(next); });
}
