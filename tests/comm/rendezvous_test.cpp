// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Rank 0's bytes reach all ranks, or every rank reports which did not come. Bytes that are left over, truncated,
// altered or of another job are never accepted. No two ranks get the same device.
#include <descent/comm/by_file.hpp>
#include <descent/comm/by_tcp.hpp>
#include <descent/comm/devices.hpp>
#include <descent/comm/rendezvous.hpp>
#include <descent/comm/threads.hpp>

#include <doctest/doctest.h>
#include "support/clock.hpp"
#include "support/message.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <initializer_list>
#include <iterator>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ds = descent;
namespace comm = descent::comm;
namespace detail = descent::detail;
using namespace std::chrono_literals;
using detail::note;

using test::message;

namespace {

using unique_id = std::array<unsigned char, 128>;

unique_id id_of(int seed) {
  unique_id id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = (unsigned char)(int(i) * 7 + seed);
  return id;
}

/// Runs f(rank) on all ranks at once, each a thread with its own clock.
class calls {
 public:
  calls(std::vector<int> const& ranks, std::function<void(int)> const& f)
      : f_(f), errors_(ranks.size()), ahead_(ranks.size()), has_ended_(ranks.size()) {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      team_.emplace_back([this, i, rank = ranks[i]] {
        test::clock::own = &ahead_[i];
        try {
          f_(rank);
        } catch (ds::comm_error const& e) {
          errors_[i] = e.what();
        } catch (std::exception const& e) {
          errors_[i] = std::string("not a comm_error: ") + e.what();
        }
        has_ended_[i] = true;
      });
  }
  void advance(std::size_t i, std::chrono::nanoseconds by) { ahead_[i] = by.count(); }
  std::size_t ended() const { return std::size_t(std::count(has_ended_.begin(), has_ended_.end(), true)); }
  /// Waits until n of them have ended.
  bool await(std::size_t n) const {
    return test::comes_true([&] { return ended() >= n; });
  }
  /// Waits for all; returns what they have thrown.
  std::vector<std::string> errors() {
    for (auto& t : team_) t.join();
    team_.clear();
    return errors_;
  }
  ~calls() {
    for (auto& t : team_) t.join();
  }

 private:
  std::function<void(int)> f_;
  std::vector<std::string> errors_;
  std::vector<std::atomic<std::chrono::nanoseconds::rep>> ahead_;
  std::vector<std::atomic<bool>> has_ended_;
  std::vector<std::thread> team_;
};
/// What f(rank) throws on each rank.
std::vector<std::string> on_ranks(std::vector<int> const& ranks, std::function<void(int)> const& f) {
  return calls(ranks, f).errors();
}
std::vector<int> all_of(int size) {
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r) ranks.push_back(r);
  return ranks;
}
void check_names(std::string const& message, std::initializer_list<std::string> parts) {
  INFO(message);
  for (auto const& part : parts) {
    INFO(part);
    CHECK(message.find(part) != message.npos);
  }
}
// ---- files ----------------------------------------------------------------------------------------------------------

struct folder {
  std::string path;
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rendezvous_XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~folder() { std::filesystem::remove_all(path); }
  std::string file(std::string const& job, int rank) const {
    return path + "/descent-" + job + "." + std::to_string(rank);
  }
  bool empty() const { return std::filesystem::is_empty(path); }
};

std::vector<std::byte> read(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> const all(std::istreambuf_iterator<char>(file), {});
  auto const bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}
/// Waits until a rank has written a file other than this one.
bool has_come(folder const& f, std::string const& job, int rank, std::vector<std::byte> const& left_over = {}) {
  return test::comes_true([&] {
    auto const now = read(f.file(job, rank));
    return now.size() >= sizeof(note) && now != left_over;
  });
}
/// Writes atomically, since a reader may be looking.
void put(std::string const& path, std::span<std::byte const> bytes) {
  {
    std::ofstream file(path + "~", std::ios::binary);
    file.write(reinterpret_cast<char const*>(bytes.data()), std::streamsize(bytes.size()));
  }
  std::filesystem::rename(path + "~", path);
}
/// A file of rank 0 that answers the ranks with these numbers.
std::vector<std::byte> answer(std::string const& job, std::vector<std::uint64_t> const& numbers, unique_id const& id) {
  note head = detail::make_note(note::value, 0, int(numbers.size()), sizeof id, job);
  head.from = numbers[0];
  auto const table = std::as_bytes(std::span(numbers));
  auto const value = std::as_bytes(std::span(id));
  std::vector<std::byte> body(table.begin(), table.end());
  body.insert(body.end(), value.begin(), value.end());
  return detail::sealed(head, body);
}
note head_of(std::vector<std::byte> const& bytes) {
  note n;
  REQUIRE(bytes.size() >= sizeof n);
  std::memcpy(&n, bytes.data(), sizeof n);
  return n;
}

