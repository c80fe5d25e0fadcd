// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Ranks report their progress to rank 0. All ranks learn which rank is gone, late or silent, or what one of them says
// when it ends. A rank that leaves, or does not belong there, ends no other rank.
#include <descent/comm/detail/heartbeats.hpp>

#include <doctest/doctest.h>
#include "support/clock.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace descent::detail;
using namespace std::chrono_literals;

namespace {

bool has(std::string const& text, std::string const& part) { return text.find(part) != text.npos; }
using test::comes_true;
/// Longer than any wait of a test, by the clock of the test.
constexpr auto long_enough = 1h;
rank_position at(std::int64_t collective, std::int64_t begun, std::int64_t ended) {
  return {collective, begun, ended, "collective " + std::to_string(collective)};
}

/// A rank whose watcher is a thread.
struct player {
  heartbeats beats;
  std::mutex ticking;
  std::atomic<bool> pauses = false;
  std::jthread watcher;

  player(int rank, int size, std::chrono::nanoseconds deadline) : beats(rank, size, deadline) {}
  void start(endpoint const& c, bool first) {
    if (!first) beats.expect_line();
    watcher = std::jthread([this, c, first](std::stop_token stop) {
      if (!first) beats.reach_rank_0(c, time_limit(5s), [&] { return stop.stop_requested(); });
      for (; !stop.stop_requested(); std::this_thread::sleep_for(2ms)) {
        std::lock_guard const lock(ticking);
        if (!pauses) beats.tick();
      }
    });
  }
  void pause() {
    std::lock_guard const lock(ticking);
    pauses = true;
  }
};
struct team {
  test::clock still{};
  std::vector<std::unique_ptr<player>> of;
  endpoint where;

  explicit team(int size, std::chrono::nanoseconds deadline = 60s) {
    for (int r = 0; r < size; ++r) of.push_back(std::make_unique<player>(r, size, deadline));
    where = (*this)[0].listen();
    for (int r = size; r-- > 0;) of[std::size_t(r)]->start(where, r == 0);
    CHECK(comes_true([&] { return !(*this)[0].expects_ranks(); }));
  }
  heartbeats& operator[](int r) { return of[std::size_t(r)]->beats; }
  int size() const { return int(of.size()); }
  void ends(int r) { of[std::size_t(r)].reset(); }
  /// Waits until rank 0 knows that this rank is gone and has waited for others that end with it.
  void await_end(int r) {
    CHECK(comes_true([&] { return (*this)[0].knows()[r].is == rank_state::gone; }));
    test::clock::advance(101ms);
  }
  /// Checks what each remaining rank has heard.
  void check_all_hear(std::string const& text) {
    for (auto const& p : of)
      if (p && !p->pauses) {
        CHECK(comes_true([&] { return !p->beats.verdict().empty(); }));
        CHECK(p->beats.verdict() == text);
      }
  }
  void check_all_go_on() {
    await_beats();
    for (auto const& p : of)
      if (p) CHECK(p->beats.verdict() == "");
  }
  /// Sets the position of each rank to f(rank); waits until rank 0 knows it.
  template <class F> void set(F const& f) {
    for (int r = 0; r < size(); ++r)
      if (of[std::size_t(r)]) (*this)[r].set(f(r));
    test::clock::advance(200ms);  // after this they may report it
    CHECK(comes_true([&] {
      auto const known = (*this)[0].knows();
      for (int r = 1; r < size(); ++r)
        if (says(r) && known[r].at != f(r)) return false;
      return true;
    }));
  }
  /// Advances the clock and waits for a later sign of life, from each rank to rank 0 and back.
  void await_beats(std::chrono::nanoseconds after = 1s) {
    test::clock::advance(after);
    auto const now = test::clock::now();
    CHECK(comes_true([&] {
      auto const known = (*this)[0].knows();
      for (int r = 1; r < size(); ++r) {
        if (!says(r)) continue;
        if (known[r].heard < now || (!of[0]->pauses && (*this)[r].knows()[0].heard < now)) return false;
      }
      return true;
    }));
  }
  /// Whether rank 0 hears from this rank.
  bool says(int r) {
    auto const& p = of[std::size_t(r)];
    return p && !p->pauses && (*this)[0].knows()[r].is == rank_state::here &&
           (*this)[r].knows()[0].is == rank_state::here;
  }
};

descriptor connected(endpoint const& c) {
  time_limit limit(5s);
  std::string why;
  descriptor s = connect_to("127.0.0.1", c.port, limit, why);
  REQUIRE(s);
  return s;
}
void send(descriptor const& s, auto const& x) {
  CHECK(send_all(s, std::as_bytes(std::span(&x, 1)), time_limit(5s)) == "");
}
bool closed(descriptor const& s) {
  std::byte more[1];
  return receive_all(s, more, time_limit(5s)).starts_with("the connection ended");
}
endpoint at_loopback(int port) {
  endpoint c;
  c.asks = {1, 2}, c.answers = {3, 4};
  c.port = std::uint16_t(port);
  c.count = 1;
  c.at[0].family = AF_INET;
  unsigned char const loopback[] = {127, 0, 0, 1};
  std::memcpy(c.at[0].bytes, loopback, 4);
  return c;
}

}  // namespace

