// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/layout.hpp>
#include <descent/detail/pack.hpp>

#include <type_traits>

/// Packets between memory and registers, with every conversion of type on the way.
namespace descent::detail {

template <class Real> inline constexpr int lanes = 1;
template <> inline constexpr int lanes<pack> = 8;
/// The length of a packet in Reals.
template <class Real> inline constexpr int reals = int(packet_size) / lanes<Real>;

#if defined(__CUDA_ARCH__)
/// Eight elements of a 16-byte aligned packet in as few accesses as there are 16 bytes. Pointers that come from a table
/// in memory are generic to the compiler unless told otherwise.
template <class T> __device__ void load_aligned(T (&r)[packet_size], T const* p) {
  __builtin_assume(__isGlobal(p));
  constexpr int words = sizeof(r) / sizeof(uint4);
  uint4 word[words];
  for (int w = 0; w < words; ++w) word[w] = reinterpret_cast<uint4 const*>(p)[w];
  memcpy(r, word, sizeof r);
}
template <class T> __device__ void store_aligned(T* p, T const (&r)[packet_size]) {
  __builtin_assume(__isGlobal(p));
  constexpr int words = sizeof(r) / sizeof(uint4);
  uint4 word[words];
  memcpy(word, r, sizeof r);
  for (int w = 0; w < words; ++w) reinterpret_cast<uint4*>(p)[w] = word[w];
}
#endif

/// Reads n <= 8 elements from p. What lies beyond n repeats the first element, which keeps the arithmetic there as
/// harmless as elsewhere; the device, where nothing traps, puts 0 and saves the access.
template <class Real, class T>
DESCENT_HD void read(Real (&r)[reals<Real>], T const* p, int n, [[maybe_unused]] bool aligned) {
#if defined(__CUDA_ARCH__)
  if constexpr (lanes<Real> == 1) {
    T x[packet_size];
    if (aligned && n == packet_size) {
      load_aligned(x, p);
    } else {
      __builtin_assume(__isGlobal(p));
      for (int j = 0; j < packet_size; ++j) x[j] = j < n ? p[j] : T(0.f);
    }
    for (int j = 0; j < packet_size; ++j) r[j] = widen<Real>(x[j]);
  }
#else
  if (n == packet_size) {
    if constexpr (lanes<Real> == 1) for (int j = 0; j < packet_size; ++j) r[j] = widen<Real>(p[j]);
    else load(r[0], p);
  } else {
    T x[packet_size];
    for (int j = 0; j < packet_size; ++j) x[j] = p[j < n ? j : 0];
    read(r, static_cast<T const*>(x), packet_size, false);
  }
#endif
}

/// Writes the first n elements to p, rounded to its type.
template <class Real, class T>
DESCENT_HD void write(T* p, Real const (&r)[reals<Real>], int n, [[maybe_unused]] bool aligned) {
#if defined(__CUDA_ARCH__)
  if constexpr (lanes<Real> == 1) {
    T x[packet_size];
    for (int j = 0; j < packet_size; ++j) x[j] = narrow<T>(r[j]);
    if (aligned && n == packet_size) {
      store_aligned(p, x);
    } else {
      __builtin_assume(__isGlobal(p));
      for (int j = 0; j < packet_size; ++j)
        if (j < n) p[j] = x[j];
    }
  }
#else
  if (n == packet_size) {
    if constexpr (lanes<Real> == 1) for (int j = 0; j < packet_size; ++j) p[j] = narrow<T>(r[j]);
    else store(p, r[0]);
  } else {
    T x[packet_size];
    write(x, r, packet_size, false);
    for (int j = 0; j < n; ++j) p[j] = x[j];
  }
#endif
}

/// Rounds to storage type T and back.
template <class T, class Real> DESCENT_HD void round_to(Real (&r)[reals<Real>]) {
  if constexpr (lanes<Real> == 1) {
    for (auto& x : r) x = widen<Real>(narrow<T>(x));
  } else if constexpr (!std::is_same_v<T, float>) {
    T x[packet_size];
    store(x, r[0]);
    load(r[0], x);
  }
}

/// The first n elements in double, 0 beyond.
template <class Real> DESCENT_HD void to_doubles(double (&out)[packet_size], Real const (&r)[reals<Real>], int n) {
  if constexpr (lanes<Real> == 1) for (int j = 0; j < packet_size; ++j) out[j] = double(r[j]);
  else store_doubles(out, r[0]);
  if (n < packet_size)
    for (int j = 0; j < packet_size; ++j)
      if (j >= n) out[j] = 0;
}

}  // namespace descent::detail
