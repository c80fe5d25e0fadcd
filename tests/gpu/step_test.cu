// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#define DESCENT_SEPARATE_ARRAYS  // a memory checker sees accesses beyond each array
#include "support.cuh"

#include <descent/cuda.cuh>
#include <descent/engine/cuda/error.hpp>
#include <descent/optimizer/detail/engine.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>

#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

/// A step on the device: which elements it updates, when it is skipped, what groups change, what it refuses. One
/// source, since the cases share optimizers, which take most of the compile time.

// ---- which elements it updates -------------------------------------------------------------------------------------

namespace elements {

namespace {

constexpr std::int64_t chunk = descent::detail::chunk_size;
using plain = descent::detail::plan<float, float, descent::adamw>;
static_assert(descent::detail::engine<descent::cuda::engine<plain>, plain>);

/// AdamW with a pass for the norm, in one storage type.
template <class Value> void same_on_device(std::vector<test::tensor> const& list) {
  descent::clip_norm const clip{1};
  if constexpr (std::is_same_v<Value, float>) test::same_on_device<Value>(list, descent::adamw{}, clip);
  else test::same_on_device<Value>(list, descent::adamw{}, clip, descent::master<float>{});
}

}  // namespace

TEST_CASE_TEMPLATE("tensors of every awkward size are updated, and nothing else", Value, float, descent::half) {
  for (std::int64_t const size : std::vector<std::int64_t>{0, 1, 7, 8, 9, chunk - 1, chunk, chunk + 1, 2 * chunk + 5}) {
    CAPTURE(size);
    same_on_device<Value>({{size}});
    same_on_device<Value>({{9}, {size}, {7}});
  }
}

TEST_CASE_TEMPLATE("values and gradients may be anywhere in memory, adjacent or not", Value, float, descent::half) {
  std::vector<test::tensor> list;
  for (int value = 0; value < 8; ++value)
    for (int gradient = 0; gradient < 8; ++gradient)
      list.push_back({std::int64_t(9 + 8 * value + gradient), 0, value, gradient});
  for (int shift = 1; shift < 8; ++shift) list.push_back({chunk + 9 - shift, 0, shift, 8 - shift});
  same_on_device<Value>(list);
}

TEST_CASE_TEMPLATE("empty tensors may be first, in the middle, last, or all there is", Value, float, descent::half) {
  same_on_device<Value>({{0}, {0}, {5}, {0}, {chunk + 3}, {0}, {0}});
  same_on_device<Value>({{0}, {0}});
  same_on_device<Value>({});
}

TEST_CASE("thousands of tensors take three launches") {
  std::vector<test::tensor> list;
  // on a simulated device, threads without an element take most of the time
  for (int t = 0; t < (test::in_software() ? 2'000 : 10'000); ++t) list.push_back({t % 5, 0, t % 3, t % 7});
  auto both = test::twins_of<float>(list, descent::adamw{}, descent::clip_norm{1});
  CHECK(test::launches([&] { both.steps(1); }) == 3);
  both.expect_same();
}

}  // namespace elements

// ---- more elements than 32 bits count ------------------------------------------------------------------------------

namespace huge {

namespace {

constexpr std::int64_t count = (std::int64_t{1} << 31) + 4096 + 5;

bool fits() {
  std::size_t free = 0, total = 0;
  return !test::in_software() && cudaMemGetInfo(&free, &total) == cudaSuccess && free > (std::size_t{40} << 30);
}

__global__ void fill(float* p, float value) {
  std::int64_t const threads = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) p[i] = value;
}

__global__ void count_others(float const* p, float value, unsigned long long* others) {
  std::int64_t const threads = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads)
    if (p[i] != value) atomicAdd(others, 1ull);
}

}  // namespace