TEST_CASE("a rank that is gone is named to all, with how far it had come; others that go with it, too") {
  team t(5);
  t.set([](int r) { return at(5 + r, 3, 2); });
  t.ends(2);
  t.await_end(2);
  t.check_all_hear("rank 2 is gone; rank 2 had reached collective 7");

  team u(6);
  u.set([](int) { return at(1, 0, 0); });
  u.of[0]->pause();
  u.ends(5);
  CHECK(comes_true([&] { return u[0].tick(), u[0].knows()[5].is == rank_state::gone; }));
  test::clock::advance(99ms);
  u[0].tick();
  CHECK(u[0].verdict() == "");
  u.ends(3);
  u.of[0]->pauses = false;
  u.await_end(3);
  u.check_all_hear("ranks 3, 5 are gone; rank 3 had reached collective 1");
}

TEST_CASE("what a rank says at its end reaches all, also from rank 0; the first reason stays") {
  for (int from : {0, 1, 3}) {
    team t(4);
    t[from].fail("no more data");
    t.check_all_hear("rank " + std::to_string(from) + " ended: no more data");
    t[2].fail("another reason");
    t[0].fail("another reason");
    t.ends(3);
    t.await_beats();
    t.check_all_hear("rank " + std::to_string(from) + " ended: no more data");
  }
  team t(2);
  t[1].fail("rank 1 ended with an exception");
  t.check_all_hear("rank 1 ended with an exception");
}