void meet(comm::by_file const& by, int size, std::function<void(int)> const& before = [](int) {}) {
  auto const errors = on_ranks(all_of(size), [&](int r) {
    before(r);
    unique_id id = r == 0 ? id_of(size) : unique_id{};
    by(r, size, id);
    CHECK(id == id_of(size));
  });
  for (auto const& e : errors) CHECK(e == "");
}

// ---- sockets --------------------------------------------------------------------------------------------------------

/// A port on which nothing listens.
int free_port() { return detail::port_of(detail::listen_at("test", "127.0.0.1", 0, 1)); }

detail::descriptor connected(int port) {
  detail::time_limit limit(5s);
  std::string why;
  auto s = detail::connect_to("127.0.0.1", port, limit, why);
  REQUIRE(s);
  return s;
}
note hello(int rank, int size, std::string const& token) {
  return detail::make_note(note::here, rank, size, sizeof(unique_id), token);
}
void send(detail::descriptor const& s, std::span<std::byte const> bytes) {
  CHECK(detail::send_all(s, bytes, detail::time_limit(5s)) == "");
}
/// The reply: the text of an answer, or "closed".
std::string answer_to(detail::descriptor const& s) {
  detail::time_limit const limit(5s);
  note head;
  if (!detail::receive_all(s, std::as_writable_bytes(std::span(&head, 1)), limit).empty()) return "closed";
  if (head.kind != note::refused) return "value";
  std::string text(head.bytes, ' ');
  CHECK(detail::receive_all(s, std::as_writable_bytes(std::span(text)), limit) == "");
  return text;
}
/// Rank 0 in its own thread, on a free port.
struct host {
  std::promise<int> published;
  std::string error;
  std::thread thread;
  host(int size, std::string const& token, std::chrono::nanoseconds deadline, unique_id const& id,
       std::string const& address = "127.0.0.1")
      : thread([=, this] {
          bool listens = false;
          comm::by_tcp const by{.address = address, .token = token, .deadline = deadline, .listening = [&](int p) {
                                  published.set_value(p);
                                  listens = true;
                                }};
          auto mine = id;
          try {
            by(0, size, mine);
          } catch (ds::comm_error const& e) {
            error = e.what();
            if (!listens) published.set_exception(std::current_exception());
          }
        }) {}
  /// Throws what rank 0 throws before it listens.
  int port() { return published.get_future().get(); }
  ~host() {
    if (thread.joinable()) thread.join();
  }
};
bool has_address(std::string const& name) {
  addrinfo* found = nullptr;
  bool const has = ::getaddrinfo(name.c_str(), nullptr, nullptr, &found) == 0;
  if (has) ::freeaddrinfo(found);
  return has;
}
/// Another process connects, sends this and disconnects; returns the answer.
std::string say(int port, std::vector<std::byte> const& bytes) {
  auto const s = connected(port);
  send(s, bytes);
  return answer_to(s);
}
/// Waits until rank 0 has heard all that was sent so far: it refuses a process that comes now and, after it has heard
/// all that came together with that one, another.
void await_hearing(int port, int size) {
  for (int i = 0; i < 2; ++i) check_names(say(port, detail::sealed(hello(1, size, "nobody's"))), {"another job"});
}
/// Rank 0 of another job, which does as it likes with the first process that connects.
std::string guest_of(std::function<void(detail::descriptor const&)> const& serve, std::chrono::nanoseconds deadline,
                     unique_id& id) {
  auto const listener = detail::listen_at("test", "127.0.0.1", 0, 1);
  std::thread server([&] {
    detail::descriptor s;
    std::string from;
    detail::time_limit const limit(5s);
    CHECK(detail::wait_for(listener, POLLIN, limit));
    CHECK(detail::accept_from(listener, s, from));
    note head;
    CHECK(detail::receive_all(s, std::as_writable_bytes(std::span(&head, 1)), limit) == "");
    serve(s);
  });
  std::string const error = message<ds::comm_error>(
      [&] { comm::by_tcp{.port = detail::port_of(listener), .token = "job", .deadline = deadline}(1, 2, id); });
  server.join();
  return error;
}
std::vector<std::byte> value_note(std::string const& token, unique_id const& id) {
  note head = hello(0, 2, token);
  head.kind = note::value;
  return detail::sealed(head, std::as_bytes(std::span(id)));
}

}  // namespace