TEST_CASE("a tensor of more than 2^31 elements is updated to its end" * doctest::skip(!fits())) {
  test::stream s;
  descent::detail::device_array<float> const value(count), gradient(count);
  fill<<<1024, 256, 0, s>>>(value.get(), 1.f);
  fill<<<1024, 256, 0, s>>>(gradient.get(), 0.5f);
  descent::parameters<float> list;
  list.add("w", value.get(), gradient.get(), count);
  descent::optimizer opt{list, descent::adamw{}, descent::skip_nonfinite{}, descent::cuda{s}};
  opt.step();
  CHECK(opt.report().grad_norm == doctest::Approx(0.5 * std::sqrt(double(count))).epsilon(1e-12));

  float p = 1, g = 0.5f;
  descent::parameters<float> one;
  one.add("w", &p, &g, 1);
  descent::optimizer{one, descent::adamw{}}.step();
  auto const last = test::from_device(value.get() + count - 1, 1, s)[0];
  test::expect_same(std::vector<float>{p}, std::vector<float>{last}, "the last element");
  test::device_vector<unsigned long long> others{{0}, s};
  count_others<<<1024, 256, 0, s>>>(value.get(), last, others.data());
  CHECK(others.get(s)[0] == 0);

  float const bad = INFINITY;
  test::cuda(cudaMemcpyAsync(gradient.get() + count - 1, &bad, sizeof bad, cudaMemcpyHostToDevice, s));
  opt.step();
  CHECK(!opt.report().applied);
}

}  // namespace huge

// ---- when it is skipped --------------------------------------------------------------------------------------------

namespace skips {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<test::tensor> const model{{3}, {0}, {2 * 4096 + 9}, {17, 1, 1, 3}, {8, 0}};

/// A bad gradient in each of these places skips a step on the device, and the report names the tensor.
template <class Value, class Rule, class... Ps> void skips(Rule rule, Ps... policies) {
  auto both = test::twins_of<Value>(model, rule, policies...);
  auto& x = both.x;
  both.steps(1);
  std::pair<std::size_t, std::int64_t> const places[] = {
      {0, 0}, {2, 0}, {2, 7}, {2, 4095}, {2, 4096}, {2, 2 * 4096}, {2, 2 * 4096 + 8}, {3, 0}, {3, 16}, {4, 7}};
  float const bad_ones[] = {infinity, -infinity, not_a_number};
  int skipped = 0;
  auto const skips_at = [&](std::pair<std::size_t, std::int64_t> place, float bad) {
    INFO(bad, " at tensor ", place.first, ", element ", place.second);
    auto& g = x.gradient_of(place.first, place.second);
    auto const good = std::exchange(g, Value(bad));
    auto const before = x.value;
    both.step();
    auto const r = both.device.report();
    CHECK(!r.applied);
    CHECK(r.step == 1);
    CHECK(r.skipped == ++skipped);
    CHECK(r.why.starts_with("the gradient of 'w" + std::to_string(place.first) + "' is not finite"));
    CHECK(std::memcmp(x.value.data(), before.data(), before.size() * sizeof(Value)) == 0);
    g = good;
  };
  for (float const bad : bad_ones) skips_at(places[4], bad);
  for (std::size_t i = 0; i < std::size(places); ++i) skips_at(places[i], bad_ones[i % 3]);
  x.send_gradients();
  both.expect_same();  // also states and masters; the host changed none of them
  both.steps(1);
  both.expect_same();
  CHECK(both.device.report().applied);
}

}  // namespace

TEST_CASE("a gradient that is not finite, anywhere, skips the step") {
  skips<float>(descent::adamw{}, descent::skip_nonfinite{});
}
TEST_CASE("half gradients with a master skip, too") {
  skips<descent::half>(descent::adamw{}, descent::clip_norm{1}, descent::master<float>{});
}
TEST_CASE("a rule with sums skips before its state and its memory change") {
  skips<float>(descent::dog{.reps = 0.1}, descent::clip_norm{1});
}

