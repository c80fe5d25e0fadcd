// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Ranks that tell rank 0 how far they are: all of them hear who is gone, late or silent, or what one of them says at
// its end; and who leaves, or has no business there, ends nobody.
#include <descent/detail/heartbeats.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
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
template <class F> bool comes_true(F const& f, std::chrono::nanoseconds within = 10s) {
  for (time_limit limit(within); !f(); limit.pause())
    if (limit.passed()) return false;
  return true;
}
rank_position at(std::int64_t collective, std::int64_t begun, std::int64_t ended) {
  return {collective, begun, ended, "collective " + std::to_string(collective)};
}

/// A rank whose watcher is a thread.
struct player {
  heartbeats beats;
  std::atomic<bool> pauses = false;
  std::jthread watcher;

  player(int rank, int size, std::chrono::nanoseconds deadline) : beats(rank, size, deadline) {}
  void start(contact const& c, bool first) {
    if (!first) beats.expect_line();
    watcher = std::jthread([this, c, first](std::stop_token stop) {
      if (!first) beats.reach_rank_0(c, time_limit(5s), [&] { return stop.stop_requested(); });
      for (; !stop.stop_requested(); std::this_thread::sleep_for(2ms))
        if (!pauses) beats.tick();
    });
  }
};
struct team {
  std::vector<std::unique_ptr<player>> of;
  contact where;

  explicit team(int size, std::chrono::nanoseconds deadline = 60s) {
    for (int r = 0; r < size; ++r) of.push_back(std::make_unique<player>(r, size, deadline));
    where = (*this)[0].listen();
    for (int r = size; r-- > 0;) of[std::size_t(r)]->start(where, r == 0);
    CHECK(comes_true([&] { return !(*this)[0].expects_ranks(); }));
  }
  heartbeats& operator[](int r) { return of[std::size_t(r)]->beats; }
  int size() const { return int(of.size()); }
  void ends(int r) { of[std::size_t(r)].reset(); }
  /// What each rank that is left has heard.
  void check_all_hear(std::string const& text) {
    for (auto const& p : of)
      if (p && !p->pauses) {
        CHECK(comes_true([&] { return !p->beats.verdict().empty(); }));
        CHECK(p->beats.verdict() == text);
      }
  }
  void check_all_go_on() {
    std::this_thread::sleep_for(100ms);
    for (auto const& p : of)
      if (p) CHECK(p->beats.verdict() == "");
  }
  /// Where each rank is, by what f(rank) says; rank 0 knows it.
  template <class F> void set(F const& f) {
    for (int r = 0; r < size(); ++r)
      if (of[std::size_t(r)]) (*this)[r].set(f(r));
    std::this_thread::sleep_for(300ms);
  }
};

