// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/simd_pack.hpp>

#include <cstdint>
#include <type_traits>

namespace descent::detail {

/// One pass over the chunks. Body::operator()<Real>(chunk) processes one chunk.
template <class Real, class Body> struct chunk_pass {
  Body const* body;
  bool use_lanes;

  void operator()(std::int64_t chunk) const {
    if constexpr (std::is_same_v<Real, float>)
      if (use_lanes) return in_lanes(*body, chunk);
    body->template operator()<Real>(chunk);
  }

 private:
  /// `flatten` inlines everything that the body calls, so all of it is compiled for the processor's SIMD lanes.
  DESCENT_LANES [[gnu::flatten]] static void in_lanes(Body const& b, std::int64_t chunk) {
    b.template operator()<pack>(chunk);
  }
};

}  // namespace descent::detail
