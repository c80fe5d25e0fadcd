// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/threads.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

using communicator = descent::comm::threads::member;

inline void begin(communicator& comm, std::vector<float>& p) { comm.broadcast(p.data(), std::int64_t(p.size()), 0); }

inline void step(communicator& comm, std::vector<float>& p, std::vector<float>& g, float lr) {
  comm.all_reduce(g.data(), std::int64_t(g.size()));
  for (std::size_t i = 0; i < p.size(); ++i) p[i] -= lr * (g[i] / float(comm.size()));
}
