// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "adamw.hpp"

#include <xla/ffi/api/ffi.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

/// What a call from XLA carries. Arguments: lr, count, all p, all g, all m, all v. Results: count, all p, all m, all v,
/// each in the memory of the argument.
namespace adamw_step {

namespace ffi = xla::ffi;

struct settings { double beta1, beta2, eps, weight_decay; };
using rate_argument = ffi::BufferR0<ffi::F32>;
using count_argument = ffi::BufferR0<ffi::S32>;
using count_result = ffi::ResultBufferR0<ffi::S32>;

/// Adds all that to a binding.
template <class Binding> auto bound(Binding&& b) {
  return std::move(b)
      .template Attrs<settings>()
      .template Arg<rate_argument>()
      .template Arg<count_argument>()
      .RemainingArgs()
      .template Ret<count_argument>()
      .RemainingRets();
}

inline ffi::Error invalid(std::string const& what) { return ffi::Error::InvalidArgument("descent_adamw: " + what); }

/// A shape as "(4, 3)".
inline std::string text(ffi::AnyBuffer::Dimensions shape) {
  std::string all;
  for (auto const extent : shape) all += (all.empty() ? "" : ", ") + std::to_string(extent);
  return "(" + all + ")";
}

/// Calls f(rule, tensors) if the call is as described.
template <class F>
ffi::Error checked(settings const& s, count_argument count, ffi::RemainingArgs const& args, count_result result,
                   ffi::RemainingRets const& rets, F const& f) try {
  adamw const rule{.beta1 = s.beta1, .beta2 = s.beta2, .eps = s.eps, .weight_decay = s.weight_decay};
  for (auto const& field : adamw::ranges)  // the arithmetic is float
    if (double const x = field.of(rule); !field.allowed.holds<float>(x))
      return invalid(field.name(rule) + " must be " + field.allowed.text + " in float, is " +
                     descent::detail::number(x));
  std::size_t const n = args.size() / 4;
  if (args.size() != 4 * n || rets.size() != 3 * n)
    return invalid("there must be 4 arguments and 3 results per parameter, got " + std::to_string(args.size()) +
                   " and " + std::to_string(rets.size()));
  bool in_place = count.untyped_data() == result->untyped_data();
  std::vector<tensor> tensors;
  for (std::size_t i = 0; i < n; ++i) {
    std::string const who = "parameter " + std::to_string(i);
    float* data[4];
    ffi::AnyBuffer::Dimensions shape;
    std::size_t size = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      auto const in = args.get<ffi::AnyBuffer>(j * n + i);
      if (in->element_type() != ffi::F32) return invalid(who + ", its gradient and its moments must be float32");
      auto const its_shape = in->dimensions();
      if (j > 0 && !std::ranges::equal(its_shape, shape))
        return invalid(who + ", its gradient and its moments differ in shape: " + text(shape) + " and " +
                       text(its_shape));
      shape = its_shape;
      size = in->element_count();
      data[j] = in->template typed_data<float>();
      if (j == 1) continue;  // the gradient is no result
      auto out = rets.get<ffi::AnyBuffer>((j == 0 ? 0 : j - 1) * n + i);
      in_place = in_place && (*out)->untyped_data() == data[j];
    }
    tensors.push_back({data[0], data[1], data[2], data[3], std::int64_t(size)});
  }
  if (!in_place) return invalid("a result has memory of its own; give input_output_aliases");
  return f(rule, tensors);
} catch (std::exception const& e) {
  return invalid(e.what());
}

}  // namespace adamw_step

XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(adamw_step::settings, xla::ffi::StructMember<double>("beta1"),
                                      xla::ffi::StructMember<double>("beta2"), xla::ffi::StructMember<double>("eps"),
                                      xla::ffi::StructMember<double>("weight_decay"));
