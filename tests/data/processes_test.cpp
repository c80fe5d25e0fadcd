// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Processes that read: the same records as without them, whatever happens to a process, and nothing stays behind.
#include <descent/data/loader.hpp>
#include <descent/data/processes.hpp>
#include <descent/data/sources.hpp>

#include <doctest/doctest.h>

#include "support/clock.hpp"
#include "support/message.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <poll.h>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ds = descent;
using test::message;

namespace {

/// No case fails because it is slow. Tests of broken headers have less patience.
constexpr auto limit = test::patience * (test::patience.count() < 60 ? 2 : 10);
/// Ends the program if a case hangs.
struct guard {
  guard() { ::alarm(unsigned(limit.count())); }
  ~guard() { ::alarm(0); }
  guard(guard const&) = delete;
  guard& operator=(guard const&) = delete;
};
template <class F> void wait_until(F const& holds) {
  while (!holds()) ::usleep(1000);
}

/// The parent of a process, or 0 if there is no such process.
pid_t parent_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  auto const end = text.rfind(')');  // of the name; a letter for the state follows
  return end == std::string::npos ? 0 : std::atoi(text.c_str() + end + 4);
}
/// All children of a process, also those that have ended and were not waited for.
std::set<pid_t> children_of(pid_t parent) {
  std::set<pid_t> all;
  DIR* const folder = ::opendir("/proc");
  REQUIRE(folder != nullptr);
  while (dirent const* const entry = ::readdir(folder)) {
    pid_t const process = std::atoi(entry->d_name);
    if (process > 1 && parent_of(process) == parent) all.insert(process);
  }
  ::closedir(folder);
  return all;
}
/// A process, also after its number belongs to another one.
class handle {
 public:
  /// Of a child of this parent, or of nothing.
  handle(pid_t process, pid_t parent) {
    if (process <= 1 || parent <= 1) return;
    fd_ = int(::syscall(SYS_pidfd_open, process, 0));
    if (fd_ >= 0 && parent_of(process) != parent) close();
  }
  handle(handle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  handle& operator=(handle&&) = delete;
  ~handle() { close(); }

  bool send(int signal) const { return fd_ >= 0 && ::syscall(SYS_pidfd_send_signal, fd_, signal, nullptr, 0) == 0; }
  /// Whether it has ended, even if nobody has waited for it.
  bool ended() const {
    pollfd on{fd_, POLLIN, 0};
    return fd_ < 0 || ::poll(&on, 1, 0) > 0;
  }
  /// Waits for its end. If it does not come, kills it and returns false.
  bool ends() const {
    pollfd on{fd_, POLLIN, 0};
    return fd_ < 0 || ::poll(&on, 1, int(limit.count() * 1000 / 8)) > 0 || !send(SIGKILL);
  }

 private:
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int fd_ = -1;
};
/// The children that a source has added, its nursery, and their children.
struct family {
  pid_t nursery = 0;
  std::set<pid_t> workers() const { return children_of(nursery); }
  explicit family(std::set<pid_t> const& before) {
    for (pid_t const p : children_of(::getpid()))
      if (!before.contains(p)) nursery = p;
    REQUIRE(nursery > 1);
  }
};

/// A number that all processes share.
class shared_number {
 public:
  shared_number() {
    void* const at = ::mmap(nullptr, sizeof *number_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    number_ = ::new (at) std::atomic<int>(0);
  }
  shared_number(shared_number const&) = delete;
  shared_number& operator=(shared_number const&) = delete;
  ~shared_number() { ::munmap(static_cast<void*>(number_), sizeof *number_); }
  std::atomic<int>& operator*() const { return *number_; }

 private:
  std::atomic<int>* number_;
};

/// Records that tell everything: their number, random numbers, and a ragged field of `number mod 5` random letters.
struct telling {
  std::int64_t n;
  std::int64_t bad = -1;  // throws
  auto fields() const {
    return ds::fields{ds::field<"i", std::int64_t>{}, ds::ragged<"t", char>(4, '.'), ds::field<"u", double>{2}};
  }
  std::int64_t size() const { return n; }
  void read(std::int64_t i, auto const& out, ds::record_random& random) const {
    out.template value<"i">() = i;
    for (double& u : out.template get<"u">()) u = random.uniform();
    if (i == bad) throw std::out_of_range("bad");
    if (i % 5 == 0) return;
    out.template set_length<"t">(i % 5);
    for (std::int64_t k = 0; k < i % 5; ++k) out.template get<"t">()[std::size_t(k)] = char('a' + random.below(26));
  }
};
/// A record as text, with the random number that comes after it.
template <class S> std::string told(S const& s, std::int64_t i) {
  ds::record_memory memory(s.fields());
  auto const r = memory.clear();
  ds::record_random random(7, 1, i);
  s.read(i, r, random);
  auto const letters = r.template get<"t">();
  return std::to_string(r.template value<"i">()) + " " + std::to_string(r.template get<"u">()[0]) + " " +
         std::to_string(r.template get<"u">()[1]) + " " +
         std::string(letters.data(), std::size_t(r.template length<"t">())) + " " + std::to_string(random());
}
/// The batches of the first epochs as text.
template <class S> std::vector<std::string> batches_of(S const& s, ds::workers const& w) {
  ds::loader loader{s, ds::batches{.size = 5}, ds::shuffled{2}, w};
  std::vector<std::string> all;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (auto const& b : loader.epoch()) {
      std::string text(b.template get<"t">().data(), b.template get<"t">().size());
      for (auto const i : b.template get<"i">()) text += " " + std::to_string(i);
      for (auto const n : b.template lengths<"t">()) text += " " + std::to_string(n);
      for (auto const u : b.template get<"u">()) text += " " + std::to_string(u);
      all.push_back(text);
    }
  return all;
}

/// Does something for each record, which has three times its number.
struct acting {
  void (*act)(std::int64_t i);
  auto fields() const { return ds::fields{ds::field<"x", std::int64_t>{}}; }
  std::int64_t size() const { return 40; }
  void read(std::int64_t i, auto const& out, ds::record_random&) const {
    act(i);
    out.template value<"x">() = 3 * i;
  }
};
template <class S> std::int64_t number(S const& s, std::int64_t i) {
  ds::record_memory memory(s.fields());
  auto const r = memory.clear();
  ds::record_random random(0, 0, i);
  s.read(i, r, random);
  return r.template value<"x">();
}
[[noreturn]] void sleep_forever() {
  for (;;) ::pause();
}
template <int K> void hang_at(std::int64_t i) {
  if (i == K) sleep_forever();
}
/// Ends the process at record 17.
template <int Status> void leave(std::int64_t i) {
  if (i == 17) ::_exit(Status);
}
template <int Status> void leave_by_exit(std::int64_t i) {
  if (i == 17) std::exit(Status);
}
template <int Signal> void raise_signal(std::int64_t i) {
  if (i != 17) return;
  ::signal(Signal, SIG_DFL);  // a sanitizer may have a handler
  ::raise(Signal);
}
void leave_soon(std::int64_t) {
  ::usleep(20000);
  ::_exit(1);
}
/// Each reader waits until three are here.
struct meeting {
  std::atomic<int>* here;
  auto fields() const { return ds::fields{ds::field<"x", std::int64_t>{}}; }
  std::int64_t size() const { return 9; }
  void read(std::int64_t, auto const& out, ds::record_random&) const {
    int const mine = ++*here;
    wait_until([&] { return *here >= (mine + 2) / 3 * 3; });
    out.template value<"x">() = ::getpid();
  }
};
/// Counts its readers and lets none go.
struct hanging {
  std::atomic<int>* reading;
  auto fields() const { return ds::fields{ds::field<"x", std::int64_t>{}}; }
  std::int64_t size() const { return 40; }
  void read(std::int64_t, auto const&, ds::record_random&) const {
    ++*reading;
    sleep_forever();
  }
};
/// Writes before or behind its memory.
struct stray {
  auto fields() const { return ds::fields{ds::field<"x", std::int64_t>{}}; }
  std::int64_t size() const { return 40; }
  void read(std::int64_t i, auto const& out, ds::record_random&) const {
    out.template value<"x">() = 3 * i;
    std::ptrdiff_t const page = ::sysconf(_SC_PAGESIZE);
    ::signal(SIGSEGV, SIG_DFL);
    if (i == 1 || i == 2) *(out.data()[0] + (i == 1 ? -page : page)) = std::byte{77};
  }
};
/// A record of so many bytes.
struct huge {
  std::int64_t bytes;
  auto fields() const { return ds::fields{ds::field<"x", char>{bytes}}; }
  std::int64_t size() const { return 1; }
  void read(std::int64_t, auto const&, ds::record_random&) const {}
};
std::string sentence(ds::worker_died const& e, std::string const& what) {
  return "in_processes: worker " + std::to_string(e.worker) + " (process " + std::to_string(e.process) + ") " + what;
}

/// Runs f in another process, which is gone when f returns. It is killed by the destructor at the latest.
class other_process {
 public:
  template <class F> explicit other_process(F const& f) {
    REQUIRE(::pipe(ends_) == 0);
    std::fflush(stdout);
    process_ = ::fork();
    REQUIRE(process_ >= 0);
    if (process_ == 0) {
      ::close(ends_[0]);
      f(ends_[1]);
      ::_exit(0);
    }
    ::close(ends_[1]);
  }
  other_process(other_process const&) = delete;
  other_process& operator=(other_process const&) = delete;
  ~other_process() {
    kill();
    ::close(ends_[0]);
  }

