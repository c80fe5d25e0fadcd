// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/cuda.cuh>
#include <descent/detail/cuda/matrix_kernels.cuh>
#include <descent/detail/ranks/divergence.hpp>
#include <descent/policies/matrices.hpp>

#include <cublas_v2.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

/// The policy matrices on CUDA, with products by cuBLAS (link -lcublas). The optimizer's constructor creates the handle
/// and its workspace. step() enqueues on the optimizer's stream, allocates nothing and may be captured.
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

/// host_work on a device: everything is enqueued. Everything except products runs only if the step is applied.
template <class Plan> class cuda_work {
 public:
  using real = typename Plan::real;
  using terms = typename Plan::matrix_rule::template terms<real>;
  static constexpr bool immediate = false, rounds_operands = true;

  std::int64_t rows, columns, updates;
  real *memory_begin, *scratch_begin;
  std::vector<std::int64_t> const &memory_parts, &scratch_parts;
  terms const* k;
  double *sum_begin, *partials;
  bool always;
  matrix_gate gate;
  cublasHandle_t blas;
  cudaStream_t stream;
  operands precision;

  std::int64_t size() const { return rows * columns; }
  real* input(int c) const { return scratch_begin + scratch_parts[std::size_t(c)]; }
  real* scratch(int i) const { return input(input_count<Plan> + i); }
  real* memory(int i) const { return memory_begin + memory_parts[std::size_t(i)]; }
  double* sums() const { return sum_begin; }
  bool due(std::int64_t n) const { return always || (updates - 1) % n == 0; }

  template <class F> void each(std::int64_t n, F const& f) const {
    launch(matrix_each<F>, blocks(n, elements_of_block), chunk_threads, stream, gate, n, f);
  }
  template <class F> void total(std::int64_t n, F const& f, double* to) const {
    launch(matrix_partials<F>, chunks_of(n), chunk_threads, stream, gate, n, f, partials);
    launch(add_matrix_partials<>, 1, total_threads, stream, gate, chunks_of(n), partials, to);
  }
  template <class F> void each_element(F const& f) const { each_element(rows, columns, f); }
  template <class F> void each_element(std::int64_t r, std::int64_t c, F const& f) const {
    std::int64_t const parts = blocks(c, elements_of_block);
    launch(matrix_elements<F>, r * parts, chunk_threads, stream, gate, c, unsigned(parts), f);
  }
  template <bool Largest = false, class F, class Store> void each_row(F const& f, Store const& store) const {
    launch(matrix_rows<Largest, F, Store>, rows, chunk_threads, stream, gate, columns, f, store);
  }
  template <bool Largest = false, class F, class Store> void each_column(F const& f, Store const& store) const {
    std::int64_t const segments = blocks(rows, segment_rows), wide = blocks(columns, chunk_threads);
    launch(matrix_segments<Largest, F>, segments * wide, chunk_threads, stream, gate, rows, columns, f, partials);
    launch(matrix_columns<Largest, Store>, wide, chunk_threads, stream, gate, segments, columns, partials, store);
  }

  template <class F> void teams(std::int64_t n, F const& f) const {
    launch(matrix_teams<F>, n, chunk_threads, stream, gate, f);
  }

  /// c <- a a'; c <- a b
  void square(dense<real> a, real* c) const { product(a, a.t(), c); }
  void symmetric_product(dense<real> a, dense<real> b, real* c) const { product(a, b, c); }

  /// cuBLAS reads matrices by column, so it sees transposes: c' = b' a'.
  void product(dense<real> a, dense<real> b, real* c) const {
    auto const form = [](dense<real> x) { return x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    int const m = int(a.height()), n = int(b.width()), inner = int(a.width());
    real const one = 1, zero = 0;
    ++launches;
    if constexpr (std::is_same_v<real, double>)
      require_cublas(cublasDgemm(blas, form(b), form(a), n, m, inner, &one, b.data, int(b.columns), a.data,
                                 int(a.columns), &zero, c, n), "cublasDgemm");
    else if (precision == operands::exact)
      require_cublas(cublasSgemm(blas, form(b), form(a), n, m, inner, &one, b.data, int(b.columns), a.data,
                                 int(a.columns), &zero, c, n), "cublasSgemm");
    else
      require_cublas(cublasGemmEx(blas, form(b), form(a), n, m, inner, &one, b.data, CUDA_R_32F, int(b.columns),
                                  a.data, CUDA_R_32F, int(a.columns), &zero, c, CUDA_R_32F, n,
                                  precision == operands::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                              : CUBLAS_COMPUTE_32F_FAST_16BF,
                                  CUBLAS_GEMM_DEFAULT), "cublasGemmEx");
  }

 private:
  static std::int64_t blocks(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }
};

template <class Plan> requires(Plan::has_matrices) class cuda_matrices<Plan> {
  using real = typename Plan::real;
  using mrule = typename Plan::matrix_rule;

 public:
  matrix_groups<Plan> common;

  template <class Layout>
  void add_to(device_arena& arena, Layout const& where, typename Plan::policies const& policies,
              cuda_model<Plan> const& model) {
    common.prepare(where, policies);
    policies_ = &policies, rules_at_work_ = common.rules;
    std::vector<std::int32_t> tensor;
    std::vector<std::int64_t> columns;
    for (auto const& x : common.where->matrices) {
      tensor.push_back(x.tensor), columns.push_back(x.shape.columns);
      chunks_.push_back({where.tensors[std::size_t(x.tensor)].first_chunk, chunks_of(x.shape.rows * x.shape.columns)});
    }
    arena.add_copy(tensor_, tensor), arena.add_copy(columns_, columns), arena.add_copy(group_rules_, common.rules);
    arena.add(units_, tensor.size());
    if constexpr (Plan::splits) {
      common.find_others(model);
      tensor.clear(), columns.clear();
      for (int u = 0; u < common.known_count(); ++u)
        tensor.push_back(common.known(u).tensor), columns.push_back(common.known(u).shape.columns);
      arena.add_copy(known_tensor_, tensor), arena.add_copy(known_columns_, columns);
    }
    arena.add_zeros(memory_, std::size_t(common.where->memory));
    arena.add_zeros(scratch_, std::size_t(common.where->scratch));
    arena.add(partials_, std::size_t(common.where->partials)), arena.add_zeros(sums_, matrix_sums);
    arena.add(workspace_, cublas::workspace_bytes);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (arena.add(state_[I], common.where->used[I] ? std::size_t(common.where->state) *
                                                        sizeof(typename matrix_plan<Plan>::template slot<I>) : 0), ...);
    }(typename matrix_plan<Plan>::every_slot{});
  }
  void start(device_view<Plan> const& v, cudaStream_t const& stream) {
    stream_ = &stream, view_ = v;
    blas_ = cublas(workspace_);
    matrices_ = {tensor_, columns_, int(common.where->matrices.size()), group_rules_, units_};
    for (std::size_t u = 0; u < common.where->matrices.size(); ++u) {
      if (!common.where->matrices[u].owned) continue;
      auto const [first, count] = chunks_[u];
      launch_packets(false, count, stream, matrix_start_packets<Plan>{v, states_of(u), group_rules_, first});
      if constexpr (requires { mrule::starts_memory; }) {
        auto w = work(u, false);
        w.gate = {};
        common.rules[0].start_memory(w);
      }
    }
  }

  template <class Groups>
  void step(device_view<Plan> const& v, control_view<Plan> const& w, Groups const& groups, step_call const& call,
            bool capturing) {
    captured_ = captured_ || capturing;
    if constexpr (Plan::parallel || Plan::splits) ++common.updates;  // ranks come here in calls that update only
    else common.count(w.policies, call);
    // Replays of a captured step are not seen here, so micro-batches can no longer be counted.
    if (!common.completes && !captured_) return;
    launch(find_matrix_terms<Plan>, 1, total_threads, *stream_, v, w, matrices_);
    for (std::size_t u = 0; u < common.where->matrices.size(); ++u) {
      auto const g = std::size_t(common.where->matrices[u].group);
      if (!common.where->matrices[u].owned || (groups[g].frozen && !capturing)) continue;
      auto const [first, count] = chunks_[u];
      auto const work = this->work(u, capturing);
      matrix_inputs<Plan> inputs{};
      for (int c = 0; c < input_count<Plan>; ++c) inputs.at[c] = work.input(c);
      launch_packets(false, count, *stream_, front_packets<Plan>{v, states_of(u), units_ + u, inputs, first});
      real* const direction = rules_at_work_[g].transform(work);
      launch_packets(false, count, *stream_, back_packets<Plan>{v, states_of(u), units_ + u, direction, first});
    }
  }

  /// Sends changed rules to the device as kernel parameters. Returns whether there are any.
  bool commit(bool capturing) {
    if (!common.changed(*policies_)) return false;
    send_rules();
    if (!capturing) common.accepted = common.rules;
    return true;
  }

  template <class F> void each_buffer(F const& f) const { each_matrix_buffer<Plan>(*this, f); }
  std::uint64_t hash() const { return hash_of_matrix_rules<Plan>(common.rules, *policies_); }
  /// Waits for the stream.
  std::vector<std::string> facts(std::vector<std::string> const& names) const {
    return facts_of_matrices<Plan>(*this, names, [&](auto const* x, std::int64_t n) {
      device_array<unsigned long long> const print(std::vector<unsigned long long>(1), *stream_);
      launch(print_elements<std::remove_const_t<std::remove_pointer_t<decltype(x)>>>, chunks_of(n), chunk_threads,
             *stream_, x, n, print.get());
      unsigned long long sum;
      print.read(&sum, *stream_, 1);
      return std::uint64_t(sum);
    });
  }
  /// Replaces the rules, their state and memory by those of another rank. send(data, bytes) is a broadcast of device
  /// memory, send_host(data, bytes) one of host memory.
  template <class Send, class SendHost> void broadcast(Send const& send, SendHost const& send_host) {
    each_buffer([&](auto const&, auto const&, auto* x, std::int64_t n) { send(x, n * std::int64_t(sizeof *x)); });
    send_host(common.rules.data(), std::int64_t(common.rules.size() * sizeof(mrule)));
    send_host(&common.updates, sizeof common.updates);
    send_rules();
    common.accepted = common.rules;
  }

  matrix_rules_view<Plan> rules_view() const {
    if constexpr (Plan::splits) return {known_tensor_, known_columns_, common.known_count(), matrices_.rules};
    else return {matrices_.tensor, matrices_.columns, matrices_.count, matrices_.rules};
  }
  void* state(std::size_t i) const { return state_[i]; }
  real* memory() const { return memory_; }

 private:
  void send_rules() {
    for (std::size_t first = 0; first < common.rules.size();) {
      matrix_rule_batch<mrule> batch{int(first), 0, {}};
      while (batch.count < batch.capacity && first < common.rules.size())
        batch.rule[batch.count++] = common.rules[first++];
      launch(set_matrix_rules<mrule>, 1, total_threads, *stream_, group_rules_, batch);
    }
    rules_at_work_ = common.rules;
  }
  static operands precision_of([[maybe_unused]] mrule const& rule) {
    if constexpr (requires { rule.precision; }) return rule.precision;
    else return operands::exact;
  }
  matrix_states<Plan> states_of(std::size_t u) const {
    matrix_states<Plan> states{};
    std::ranges::copy(state_, states.at);
    states.begin = common.where->matrices[u].state;
    return states;
  }
  cuda_work<Plan> work(std::size_t u, bool capturing) {
    auto const& x = common.where->matrices[u];
    std::int64_t end = 0;
    parts_ = common.where->scratch_of(rules_at_work_[std::size_t(x.group)], x.shape, end);
    return {x.shape.rows, x.shape.columns, common.updates, memory_, scratch_, x.memory, parts_,
            &(units_ + u)->terms, sums_, partials_, capturing,
            {&view_.control->applied, &view_.groups[x.group].frozen}, blas_.on(*stream_), *stream_,
            precision_of(rules_at_work_[std::size_t(x.group)])};
  }

  typename Plan::policies const* policies_ = nullptr;
  cudaStream_t const* stream_ = nullptr;
  bool captured_ = false;
  device_view<Plan> view_{};
  cublas blas_;
  std::vector<std::pair<std::int64_t, std::int64_t>> chunks_;  // first and count
  std::vector<std::int64_t> parts_;
  plain_vector<mrule> rules_at_work_;
  std::int32_t *tensor_ = nullptr, *known_tensor_ = nullptr;  // of this rank; of the model, if ranks share it
  std::int64_t *columns_ = nullptr, *known_columns_ = nullptr;
  mrule* group_rules_ = nullptr;
  matrix_unit<Plan>* units_ = nullptr;
  real *memory_ = nullptr, *scratch_ = nullptr;
  double *partials_ = nullptr, *sums_ = nullptr;
  std::byte* workspace_ = nullptr;
  std::array<std::byte*, matrix_plan<Plan>::slots> state_{};
  matrix_view<Plan> matrices_{};
};

}  // namespace descent::detail
