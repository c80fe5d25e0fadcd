// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Times save_file() and load_file() beside dd and a hand-written loop that write, or read, as many bytes, in turns; dd
// and the loop synchronize the file to the disk as save_file() does. Prints tables.
#include "../../examples/parts/arguments.hpp"

#include <descent/io/async_save.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adamw.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ds = descent;

namespace {

struct model {
  std::vector<float> values, gradients;
  ds::parameters<float> list;

  model(std::int64_t tensors, std::int64_t elements)
      : values(std::size_t(tensors * elements), 1.5f), gradients(values.size(), 0.25f) {
    for (std::int64_t t = 0; t < tensors; ++t)
      list.add("layer" + std::to_string(t), values.data() + t * elements, gradients.data() + t * elements, elements);
  }
};

double seconds_of(std::function<void()> const& f) {
  auto const began = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}
void require(bool holds, char const* what) {
  if (!holds) throw std::runtime_error(std::string(what) + " has failed");
}

void write_by_hand(std::string const& path, std::vector<std::byte> const& bytes) {
  int const file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  require(file >= 0, "open");
  for (std::size_t done = 0; done < bytes.size();) {
    auto const n = ::write(file, bytes.data() + done, std::min(bytes.size() - done, std::size_t{1} << 20));
    require(n > 0, "write");
    done += std::size_t(n);
  }
  require(::fsync(file) == 0, "fsync");
  ::close(file);
}
void read_by_hand(std::string const& path, std::vector<std::byte>& bytes) {
  int const file = ::open(path.c_str(), O_RDONLY);
  require(file >= 0, "open");
  for (std::size_t done = 0; done < bytes.size();) {
    auto const n = ::read(file, bytes.data() + done, std::min(bytes.size() - done, std::size_t{1} << 20));
    require(n > 0, "read");
    done += std::size_t(n);
  }
  ::close(file);
}

double median(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

struct contestant {
  char const* name;
  std::function<void()> run;
  std::vector<double> seconds{};
};
/// Times all in turns, and prints each median and the rate relative to the last contestant's.
void race(std::vector<contestant> all, std::int64_t bytes, int turns) {
  for (int turn = -1; turn < turns; ++turn)  // the first one warms up
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto& one = all[(i + std::size_t(turn + 1)) % all.size()];
      double const seconds = seconds_of(one.run);
      if (turn >= 0) one.seconds.push_back(seconds);
    }
  double const reference = median(all.back().seconds);
  for (auto const& one : all) {
    double const seconds = median(one.seconds);
    std::printf("| %s | %.2f ms | %.2f GB/s | %.2f |\n", one.name, 1e3 * seconds, 1e-9 * double(bytes) / seconds,
                reference / seconds);
  }
}

void measure(std::string const& folder, std::int64_t tensors, std::int64_t elements, int turns) {
  model m(tensors, elements);
  ds::optimizer opt{m.list, ds::adamw{}};
  opt.step();
  std::string const path = folder + "/run.safetensors", other = folder + "/other";
  ds::save_file(path, opt);
  std::int64_t const bytes = ds::safetensors_file(path).size();
  std::vector<std::byte> all(static_cast<std::size_t>(bytes), std::byte{1});
  std::string const dd = "dd if=/dev/zero of='" + other + "' bs=1M iflag=count_bytes count=" + std::to_string(bytes) +
                         " conv=fsync status=none";
  std::printf("\n%lld tensors, a file of %.1f MB\n\n| | median | rate | relative |\n|---|---|---|---|\n",
              static_cast<long long>(3 * tensors + 1), 1e-6 * double(bytes));
  race({{"save_file", [&] { ds::save_file(path, opt); }},
        {"write and fsync", [&] { write_by_hand(other, all); }},
        {"dd conv=fsync", [&] { require(std::system(dd.c_str()) == 0, "dd"); }}},
       bytes, turns);
  std::printf("\n| | median | rate | relative |\n|---|---|---|---|\n");
  race({{"load_file, file in the page cache", [&] { ds::load_file(path, opt); }},
        {"read", [&] { read_by_hand(path, all); }}},
       bytes, turns);

  ds::async_save saver;
  std::vector<double> returned, complete;
  for (int turn = 0; turn <= turns; ++turn) {
    double const returns = seconds_of([&] { saver.save(path, opt); });
    double const waits = seconds_of([&] { saver.wait(); });
    if (turn > 0) returned.push_back(returns), complete.push_back(returns + waits);
  }
  std::printf("\nasync_save returns after %.2f ms, its file is there after %.2f ms (medians)\n", 1e3 * median(returned),
              1e3 * median(complete));
}

constexpr char const* help = R"(usage: bench_saving FOLDER [--quick]

Times save_file and load_file in the folder, in turns with dd and a hand-written loop of as many bytes.

  --quick    only a small model, three times
  --help     this text
)";

void run(std::vector<std::string> arguments) {
  bool const quick = std::erase(arguments, "--quick") > 0;
  std::string folder;
  example::each_option(arguments, {}, {}, [&](std::string const& word) { folder = word; });
  if (folder.empty()) example::fail("the folder is missing");
  measure(folder, 100, 1000, quick ? 3 : 15);
  if (quick) return;
  measure(folder, 100, 100'000, 15);
  measure(folder, 20, 4'000'000, 7);
}

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run); }
