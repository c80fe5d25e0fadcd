// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/descent.cuh>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Tensors and what the engine keeps for them, as seen by kernels of the library and of the experiments.
namespace experiments {

namespace ds = descent;
namespace detail = descent::detail;
using detail::require_cuda;

__device__ inline std::uint64_t mixed(std::uint64_t x) {  // of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The number of blocks of 256 threads for a kernel that strides over n elements.
inline std::int64_t blocks_for(std::int64_t n) { return std::min<std::int64_t>((n + 255) / 256, 4096); }

__device__ inline std::int64_t first_element() { return 256 * std::int64_t(blockIdx.x) + threadIdx.x; }

/// Roughly normal numbers, the same for any grid.
template <class T> __global__ void fill(T* to, std::int64_t n, std::uint64_t seed, float deviation) {
  for (std::int64_t i = first_element(); i < n; i += 256 * std::int64_t(gridDim.x)) {
    std::uint64_t const bits = mixed(mixed(std::uint64_t(i)) + seed);
    float sum = 0;
    for (int j = 0; j < 4; ++j) sum += float(bits >> (16 * j) & 0xffff) / 32768 - 1;
    to[i] = ds::narrow<T>(deviation * 0.866f * sum);
  }
}

/// A sum over elements of a hash of position and bits, which does not depend on their order.
template <class T> __global__ void add_hash(std::uint64_t* sum, T const* x, std::int64_t n, std::uint64_t seed) {
  std::uint64_t own = 0;
  for (std::int64_t i = first_element(); i < n; i += 256 * std::int64_t(gridDim.x)) {
    std::uint32_t bits = 0;
    memcpy(&bits, x + i, sizeof(T));
    own += mixed(mixed(std::uint64_t(i) + seed) ^ bits);
  }
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(own));
}

/// The largest distance between two elements, in representable numbers of the type, and how many elements differ.
template <class T> __global__ void add_distance(unsigned long long* result, T const* a, T const* b, std::int64_t n) {
  using word = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;
  auto const place = [](T x) {
    word bits;
    memcpy(&bits, &x, sizeof bits);
    word const magnitude = bits & word(word(-1) >> 1);
    return bits == magnitude ? std::int64_t(magnitude) : -std::int64_t(magnitude);
  };
  for (std::int64_t i = first_element(); i < n; i += 256 * std::int64_t(gridDim.x)) {
    std::int64_t const d = place(a[i]) - place(b[i]);
    if (d == 0) continue;
    atomicMax(result, static_cast<unsigned long long>(d < 0 ? -d : d));
    atomicAdd(result + 1, 1ull);
  }
}

/// One set of buffers for a plan of one type.
template <class Plan> class problem {
  using storage_type = detail::cuda_storage<Plan>;
  using value = typename Plan::value;
  using entry = typename storage_type::entry;
  using where_type = typename storage_type::tensors;

 public:
  /// With `odd`, every third tensor starts at an unaligned element.
  problem(std::vector<std::int64_t> const& sizes, typename Plan::policies const& policies, cudaStream_t stream,
          bool odd = false)
      : storage_(ranks_, model_, policies, stream), sizes_(sizes) {
    std::int64_t at = 0;
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      offsets_.push_back(at + (odd && t % 3 == 2));
      at += (sizes[t] + 1 + 63) / 64 * 64;
    }
    room_ = at;
    values_ = detail::device_array<value>(std::size_t(room_));
    gradients_ = detail::device_array<value>(std::size_t(room_));
    where_type const where(parameters());
    std::array<bool, Plan::slots> used;
    used.fill(true);
    detail::device_arena arena;
    storage_.add_to(arena, where, detail::plain_vector<entry>(1), used);
    storage_.allocate(std::move(arena));
    storage_.start();
    arena_size_ = where.arena;
    reset();
  }

  ds::parameters<value> parameters() const {
    ds::parameters<value> params;
    for (std::size_t t = 0; t < sizes_.size(); ++t)
      params.add(std::to_string(t), values_.get() + offsets_[t], gradients_.get() + offsets_[t], sizes_[t]);
    return params;
  }

