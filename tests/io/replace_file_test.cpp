// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Files that are replaced as a whole: whatever fails, and whenever the process is killed, the old file or the new one
// is there, and nothing is left beside it for long.
#include <descent/io/replace_file.hpp>
#include <descent/io/safetensors.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sched.h>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ds = descent;
using namespace std::string_literals;
using test::contents;
using test::temporary_folder;
using strings = std::vector<std::string>;

static_assert(std::is_nothrow_move_constructible_v<ds::replace_file> && std::is_move_assignable_v<ds::replace_file> &&
              !std::is_copy_constructible_v<ds::replace_file>);

namespace {

std::span<std::byte const> bytes(std::string const& text) { return std::as_bytes(std::span(text)); }
void replace(std::string const& path, std::string const& text) {
  ds::replace_file file(path);
  file.write(bytes(text));
  file.commit();
}
/// What the call throws as std::runtime_error, and nothing else.
template <class F> std::string refusal(F const& f) { return test::message<std::runtime_error>(f); }
std::string cannot(std::string const& path, int error, std::string const& what = "") {
  return path + ": cannot be written: " + what + std::strerror(error);
}

/// While it exists, looks at each system call that changes files.
class calls {
  using hook = int (*)(char const* name, std::size_t& bytes);

 public:
  explicit calls(hook look) {
    made = {};
    ds::detail::file_calls::before = look;
  }
  calls(calls const&) = delete;
  ~calls() { ds::detail::file_calls::before = nullptr; }

