// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Saves in the background, the copies from a device, and folders of checkpoints.
#include <descent/io/checkpoints.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/remote.hpp"
#include "support/run_file.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ds = descent;
using ds::named;
using test::contents, test::message, test::remote, test::temporary_folder;
using strings = std::vector<std::string>;

namespace {

/// While it exists, writers wait before they open a file.
struct held {
  held() {
    open = false;
    ds::detail::file_calls::before = [](char const*, std::size_t&) {
      while (!open) std::this_thread::yield();
      return 0;
    };
  }
  ~held() { let_go(), ds::detail::file_calls::before = nullptr; }
  static void let_go() { open = true; }
  static inline std::atomic<bool> open{true};
};

std::vector<std::int64_t> steps_in(ds::checkpoints const& folder) {
  std::vector<std::int64_t> all;
  for (auto const& c : folder.list()) all.push_back(c.step);
  return all;
}
using steps = std::vector<std::int64_t>;

int number_in(std::string const& path) {
  int n = 0;
  ds::load_file(path, {.partial = true}, named("n", n));
  return n;
}
std::string lost(std::string const& path) {
  return path + ": cannot be written: its folder cannot be opened: No such file or directory";
}

}  // namespace

TEST_CASE("checkpoints: what is on a device is copied through two halves of 32 MB, in any pieces") {
  for (bool const late : {false, true}) {
    temporary_folder const folder;
    test::remote_memory::late = late;
    std::size_t const half = (32 << 20) / 4;
    std::vector<remote> all;
    for (std::size_t const n : {std::size_t{3}, half - 3, half + 1, std::size_t{0}, half / 2, std::size_t{5}}) {
      auto& r = all.emplace_back(remote{"x" + std::to_string(all.size()), std::vector<std::uint32_t>(n)});
      std::iota(r.x.begin(), r.x.end(), std::uint32_t(all.size() * 1000003));
    }
    std::vector<std::uint32_t> y{1, 2, 3};  // on the host, between them
    ds::save_file(folder / "run", all[0], all[1], all[2], named("y", y), all[3], all[4], all[5]);
    for (auto const& r : all) CHECK(r.memory.largest <= 8 * half);
    ds::safetensors_file const file(folder / "run");
    for (auto const& r : all) {
      auto const bytes = file.bytes(*file.find(r.name));
      CHECK(bytes.size() == 4 * r.x.size());
      CHECK((r.x.empty() || std::memcmp(bytes.data(), r.x.data(), bytes.size()) == 0));
    }
    auto const saved = std::exchange(all[1].x, std::vector<std::uint32_t>(half - 3));
    ds::load_file(folder / "run", {.partial = true}, all[1]);
    CHECK(all[1].x == saved);
  }
}

TEST_CASE("async_save: the file has the state at save(), and training continues at once") {
  temporary_folder const folder;
  ds::async_save saver;
  CHECK_FALSE(saver.pending());
  saver.wait();
  std::vector<double> x{1, 2, 3};
  std::string text = "before";
  int n = 1;
  {
    held const writers;
    saver.save(folder / "run", named("x", x), named("text", text), named("n", n), named("fixed", 7));
    x = {4, 5, 6}, text = "afterwards", n = 2;
    CHECK(saver.pending());
    CHECK(folder.names().empty());
    writers.let_go();
    saver.wait();
  }
  CHECK_FALSE(saver.pending());
  std::vector<double> y(3);
  std::string note;
  int m = 0, fixed = 0;
  ds::load_file(folder / "run", named("x", y), named("text", note), named("n", m), named("fixed", fixed));
  CHECK((y == std::vector<double>{1, 2, 3} && note == "before" && m == 1 && fixed == 7));

  std::string const now = folder / "now", later = folder / "later";
  ds::save_file(now, named("x", x), named("text", text), named("n", n));
  {
    ds::async_save other;
    other.save(later, named("x", x), named("text", text), named("n", n));
  }
  CHECK(contents(now) == contents(later));
  saver.save(later, named("n", 3));
  saver.save(folder / "next", named("n", 4));  // waits for the one before
  CHECK(number_in(later) == 3);
  CHECK(message<std::invalid_argument>([&] { saver.save(later, named("n", 5), named("n", 6)); }) ==
        "two parts have the name 'n': give one a prefix with named(\"...\", part)");
  CHECK_FALSE(saver.pending());
  CHECK((number_in(folder / "next") == 4 && number_in(later) == 3));
}

