// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>

#include <cstdint>
#include <type_traits>

/// Eight floats as one number type for rules on the host. On x86-64 its functions are compiled for AVX2 and F16C
/// whatever the flags, and the host backend checks the processor before it uses them; elsewhere they are compiled as
/// the flags say. They use fused multiply-add only if the flags allow it, so neither choice changes a bit.
///
/// Copies are user-provided so that a pack is passed by reference, with one calling convention with and without AVX.
/// Device code never uses a pack, but nvcc also compiles these functions in its device pass: there they are empty.
#if defined(__x86_64__)
#define DESCENT_LANES [[gnu::target("avx2,f16c")]]
#else
#define DESCENT_LANES
#endif

namespace descent::detail {

using descent::abs, descent::cbrt, descent::pow, descent::select, descent::sqrt;  // next to those of packs
using descent::is_finite, descent::is_nan;

#if !defined(__CUDA_ARCH__)
typedef float floats __attribute__((vector_size(32), may_alias));
typedef std::int32_t ints __attribute__((vector_size(32), may_alias));
typedef std::uint32_t words __attribute__((vector_size(32), may_alias));
typedef std::uint16_t shorts __attribute__((vector_size(16), may_alias));
typedef float loose_floats __attribute__((vector_size(32), may_alias, aligned(4)));  // any address
typedef std::uint16_t loose_shorts __attribute__((vector_size(16), may_alias, aligned(2)));
typedef float four_floats __attribute__((vector_size(16), may_alias));
typedef double doubles __attribute__((vector_size(32), may_alias, aligned(8)));
typedef long long longs __attribute__((vector_size(32), may_alias));
typedef unsigned long long unsigned_longs __attribute__((vector_size(32), may_alias));

// Conversions of width in one or two instructions; GCC 12 needs many for __builtin_convertvector.
#if defined(__x86_64__) && !defined(__clang__)
DESCENT_LANES inline words to_words(shorts x) {
  typedef short signed_shorts __attribute__((vector_size(16)));
  return (words)__builtin_ia32_pmovzxwd256((signed_shorts)x);
}
DESCENT_LANES inline shorts to_shorts(words x) {  // of values below 2^16
  typedef int signed_words __attribute__((vector_size(32)));
  typedef long long quads __attribute__((vector_size(32), may_alias));
  auto const halves = (quads)__builtin_ia32_packusdw256((signed_words)x, (signed_words)x);
  quads const packed = __builtin_ia32_permdi256(halves, 0b1000);
  return *reinterpret_cast<shorts const*>(&packed);
}
DESCENT_LANES inline doubles to_doubles(four_floats x) { return __builtin_ia32_cvtps2pd256(x); }
DESCENT_LANES inline words even_products(words a, words b) {  // of words 0, 2, 4 and 6, 64 bits each
  typedef int signed_words __attribute__((vector_size(32)));
  return (words)__builtin_ia32_pmuludq256((signed_words)a, (signed_words)b);
}
#else
DESCENT_LANES inline words to_words(shorts x) { return __builtin_convertvector(x, words); }
DESCENT_LANES inline shorts to_shorts(words x) { return __builtin_convertvector(x, shorts); }
DESCENT_LANES inline doubles to_doubles(four_floats x) { return __builtin_convertvector(x, doubles); }
DESCENT_LANES inline words even_products(words a, words b) {
  return (words)(((unsigned_longs)a & 0xffffffff) * ((unsigned_longs)b & 0xffffffff));
}
#endif

#define DESCENT_PACK(type, expression) type r; r.lanes() = expression; return r
#define DESCENT_PACK_DO(statement) statement
#else
#define DESCENT_PACK(type, expression) return type{}
#define DESCENT_PACK_DO(statement)
#endif

struct pack_mask {
  alignas(32) std::int32_t lane[8];  // 0 or -1

  pack_mask() = default;
  DESCENT_LANES DESCENT_HD pack_mask(pack_mask const& o) { *this = o; }
  DESCENT_LANES DESCENT_HD pack_mask& operator=(pack_mask const& o) {
    DESCENT_PACK_DO(lanes() = o.lanes());
    return *this;
  }
  /// Exists only for its static_assert.
  template <class Bool> requires std::is_same_v<Bool, bool> explicit operator Bool() const {
    static_assert(!std::is_same_v<Bool, bool>,
                  "a rule has no branches, as eight elements are computed at once: use select(condition, a, b)");
    return false;
  }
#if !defined(__CUDA_ARCH__)
  ints& lanes() { return *reinterpret_cast<ints*>(lane); }
  ints const& lanes() const { return *reinterpret_cast<ints const*>(lane); }
#endif
};

struct pack {
  alignas(32) float lane[8];

