// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "call.hpp"

namespace {

namespace ffi = xla::ffi;
using namespace adamw_step;

ffi::Error step(settings const& s, rate_argument lr, count_argument count, ffi::RemainingArgs args,
                count_result counted, ffi::RemainingRets rets) {
  return checked(s, count, args, counted, rets, [&](adamw const& rule, std::vector<tensor> const& tensors) {
    std::int32_t& t = *counted->typed_data();
    auto const k = terms_of(rule, *lr.typed_data(), std::int64_t(t) + 1);
    for (tensor const& x : tensors) {
#pragma omp parallel for simd if (parallel : x.n > 100'000)
      for (std::int64_t i = 0; i < x.n; ++i) update(x, i, k);
    }
    ++t;
    return ffi::Error::Success();
  });
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(descent_adamw, step, bound(ffi::Ffi::Bind()));
