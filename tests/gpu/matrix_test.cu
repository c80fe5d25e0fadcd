// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Rules for matrices on a device, compared with the host. cuBLAS and a BLAS add in different orders, so results agree
// up to rounding; without products they agree to the bit.
#define DESCENT_SEPARATE_ARRAYS  // a memory checker sees accesses beyond each array
#include "support.cuh"
#include "support/message.hpp"

#include <descent/cost.hpp>
#include <descent/cuda.cuh>
#include <descent/matrices/cuda.cuh>
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/kl_shampoo.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/shampoo.hpp>
#include <descent/rules/sm3.hpp>
#include <descent/rules/soap.hpp>

#include <limits>
#include <utility>

namespace {

namespace ds = descent;
using test::contracted;

test::tensor shaped(std::int64_t rows, std::int64_t columns, int group = 0) {
  return {rows * columns, group, 0, 0, columns};
}
std::vector<test::tensor> const few = {shaped(5, 1),  shaped(3, 4), shaped(9, 2), shaped(7, 1),
                                       shaped(2, 11), shaped(3, 4), shaped(9, 2), shaped(3, 4)};

/// The values of one tensor on the device.
template <class Value> std::vector<Value> read(test::tensors<Value>& x, std::size_t k) {
  return test::from_device(x.on_device().views()[k].value, std::size_t(x.list[k].count), x.s);
}

template <class Value, class Rule, class Matrix, class... Ps>
void follows(double tolerance, Rule rule, Matrix matrix, Ps... policies) {
  auto both = test::twins_of<Value>(few, rule, ds::matrices{matrix}, policies...);
  for (int t = 1; t <= 3; ++t) {
    both.x.new_gradients(std::uint64_t(t)), both.step();
    CHECK(both.x.furthest() <= tolerance);
  }
  CHECK(both.device.report().step == 3);
  CHECK(both.device.report().grad_norm == doctest::Approx(both.host.report().grad_norm));
}

/// Of its products, those with bases are not of scratch memory alone.
struct rounded_soap : ds::soap { ds::operands precision = ds::operands::tf32; };

}  // namespace

TEST_CASE("muon on the device is muon on the host") {
  follows<float>(2e-6, ds::adamw{}, ds::muon{.lr = 0.02}, ds::clip_norm{1});
  follows<float>(1e-5, ds::adamw{}, ds::muon{.lr = 0.02, .normalize_rows = true, .adaptive = true}, ds::clip_norm{1});
  follows<float>(0.005, ds::adamw{}, ds::muon{.lr = 0.02, .precision = ds::operands::bf16}, ds::clip_norm{1});
  ds::muon const corrected{.lr = 0.02, .nesterov = false, .bias_correction = true};
  follows<double>(1e-14, ds::lamb{}, corrected, ds::clip_norm{1});
  follows<ds::bfloat16>(0.02, ds::adamw{}, ds::muon{.lr = 0.02}, ds::skip_nonfinite{}, ds::master<float>{}, ds::ema{},
                        ds::zero_grad{});
}

