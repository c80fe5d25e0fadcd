// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Packets between memory and registers: every type, every length, nothing beyond the end; and what the passes do with a
// packet, checked by hand.
#include <descent/engine/step/measure.hpp>
#include <descent/engine/step/packet_io.hpp>
#include <descent/engine/step/passes.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ds = descent;
using ds::half, ds::bfloat16, ds::narrow, ds::widen;
using namespace ds::detail;

namespace {

template <class Real> float number(Real const (&r)[reals<Real>], int j) {
  if constexpr (lanes<Real> == 1) return float(r[j]);
  else return r[0].lane[j];
}

float sample(int i) { return float(i * i) / 7 - 3; }

template <class T, class Real> void check() {
  if constexpr (std::is_same_v<T, double> && lanes<Real> == 8) return;
  else
    for (int size = 1; size <= 8; ++size) {
      if (lanes<Real> == 8 && !has_lanes()) return;
      T in[16];
      for (int i = 0; i < 16; ++i) in[i] = narrow<T>(sample(i));
      packet_extent const e{size, size == 8};
      Real r[reals<Real>];
      read(r, in + 1, e);  // at an unaligned address
      for (int j = 0; j < 8; ++j) CHECK(number(r, j) == widen<float>(in[j < size ? j + 1 : 1]));

      in_double<Real> d;
      to_doubles<Real>(d, r, size);
      for (int j = 0; j < 8; ++j) CHECK(d.lane[j] == (j < size ? widen<double>(in[j + 1]) : 0));

      T out[10];
      for (T& x : out) x = narrow<T>(99.f);
      write(out + 1, r, e);
      CHECK(widen<float>(out[0]) == 99);
      for (int j = 0; j < 8; ++j) CHECK(widen<float>(out[j + 1]) == (j < size ? widen<float>(in[j + 1]) : 99));
      CHECK(widen<float>(out[9]) == 99);
    }
}

template <class T, class Real> void check_rounding() {
  if (lanes<Real> == 8 && !has_lanes()) return;
  float in[8];
  for (int i = 0; i < 8; ++i) in[i] = sample(i + 1) / 3;
  Real r[reals<Real>];
  read(r, in, {8, true});
  round_to<T>(r);
  for (int j = 0; j < 8; ++j) CHECK(number(r, j) == widen<float>(narrow<T>(in[j])));

  float const infinity = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 8; ++i) in[i] = i % 3 ? (i % 2 ? infinity : -infinity) : std::nanf("");
  read(r, in, {8, true});
  round_to<T>(r);
  for (int j = 0; j < 8; ++j) CHECK((j % 3 ? number(r, j) == in[j] : std::isnan(number(r, j))));
}

/// saturated() beside its definition: what is finite stays finite and is otherwise rounded as before.
template <class T, class Real, class Element = Real> void check_saturation() {
  if (lanes<Real> == 8 && !has_lanes()) return;
  Element const largest = widen<Element>(std::bit_cast<T>([] {
    if constexpr (std::is_same_v<T, half>) return std::uint16_t(0x7bff);
    else if constexpr (std::is_same_v<T, bfloat16>) return std::uint16_t(0x7f7f);
    else return 0x7f7fffffu;
  }()));
  Element const beyond = std::nextafter(largest, std::numeric_limits<Element>::infinity()),
                infinity = std::numeric_limits<Element>::infinity();
  Element const in[8] = {largest, beyond, std::numeric_limits<Element>::max(), Element(-2.7), -beyond,
                         infinity, -infinity, std::numeric_limits<Element>::quiet_NaN()};
  T const out[8] = {narrow<T>(largest), narrow<T>(largest), narrow<T>(largest), narrow<T>(Element(-2.7)),
                    narrow<T>(-largest), narrow<T>(infinity), narrow<T>(-infinity), narrow<T>(in[7])};
  Real r[reals<Real>];
  for (int j = 0; j < 8; ++j) lane_at(r, j) = in[j];
  T at_once[8], part[8], stored[8];
  write_saturated(at_once, r, {8, true});
  if constexpr (std::is_same_v<Real, pack>) write_saturated(part, r, {7, false}), part[7] = at_once[7];
  else std::memcpy(part, at_once, sizeof part);
  saturate<T>(r);
  write(stored, r, {8, true});
  for (auto const* x : {at_once, part, stored}) {
    for (int j = 0; j < 7; ++j) CHECK(std::memcmp(&x[j], &out[j], sizeof(T)) == 0);
    CHECK(ds::is_nan(widen<Element>(x[7])));
  }
}

