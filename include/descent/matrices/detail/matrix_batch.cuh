// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/matrices/detail/matrix_kernels.cuh>
#include <descent/matrices/matrices.hpp>

#include <cublas_v2.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

/// The work of a matrix rule for several matrices of one shape.
namespace descent::detail {

inline void require_cublas(cublasStatus_t status, char const* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + " failed: " + cublasGetStatusString(status));
}

/// A cuBLAS handle with its own workspace, for one stream at a time.
class cublas {
 public:
  cublas() = default;
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;  // as cuBLAS recommends for sm_90

  explicit cublas(std::byte* workspace) : workspace_(workspace) {
    cublasHandle_t h = nullptr;
    require_cublas(cublasCreate(&h), "cublasCreate");
    handle_.reset(h);
  }
  /// The handle, on a stream. cublasSetStream() takes the workspace away.
  cublasHandle_t on(cudaStream_t stream) {
    cublasHandle_t const h = handle_.get();
    if (is_on_ && stream == stream_) return h;
    is_on_ = false;
    require_cublas(cublasSetStream(h, stream), "cublasSetStream");
    require_cublas(cublasSetWorkspace(h, workspace_, workspace_bytes), "cublasSetWorkspace");
    stream_ = stream;
    is_on_ = true;
    return h;
  }

 private:
  struct destroy {
    void operator()(cublasHandle_t h) const noexcept { cublasDestroy(h); }
  };
  std::byte* workspace_ = nullptr;
  bool is_on_ = false;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, destroy> handle_;
};

/// Elements, or rows and columns.
struct matrix_extent {
  std::int64_t n = 0, columns = 0;
  bool operator==(matrix_extent const&) const = default;
};

/// c <- a b as cuBLAS sees it, which reads matrices by column: c' = b' a'.
struct matrix_product {
  void const *left, *right;
  void* result;
  cublasOperation_t of_left, of_right;
  int m, n, inner, left_columns, right_columns;
  cudaDataType type, result_type;

  template <class T, class Result> static matrix_product of(dense<T> a, dense<T> b, Result* c) {
    auto const form = [](dense<T> x) { return x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    return {b.data, a.data, c, form(b), form(a), int(b.width()), int(a.height()), int(a.width()),
            int(b.columns), int(a.columns), type_of<T>(), type_of<Result>()};
  }
  template <class T> static constexpr cudaDataType type_of() {
    return std::is_same_v<T, double> ? CUDA_R_64F : std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;
  }
};

/// The operations of a rule on matrices of one shape. The rule runs once for each matrix, and each run adds its
/// operations, which are the same but for addresses; run() enqueues each of them for all matrices.
class matrix_batch {
 public:
  matrix_gate gate;
  cudaStream_t stream = nullptr;
  cublasHandle_t blas = nullptr;
  operands precision = operands::exact;
  int size = 1;                        // of products that are one call: at least the number of matrices
  std::byte const* scratch = nullptr;  // of the first matrix
  std::int64_t stride = 0;             // bytes from one matrix's scratch to that of the next
  matrix_partials_view partials{};

  /// Drops the operations, perhaps of a step that has failed.
  void clear() { at_ = 0, count_ = 0; }
  void next_matrix() {
    if (count_ == 1) number_ = at_;
    require_same(count_ <= 1 || at_ == number_);
    at_ = 0, ++count_;
  }
  /// Adds an operation. enqueue(batch, extent, functors...) enqueues it for all matrices, with those of each.
  template <class Enqueue, class... Fs> void add(matrix_extent extent, Enqueue, Fs const&... fs) {
    static_assert((std::is_trivially_copyable_v<Fs> && ...), "matrix rules on CUDA: functors are copied to the device");
    static_assert((sizeof(Fs) + ...) <= 200,
                  "matrix rules on CUDA: the functors of an operation have at most 200 bytes");
    if (at_ == operations_.size()) operations_.emplace_back();
    operation& o = operations_[at_++];
    if (count_ == 1) o.enqueue = enqueue_all<Enqueue, Fs...>, o.extent = extent, o.bytes.clear();
    require_same(o.enqueue == enqueue_all<Enqueue, Fs...> && o.extent == extent);
    auto const append = [&]<class F>(F const& f) {
      auto const* const begin = reinterpret_cast<std::byte const*>(&f);
      o.bytes.insert(o.bytes.end(), begin, begin + sizeof(F));
    };
    (append(fs), ...);
  }
  void add(matrix_product const& p) {
    add({}, [](matrix_batch const& b, matrix_extent, functors<matrix_product> const& all) { b.multiply(all); }, p);
  }
  /// Enqueues the operations of all matrices, and begins anew.
  void run() {
    require_same(count_ <= 1 || at_ == number_);
    for (std::size_t i = 0; i < at_; ++i) operations_[i].enqueue(*this, operations_[i]);
    clear();
  }

