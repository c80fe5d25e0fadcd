// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/average.hpp>
#include <descent/clip.hpp>
#include <descent/cost.hpp>
#include <descent/cuda.cuh>
#include <descent/loss_scale.hpp>
#include <descent/noise.hpp>
#include <descent/optimizer.hpp>
#include <descent/rounding.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/storage.hpp>
#include <descent/zero_grad.hpp>

namespace {

/// Sizes with tails, a tensor that is not aligned, and none at all: 2 chunks and more.
std::vector<test::tensor> const model{{2 * 4096 + 1001}, {0}, {7}, {130, 0, 3, 1}, {4096}};
constexpr std::int64_t elements = 2 * 4096 + 1001 + 7 + 130 + 4096;

std::int64_t moved(void const* p) {
  return std::int64_t(cudasim_traffic(p, 0) + cudasim_traffic(p, 1));
}

/// What a step of whole packets costs beside bytes: instructions in PTX for each parameter; for each packet of 8, accesses
/// of global memory of less than 16 bytes, such as those of terms, and operations on 64-bit floating point.
struct work {
  double instructions, narrow, f64;
};
template <class Step> void costs(work const& recorded, std::int64_t parameters, test::stream const& s, Step const& step) {
  step();
  s.wait();
  cudasim_reset_counters();
  step();
  s.wait();
  auto const per = [&](std::int64_t of, auto... counters) {
    return double((0 + ... + cudasim_count(counters))) * double(of) / double(parameters);
  };
  work const is{per(1, "instructions"), per(8, "narrow_loads", "narrow_stores"), per(8, "f64_operations")};
  MESSAGE(is.instructions, " instructions for each parameter; for each packet ", is.narrow, " narrow accesses, ", is.f64,
          " operations in double");
  CHECK(is.instructions == doctest::Approx(recorded.instructions).epsilon(0.05));
  CHECK(is.narrow == doctest::Approx(recorded.narrow).epsilon(0.05));
  CHECK(is.f64 == doctest::Approx(recorded.f64).epsilon(0.05));
}

/// One step moves exactly the bytes of the model in values, gradients and all that is owned.
template <class Value, class... Ps>
void moves_what_the_model_says(std::int64_t expected, work const& recorded, Ps... policies) {
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
  if constexpr (plan::template given<typename plan::average>) bytes += moved(opt.average("w0").data());
  if constexpr (plan::template given<typename plan::lookahead>) bytes += moved(opt.slow("w0").data());
  CHECK(opt.bytes_per_parameter() == expected);
  CHECK(bytes == elements * expected);

  auto const all =
      std::int64_t(cudasim_count("global_load_bytes") + cudasim_count("global_store_bytes"));
  MESSAGE(std::string(descent::type_name<Value>()), ": ", opt.bytes_per_parameter(),
          " bytes for each of ", elements,
          " parameters; the control block, the terms and the tables add ", all - bytes, " bytes, ",
          100 * (all - bytes) / bytes, " %");
  CHECK(all >= bytes);

  std::int64_t const chunks = 16 * 4096;
  test::tensors<Value> y{{{chunks}}, s};
  descent::optimizer whole{y.on_device(), descent::adamw{}, policies..., descent::cuda{s}};
  costs(recorded, chunks, s, [&] { whole.step(); });
}

}  // namespace

TEST_CASE("a step of AdamW moves exactly the bytes of the model, in as many instructions as recorded" *
          doctest::skip(!test::in_software())) {
  using descent::half, descent::bfloat16;
  descent::clip_norm const clip{1};
  SUBCASE("in float") { moves_what_the_model_says<float>(32, {43.5, 19.2, 27.8}, clip); }
  SUBCASE("in half with a float master") {
    moves_what_the_model_says<half>(30, {47.2, 19.2, 27.8}, clip, descent::master<float>{});
  }
  SUBCASE("in bfloat16") {
    moves_what_the_model_says<bfloat16>(16, {48.9, 19.2, 27.8}, clip, descent::states<bfloat16>{});
  }
  SUBCASE("in half: the whole step") {
    moves_what_the_model_says<half>(40, {55.4, 22.3, 27.8}, clip, descent::master<float>{}, descent::dynamic_loss_scale{},
                                    descent::ema{}, descent::zero_grad{});
  }
  SUBCASE("in bfloat16 with a float master") {
    moves_what_the_model_says<bfloat16>(30, {47.2, 19.2, 27.8}, clip, descent::master<float>{});
  }
  SUBCASE("in bfloat16 with the remainder of a master") {
    moves_what_the_model_says<bfloat16>(28, {58.3, 19.1, 27.8}, clip, descent::master_remainder{});
  }
  SUBCASE("in bfloat16, rounded at random") {
    moves_what_the_model_says<bfloat16>(16, {99.6, 21.3, 27.8}, clip, descent::states<bfloat16>{},
                                        descent::stochastic_rounding{});
  }
  SUBCASE("in float with noise and values clipped, which are free, and slow weights at every step") {
    moves_what_the_model_says<float>(36, {108.0, 18.2, 0.016}, descent::gradient_noise{}, descent::clip_value{},
                                     descent::lookahead{.k = 1});
  }
  SUBCASE("in float, clipped by the norm of the parameters") {
    moves_what_the_model_says<float>(36, {52.1, 17.8, 55.9}, descent::clip_adaptive{});
  }
}

TEST_CASE("a step of AdamW uses no local memory and no generic address" *
          doctest::skip(!test::in_software())) {
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