  static inline strings made;
  /// Notes the call. Whether it is the one with the number `at`, from 0.
  static bool note(char const* name) {
    made.push_back(name);
    return int(made.size()) - 1 == at;
  }
  static inline int at = -1, error = 0;
};
/// The calls that f makes.
template <class F> strings calls_of(F const& f) {
  calls const noted([](char const* name, std::size_t&) { return calls::note(name), 0; });
  f();
  return calls::made;
}
/// Makes the call with number `at` fail with `error`.
int fail_at(char const* name, std::size_t&) { return calls::note(name) ? calls::error : 0; }

/// What happens in a process of its own: f returns its exit status.
template <class F>::pid_t forked(F const& f) {
  ::pid_t const child = ::fork();
  REQUIRE(child >= 0);
  if (child > 0) return child;
  int status = 99;
  try {
    status = f();
  } catch (...) {}
  ::_exit(status);
}
int status_of(::pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// A file whose contents say which version it is: version v has v + 1 tensors, whose bytes depend on v.
void save_version(std::string const& path, int v) {
  std::vector<std::vector<std::uint32_t>> all;
  std::vector<ds::tensor_data> tensors;
  for (int k = 0; k <= v % 7; ++k) {
    all.emplace_back(std::size_t(1000 * k + v % 13));
    for (std::size_t i = 0; i < all.back().size(); ++i) all.back()[i] = std::uint32_t(v) * 1'000'003 + std::uint32_t(i);
  }
  for (auto const& x : all)
    tensors.push_back(
        {"t" + std::to_string(tensors.size()), ds::dtype::u32, {std::int64_t(x.size())}, std::as_bytes(std::span(x))});
  ds::save_safetensors(path, tensors, {{"version", std::to_string(v)}});
}
/// The version of a file that is right in each byte.
int version_of(std::string const& path) {
  ds::safetensors_file const file(path);
  file.check();
  int const v = std::stoi(file.metadata().at("version"));
  REQUIRE(file.hashed());
  REQUIRE(file.tensors().size() == std::size_t(v % 7 + 1));
  for (int k = 0; k <= v % 7; ++k) {
    auto const* const t = file.find("t" + std::to_string(k));
    REQUIRE(t != nullptr);
    REQUIRE(t->count() == 1000 * k + v % 13);
    std::vector<std::uint32_t> x(std::size_t(t->count()));
    if (!x.empty()) std::memcpy(x.data(), file.bytes(*t).data(), file.bytes(*t).size());
    bool same = true;
    for (std::size_t i = 0; i < x.size(); ++i) same = same && x[i] == std::uint32_t(v) * 1'000'003 + std::uint32_t(i);
    REQUIRE(same);
  }
  return v;
}

}  // namespace

TEST_CASE("a file appears under its path when it is committed, and not before") {
  temporary_folder const folder;
  std::string const path = folder / "run";
  {
    ds::replace_file file(path);
    CHECK(file.path() == path);
    CHECK(file.size() == 0);
    file.write(bytes("one "));
    file.write({});
    file.write(bytes("two"));
    CHECK(file.size() == 7);
    CHECK(!std::filesystem::exists(path));
    REQUIRE(folder.names().size() == 1);
    CHECK(folder.names()[0].starts_with("run." + std::to_string(::getpid()) + "-"));
    CHECK(folder.names()[0].ends_with(".tmp"));
    file.write_at(4, bytes("TWO"));
    file.write_at(7, {});
    CHECK(file.size() == 7);
    file.commit();
    CHECK(contents(path) == "one TWO");
  }
  CHECK(folder.names() == strings{"run"});
  { ds::replace_file(path).write(bytes("never seen")); }
  CHECK(contents(path) == "one TWO");
  replace(path, "");
  CHECK(contents(path).empty());
  CHECK(folder.names() == strings{"run"});
}

TEST_CASE("the file is on the disk before it is renamed, then its folder is") {
  temporary_folder const folder;
  CHECK(calls_of([&] { replace(folder / "run", "text"); }) ==
        strings{"open", "create", "lock", "write", "fsync", "rename", "fsync"});
}

TEST_CASE("wrong calls throw std::logic_error, and the file is as it was") {
  temporary_folder const folder;
  std::string const path = folder / "run";
  ds::replace_file file(path);
  file.write(bytes("12345"));
  auto const beyond = [&](std::int64_t at, std::string const& text) {
    return test::message<std::invalid_argument>([&] { file.write_at(at, bytes(text)); });
  };
  CHECK(beyond(3, "abc") ==
        "replace_file: write_at() must stay within the 5 bytes that are written, is from 3 on 3 bytes");
  CHECK(beyond(-1, "a") != "");
  CHECK(beyond(6, "") != "");
  file.commit();
  CHECK(test::message([&] { file.commit(); }) == "replace_file: " + path + " is committed already");
  CHECK(test::message([&] { file.write(bytes("6")); }) == "replace_file: " + path + " is committed already");
  CHECK(test::message([&] { file.write_at(0, bytes("6")); }) == "replace_file: " + path + " is committed already");
  CHECK(contents(path) == "12345");
  for (auto const& bad : {""s, "a\0b"s})
    CHECK(test::message<std::invalid_argument>([&] { ds::replace_file{bad}; }) ==
          "replace_file: the path must have characters, and none of them NUL");
}

TEST_CASE("a moved file can be written further") {
  temporary_folder const folder;
  ds::replace_file first(folder / "first");
  first.write(bytes("one "));
  ds::replace_file moved(std::move(first));
  moved.write(bytes("two"));
  ds::replace_file second(folder / "second");
  second.write(bytes("gone"));
  second = std::move(moved);
  CHECK(folder.names().size() == 1);
  second.commit();
  CHECK(contents(folder / "first") == "one two");
  CHECK(folder.names() == strings{"first"});
}

TEST_CASE("what cannot be replaced is refused before anything is written") {
  temporary_folder const folder;
  folder.write("file", "text");
  std::filesystem::create_directory(folder / "folder");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink("loop", folder / "loop");
  std::filesystem::create_symlink("folder", folder / "to_folder");
  auto const names = folder.names();
  auto const opened = [&](std::string const& path) { return refusal([&] { ds::replace_file{path}; }); };
  auto const is = [&](std::string const& name, int error, std::string const& what = "") {
    CHECK(opened(folder / name) == cannot(folder / name, error, what));
  };
  is("folder", EISDIR);
  is("folder/", EISDIR);
  is("folder/..", EISDIR);
  is("to_folder", EISDIR);
  is("loop", ELOOP);
  is("missing/run", ENOENT, "its folder cannot be opened: ");
  is("missing/", ENOENT, "its folder cannot be opened: ");
  is("file/run", ENOTDIR, "its folder cannot be opened: ");
  is(std::string(256, 'x'), ENAMETOOLONG);
  is(std::string(255, 'x'), ENAMETOOLONG, "with the ending of the temporary file: ");
  CHECK(opened(folder / "pipe") == (folder / "pipe") + ": cannot be written: it is not a regular file");
  CHECK(opened("/dev/null") == "/dev/null: cannot be written: it is not a regular file");
  CHECK(folder.names() == names);
}

TEST_CASE("a folder without permission is refused") {
  temporary_folder const folder;
  std::string const closed = folder / "closed", path = closed + "/run";
  std::filesystem::create_directory(closed);
  ::chmod(folder.path.c_str(), 0711);
  ::chmod(closed.c_str(), 0555);
  if (::geteuid() == 0) REQUIRE(::seteuid(65534) == 0);  // root may do everything
  std::string const said = refusal([&] { ds::replace_file{path}; });
  if (::getuid() == 0) REQUIRE(::seteuid(0) == 0);
  CHECK(said == cannot(path, EACCES));
  ::chmod(closed.c_str(), 0755);
}

TEST_CASE("a symbolic link stays, and its target is replaced") {
  temporary_folder const folder;
  std::filesystem::create_directory(folder / "far");
  folder.write("far/run", "old");
  std::filesystem::create_symlink("far/run", folder / "relative");
  std::filesystem::create_symlink(folder / "relative", folder / "twice");
  std::filesystem::create_symlink("far/new", folder / "dangling");
  replace(folder / "twice", "by two links");
  CHECK(contents(folder / "far/run") == "by two links");
  replace(folder / "relative", "by one");
  CHECK(contents(folder / "far/run") == "by one");
  replace(folder / "dangling", "new");
  CHECK(contents(folder / "far/new") == "new");
  for (char const* const link : {"relative", "twice", "dangling"}) CHECK(std::filesystem::is_symlink(folder / link));
  CHECK(folder.names() == strings{"dangling", "far", "relative", "twice"});
}

TEST_CASE("the folder is the one at the beginning, wherever the process goes") {
  temporary_folder const folder;
  std::filesystem::create_directory(folder / "other");
  auto const before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path);
  ds::replace_file file("run");
  file.write(bytes("text"));
  std::filesystem::current_path(folder / "other");
  file.commit();
  std::filesystem::current_path(before);
  CHECK(contents(folder / "run") == "text");
  CHECK(folder.names() == strings{"other", "run"});
}