TEST_CASE("the tensor with the first bad gradient is named") {
  auto both = test::twins_of<float>(model, descent::adamw{}, descent::skip_nonfinite{});
  both.x.gradient_of(4, 0) = not_a_number;
  both.x.gradient_of(2, 5000) = infinity;
  both.step();
  CHECK(both.device.report().why == "the gradient of 'w2' is not finite");
  CHECK(both.host.report().why == both.device.report().why);
}

TEST_CASE("finite gradients whose squares add up to infinity are no reason to skip") {
  auto both = test::twins_of<double>({{1}, {1}, {2}}, descent::sgd{}, descent::clip_norm{1});
  both.x.gradient_of(0, 0) = both.x.gradient_of(1, 0) = 1.2e154;
  both.x.gradient_of(2, 1) = -3e200;
  both.step();
  both.expect_same();
  CHECK(both.device.report().applied);
}

TEST_CASE("the norm has the same bits as on the host, for gradients of all magnitudes") {
  // Few elements show the order within a thread, many the order of threads, chunks and tensors.
  std::vector<test::tensor> const sizes[] = {{{16}}, {{300}}, {{1}, {5000}, {33, 0, 0, 5}, {3 * 4096}}};
  for (auto const& list : sizes) {
    auto both = test::twins_of<float>(list, descent::adamw{}, descent::skip_nonfinite{});
    for (std::uint64_t seed = 1; seed <= 9; ++seed) {  // each scale with each pattern, and zero
      CAPTURE(list.size());
      CAPTURE(seed);
      both.x.new_gradients(seed);
      float const scale = seed == 9 ? 0 : std::pow(10.f, float(seed % 4) * 20 - 30);
      both.x.each([&](std::size_t k, std::int64_t i) {
        both.x.gradient_of(k, i) *= scale * (seed > 4 ? std::exp2(-float(i % 30)) : 1);
      });
      both.step();
      double const h = both.host.report().grad_norm, d = both.device.report().grad_norm;
      CHECK(std::memcmp(&h, &d, sizeof h) == 0);
      CHECK((scale == 0 ? d == 0 : d > 0));
    }
  }
}

namespace {

/// `bad` at one step, otherwise 0.25.
struct broken_at {
  std::int64_t step;
  double bad;
  DESCENT_HD double operator()(std::int64_t t) const { return t == step ? bad : 0.25; }
};

/// Two updates, two calls that are skipped because of the schedule's value, and two more updates, on host and device.
template <class Rule, class... Ps> void bad_terms_skip(Rule rule, Ps... policies) {
  for (double const bad : {std::numeric_limits<double>::quiet_NaN(), 1e39, -0.1}) {
    auto both = test::twins_of<float>({{4096 + 20}, {31, 1}, {0}, {8}}, rule, policies...,
                                      descent::learning_rate(broken_at{2, bad}));
    both.steps(2);
    auto const before = both.x.device_value.get(both.s);
    both.steps(2);
    CHECK(test::same_bits(both.x.device_value.get(both.s), before));
    auto const r = both.device.report();
    CHECK(r.step == 2);
    CHECK(r.skipped == 2);
    CHECK(r.why == std::string("lr of group 0 must be finite ") +
                       (std::isnan(bad) ? "and at least 0, is nan"
                        : bad > 0       ? "in float, is 1e+39"
                                        : "and at least 0, is -0.1") +
                       " by its schedule at update 3; skipped updates do not advance schedules, so the next one is "
                       "skipped, too");
    CHECK(both.device.last_report().step <= 2);
    both.expect_same();
    both.each([](auto& opt) { opt.set_step(5); });
    both.steps(2);
    both.expect_same();
    CHECK(both.device.report().step == 7);
  }
}

}  // namespace

TEST_CASE("a field that a schedule moves out of its range skips the step, as on the host, with what rules remember") {
  bad_terms_skip(descent::sgd{.momentum = 0.5});  // no kernel checks whether the step goes on
  bad_terms_skip(descent::heavy_ball{.correction = true}, descent::zero_grad{});
  bad_terms_skip(descent::lamb{}, descent::clip_norm{1}, descent::dynamic_loss_scale{.init = 4});
}

