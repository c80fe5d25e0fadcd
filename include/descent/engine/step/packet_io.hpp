// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/simd_pack.hpp>
#include <descent/policies/rounding.hpp>

#include <type_traits>

// g++ warns of each array whose bound is an int.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

/// Moves packets between memory and registers, with all conversions of types.
namespace descent::detail {

template <class Real> inline constexpr int lanes = 1;
template <> inline constexpr int lanes<pack> = 8;
/// The number of Reals in a packet.
template <class Real> inline constexpr int reals = int(packet_size) / lanes<Real>;

/// Tells the device compiler that p is in global memory; it treats pointers loaded from a table as generic.
template <class T> DESCENT_HD T* in_memory(T* p) {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isGlobal(p));
#endif
  return p;
}

#if defined(__CUDA_ARCH__)
/// Loads eight elements with one access per 16 bytes.
template <class T> __device__ void load_aligned(T (&x)[packet_size], T const* p) {
  constexpr int words = sizeof(x) / sizeof(uint4);
  uint4 word[words];
  for (int w = 0; w < words; ++w) word[w] = reinterpret_cast<uint4 const*>(in_memory(p))[w];
  memcpy(x, word, sizeof x);
}

/// Loads and widens eight elements. The compiler takes a bfloat16 out of the upper half of a word in two steps.
template <class T, class Real> __device__ void load_widened(Real (&r)[packet_size], T const* p) {
  if constexpr (std::is_same_v<T, bfloat16> && std::is_same_v<Real, float>) {
    uint4 const x = *reinterpret_cast<uint4 const*>(in_memory(p));
    unsigned const word[] = {x.x, x.y, x.z, x.w};
    for (int w = 0; w < 4; ++w) {
      r[2 * w] = __uint_as_float(word[w] << 16);
      r[2 * w + 1] = __uint_as_float(word[w] & 0xffff0000);
    }
  } else {
    T x[packet_size];
    load_aligned(x, p);
    for (int j = 0; j < packet_size; ++j) r[j] = widen<Real>(x[j]);
  }
}

/// Converts two floats to one word of two 16-bit elements.
template <class T> __device__ unsigned pair_of(float low, float high) {
  if constexpr (std::is_same_v<T, half>) {
    __half2 const x = __floats2half2_rn(low, high);
    return *reinterpret_cast<unsigned const*>(&x);
  } else {
    __nv_bfloat162 const x = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<unsigned const*>(&x);
  }
}
template <class T, class Real> __device__ void store_aligned(T* p, Real const (&r)[packet_size]) {
  if constexpr (sizeof(T) == 2 && std::is_same_v<Real, float>) {
    // An intrinsic, because the compiler splits a store of such a uint4 into four.
    __stwb(reinterpret_cast<uint4*>(in_memory(p)),
           make_uint4(pair_of<T>(r[0], r[1]), pair_of<T>(r[2], r[3]), pair_of<T>(r[4], r[5]), pair_of<T>(r[6], r[7])));
  } else {
    T x[packet_size];
    for (int j = 0; j < packet_size; ++j) x[j] = narrow<T>(r[j]);
    constexpr int words = sizeof(x) / sizeof(uint4);
    uint4 word[words];
    memcpy(word, x, sizeof x);
    for (int w = 0; w < words; ++w) reinterpret_cast<uint4*>(in_memory(p))[w] = word[w];
  }
}
#endif

/// How much of a packet there is: the number of elements, and whether that is all eight and, on a device, 16-byte
/// aligned.
struct packet_extent {
  int size;
  bool whole;
};

/// Reads a packet from p, or one element if M is 1. Beyond the packet's size, the host repeats the first element, so
/// that arithmetic traps there only if it does elsewhere. The device, where nothing traps, uses 0 and saves the access.
template <class Real, int M, class T> DESCENT_HD void read(Real (&r)[M], T const* p, packet_extent e) {
  if constexpr (M * lanes<Real> == 1) {
    r[0] = widen<Real>(*in_memory(p));
  } else {
#if defined(__CUDA_ARCH__)
    if constexpr (lanes<Real> == 1) {
      if (e.whole) load_widened(r, p);
      else for (int j = 0; j < packet_size; ++j) r[j] = j < e.size ? widen<Real>(in_memory(p)[j]) : Real(0);
    }
#else
    if constexpr (lanes<Real> == 1) {
      for (int j = 0; j < packet_size; ++j) r[j] = widen<Real>(p[j < e.size ? j : 0]);
    } else if (e.whole) {
      load(r[0], p);
    } else {
      T x[packet_size];
      for (int j = 0; j < packet_size; ++j) x[j] = p[j < e.size ? j : 0];
      load(r[0], static_cast<T const*>(x));
    }
#endif
  }
}

