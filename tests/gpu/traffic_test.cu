// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#define DESCENT_SEPARATE_ARRAYS  // bytes are counted for each array
#include "support.cuh"

#include <descent/cost.hpp>
#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>

namespace {

/// Sizes with tails, an unaligned tensor and an empty one: more than 2 chunks.
std::vector<test::tensor> const model{{2 * 4096 + 1001}, {0}, {7}, {130, 0, 3, 1}, {4096}};
constexpr std::int64_t elements = 2 * 4096 + 1001 + 7 + 130 + 4096;

std::int64_t moved(void const* p) { return std::int64_t(cudasim_traffic(p, 0) + cudasim_traffic(p, 1)); }

template <class... Names> std::int64_t counted(Names... counters) {
  return std::int64_t((0 + ... + cudasim_count(counters)));
}

/// A step of whole packets: few launches, all elements in accesses of 16 bytes, and double only for sums, whose pass is
/// another launch. Prints the other costs: PTX instructions for each parameter and, for each packet of 8, accesses of
/// less than 16 bytes, such as those of terms, and operations in double.
template <class Plan, class Optimizer>
void costs_what_it_promises(Optimizer& opt, std::int64_t parameters, test::stream const& s) {
  opt.step();
  s.wait();
  cudasim_reset_counters();
  opt.step();
  s.wait();
  auto const narrow = counted("narrow_loads", "narrow_stores"), in_double = counted("f64_operations");
  auto const packets = parameters / 8;
  CHECK(counted("launches") == (Plan::measures ? 3 : 2));
  CHECK((counted("global_loads", "global_stores") - narrow) * 16 >= parameters * opt.bytes_per_parameter());
  if (!Plan::measures) CHECK(in_double < packets);
  auto const for_each = [](std::int64_t count, std::int64_t of) { return double(count) / double(of); };
  MESSAGE(for_each(counted("instructions"), parameters), " instructions for each parameter; for each packet ",
          for_each(narrow, packets), " narrow accesses, ", for_each(in_double, packets), " operations in double");
}

/// One step moves exactly the bytes of the model in values, gradients and owned memory.
template <class Value, class... Ps>
void moves_what_the_model_says(std::int64_t expected, Ps... policies) {
  using plan = descent::detail::plan<Value, Value, descent::adamw, Ps...>;
  static constexpr auto constant = descent::bytes_per_parameter<Value, Value, descent::adamw, Ps...>();
  CHECK(constant == expected);
  test::stream s;
  test::tensors<Value> x{model, s};
  descent::optimizer opt{x.on_device(), descent::adamw{}, policies..., descent::cuda{s}};
  opt.step();
  s.wait();
  cudasim_reset_counters();
  opt.step();
  s.wait();

  std::int64_t bytes = moved(x.device_value.data()) + moved(x.device_gradient.data());
  for (std::size_t slot = 0; slot < 2; ++slot) bytes += moved(opt.state("w0", slot).data());
  if constexpr (plan::has_master) bytes += moved(opt.master("w0").data());
  if constexpr (plan::has_remainder) bytes += moved(opt.remainder("w0").data());
  if constexpr (descent::detail::has<plan, descent::kind::average>) bytes += moved(opt.average("w0").data());
  if constexpr (descent::detail::has<plan, descent::kind::lookahead>) bytes += moved(opt.slow("w0").data());
  if constexpr (plan::has_outer) bytes += moved(opt.outer_momentum("w0").data());
  CHECK(opt.bytes_per_parameter() == expected);
  CHECK(bytes == elements * expected);

  auto const all = std::int64_t(cudasim_count("global_load_bytes") + cudasim_count("global_store_bytes"));
  MESSAGE(std::string(descent::type_name<Value>()), ": ", opt.bytes_per_parameter(), " bytes for each of ", elements,
          " parameters; the control block, the terms and the tables add ", all - bytes, " bytes, ",
          100 * (all - bytes) / bytes, " %");
  CHECK(all >= bytes);

  std::int64_t const chunks = 16 * 4096;
  test::tensors<Value> y{{{chunks}}, s};
  descent::optimizer whole{y.on_device(), descent::adamw{}, policies..., descent::cuda{s}};
  costs_what_it_promises<plan>(whole, chunks, s);
}

}  // namespace

TEST_CASE("a step of AdamW moves exactly the bytes of the model, in accesses of 16 bytes" *
          doctest::skip(!test::in_software())) {
  using descent::half, descent::bfloat16;
  descent::clip_norm const clip{1};
  SUBCASE("in float") { moves_what_the_model_says<float>(32, clip); }
  SUBCASE("in half with a float master") { moves_what_the_model_says<half>(30, clip, descent::master<float>{}); }
  SUBCASE("in bfloat16") { moves_what_the_model_says<bfloat16>(16, clip, descent::states<bfloat16>{}); }
  SUBCASE("in half: the whole step") {
    moves_what_the_model_says<half>(40, clip, descent::master<float>{}, descent::dynamic_loss_scale{}, descent::ema{},
                                    descent::zero_grad{});
  }
  SUBCASE("in bfloat16 with a float master") {
    moves_what_the_model_says<bfloat16>(30, clip, descent::master<float>{});
  }
  SUBCASE("in bfloat16 with the remainder of a master") {
    moves_what_the_model_says<bfloat16>(28, clip, descent::master_remainder{});
  }
  SUBCASE("in bfloat16, rounded at random") {
    moves_what_the_model_says<bfloat16>(16, clip, descent::states<bfloat16>{}, descent::stochastic_rounding{});
  }
  SUBCASE("in float with noise and values clipped, which are free, and slow weights at every step") {
    moves_what_the_model_says<float>(36, descent::gradient_noise{}, descent::clip_value{}, descent::lookahead{.k = 1});
  }
  SUBCASE("in float, with values ahead of the parameters") {
    moves_what_the_model_says<float>(44, descent::ema_nesterov{});
  }
  SUBCASE("in float, clipped by the norm of the parameters") {
    moves_what_the_model_says<float>(36, descent::clip_adaptive{});
  }
}

TEST_CASE("a step of AdamW uses no local memory and no generic address" * doctest::skip(!test::in_software())) {
  test::stream s;
  test::tensors<float> x{{{8 * 4096}}, s};
  descent::optimizer opt{x.on_device(), descent::adamw{}, descent::clip_norm{1}, descent::cuda{s}};
  s.wait();
  cudasim_reset_counters();
  opt.step();
  s.wait();
  CHECK(cudasim_count("local_accesses") == 0);
  CHECK(cudasim_count("generic_accesses") == 0);
}