TEST_CASE("the new file has the permissions of the old one, or those of a new file") {
  temporary_folder const folder;
  auto const mode = [](std::string const& path) {
    struct stat about;
    REQUIRE(::stat(path.c_str(), &about) == 0);
    return about.st_mode & 07777;
  };
  ::mode_t const umask = ::umask(027);
  replace(folder / "new", "text");
  CHECK(mode(folder / "new") == 0640);
  for (::mode_t const of : {0600, 0664, 0444, 0755, 0400}) {
    std::string const path = folder.write("old" + std::to_string(of), "old");
    REQUIRE(::chmod(path.c_str(), of) == 0);
    {
      ds::replace_file file(path);
      file.write(bytes("new"));
      for (auto const& name : folder.names())  // not even for a moment may others read what is private
        if (name.ends_with(".tmp")) CHECK((mode(folder / name) & ~of & 0577) == 0);
      file.commit();
    }
    CHECK(mode(path) == of);
    CHECK(contents(path) == "new");
  }
  ::umask(umask);
}

TEST_CASE("a file that root replaces keeps its owner, its group and its permissions") {
  if (::geteuid() != 0) return;  // others cannot give files away
  temporary_folder const folder;
  std::string const path = folder.write("of_another", "old");
  REQUIRE(::chown(path.c_str(), 12345, 54321) == 0);
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  replace(path, "new");
  struct stat about;
  REQUIRE(::stat(path.c_str(), &about) == 0);
  CHECK((about.st_uid == 12345 && about.st_gid == 54321 && (about.st_mode & 07777) == 0640));
}

TEST_CASE("after a failure at any call the old file is there, and nothing beside it") {
  temporary_folder const folder;
  std::string const path = folder.write("run", "old");
  auto const write = [&] {
    ds::replace_file file(path);
    file.write(bytes("first part, "));
    file.write(bytes("second part"));
    file.write_at(0, bytes("F"));
    file.commit();
  };
  strings const all{"open", "create", "lock", "write", "write", "write", "fsync", "rename", "fsync"};
  for (int const error : {EIO, ENOSPC, EDQUOT, EINTR})
    for (std::size_t k = 0; k < all.size(); ++k) {
      INFO(all[k] << " fails with " << std::strerror(error));
      folder.write("run", "old");
      calls::at = int(k);
      calls::error = error;
      calls const failing(fail_at);
      std::string const said = refusal(write);
      bool const goes_on = error == EINTR || all[k] == "lock";  // there are file systems without locks
      if (goes_on) {
        CHECK(said.empty());
      } else if (k + 1 == all.size()) {
        CHECK(said == path + ": is written, but a power failure may undo it: its folder cannot be synchronized: " +
                          std::strerror(error));
      } else {
        CHECK(said == cannot(path, error, k == 0 ? "its folder cannot be opened: " : ""));
      }
      CHECK(contents(path) == (goes_on || k + 1 == all.size() ? "First part, second part" : "old"));
      CHECK(folder.names() == strings{"run"});
    }
  calls::at = int(all.size()) - 1;
  calls::error = EINVAL;  // a file system that cannot synchronize folders
  calls const failing(fail_at);
  CHECK(refusal(write).empty());
  calls::at = -1;
}