/// Writes a packet, or one element, to p, rounded to T. On the device a packet must be whole.
template <class Real, int M, class T> DESCENT_HD void write(T* p, Real const (&r)[M], packet_extent e) {
  if constexpr (M * lanes<Real> == 1) {
    *in_memory(p) = narrow<T>(r[0]);
  } else {
#if defined(__CUDA_ARCH__)
    if constexpr (lanes<Real> == 1) store_aligned(p, r);
#else
    if constexpr (lanes<Real> == 1) {
      for (int j = 0; j < e.size; ++j) p[j] = narrow<T>(r[j]);
    } else if (e.whole) {
      store(p, r[0]);
    } else {
      T x[packet_size];
      store(x, r[0]);
      for (int j = 0; j < e.size; ++j) p[j] = x[j];
    }
#endif
  }
}

#if defined(__CUDA_ARCH__)
inline constexpr bool in_device_code = true;
#else
inline constexpr bool in_device_code = false;
#endif
/// Writes zeros. On the device by a plain store: one of __stwb is ordered before the thread's later accesses.
template <class Real, int M, class T> DESCENT_HD void write_zeros(T* p, packet_extent e) {
  if constexpr (in_device_code && M == packet_size && lanes<Real> == 1 && sizeof(T) == 2) {
#if defined(__CUDA_ARCH__)
    asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(__cvta_generic_to_global(p)), "r"(0) : "memory");
#endif
  } else {
    Real zero[M];
    for (auto& one : zero) one = Real(0);
    write(p, zero, e);
  }
}

/// Reads or writes elements without conversion. On the device a packet must be whole to be written.
template <class T, int M> DESCENT_HD void read_raw(T (&x)[M], T const* p, packet_extent e) {
#if defined(__CUDA_ARCH__)
  if constexpr (M == packet_size)
    if (e.whole) return load_aligned(x, p);
#endif
  for (int j = 0; j < M; ++j) x[j] = in_memory(p)[j < e.size ? j : 0];
}
template <class T, int M> DESCENT_HD void write_raw(T* p, T const (&x)[M], packet_extent e) {
#if defined(__CUDA_ARCH__)
  if constexpr (M == packet_size) __stwb(reinterpret_cast<uint4*>(in_memory(p)), *reinterpret_cast<uint4 const*>(x));
  else *in_memory(p) = x[0];
#else
  for (int j = 0; j < M; ++j)
    if (j < e.size) p[j] = x[j];
#endif
}

/// Element j of a packet.
template <class Real, int M> DESCENT_HD auto& lane_at(Real (&r)[M], int j) {
  if constexpr (lanes<std::remove_const_t<Real>> == 1) return r[j];
  else return r[0].lane[j];
}

/// Joins a bfloat16 and the 16 bits that it lacks into a float, and splits it again; see master_remainder.
template <class Real, int M>
DESCENT_HD void read_joined(Real (&r)[M], bfloat16 const* value, std::uint16_t const* remainder, packet_extent e) {
  constexpr int n = M * lanes<Real>;
  bfloat16 v[n];
  std::uint16_t low[n];
  read_raw(v, value, e);
  read_raw(low, remainder, e);
  for (int j = 0; j < n; ++j) {
    auto const high = std::uint32_t(__bfloat16_as_ushort(v[j])) << 16;
    lane_at(r, j) = __builtin_bit_cast(float, high + std::uint32_t(std::int32_t(std::int16_t(low[j]))));
  }
}
template <class Real, int M>
DESCENT_HD void write_joined(bfloat16* value, std::uint16_t* remainder, Real const (&r)[M], packet_extent e) {
  constexpr int n = M * lanes<Real>;
  alignas(16) bfloat16 v[n];
  alignas(16) std::uint16_t low[n];
  for (int j = 0; j < n; ++j) {
    float const x = float(lane_at(r, j));
    std::uint32_t const bits = is_nan(x) ? 0x7fc00000u : __builtin_bit_cast(std::uint32_t, x);
    v[j] = __ushort_as_bfloat16((unsigned short)((bits + 0x8000u) >> 16));
    low[j] = std::uint16_t(bits);
  }
  write_raw(value, v, e);
  write_raw(remainder, low, e);
}