TEST_CASE("ranks that have met in different calls learn what differs, from all that can say it") {
  using texts = std::vector<std::string>;
  auto const ask = [](team& t, int r, texts const& facts) {
    return std::async(std::launch::async, [&t, r, facts] {
      return t[r].ask(heartbeat::differs, "is in " + facts[0], another_call, long_enough, facts);
    });
  };
  std::string const differ = "rank 0 is in step(), but ranks differ: lr is 1 (rank 0, 2); lr is 2 (rank 1)";
  {
    team t(3);
    auto one = ask(t, 1, {"step()", "lr is 2", "beta is 2"}), again = ask(t, 1, {"step()", "lr is 2", "beta is 2"});
    auto two = ask(t, 2, {"step()", "lr is 1", "beta is 1"}), zero = ask(t, 0, {"step()", "lr is 1", "beta is 1"});
    CHECK(zero.get() == differ);
    CHECK(one.get() == "rank 1 is in step(): " + differ);
    CHECK(again.get() == "rank 1 is in step(): " + differ);
    CHECK(two.get() == "rank 2 is in step(): " + differ);
    t.check_all_hear(differ);
  }
  {
    team t(3);
    t.ends(2);  // is not waited for, and is no cause
    CHECK(comes_true([&] { return t[0].knows()[2].is == rank_state::gone; }));
    auto const start = test::clock::now();
    auto zero = ask(t, 0, {"step()"}), one = ask(t, 1, {"flush()"});
    CHECK(zero.get() == "rank 0 is in step(), but ranks differ: step() (rank 0); flush() (rank 1)");
    CHECK(one.get() ==
          "rank 1 is in flush(): rank 0 is in step(), but ranks differ: step() (rank 0); flush() (rank 1)");
    CHECK(test::clock::now() - start < 500ms);
  }
  {
    team t(3, 1s);
    t.of[2]->pause();
    t[1].ask(heartbeat::differs, "is in step()", another_call, 0s, {"step()", "lr is 1", "beta is 1"});
    t.await_beats(110ms);
    t[0].ask(heartbeat::differs, "is in step()", another_call, 0s, {"step()", "lr is 1"});
    test::clock::advance(380ms);
    t[0].tick();
    CHECK(t[0].verdict() == "");
    test::clock::advance(130ms);
    t.check_all_hear("rank 0 is in step(), but ranks differ: nothing more (rank 0); beta is 1 (rank 1)");
  }
  {
    team t(2);
    for (int times = 0; times < 2; ++times)
      t[1].ask(heartbeat::differs, "is in step()", another_call, 0s, {"step()", "lr is 1"});
    CHECK(ask(t, 0, {"step()", "lr is 1"}).get() == std::string("rank 0 is in step()") + another_call);
  }
}

TEST_CASE("ranks that fail at the same time leave one reason to all") {
  team t(5);
  std::vector<std::jthread> all;
  for (int r = 0; r < 5; ++r) all.emplace_back([&t, r] { t[r].fail("all at once"); });
  all.clear();
  REQUIRE(comes_true([&] { return !t[0].verdict().empty(); }));
  t.check_all_hear(t[0].verdict());
}

TEST_CASE("a rank that fails before it has its line, or at once behind it, is heard") {
  test::clock const still;
  player zero(0, 2, 60s), one(1, 2, 60s);
  endpoint const c = zero.beats.listen();
  one.start(c, false);
  std::jthread const fails([&] { one.beats.fail("no memory"), one.beats.leave(); });
  std::this_thread::sleep_for(20ms);  // by now it has most likely failed
  zero.start(c, true);
  CHECK(comes_true([&] { return zero.beats.verdict() == "rank 1 ended: no memory"; }));
}

TEST_CASE("a rank whose line comes when rank 0 is about to leave hears why, or that it has left") {
  test::clock const still;
  for (bool fails : {true, false}) {
    player zero(0, 2, 60s), one(1, 2, 60s);
    endpoint const c = zero.beats.listen();
    if (fails) zero.beats.fail("no GPU");
    std::jthread leaves([&] {
      if (!fails) CHECK(comes_true([&] { return zero.beats.tick(), !zero.beats.expects_ranks(); }));
      zero.beats.leave();
    });
    one.start(c, false);
    leaves.join();
    if (fails) CHECK(comes_true([&] { return one.beats.verdict() == "rank 0 ended: no GPU"; }));
    else CHECK(has(one.beats.ask(heartbeat::late, "waited", "", long_enough), "rank 0 has left"));
  }
}

