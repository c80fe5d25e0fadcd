// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/math.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace descent {

/// A schedule is a pure function of the step: the number of updates applied so far, so 0 for the first one. Skipped
/// steps do not count. It is evaluated in double on host and device, so it is trivially copyable and its operator is
/// marked DESCENT_HD. Its domain is every step >= 0.
template <class S>
concept schedule = std::is_trivially_copyable_v<S> && requires(S const s, std::int64_t step) {
  { s(step) } -> std::same_as<double>;
};

}  // namespace descent
