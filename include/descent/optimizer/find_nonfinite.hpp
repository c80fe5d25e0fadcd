// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>
#include <descent/core/precision.hpp>
#include <descent/optimizer/detail/optimizer_part.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

/// NaN and infinities in what an optimizer holds.
namespace descent {

class any_optimizer;

/// The elements of one tensor that are not finite.
struct nonfinite_elements {
  std::string name;    ///< as in a file: "W" for the values, "W.master", "W.state.m"
  std::int64_t first;  ///< the index of the first one in the whole tensor
  std::int64_t count;
};

namespace detail {

/// Adds the elements of a block, whose first one is element `begin` of the tensor.
template <class T> void add_nonfinite(nonfinite_elements& to, std::span<std::byte const> block, std::int64_t begin) {
  for (std::size_t at = 0; at < block.size(); at += sizeof(T)) {
    T x;
    std::memcpy(&x, block.data() + at, sizeof x);
    if (is_finite(widen<double>(x))) continue;
    if (to.count++ == 0) to.first = begin + std::int64_t(at / sizeof(T));
  }
}

/// Reads at most `most` bytes at a time.
inline std::vector<nonfinite_elements> find_nonfinite(run_part& part, std::size_t most = std::size_t{32} << 20) {
  std::vector<nonfinite_elements> all;
  for (run_piece const& p : part.pieces()) {
    nonfinite_elements found{p.name, 0, 0};
    auto const add_all = [&]<class T>(std::type_identity<T>) {
      std::int64_t begin = p.begin;
      each_block(p, part.memory(), most, [&](std::span<std::byte const> block) {
        add_nonfinite<T>(found, block, begin);
        begin += std::int64_t(block.size() / sizeof(T));
      });
    };
    if (p.type == dtype::f64) add_all(std::type_identity<double>());
    else if (p.type == dtype::f32) add_all(std::type_identity<float>());
    else if (p.type == dtype::f16) add_all(std::type_identity<half>());
    else if (p.type == dtype::bf16) add_all(std::type_identity<bfloat16>());
    if (found.count > 0) all.push_back(found);
  }
  return all;
}

}  // namespace detail

/// The tensors with elements that are NaN or infinite: values, masters, averages and state. Gradients are not among
/// them: see optimizer::diagnose(). Nor is a rule's memory; report().why names a term that is not finite. For
/// debugging: the host reads everything; on CUDA waits for the stream and copies from the device. With ranks, each
/// one looks at what it holds, and none waits for the others. Throws like optimizer::save().
template <class Optimizer> std::vector<nonfinite_elements> find_nonfinite(Optimizer const& opt) {
  auto& of = const_cast<Optimizer&>(opt);
  if constexpr (std::is_same_v<Optimizer, any_optimizer>)
    return detail::find_nonfinite(*detail::run_access::part_of(of));
  else {
    detail::run_access::part<Optimizer> part(of);
    return detail::find_nonfinite(part);
  }
}

}  // namespace descent