TEST_CASE("async_save: the snapshot of a device is waited for, and its memory is kept") {
  temporary_folder const folder;
  ds::async_save saver;
  remote a{"a", {1, 2, 3}}, b{"b", std::vector<std::uint32_t>(1000, 7)};
  std::vector<std::uint32_t> const before = a.x;
  auto const save = [&](auto&... parts) {
    saver.save(folder / "run", parts...);
    saver.wait();
    for (auto* r : {&a, &b}) {
      ds::load_file(folder / "run", {.partial = true}, *r);
    }
  };
  save(a, b);
  save(b, a);
  CHECK((a.x == before && b.x == std::vector<std::uint32_t>(1000, 7)));
  CHECK(a.memory.allocations + b.memory.allocations == 1);
  a.x.resize(2000, 9);
  saver.save(folder / "run", a), saver.wait();
  CHECK(a.memory.allocations + b.memory.allocations == 2);
  CHECK(number_in((saver.save(folder / "host", named("n", 5)), saver.wait(), folder / "host")) == 5);
  saver.save(folder / "run", b), saver.wait();  // pinned memory again
  CHECK(a.memory.allocations + b.memory.allocations == 3);
}

TEST_CASE("async_save: what went wrong is thrown once, by wait(), by the next save() or by the destructor") {
  temporary_folder const folder;
  std::string const gone = folder / "gone/run", there = folder / "run";
  {
    ds::async_save saver;
    saver.save(gone, named("n", 1));
    CHECK(message<std::runtime_error>([&] { saver.wait(); }) == lost(gone));
    CHECK_FALSE(saver.pending());
    saver.wait();
    saver.save(gone, named("n", 1));
    CHECK(message<std::runtime_error>([&] { saver.save(there, named("n", 2)); }) == lost(gone));
    CHECK((!saver.pending() && folder.names().empty()));
    saver.save(there, named("n", 2));
    saver.wait();
    CHECK(number_in(there) == 2);
    ds::detail::file_calls::before = [](char const* name, std::size_t&) {
      return name == std::string("rename") ? ENOSPC : 0;
    };
    saver.save(there, named("n", 3));
    CHECK(message<std::runtime_error>([&] { saver.wait(); }) == there + ": cannot be written: No space left on device");
    ds::detail::file_calls::before = nullptr;
    CHECK((number_in(there) == 2 && folder.names() == strings{"run"}));
  }
  CHECK(message<std::runtime_error>([&] {
          ds::async_save saver;
          saver.save(gone, named("n", 1));
        }) == lost(gone));
  CHECK(message<std::exception>([&] {
          ds::async_save saver;
          saver.save(gone, named("n", 1));
          throw std::domain_error("another");
        }) == "another");
  struct saves_at_the_end {  // while an exception is on its way, which is none of the saver's
    std::string path, *said;
    ~saves_at_the_end() {
      *said = message<std::runtime_error>([&] {
        ds::async_save saver;
        saver.save(path, named("n", 1));
      });
    }
  };
  std::string said;
  CHECK(message<std::exception>([&] {
          saves_at_the_end const last{gone, &said};
          throw std::domain_error("another");
        }) == "another");
  CHECK(said == lost(gone));
}