TEST_CASE("products of bfloat16 do not diverge, whatever the singular values") {
  constexpr std::int64_t rows = 32, columns = 64;
  auto const cosines = [](std::int64_t n) {  // the orthogonal matrix of the DCT, its first rows
    std::vector<double> all;
    for (std::int64_t k = 0; k < rows; ++k)
      for (std::int64_t i = 0; i < n; ++i)
        all.push_back(std::sqrt((k == 0 ? 1.0 : 2.0) / double(n)) *
                      std::cos(M_PI * (double(i) + 0.5) * double(k) / double(n)));
    return all;
  };
  auto const left = cosines(rows), right = cosines(columns);
  std::vector<float> gradient(rows * columns);
  for (std::int64_t k = 0; k < rows; ++k) {
    double const singular_value = std::pow(1e-4, double(k) / (rows - 1));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        gradient[std::size_t(i * columns + j)] +=
            float(singular_value * left[std::size_t(k * rows + i)] * right[std::size_t(k * columns + j)]);
  }
  auto const orthogonalized = [&](auto const& coefficients, int steps) {
    test::stream s;
    test::tensors<float> x{{shaped(rows, columns)}, s};
    for (std::int64_t i = 0; i < rows * columns; ++i) x.gradient_of(0, i) = gradient[std::size_t(i)];
    x.send_gradients();
    ds::muon const rule{.lr = 1, .weight_decay = 0, .nesterov = false, .adjust = ds::muon::adjust_by::nothing,
                        .ns_steps = steps, .coefficients = coefficients, .precision = ds::operands::bf16};
    ds::optimizer opt{x.on_device(), ds::adamw{}, ds::matrices{rule}, ds::cuda{s}};
    auto values = read(x, 0);
    opt.step();
    auto const moved = read(x, 0);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= moved[i];
    return values;
  };
  // The largest singular value, which is that of a vector of the DCT: the iteration keeps singular vectors.
  auto const largest = [&](std::vector<float> const& x) {
    double most = 0;
    for (std::int64_t k = 0; k < rows; ++k) {
      double squares = 0;
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::int64_t i = 0; i < rows; ++i)
          sum += left[std::size_t(k * rows + i)] * double(x[std::size_t(i * columns + j)]);
        squares += sum * sum;
      }
      most = test::larger(most, std::sqrt(squares));
    }
    return most;
  };
  using sets = ds::newton_schulz;
  CHECK(largest(orthogonalized(sets::polar_express(), 5)) < 1.25);
  CHECK(largest(orthogonalized(sets::deepseek_v4(), 10)) < 1.02);
}

TEST_CASE("rules without products agree to the last bits of t^-0.8") {
  follows<float>(1e-6, ds::adafactor{}, ds::adafactor{.momentum = 0.9}, ds::clip_norm{1});
  follows<float>(contracted ? 1e-6 : 0, ds::sm3{}, ds::sm3{}, ds::clip_norm{1});
}

TEST_CASE("shampoo on the device is shampoo on the host") {
  ds::shampoo const rule{.eps = 0.1, .graft = true, .every = 2, .iterations = 12};
  follows<float>(1e-4, ds::adamw{}, rule, ds::clip_norm{1});
}

TEST_CASE("soap on the device is soap on the host") {
  ds::soap const rule{.lr = 0.05, .every = 2, .max_precondition_dim = 9};
  follows<double>(1e-11, ds::sgd{}, rule, ds::clip_norm{1});
}

TEST_CASE("kl_shampoo on the device is kl_shampoo on the host") {
  // With a longer side, L has a null space of several dimensions here, whose basis depends on roundings; without
  // `adam`, its eigenvalues are not 0.
  ds::kl_shampoo rule{.lr = 0.05, .eps = 0.01, .every = 2, .max_precondition_dim = 4};
  follows<double>(1e-10, ds::sgd{}, rule, ds::clip_norm{1});
  rule.adam = true, rule.max_precondition_dim = 9;
  follows<double>(1e-10, ds::sgd{}, rule, ds::clip_norm{1});
}

TEST_CASE("kl_shampoo, as soap, whose first updates are skipped, frozen, and captured") {
  auto both =
      test::twins_of<double>({shaped(3, 4), shaped(4, 4, 1)}, ds::sgd{},
                             ds::matrices{ds::kl_shampoo{.lr = 0.05, .eps = 0.01, .every = 1}}, ds::skip_nonfinite{});
  auto& x = both.x;
  auto const step = [&](int t, auto const& device_step) {
    x.new_gradients(std::uint64_t(t));
    if (t == 1) x.gradient_of(1, 0) = std::numeric_limits<double>::quiet_NaN();
    x.send_gradients();
    both.host.step(), device_step();
    INFO("update ", t);
    CHECK(x.furthest() <= 1e-11);
  };
  auto const eager = [&] { both.device.step(); };
  for (int t = 1; t <= 3; ++t) step(t, eager);
  CHECK(both.device.report().step == 2);
  both.each([](auto& opt) { opt.freeze(1); });
  auto const frozen = read(x, 1), free = read(x, 0);
  step(4, eager);
  CHECK(read(x, 1) == frozen);
  CHECK(read(x, 0) != free);
  both.each([](auto& opt) { opt.freeze(1, false); });
  both.device.commit_groups();
  test::graph const graph(both.s, eager);
  for (int t = 5; t <= 6; ++t) step(t, [&] { graph.launch(both.s); });
}