descriptor connected(contact const& c) {
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
contact at_loopback(int port) {
  contact c;
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
  t.check_all_hear("rank 2 is gone; rank 2 had come to collective 7");

  team u(6);
  u.set([](int) { return at(1, 0, 0); });
  u.of[0]->pauses = true;
  std::this_thread::sleep_for(100ms);
  u.ends(5);
  u[0].tick();
  CHECK(u[0].verdict() == "");
  u.ends(3);
  u.of[0]->pauses = false;
  u.check_all_hear("ranks 3, 5 are gone; rank 3 had come to collective 1");
}

TEST_CASE("what a rank says at its end reaches all, also from rank 0; the first reason stays") {
  for (int from : {0, 1, 3}) {
    team t(4);
    t[from].fail("no more data");
    t.check_all_hear("rank " + std::to_string(from) + " ended: no more data");
    t[2].fail("another reason");
    t.ends(3);
    std::this_thread::sleep_for(50ms);
    t.check_all_hear("rank " + std::to_string(from) + " ended: no more data");
  }
  team t(2);
  t[1].fail("rank 1 ended with an exception");
  t.check_all_hear("rank 1 ended with an exception");
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
  player zero(0, 2, 60s), one(1, 2, 60s);
  contact const c = zero.beats.listen();
  one.start(c, false);
  std::jthread const fails([&] { one.beats.fail("no memory"), one.beats.leave(); });
  std::this_thread::sleep_for(50ms);
  zero.start(c, true);
  CHECK(comes_true([&] { return zero.beats.verdict() == "rank 1 ended: no memory"; }));
}

TEST_CASE("a rank whose line comes when rank 0 is about to leave hears why, or that it has left") {
  for (bool fails : {true, false}) {
    player zero(0, 2, 60s), one(1, 2, 60s);
    contact const c = zero.beats.listen();
    if (fails) zero.beats.fail("no GPU");
    std::jthread leaves([&] {
      if (!fails) CHECK(comes_true([&] { return zero.beats.tick(), !zero.beats.expects_ranks(); }));
      zero.beats.leave();
    });
    one.start(c, false);
    leaves.join();
    if (fails) CHECK(comes_true([&] { return one.beats.verdict() == "rank 0 ended: no GPU"; }));
    else CHECK(has(one.beats.ask(beat::late, "waited", "", 5s), "rank 0 has left"));
  }
}

TEST_CASE("who waits too long names the rank that is behind: its device, or its host outside of meetings") {
  team t(4);
  t.set([](int r) { return r == 2 ? at(8, 2, 2) : at(9, 3, 2); });
  std::string const want = "rank 1 waited 2 s in collective 9 for rank 2; rank 2 has come to collective 8";
  CHECK(t[1].ask(beat::late, "waited 2 s in collective 9", "", 5s) == want);
  t.check_all_hear(want);
  CHECK(t[3].verdict_for("in collective 9") == "rank 3 in collective 9: " + want);
  CHECK(t[0].ask(beat::late, "waited 2 s in collective 9", "", 5s) == "rank 0 waited 2 s in collective 9: " + want);

  team u(3);
  u.set([](int r) { return at(r == 0 ? 4 : 5, 2, 2); });
  CHECK(u[0].ask(beat::late, "waited 1 s", "", 5s) ==
        "rank 0 waited 1 s for rank 0; rank 0 has come to collective 4");
}

TEST_CASE("a rank that waits and does not know why says so: all as far, no line, or rank 0 has left") {
  team t(3);
  t.set([](int r) { return at(10 + r, 3, 2); });  // hosts may be ahead of a meeting
  CHECK(t[2].ask(beat::late, "waited", "", 5s) == "rank 2 waited for other ranks; all of them have come as far");

  player alone(1, 2, 60s);
  alone.beats.reach_rank_0(at_loopback(1), time_limit(100ms), [] { return false; });
  CHECK(alone.beats.ask(beat::late, "waited", "", 5s) ==
        "rank 1 waited for other ranks; which is not known: no line to rank 0: Connection refused");
  CHECK(alone.beats.ask(beat::hurt, "in 5", ": NCCL says no", 5s) == "rank 1 in 5: NCCL says no");
  player unheard(1, 2, 60s);
  unheard.beats.reach_rank_0(contact(), time_limit(5s), [] { return false; });
  CHECK(unheard.beats.ask(beat::late, "waited", "", 5s) ==
        "rank 1 waited for other ranks; which is not known: no line to rank 0: rank 0 does not listen");

  team u(2);
  u[0].leave();
  std::this_thread::sleep_for(50ms);
  u.check_all_go_on();
  CHECK(u[1].ask(beat::late, "waited", "", 5s) ==
        "rank 1 waited for other ranks; which is not known: rank 0 has left");

  player zero(0, 3, 60s);
  zero.start(zero.beats.listen(), true);
  CHECK(zero.beats.ask(beat::late, "waited", "", 5s) ==
        "rank 0 waited for other ranks; there is no line from ranks 1, 2");
}

TEST_CASE("a rank that leaves is not gone; who waits for it says that it has left") {
  team t(3);
  t.set([](int) { return at(4, 2, 2); });
  t[1].leave();
  t.ends(1);
  t.check_all_go_on();
  t.set([](int) { return at(5, 3, 2); });
  t[2].ask(beat::late, "waited 2 s", "", 5s);
  t.check_all_hear("rank 2 waited 2 s for rank 1; rank 1 has left, had come to collective 4");
}

TEST_CASE("a rank whose signs of life stop does not answer, rank 0 neither") {
  team t(4, 4s);  // silent after 1.2 s
  t.set([](int) { return at(4, 2, 1); });
  t.of[2]->pauses = true;
  std::this_thread::sleep_for(1800ms);
  std::string const why = t[1].ask(beat::late, "waited 1 s", "", 5s);
  INFO(why);
  CHECK(has(why, "rank 1 waited 1 s for rank 2; rank 2 does not answer since "));
  CHECK(why.ends_with(" s, had come to collective 4"));
  t.check_all_hear(why);
  t.of[2]->pauses = false;
  t.check_all_hear(why);

  team u(3, 4s);
  u.of[0]->pauses = true;
  std::this_thread::sleep_for(1800ms);
  CHECK(has(u[2].ask(beat::late, "waited 1 s", "", 300ms),
            "rank 2 waited 1 s for rank 0; rank 0 does not answer since "));
}

TEST_CASE("the end of rank 0 is told to all") {
  team t(4);
  t.ends(0);
  t.check_all_hear("rank 0 is gone");
}

TEST_CASE("what others' ends do to a rank is no reason where there is a better one") {
  team t(4);
  t.set([](int r) { return at(3 + r, 1, 1); });
  std::jthread const hurt([&] {
    CHECK(t[1].ask(beat::hurt, "waited 0.1 s", ": NCCL says no", 5s) ==
          "rank 1 waited 0.1 s: rank 3 is gone; rank 3 had come to collective 6");
  });
  std::this_thread::sleep_for(50ms);
  t.ends(3);
  t.check_all_hear("rank 3 is gone; rank 3 had come to collective 6");

  team u(3);
  CHECK(u[2].ask(beat::hurt, "waited 0.1 s", ": NCCL says no", 5s) == "rank 2 waited 0.1 s: NCCL says no");
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
    contact::key answer{};
    CHECK(receive_all(s, std::as_writable_bytes(std::span(answer)), time_limit(5s)) == "");
    CHECK(answer == t.where.answers);
    send(s, beat{});
    CHECK(closed(s));
  }
  t.check_all_go_on();
  t[1].fail("still here");
  t.check_all_hear("rank 1 ended: still here");
}