TEST_CASE("checkpoints: the last, every so many and the best stay") {
  temporary_folder const root;
  auto const left = [&](ds::keep const& k, auto const& metric_of) {
    std::filesystem::remove_all(root / "run");
    ds::checkpoints folder(root / "run", k);
    CHECK((folder.list().empty() && !folder.newest() && !folder.best()));
    int n = 0;
    for (std::int64_t const step : {1, 2, 3, 4, 5, 6, 7, 8})
      folder.save(step, metric_of(step), named("n", n = int(step)));
    CHECK(folder.newest()->step == 8);
    for (auto const& c : folder.list()) {
      CHECK(c.path == (root / "run/step-") + std::to_string(c.step) + ".safetensors");
      CHECK((c.metric == metric_of(c.step) && number_in(c.path) == c.step));
    }
    return steps_in(folder);
  };
  using metric = std::optional<double>;
  auto const none = [](std::int64_t) { return metric(); };
  auto const valley = [](std::int64_t step) { return metric(double((step - 4) * (step - 4)) / 3); };
  CHECK(left({}, none) == steps{6, 7, 8});
  CHECK(left({.last = 1}, valley) == steps{8});
  CHECK(left({.last = 2, .every = 3}, none) == steps{3, 6, 7, 8});
  CHECK(left({.last = 1, .best = 1}, valley) == steps{4, 8});
  CHECK(left({.last = 1, .best = 2}, valley) == steps{4, 5, 8});  // 3 is as good, but older
  CHECK(left({.last = 1, .best = 3}, valley) == steps{3, 4, 5, 8});
  CHECK(left({.last = 1, .best = 2, .largest_is_best = true}, valley) == steps{7, 8});
  CHECK(left({.last = 1, .every = 4, .best = 9}, none) == steps{4, 8});
  CHECK(left({.last = 1, .best = 1}, [](std::int64_t step) { return step == 2 ? metric(1) : metric(); }) ==
        steps{2, 8});
  auto const extreme = [](std::int64_t step) {
    return step == 3 ? -std::numeric_limits<double>::infinity() : 1.0 / double(step);
  };
  CHECK(left({.last = 1, .best = 1}, extreme) == steps{3, 8});
}

TEST_CASE("checkpoints: best() and newest() find what to resume from") {
  temporary_folder const root;
  ds::checkpoints folder(root.path, {.last = 9}), highest(root.path, {.largest_is_best = true});
  folder.save(3, 1.0 / 3, named("n", 1));
  folder.save(7, 1.0 / 3, named("n", 2));
  folder.save(20, 0.5, named("n", 3));
  folder.save(100, std::nullopt, named("n", 4));
  CHECK(steps_in(folder) == steps{3, 7, 20, 100});
  CHECK((folder.newest()->step == 100 && !folder.newest()->metric && number_in(folder.newest()->path) == 4));
  CHECK((folder.best()->step == 7 && folder.best()->metric == 1.0 / 3 && highest.best()->step == 20));
  folder.save(100, 0.75, named("n", 5));  // replaces it
  CHECK((folder.best()->step == 7 && highest.best()->step == 100 && number_in(highest.best()->path) == 5));

  using invalid = std::invalid_argument;
  CHECK(message<invalid>([&] { folder.save(-1, 0.5, named("n", 1)); }) ==
        "checkpoints: the step must be at least 0, is -1");
  CHECK(message<invalid>([&] { ds::checkpoints("x", {.last = 0}); }) == "checkpoints: last must be at least 1, is 0");
  CHECK(message<invalid>([&] { ds::checkpoints("x", {.every = -1}); }) ==
        "checkpoints: every must be at least 0, is -1");
  CHECK(message<invalid>([&] { ds::checkpoints("x", {.best = -1}); }) == "checkpoints: best must be at least 0, is -1");
  CHECK(steps_in(folder) == steps{3, 7, 20, 100});
}

TEST_CASE("checkpoints: other files stay, and what killed saves have left is removed") {
  temporary_folder const root;
  strings const others{"notes.txt", "step-.safetensors", "step-4.safetensors.old", "step-5", "step-x.safetensors",
                       "x-1.safetensors"};
  for (auto const& name : others) root.write(name, "mine");
  std::string const tag = ".0123456789abcdef.0-of-2";
  root.write("step-4.safetensors" + tag, "a part without its manifest");
  root.write("other.safetensors" + tag, "mine");
  root.write("step-3.safetensors.4000000-0123456789abcdef.tmp", "a save that was killed");
  ds::checkpoints folder(root.path, {.last = 1});
  folder.save(1, std::nullopt, named("n", 1));
  folder.save(2, std::nullopt, named("n", 2));
  strings left = others;
  left.insert(left.end(), {"other.safetensors" + tag, "step-2.safetensors"});
  std::ranges::sort(left);
  CHECK(root.names() == left);

  ds::detail::file_calls::before = [](char const* name, std::size_t&) {
    return name == std::string("write") ? EIO : 0;
  };
  CHECK(message<std::runtime_error>([&] { folder.save(3, std::nullopt, named("n", 3)); }) != "");
  ds::detail::file_calls::before = nullptr;
  CHECK(root.names() == left);

  root.write("step-9.safetensors", "damaged");
  folder.save(4, std::nullopt, named("n", 4));  // a damaged neighbour neither stops it nor counts
  left = others;
  left.insert(left.end(), {"other.safetensors" + tag, "step-4.safetensors", "step-9.safetensors"});
  std::ranges::sort(left);
  CHECK(root.names() == left);
}