TEST_CASE("a bad gradient anywhere skips all, and nothing is allocated or waited for in a step") {
  test::stream s;
  test::tensors<float> x{few, s};
  ds::optimizer opt{x.on_device(), ds::adamw{}, ds::matrices{ds::shampoo{.eps = 0.1, .iterations = 4}},
                    ds::skip_nonfinite{}, ds::cuda{s}};
  opt.step();
  auto const everything = [&] {
    std::vector<std::vector<float>> all{x.device_value.get(s)};
    for (auto part : {opt.matrix_state<0>("w1"), opt.matrix_state<1>("w1"), opt.matrix_state<3>("w1")})
      all.push_back(test::from_device(part.data(), part.size(), s));
    return all;
  };
  for (std::size_t bad : {0, 1}) {
    auto const before = everything();
    auto const matrix = read(x, 1);
    x.new_gradients(2);
    x.gradient_of(bad, 1) = std::numeric_limits<float>::quiet_NaN();
    x.send_gradients();
    s.wait();
    if (test::in_software()) cudasim_reset_counters();
    opt.step();
    if (test::in_software()) {
      CHECK(cudasim_count("allocations") == 0);
      CHECK(cudasim_count("synchronisations") == 0);
    }
    CHECK(!opt.report().applied);
    CHECK(everything() == before);
    x.new_gradients(2), x.send_gradients();
    opt.step();
    CHECK(opt.report().applied);
    CHECK(read(x, 1) != matrix);
    for (float p : read(x, 1)) CHECK(std::isfinite(p));
  }
}

TEST_CASE("a captured step that accumulates: replays follow the device's count, and changes of the rule") {
  auto both = test::twins_of<float>(few, ds::adamw{}, ds::matrices{ds::muon{}}, ds::accumulate{2});
  test::graph const step(both.s, [&] { both.device.step(); });
  for (int t = 1; t <= 6; ++t) {
    both.x.new_gradients(std::uint64_t((t + 1) / 2)), both.x.send_gradients();
    if (t == 3) {
      both.each([](auto& opt) { opt.matrix_rule().lr = 0.1; });
      both.device.commit_groups();
    }
    both.host.step();
    t < 6 ? step.launch(both.s) : both.device.step();
    CHECK(both.x.furthest() <= 2e-6);
  }
  CHECK(both.device.report().step == 3);
}

TEST_CASE("matrices of one shape together, in rounds or one after the other: the same bits, and launches of one") {
  auto const values_after = [](auto const& rule, int at_once) {
    test::stream s;
    test::tensors<float> x{{shaped(9, 2), shaped(4, 4), shaped(9, 2), shaped(9, 2, 1), shaped(9, 2), shaped(9, 2)}, s};
    ds::matrices policy{rule};
    policy.at_once = at_once;
    ds::optimizer opt{x.on_device(), ds::adamw{}, policy, ds::cuda{s}};
    for (int t = 1; t <= 2; ++t) x.new_gradients(std::uint64_t(t)), x.send_gradients(), opt.step();
    return x.device_value.get(s);
  };
  auto const same = [&](auto const& rule) { CHECK(values_after(rule, 3) == values_after(rule, 1)); };  // of five
  ds::muon const muon{.lr = 0.02, .normalize_rows = true, .adaptive = true};
  same(muon);
  CHECK(values_after(muon, 16) == values_after(muon, 1));
  if (test::in_software()) same(ds::muon{.lr = 0.02, .precision = ds::operands::bf16});  // cuBLAS may add otherwise
  same(ds::shampoo{.eps = 0.1, .graft = true, .every = 2, .iterations = 4});
  same(ds::soap{.lr = 0.05, .every = 2, .max_precondition_dim = 9});
  if (test::in_software()) CHECK(values_after(rounded_soap{}, 16) == values_after(ds::soap{}, 1));  // floats there
  same(ds::adafactor{.momentum = 0.9});
  same(ds::sm3{});

  // The launches that docs/performance_gpu.md states: of the rule, for all matrices, and the first and last for each.
  auto const launches = [](ds::operands precision, int matrices, std::int64_t columns) {
    test::stream s;
    test::tensors<float> x{std::vector(std::size_t(matrices), shaped(4, columns)), s};
    ds::optimizer opt{x.on_device(), ds::adamw{}, ds::matrices{ds::muon{.precision = precision}}, ds::cuda{s}};
    std::int64_t const before = ds::detail::launches;
    opt.step();
    constexpr std::int64_t of_the_step = 2;  // the control block, and the terms of all matrices
    return ds::detail::launches - before - of_the_step;
  };
  using ds::operands;
  CHECK(launches(operands::exact, 1, 4) == 25);
  CHECK(launches(operands::tf32, 1, 8) == 28);
  CHECK(launches(operands::bf16, 1, 8) == 27);
  CHECK(launches(operands::bf16, 8, 8) == 27 + 7 * 2);
  CHECK(launches(operands::exact, 8, 4) == 25 + 7 * (2 + 15));  // products one by one
}