/// A rule that subtracts the gradient and stores it.
struct taking {
  double lr = 1;
  template <class Real> struct state { Real seen; };
  template <class Real> struct terms { Real lr; };
  terms<double> at(std::int64_t) const { return {lr}; }
  template <class Real> static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.seen = g;
    return p - k.lr * g;
  }
};

/// Two packets of everything that a tensor may have; its first element has number 64.
template <class Value, class Gradient, class... Ps> struct packets {
  using plan_type = plan<Value, Gradient, taking, Ps...>;
  using real = typename plan_type::real;
  alignas(16) Value value[16];
  alignas(16) Gradient gradient[16];
  typename plan_type::master_or_value master[16] = {};
  typename plan_type::template slot<0> seen[16] = {};
  std::uint16_t remainder[16] = {};
  real average[16] = {};
  typename plan_type::slow slow[16] = {};
  real outer[16] = {};
  step_terms_of<plan_type> step{};

  packets() {
    for (int i = 0; i < 16; ++i) {
      value[i] = narrow<Value>(1 + 0.125f * float(i));
      gradient[i] = narrow<Gradient>(float(i - 11));
    }
  }
  buffers<plan_type> x() {
    buffers<plan_type> b{value, gradient, nullptr, {seen}, {}};
    if constexpr (plan_type::has_master) b.master = master;
    else b.master = value;
    if constexpr (plan_type::has_extras) b.extra = {{}, remainder, average, slow, outer, 64};
    return b;
  }
  void start() { start_packet<plan_type, real>(x(), 8, {8, true}, {}); }
  void update(real factor = 1) { update_packet<plan_type, real>(x(), 8, {8, true}, factor, {1}, step); }
  void update_in_lanes() { update_packet<plan_type, pack>(x(), 8, {8, true}, pack(1), {pack(1)}, step); }
  void swap_in(std::byte* saved) { swap_in_packet<plan_type, real, 8>(x(), 8, {8, true}, saved, {}); }
  template <class Body> void pass(Body const& body) { body.template operator()<plan_type, real, 8>(x(), 8, {8, true}); }
  template <int Rows> void measure(double (&total)[Rows][4]) {
    measure_packet<plan_type, ds::detail::measure::norm, real>(total, x(), 8, {8, true}, 1, {}, step);
  }
};

template <class T> bool same(T const* a, T const* b) { return std::memcmp(a, b, 8 * sizeof(T)) == 0; }

}  // namespace

TEST_CASE("packets of every length read, widen, round and write each type, and touch nothing else") {
  check<float, float>();
  check<half, float>();
  check<bfloat16, float>();
  check<double, double>();
  check<float, double>();
  check<half, double>();
  check<bfloat16, double>();
  check<float, pack>();
  check<half, pack>();
  check<bfloat16, pack>();
  check<std::uint32_t, float>();
  check<std::uint32_t, double>();
  check<std::uint32_t, pack>();
}

TEST_CASE("rounding to storage and back gives what storing would have given") {
  check_rounding<float, float>();
  check_rounding<half, float>();
  check_rounding<bfloat16, float>();
  check_rounding<float, double>();
  check_rounding<half, double>();
  check_rounding<float, pack>();
  check_rounding<half, pack>();
  check_rounding<bfloat16, pack>();
}

TEST_CASE("saturation changes no number that has a place, in any bits of float") {
  if (!has_lanes()) return;
  int wrong = 0;
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += 8 * 65521) {
    pack x[1];
    for (std::uint64_t j = 0; j < 8; ++j) x[0].lane[j] = std::bit_cast<float>(std::uint32_t(first + j * 4099));
    half h[8], h_plain[8];
    bfloat16 b[8], b_plain[8];
    write_saturated(h, x, {8, true}), write(h_plain, x, {8, true});
    write_saturated(b, x, {8, true}), write(b_plain, x, {8, true});
    auto const check = [&]<class T>(T const& is, T const& plain, float of, float largest) {
      T const must =
          ds::is_finite(of) && !ds::is_finite(widen<float>(plain)) ? narrow<T>(std::copysign(largest, of)) : plain;
      wrong += std::memcmp(&is, &must, sizeof is) != 0;
    };
    for (int j = 0; j < 8; ++j)
      check(h[j], h_plain[j], x[0].lane[j], 65504.f), check(b[j], b_plain[j], x[0].lane[j], 0x1.fep127f);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a finite number that a type cannot hold becomes the largest that it can; infinity and NaN stay") {
  check_saturation<half, float>();
  check_saturation<bfloat16, float>();
  check_saturation<half, double>();
  check_saturation<bfloat16, double>();
  check_saturation<float, double>();
  check_saturation<half, pack, float>();
  check_saturation<bfloat16, pack, float>();
}