/// Whether a finite number of type Real can be beyond the largest finite T.
template <class T, class Real>
inline constexpr bool can_overflow = sizeof(T) == 2 || (std::is_same_v<T, float> && std::is_same_v<Real, double>);
/// x, or the largest finite T with its sign if x is finite and beyond that. Infinity and NaN stay.
template <class T, class Real> DESCENT_HD Real saturated(Real const& x) {
  constexpr double most = largest_finite<T>;
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<Real, float>)
    return fabsf(x) < __builtin_huge_valf() ? copysignf(fminf(fabsf(x), float(most)), x) : x;
#endif
  Real const limit(most);
  return select(is_finite(x), select(x > limit, limit, select(x < -limit, -limit, x)), x);
}
template <class T, class Real, int M> DESCENT_HD void saturate(Real (&r)[M]) {
  if constexpr (can_overflow<T, Real>)
    for (int j = 0; j < M; ++j) r[j] = saturated<T>(r[j]);
}
/// Writes a packet, or one element, saturated.
template <class Real, int M, class T> DESCENT_HD void write_saturated(T* p, Real const (&r)[M], packet_extent e) {
  if constexpr (!can_overflow<T, Real>) {
    write(p, r, e);
  } else if constexpr (lanes<Real> == 1) {
    Real s[M];
    for (int j = 0; j < M; ++j) s[j] = saturated<T>(r[j]);
    write(p, s, e);
  } else if (e.whole) {
    store_saturated(p, r[0]);
  } else {
    T x[packet_size];
    store_saturated(x, r[0]);
    for (int j = 0; j < e.size; ++j) p[j] = x[j];
  }
}

/// x[j] without an index, so that x stays in registers.
template <class T> DESCENT_HD T pick(T const (&x)[packet_size], int j) {
  T const low = j & 2 ? (j & 1 ? x[3] : x[2]) : (j & 1 ? x[1] : x[0]);
  T const high = j & 2 ? (j & 1 ? x[7] : x[6]) : (j & 1 ? x[5] : x[4]);
  return j & 4 ? high : low;
}

/// Copies eight numbers to a packet, or number `lane` to one element.
template <class Real, int M> DESCENT_HD void from_lanes(Real (&r)[M], float const (&x)[packet_size], int lane) {
  if constexpr (M * lanes<Real> == 1) r[0] = pick(x, lane);
  else for (int j = 0; j < M * lanes<Real>; ++j) lane_at(r, j) = x[j];
}

/// x rounded stochastically to T, like narrow_stochastic(). Values that this rounds to nearest may be left to store().
template <class T> DESCENT_HD float rounded_at_random(float x, std::uint32_t random) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    std::uint32_t const bits = __builtin_bit_cast(std::uint32_t, x);
    float const rounded = __builtin_bit_cast(float, (bits + random) & 0xffff0000);
#if defined(__CUDA_ARCH__)
    bool const has_neighbours = abs(x) < 0x1.fep127f;
#else
    bool const has_neighbours = (bits & 0x7fffffff) < 0x7f7f0000;  // -ffinite-math-only may let NaN pass abs(x) < ...
#endif
    return has_neighbours ? rounded : x;
  } else {
    return widen<float>(narrow_stochastic<T>(x, random));
  }
}

/// Rounds stochastically to storage type T and converts back.
template <class T, class Real, int M>
DESCENT_HD void round_lanes(Real (&r)[M], std::uint32_t const (&random)[packet_size], int lane) {
  for (int j = 0; j < M * lanes<Real>; ++j) {
    auto& x = lane_at(r, j);
    x = rounded_at_random<T>(float(x), M * lanes<Real> == 1 ? pick(random, lane) : random[j]);
  }
}

/// Rounds to nearest in storage type T and converts back.
template <class T, class Real, int M> DESCENT_HD void round_to(Real (&r)[M]) {
  if constexpr (lanes<Real> == 1) {
    for (auto& x : r) x = widen<Real>(narrow<T>(x));
  } else if constexpr (!std::is_same_v<T, float>) {
    T x[packet_size];
    store(x, r[0]);
    load(r[0], x);
  }
}

}  // namespace descent::detail

#pragma GCC diagnostic pop
