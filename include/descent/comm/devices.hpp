// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unistd.h>
#include <vector>

namespace descent::comm {

/// The device that a rank uses, as plain bytes that ranks can gather.
struct device_place {
  char host[64] = {};    ///< for messages
  char system[64] = {};  ///< the running kernel, shared by its containers; devices are compared within it
  char device[64] = {};  ///< the device's UUID

  /// The fields as text.
  std::string_view host_name() const { return of(host); }
  std::string_view system_name() const { return of(system); }
  std::string_view device_name() const { return of(device); }

 private:
  static std::string_view of(char const (&text)[64]) { return {text, ::strnlen(text, sizeof text)}; }
};
static_assert(std::is_trivially_copyable_v<device_place>);

/// Throws std::invalid_argument if a text is empty or has more than 63 characters.
inline device_place make_device_place(std::string const& host, std::string const& system, std::string const& device) {
  device_place p;
  auto const put = [](char (&to)[64], char const* field, std::string const& text) {
    if (text.empty() || text.size() >= sizeof to)
      throw std::invalid_argument(std::string("device_place: ") + field + " must have 1 to 63 characters, is '" + text +
                                  "'");
    text.copy(to, text.size());
  };
  put(p.host, "host", host);
  put(p.system, "system", system);
  put(p.device, "device", device);
  return p;
}

/// A device of this machine. The system is the kernel's boot id, or the host name if there is none.
inline device_place device_place_here(std::string const& device) {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || !host[0]) host[0] = '?';
  std::string const name = std::string(host).substr(0, 63);
  char boot[64] = {};
  if (std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fscanf(file, "%63s", boot) != 1) boot[0] = '\0';
    std::fclose(file);
  }
  return make_device_place(name, boot[0] ? boot : name, device);
}

/// Throws std::invalid_argument if two ranks use the same device. Entry r is the device of rank r. Ranks that pass the
/// same entries throw the same message.
inline void require_distinct_devices(std::span<device_place const> of_rank) {
  auto const same = [&](std::size_t a, std::size_t b) {
    return of_rank[a].system_name() == of_rank[b].system_name() && of_rank[a].device_name() == of_rank[b].device_name();
  };
  std::vector<std::size_t> order(of_rank.size());
  for (std::size_t r = 0; r < order.size(); ++r) order[r] = r;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    int const system = of_rank[a].system_name().compare(of_rank[b].system_name());
    return system != 0 ? system < 0 : of_rank[a].device_name() < of_rank[b].device_name();
  });
  std::size_t first = order.size();
  for (std::size_t i = 1; i < order.size(); ++i)
    if (same(order[i - 1], order[i]) && (first == order.size() || order[i - 1] < order[first])) first = i - 1;
  if (first == order.size()) return;

  std::string ranks = "ranks " + std::to_string(order[first]);
  std::size_t end = first + 1;
  while (end < order.size() && same(order[first], order[end])) ++end;
  for (std::size_t i = first + 1; i < end; ++i) ranks += (i + 1 == end ? " and " : ", ") + std::to_string(order[i]);
  auto const& place = of_rank[order[first]];
  throw std::invalid_argument(ranks + " use the same device, " + std::string(place.device_name()) + " on " +
                              std::string(place.host_name()) +
                              ": give each rank its own, by cudaSetDevice(local_rank) or CUDA_VISIBLE_DEVICES");
}

/// The same for the device that this rank uses, over a communicator in host memory. Waits for all ranks.
template <communicator Comm>
requires(!Comm::on_device) void require_distinct_devices(Comm& comm, std::string const& device) {
  device_place const mine = device_place_here(device);
  std::vector<device_place> all(std::size_t(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)).data(), std::as_writable_bytes(std::span(all)).data(),
                  std::int64_t(sizeof mine));
  require_distinct_devices(std::span<device_place const>(all));
}

/// Throws std::invalid_argument if local_rank has no device on this node.
inline void require_local_device(int local_rank, int devices) {
  if (local_rank < 0 || local_rank >= devices)
    throw std::invalid_argument("local_rank must be in [0, " + std::to_string(devices) + "), the devices that this "
                                "process sees, is " + std::to_string(local_rank) +
                                ": start fewer ranks on this node, or list more devices in CUDA_VISIBLE_DEVICES");
}

/// The number for cudaSetDevice: local_rank, or 0 if the process sees one device only, as with Slurm's
/// --gpus-per-task=1. Whether ranks share one is not known here; comm::nccl and require_distinct_devices compare.
/// Throws like require_local_device.
inline int local_device(int local_rank, int devices) {
  if (devices == 1 && local_rank >= 0) return 0;
  require_local_device(local_rank, devices);
  return local_rank;
}

}  // namespace descent::comm