TEST_CASE("a rank that waits too long names the rank that is behind: its device, or its host outside collectives") {
  team t(4);
  t.set([](int r) { return r == 2 ? at(8, 2, 2) : at(9, 3, 2); });
  std::string const want = "rank 1 waited 2 s in collective 9 for rank 2; rank 2 has reached collective 8";
  CHECK(t[1].ask(heartbeat::late, "waited 2 s in collective 9", "", long_enough) == want);
  t.check_all_hear(want);
  CHECK(t[3].verdict_for("in collective 9") == "rank 3 in collective 9: " + want);
  CHECK(t[0].ask(heartbeat::late, "waited 2 s in collective 9", "", long_enough) ==
        "rank 0 waited 2 s in collective 9: " + want);

  team u(3);
  u.set([](int r) { return at(r == 0 ? 4 : 5, 2, 2); });
  CHECK(u[0].ask(heartbeat::late, "waited 1 s", "", long_enough) ==
        "rank 0 waited 1 s for rank 0; rank 0 has reached collective 4");
}

TEST_CASE("a rank that waits without a known cause says so: all equally far, no connection, or rank 0 has left") {
  {
    team t(3);
    t.set([](int r) { return at(10 + r, 3, 2); });  // hosts may be ahead of a meeting
    CHECK(t[2].ask(heartbeat::late, "waited", "", long_enough) ==
          "rank 2 waited for other ranks; all of them have reached the same point");
  }
  {
    test::clock const runs(1ms);
    player alone(1, 2, 60s);
    alone.beats.reach_rank_0(at_loopback(1), time_limit(100ms), [] { return false; });
    CHECK(alone.beats.ask(heartbeat::late, "waited", "", long_enough) ==
          "rank 1 waited for other ranks; which ones is unknown: no connection to rank 0: Connection refused");
    CHECK(alone.beats.ask(heartbeat::hurt, "in 5", ": NCCL says no", long_enough) == "rank 1 in 5: NCCL says no");
    player unheard(1, 2, 60s);
    unheard.beats.reach_rank_0(endpoint(), time_limit(5s), [] { return false; });
    CHECK(unheard.beats.ask(heartbeat::late, "waited", "", long_enough) ==
          "rank 1 waited for other ranks; which ones is unknown: no connection to rank 0: rank 0 is not listening");
  }
  {
    team u(2);
    u[0].leave();
    CHECK(comes_true([&] { return u[1].knows()[0].is == rank_state::left; }));
    u.check_all_go_on();
    CHECK(u[1].ask(heartbeat::late, "waited", "", long_enough) ==
          "rank 1 waited for other ranks; which ones is unknown: rank 0 has left");
  }
  test::clock const still;
  player zero(0, 3, 60s);
  zero.start(zero.beats.listen(), true);
  CHECK(zero.beats.ask(heartbeat::late, "waited", "", long_enough) ==
        "rank 0 waited for other ranks; there is no connection to ranks 1, 2");
}

TEST_CASE("a rank that leaves is not gone; who waits for it says that it has left") {
  team t(3);
  t.set([](int) { return at(4, 2, 2); });
  t[1].leave();
  t.ends(1);
  CHECK(comes_true([&] { return t[0].knows()[1].is == rank_state::left; }));
  t.check_all_go_on();
  t.set([](int) { return at(5, 3, 2); });
  t[2].ask(heartbeat::late, "waited 2 s", "", long_enough);
  t.check_all_hear("rank 2 waited 2 s for rank 1; rank 1 has left, had reached collective 4");
}

TEST_CASE("a rank whose signs of life stop does not answer, rank 0 neither") {
  team t(4, 4s);  // silent after 1.2 s
  t.set([](int) { return at(4, 2, 1); });
  t.of[2]->pause();
  t.await_beats(1800ms);
  std::string const why = t[1].ask(heartbeat::late, "waited 1 s", "", long_enough);
  INFO(why);
  CHECK(has(why, "rank 1 waited 1 s for rank 2; rank 2 has not answered for "));
  CHECK(why.ends_with(" s, had reached collective 4"));
  t.check_all_hear(why);
  t.of[2]->pauses = false;
  t.check_all_hear(why);

  team u(3, 4s);
  u.of[0]->pause();
  test::time_goes_on const meanwhile;
  CHECK(comes_true([&] {  // after the last message of rank 0 is heard
    test::clock::advance(1800ms);
    return has(u[2].ask(heartbeat::late, "waited 1 s", "", 300ms),
               "rank 2 waited 1 s for rank 0; rank 0 has not answered for ");
  }));
}

