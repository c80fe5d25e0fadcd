// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/checkpoint.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// A device on the host, for tests of what copies from a device.
namespace test {

/// Memory that the host reaches only by copies. They are made at once, or as late as when somebody waits for them.
class remote_memory final : public descent::detail::run_memory {
 public:
  bool on_host() const override { return false; }
  void copy(void* to, void const* from, std::size_t bytes) override {
    if (late) jobs_.push_back({to, from, bytes});
    else run_memory::copy(to, from, bytes);
  }
  descent::detail::staging_memory staging(std::size_t bytes) override {
    ++allocations;
    largest = std::max(largest, bytes);
    return run_memory::staging(bytes);
  }
  descent::detail::sole_function<> mark() override {
    return descent::detail::sole_function<>([all = std::exchange(jobs_, {})] {
      for (auto const& j : all) std::memcpy(j.to, j.from, j.bytes);
    });
  }
  static inline bool late = true;
  int allocations = 0;
  std::size_t largest = 0;

 private:
  struct job {
    void* to;
    void const* from;
    std::size_t bytes;
  };
  std::vector<job> jobs_;
};

/// A tensor there.
struct remote {
  std::string name;
  std::vector<std::uint32_t> x;
  remote_memory memory{};
};
struct remote_part final : descent::detail::run_part {
  explicit remote_part(remote& part_of) : of(part_of) {}
  std::vector<descent::detail::run_piece> pieces() override {
    auto const n = std::int64_t(of.x.size());
    return {descent::detail::whole_piece(of.name, of.x.data(), {n}, n)};
  }
  descent::detail::run_memory& memory() override { return of.memory; }
  void check(descent::detail::run_answers const& answers, descent::detail::run_summary const*) override {
    from = answers(of.name);
  }
  void take() override {
    of.memory.copy(of.x.data(), from.data(), from.size());
    of.memory.mark()();
  }
  remote& of;
  std::span<std::byte const> from;
};

}  // namespace test

template <> struct descent::detail::part_maker<test::remote> {
  static named_part make(test::remote& of) { return {"", std::make_unique<test::remote_part>(of)}; }
};