TEST_CASE("a state that its type cannot hold is stored as the largest number of the type, rounded at random or not") {
  auto const check = []<class... Ps>(Ps...) {
    packets<float, float, ds::states<half>, Ps...> p;
    for (int i = 8; i < 16; ++i)
      p.gradient[i] = (i % 2 ? -1.f : 1.f) * (i < 14 ? 65504.f + 40.f * float(i - 8) : 1e30f);
    p.gradient[9] = std::numeric_limits<float>::infinity();
    auto lanes = p;
    p.update();
    for (int i = 8; i < 16; ++i)
      CHECK(widen<float>(p.seen[i]) == (i == 9 ? p.gradient[9] : i % 2 ? -65504.f : 65504.f));
    if (!has_lanes()) return;
    lanes.update_in_lanes();
    CHECK(same(lanes.seen + 8, p.seen + 8));
    CHECK(same(lanes.value + 8, p.value + 8));
  };
  check();
  check(ds::stochastic_rounding{});
}

TEST_CASE("single elements go through the same functions") {
  float const in[1] = {0.1f};
  half out[2] = {half(0.f), half(7.f)};
  float r[1];
  read(r, in, {1, false});
  CHECK(r[0] == 0.1f);
  write(out, r, {1, false});
  CHECK(widen<float>(out[0]) == widen<float>(narrow<half>(0.1f)));
  CHECK(widen<float>(out[1]) == 7);
}

TEST_CASE("a value and its remainder are the float, bit for bit, the value its nearest; NaN stays NaN") {
  auto const check = []<class Real>(std::type_identity<Real>) {
    if (lanes<Real> == 8 && !has_lanes()) return;
    int wrong = 0;
    for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += 8 * 65521) {
      float in[8], back[8];
      for (std::uint64_t j = 0; j < 8; ++j) in[j] = std::bit_cast<float>(std::uint32_t(first + j * 4099));
      if (first == 0) {
        in[0] = std::bit_cast<float>(0x7fffffffu);
        in[1] = std::bit_cast<float>(0xffffffffu);
        in[2] = -1.00390625f;
      }
      bfloat16 value[8];
      std::uint16_t remainder[8];
      Real r[reals<Real>];
      read(r, in, {8, true});
      write_joined(value, remainder, r, {8, true});
      read_joined(r, value, remainder, {8, true});
      for (int j = 0; j < 8; ++j) {
        float const v = widen<float>(value[j]);
        back[j] = number(r, j);
        if (std::isnan(in[j])) wrong += !std::isnan(v) || !std::isnan(back[j]);
        else wrong += std::bit_cast<std::uint32_t>(back[j]) != std::bit_cast<std::uint32_t>(in[j]);
        double const gap = std::abs(double(widen<float>(narrow<bfloat16>(in[j]))) - in[j]);
        if (std::isfinite(v)) wrong += std::abs(double(v) - in[j]) != gap;
      }
    }
    CHECK(wrong == 0);
  };
  check(std::type_identity<float>{});
  check(std::type_identity<pack>{});
}

TEST_CASE("the rule sees g * factor, then the value clip on both sides; gradients are set to zero") {
  packets<float, float, ds::static_loss_scale, ds::clip_value, ds::zero_grad> p;
  p.step.of<ds::clip_value>().c = 1;
  p.update(0.5f);
  for (int i = 8; i < 16; ++i) {
    float const g = std::clamp(0.5f * float(i - 11), -1.f, 1.f);
    CHECK(p.seen[i] == g);
    CHECK(p.value[i] == 1 + 0.125f * float(i) - g);
    CHECK(p.gradient[i] == 0);
  }
  CHECK(p.gradient[7] == -4);
  CHECK(p.value[7] == 1.875f);
}

TEST_CASE("noise is drawn for this step, seed and element, and added after the value clip") {
  packets<float, float, ds::gradient_noise, ds::clip_value> p;
  p.step.of<ds::clip_value>().c = 1;
  p.step.of<ds::gradient_noise>().deviation = 0.5f;
  p.step.t = 7;
  p.step.noise_seed = 3;
  p.update();
  float z[8];
  normals(z, 3, 7, (64 + 8) / 8);
  for (int j = 0; j < 8; ++j)
    CHECK(p.seen[8 + j] == doctest::Approx(std::clamp(float(j - 3), -1.f, 1.f) + 0.5f * z[j]).epsilon(1e-6));
}