TEST_CASE("checkpoints: a run that has gone back cannot save before later steps, which remove_after() removes") {
  temporary_folder const root;
  ds::async_save saver;
  ds::checkpoints folder(root.path, {.last = 2, .every = 100, .best = 1});
  for (std::int64_t const step : {100, 200, 250, 300}) folder.save(step, double(step), named("n", int(step)));
  CHECK(steps_in(folder) == steps{100, 200, 250, 300});
  root.write("step-400.safetensors", "damaged");
  auto const names = root.names();
  std::string const why = "checkpoints: " + (root / "step-300.safetensors") +
                          " is newer than step 299, which is to be saved: a run that resumes from an earlier "
                          "checkpoint first calls remove_after(its step), or saves to another folder";
  CHECK(message<std::invalid_argument>([&] { folder.save(299, 1.0, named("n", 0)); }) == why);
  CHECK(message<std::invalid_argument>([&] { folder.save(saver, 299, 1.0, named("n", 0)); }) == why);
  CHECK((!saver.pending() && root.names() == names));
  folder.save(300, 300.0, named("n", 301));  // again
  CHECK(number_in(folder.newest()->path) == 301);

  root.write("step-250.safetensors.0123456789abcdef.0-of-2", "a part");
  folder.remove_after(200);
  CHECK(root.names() == strings{"step-100.safetensors", "step-200.safetensors"});
  folder.remove_after(200);
  for (std::int64_t const step : {205, 206, 207}) folder.save(step, double(step), named("n", int(step)));
  CHECK(steps_in(folder) == steps{100, 200, 206, 207});
  CHECK(folder.newest()->step == 207);
  ds::checkpoints(root / "none").remove_after(0);
}

TEST_CASE("checkpoints: a metric that is NaN is saved without a rank") {
  temporary_folder const root;
  ds::async_save saver;
  double const nan = std::nan("");
  for (bool const largest : {false, true}) {
    std::filesystem::remove_all(root / "run");
    ds::checkpoints folder(root / "run", {.last = 1, .best = 2, .largest_is_best = largest});
    folder.save(1, 0.5, named("n", 1));
    folder.save(2, nan, named("n", 2));
    CHECK((folder.newest()->step == 2 && !folder.newest()->metric && number_in(folder.newest()->path) == 2));
    CHECK(folder.best()->step == 1);
    folder.save(saver, 3, -nan, named("n", 3));
    saver.wait();
    CHECK((folder.newest()->step == 3 && number_in(folder.newest()->path) == 3));
    folder.save(4, 0.25, named("n", 4));
    CHECK(steps_in(folder) == steps{1, 4});
    // of another program
    test::edited(root / "run/step-4.safetensors", root / "run/step-4.safetensors",
                 [](auto&, auto& texts) { texts.at("metric") = "nan"; });
    CHECK((steps_in(folder) == steps{1, 4} && !folder.newest()->metric && folder.best()->step == 1));
  }
}