  pack() = default;
  DESCENT_LANES DESCENT_HD pack(float x) { DESCENT_PACK_DO(lanes() = x - floats{}); }
  /// Real(x) of a rule's double gives no warning about floats.
  template <class Double> requires std::is_same_v<Double, double>
  DESCENT_LANES DESCENT_HD explicit pack(Double x) : pack(float(x)) {}
  DESCENT_LANES DESCENT_HD pack(pack const& o) { *this = o; }
  DESCENT_LANES DESCENT_HD pack& operator=(pack const& o) {
    DESCENT_PACK_DO(lanes() = o.lanes());
    return *this;
  }
#if !defined(__CUDA_ARCH__)
  floats& lanes() { return *reinterpret_cast<floats*>(lane); }
  floats const& lanes() const { return *reinterpret_cast<floats const*>(lane); }
#endif
};

#define DESCENT_BINARY(result, op)                                                   \
  DESCENT_LANES DESCENT_HD inline result operator op(pack const& a, pack const& b) { \
    DESCENT_PACK(result, (a.lanes() op b.lanes()));                                  \
  }
DESCENT_BINARY(pack, +)
DESCENT_BINARY(pack, -)
DESCENT_BINARY(pack, *)
DESCENT_BINARY(pack, /)
DESCENT_BINARY(pack_mask, <)
DESCENT_BINARY(pack_mask, >)
DESCENT_BINARY(pack_mask, <=)
DESCENT_BINARY(pack_mask, >=)
DESCENT_BINARY(pack_mask, ==)
DESCENT_BINARY(pack_mask, !=)
#undef DESCENT_BINARY

DESCENT_LANES DESCENT_HD inline pack operator-(pack const& a) { DESCENT_PACK(pack, -a.lanes()); }
DESCENT_LANES DESCENT_HD inline pack_mask operator&&(pack_mask const& a, pack_mask const& b) {
  DESCENT_PACK(pack_mask, a.lanes() & b.lanes());
}
DESCENT_LANES DESCENT_HD inline pack_mask operator||(pack_mask const& a, pack_mask const& b) {
  DESCENT_PACK(pack_mask, a.lanes() | b.lanes());
}
DESCENT_LANES DESCENT_HD inline pack_mask operator!(pack_mask const& a) { DESCENT_PACK(pack_mask, ~a.lanes()); }

DESCENT_LANES DESCENT_HD inline pack select(pack_mask const& condition, pack const& a, pack const& b) {
  DESCENT_PACK(pack, condition.lanes() ? a.lanes() : b.lanes());
}
DESCENT_LANES DESCENT_HD inline pack_mask is_finite(pack const& a) {
  DESCENT_PACK(pack_mask, ((ints)a.lanes() & 0x7f800000) != 0x7f800000);
}
DESCENT_LANES DESCENT_HD inline pack_mask is_nan(pack const& a) {
  DESCENT_PACK(pack_mask, ((ints)a.lanes() & 0x7fffffff) > 0x7f800000);
}
DESCENT_LANES DESCENT_HD inline pack abs(pack const& a) { DESCENT_PACK(pack, (floats)((ints)a.lanes() & 0x7fffffff)); }
DESCENT_LANES DESCENT_HD inline pack sqrt(pack const& a) {
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
  DESCENT_PACK(pack, __builtin_ia32_sqrtps256(a.lanes()));
#else
  pack r;
  for (int i = 0; i < 8; ++i) r.lane[i] = std::sqrt(a.lane[i]);
  return r;
#endif
}

DESCENT_LANES DESCENT_HD inline pack cbrt(pack const& a) {
#if !defined(__CUDA_ARCH__)
  floats const x = a.lanes();
  floats y = (floats)((ints)x / 3 + 0x2a5119f2);
  for (int i = 0; i < 3; ++i) y = y - (y - x / (y * y)) * (1 / 3.f);
  DESCENT_PACK(pack, ((x > 0) & is_finite(a).lanes()) ? y : x);
#else
  return {};
#endif
}
#if !defined(__CUDA_ARCH__)
DESCENT_LANES inline bool all(ints lanes) {
  auto const pairs = (longs)lanes;
  return (pairs[0] & pairs[1] & pairs[2] & pairs[3]) == -1;
}
#endif
DESCENT_LANES DESCENT_HD inline pack pow(pack const& a, pack const& b) {
#if !defined(__CUDA_ARCH__)
  if (all((a.lanes() > 0) & (b.lanes() == 0.5f))) return sqrt(a);
  if (all((a.lanes() > 0) & (b.lanes() == 0.25f))) return sqrt(sqrt(a));
#endif
  pack r;
  for (int i = 0; i < 8; ++i) r.lane[i] = descent::pow(a.lane[i], b.lane[i]);
  return r;
}

// ---- memory: eight consecutive elements of any alignment -----------------------------------------------------------

DESCENT_LANES DESCENT_HD inline void load(pack& r, float const* p) {
  DESCENT_PACK_DO(r.lanes() = *reinterpret_cast<loose_floats const*>(p));
}
DESCENT_LANES DESCENT_HD inline void store(float* p, pack const& a) {
  DESCENT_PACK_DO(*reinterpret_cast<loose_floats*>(p) = a.lanes());
}

DESCENT_LANES DESCENT_HD inline void load(pack& r, bfloat16 const* p) {
  DESCENT_PACK_DO(r.lanes() = (floats)(to_words(*reinterpret_cast<loose_shorts const*>(p)) << 16));
}
DESCENT_LANES DESCENT_HD inline void store(bfloat16* p, pack const& a) {
#if !defined(__CUDA_ARCH__)
  words const x = (words)a.lanes(), nan = words{} + 0x7fff;
  words const rounded = (x + 0x7fff + (x << 15 >> 31)) >> 16;  // to nearest, ties to even
  *reinterpret_cast<loose_shorts*>(p) = to_shorts(((ints)x & 0x7fffffff) <= 0x7f800000 ? rounded : nan);
#endif
}

DESCENT_LANES DESCENT_HD inline void load(pack& r, half const* p) {
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
  typedef short signed_shorts __attribute__((vector_size(16)));
  r.lanes() = __builtin_ia32_vcvtph2ps256((signed_shorts) * reinterpret_cast<loose_shorts const*>(p));
#else
  for (int i = 0; i < 8; ++i) r.lane[i] = widen<float>(p[i]);
#endif
}
DESCENT_LANES DESCENT_HD inline void store(half* p, pack const& a) {
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
  *reinterpret_cast<loose_shorts*>(p) = (shorts)__builtin_ia32_vcvtps2ph256(a.lanes(), 0);
#else
  for (int i = 0; i < 8; ++i) p[i] = narrow<half>(a.lane[i]);
#endif
}

/// The same, but a finite number beyond the largest is stored as that: see states.
DESCENT_LANES DESCENT_HD inline void store_saturated(bfloat16* p, pack const& a) {
#if !defined(__CUDA_ARCH__)
  words const x = (words)a.lanes(), nan = words{} + 0x7fff;
  ints const magnitude = (ints)x & 0x7fffffff, has_place = magnitude < 0x7f7f8000;
  words rounded = (x + 0x7fff + (x << 15 >> 31)) >> 16;
#if defined(__x86_64__)
  bool const all_have = __builtin_ia32_movmskps256((floats)has_place) == 0xff;
#else
  bool const all_have = all(has_place);
#endif
  if (!all_have) [[unlikely]]
    rounded = has_place ? rounded : magnitude <= 0x7f800000 ? x >> 16 : nan;  // cut off: only infinity stays that
  *reinterpret_cast<loose_shorts*>(p) = to_shorts(rounded);
#endif
}
DESCENT_LANES DESCENT_HD inline void store_saturated(half* p, pack const& a) {
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
  typedef short signed_shorts __attribute__((vector_size(16)));
  typedef char chars __attribute__((vector_size(16)));
  auto r = (signed_shorts)__builtin_ia32_vcvtps2ph256(a.lanes(), 0);
  signed_shorts const infinite = (r & 0x7fff) == 0x7c00;
  if (__builtin_ia32_pmovmskb128((chars)infinite)) [[unlikely]]
    r = infinite ? (signed_shorts)__builtin_ia32_vcvtps2ph256(a.lanes(), 3) : r;  // towards 0: of infinities only
  *reinterpret_cast<loose_shorts*>(p) = (shorts)r;
#else
  for (int i = 0; i < 8; ++i) {
    float const x = a.lane[i];
    p[i] = narrow<half>(!is_finite(x) ? x : x > 65504 ? 65504.f : x < -65504 ? -65504.f : x);
  }
#endif
}

DESCENT_LANES DESCENT_HD inline void load(pack& r, std::uint32_t const* p) {
  for (int i = 0; i < 8; ++i) r.lane[i] = widen<float>(p[i]);
}
DESCENT_LANES DESCENT_HD inline void store(std::uint32_t* p, pack const& a) {
  for (int i = 0; i < 8; ++i) p[i] = narrow<std::uint32_t>(a.lane[i]);
}

// ---- sums in double ------------------------------------------------------------------------------------------------

/// The elements of a pack in double.
struct double_pack {
  alignas(32) double lane[8];
#if !defined(__CUDA_ARCH__)
  doubles& half(int h) { return reinterpret_cast<doubles*>(lane)[h]; }
  doubles const& half(int h) const { return reinterpret_cast<doubles const*>(lane)[h]; }
#endif
};

DESCENT_LANES DESCENT_HD inline void to_doubles(double_pack& r, pack const& a) {
  DESCENT_PACK_DO(for (int h = 0; h < 2; ++h) r.half(h) = to_doubles(reinterpret_cast<four_floats const*>(a.lane)[h]));
}
/// Sets elements whose bit is not set to 0.
DESCENT_LANES DESCENT_HD inline void keep(double_pack& r, [[maybe_unused]] unsigned in) {
#if !defined(__CUDA_ARCH__)
  for (int h = 0; h < 2; ++h) {
    longs const bit = longs{1, 2, 4, 8} << 4 * h;
    r.half(h) = ((longs{} + in) & bit) == bit ? r.half(h) : doubles{};
  }
#endif
}
DESCENT_LANES DESCENT_HD inline void square(double_pack& r) {
  DESCENT_PACK_DO(for (int h = 0; h < 2; ++h) r.half(h) *= r.half(h));
}
DESCENT_LANES DESCENT_HD inline void magnitude(double_pack& r, double scale) {
  DESCENT_PACK_DO(for (int h = 0; h < 2; ++h) r.half(h) = (doubles)((longs)r.half(h) & 0x7fffffffffffffff) * scale);
}
// Four sums may have any address. clang respects that only if it sees a pointer to doubles dereferenced.
DESCENT_LANES DESCENT_HD inline void clear_in_lanes([[maybe_unused]] double (&sum)[4]) {
  DESCENT_PACK_DO(*reinterpret_cast<doubles*>(sum) = doubles{});
}
/// sum[j % 4] <- sum[j % 4] + element j
DESCENT_LANES DESCENT_HD inline void add(double (&sum)[4], double_pack const& a) {
  DESCENT_PACK_DO(*reinterpret_cast<doubles*>(sum) += a.half(0) + a.half(1));
}
/// sum[j % 4] <- the larger of it and element j, which are +0 or above; NaN if either is NaN
DESCENT_LANES DESCENT_HD inline void enlarge(double (&sum)[4], double_pack const& a) {
#if !defined(__CUDA_ARCH__)
  doubles most = *reinterpret_cast<doubles const*>(sum);
  for (int h = 0; h < 2; ++h) most = (longs)most > (longs)a.half(h) ? most : a.half(h);
  *reinterpret_cast<doubles*>(sum) = most;
#endif
}

/// ((f(a) + f(b)) + (f(c) + f(d))), f(x) = (x[0] + x[2]) + (x[1] + x[3])
DESCENT_LANES DESCENT_HD inline double fold_four_in_lanes(double const (&a)[4], double const (&b)[4],
                                                          double const (&c)[4], double const (&d)[4]) {
#if !defined(__CUDA_ARCH__)
  doubles const p = *reinterpret_cast<doubles const*>(a), q = *reinterpret_cast<doubles const*>(b);
  doubles const r = *reinterpret_cast<doubles const*>(c), s = *reinterpret_cast<doubles const*>(d);
  doubles const pq = __builtin_shufflevector(p, q, 0, 1, 4, 5) + __builtin_shufflevector(p, q, 2, 3, 6, 7);
  doubles const rs = __builtin_shufflevector(r, s, 0, 1, 4, 5) + __builtin_shufflevector(r, s, 2, 3, 6, 7);
  doubles const f = __builtin_shufflevector(pq, rs, 0, 4, 2, 6) + __builtin_shufflevector(pq, rs, 1, 5, 3, 7);
  return (f[0] + f[2]) + (f[1] + f[3]);  // f of a, c, b, d
#else
  return 0;
#endif
}

#undef DESCENT_PACK
#undef DESCENT_PACK_DO

/// Whether this processor can run the functions above.
inline bool has_lanes() {
#if defined(__clang__) && defined(__x86_64__)
  static bool const has = __builtin_cpu_supports("avx2");  // clang 14 cannot query f16c, which is a year older
  return has;
#elif defined(__x86_64__)
  static bool const has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  return has;
#else
  return true;
#endif
}

}  // namespace descent::detail