TEST_CASE("every rank reports the end of rank 0") {
  team t(4);
  t.ends(0);
  t.check_all_hear("rank 0 is gone");
}

TEST_CASE("what others' ends do to a rank is no reason where there is a better one") {
  team t(4);
  t.set([](int r) { return at(3 + r, 1, 1); });
  test::clock::advance(1ms);
  auto const now = test::clock::now();
  std::jthread const hurt([&] {
    CHECK(t[1].ask(heartbeat::hurt, "waited 0.1 s", ": NCCL says no", long_enough) ==
          "rank 1 waited 0.1 s: rank 3 is gone; rank 3 had reached collective 6");
  });
  CHECK(comes_true([&] { return t[0].knows()[1].heard >= now; }));
  t.ends(3);
  t.await_end(3);
  t.check_all_hear("rank 3 is gone; rank 3 had reached collective 6");

  team u(3);
  test::time_goes_on const meanwhile;
  CHECK(u[2].ask(heartbeat::hurt, "waited 0.1 s", ": NCCL says no", long_enough) ==
        "rank 2 waited 0.1 s: NCCL says no");
  u.check_all_hear("rank 2 waited 0.1 s: NCCL says no");
}

TEST_CASE("who has another number, size or rank, or sends anything else, is turned away and harms nobody") {
  team t(3);
  auto const refuses = [&](auto const& change) {
    introduction i{t.where.asks, 1, 3};
    change(i);
    descriptor const s = connected(t.where);
    send(s, i);
    CHECK(closed(s));
  };
  refuses([](introduction& i) { i.asks[0] ^= 1; });
  refuses([](introduction& i) { i.asks[1] ^= std::uint64_t(1) << 63; });
  refuses([](introduction& i) { i.size = 4; });
  for (int r : {-1, 0, 3}) refuses([r](introduction& i) { i.rank = r; });
  descriptor const silent = connected(t.where), brief = connected(t.where);
  send(brief, 'x');
  {
    descriptor const rubbish = connected(t.where);
    std::vector<char> const noise(100000, 'G');
    (void)send_all(rubbish, std::as_bytes(std::span(noise)), time_limit(1s));
  }
  SUBCASE("a second one of a rank that is there") {
    descriptor const s = connected(t.where);
    send(s, introduction{t.where.asks, 1, 3});
    endpoint::key answer{};
    CHECK(receive_all(s, std::as_writable_bytes(std::span(answer)), time_limit(5s)) == "");
    CHECK(answer == t.where.answers);
    send(s, heartbeat{});
    CHECK(closed(s));
  }
  t.check_all_go_on();
  t[1].fail("still here");
  t.check_all_hear("rank 1 ended: still here");
}

TEST_CASE("a rank takes nobody else for rank 0") {
  test::clock const still;
  std::string why;
  descriptor const listener = listen_everywhere(8, why);
  REQUIRE(listener);
  endpoint c = at_loopback(port_of(listener));
  std::jthread const echo([&] {
    REQUIRE(wait_for(listener, POLLIN, time_limit(5s)));
    descriptor s;
    std::string from;
    REQUIRE(accept_from(listener, s, from));
    introduction i;
    CHECK(receive_all(s, std::as_writable_bytes(std::span(&i, 1)), time_limit(5s)) == "");
    send(s, i.asks);
    CHECK(closed(s));
  });
  bool tried = false;
  time_limit limit(5s);
  auto const once = [&] { return std::exchange(tried, why == "another program listens there"); };
  CHECK(!reach(c, {c.asks, 1, 2}, limit, once, why));
  CHECK(why == "another program listens there");
}