  pid_t id() const { return process_; }
  void kill() {
    if (process_ <= 1) return;
    ::kill(process_, SIGKILL);
    wait();
  }
  int wait() {
    int status = -1;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {}
    process_ = 0;
    return status;
  }
  /// One number that f has written.
  int number() const {
    int x = -1;
    CHECK(::read(ends_[0], &x, sizeof x) == sizeof x);
    return x;
  }
  /// All that f writes.
  std::string text() const {
    std::string all;
    char part[256];
    for (ssize_t n; (n = ::read(ends_[0], part, sizeof part)) > 0;) all.append(part, std::size_t(n));
    return all;
  }

 private:
  int ends_[2] = {-1, -1};
  pid_t process_ = 0;
};
void tell(int to, int number) {
  if (::write(to, &number, sizeof number) != sizeof number) ::_exit(1);
}
void tell(int to, std::string const& text) {
  if (::write(to, text.data(), text.size()) != ssize_t(text.size())) ::_exit(1);
}

}  // namespace

TEST_CASE("processes: records, batches and random numbers are those of the source, for any number of processes") {
  guard const g;
  for (std::int64_t const bad : {-1, 11}) {
    telling const source{37, bad};
    std::vector<std::string> const want = batches_of(source, {.on_error = ds::on_error::skip, .seed = 5});
    for (int const count : {1, 2, 3, 4}) {
      ds::in_processes const read{source, ds::processes{.count = count}};
      CHECK(read.size() == 37);
      CHECK(read.fields() == source.fields());
      for (int const threads : {0, 1, 2, 4})
        CHECK(batches_of(read, {.threads = threads, .on_error = ds::on_error::skip, .seed = 5}) == want);
      std::int64_t const before = read.report().reads;
      for (std::int64_t i = 0; i < 37; ++i)
        if (i != bad) CHECK(told(read, i) == told(source, i));
      CHECK(read.report().reads == before + (bad < 0 ? 37 : 36));
      CHECK(read.report().died == 0);
    }
  }
}

TEST_CASE("processes: as many threads read at a time as there are processes, and the others wait") {
  guard const g;
  shared_number here;
  auto const before = children_of(::getpid());
  ds::in_processes const source{meeting{&*here}, ds::processes{.count = 3}};
  family const all(before);
  auto const workers = all.workers();
  CHECK(workers.size() == 3);
  std::mutex mutex;
  std::multiset<pid_t> seen;
  std::vector<std::thread> threads;
  for (int t = 0; t < 9; ++t)
    threads.emplace_back([&, t] {
      auto const process = pid_t(number(source, t));
      std::lock_guard const lock(mutex);
      seen.insert(process);
    });
  for (auto& t : threads) t.join();
  CHECK(std::set<pid_t>(seen.begin(), seen.end()) == workers);
  for (pid_t const p : workers) CHECK(seen.count(p) == 3);
}

TEST_CASE("processes: one that exits is named, and another one takes its place") {
  guard const g;
  static shared_number leaving;
  static pid_t const owner = ::getpid();
  static int const registered = std::atexit([] {
    if (::getpid() != owner) ++*leaving;
  });
  CHECK(registered == 0);
  struct ending {
    void (*act)(std::int64_t);
    std::string what;
    int signal, status;
  };
  for (ending const& one :
       {ending{raise_signal<SIGSEGV>, "was killed by signal 11 (Segmentation fault)", SIGSEGV, 0},
        ending{raise_signal<SIGUSR2>, "was killed by signal 12", SIGUSR2, 0},
        ending{leave<3>, "ended with status 3", 0, 3}, ending{leave<0>, "ended with status 0", 0, 0},
        ending{leave_by_exit<4>, "ended with status 4", 0, 4}}) {
    auto const& what = one.what;
    CAPTURE(what);
    ds::in_processes const source{acting{one.act}, ds::processes{.count = 2}};
    for (int times = 1; times <= 3; ++times) {
      CHECK(number(source, 16) == 48);
      try {
        number(source, 17);
        FAIL("no error");
      } catch (ds::worker_died const& e) {
        CHECK(e.what() == sentence(e, what + " while it read record 17"));
        CHECK(e.record == 17);
        CHECK(e.signal == one.signal);
        CHECK(e.status == one.status);
        CHECK(!e.late);
        CHECK_UNARY(e.worker == 0 || e.worker == 1);
      }
      CHECK(source.report().died == times);
      wait_until([&] { return source.report().replaced == times; });
    }
    // The loader adds batch and record, and leaves out the record if it is asked to.
    for (int const threads : {0, 3}) {
      ds::loader loader{source, ds::batches{.size = 4}, ds::sequential{}, ds::workers{.threads = threads}};
      for (int k = 0; k < 4; ++k) CHECK(loader.next().get<"x">()[3] == 3 * (4 * k + 3));
      try {
        loader.next();
        FAIL("no error");
      } catch (ds::loader_error const& e) {
        CHECK(e.batch == 4);
        CHECK(e.record == 17);
        std::string const said = message<ds::worker_died>([&] { std::rethrow_if_nested(e); });
        CHECK(said.ends_with(what + " while it read record 17"));
        CHECK(std::string(e.what()).starts_with("loader: batch 4 of epoch 0: record 17"));
        CHECK(std::string(e.what()).ends_with(said));
      }
      loader.seek({0, 5});
      CHECK(loader.next().get<"x">()[0] == 60);
      ds::loader skipping{source, ds::batches{.size = 40}, ds::sequential{},
                          ds::workers{.threads = threads, .on_error = ds::on_error::skip}};
      auto const b = skipping.next();
      REQUIRE(b.size() == 39);
      for (std::int64_t i = 0; i < 39; ++i) CHECK(b.get<"x">()[std::size_t(i)] == 3 * (i < 17 ? i : i + 1));
    }
  }
  CHECK(*leaving == 0);
}

TEST_CASE("processes: without replacement the others continue, and when none is left each read says so") {
  guard const g;
  auto const act = [](std::int64_t i) {
    if (i % 2 == 1) ::_exit(int(i));
  };
  auto const before = children_of(::getpid());
  ds::in_processes const source{acting{act}, ds::processes{.count = 3, .replace = false}};
  std::set<int> ended;
  std::string last;
  for (std::int64_t i = 1; i <= 5; i += 2) {
    CHECK(number(source, i - 1) == 3 * (i - 1));
    try {
      number(source, i);
      FAIL("no error");
    } catch (ds::worker_died const& e) {
      last = sentence(e, "ended with status " + std::to_string(i));
      CHECK(e.what() == last + " while it read record " + std::to_string(i));
      CHECK(ended.insert(e.worker).second);
    }
  }
  last = "in_processes: no process is left; the last, " + last.substr(std::string("in_processes: ").size());
  last.insert(last.find(" ended"), ",");
  for (int k = 0; k < 3; ++k) CHECK(message<std::runtime_error>([&] { number(source, 0); }) == last);
  CHECK(source.report().reads == 3);
  CHECK(source.report().died == 3);
  CHECK(source.report().replaced == 0);
  CHECK(family(before).workers().empty());

  // Threads that wait for a process hear it too.
  ds::in_processes const one{acting{leave_soon}, ds::processes{.replace = false}};
  std::atomic<int> named{0}, told_none{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      try {
        number(one, 0);
      } catch (ds::worker_died const&) { ++named; } catch (std::runtime_error const& e) {
        told_none += std::string(e.what()).starts_with("in_processes: no process is left");
      }
    });
  for (auto& t : threads) t.join();
  CHECK(named == 1);
  CHECK(told_none == 3);
}

