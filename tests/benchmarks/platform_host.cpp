// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "platform.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

#include <chrono>
#include <fstream>

namespace bench {
namespace {

/// Bytes that a file of /proc reports, such as VmRSS, those in memory now, or VmHWM, their maximum since mark_memory().
std::int64_t said(std::string const& file, std::string const& which) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(which + ":")) return std::stoll(line.substr(which.size() + 1)) * 1024;
  return 0;
}
std::int64_t resident(std::string const& which) { return said("/proc/self/status", which); }
std::int64_t marked = 0;

}  // namespace

timing time_steps(int steps, std::function<void()> const& step) {
  double const start = now();
  for (int i = 0; i < steps; ++i) step();
  double const seconds = (now() - start) / steps;
  return {seconds, seconds};
}

void wait() {}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void mark_memory() {
  std::ofstream("/proc/self/clear_refs") << 5;  // resets VmHWM
  marked = resident("VmRSS");
}
std::int64_t grown_memory() { return resident("VmHWM") - marked; }
std::int64_t free_memory() { return said("/proc/meminfo", "MemAvailable"); }

std::string about_platform() {
#if defined(_OPENMP)
  return ", \"threads\": " + std::to_string(omp_get_max_threads());
#else
  return ", \"threads\": 1";
#endif
}

}  // namespace bench
