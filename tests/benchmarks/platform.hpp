// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>

/// Where the contests of a program run and how they are measured: the host or a CUDA device. A program links either
/// platform_host.cpp or platform_device.cpp.
namespace bench {

struct timing {
  double seconds;       // of a step
  double host_seconds;  // until the call of a step returns
};

/// The mean over `steps` steps, started when nothing else is running.
timing time_steps(int steps, std::function<void()> const& step);
/// Waits until all steps are done.
void wait();
double now();

/// From here on, allocated memory counts as the contestant's own.
void mark_memory();
/// Bytes allocated since then: the maximum (host) or the current number (device).
std::int64_t grown_memory();
std::int64_t free_memory();

/// Members of an object in JSON, each after a comma, for the driver.
std::string about_platform();

}  // namespace bench