TEST_CASE("a file that could not be written cannot be committed") {
  temporary_folder const folder;
  std::string const path = folder.write("run", "old");
  ds::replace_file file(path);
  file.write(bytes("first part"));
  {
    calls::at = 0;
    calls::error = ENOSPC;
    calls const failing(fail_at);
    CHECK(refusal([&] { file.write(bytes("second part")); }) == cannot(path, ENOSPC));
    calls::at = -1;
  }
  for (auto const& call : {+[](ds::replace_file& f) { f.commit(); }, +[](ds::replace_file& f) { f.write(bytes("x")); }})
    CHECK(test::message([&] { call(file); }) == "replace_file: " + path + " could not be written before");
  CHECK(contents(path) == "old");
}

TEST_CASE("short writes go on, and one of no bytes is a failure") {
  temporary_folder const folder;
  std::string const path = folder / "run", text(1000, 'x');
  {
    calls const shortened([](char const* name, std::size_t& n) {
      calls::note(name);
      n = n > 3 ? n / 3 : n;
      return calls::made.size() % 4 == 0 ? EINTR : 0;
    });
    ds::replace_file file(path);
    file.write(bytes(text));
    file.write_at(10, bytes("0123456789"));
    file.commit();
    CHECK(std::ranges::count(calls::made, "write") > 10);
  }
  CHECK(contents(path) == std::string(text).replace(10, 10, "0123456789"));
  calls const nothing([](char const*, std::size_t& n) { return n = 0, 0; });
  CHECK(refusal([&] { replace(path, "y"); }) == cannot(path, EIO));
}