TEST_CASE("a bfloat16 rounded at random in a register and stored is the one that is rounded at random at once") {
  for (std::uint32_t high = 0; high < 65536; ++high)
    for (std::uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      for (std::uint32_t random : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu}) {
        float const x = std::bit_cast<float>(high << 16 | low);
        auto const stored = ds::narrow<bfloat16>(ds::detail::rounded_at_random<bfloat16>(x, random));
        auto const at_once = narrow_stochastic<bfloat16>(x, random);
        if (std::isnan(x)) REQUIRE(std::isnan(widen<float>(stored)));
        else REQUIRE(std::bit_cast<std::uint16_t>(stored) == std::bit_cast<std::uint16_t>(at_once));
      }
}

TEST_CASE("value, slow weights and state are rounded with random numbers of their own, each element with its own") {
  packets<half, float, ds::states<half>, ds::stochastic_rounding, ds::lookahead> p;
  for (float& g : p.gradient) g = 0.1f;
  p.start();
  auto const bits = [](int stream) { return random_bits(5, 9, (64 + 8) / 8, stream); };
  constexpr int of_value = 0, of_slow = 1, of_state = 2;
  auto const rounded = [&](float x, int stream, int j) {
    return widen<float>(narrow_stochastic<half>(x, bits(stream).bits[j]));
  };
  p.step.t = 9;
  p.step.rounding_seed = 5;
  p.update();
  for (int j = 0; j < 8; ++j) {
    float const before = 2 + 0.125f * float(j);
    CHECK(widen<float>(p.value[8 + j]) == rounded(before - 0.1f, of_value, j));
    CHECK(widen<float>(p.seen[8 + j]) == rounded(0.1f, of_state, j));
    CHECK(widen<float>(p.slow[8 + j]) == before);
  }
  p.step.of<ds::lookahead>().alpha = 0.5f;
  packets<half, float, ds::states<half>, ds::stochastic_rounding, ds::lookahead> const old = p;
  packets<half, float, ds::states<half>, ds::stochastic_rounding, ds::lookahead> lanes = p;
  p.update();
  lanes.update_in_lanes();
  CHECK(same(lanes.value + 8, p.value + 8));
  CHECK(same(lanes.seen + 8, p.seen + 8));
  CHECK(same(lanes.slow + 8, p.slow + 8));
  for (int j = 0; j < 8; ++j) {
    float const slow = widen<float>(old.slow[8 + j]), fast = widen<float>(old.value[8 + j]) - 0.1f;
    CHECK(widen<float>(p.slow[8 + j]) == rounded(slow + 0.5f * (fast - slow), of_slow, j));
    CHECK(widen<float>(p.value[8 + j]) == widen<float>(p.slow[8 + j]));
  }
}

TEST_CASE("a value beside a master is rounded with random numbers that nothing else uses, by lanes or one by one") {
  packets<half, float, ds::master<bfloat16>, ds::states<half>, ds::stochastic_values, ds::ema> p;
  p.start();
  p.step.t = 9;
  p.step.rounding_seed = 5;
  p.step.of<ds::ema>().take = 1;
  for (float& g : p.gradient) g = -0x1.01p-20f;  // the master rounds to multiples of 2^-27, the value of 2^-24
  for (int i = 0; i < 16; ++i) p.master[i] = narrow<bfloat16>(0x1p-24f * (1 + 0.125f * float(i)));
  auto lanes = p;
  p.update();
  if (has_lanes()) {
    lanes.update_in_lanes();
    CHECK(same(lanes.value + 8, p.value + 8));
    CHECK(same(lanes.master + 8, p.master + 8));
  }
  constexpr int of_value = 3;  // after the master, the slow weights and one member of the state
  auto const random = random_bits(5, 9, (64 + 8) / 8, of_value);
  int moved = 0;
  for (int j = 0; j < 8; ++j) {
    float const master = widen<float>(p.master[8 + j]);
    CHECK(widen<float>(p.value[8 + j]) == widen<float>(narrow_stochastic<half>(master, random.bits[j])));
    CHECK(p.average[8 + j] == master);
    moved += widen<float>(p.value[8 + j]) != master;
  }
  CHECK(moved > 0);
}