TEST_CASE("by_file: every rank has rank 0's bytes, in whatever order they come, and no file stays") {
  static_assert(ds::rendezvous<comm::by_file const> && ds::rendezvous<comm::by_tcp const>);
  test::clock const still;
  folder const f;
  for (int size : {1, 2, 5}) meet({f.path, "a", 5s}, size);
  meet({f.path, "a", 5s}, 3, [&](int r) {  // readers before the writer
    if (r == 0) CHECK((has_come(f, "a", 1) && has_come(f, "a", 2)));
  });
  meet({f.path, "a", 5s}, 3, [&](int r) {
    if (r) CHECK(has_come(f, "a", r - 1));
  });
  CHECK(f.empty());
}

TEST_CASE("rendezvous: a deadline of any length is waited for") {
  folder const f;
  meet({f.path, "a", std::chrono::nanoseconds::max()}, 2);
  host h(2, "job", std::chrono::nanoseconds::max(), id_of(2));
  unique_id id{};
  comm::by_tcp{.port = h.port(), .token = "job", .deadline = std::chrono::nanoseconds::max()}(1, 2, id);
  h.thread.join();
  CHECK(h.error == "");
  CHECK(id == id_of(2));
  CHECK(detail::time_limit(std::chrono::nanoseconds::max()).milliseconds() == 100);
}

TEST_CASE("by_file: several exchanges in turn under one name, each with its own bytes") {
  test::clock const still;
  folder const f;
  auto const errors = on_ranks(all_of(3), [&](int r) {
    for (int n = 0; n < 15; ++n) {
      unique_id id = r == 0 ? id_of(n) : unique_id{};
      comm::by_file{f.path, "again", 5s}(r, 3, id);
      CHECK(id == id_of(n));
    }
  });
  for (auto const& e : errors) CHECK(e == "");
  CHECK(f.empty());
}

TEST_CASE("by_file: two jobs in one folder do not meet") {
  test::clock const still;
  folder const f;
  std::thread other([&] { meet({f.path, "one.2", 5s}, 2); });
  meet({f.path, "one", 5s}, 3);
  other.join();
  CHECK(f.empty());
}

