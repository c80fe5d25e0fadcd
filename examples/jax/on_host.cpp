// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "call.hpp"

namespace {

namespace ffi = xla::ffi;
using namespace adamw_step;

ffi::Error step(settings const& s, rate_argument lr, count_argument count, ffi::RemainingArgs args, count_result result,
                ffi::RemainingRets rets) {
  return checked(s, count, args, result, rets, [&](adamw const& rule, std::vector<tensor> const& tensors) {
    std::int32_t& t = *result->typed_data();
    float const rate = *lr.typed_data();
    if (!is_step(rate, t))
      return invalid("the learning rate must be finite and at least 0, is " + descent::detail::number(rate) +
                     "; the count must be at least 0, is " + std::to_string(t));
    auto const k = terms_of(rule, rate, std::int64_t(t) + 1);
    for (tensor const& x : tensors) {
#pragma omp parallel for simd if (parallel : x.n > 100'000)
      for (std::int64_t i = 0; i < x.n; ++i) update(x, i, k);
    }
    t = counted(t);
    return ffi::Error::Success();
  });
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(descent_adamw, step, bound(ffi::Ffi::Bind()));