TEST_CASE("processes: one that is killed when it reads nothing does no harm") {
  guard const g;
  for (bool const replace : {true, false}) {
    auto const before = children_of(::getpid());
    ds::in_processes const source{telling{40}, ds::processes{.count = 3, .replace = replace}};
    family const all(before);
    std::set<pid_t> const first = all.workers();
    int killed = 0;
    for (pid_t const p : first) {
      if (killed == 2) break;
      CHECK(handle(p, all.nursery).send(SIGKILL));
      ++killed;
      wait_until([&] { return source.report().died == killed && source.report().replaced == (replace ? killed : 0); });
    }
    wait_until([&] { return !replace || all.workers().size() == 3; });
    for (std::int64_t i = 0; i < 40; ++i) CHECK(told(source, i) == told(telling{40}, i));
    CHECK(source.report().died == 2);
  }
}

TEST_CASE("processes: killed at any time, each failure is named, and no record is lost or wrong") {
  guard const g;
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::string const killed_at = "was killed by signal 9 (Killed) while it read record ";
    telling const plain{200};
    std::vector<std::string> want;
    for (std::int64_t i = 0; i < 200; ++i) want.push_back(told(plain, i));
    auto const before = children_of(::getpid());
    int const count = 1 + int(seed % 4);
    ds::in_processes const source{plain, ds::processes{.count = count}};
    family const all(before);
    std::atomic<bool> stop{false};
    std::atomic<int> killed{0}, failed{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (std::int64_t k = 0; !stop; ++k) {
          std::int64_t const i = (k * 7 + t * 50) % 200;
          try {
            wrong += told(source, i) != want[std::size_t(i)];
          } catch (ds::worker_died const& e) {
            ++failed;
            wrong += e.signal != SIGKILL || e.record != i || e.late ||
                     e.what() != sentence(e, killed_at + std::to_string(i));
          } catch (...) {
            ++wrong;
          }
        }
      });
    while (killed < 30) {
      ::usleep(random() % 2000);
      auto const now = all.workers();
      if (now.empty()) continue;
      pid_t const p = *std::next(now.begin(), std::ptrdiff_t(random() % now.size()));
      killed += handle(p, all.nursery).send(SIGKILL);
    }
    stop = true;
    for (auto& t : threads) t.join();
    CHECK(wrong == 0);
    wait_until([&] { return source.report().replaced == source.report().died; });
    CHECK(source.report().died <= killed);  // a signal may reach one that has ended and was not waited for yet
    CHECK(failed <= source.report().died);
    for (std::int64_t i = 0; i < 200;) {
      try {
        std::string const got = told(source, i);
        CHECK(got == want[std::size_t(i)]);
        ++i;
      } catch (ds::worker_died const&) {}  // the last one that was killed
    }
  }
}