TEST_CASE("the limit on the size of files ends a save with a sentence") {
  temporary_folder const folder;
  std::string const path = folder.write("run", "old"), text(200'000, 'x');
  ::rlimit limit;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  auto const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ::rlimit const low{100'000, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
  std::string const said = refusal([&] { replace(path, text); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  std::signal(SIGXFSZ, old_handler);
  CHECK(said == cannot(path, EFBIG));
  CHECK(contents(path) == "old");
  CHECK(folder.names() == strings{"run"});
}

TEST_CASE("a full disk ends a save with a sentence, and the old file stays") {
  temporary_folder const folder;
  constexpr int no_disk = 77;
  int const status = status_of(forked([&] {
    if (::unshare(CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.path.c_str(), "tmpfs", 0, "size=256k") != 0)
      return no_disk;
    std::string const path = folder / "run";
    save_version(path, 3);
    std::vector<std::byte> const much(300'000);
    std::string const said =
        refusal([&] { ds::save_safetensors(path, {{"x", ds::dtype::u8, {std::int64_t(much.size())}, much}}); });
    if (said != cannot(path, ENOSPC)) return 1;
    if (folder.names() != strings{"run"}) return 2;
    ds::safetensors_file const file(path);
    file.check();
    return file.metadata().at("version") == "3" ? 0 : 3;
  }));
  if (status == no_disk) MESSAGE("skipped: this process may not mount a file system");
  else CHECK(status == 0);
}

TEST_CASE("what a killed process has left is removed by the next one") {
  temporary_folder const folder;
  std::string const path = folder / "run";
  strings const strange{"other.12-0123456789abcdef.tmp",
                        "run.12-0123456789abcde.tmp",
                        "run.12-0123456789abcdef.tmp.x",
                        "run.12-0123456789abcdefa.tmp",
                        "run.12_0123456789abcdef.tmp",
                        "run.12-0123456789abcdeF.tmp",
                        "run.tmp",
                        "run.x12-0123456789abcdef.tmp",
                        "run1.12-0123456789abcdef.tmp",
                        "run.-0123456789abcdef.tmp",
                        "run.12-0123456789abcdef.txt",
                        "xrun.12-0123456789abcdef.tmp"};
  for (auto const& name : strange) folder.write(name, "of somebody else");
  folder.write("run.12-0123456789abcdef.tmp", "left");
  folder.write("run.4194304-0000000000000000.tmp", "left");
  replace(path, "text");
  strings left = strange;
  left.push_back("run");
  std::ranges::sort(left);
  CHECK(folder.names() == left);
}

TEST_CASE("writers of one path do not disturb each other: the last one counts") {
  temporary_folder const folder;
  std::string const path = folder / "run";
  ds::replace_file first(path);
  first.write(bytes("first"));
  ds::replace_file second(path);
  second.write(bytes("second"));
  CHECK(folder.names().size() == 2);
  int const status = status_of(forked([&] { return replace(path, "of another process"), 0; }));
  CHECK(status == 0);
  CHECK(contents(path) == "of another process");
  second.commit();
  CHECK(contents(path) == "second");
  first.commit();
  CHECK(contents(path) == "first");
  CHECK(folder.names() == strings{"run"});

  std::atomic<int> failed = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) failed += !refusal([&] { save_version(path, 7 * i + t); }).empty();
    });
  threads.clear();
  CHECK(failed == 0);
  version_of(path);
  CHECK(folder.names() == strings{"run"});
}

TEST_CASE("a new file that another writer took for an abandoned one is made again") {
  temporary_folder const folder;
  static std::string place;
  static int taken;
  place = folder.path;
  taken = 0;
  calls const other([](char const* name, std::size_t&) {
    // between "create" and "lock"
    if (name != "lock"s || ++taken > 3) return 0;
    for (auto const& entry : std::filesystem::directory_iterator(place)) std::filesystem::remove(entry.path());
    return taken == 2 ? EWOULDBLOCK : 0;
  });
  replace(folder / "run", "text");
  CHECK(taken == 4);
  CHECK(contents(folder / "run") == "text");
  CHECK(folder.names() == strings{"run"});
  taken = -1000;
  calls const always([](char const* name, std::size_t&) { return name == "lock"s ? EWOULDBLOCK : 0; });
  CHECK(refusal([&] { replace(folder / "run", "x"); }) == cannot(folder / "run", EWOULDBLOCK));
  CHECK(folder.names() == strings{"run"});
}

TEST_CASE("a forked process does not remove the file of its parent") {
  temporary_folder const folder;
  auto file = std::make_unique<ds::replace_file>(folder / "run");
  file->write(bytes("text"));
  CHECK(status_of(forked([&] { return file.reset(), 0; })) == 0);
  file->commit();
  CHECK(contents(folder / "run") == "text");
}

TEST_CASE("killed before each of its system calls, a save leaves the old file or the new one") {
  temporary_folder const folder;
  std::string const path = folder / "run";
  save_version(path, 0);
  save_version(folder / "other", 0);
  std::mt19937 random(1);
  std::map<std::pair<int, bool>, int> calls_for;
  int last = 0, replaced = 0;
  for (int v = 1; v <= 500; ++v) {
    int& usual = calls_for[{v % 7, v % 13 == 0}];  // an empty tensor needs no call
    if (usual == 0) usual = int(calls_of([&] { save_version(folder / "other", v); }).size());
    int const all = usual + int(folder.names().size()) - 2;  // with the removal of what the process before has left
    int const at = v <= 100 ? v % all : int(random() % unsigned(all));
    INFO("version " << v << ", killed before call " << at << " of " << all);
    int const status = status_of(forked([&] {
      calls::at = at;
      calls const killing([](char const* name, std::size_t& n) {
        if (calls::note(name)) ::kill(::getpid(), SIGKILL);
        // What a write has done when the process dies may be any part of it.
        if (n > 1 && int(calls::made.size()) == calls::at) n = 1 + n / 2;
        return 0;
      });
      save_version(path, v);
      return 0;
    }));
    CHECK(status == -SIGKILL);
    bool const renamed = at + 1 == all;
    CHECK(version_of(path) == (renamed ? v : last));
    if (renamed) last = v, ++replaced;
    CHECK(folder.names().size() <= 3);  // the two files, and what this process has left
  }
  CHECK(replaced > 20);
  save_version(path, 1);
  CHECK(folder.names() == strings{"other", "run"});
}

TEST_CASE("killed at any time, a save leaves the old file or the new one") {
  temporary_folder const folder;
  std::string const path = folder / "run";
  save_version(path, 0);
  std::mt19937 random(2);
  double longest = 10'000;  // microseconds until the kill; follows the speed of the machine, so that half are in time
  int last = 0, killed = 0, replaced = 0;
  for (int v = 1; v <= 150; ++v) {
    ::pid_t const child = forked([&] { return save_version(path, v), 0; });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % unsigned(longest + 1)));
    ::kill(child, SIGKILL);
    bool const in_time = status_of(child) == -SIGKILL;
    killed += in_time;
    longest *= in_time ? 1.05 : 1 / 1.05;
    int const now = version_of(path);
    CHECK((now == v || (in_time && now == last)));
    replaced += now != last;
    last = now;
    CHECK(folder.names().size() <= 2);
  }
  CHECK(killed > 30);
  CHECK(replaced > 30);
  save_version(path, 1);
  CHECK(folder.names() == strings{"run"});
}
