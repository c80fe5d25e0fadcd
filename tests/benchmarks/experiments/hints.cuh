// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/packet_io.hpp>

/// Loads and stores with cache hints, which the packet functions choose by the pointer's element type. The overloads
/// must be declared before the packet functions to be found.
namespace experiments {

enum class hint {
  none,
  streaming,    // .cs: likely to be used once
  no_allocate,  // not in the first level of the cache
  evict_first   // .L2::cache_hint with a policy that lets the second level drop it first
};

template <class T, hint Of> struct hinted { T value; };

template <hint Of> __device__ uint4 load_words([[maybe_unused]] uint4 const* p) {
#if defined(__CUDA_ARCH__)
  uint4 x;
  std::uint64_t const at = __cvta_generic_to_global(p);
  if constexpr (Of == hint::streaming) {
    asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(at));
  } else if constexpr (Of == hint::no_allocate) {
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(at));
  } else {
    asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
                 "  ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy; }"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(at));
  }
  return x;
#else
  return {};
#endif
}

template <hint Of> __device__ void store_words([[maybe_unused]] uint4* p, [[maybe_unused]] uint4 x) {
#if defined(__CUDA_ARCH__)
  std::uint64_t const at = __cvta_generic_to_global(p);
  if constexpr (Of == hint::streaming) {
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
  } else if constexpr (Of == hint::no_allocate) {
    asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1, %2, %3, %4};"
                 :: "l"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
  } else {
    asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
                 "  st.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, policy; }"
                 :: "l"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
  }
#endif
}

}  // namespace experiments

namespace descent::detail {

template <class Real, int M, experiments::hint Of>
DESCENT_HD void read(Real (&r)[M], experiments::hinted<float, Of> const* p, packet_extent e) {
#if defined(__CUDA_ARCH__)
  if constexpr (M == packet_size && Of != experiments::hint::none) {
    uint4 const word[2] = {experiments::load_words<Of>(reinterpret_cast<uint4 const*>(p)),
                           experiments::load_words<Of>(reinterpret_cast<uint4 const*>(p) + 1)};
    memcpy(r, word, sizeof word);
    return;
  }
#endif
  read(r, &p->value, e);
}

template <class Real, int M, experiments::hint Of>
DESCENT_HD void write(experiments::hinted<float, Of>* p, Real const (&r)[M], packet_extent e) {
#if defined(__CUDA_ARCH__)
  if constexpr (M == packet_size && Of != experiments::hint::none) {
    uint4 word[2];
    memcpy(word, r, sizeof word);
    experiments::store_words<Of>(reinterpret_cast<uint4*>(p), word[0]);
    experiments::store_words<Of>(reinterpret_cast<uint4*>(p) + 1, word[1]);
    return;
  }
#endif
  write(&p->value, r, e);
}

}  // namespace descent::detail