TEST_CASE("checkpoints: damaged ones are skipped and named, in any order of saves, damage and questions") {
  auto const is_of = [](auto const& found, std::int64_t step) { return (found ? found->step : -1) == step; };
  std::mt19937 random(7);
  auto const draw = [&](std::size_t n) { return std::size_t(random() % n); };
  for (int trial = 0; trial < 12; ++trial) {
    temporary_folder const root;
    ds::keep const k{.last = 1 + int(draw(3)), .best = int(draw(3))};
    ds::checkpoints folder(root.path, k);
    struct known {
      std::int64_t step;
      std::optional<double> metric;
      enum { good, bad_data, bad_header } is = good;
    };
    std::vector<known> there;
    // The law, written a second time: what stays, of those whose header is good.
    auto const expect_removed = [&] {
      std::vector<known> counts, ranked;
      for (auto const& c : there)
        if (c.is != known::bad_header) counts.push_back(c);
      for (auto const& c : counts)
        if (c.metric) ranked.push_back(c);
      std::ranges::sort(ranked, [](known const& a, known const& b) {
        return *a.metric != *b.metric ? *a.metric < *b.metric : a.step > b.step;
      });
      ranked.resize(std::min(ranked.size(), std::size_t(k.best)));
      std::erase_if(there, [&](known const& c) {
        if (c.is == known::bad_header) return false;
        auto const later = std::ranges::count_if(counts, [&](known const& x) { return x.step > c.step; });
        return later >= k.last && std::ranges::find(ranked, c.step, &known::step) == ranked.end();
      });
    };
    std::int64_t now = 0;
    for (int event = 0; event < 25; ++event) {
      if (there.empty() || draw(3) > 0) {
        bool const back = draw(4) == 0;
        std::int64_t const step = std::max<std::int64_t>(0, now + (back ? -3 : 1) + std::int64_t(draw(3)));
        double const metrics[] = {0.5, 0.25, std::nan(""), 3, 1e300 * 1e300};
        std::optional<double> const metric = draw(4) ? std::optional(metrics[draw(5)]) : std::nullopt;
        bool const later =
            std::ranges::any_of(there, [&](known const& c) { return c.step > step && c.is != known::bad_header; });
        auto const names = root.names();
        auto const why = message<std::invalid_argument>([&] { folder.save(step, metric, named("n", int(step))); });
        CHECK(why.empty() == !later);
        if (later) {
          CHECK(root.names() == names);
          folder.remove_after(step);
          std::erase_if(there, [&](known const& c) { return c.step > step; });
          folder.save(step, metric, named("n", int(step)));
        }
        std::erase_if(there, [&](known const& c) { return c.step == step; });
        there.push_back({step, metric && !std::isnan(*metric) ? metric : std::nullopt});
        std::ranges::sort(there, {}, &known::step);
        expect_removed();
        now = step;
      } else if (auto& c = there[draw(there.size())]; c.is == known::good) {
        auto const path = root / ("step-" + std::to_string(c.step) + ".safetensors");
        std::string bytes = contents(path);
        c.is = draw(2) ? known::bad_data : known::bad_header;
        if (c.is == known::bad_data) bytes.back() = char(bytes.back() ^ 1);
        else if (draw(2)) bytes[draw(100)] ^= 4;
        else bytes.resize(draw(bytes.size()));
        std::filesystem::remove(path);
        root.write("step-" + std::to_string(c.step) + ".safetensors", bytes);
      }
      steps good, bad;
      std::int64_t newest = -1, last_good = -1, best = -1;
      double least = 0;
      for (auto const& c : there) {
        (c.is == known::bad_header ? bad : good).push_back(c.step);
        if (c.is != known::bad_header) newest = c.step;
        if (c.is == known::good) last_good = c.step;
        if (c.is != known::bad_header && c.metric && (best < 0 || *c.metric <= least)) best = c.step, least = *c.metric;
      }
      CHECK(steps_in(folder) == good);
      CHECK((is_of(folder.newest(), newest) && is_of(folder.last_good(), last_good) && is_of(folder.best(), best)));
      auto const damaged = folder.damaged();
      steps named_bad;
      for (auto const& c : damaged) {
        named_bad.push_back(c.step);
        CHECK(c.why.starts_with(c.path + ": "));
      }
      CHECK(named_bad == bad);
      if (last_good >= 0) CHECK(number_in(folder.last_good()->path) == last_good);
    }
  }
}

TEST_CASE("checkpoints: in the background, what is not kept is removed at the next save") {
  temporary_folder const root;
  ds::async_save saver;
  ds::checkpoints folder(root / "run", {.last = 1, .best = 1});
  int n = 0;
  for (std::int64_t const step : {1, 2, 3, 4}) {
    n = int(step);
    folder.save(saver, step, double(step), named("n", n));
    n = -1;
  }
  saver.wait();
  CHECK(steps_in(folder) == steps{1, 3, 4});
  CHECK((folder.best()->metric == 1.0 && number_in(folder.newest()->path) == 4));
  std::filesystem::remove_all(root / "run");
  folder.save(saver, 5, std::nullopt, named("n", n));
  saver.wait();
  CHECK(steps_in(folder) == steps{5});
}