TEST_CASE("processes: a loader that asks again after each death delivers all batches") {
  guard const g;
  telling const plain{300};
  std::vector<std::int64_t> all(300);
  for (std::size_t i = 0; i < 300; ++i) all[i] = std::int64_t(i);
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    std::mt19937 random(seed);
    auto const before = children_of(::getpid());
    ds::in_processes const source{plain, ds::processes{.count = 2}};
    family const mine(before);
    std::atomic<bool> stop{false};
    std::thread killer([&] {
      while (!stop) {
        ::usleep(random() % 20000);
        for (pid_t const p : mine.workers())
          if (random() % 2 == 0) handle(p, mine.nursery).send(SIGKILL);
      }
    });
    {
      ds::loader loader{source, ds::batches{.size = 3}, ds::shuffled{seed}, ds::workers{.threads = 2, .ahead = 2}};
      for (int epoch = 0; epoch < 3; ++epoch) {
        std::vector<std::int64_t> seen;
        while (loader.position().epoch == epoch) {
          try {
            auto const b = loader.next();
            seen.insert(seen.end(), b.get<"i">().begin(), b.get<"i">().end());
          } catch (ds::loader_error const& e) {
            std::string const said = message<ds::worker_died>([&] { std::rethrow_if_nested(e); });
            CHECK(said.find("was killed by signal 9") != std::string::npos);
          }
        }
        std::ranges::sort(seen);
        CHECK(seen == all);
      }
    }
    stop = true;
    killer.join();
  }
}

