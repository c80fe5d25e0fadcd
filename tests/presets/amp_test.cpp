// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Opt levels against the table of NVIDIA apex, and autocast against the lists of PyTorch, operation by operation.
#include <descent/core/policy.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/storage.hpp>
#include <descent/presets/amp.hpp>

#include <doctest/doctest.h>

#include <type_traits>

namespace ds = descent;
namespace amp = descent::amp;
using amp::op, amp::cast, amp::list_of, amp::compute_t, amp::accumulate_t;
using ds::half, ds::bfloat16;

namespace {

template <class A, class B> constexpr bool same = std::is_same_v<A, B>;

template <op O> constexpr bool computes_low =
    list_of(O) == cast::low && same<compute_t<O, half>, half> && same<compute_t<O, bfloat16>, bfloat16> &&
    same<compute_t<O, half, float, float>, half> && same<compute_t<O, half, half, float>, half> &&
    same<compute_t<O, bfloat16, float>, bfloat16> && same<compute_t<O, half, bfloat16>, half> &&
    same<compute_t<O, float, half>, float> && same<compute_t<O, half, double>, double> &&
    same<compute_t<O, half, half, double, float>, double> && same<accumulate_t<O, half>, float> &&
    same<accumulate_t<O, bfloat16, float>, float> && same<accumulate_t<O, half, double>, double>;

template <op O> constexpr bool computes_float =
    list_of(O) == cast::to_float && same<compute_t<O, half>, float> && same<compute_t<O, bfloat16>, float> &&
    same<compute_t<O, half, half, half>, float> && same<compute_t<O, half, float>, float> &&
    same<compute_t<O, half, half, double>, double> && same<accumulate_t<O, half>, float> &&
    same<accumulate_t<O, half, double>, double>;

template <op O, cast List> constexpr bool computes_widest =
    list_of(O) == List && same<compute_t<O, half>, half> && same<compute_t<O, bfloat16>, bfloat16> &&
    same<compute_t<O, half, half, half>, half> && same<compute_t<O, half, half, float>, float> &&
    same<compute_t<O, half, float, half, half>, float> && same<compute_t<O, half, float>, float> &&
    same<compute_t<O, half, half, bfloat16>, float> && same<compute_t<O, half, bfloat16, half, half>, float> &&
    same<compute_t<O, half, bfloat16>, bfloat16> && same<compute_t<O, half, half, double, float>, double> &&
    same<compute_t<O, half, double>, double> && same<accumulate_t<O, half>, float> &&
    same<accumulate_t<O, half, half, float>, float> && same<accumulate_t<O, half, half, double>, double>;

template <op... Os> constexpr bool all_low = (computes_low<Os> && ...);
template <op... Os> constexpr bool all_float = (computes_float<Os> && ...);
template <op... Os> constexpr bool all_widest = (computes_widest<Os, cast::promote> && ...);

static_assert(all_low<op::conv1d, op::conv2d, op::conv3d, op::conv_tbc, op::conv_transpose1d, op::conv_transpose2d,
                      op::conv_transpose3d, op::convolution, op::prelu, op::addmm, op::addmv, op::addr, op::matmul,
                      op::einsum, op::mm, op::mv, op::linalg_vecdot, op::linear, op::addbmm, op::baddbmm, op::bmm,
                      op::chain_matmul, op::linalg_multi_dot, op::lstm_cell, op::gru_cell, op::rnn_tanh_cell,
                      op::rnn_relu_cell, op::scaled_dot_product_attention>);
static_assert(
    all_float<op::acos, op::asin, op::cosh, op::erfinv, op::exp, op::expm1, op::log, op::log10, op::log2, op::log1p,
              op::reciprocal, op::rsqrt, op::sinh, op::tan, op::pow, op::softplus, op::layer_norm,
              op::native_layer_norm, op::rms_norm, op::group_norm, op::frobenius_norm, op::nuclear_norm,
              op::cosine_similarity, op::poisson_nll_loss, op::cosine_embedding_loss, op::nll_loss, op::nll_loss2d,
              op::hinge_embedding_loss, op::kl_div, op::l1_loss, op::smooth_l1_loss, op::huber_loss, op::mse_loss,
              op::margin_ranking_loss, op::multilabel_margin_loss, op::soft_margin_loss, op::triplet_margin_loss,
              op::multi_margin_loss, op::binary_cross_entropy_with_logits, op::dist, op::pdist, op::cdist, op::renorm,
              op::logsumexp, op::upsample_nearest1d, op::upsample_nearest2d, op::upsample_nearest3d,
              op::upsample_linear1d, op::upsample_bilinear2d, op::upsample_trilinear3d, op::upsample_bicubic2d>);
static_assert(all_float<op::prod, op::softmax, op::log_softmax, op::cumprod, op::cumsum, op::linalg_vector_norm,
                        op::linalg_matrix_norm, op::sum, op::norm>);
static_assert(all_widest<op::addcdiv, op::addcmul, op::atan2, op::bilinear, op::cross, op::dot, op::vdot,
                         op::grid_sampler, op::index_put, op::tensordot, op::scatter_add, op::cat, op::stack>);
static_assert(computes_widest<op::other, cast::none>);
static_assert(list_of(op::binary_cross_entropy) == cast::banned);
static_assert(int(op::other) == 28 + 51 + 9 + 13 + 1, "an operation is tested nowhere above");

template <class Level, class Value, class Norm> constexpr bool has_types =
    same<typename Level::value, Value> && same<typename Level::norm_value, Norm>;

static_assert(has_types<amp::O0, float, float>);
static_assert(has_types<amp::O1, float, float>);
static_assert(has_types<amp::O2, half, float>);
static_assert(has_types<amp::O3, half, half>);
static_assert(has_types<amp::O1_of<bfloat16>, float, float> && same<amp::O1_of<bfloat16>::low, bfloat16>);
static_assert(has_types<amp::O2_of<bfloat16>, bfloat16, float>);
static_assert(has_types<amp::O3_of<bfloat16>, bfloat16, bfloat16>);

template <class Level, class... Ps> constexpr bool is_bundle_of =
    same<typename Level::bundle, ds::detail::policy_bundle<Ps...>> &&
    std::is_base_of_v<ds::detail::policy_bundle<Ps...>, Level> && (std::is_base_of_v<Ps, Level> && ...) &&
    std::is_aggregate_v<Level> && !ds::policy<Level>;

static_assert(is_bundle_of<amp::O0>);
static_assert(is_bundle_of<amp::O1, ds::dynamic_loss_scale>);
static_assert(is_bundle_of<amp::O2, ds::master<float>, ds::dynamic_loss_scale>);
static_assert(is_bundle_of<amp::O3>);

constexpr amp::properties o0 = amp::O0::properties, o1 = amp::O1::properties, o2 = amp::O2::properties,
                          o3 = amp::O3::properties;

static_assert(o0.enabled && o1.enabled && o2.enabled && o3.enabled);
static_assert(o0.cast_model_type == "float" && !o1.cast_model_type && o2.cast_model_type == "half" &&
              o3.cast_model_type == "half");
static_assert(!o0.cast_functions && o1.cast_functions && !o2.cast_functions && !o3.cast_functions);
static_assert(!o0.keep_batchnorm_fp32.has_value() && !o1.keep_batchnorm_fp32.has_value());
static_assert(o2.keep_batchnorm_fp32 == true && o3.keep_batchnorm_fp32 == false);
static_assert(o0.master_weights == false && !o1.master_weights.has_value());
static_assert(o2.master_weights == true && o3.master_weights == false);
static_assert(o0.loss_scale == 1. && !o1.loss_scale && !o2.loss_scale && o3.loss_scale == 1.);
static_assert(amp::O2_of<bfloat16>::properties.cast_model_type == "bfloat16");

}  // namespace

TEST_CASE("opt levels: the loss scale of a level can be set by name") {
  amp::O2 level{};
  CHECK(level.init == 65536);
  level.init = 1024;
  level.hysteresis = 2;
  ds::dynamic_loss_scale const& policy = level;
  CHECK(policy.start().scale == 1024);
  CHECK(policy.start().left == 2);
}

TEST_CASE("opt levels: every one is a value without arguments") {
  [[maybe_unused]] amp::O0 const o0{};
  [[maybe_unused]] amp::O3 const o3{};
  CHECK(amp::O1{}.start().scale == 65536);
}