  launch_grid grid(std::int64_t blocks) const { return {blocks, count_}; }

 private:
  /// The functors of the matrices, one after the other.
  struct operation {
    void (*enqueue)(matrix_batch const&, operation const&);
    matrix_extent extent;
    std::vector<std::byte> bytes;
  };

  template <class Enqueue, class... Fs> static void enqueue_all(matrix_batch const& b, operation const& x) {
    std::tuple<functors<Fs>...> all{};
    std::byte const* from = x.bytes.data();
    auto const read = [&]<class F>(functors<F>& to, int i) {
      std::memcpy(to.of + std::size_t(i) * sizeof(F), from, sizeof(F));
      from += sizeof(F);
    };
    for (int i = 0; i < b.count_; ++i) std::apply([&](auto&... each) { (read(each, i), ...); }, all);
    std::apply([&](auto const&... each) { Enqueue{}(b, x.extent, each...); }, all);
  }

  static void require_same(bool same) {
    if (!same)
      throw std::logic_error("matrices: transform() must do the same operations for all matrices of one shape");
  }
  bool in_scratch(void const* p) const {
    auto const begin = reinterpret_cast<std::uintptr_t>(scratch), at = reinterpret_cast<std::uintptr_t>(p);
    return at >= begin && at < begin + std::uintptr_t(stride);
  }
  void multiply(functors<matrix_product> const& all) const {
    matrix_product const& p = all[0];
    bool const coarse = p.type == CUDA_R_16BF || (p.type == CUDA_R_32F && precision != operands::exact);
    if (coarse && in_scratch(p.left) && in_scratch(p.right) && in_scratch(p.result)) return multiply_together(p);
    for (int i = 0; i < count_; ++i) multiply_one(all[unsigned(i)]);
  }
  /// One call for all.
  void multiply_together(matrix_product const& p) const {
    float const one = 1, zero = 0;
    auto const apart = [&](cudaDataType of) { return stride / (of == CUDA_R_16BF ? 2 : 4); };
    ++launches;
    require_cublas(cublasGemmStridedBatchedEx(blas, p.of_left, p.of_right, p.m, p.n, p.inner, &one, p.left, p.type,
                                              p.left_columns, apart(p.type), p.right, p.type, p.right_columns,
                                              apart(p.type), &zero, p.result, p.result_type, p.m, apart(p.result_type),
                                              size, compute(p), CUBLAS_GEMM_DEFAULT), "cublasGemmStridedBatchedEx");
  }
  void multiply_one(matrix_product const& p) const {
    float const one = 1, zero = 0;
    double const double_one = 1, double_zero = 0;
    bool const wide = p.type == CUDA_R_64F;
    ++launches;
    require_cublas(cublasGemmEx(blas, p.of_left, p.of_right, p.m, p.n, p.inner,
                                wide ? static_cast<void const*>(&double_one) : &one, p.left, p.type, p.left_columns,
                                p.right, p.type, p.right_columns, wide ? static_cast<void const*>(&double_zero) : &zero,
                                p.result, p.result_type, p.m, wide ? CUBLAS_COMPUTE_64F : compute(p),
                                CUBLAS_GEMM_DEFAULT), "cublasGemmEx");
  }
  cublasComputeType_t compute(matrix_product const& p) const {
    return p.type == CUDA_R_32F && precision != operands::exact ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  }

  std::vector<operation> operations_;
  std::size_t at_ = 0, number_ = 0;  // of operations: added for this matrix, and for each
  int count_ = 0;
};

}  // namespace descent::detail
