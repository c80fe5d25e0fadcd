// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// Every pattern of the 16 bits that are dropped next to some that are kept, against the library.
#include "../verdict.hpp"

#include <descent/core/precision.hpp>

#include <bit>
#include <limits>

namespace {

std::uint16_t right(float x) { return std::bit_cast<std::uint16_t>(descent::narrow<descent::bfloat16>(x)); }

[[noreturn]] void fail(float x, std::uint16_t got) {
  char text[160];
  std::snprintf(text, sizeof text, "%.9g has the bits %08x; bfloat16_bits() returns %04x and should return %04x",
                double(x), unsigned(std::bit_cast<std::uint32_t>(x)), unsigned(got), unsigned(right(x)));
  std::string const sentence = text;
  auto const bits = std::bit_cast<std::uint32_t>(x);
  if (got == 0) learn::wrong(sentence + "; the lines are still to be written.");
  if ((bits & 0xffff) == 0x8000) learn::wrong(sentence + "; at a tie the number whose last bit is 0 is the right one.");
  if (got == bits >> 16) learn::wrong(sentence + "; are the lower bits cut off? Then every number moves towards 0.");
  if (got == std::uint16_t((bits >> 16) + 1)) learn::wrong(sentence + "; is it always rounded away from 0?");
  learn::wrong(sentence + ".");
}

}  // namespace

int main() {
  for (std::uint32_t kept : {0x3f80u, 0x3f81u, 0xc2ffu, 0x0000u, 0x8001u, 0x7f7eu})
    for (std::uint32_t dropped = 0; dropped < 0x10000; dropped += dropped < 0x7ff0 || dropped > 0x8010 ? 13 : 1) {
      auto const x = std::bit_cast<float>(kept << 16 | dropped);
      if (std::uint16_t const got = bfloat16_bits(x); got != right(x)) fail(x, got);
    }
  for (float x : {0.f, -0.f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max(), 1e-45f})
    if (std::uint16_t const got = bfloat16_bits(x); got != right(x)) fail(x, got);
}
