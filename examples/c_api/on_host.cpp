// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "make.hpp"

#include <descent/matrices/host.hpp>

#include <cstring>

namespace {

struct host_backend {
  descent::host<> policy() const { return {}; }
  static bool is_device_error(std::exception const&) { return false; }
  static void fetch(void* to, void const* from, std::size_t bytes) {
    if (bytes) std::memcpy(to, from, bytes);
  }
};

}  // namespace

c_api::made c_api::make_on_host(recipe const& r) { return make(r, host_backend{}); }