TEST_CASE("matrices that are processed together have scratch memory of 2^26 elements, if one does not need more") {
  auto const scratch = [](std::int64_t n, int at_once) {
    ds::parameters<float> list;  // fake memory
    for (std::uintptr_t i = 1; i <= 8; ++i) {
      auto* const p = reinterpret_cast<float*>(i << 40);
      list.add("w" + std::to_string(i), p, p + (std::int64_t{1} << 32), ds::shape{n, n});
    }
    ds::matrices policy{ds::muon{}};
    policy.at_once = at_once;
    for (auto const& b : ds::memory(list, ds::adamw{}, policy, ds::cuda{nullptr}).buffers)
      if (b.name == "matrices: scratch (float)") return b.bytes / (4 * 4 * n * n);  // X, the next one, A and B
    return std::int64_t{0};
  };
  CHECK(scratch(256, 1) == 1);
  CHECK(scratch(256, 3) == 3);
  CHECK(scratch(256, 16) == 8);
  CHECK(scratch(2048, 8) == 4);
  CHECK(scratch(2240, 8) == 3);
  CHECK(scratch(8192, 8) == 1);
}

TEST_CASE("a rule whose operations differ for matrices of the same shape gets an error") {
  auto const nothing = [](ds::detail::matrix_batch const&, ds::detail::matrix_extent, auto const&) {};
  auto const message = [&](auto const& second) {
    ds::detail::matrix_batch batch;
    batch.next_matrix(), batch.add({4}, nothing, 1.0), batch.add({4}, nothing, 1.0);
    return test::message([&] { second(batch), batch.run(); });
  };
  std::string const told = "matrices: transform() must do the same operations for all matrices of one shape";
  CHECK(message([&](auto& b) { b.next_matrix(), b.add({5}, nothing, 1.0); }) == told);
  CHECK(message([&](auto& b) { b.next_matrix(), b.add({4}, nothing, 1.0f); }) == told);
  CHECK(message([&](auto& b) { b.next_matrix(), b.add({4}, nothing, 1.0); }) == told);
  CHECK(message([&](auto& b) { b.next_matrix(), b.add({4}, nothing, 2.0), b.add({4}, nothing, 3.0); }).empty());
}

TEST_CASE("frozen matrices stay") {
  test::stream s;
  test::tensors<float> x{{shaped(5, 1), shaped(3, 4, 1), shaped(4, 4)}, s};
  ds::optimizer opt{x.on_device(), ds::adamw{}, ds::matrices{ds::muon{}}, ds::cuda{s}};
  opt.freeze(1);
  auto const frozen = read(x, 1), free = read(x, 2);
  opt.step();
  CHECK(read(x, 1) == frozen);
  CHECK(read(x, 2) != free);
}