TEST_CASE("processes: what the source throws is thrown by read") {
  guard const g;
  ds::in_processes const source{acting{[](std::int64_t i) {
                                  if (i == 1) throw std::out_of_range("disk is gone");
                                  if (i == 2) throw 5;
                                  if (i == 3) throw std::runtime_error(std::string(5000, 'x'));
                                  if (i == 4) throw std::runtime_error(std::string(1023, 'y'));
                                  if (i == 5) throw std::runtime_error("");
                                }},
                                ds::processes{}};
  auto const said = [&](std::int64_t i) {
    std::string const all = message<std::runtime_error>([&] { number(source, i); });
    CHECK(number(source, 6 + i) == 3 * (6 + i));
    return all;
  };
  for (int k = 0; k < 2; ++k) {
    CHECK(said(1) == "disk is gone");
    CHECK(said(2) == "an exception other than std::exception");
    CHECK(said(3) == std::string(1020, 'x') + "...");
    CHECK(said(4) == std::string(1023, 'y'));
    CHECK(said(5) == "");
  }
  CHECK_THROWS_AS(number(source, 5), std::runtime_error);
  CHECK(source.report().died == 0);
  CHECK(source.report().reads == 10);
}

TEST_CASE("processes: one that misses the deadline is killed and named") {
  using namespace std::chrono_literals;
  guard const g;
  for (bool const replace : {true, false}) {
    ds::in_processes const source{acting{hang_at<5>}, ds::processes{.count = 2, .replace = replace, .deadline = 200ms}};
    int late = 0;
    for (int times = 0; times < 2; ++times)
      for (std::int64_t const i : {4, 5}) {
        try {
          std::int64_t const got = number(source, i);
          CHECK(got == 12);
        } catch (ds::worker_died const& e) {  // on a slow machine also record 4
          ++late;
          CHECK(e.late);
          CHECK(e.signal == SIGKILL);
          CHECK(e.record == i);
          std::string const want = "was killed because it took longer than 0.2 s to read record " + std::to_string(i);
          CHECK(e.what() == sentence(e, want));
        } catch (std::runtime_error const& e) {
          CHECK(std::string(e.what()).starts_with("in_processes: no process is left; the last, worker "));
          CHECK(std::string(e.what()).ends_with(", was killed because it took longer than 0.2 s to read"));
          CHECK(!replace);
          CHECK(late == 2);
        }
      }
    CHECK(late >= 2);
    CHECK(source.report().died == late);
    wait_until([&] { return source.report().replaced == (replace ? late : 0); });
  }
  // Those that are in time stay, and a long deadline is no overflow.
  for (auto const most : {std::chrono::nanoseconds(std::chrono::hours(1)), std::chrono::nanoseconds::max()}) {
    ds::in_processes const source{acting{[](std::int64_t) { ::usleep(1000); }}, ds::processes{.deadline = most}};
    for (std::int64_t i = 0; i < 40; ++i) CHECK(number(source, i) == 3 * i);
    CHECK(source.report().died == 0);
  }
}

