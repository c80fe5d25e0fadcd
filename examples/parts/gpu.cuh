// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "matrix.hpp"

#include <descent/data/device_loader.hpp>
#include <descent/descent.cuh>

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cub/device/device_for.cuh>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace example {

inline void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(std::string{"CUDA: "} + cudaGetErrorString(status));
}
inline void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string{"cuBLAS: "} + cublasGetStatusString(status));
}

/// Device memory, initially zero.
template <class T> class device_array {
 public:
  explicit device_array(std::size_t size) : size_{size} {
    check(cudaMalloc(&data_, bytes()));
    check(cudaMemset(data_, 0, bytes()));
  }
  explicit device_array(std::vector<T> const& from) : size_{from.size()} {
    check(cudaMalloc(&data_, bytes()));
    check(cudaMemcpy(data_, from.data(), bytes(), cudaMemcpyHostToDevice));
  }
  device_array(device_array&& other) noexcept
      : data_{std::exchange(other.data_, nullptr)}, size_{std::exchange(other.size_, 0)} {}
  device_array& operator=(device_array&&) = delete;
  ~device_array() { cudaFree(data_); }

  T* data() { return data_; }
  T const* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

/// What the network needs of a device, on the GPU: cuBLAS for the matrix products, in the storage type with float sums,
/// and CUB for the rest. Everything is enqueued on one stream.
class gpu {
 public:
  template <class T> using array = device_array<T>;
  template <class Value> using real = Value;

  gpu() {
    check(cudaStreamCreate(&stream_));
    check(cublasCreate(&blas_));
    check(cublasSetStream(blas_, stream_));
  }
  gpu(gpu const&) = delete;
  gpu& operator=(gpu const&) = delete;
  ~gpu() {
    cublasDestroy(blas_);
    cudaStreamDestroy(stream_);
  }

  descent::cuda backend() const { return descent::cuda{stream_}; }

  /// Calls f(i) for every i in [0, n), in any order. Does not synchronise.
  template <class F> void each(std::int64_t n, F f) const { check(cub::DeviceFor::Bulk(n, f, stream_)); }

  /// c = alpha a b. cuBLAS reads matrices column by column, so it sees transposes: c^T = b^T a^T. Does not synchronise.
  template <class A, class B, class C>
  void multiply(double alpha, matrix<A> a, matrix<B> b, matrix<C> c) const {
    float const scale = float(alpha), zero = 0;
    auto const form = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    check(cublasGemmEx(blas_, form(b.transposed), form(a.transposed), c.columns, c.rows, a.width(), &scale, b.data,
                       type<C>, b.columns, a.data, type<C>, a.columns, &zero, c.data, type<C>, c.columns,
                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }

  /// Synchronises.
  template <class T> std::vector<T> to_host(device_array<T> const& from) const {
    std::vector<T> data(from.size());
    check(cudaMemcpyAsync(data.data(), from.data(), from.bytes(), cudaMemcpyDeviceToHost, stream_));
    check(cudaStreamSynchronize(stream_));
    return data;
  }
  /// As many elements as there are. Synchronises.
  template <class T> void to_device(std::vector<T> const& from, device_array<T>& to) const {
    check(cudaMemcpyAsync(to.data(), from.data(), to.bytes(), cudaMemcpyHostToDevice, stream_));
    check(cudaStreamSynchronize(stream_));
  }
  template <class T> void set_zero(device_array<T>& data) const {
    check(cudaMemsetAsync(data.data(), 0, data.bytes(), stream_));
  }

  /// Sums the time on the stream between starts and stops. Only take_seconds() synchronises.
  class stopwatch {
   public:
    explicit stopwatch(gpu& device) : stream_{device.stream_} {}
    stopwatch(stopwatch const&) = delete;
    stopwatch& operator=(stopwatch const&) = delete;
    ~stopwatch() {
      for (auto event : events_) cudaEventDestroy(event);
    }

    void start() { record(); }
    void stop() { record(); }
    double take_seconds() {
      check(cudaStreamSynchronize(stream_));
      double milliseconds = 0;
      for (std::size_t k = 0; k < used_; k += 2) {
        float elapsed = 0;
        check(cudaEventElapsedTime(&elapsed, events_[k], events_[k + 1]));
        milliseconds += elapsed;
      }
      used_ = 0;
      return milliseconds / 1000;
    }

   private:
    void record() {
      if (used_ == events_.size()) check(cudaEventCreate(&events_.emplace_back()));
      check(cudaEventRecord(events_[used_++], stream_));
    }

    cudaStream_t stream_;
    std::vector<cudaEvent_t> events_;
    std::size_t used_ = 0;
  };

 private:
  template <class T>
  static constexpr cudaDataType_t type = std::is_same_v<T, float>           ? CUDA_R_32F
                                         : std::is_same_v<T, descent::half> ? CUDA_R_16F
                                                                            : CUDA_R_16BF;

  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
};

}  // namespace example