TEST_CASE("a rank takes nobody else for rank 0") {
  std::string why;
  descriptor const listener = listen_everywhere(8, why);
  REQUIRE(listener);
  contact c = at_loopback(port_of(listener));
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
  auto const once = [&] { return std::exchange(tried, why == "somebody else listens there"); };
  CHECK(!reach(c, {c.asks, 1, 2}, limit, once, why));
  CHECK(why == "somebody else listens there");
}

TEST_CASE("addresses that do not answer are passed over") {
  player zero(0, 2, 60s), one(1, 2, 60s);
  contact c = zero.beats.listen();
  zero.start(c, true);
  REQUIRE(c.count > 0);
  c.count = 3;
  unsigned char const nowhere[] = {192, 0, 2, 1};  // of no network (RFC 5737)
  for (auto& a : c.at) a = at_loopback(1).at[0];
  std::memcpy(c.at[0].bytes, nowhere, 4);
  c.at[1].family = 12345;
  one.beats.reach_rank_0(c, time_limit(10s), [] { return false; });
  CHECK(comes_true([&] { return !zero.beats.expects_ranks(); }));
}

TEST_CASE("a line that carries nonsense is given up, and nobody ends") {
  player zero(0, 3, 60s);
  contact const c = zero.beats.listen();
  zero.start(c, true);
  player one(1, 3, 60s);
  one.start(c, false);
  descriptor const s = connected(c);
  send(s, introduction{c.asks, 2, 3});
  contact::key answer{};
  CHECK(receive_all(s, std::as_writable_bytes(std::span(answer)), time_limit(5s)) == "");
  send(s, beat{});
  CHECK(comes_true([&] { return !zero.beats.expects_ranks(); }));
  beat broken;
  SUBCASE("an unknown message") { broken.kind = 99; }
  SUBCASE("a text that is too long") { broken.bytes = 1 << 30; }
  send(s, broken);
  std::this_thread::sleep_for(100ms);
  CHECK(zero.beats.verdict() == "");
  CHECK(one.beats.ask(beat::late, "waited", "", 5s) == "rank 1 waited for other ranks; there is no line from rank 2");
}

TEST_CASE("a long text comes in parts and is cut at 4000 characters") {
  team t(3);
  t[2].fail(std::string(5000, 'x'));
  t.check_all_hear(("rank 2 ended: " + std::string(5000, 'x')).substr(0, beat::most));
}

TEST_CASE("a hundred ranks") {
  team t(100);
  t[57].fail("one of many");
  t.check_all_hear("rank 57 ended: one of many");
}

// ---- ranks that are processes

namespace {

/// What processes share.
struct board {
  contact where;
  std::atomic<int> listens{0}, here{0}, asks{-1};
  char heard[8][1024] = {};
  std::atomic<int> has_heard[8] = {};
};

struct processes {
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
      if (shared->asks == r) beats.ask(beat::late, "waited 1 s", "", 1s);
      usleep(2000);
    }
    std::strncpy(shared->heard[r], beats.verdict().c_str(), sizeof shared->heard[r] - 1);
    shared->has_heard[r] = 1;
    for (;; usleep(2000)) beats.tick();
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
    kill(p.ids[std::size_t(victim)], SIGKILL);
    auto const start = std::chrono::steady_clock::now();
    for (int r = 0; r < 4; ++r)
      if (r != victim) CHECK(has(p.heard(r), "rank " + std::to_string(victim) + " is gone"));
    CHECK(std::chrono::steady_clock::now() - start < 5s);
  }
}

TEST_CASE("a process that is stopped is named when another has waited too long, and hears it when it goes on") {
  processes p(4, 4s);
  REQUIRE(p.are_here());
  kill(p.ids[2], SIGSTOP);
  std::this_thread::sleep_for(1800ms);
  p.shared->asks = 3;
  for (int r : {0, 1, 3}) {
    INFO(p.heard(r));
    CHECK(has(p.heard(r), "rank 3 waited 1 s for rank 2; rank 2 does not answer since "));
  }
  kill(p.ids[2], SIGCONT);
  CHECK(p.heard(2) == p.heard(0));
}

TEST_CASE("where rank 0 may open no more files the other lines work") {
  processes p(5, 60s, 1s, [](int r) {
    if (r != 0) return;
    if (!std::freopen("/dev/null", "w", stderr)) _exit(3);  // where it says so
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    rlimit const few{6, 6};  // a listener and two lines
    setrlimit(RLIMIT_NOFILE, &few);
  });
  REQUIRE(p.are_here());
  p.shared->asks = 0;
  std::string const why = p.heard(0);
  INFO(why);
  CHECK(has(why, "rank 0 waited 1 s for other ranks; there is no line from ranks "));
  CHECK(comes_true([&] {
    int heard = 0;
    for (int r = 1; r < 5; ++r) heard += p.shared->has_heard[r] && p.shared->heard[r] == why;
    return heard == 2;
  }));
}
