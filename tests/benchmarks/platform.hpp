// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>

/// Where the contests of a program run, and what measures them: the host or a CUDA device. A program is linked with one
/// of platform_host.cpp and platform_device.cpp.
namespace bench {

struct timing {
  double seconds;       // of a step
  double host_seconds;  // until the call of a step returns
};

/// The mean over so many steps, from when nothing else is under way.
timing time_steps(int steps, std::function<void()> const& step);
/// Until all steps are done.
void wait();
double now();

/// From here on the memory that is taken counts as the contestant's own.
void mark_memory();
/// Bytes taken since then, at most (host) or now (device).
std::int64_t grown_memory();
std::int64_t free_memory();

/// Members of an object in JSON, each after a comma, for the driver.
std::string about_platform();

}  // namespace bench
