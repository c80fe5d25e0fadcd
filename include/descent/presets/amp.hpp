// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/storage.hpp>

#include <optional>
#include <string_view>
#include <type_traits>

/// Automatic mixed precision at compile time: the opt levels of NVIDIA apex as bundles of policies, and PyTorch's
/// autocast as a function of types.
namespace descent {

/// The opt levels O0 to O3, and the types that autocast gives to each operation.
namespace amp {

/// A row of apex.amp's table. A field is empty where apex has None; an empty loss scale is dynamic.
struct properties {
  /// As in apex.amp.frontend.Properties.
  bool enabled = true;
  std::optional<std::string_view> cast_model_type{};
  bool cast_functions = false;  ///< apex's patch_torch_functions: each operation has its own type, see compute_t
  std::optional<bool> keep_batchnorm_fp32{}, master_weights{};
  std::optional<double> loss_scale{};
};

/// O0: everything in float.
struct O0 : descent::detail::policy_bundle<> {
  using value = float;       ///< of the parameters
  using norm_value = float;  ///< of the parameters of batch normalization
  /// The row of apex.amp's table.
  static constexpr amp::properties properties{.cast_model_type = "float", .master_weights = false, .loss_scale = 1};
};

/// O1: parameters in float, each operation in the type of compute_t, a dynamic loss scale.
template <class Low = half> struct O1_of : descent::detail::policy_bundle<dynamic_loss_scale> {
  /// As in O0.
  using value = float;
  using norm_value = float;
  using low = Low;  ///< of compute_t
  static constexpr amp::properties properties{.cast_functions = true};
};

/// O2: parameters in low precision, except those of batch normalization; a master copy in float, a dynamic loss scale.
template <class Low = half> struct O2_of : descent::detail::policy_bundle<master<float>, dynamic_loss_scale> {
  /// As in O0.
  using value = Low;
  using norm_value = float;
  static constexpr amp::properties properties{
      .cast_model_type = type_name<Low>(), .keep_batchnorm_fp32 = true, .master_weights = true};
};

/// O3: everything in low precision, the "speed of light".
template <class Low = half> struct O3_of : descent::detail::policy_bundle<> {
  /// As in O0.
  using value = Low;
  using norm_value = Low;
  static constexpr amp::properties properties{
      .cast_model_type = type_name<Low>(), .keep_batchnorm_fp32 = false, .master_weights = false, .loss_scale = 1};
};

/// The levels with half.
using O1 = O1_of<>;
using O2 = O2_of<>;
using O3 = O3_of<>;

/// The operations that are on a list of PyTorch 2.15's autocast for CUDA (aten/src/ATen/autocast_mode.h), without
/// overloads and private ones. `other` is any operation on no list, such as addition, relu and batch normalization.
enum class op {
  // low precision
  conv1d, conv2d, conv3d, conv_tbc, conv_transpose1d, conv_transpose2d, conv_transpose3d, convolution, prelu, addmm,
  addmv, addr, matmul, einsum, mm, mv, linalg_vecdot, linear, addbmm, baddbmm, bmm, chain_matmul, linalg_multi_dot,
  lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell, scaled_dot_product_attention,
  // float
  acos, asin, cosh, erfinv, exp, expm1, log, log10, log2, log1p, reciprocal, rsqrt, sinh, tan, pow, softplus,
  layer_norm, native_layer_norm, rms_norm, group_norm, frobenius_norm, nuclear_norm, cosine_similarity,
  poisson_nll_loss, cosine_embedding_loss, nll_loss, nll_loss2d, hinge_embedding_loss, kl_div, l1_loss,
  smooth_l1_loss, huber_loss, mse_loss, margin_ranking_loss, multilabel_margin_loss, soft_margin_loss,
  triplet_margin_loss, multi_margin_loss, binary_cross_entropy_with_logits, dist, pdist, cdist, renorm, logsumexp,
  upsample_nearest1d, upsample_nearest2d, upsample_nearest3d, upsample_linear1d, upsample_bilinear2d,
  upsample_trilinear3d, upsample_bicubic2d,
  // float unless the caller names a type
  prod, softmax, log_softmax, cumprod, cumsum, linalg_vector_norm, linalg_matrix_norm, sum, norm,
  // widest type of the inputs
  addcdiv, addcmul, atan2, bilinear, cross, dot, vdot, grid_sampler, index_put, tensordot, scatter_add, cat, stack,
  // error
  binary_cross_entropy,
  other,
};

/// What autocast does to the inputs of an operation.
enum class cast { low, to_float, promote, banned, none };

/// The list that an operation is on.
constexpr cast list_of(op o) {
  if (o <= op::scaled_dot_product_attention) return cast::low;
  if (o <= op::norm) return cast::to_float;
  if (o <= op::stack) return cast::promote;
  if (o == op::binary_cross_entropy) return cast::banned;
  return cast::none;
}

}  // namespace amp

namespace detail {

/// The narrowest type that holds the values of all; float for half and bfloat16 together.
template <class T, class... Ts> struct widest { using type = T; };
template <class A, class B, class... Ts> struct widest<A, B, Ts...> {
  using wider = std::conditional_t<(sizeof(A) > sizeof(B)), A, B>;
  static constexpr bool apart = sizeof(A) == sizeof(B) && !std::is_same_v<A, B>;
  using type = typename widest<std::conditional_t<apart, float, wider>, Ts...>::type;
};

template <amp::op O, class Low, class... Inputs> struct compute {
  static constexpr amp::cast rule = amp::list_of(O);
  static_assert(rule != amp::cast::banned,
                "binary_cross_entropy is banned under autocast, because its gradients exceed the range of half: "
                "use binary_cross_entropy_with_logits, before the sigmoid");
  using widest = typename detail::widest<Inputs...>::type;
  using cast =
      std::conditional_t<rule == amp::cast::low, Low, std::conditional_t<rule == amp::cast::to_float, float, widest>>;
  using type = std::conditional_t<std::is_same_v<widest, double>, double, cast>;
};
template <amp::op O, class Low> struct compute<O, Low> : compute<O, Low, Low> {};

}  // namespace detail

namespace amp {

/// The type in which an operation computes and which it returns under autocast to Low, given the types of its
/// floating-point inputs. If no types are given, all are Low.
///
///     low          Low
///     to_float     float
///     promote      the widest of the inputs
///     none         the widest of the inputs
///     any of them  double, if an input is double: double is never cast
///     banned       does not compile
template <op O, storage_type Low, storage_type... Inputs>
using compute_t = typename descent::detail::compute<O, Low, Inputs...>::type;

/// The type of the sums inside the operation.
template <op O, storage_type Low, storage_type... Inputs>
using accumulate_t = std::conditional_t<std::is_same_v<compute_t<O, Low, Inputs...>, double>, double, float>;

}  // namespace amp
}  // namespace descent