namespace {

struct thirds {
  auto fields() const { return ds::fields{ds::field<"x", std::int64_t>{1}}; }
  std::int64_t size() const { return 40; }
  void read(std::int64_t i, auto const& out, ds::record_random&) const { out.template get<"x">()[0] = i / 3; }
};

}  // namespace

namespace {
struct ending : thirds {
  void read(std::int64_t i, auto const& out, ds::record_random& random) const {
    if (i == 7) throw ds::source_ended("the server has closed");
    thirds::read(i, out, random);
  }
};
}  // namespace

TEST_CASE("processes: a source that has ended in a process has ended, also where records that fail are left out") {
  guard const g;
  for (auto const on : {ds::on_error::stop, ds::on_error::skip}) {
    ds::loader loader{ds::in_processes{ending{}, ds::processes{.count = 2}}, ds::batches{.size = 4}, ds::sequential{},
                      ds::workers{.threads = 2, .on_error = on}};
    CHECK(loader.next().size() == 4);
    bool ended = false;
    try {
      loader.next();
    } catch (ds::loader_error const& e) {
      CHECK(e.record == 7);
      try {
        std::rethrow_if_nested(e);
      } catch (ds::source_ended const& why) { ended = why.what() == std::string("the server has closed"); }
    }
    CHECK(ended);
    CHECK(loader.report().skipped == 0);
  }
}

TEST_CASE("processes: if the process that starts the workers is killed, a loader says so, also with on_error::skip") {
  guard const g;
  for (int const threads : {0, 2}) {
    auto const before = children_of(::getpid());
    ds::in_processes source{thirds{}, ds::processes{.count = 2}};
    pid_t nursery = 0;
    for (pid_t const p : children_of(::getpid()))
      if (!before.contains(p)) nursery = p;
    REQUIRE(nursery > 1);
    ds::loader loader{source, ds::batches{.size = 4}, ds::sequential{},
                      ds::workers{.threads = threads, .on_error = ds::on_error::skip}};
    CHECK(loader.next().size() == 4);
    CHECK(handle(nursery, ::getpid()).send(SIGKILL));
    std::string said;
    while (said.empty()) said = message<ds::loader_error>([&] { loader.next(); });  // what was read ahead comes first
    CHECK(said.ends_with("process " + std::to_string(nursery) + ", which starts the others, has ended"));
    CHECK(message<ds::loader_error>([&] { loader.next(); }).ends_with("has ended"));
    CHECK(loader.report().skipped == 0);
    CHECK(source.report().died == 2);
  }
}

TEST_CASE("processes: if the process that starts the workers is killed, all reads say so and the workers end") {
  guard const g;
  for (int const threads : {1, 6}) {
    auto const before = children_of(::getpid());
    ds::in_processes const source{acting{hang_at<1>}, ds::processes{.count = 2}};
    CHECK(number(source, 2) == 6);
    family const all(before);
    std::vector<handle> workers;
    for (pid_t const p : all.workers()) workers.emplace_back(p, all.nursery);
    CHECK(workers.size() == 2);
    std::string const want =
        "in_processes: process " + std::to_string(all.nursery) + ", which starts the others, has ended";
    std::atomic<int> said{0};
    std::vector<std::thread> readers;
    for (int t = 0; t < threads; ++t)
      readers.emplace_back([&] { said += message<std::runtime_error>([&] { number(source, 1); }) == want; });
    ::usleep(20000);
    CHECK(handle(all.nursery, ::getpid()).send(SIGKILL));
    for (auto& t : readers) t.join();
    CHECK(said == threads);
    CHECK(message<std::runtime_error>([&] { number(source, 2); }) == want);
    for (auto const& w : workers) CHECK(w.ends());
  }
}

TEST_CASE("processes: all end with the program, however it ends") {
  guard const g;
  for (bool const inherited : {false, true}) {  // whether another process keeps what the program had open
    int keep[2];
    REQUIRE(::pipe(keep) == 0);
    other_process program([&](int out) {
      ::close(keep[1]);
      ds::in_processes const source{acting{hang_at<1>}, ds::processes{.count = 3}};
      ds::in_processes const second{acting{[](std::int64_t) {}}, ds::processes{}};
      if (inherited && ::fork() == 0) {
        char c;
        if (::read(keep[0], &c, 1) <= 0) ::_exit(0);  // lives as long as the test has its end
      }
      std::thread reader([&] { number(source, 1); });
      tell(out, int(number(second, 1)));
      sleep_forever();
    });
    CHECK(program.number() == 3);
    std::vector<handle> all;
    for (pid_t const p : children_of(program.id())) {
      auto const below = children_of(p);
      if (below.empty()) continue;  // not a nursery
      all.emplace_back(p, program.id());
      for (pid_t const w : below) all.emplace_back(w, p);
    }
    CHECK(all.size() == 6);
    for (auto const& p : all) CHECK(!p.ended());
    program.kill();
    for (auto const& p : all) CHECK(p.ends());
    ::close(keep[0]), ::close(keep[1]);
  }
}

