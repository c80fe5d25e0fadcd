// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "device.hpp"
#include "platform.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>

/// A counter of a simulated CUDA device; null on a real one.
extern "C" [[gnu::weak]] std::uint64_t cudasim_count(char const* what);

namespace bench {
namespace {

std::int64_t marked = 0;

class event {
 public:
  event() { check(cudaEventCreate(&event_)); }
  ~event() { cudaEventDestroy(event_); }
  event(event const&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

cudaStream_t stream() {
  static struct owner {
    cudaStream_t stream = nullptr;
    owner() { check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
    ~owner() { cudaStreamDestroy(stream); }
  } const of;
  return of.stream;
}

bool in_software() { return cudasim_count != nullptr; }

timing time_steps(int steps, std::function<void()> const& step) {
  static event const begin, end;
  int const counted = std::min(steps, 32);  // more would fill the device's queue, and the host would wait
  double host_seconds = 0;
  float milliseconds = 0;
  check(cudaEventRecord(begin, stream()));
  double const start = now();
  for (int i = 0; i < steps; ++i) {
    step();
    if (i + 1 == counted) host_seconds = (now() - start) / counted;
  }
  check(cudaEventRecord(end, stream()));
  check(cudaEventSynchronize(end));
  check(cudaEventElapsedTime(&milliseconds, begin, end));
  return {1e-3 * milliseconds / steps, host_seconds};
}

void wait() { check(cudaStreamSynchronize(stream())); }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::int64_t free_memory() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total));
  return std::int64_t(free);
}
void mark_memory() { wait(), marked = free_memory(); }
std::int64_t grown_memory() { return wait(), marked - free_memory(); }

std::string about_platform() {
  cudaDeviceProp of;
  int driver = 0, runtime = 0;
  check(cudaGetDeviceProperties(&of, 0));
  check(cudaDriverGetVersion(&driver));
  check(cudaRuntimeGetVersion(&runtime));
  std::ostringstream out;
  out << ", \"threads\": 1, \"device\": {\"name\": \"" << (in_software() ? "a device in software" : of.name)
      << "\", \"capability\": \"" << of.major << '.' << of.minor
      << "\", \"multiprocessors\": " << of.multiProcessorCount << ", \"l2_bytes\": " << of.l2CacheSize
      << ", \"memory_bytes\": " << of.totalGlobalMem << ", \"driver_cuda\": \"" << cuda_version(driver)
      << "\", \"cuda\": \"" << cuda_version(runtime) << "\"}";
  return out.str();
}

}  // namespace bench