TEST_CASE("a captured step skips for a field out of its range, too") {
  auto runs = test::replayed_of<float>({{40}, {31}}, [](auto& opt) { opt.step(); }, descent::sgd{.momentum = 0.5},
                                       descent::learning_rate(broken_at{2, INFINITY}));
  for (std::uint64_t t = 1; t <= 4; ++t) runs.step(t), runs.expect_same();
  CHECK(runs.captured.report().skipped == 2);
  CHECK(runs.captured.report().why.starts_with("lr of group 0 must be finite and at least 0, is inf by its schedule"));
}

TEST_CASE("zero_grad clears all gradients and nothing beside them") {
  auto both = test::twins_of<descent::half>({{9}, {0}, {4096 + 3, 0, 0, 5}, {16, 1}}, descent::adamw{},
                                            descent::clip_norm{1}, descent::master<float>{});
  both.each([](auto& opt) { opt.zero_grad(); });
  both.expect_same();
  for (std::int64_t i = 0; i < 9; ++i) CHECK(test::number(both.x.gradient_of(0, i)) == 0);
}

}  // namespace skips

// ---- groups --------------------------------------------------------------------------------------------------------

namespace groups {

namespace {

std::vector<test::tensor> const model{{100, 0}, {4099, 1}, {9, 0, 1, 1}, {77, 2}};

using test::launches;

/// Own hyperparameters from the start, then a change, a frozen group, and a thaw. `wanted` is the launches of a step.
template <class Rule, class... Ps> void change_groups(int wanted, Rule rule, Ps... policies) {
  auto both = test::twins_of<float>(model, rule, policies...);
  both.each([](auto& o) { o.group(1).lr = 0.03, o.group(1).weight_decay = 0; });
  both.steps(2);
  both.each([](auto& o) { o.group(0).lr = 0.02, o.freeze(1); });
  both.steps(2);
  both.expect_same();
  both.each([](auto& o) { o.freeze(1, false), o.freeze(2); });
  both.steps(1);
  both.expect_same();
  CHECK(launches([&] { both.step(); }) == wanted);
}

}  // namespace

TEST_CASE("groups have their own hyperparameters, change between steps and freeze as on the host") {
  change_groups(3, descent::adamw{.lr = 0.01}, descent::clip_norm{1});
}

TEST_CASE("groups change as on the host for a rule with sums over tensors") {
  change_groups(3, descent::lars{.lr = 0.01});
}

TEST_CASE("groups change as on the host for a rule with sums over the model, which come after the norm") {
  change_groups(5, descent::dog{.reps = 0.1}, descent::clip_norm{1});
}

TEST_CASE("a frozen group is not touched and does not count, whatever its gradient") {
  auto both = test::twins_of<float>(model, descent::adamw{}, descent::clip_norm{1});
  auto& x = both.x;
  both.each([](auto& opt) { opt.freeze(1); });
  x.gradient_of(1, 4098) = INFINITY;
  std::vector<float> const before(&x.value_of(1, 0), &x.value_of(1, 0) + 4099);
  both.step();
  both.expect_same();
  CHECK(both.device.report().applied);
  CHECK(std::equal(before.begin(), before.end(), &x.value_of(1, 0)));
}

TEST_CASE("a step takes three launches, two without a pass for the norm, one more after a change of groups") {
  test::stream s;
  test::tensors<float> x{model, s};
  descent::optimizer with{x.on_device(), descent::adamw{}, descent::clip_norm{1}, descent::cuda{s}};
  CHECK(launches([&] { with.step(); }) == 3);
  with.group(1).lr = 0.5;
  CHECK(launches([&] { with.step(); }) == 4);
  CHECK(launches([&] { with.step(); }) == 3);
  CHECK(launches([&] { with.zero_grad(); }) == 1);
  CHECK(launches([&] { with.report(); }) == 0);

  descent::optimizer without{x.on_device(), descent::adamw{}, descent::cuda{s}};
  CHECK(launches([&] { without.step(); }) == 2);
}

TEST_CASE("more groups than one launch carries are set in several") {
  std::vector<test::tensor> list;
  for (int g = 0; g < 100; ++g) list.push_back({3, g});
  auto both = test::twins_of<float>(list, descent::adamw{}, descent::clip_norm{1});
  for (int g = 0; g < 100; ++g) both.host.group(g).lr = both.device.group(g).lr = 1e-3 * g;
  both.steps(2);
  both.expect_same();
}

}  // namespace groups

