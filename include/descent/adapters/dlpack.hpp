// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/parameters.hpp>

#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

/// Parameters from DLPack tensors, the exchange format of PyTorch, JAX, CuPy, TVM and others. The header needs no
/// dlpack.h: Tensor is the DLTensor of yours, any version.
namespace descent {

namespace detail {

/// The codes of DLPack's header: DLDataTypeCode and DLDeviceType.
namespace dlpack_code {
inline constexpr int floating = 2, bfloat = 4;
inline constexpr int cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13;
}  // namespace dlpack_code

[[noreturn]] inline void refuse_tensor(std::string const& name, std::string const& what) {
  throw std::invalid_argument("parameter '" + name + "': " + what);
}

inline std::string dlpack_type(int code, int bits, int lanes) {
  std::string const kind = code == dlpack_code::floating ? "float"
                           : code == dlpack_code::bfloat ? "bfloat"
                                                         : "type code " + std::to_string(code) + ", ";
  return kind + std::to_string(bits) + (lanes == 1 ? "" : " x " + std::to_string(lanes));
}
template <class T> std::string dlpack_type() {
  int const code = std::is_same_v<T, bfloat16> ? dlpack_code::bfloat : dlpack_code::floating;
  return dlpack_type(code, 8 * int(sizeof(T)), 1);
}

/// The elements of a tensor, after all checks.
template <class T, class Tensor>
block<T> block_of_dlpack(std::string const& name, std::string const& what, Tensor const& x) {
  auto const fail = [&](std::string const& why) { refuse_tensor(name, what + " " + why); };
  std::string const type = dlpack_type(int(x.dtype.code), int(x.dtype.bits), int(x.dtype.lanes));
  if (type != dlpack_type<T>()) fail("must be " + dlpack_type<T>() + ", is " + type);
  int const device = int(x.device.device_type);
  if (device != dlpack_code::cpu && device != dlpack_code::cuda && device != dlpack_code::cuda_host &&
      device != dlpack_code::cuda_managed)
    fail("must be in the memory of a CPU or of CUDA (device type 1, 2, 3 or 13), is of device type " +
         std::to_string(device));
  if (x.ndim < 0 || (x.ndim > 0 && !x.shape)) fail("has no shape");
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  block<T> b{nullptr, 1, 1, 1, true};
  for (int i = int(x.ndim); i-- > 0;) {
    std::int64_t const extent = x.shape[i];
    if (extent < 0) fail("has a negative dimension: " + std::to_string(extent));
    if (x.strides && extent > 1 && x.strides[i] != b.count) b.row_major = false;
    if (extent > 0 && b.count > most / extent) fail("has more than 2^63 elements");
    if (i > 0 && extent > 0) b.columns *= extent;
    if (i == 0) b.rows = extent;
    b.count *= extent;
  }
  if (x.ndim == 1) b.rows = b.count, b.columns = 1;
  if (b.count == 0) return {nullptr, 0, 0, b.columns, true};
  if (!b.row_major) fail("is not contiguous in row-major order");
  if (!x.data)
    fail("is null, but there must be " + std::to_string(b.count) + (b.count == 1 ? " element" : " elements"));
  b.at = reinterpret_cast<T*>(static_cast<char*>(x.data) + x.byte_offset);
  return b;
}

}  // namespace detail

/// Adds a parameter whose value and gradient are DLPack tensors, in place: neither is copied, and both must outlive the
/// optimizer. A tensor of several dimensions is a matrix, whose first dimension is the rows. Throws
/// std::invalid_argument, with the list unchanged, if a tensor has another type than the list, is not contiguous in
/// row-major order, is not in the memory of a CPU or CUDA, or if the two differ in their shape or device. The
/// optimizer's backend checks that it can reach the memory.
template <class Value, class Gradient, class Tensor>
void add_dlpack(parameters<Value, Gradient>& to, std::string name, Tensor const& value, Tensor const& gradient,
                group g = {}) {
  static_assert(!detail::types<Value>::several,
                "add_dlpack: give each tensor of parameters<mixed<...>> by add(name, pointer, pointer, shape)");
  auto const v = detail::block_of_dlpack<Value>(name, "the value", value);
  auto const d = detail::block_of_dlpack<Gradient>(name, "the gradient", gradient);
  std::span const of_value(value.shape, std::size_t(value.ndim)),
      of_gradient(gradient.shape, std::size_t(gradient.ndim));
  if (v.rows != d.rows || v.columns != d.columns || !detail::shapes_fit(of_value, of_gradient))
    detail::refuse_tensor(name, "the value is " + detail::text_of_extents(of_value) + ", the gradient " +
                                    detail::text_of_extents(of_gradient));
  if (value.device.device_type != gradient.device.device_type || value.device.device_id != gradient.device.device_id)
    detail::refuse_tensor(name, "the value and the gradient are on different devices");
  to.add(std::move(name), v.at, d.at, shape{v.rows, v.columns}, g);
}

}  // namespace descent