TEST_CASE("processes: the destructor of the last copy ends and reaps all") {
  guard const g;
  auto const before = children_of(::getpid());
  for (int k = 0; k < 10; ++k) {
    std::optional<ds::in_processes<telling>> first(std::in_place, telling{20}, ds::processes{.count = 1 + k % 4});
    std::vector<handle> workers;
    family const all(before);
    for (pid_t const p : all.workers()) workers.emplace_back(p, all.nursery);
    CHECK(workers.size() == std::size_t(1 + k % 4));
    auto second = std::optional(*first);
    CHECK(told(*first, 3) == told(telling{20}, 3));
    first.reset();
    CHECK(told(*second, 4) == told(telling{20}, 4));
    second.reset();
    CHECK(children_of(::getpid()) == before);
    for (auto const& w : workers) CHECK(w.ended());
  }
}

TEST_CASE("processes: stop ends workers that are busy, and the readers") {
  guard const g;
  auto const before = children_of(::getpid());
  shared_number reading;
  std::string const want = "in_processes: the processes have been stopped";
  ds::in_processes const source{hanging{&*reading}, ds::processes{.count = 2}};
  family const all(before);
  std::vector<handle> workers;
  for (pid_t const p : all.workers()) workers.emplace_back(p, all.nursery);
  {
    ds::loader loader{source, ds::batches{.size = 4}, ds::sequential{}, ds::workers{.threads = 3}};
    std::atomic<int> said{0};
    std::thread reader([&] { said += message<std::runtime_error>([&] { number(source, 1); }) == want; });
    wait_until([&] { return *reading == 2; });
    source.stop();
    CHECK(children_of(::getpid()) == before);
    for (auto const& w : workers) CHECK(w.ended());
    reader.join();
    CHECK(said == 1);
    CHECK(message<ds::loader_error>([&] { loader.next(); }).ends_with(want));
  }
  source.stop();
  CHECK(message<std::runtime_error>([&] { number(source, 1); }) == want);
}

TEST_CASE("processes: several sources at once, made by threads that end") {
  guard const g;
  auto const before = children_of(::getpid());
  {
    std::vector<std::optional<ds::in_processes<telling>>> all(4);
    std::vector<std::thread> threads;
    for (auto& one : all) threads.emplace_back([&one] { one.emplace(telling{30}, ds::processes{.count = 2}); });
    for (auto& t : threads) t.join();
    threads.clear();
    CHECK(children_of(::getpid()).size() == before.size() + 4);
    std::atomic<int> right{0};
    auto const read_all = [&] {
      threads.clear();
      for (auto const& one : all)
        if (one)
          threads.emplace_back([&] {
            for (std::int64_t i = 0; i < 30; ++i) right += told(*one, i) == told(telling{30}, i);
          });
      for (auto& t : threads) t.join();
    };
    read_all();
    CHECK(right == 4 * 30);
    all[1].reset();
    all[0].reset();
    read_all();
    CHECK(right == 6 * 30);
    ds::concat const both{*all[2], *all[3]};
    for (std::int64_t i = 0; i < 60; ++i) CHECK(std::stoi(told(both, i)) == i % 30);
  }
  CHECK(children_of(::getpid()) == before);
}

TEST_CASE("processes: another process cannot read from them or end them") {
  guard const g;
  ds::in_processes const source{telling{30}, ds::processes{.count = 2}};
  {
    other_process child([&](int out) {
      {
        auto const copy = source;
        tell(out, message<std::runtime_error>([&] { told(copy, 1); }));
      }
      // The last copy, as far as this process knows.
      const_cast<ds::in_processes<telling>&>(source) = ds::in_processes<telling>(telling{2}, ds::processes{});
      if (told(source, 1) != told(telling{2}, 1)) tell(out, "wrong");
    });
    CHECK(child.text() == "in_processes: process " + std::to_string(child.id()) +
                              " cannot read: the processes belong to process " + std::to_string(::getpid()));
    CHECK(child.wait() == 0);
  }
  // Processes of processes are such ones.
  ds::in_processes<ds::in_processes<telling>> const nested(source, ds::processes{});
  CHECK(message<std::runtime_error>([&] { told(nested, 1); })
            .ends_with(" cannot read: the processes belong to process " + std::to_string(::getpid())));
  for (std::int64_t i = 0; i < 30; ++i) CHECK(told(source, i) == told(telling{30}, i));
  CHECK(source.report().died == 0);
}