// ---- what it refuses -----------------------------------------------------------------------------------------------

namespace errors {

namespace {

using descent::adamw;

/// The message of what f throws.
template <class Exception, class F> std::string message(F const& f) {
  try {
    f();
  } catch (Exception const& e) {
    return e.what();
  }
  FAIL("nothing was thrown");
  return {};
}

}  // namespace

TEST_CASE("host memory on the CUDA backend is refused by name" * doctest::skip(!test::host_memory_is_out_of_reach())) {
  test::stream s;
  test::tensors<float> x{{{5}, {9}}, s};
  auto const make = [&](float* value, float* gradient) {
    descent::parameters<float> p;
    p.add("good", x.device_value.data() + 16, x.device_gradient.data() + 16, 5);
    p.add("bad", value, gradient, 9);
    return message<std::invalid_argument>([&] { descent::optimizer{p, adamw{}, descent::cuda{s}}; });
  };
  CHECK(make(&x.value_of(1, 0), x.device_gradient.data() + 32) ==
        "parameter 'bad': its value is host memory, which device 0 cannot reach; for host memory use the "
        "backend host{}");
  CHECK(make(x.device_value.data() + 32, &x.gradient_of(1, 0)) ==
        "parameter 'bad': its gradient is host memory, which device 0 cannot reach; for host memory use "
        "the backend host{}");
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("device memory on the host backend is refused by name") {
  test::stream s;
  test::tensors<float> x{{{5}}, s};
  auto const make = [&](float* value, float* gradient) {
    descent::parameters<float> p;
    p.add("w", value, gradient, 5);
    return message<std::invalid_argument>([&] { descent::optimizer{p, adamw{}}; });
  };
  CHECK(make(x.device_value.data(), &x.gradient_of(0, 0)) ==
        "parameter 'w': its value is not host memory; for device memory use the backend "
        "cuda{stream}");
  CHECK(make(&x.value_of(0, 0), x.device_gradient.data()) ==
        "parameter 'w': its gradient is not host memory; for device memory use the backend "
        "cuda{stream}");
}

TEST_CASE("managed and pinned memory are within reach of both backends") {
  test::stream s;
  for (bool const managed : {true, false}) {
    CAPTURE(managed);
    float* p = nullptr;
    if (managed) test::cuda(cudaMallocManaged(&p, 32 * sizeof(float)));
    else test::cuda(cudaMallocHost(&p, 32 * sizeof(float)));
    std::fill_n(p, 16, 1.f);
    std::fill_n(p + 16, 16, 0.5f);
    descent::parameters<float> list;
    list.add("w", p, p + 16, 16);
    descent::optimizer on_device{list, adamw{.lr = 0.1}, descent::cuda{s}};
    on_device.step();
    s.wait();
    CHECK(p[15] == doctest::Approx(0.899));
    descent::optimizer{list, adamw{.lr = 0.1}}.step();
    CHECK(p[15] == doctest::Approx(0.898101 - 0.1));  // an independent optimizer
    test::cuda(managed ? cudaFree(p) : cudaFreeHost(p));
  }
}

TEST_CASE("a step that throws has changed nothing, and the next one works") {
  auto both = test::twins_of<float>({{40}, {5, 1}}, adamw{});
  both.steps(1);
  both.device.group(1).beta1 = 2;
  auto const refused = [&] {
    CHECK_THROWS_WITH_AS(both.device.step(), "group 1: adamw: beta1 must be in [0, 1), is 2", std::invalid_argument);
  };
  CHECK(test::launches(refused) == 0);
  both.expect_same();
  both.device.group(1).beta1 = 0.9;
  both.step();
  both.expect_same();
}

TEST_CASE("an earlier CUDA error of the caller neither stops a step nor is lost") {
  test::stream s;
  test::tensors<float> x{{{40}}, s};
  descent::optimizer opt{x.on_device(), adamw{}, descent::cuda{s}};
  CHECK(cudaSetDevice(1'000'000) == cudaErrorInvalidDevice);
  opt.step();
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(opt.report().step == 1);
}

TEST_CASE("an optimizer can be moved, and says so where it was moved from") {
  test::stream s;
  test::tensors<float> x{{{40}}, s};
  descent::optimizer first{x.on_device(), adamw{}, descent::cuda{s}};
  first.step();
  auto second = std::move(first);
  second.step();
  CHECK(second.report().step == 2);
  CHECK_THROWS_WITH_AS(first.step(), "this optimizer was moved from", std::logic_error);
  CHECK_THROWS_WITH_AS(first.report(), "this optimizer was moved from", std::logic_error);
  CHECK_THROWS_WITH_AS(first.zero_grad(), "this optimizer was moved from", std::logic_error);
}

/// A simulated device would fill all that memory.
TEST_CASE("an optimizer that does not fit into the device's memory throws CUDA's error, and leaks nothing" *
          doctest::skip(test::in_software())) {
  test::stream s;
  std::size_t free = 0, total = 0, later = 0;
  test::cuda(cudaMemGetInfo(&free, &total));
  // 4 bytes of value and 4 of gradient each, and 8 of state, which do not fit
  std::size_t const count = free / 10;
  {
    descent::detail::device_array<float> const value(count), gradient(count);
    descent::parameters<float> list;
    list.add("w", value.get(), gradient.get(), count);
    auto const text = message<descent::cuda_error>([&] { descent::optimizer{list, adamw{}, descent::cuda{s}}; });
    CHECK(text.starts_with("cudaMalloc failed: cudaErrorMemoryAllocation, out of memory"));
  }
  test::cuda(cudaMemGetInfo(&later, &total));
  CHECK(later + (1 << 24) >= free);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("a rule with a field that is not finite in float is refused") {
  test::stream s;
  test::tensors<float> x{{{40}}, s};
  CHECK(message<std::invalid_argument>([&] {
          descent::optimizer{x.on_device(), adamw{.lr = 1e39}, descent::cuda{s}};
        }) == "adamw: lr must be finite in float, is 1e+39");
}

/// A user's schedule.
struct fixed {
  double value = 0.5;
  DESCENT_HD double operator()(std::int64_t) const { return value; }
};

TEST_CASE("explain() names the device, counts launches, and calls only schedules that have a length") {
  auto const has = [](std::string const& text, char const* part) { return text.find(part) != std::string::npos; };
  test::stream s;
  test::tensors<float> x{{{40}}, s};
  descent::optimizer opt{x.on_device(), adamw{}, descent::learning_rate(descent::linear{1, 0, 4}), descent::cuda{s}};
  CHECK(has(opt.explain(), ", on CUDA device 0\n"));
  CHECK(has(opt.explain(), "step: 1 update, 2 launches on a device, no synchronisation\n"));
  CHECK(has(opt.explain(), "\nadamw: lr 1 now, beta1 0.9, "));
  CHECK(has(opt.explain(), "\n  now 1, first 1, largest 1 at update 1, last 0 from update 5 on\n"));
  descent::optimizer other{x.on_device(), adamw{}, descent::learning_rate(fixed{}), descent::cuda{s}};
  CHECK(has(other.explain(), "\nadamw: lr by its schedule, beta1 0.9, "));
  CHECK(has(other.explain(), "\nschedule of lr, fixed: value 0.5\nlr follows a schedule "));
}

}  // namespace errors
