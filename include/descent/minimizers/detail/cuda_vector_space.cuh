// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/block_reduce.cuh>
#include <descent/minimizers/detail/device_layout.cuh>
#include <descent/minimizers/detail/host_vector_space.hpp>

/// The vectors of host_vector_space.hpp in device memory. Sums are in double: blocks sum over chunks, and the host adds
/// those sums in order, so the bits are the same on every device.
namespace descent::detail {

/// Calls f(x, i) for every element i of every tensor x.
template <class Record, class F>
__global__ __launch_bounds__(chunk_threads) void each_element(Record const* tensors,
                                                              std::int32_t const* tensor_of_chunk, F f) {
  auto const& t = tensors[tensor_of_chunk[blockIdx.x]];
  auto const [begin, size] = span_of(std::int64_t(blockIdx.x), t);
  for (int i = int(threadIdx.x); i < size; i += chunk_threads) f(t, begin + i);
}

/// Calls f(i) for every i below n.
template <class F> __global__ __launch_bounds__(chunk_threads) void each_number(std::int64_t n, F f) {
  std::int64_t const begin = std::int64_t(blockIdx.x) * chunk_size;
  for (std::int64_t i = begin + threadIdx.x; i < n && i < begin + chunk_size; i += chunk_threads) f(i);
}

/// Combines element(i) for every i below n, over each chunk.
template <class Element, class Combine>
__global__ __launch_bounds__(chunk_threads) void reduce_chunks(std::int64_t n, double* partial, Element element,
                                                               Combine combine) {
  __shared__ double of_warps[chunk_threads / warp];
  std::int64_t const begin = std::int64_t(blockIdx.x) * chunk_size;
  double sum = 0;
  for (std::int64_t i = begin + threadIdx.x; i < n && i < begin + chunk_size; i += chunk_threads)
    sum = combine(sum, element(i));
  sum = reduce_block(of_warps, sum, combine);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

template <class Record, class Real> struct load_value {
  Real* to;
  __device__ void operator()(Record const& t, std::int64_t i) const { to[t.arena + i] = widen<Real>(t.value[i]); }
};
template <class Record, class Real> struct load_gradient {
  Real* to;
  __device__ void operator()(Record const& t, std::int64_t i) const { to[t.arena + i] = widen<Real>(t.gradient[i]); }
};
template <class Record, class Value, class Real> struct store_value {
  Real const *x, *d;
  Real a;
  __device__ void operator()(Record const& t, std::int64_t i) const {
    t.value[i] = narrow<Value>(x[t.arena + i] + a * d[t.arena + i]);
  }
};
template <class Record, class Value, class Real> struct restore_value {
  Real const* x;
  __device__ void operator()(Record const& t, std::int64_t i) const { t.value[i] = narrow<Value>(x[t.arena + i]); }
};
template <class Real> struct combine_elements {
  Real const* x;
  Real* y;
  Real a, b;
  __device__ void operator()(std::int64_t i) const { y[i] = a * x[i] + b * y[i]; }
};
template <class Real> struct product_of {
  Real const *x, *y;
  __device__ double operator()(std::int64_t i) const { return double(x[i]) * double(y[i]); }
};
template <class Real> struct size_of {
  Real const* x;
  __device__ double operator()(std::int64_t i) const { return abs(double(x[i])); }
};

template <class Real> class device_vector {
 public:
  device_vector() = default;
  explicit device_vector(std::size_t size) : data_(size), size_(size) {}
  Real* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  device_array<Real> data_;
  std::size_t size_ = 0;
};

template <class Value, class Gradient> class vector_space<Value, Gradient, cuda> {
  using record = typename device_layout<Value, Gradient>::record;

 public:
  using real = std::conditional_t<std::is_same_v<Value, double>, double, float>;
  using vector = device_vector<real>;

  vector_space(parameters<Value, Gradient> const& params, cuda const& backend) : where_(params, backend.stream) {
    require_code(each_number<combine_elements<real>>, where_.device);
    blocks_ = chunks_of(where_.arena);
    partial_ = device_array<double>(std::size_t(blocks_));
    on_host_.resize(std::size_t(blocks_));
  }

  vector zeros() const {
    device_scope const scope(where_.device);
    vector x{std::size_t(where_.arena)};
    if (x.size()) require_cuda(cudaMemsetAsync(x.data(), 0, x.size() * sizeof(real), where_.stream), "cudaMemsetAsync");
    return x;
  }

  void load_values(vector& to) const { elements(load_value<record, real>{to.data()}); }
  void load_gradients(vector& to) const { elements(load_gradient<record, real>{to.data()}); }
  void store_values(vector const& x) const { elements(restore_value<record, Value, real>{x.data()}); }
  void store_values(vector const& x, double a, vector const& d) const {
    elements(store_value<record, Value, real>{x.data(), d.data(), real(a)});
  }
  double dot(vector const& x, vector const& y) const {
    return reduced(product_of<real>{x.data(), y.data()}, detail::combine<false>{});
  }
  double abs_sum(vector const& x) const { return reduced(size_of<real>{x.data()}, detail::combine<false>{}); }
  double abs_max(vector const& x) const { return reduced(size_of<real>{x.data()}, detail::combine<true>{}); }
  void combine(double a, vector const& x, double b, vector& y) const {
    device_scope const scope(where_.device);
    combine_elements<real> const f{x.data(), y.data(), real(a), real(b)};
    launch(each_number<combine_elements<real>>, blocks_, chunk_threads, where_.stream, where_.arena, f);
  }

 private:
  template <class F> void elements(F const& f) const { where_.each_chunk(each_element<record, F>, f); }
  template <class Element, class Combine> double reduced(Element const& element, Combine const& both) const {
    device_scope const scope(where_.device);
    launch(reduce_chunks<Element, Combine>, blocks_, chunk_threads, where_.stream, where_.arena, partial_.get(),
           element, both);
    if (blocks_)
      require_cuda(cudaMemcpyAsync(on_host_.data(), partial_.get(), on_host_.size() * sizeof(double),
                                   cudaMemcpyDeviceToHost, where_.stream),
                   "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(where_.stream), "cudaStreamSynchronize");
    double sum = 0;
    for (double one : on_host_) sum = both(sum, one);
    return sum;
  }

  device_layout<Value, Gradient> where_;
  std::int64_t blocks_ = 0;
  device_array<double> partial_;
  mutable std::vector<double> on_host_;
};

}  // namespace descent::detail