  /// Sets values, gradients and state as after the constructor.
  void reset() {
    using namespace detail;
    require_cuda(cudaMemsetAsync(values_.get(), 0, std::size_t(room_) * sizeof(value), stream()), "cudaMemsetAsync");
    launch(fill<value>, blocks_for(room_), 256, stream(), values_.get(), room_, 1, 0.05f);
    launch(fill<value>, blocks_for(room_), 256, stream(), gradients_.get(), room_, 2, 0.05f);  // are clipped
    ds::control_block const c = start_of<Plan>(storage_.policies);
    storage_.late().start(c);
    require_cuda(cudaMemcpyAsync(storage_.control, &c, sizeof c, cudaMemcpyDefault, stream()), "cudaMemcpyAsync");
    for (auto const& b : storage_.owned(0))
      if (b.at) require_cuda(cudaMemsetAsync(b.at, 0, std::size_t(arena_size_ * b.size), stream()), "cudaMemsetAsync");
    launch_packets(false, storage_.rule_chunks, stream(), start_packets<Plan>{storage_.view});
    if constexpr (Plan::sums) {  // the terms of the first sums
      group_batch<typename Plan::rule> batch{0, 1, 0, {}};
      batch.entry[0] = entry{};
      launch(set_step_groups<Plan>, 1, total_threads, stream(), storage_.view, storage_.controls(), batch);
    }
    require_cuda(cudaStreamSynchronize(stream()), "reset");
  }

  detail::device_view<Plan> const& view() const { return storage_.view; }
  detail::control_view<Plan> controls() const { return storage_.controls(); }
  cudaStream_t stream() const { return storage_.stream; }
  std::int64_t chunks() const { return storage_.rule_chunks; }
  std::int64_t elements() const {
    std::int64_t n = 0;
    for (auto size : sizes_) n += size;
    return n;
  }
  value const* values() const { return values_.get(); }
  std::int64_t room() const { return room_; }

  // ---- the launches of the engine ----

  static constexpr auto what = Plan::sums ? detail::measure::norm_and_sums : detail::measure::norm;
  void measure() const {
    static_assert(Plan::measures);
    detail::launch(detail::measure_chunks<Plan, what>, view().chunk_count, detail::chunk_threads, stream(), view(),
                   controls(), ds::step_call{});
  }
  void control() const {
    detail::launch(detail::control_step<Plan>, 1, detail::total_threads, stream(), view(), controls(), ds::step_call{});
  }
  void update() const { detail::launch_packets(false, chunks(), stream(), detail::update_packets<Plan>{view()}); }
  void before_update() const {
    if constexpr (Plan::measures) measure();
    control();
  }

  /// Hashes of the values; and of these, everything owned and the partial sums of the norm.
  std::uint64_t hash_of_values() const { return hash(false); }
  std::uint64_t hash_of_all() const { return hash(true); }

 private:
  std::uint64_t hash(bool all) const {
    detail::device_array<std::uint64_t> const sum(1);
    require_cuda(cudaMemsetAsync(sum.get(), 0, 8, stream()), "cudaMemsetAsync");
    std::uint64_t seed = 0;
    auto const add = [&]<class T>(T const* x, std::int64_t n) {
      detail::launch(add_hash<T>, blocks_for(n), 256, stream(), sum.get(), x, n, ++seed);
    };
    add(values_.get(), room_);
    if (all && Plan::measures) add(reinterpret_cast<float const*>(view().partial), 2 * view().chunk_count);
    for (auto const& b : storage_.owned(0)) {
      if (!all || !b.at) continue;
      if (b.size == 4) add(reinterpret_cast<float const*>(b.at), arena_size_);
      else add(reinterpret_cast<ds::bfloat16 const*>(b.at), arena_size_);
    }
    std::uint64_t result;
    sum.read(&result, stream());
    return result;
  }

  detail::cuda_ranks<Plan> ranks_;
  detail::cuda_model<Plan> model_;
  storage_type storage_;
  std::vector<std::int64_t> sizes_, offsets_;
  std::int64_t room_ = 0, arena_size_ = 0;
  detail::device_array<value> values_, gradients_;
};

struct distance { unsigned long long ulp, different; };
template <class Plan, class Other> distance distance_of(problem<Plan> const& a, problem<Other> const& b) {
  detail::device_array<unsigned long long> const result(2);
  require_cuda(cudaMemsetAsync(result.get(), 0, 16, a.stream()), "cudaMemsetAsync");
  detail::launch(add_distance<typename Plan::value>, blocks_for(a.room()), 256, a.stream(), result.get(), a.values(),
                 b.values(), a.room());
  unsigned long long x[2];
  result.read(x, a.stream(), 2);
  return {x[0], x[1]};
}

}  // namespace experiments
