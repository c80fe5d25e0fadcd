// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// What makes a loader fast, measured: the number of workers, how far they read ahead, threads against processes. Each
// record takes a time, as from a slow disk or decoder, and each batch is followed by a step of known length.
// With a GPU (loader.cu) also what pinned memory is worth.
// loader [records] [picture]
#include "parts/arguments.hpp"
#include "parts/chart.hpp"
#include "parts/claim.hpp"
#include "parts/output.hpp"

#include <descent/data/loader.hpp>
#include <descent/data/processes.hpp>
#include <descent/data/sources.hpp>
#ifdef __CUDACC__
#include "parts/gpu.cuh"
#include <descent/data/device_loader.hpp>
#endif

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace example;
namespace ds = descent;
using milliseconds = std::chrono::duration<double, std::milli>;

constexpr int batch = 10;

struct settings {
  int records = 100;
  std::string picture = "loader.svg";
  explicit settings(std::vector<std::string> const& arguments) {
    each_word(arguments, {[&](auto& word) { records = integer("RECORDS", word, batch, 1'000'000); },
                          [&](auto& word) { picture = word; }});
  }
};

/// Records of one number that take 1 ms each, and every tenth 6 ms if they are uneven. With a lock, one at a time.
struct slow {
  std::int64_t count;
  bool uneven = false;
  std::shared_ptr<std::mutex> lock = nullptr;

  auto fields() const { return ds::fields{ds::field<"number", std::int64_t>{}}; }
  std::int64_t size() const { return count; }
  void read(std::int64_t i, auto const& out, ds::record_random&) const {
    std::unique_lock<std::mutex> const held = lock ? std::unique_lock(*lock) : std::unique_lock<std::mutex>();
    std::this_thread::sleep_for(milliseconds(uneven && i % 10 == 0 ? 6 : 1));
    out.template value<"number">() = i;
  }
};

/// Records per second, and the seconds in which the loop waited for each batch, with a step of so many milliseconds.
struct rate { double records, wait; };

template <class Source> rate measure(Source const& source, ds::workers const& workers, double step) {
  ds::loader data{source, ds::batches{.size = batch}, ds::shuffled{.seed = 1}, workers};
  std::int64_t sum = 0;
  auto const began = std::chrono::steady_clock::now();
  for (auto const& b : data.epoch()) {
    for (std::int64_t const n : b.template get<"number">()) sum += n;
    std::this_thread::sleep_for(milliseconds(step));
  }
  double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  auto const report = data.report();
  claim(sum == source.size() * (source.size() - 1) / 2, "each record is delivered once");
  std::printf("  %d threads: %s\n", workers.threads, report.bottleneck().c_str());
  return {double(source.size()) / seconds, report.waited / double(report.batches)};
}

panel workers_panel(settings const& s) {
  std::puts("workers, with a step of 2 ms behind 10 records of 1 ms:");
  curve actual{"actual", {}}, ideal{"ideal", {}};
  for (int const threads : {1, 2, 3, 4, 6, 8}) {
    actual.points.push_back({double(threads), measure(slow{s.records}, {.threads = threads}, 2).records});
    // n threads need 10 / n ms for a batch; the step needs 2 ms
    ideal.points.push_back({double(threads), 1000 * batch / std::max(10.0 / threads, 2.0)});
  }
  return {"records per second", "threads", axis::linear, {actual, ideal}};
}

panel ahead_panel(settings const& s) {
  std::puts("batches held ready, every tenth record takes 6 ms, 4 threads, a step of 5 ms:");
  curve waits{"actual", {}};
  for (int const ahead : {0, 1, 2, 4, 8})
    waits.points.push_back(
        {double(ahead), 1000 * measure(slow{s.records, true}, {.threads = 4, .ahead = ahead}, 5).wait});
  return {"waiting for a batch, ms", "batches ahead", axis::linear, {waits}};
}

panel processes_panel(settings const& s) {
  std::puts("a source that reads one record at a time, in threads and in processes:");
  curve threads{"threads", {}}, processes{"processes", {}};
  for (int const n : {1, 2, 4}) {
    slow const locked{s.records, false, std::make_shared<std::mutex>()};
    threads.points.push_back({double(n), measure(locked, {.threads = n}, 0).records});
    ds::in_processes const apart{locked, ds::processes{.count = n}};  // each has a lock of its own
    processes.points.push_back({double(n), measure(apart, {.threads = n}, 0).records});
  }
  return {"with a lock: records per second", "workers", axis::linear, {threads, processes}};
}

#ifdef __CUDACC__
/// Batches of 10 records of 64 KiB, from pinned slots that workers copy, and from pageable memory that the loop copies.
panel copies_panel(settings const& s) {
  constexpr std::int64_t floats = 1 << 14;
  std::vector<float> const x(std::size_t(s.records) * floats, 1);
  ds::in_memory const source{ds::column{ds::field<"x", float>{floats}, x}};
  gpu const device;
  cudaStream_t const stream = device.backend().stream;
  device_array<float> on_device(batch * floats);
  auto const rate_of = [&](auto data, cudaMemcpyKind kind) {
    auto const began = std::chrono::steady_clock::now();
    for (auto const& b : data.epoch()) {
      auto const from = b.template get<"x">();
      check(cudaMemcpyAsync(on_device.data(), from.data(), from.size_bytes(), kind, stream));
    }
    check(cudaStreamSynchronize(stream));
    double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return double(data.report().bytes) / seconds / 1e9;
  };
  curve pinned{"pinned slots", {}}, pageable{"pageable memory", {}};
  for (int const ahead : {1, 2, 4}) {
    ds::workers const workers{.threads = 2, .ahead = ahead};
    ds::batches const cut{.size = batch};
    double const from_slots =
        rate_of(ds::loader{source, cut, ds::sequential{}, workers, device.backend()}, cudaMemcpyDeviceToDevice);
    double const from_pages = rate_of(ds::loader{source, cut, ds::sequential{}, workers}, cudaMemcpyHostToDevice);
    pinned.points.push_back({double(ahead), from_slots});
    pageable.points.push_back({double(ahead), from_pages});
    std::printf("%d batches ahead: %.3g GB/s from pinned slots, %.3g from pageable memory\n", ahead, from_slots,
                from_pages);
  }
  claim(device.to_host(on_device) == std::vector<float>(batch * floats, 1), "the last batch has arrived");
  return {"to the device, GB/s", "batches ahead", axis::linear, {pinned, pageable}};
}
#endif

void run(settings const& s) {
  require_writable(s.picture);
  std::vector<panel> panels{workers_panel(s), ahead_panel(s), processes_panel(s)};
#ifdef __CUDACC__
  panels.push_back(copies_panel(s));
#endif
  write_file(s.picture, draw("A loader whose records take 1 ms", panels));
}

constexpr char const* help = R"(usage: loader [RECORDS [PICTURE]]

Times a loader over records that take 1 ms each, by workers, batches ahead and processes, and draws the result.

  RECORDS    at least 10 (default: 100)
  PICTURE    a file (default: loader.svg)
  --help     this text
)";

}  // namespace

int main(int argc, char** argv) {
  return example::exit_code(argc, argv, help, [](std::vector<std::string> const& words) { run(settings{words}); });
}