TEST_CASE("processes: signals for all processes of a program end none, and a worker blocks what the program blocks") {
  guard const g;
  sigset_t mine, old;
  ::sigemptyset(&mine);
  ::sigaddset(&mine, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &mine, &old);
  auto const before = children_of(::getpid());
  auto const previous = ::signal(SIGCHLD, SIG_IGN);  // as a program may that waits for nobody
  {
    ds::in_processes const source{acting{[](std::int64_t i) {
                                    sigset_t now;
                                    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
                                    if (!::sigismember(&now, SIGUSR1)) throw std::runtime_error("not blocked");
                                    for (int const s : {SIGUSR2, SIGINT, SIGTERM, SIGCHLD, SIGSEGV})
                                      if (::sigismember(&now, s)) throw std::runtime_error("blocked");
                                    if (i == 9) ::_exit(7);
                                  }},
                                  ds::processes{.count = 2}};
    sigset_t now;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
    CHECK(!::sigismember(&now, SIGUSR2));
    family const all(before);
    for (int const s : {SIGINT, SIGTERM, SIGHUP}) {
      CHECK(handle(all.nursery, ::getpid()).send(s));
      for (pid_t const p : all.workers()) CHECK(handle(p, all.nursery).send(s));
    }
    for (int k = 0; k < 50; ++k) CHECK(number(source, 1) == 3);
    CHECK(source.report().died == 0);
    CHECK(message<ds::worker_died>([&] { number(source, 9); }).find("ended with status 7") != std::string::npos);
    CHECK(number(source, 1) == 3);
  }
  ::signal(SIGCHLD, previous);
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  CHECK(children_of(::getpid()) == before);
}

TEST_CASE("processes: a source that writes anywhere harms its own process only") {
  guard const g;
  ds::in_processes const source{stray{}, ds::processes{.count = 3}};
  for (std::int64_t const i : {1, 2, 1, 2}) {
    CHECK(message<ds::worker_died>([&] { number(source, i); }).find("Segmentation fault") != std::string::npos);
    for (std::int64_t k = 3; k < 9; ++k) CHECK(number(source, k) == 3 * k);
  }
}

TEST_CASE("processes: unflushed output of the program is written once") {
  guard const g;
  other_process program([](int out) {
    ::dup2(out, 1);
    std::printf("before ");
    ds::in_processes const source{acting{[](std::int64_t i) {
                                    std::printf("record %d ", int(i));
                                    std::fflush(stdout);
                                  }},
                                  ds::processes{.count = 2}};
    for (std::int64_t i = 0; i < 3; ++i) number(source, i);
    std::printf("after");
    std::fflush(stdout);
  });
  CHECK(program.text() == "before record 0 record 1 record 2 after");
}

TEST_CASE("processes: a failed start is refused with a message, and nothing is left") {
  guard const g;
  auto const before = children_of(::getpid());
  auto const refusal = [](ds::processes const& of) { return message([&] { ds::in_processes{telling{3}, of}; }); };
  CHECK(refusal({.count = 0}) == "processes: count must be in [1, 256], is 0");
  CHECK(refusal({.count = 257}) == "processes: count must be in [1, 256], is 257");
  CHECK(refusal({.deadline = std::chrono::nanoseconds(-1)}) == "processes: deadline must be at least 0 ns, is -1");
  CHECK(message([&] { ds::in_processes{huge{(std::int64_t{1} << 46) + 1}}; }) ==
        "in_processes: the size of a record must be at most 2^46 bytes, is 70368744177665");
  std::string const said =
      message<std::runtime_error>([&] { ds::in_processes{huge{std::int64_t{1} << 46}, {.count = 4}}; });
  CAPTURE(said);
  CHECK(said.starts_with("in_processes: there is no shared memory of 2814749767"));
  CHECK(said.ends_with(" bytes for 4 processes: Cannot allocate memory"));
  CHECK(children_of(::getpid()) == before);

  for (int const most : {1, 3}) {  // the nursery, or its second worker, cannot be forked
    other_process program([&](int out) {
      rlimit const at_most{rlim_t(most), rlim_t(most)};
      if (::setrlimit(RLIMIT_NPROC, &at_most) != 0 || ::setuid(61234) != 0 || ::getuid() == 0)
        return tell(out, "skipped");
      tell(out, message<std::runtime_error>([&] { ds::in_processes{telling{3}, {.count = 4}}; }));
      if (::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD) tell(out, "a process is left");
    });
    std::string const told_ = program.text();
    if (told_ == "skipped") MESSAGE("the number of processes of a user cannot be limited here");
    else CHECK(told_ == "in_processes: 4 processes cannot be started: Resource temporarily unavailable");
  }
  ds::in_processes const most{telling{300}, ds::processes{.count = 64}};
  CHECK(told(most, 299) == told(telling{300}, 299));
}