TEST_CASE("addresses that do not answer are passed over") {
  test::clock const still;
  test::time_goes_on const meanwhile;
  player zero(0, 2, 60s), one(1, 2, 60s);
  endpoint c = zero.beats.listen();
  zero.start(c, true);
  REQUIRE(c.count > 0);
  c.count = 3;
  unsigned char const nowhere[] = {192, 0, 2, 1};  // belongs to no network (RFC 5737)
  for (auto& a : c.at) a = at_loopback(1).at[0];
  std::memcpy(c.at[0].bytes, nowhere, 4);
  c.at[1].family = 12345;
  one.beats.reach_rank_0(c, time_limit(long_enough), [] { return false; });
  CHECK(comes_true([&] { return !zero.beats.expects_ranks(); }));
}

TEST_CASE("a line that carries nonsense is given up, and nobody ends") {
  test::clock const still;
  player zero(0, 3, 60s);
  endpoint const c = zero.beats.listen();
  zero.start(c, true);
  player one(1, 3, 60s);
  one.start(c, false);
  descriptor const s = connected(c);
  send(s, introduction{c.asks, 2, 3});
  endpoint::key answer{};
  CHECK(receive_all(s, std::as_writable_bytes(std::span(answer)), time_limit(5s)) == "");
  send(s, heartbeat{});
  CHECK(comes_true([&] { return !zero.beats.expects_ranks(); }));
  heartbeat broken;
  SUBCASE("an unknown message") { broken.kind = 99; }
  SUBCASE("a text that is too long") { broken.bytes = 1 << 30; }
  send(s, broken);
  CHECK(comes_true([&] { return zero.beats.knows()[2].is == rank_state::unknown; }));
  CHECK(zero.beats.verdict() == "");
  CHECK(one.beats.ask(heartbeat::late, "waited", "", long_enough) ==
        "rank 1 waited for other ranks; there is no connection to rank 2");
}

TEST_CASE("a long text comes in parts and is cut at 4000 characters") {
  team t(3);
  t[2].fail(std::string(5000, 'x'));
  t.check_all_hear(("rank 2 ended: " + std::string(5000, 'x')).substr(0, heartbeat::most));
}

TEST_CASE("a hundred ranks") {
  team t(100);
  t[57].fail("one of many");
  t.check_all_hear("rank 57 ended: one of many");
}

// ---- ranks that are processes ---------------------------------------------------------------------------------------

namespace {

/// Memory that the processes share.
struct board {
  endpoint where;
  std::atomic<int> listens{0}, here{0}, asks{-1};
  std::atomic<rank_state> is[8] = {};  // what rank 0 knows, and when it heard from each rank
  std::atomic<std::int64_t> at[8] = {};
  char heard[8][1024] = {};
  std::atomic<int> has_heard[8] = {};
};

struct processes {
  test::clock still{};
  board* shared;
  std::vector<pid_t> ids;