TEST_CASE("what is owned starts as the value, and the average takes the value as it is stored") {
  packets<half, float, ds::ema, ds::lookahead> p;
  p.start();
  for (int i = 8; i < 16; ++i) {
    CHECK(p.average[i] == widen<float>(p.value[i]));
    CHECK(widen<float>(p.slow[i]) == widen<float>(p.value[i]));
    p.gradient[i] = 0.1f;
  }
  float before[16];
  std::copy(p.average, p.average + 16, before);
  p.step.of<ds::ema>().keep = 0.75f;
  p.step.of<ds::ema>().take = 0.25f;
  p.update();
  for (int i = 8; i < 16; ++i) CHECK(p.average[i] == 0.75f * before[i] + 0.25f * widen<float>(p.value[i]));
}

TEST_CASE("an average in the values can be taken back; a master and a remainder follow values that were loaded") {
  packets<half, float, ds::ema> p;
  alignas(16) std::byte saved[2 * (64 + 16)] = {};
  half old[16];
  std::copy(p.value, p.value + 16, old);
  for (int i = 8; i < 16; ++i) p.average[i] = 0.1f * float(i);
  p.swap_in(saved);
  for (int i = 8; i < 16; ++i) CHECK(widen<float>(p.value[i]) == widen<float>(narrow<half>(0.1f * float(i))));
  p.pass(restore_all{saved});
  CHECK(same(p.value, old));
  CHECK(same(p.value + 8, old + 8));

  packets<half, float, ds::master<float>> m;
  m.start();
  for (int i = 8; i < 16; ++i) m.master[i] += 0.3f, m.value[i] = narrow<half>(float(-i));
  m.pass(reload_all{});
  for (int i = 8; i < 16; ++i) CHECK(m.master[i] == float(-i));
  packets<bfloat16, float, ds::master_remainder> r;
  for (int i = 8; i < 16; ++i) r.remainder[i] = std::uint16_t(77 * i);
  r.pass(reload_all{});
  for (int i = 8; i < 16; ++i) CHECK(r.remainder[i] == 0);
}

TEST_CASE("gradients are unscaled, and changed as if they were") {
  packets<float, float, ds::static_loss_scale> p;
  p.pass(multiply_all{0.25f});
  for (int i = 8; i < 16; ++i) CHECK(p.gradient[i] == 0.25f * float(i - 11));
  p.pass(transform_all{[](float g) { return g + 1; }, 8.f, 0.125f});
  for (int i = 8; i < 16; ++i) CHECK(p.gradient[i] == 0.25f * float(i - 11) + 8);
}

TEST_CASE("a packet's norm: sizes for L1 and the largest, squares for L2, large doubles apart, parameters beside") {
  using enum ds::scope;
  auto const filled = []<class P>(P p) {  // -3 to 4
    for (int i = 0; i < 8; ++i) p.gradient[i] = 1000;
    return p;
  };
  double one[1][4] = {}, two[2][4] = {}, more[2][4] = {};
  filled(packets<float, float, ds::clip<ds::norm::l1, model>>{}).measure(one);
  CHECK((one[0][0] == 4 && one[0][1] == 4 && one[0][2] == 4 && one[0][3] == 4));
  std::fill(one[0], one[0] + 4, 0.);
  filled(packets<float, float, ds::clip<ds::norm::inf, model>>{}).measure(one);
  CHECK((one[0][0] == 3 && one[0][1] == 2 && one[0][2] == 3 && one[0][3] == 4));
  std::fill(one[0], one[0] + 4, 0.);
  filled(packets<float, float, ds::skip_nonfinite>{}).measure(one);
  CHECK((one[0][0] == 10 && one[0][1] == 8 && one[0][2] == 10 && one[0][3] == 16));

  filled(packets<float, float, ds::clip_adaptive>{}).measure(two);
  for (int j = 0; j < 4; ++j) {
    float const a = 2 + 0.125f * float(j), b = a + 0.5f;
    CHECK(two[0][j] == one[0][j]);
    CHECK(two[1][j] == double(a) * a + double(b) * b);
  }

  packets<double, double, ds::skip_nonfinite> large;
  std::fill(large.gradient, large.gradient + 16, 0.);
  large.gradient[8] = -0x1p480;
  large.gradient[9] = -std::nextafter(0x1p480, 0x1p481);
  large.gradient[10] = 0x1p1000;
  large.gradient[15] = -3;
  large.measure(more);
  CHECK((more[0][0] == 0x1p960 && more[0][1] == 0 && more[0][2] == 0 && more[0][3] == 9));
  CHECK(more[1][0] == 0);
  CHECK(more[1][1] > 0x1p-240);
  CHECK(more[1][2] == 0x1p800);
}
