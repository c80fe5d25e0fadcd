// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/optimizer.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace ds = descent;
using ds::bfloat16;

TEST_CASE("trap 4: more than 2^31 elements are all updated, first and last") {
  // The pages between the first, the one around 2^31 and the last all map to the same small memory.
  constexpr std::int64_t count = (std::int64_t{1} << 31) + 17, window = 1 << 25;  // bytes
  std::int64_t const page = sysconf(_SC_PAGESIZE), bytes = (2 * count + page - 1) / page * page;
  auto const room = [&](bool shared) {
    auto* const base = static_cast<char*>(
        mmap(nullptr, std::size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    REQUIRE(base != MAP_FAILED);
    if (!shared) return base;  // never written: the page of zeros
    std::FILE* const file = std::tmpfile();
    REQUIRE(file);
    REQUIRE(ftruncate(fileno(file), window) == 0);
    for (std::int64_t at = page; at + page < bytes; at += window) {
      std::int64_t const end = std::min(at + window, bytes - page);
      REQUIRE(mmap(base + at, std::size_t(end - at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(file), 0) ==
              base + at);
    }
    std::int64_t const middle = (std::int64_t{1} << 32) / page * page;  // element 2^31
    REQUIRE(mmap(base + middle - page, std::size_t(2 * page), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base + middle - page);
    std::fclose(file);
    return base;
  };
  char *const v = room(true), *const g = room(false);
  auto* const value = reinterpret_cast<bfloat16*>(v);
  auto* const gradient = reinterpret_cast<bfloat16*>(g);
  std::int64_t const places[] = {0, 1, 15, (std::int64_t{1} << 31) - 1, std::int64_t{1} << 31, count - 9, count - 1};
  for (auto i : places) value[i] = ds::narrow<bfloat16>(1.f), gradient[i] = ds::narrow<bfloat16>(0.5f);
  ds::parameters<bfloat16> params;
  params.add("w", value, gradient, count);
  ds::optimizer opt{params, ds::sgd{.lr = 0.5}};
  opt.step();
  for (auto i : places) {
    CAPTURE(i);
    CHECK(ds::widen<double>(value[i]) == 0.75);
  }
  CHECK(ds::widen<double>(value[2]) == 0);
  munmap(v, std::size_t(bytes));
  munmap(g, std::size_t(bytes));
}
#endif