  processes(int size, std::chrono::nanoseconds deadline, std::chrono::nanoseconds reach = 10s,
            std::function<void(int)> const& at_start = [](int) {})
      : shared(new (mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) board) {
    for (int r = 0; r < size; ++r) {
      pid_t const child = fork();
      if (child == 0) {
        at_start(r);
        play(r, size, deadline, reach);
        _exit(0);
      }
      ids.push_back(child);
    }
  }
  ~processes() {
    for (pid_t id : ids) kill(id, SIGKILL), waitpid(id, nullptr, 0);
    munmap(shared, sizeof(board));
  }
  void play(int r, int size, std::chrono::nanoseconds deadline, std::chrono::nanoseconds reach) {
    heartbeats beats(r, size, deadline);
    beats.set(at(r, 1, 0));
    if (r == 0) {
      shared->where = beats.listen();
      shared->listens = 1;
    } else {
      while (!shared->listens) usleep(1000);
      beats.reach_rank_0(shared->where, time_limit(reach), [] { return false; });
    }
    ++shared->here;
    while (beats.verdict().empty()) {
      beats.tick();
      for (int other = 1; r == 0 && other < size; ++other) {
        shared->is[other] = beats.knows()[other].is;
        shared->at[other] = beats.knows()[other].heard.time_since_epoch().count();
      }
      if (shared->asks == r) beats.ask(heartbeat::late, "waited 1 s", "", 1s);
      usleep(2000);
    }
    std::strncpy(shared->heard[r], beats.verdict().c_str(), sizeof shared->heard[r] - 1);
    shared->has_heard[r] = 1;
    for (;; usleep(2000)) beats.tick();
  }
  /// Waits until rank 0 has heard from these ranks after this moment.
  bool await_beats(std::vector<int> const& ranks) const {
    auto const now = test::clock::now().time_since_epoch().count();
    return comes_true(
        [&] { return std::all_of(ranks.begin(), ranks.end(), [&](int r) { return shared->at[r] >= now; }); });
  }
  /// Waits until n ranks have a connection to rank 0.
  bool await_lines(int n) const {
    return comes_true([&] { return std::count(shared->is, shared->is + ids.size(), rank_state::here) == n; });
  }
  bool are_here() const {
    return comes_true([&] { return shared->here == int(ids.size()); });
  }
  std::string heard(int r) const {
    CHECK(comes_true([&] { return shared->has_heard[r] == 1; }));
    return shared->heard[r];
  }
};

}  // namespace

TEST_CASE("a process that is killed is named to all others at once") {
  for (int victim : {0, 2}) {
    processes p(4, 60s);
    REQUIRE(p.are_here());
    REQUIRE(p.await_lines(3));
    kill(p.ids[std::size_t(victim)], SIGKILL);
    if (victim) CHECK(comes_true([&] { return p.shared->is[victim] == rank_state::gone; }));
    test::clock::advance(101ms);
    for (int r = 0; r < 4; ++r)
      if (r != victim) CHECK(has(p.heard(r), "rank " + std::to_string(victim) + " is gone"));
  }
}

TEST_CASE("a process that is stopped is named when another has waited too long, and gets the error when it continues") {
  processes p(4, 4s);
  REQUIRE(p.are_here());
  REQUIRE(p.await_lines(3));
  kill(p.ids[2], SIGSTOP);
  int status = 0;
  waitpid(p.ids[2], &status, WUNTRACED);
  REQUIRE(WIFSTOPPED(status));
  test::clock::advance(1800ms);
  REQUIRE(p.await_beats({1, 3}));
  p.shared->asks = 3;
  for (int r : {0, 1, 3}) {
    INFO(p.heard(r));
    CHECK(has(p.heard(r), "rank 3 waited 1 s for rank 2; rank 2 has not answered for "));
  }
  kill(p.ids[2], SIGCONT);
  CHECK(p.heard(2) == p.heard(0));
}

TEST_CASE("where rank 0 may open no more files the other lines work") {
  processes p(5, 60s, 1s, [](int r) {
    if (r != 0) return;
    if (!std::freopen("/dev/null", "w", stderr)) _exit(3);  // rank 0 reports the error there
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    rlimit const few{6, 6};  // one listener and two connections
    setrlimit(RLIMIT_NOFILE, &few);
  });
  REQUIRE(p.await_lines(2));
  {
    test::time_goes_on const meanwhile;  // until the others give up
    REQUIRE(p.are_here());
  }
  std::vector<int> lines;
  for (int r = 1; r < 5; ++r)
    if (p.shared->is[r] == rank_state::here) lines.push_back(r);
  test::clock::advance(1s);
  REQUIRE(p.await_beats(lines));
  p.shared->asks = 0;
  std::string const why = p.heard(0);
  INFO(why);
  CHECK(has(why, "rank 0 waited 1 s for other ranks; there is no connection to ranks "));
  CHECK(comes_true([&] {
    int heard = 0;
    for (int r = 1; r < 5; ++r) heard += p.shared->has_heard[r] && p.shared->heard[r] == why;
    return heard == 2;
  }));
}