TEST_CASE("by_file: ranks that are processes") {
  test::clock const still;
  folder const f;
  std::vector<pid_t> children;
  std::fflush(stdout);
  for (int r = 0; r < 4; ++r) {
    pid_t const pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      unique_id id = r == 0 ? id_of(9) : unique_id{};
      try {
        comm::by_file{f.path, "forked", 20s}(r, 4, id);
      } catch (...) {
        ::_exit(2);
      }
      ::_exit(id == id_of(9) ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
}

TEST_CASE("trap 40: a file that is left over is not taken: of another job, of an earlier start of this one") {
  test::clock const still;
  folder const f;
  auto const of_another = answer("before", {1, 2, 3}, id_of(66));
  put(f.file("now", 0), of_another);
  meet({f.path, "now", 5s}, 3, [&](int r) {
    if (r == 0) CHECK((has_come(f, "now", 1) && has_come(f, "now", 2)));
  });

  auto const of_earlier = answer("now", {1, 2, 3}, id_of(66));  // its readers had other numbers
  put(f.file("now", 0), of_earlier);
  std::vector<std::byte> receipts[3];
  for (int r : {1, 2}) {
    note old = detail::make_note(note::here, r, 3, sizeof(unique_id), "now");
    old.from = std::uint64_t(r) + 1;
    old.to = 1;  // it has read what rank 0 wrote then
    put(f.file("now", r), receipts[r] = detail::sealed(old));
  }
  SUBCASE("rank 0 comes late") {
    meet({f.path, "now", 5s}, 3, [&](int r) {
      if (r == 0) CHECK((has_come(f, "now", 1, receipts[1]) && has_come(f, "now", 2, receipts[2])));
    });
  }
  SUBCASE("rank 0 is first") {
    meet({f.path, "now", 5s}, 3, [&](int r) {
      if (r == 1) CHECK(has_come(f, "now", 0, of_earlier));
      if (r == 2) CHECK(has_come(f, "now", 1, receipts[1]));
    });
  }
  CHECK(f.empty());
}

TEST_CASE("trap 40: nobody reads past a file that is left over, but says at the deadline what it is") {
  test::clock const runs(15ms);
  folder const f;
  auto const waiting = [&](std::vector<std::byte> const& left_over) {
    put(f.file("now", 0), left_over);
    unique_id id{};
    std::string const error = message<ds::comm_error>([&] { comm::by_file{f.path, "now", 30ms}(1, 3, id); });
    CHECK(id == unique_id{});
    check_names(error, {"rank 1 waited 0.03 s", "for rank 0"});
    return error;
  };
  check_names(waiting(answer("before", {1, 2, 3}, id_of(1))), {"another job", f.file("now", 0)});
  check_names(waiting(answer("now", {1, 2, 3, 4}, id_of(1))), {"it is for 4 ranks instead of 3"});
  CHECK(waiting(answer("now", {1, 2, 3}, id_of(1))).find("ignored") == std::string::npos);
  check_names(waiting({}), {"truncated"});
}

TEST_CASE("trap 40: a file that is truncated or altered anywhere is passed over") {
  test::clock const runs(1ms);
  folder const f;
  note here = detail::make_note(note::here, 1, 2, sizeof(unique_id), "job");
  here.from = 5;
  auto const sound = detail::sealed(here);
  auto const rank0 = [&](std::vector<std::byte> const& file) {
    put(f.file("job", 1), file);
    unique_id id{};
    return message<ds::comm_error>([&] { comm::by_file{f.path, "job", 2ms}(0, 2, id); });
  };
  check_names(rank0(sound), {"for rank 1 to read the value"});
  for (std::size_t i = 0; i < sound.size(); i += 5) {
    auto altered = sound;
    altered[i] ^= std::byte{16};
    check_names(rank0(altered), {"for rank 1", "ignored"});
  }
  for (std::size_t n = 0; n < sound.size(); n += 30)
    check_names(rank0({sound.begin(), sound.begin() + std::ptrdiff_t(n)}), {"ignored", "truncated"});
  auto longer = sound;
  longer.push_back({});
  check_names(rank0(longer), {"ignored"});
}

TEST_CASE("trap 40: rank 0's file is read when it is whole and sound, not before") {
  test::clock const still;
  folder const f;
  unique_id id{};
  std::atomic<bool> done = false;
  std::string error;
  std::thread reader([&] {
    error = message<ds::comm_error>([&] { comm::by_file{f.path, "job", 5s}(1, 2, id); });
    done = true;
  });
  while (!std::filesystem::exists(f.file("job", 1))) std::this_thread::sleep_for(1ms);
  std::uint64_t const number = head_of(read(f.file("job", 1))).from;
  auto const sound = answer("job", {77, number}, id_of(3));
  auto altered = sound;
  altered[altered.size() - 60] ^= std::byte{1};  // in the value
  put(f.file("job", 0), std::span(sound).first(sound.size() - 1));
  std::this_thread::sleep_for(70ms);
  put(f.file("job", 0), altered);
  std::this_thread::sleep_for(70ms);
  put(f.file("job", 0), answer("job", {77, 0}, id_of(4)));  // not all ranks have come
  std::this_thread::sleep_for(70ms);
  CHECK(head_of(read(f.file("job", 1))).to == 0);
  put(f.file("job", 0), sound);
  while (head_of(read(f.file("job", 1))).to != 77 && !done) std::this_thread::sleep_for(1ms);
  CHECK(!done);  // it waits until all have read
  SUBCASE("rank 0 confirms it") {
    std::filesystem::remove(f.file("job", 1));
    reader.join();
    CHECK(error == "");
    CHECK(id == id_of(3));
  }
  SUBCASE("rank 0 never does") {
    test::clock::advance(5s);
    reader.join();
    check_names(error, {"rank 1 waited 5 s", "for rank 0 to confirm that all have read the value"});
    CHECK(!std::filesystem::exists(f.file("job", 1)));
  }
}

TEST_CASE("by_file: a rank that does not come is named on every rank, by the deadline") {
  test::clock const still;
  folder const f;
  calls some({1, 3, 0}, [&](int r) {
    unique_id id{};
    comm::by_file{f.path, "job", 300ms}(r, 4, id);
  });
  CHECK(test::comes_true([&] {  // ranks 1 and 3 have come, but not rank 2
    auto const file = read(f.file("job", 0));
    std::uint64_t from[4] = {};
    if (file.size() >= sizeof(note) + sizeof from) std::memcpy(from, file.data() + sizeof(note), sizeof from);
    return from[1] && from[3];
  }));
  some.advance(0, 299ms), some.advance(1, 299ms), some.advance(2, 299ms);
  std::this_thread::sleep_for(60ms);  // all have looked
  CHECK(some.ended() == 0);
  some.advance(0, 300ms), some.advance(1, 300ms);
  CHECK(some.await(2));  // while rank 0's file is there
  some.advance(2, 300ms);
  for (auto const& e : some.errors()) check_names(e, {"by_file", "waited 0.3 s", "for rank 2"});
  CHECK(f.empty());

  calls without_0({1, 2}, [&](int r) { unique_id id{}; comm::by_file{f.path, "job", 50ms}(r, 3, id); });
  CHECK((has_come(f, "job", 1) && has_come(f, "job", 2)));
  test::clock::advance(50ms);
  check_names(without_0.errors()[0], {"rank 1 waited 0.05 s", "for rank 0"});
  CHECK(f.empty());
}

TEST_CASE("by_file: two processes with one rank") {
  test::clock const still;
  folder const f;
  for (int twin : {0, 1}) {
    calls both({twin, twin}, [&](int r) {
      unique_id id{};
      comm::by_file{f.path, "job", 400ms}(r, 3, id);
    });
    CHECK(both.await(1));
    test::clock::advance(400ms);  // the deadline of the other one
    auto const errors = both.errors();
    check_names(errors[0] + errors[1], {"two processes claim rank " + std::to_string(twin)});
  }
}

TEST_CASE("rendezvous: bad arguments are refused before anything is touched") {
  unique_id id{};
  folder const f;
  auto const file = [&](comm::by_file const& by, int rank, int size) {
    return message<std::invalid_argument>([&] { by(rank, size, id); });
  };
  auto const tcp = [&](comm::by_tcp const& by, int rank, int size) {
    return message<std::invalid_argument>([&] { by(rank, size, id); });
  };
  check_names(file({f.path, "a"}, 0, 0), {"by_file: size must be at least 1, is 0"});
  check_names(file({f.path, "a"}, 2, 2), {"by_file: rank must be in [0, 2), is 2"});
  check_names(file({f.path, "a"}, -1, 2), {"by_file: rank must be in [0, 2), is -1"});
  check_names(file({f.path, "a", 0s}, 0, 2), {"by_file: the deadline must be above 0, is 0 s"});
  check_names(tcp({.port = 4000, .token = "a", .deadline = -1s}, 1, 2),
              {"by_tcp: the deadline must be above 0, is -1 s"});
  check_names(file({f.path, ""}, 0, 2), {"by_file: job must be 1 to 200 characters", "is empty"});
  check_names(file({f.path, "a/b"}, 0, 2), {"by_file: job must be usable in a file name", "'a/b'"});
  check_names(file({f.path, std::string(201, 'a')}, 0, 2), {"1 to 200 characters"});
  check_names(tcp({.port = 4000}, 1, 2), {"by_tcp: token must be 1 to 255 characters", "is empty"});
  check_names(tcp({.port = 4000, .token = std::string(256, 'a')}, 1, 2), {"by_tcp: token must be 1 to 255"});
  check_names(tcp({.token = "a"}, 1, 2), {"by_tcp: port must be in [1, 65535], is 0"});
  check_names(tcp({.token = "a"}, 0, 2), {"or 0 with `listening`", "is 0"});
  check_names(tcp({.address = "", .port = 4000, .token = "a"}, 1, 2),
              {"by_tcp: address must be an address of rank 0", "is empty"});
  check_names(tcp({.port = 65536, .token = "a"}, 1, 2), {"is 65536"});
  CHECK(f.empty());
  check_names(message<ds::comm_error>([&] { comm::by_file{f.path + "/none", "a", 1s}(1, 2, id); }),
              {"by_file: cannot write " + f.path + "/none/descent-a.1", "No such file"});
  CHECK(file({"", ""}, 0, 1) == "");  // a single rank has nothing to do
  CHECK(tcp({}, 0, 1) == "");
}

TEST_CASE("by_tcp: every rank has rank 0's bytes, over IPv4 and IPv6, from names, in any order of arrival") {
  test::clock const still;
  for (std::string const address : {"127.0.0.1", "::1", "localhost"}) {
    if (address == "::1" && message<ds::comm_error>([] { detail::listen_at("test", "::1", 0, 1); }) != "") {
      MESSAGE("no IPv6 here");
      continue;
    }
    if (address == "localhost" && !has_address(address)) {
      MESSAGE("localhost has no address here");
      continue;
    }
    host h(5, "job", 5s, id_of(5), address);
    int const port = h.port();
    auto const errors = on_ranks({1, 2, 3, 4}, [&](int r) {
      unique_id id{};
      comm::by_tcp{.address = address, .port = port, .token = "job", .deadline = 5s}(r, 5, id);
      CHECK(id == id_of(5));
    });
    for (auto const& e : errors) CHECK(e == "");
    h.thread.join();
    CHECK(h.error == "");
  }
  int const port = free_port();
  for (int first : {0, 1}) {
    std::atomic<bool> listens = false;
    auto const errors = on_ranks({0, 1, 2}, [&](int r) {
      if (r == 0 && first == 1) std::this_thread::sleep_for(50ms);  // the others find no listener
      if (r != 0 && first == 0) CHECK(test::comes_true([&] { return bool(listens); }));
      unique_id id = r ? unique_id{} : id_of(8);
      auto const tells = [&](int) { listens = true; };
      comm::by_tcp{.port = port, .token = "job", .deadline = 5s, .listening = tells}(r, 3, id);
      CHECK(id == id_of(8));
    });
    for (auto const& e : errors) CHECK(e == "");
  }
}

TEST_CASE("trap 40: bytes that come one at a time are all read, and nobody else waits for them") {
  test::clock const still;
  host h(3, "job", 10s, id_of(1));
  int const port = h.port();
  auto const silent = connected(port);  // it sends nothing
  auto const slow = connected(port);
  std::thread quick([&] {
    unique_id id{};
    comm::by_tcp{.port = port, .token = "job", .deadline = 10s}(2, 3, id);
    CHECK(id == id_of(1));
  });
  for (std::byte b : detail::sealed(hello(1, 3, "job"))) {
    send(slow, std::span(&b, 1));
    std::this_thread::sleep_for(500us);
  }
  CHECK(answer_to(slow) == "value");
  quick.join();
  h.thread.join();
  CHECK(h.error == "");

  unique_id id{};
  CHECK(guest_of(
            [](auto const& s) {
              for (std::byte b : value_note("job", id_of(2))) {
                send(s, std::span(&b, 1));
                std::this_thread::sleep_for(500us);
              }
            },
            5s, id) == "");
  CHECK(id == id_of(2));
}

TEST_CASE("by_tcp and by_file continue after signals") {
  test::clock const still;
  struct sigaction act{}, before{};
  act.sa_handler = [](int) {};  // without SA_RESTART: calls end with EINTR
  ::sigaction(SIGUSR1, &act, &before);
  folder const f;
  int const port = free_port();
  std::atomic<int> running = 3;
  std::atomic<int> signals = 0;
  auto const errors = on_ranks({0, 1, 2}, [&](int r) {
    pthread_t const self = ::pthread_self();
    std::atomic<bool> done = false;
    std::thread storm([&] {
      while (!done) {
        ::pthread_kill(self, SIGUSR1);
        ++signals;
        std::this_thread::sleep_for(200us);
      }
    });
    std::string error;
    try {
      if (r == 0) CHECK(test::comes_true([&] { return signals > 200; }));  // the others wait meanwhile
      unique_id id = r ? unique_id{} : id_of(8);
      comm::by_tcp{.port = port, .token = "job", .deadline = 5s}(r, 3, id);
      CHECK(id == id_of(8));
      unique_id other = r ? unique_id{} : id_of(9);
      comm::by_file{f.path, "job", 5s}(r, 3, other);
      CHECK(other == id_of(9));
    } catch (ds::comm_error const& e) {
      error = e.what();
    }
    --running;
    done = true;
    storm.join();
    CHECK(error == "");
  });
  ::sigaction(SIGUSR1, &before, nullptr);
  CHECK(running == 0);
}

TEST_CASE("trap 40: wrong token, size or rank, or a rank twice: refused by name, and the wait continues") {
  test::clock const still;
  host h(3, "job", 10s, id_of(4));
  int const port = h.port();
  auto const tell = [&](std::vector<std::byte> const& bytes) { return say(port, bytes); };
  auto const first = connected(port);
  send(first, detail::sealed(hello(1, 3, "job")));
  await_hearing(port, 3);

  check_names(tell(detail::sealed(hello(2, 3, "other"))), {"another job"});
  check_names(tell(detail::sealed(hello(2, 3, "jo"))), {"another job"});
  check_names(tell(detail::sealed(hello(2, 3, "job2"))), {"another job"});
  check_names(tell(detail::sealed(hello(2, 4, "job"))), {"it is for 4 ranks instead of 3"});
  check_names(tell(detail::sealed(hello(1, 3, "job"))), {"rank 1 has already connected"});
  check_names(tell(detail::sealed(hello(3, 3, "job"))), {"rank must be in [0, 3), is 3"});
  check_names(tell(detail::sealed(hello(-1, 3, "job"))), {"rank must be in [0, 3), is -1"});
  check_names(tell(detail::sealed(hello(0, 3, "job"))), {"rank 0 is the listener itself"});
  note other = hello(2, 3, "job");
  other.version = 9;
  check_names(tell(detail::sealed(other)), {"version 9 instead of 1"});
  other = hello(2, 3, "job");
  other.value_bytes = 64;
  check_names(tell(detail::sealed(other)), {"64 bytes instead of 128"});
  auto altered = detail::sealed(hello(2, 3, "job"));
  altered[offsetof(note, from)] ^= std::byte{1};
  check_names(tell(altered), {"checksum is wrong"});
  CHECK(tell(std::vector<std::byte>(sizeof(note), std::byte{'G'})) == "closed");  // not a message of this library

  unique_id id{};
  check_names(message<ds::comm_error>([&] { comm::by_tcp{.port = port, .token = "job", .deadline = 5s}(2, 5, id); }),
              {"by_tcp: rank 2: rank 0 rejected this rank: it is for 5 ranks instead of 3"});
  CHECK(id == unique_id{});
  comm::by_tcp{.port = port, .token = "job", .deadline = 5s}(2, 3, id);
  CHECK(id == id_of(4));
  CHECK(answer_to(first) == "value");
  h.thread.join();
  CHECK(h.error == "");
}

TEST_CASE("by_tcp: a rank that does not come is named on every rank, by the deadline, and who was turned away") {
  test::clock still;
  host h(5, "job", 400ms, id_of(4));
  int const port = h.port();
  auto const one = connected(port), three = connected(port);
  send(one, detail::sealed(hello(1, 5, "job")));
  send(three, detail::sealed(hello(3, 5, "job")));
  unique_id id{};
  check_names(
      message<ds::comm_error>([&] { comm::by_tcp{.port = port, .token = "other", .deadline = 400ms}(7, 8, id); }),
      {"by_tcp: rank 7: ", "another job"});
  await_hearing(port, 5);
  test::clock::advance(399ms);
  await_hearing(port, 5);
  test::clock::advance(1ms);
  h.thread.join();
  for (auto const& e : {answer_to(one), answer_to(three), h.error})
    check_names(e, {"rank 0 waited 0.4 s", "127.0.0.1 port " + std::to_string(port), "for ranks 2, 4",
                    "rejected: 127.0.0.1, rank 7: it belongs to another job"});
  CHECK(h.error.starts_with("by_tcp: "));

  test::clock const runs(10ms);
  check_names(
      message<ds::comm_error>([&] { comm::by_tcp{.port = free_port(), .token = "job", .deadline = 200ms}(1, 2, id); }),
      {"rank 1: waited 0.2 s for rank 0 at 127.0.0.1", "refused"});
}

TEST_CASE("by_tcp: a rank that leaves is missing again, and may come back") {
  test::clock const still;
  for (bool back : {true, false}) {
    host h(3, "job", 600ms, id_of(4));
    int const port = h.port();
    {
      auto const leaves = connected(port);
      send(leaves, detail::sealed(hello(1, 3, "job")));
      await_hearing(port, 3);
    }
    await_hearing(port, 3);
    auto const two = connected(port);
    send(two, detail::sealed(hello(2, 3, "job")));
    await_hearing(port, 3);
    unique_id id{};
    if (back) comm::by_tcp{.port = port, .token = "job", .deadline = 5s}(1, 3, id);
    else test::clock::advance(600ms);
    h.thread.join();
    CHECK((id == id_of(4)) == back);
    CHECK((answer_to(two) == "value") == back);
    if (back) CHECK(h.error == "");
    else check_names(h.error, {"for rank 1", "rank 1 connected and left"});
  }
}

TEST_CASE("by_tcp: a port is one job's") {
  auto const taken = detail::listen_at("test", "127.0.0.1", 0, 1);
  unique_id id{};
  std::string const port = std::to_string(detail::port_of(taken));
  check_names(message<ds::comm_error>(
                  [&] { comm::by_tcp{.port = detail::port_of(taken), .token = "job", .deadline = 1s}(0, 2, id); }),
              {"by_tcp: rank 0 cannot listen at 127.0.0.1 port " + port, "in use"});
}

TEST_CASE("trap 40: an answer that is cut off, altered, of another job or none ends the wait with an error") {
  test::clock still;
  unique_id id{};
  auto const value = value_note("job", id_of(2));
  auto const gives = [&](std::vector<std::byte> const& bytes) {
    return guest_of([&](auto const& s) { send(s, bytes); }, 3s, id);
  };
  check_names(gives({value.begin(), value.end() - 1}), {"the connection ended, 1 bytes are missing"});
  check_names(gives({}), {"the answer of rank 0 at 127.0.0.1", "the connection ended"});
  auto altered = value;
  altered.back() ^= std::byte{1};
  check_names(gives(altered), {"checksum is wrong"});
  check_names(gives(value_note("other", id_of(2))), {"another job"});
  check_names(gives(std::vector<std::byte>(1000, std::byte{'H'})), {"not from descent"});
  note head = hello(0, 2, "job");
  head.kind = note::value;
  check_names(gives(detail::sealed(head, std::vector<std::byte>(100))), {"100 bytes instead of 128"});
  CHECK(id == unique_id{});
  check_names(guest_of(
                  [](auto const& s) {  // has heard the rank and says nothing until that gives up
                    test::clock::advance(1100ms);
                    detail::wait_for(s, POLLIN, detail::time_limit(3s));
                  },
                  100ms, id),
              {"nothing was received in 1.1 s"});
}

TEST_CASE("rendezvous: tokens are the same in all characters or not at all") {
  std::string const token(255, 'a');
  note const own = hello(1, 3, token);
  CHECK(detail::same_token(own, hello(2, 5, token)));
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string other = token;
    other[i] = 'b';
    CHECK(!detail::same_token(own, hello(1, 3, other)));
    CHECK(!detail::same_token(own, hello(1, 3, token.substr(0, i))));
  }
}

TEST_CASE("by_ranks: over a communicator that is there already") {
  comm::threads world{3};
  auto const errors = on_ranks(all_of(3), [&](int r) {
    auto c = world.rank(r);
    comm::by_ranks by{c};
    static_assert(ds::rendezvous<decltype(by)>);
    check_names(message<std::invalid_argument>([&] { unique_id id{}; by(r, 4, id); }),
                {"by_ranks: rank and size must be the communicator's, " + std::to_string(r) + " of 3", "of 4"});
    unique_id id = r ? unique_id{} : id_of(6);
    by(r, 3, id);
    CHECK(id == id_of(6));
  });
  for (auto const& e : errors) CHECK(e == "");
}

TEST_CASE("trap 43: two ranks with one device are named, and what to do, on every rank") {
  auto const place = [](char const* host, char const* system, char const* device) {
    return comm::make_device_place(host, system, device);
  };
  std::vector<comm::device_place> places{place("n1", "s1", "GPU-a"), place("n1", "s1", "GPU-b"),
                                         place("n2", "s2", "GPU-c"), place("n2", "s2", "GPU-d")};
  auto const refused = [](std::vector<comm::device_place> const& of_rank) {
    return message<std::invalid_argument>([&] { comm::require_distinct_devices(of_rank); });
  };
  CHECK(refused(places) == "");
  CHECK(refused({}) == "");
  CHECK(refused({places[0]}) == "");

  CHECK(refused({place("n1", "s1", "GPU-a"), place("n2", "s2", "GPU-a")}) == "");
  auto other = places;
  other[2] = place("n2", "s2", "GPU-a");  // the same name on another system
  CHECK(refused(other) == "");
  other[3] = place("n2", "s2", "GPU-a");
  check_names(refused(other),
              {"ranks 2 and 3 use the same device, GPU-a on n2", "cudaSetDevice(local_rank)", "CUDA_VISIBLE_DEVICES"});
  other.push_back(place("container", "s2", "GPU-a"));  // another name for the same system
  other.push_back(places[0]);
  check_names(refused(other), {"ranks 0 and 5 use the same device, GPU-a on n1"});
  other.pop_back();
  check_names(refused(other), {"ranks 2, 3 and 4 use the same device"});

  comm::threads world{4};
  std::vector<std::string> messages(4);
  on_ranks(all_of(4), [&](int r) {
    auto c = world.rank(r);
    comm::require_distinct_devices(c, "GPU-" + std::to_string(r));
    messages[std::size_t(r)] =
        message<std::invalid_argument>([&] { comm::require_distinct_devices(c, "GPU-" + std::to_string(r % 3)); });
  });
  for (auto const& m : messages) CHECK(m == messages[0]);
  check_names(messages[0], {"ranks 0 and 3 use the same device, GPU-0 on "});

  check_names(message<std::invalid_argument>([&] { place("n", "s", ""); }), {"device must have 1 to 63 characters"});
  check_names(message<std::invalid_argument>([&] { place("n", "s", std::string(64, 'x').c_str()); }), {"device must"});
  CHECK(comm::device_place_here("GPU-x").device_name() == "GPU-x");
  CHECK(comm::device_place_here("a").system_name() == comm::device_place_here("b").system_name());
}

TEST_CASE("trap 43: a local rank without a device is refused with both numbers") {
  CHECK_NOTHROW(comm::require_local_device(0, 1));
  CHECK_NOTHROW(comm::require_local_device(7, 8));
  auto const refused = [](int local_rank, int devices) {
    return message<std::invalid_argument>([&] { comm::require_local_device(local_rank, devices); });
  };
  check_names(refused(8, 8), {"local_rank must be in [0, 8)", "is 8", "CUDA_VISIBLE_DEVICES"});
  check_names(refused(0, 0), {"local_rank must be in [0, 0)", "is 0"});
  CHECK(comm::local_device(0, 1) == 0);
  CHECK(comm::local_device(3, 1) == 0);  // each process sees a device of its own
  CHECK(comm::local_device(3, 4) == 3);
  check_names(message<std::invalid_argument>([&] { comm::local_device(2, 2); }),
              {"local_rank must be in [0, 2)", "is 2"});
  check_names(message<std::invalid_argument>([&] { comm::local_device(-1, 1); }), {"is -1"});
  check_names(refused(-1, 8), {"is -1"});
}
