// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/cuda.cuh>
#include <descent/engine/step/profiler.hpp>
#include <descent/matrices/detail/matrix_batch.cuh>
#include <descent/ranks/detail/divergence.hpp>
#include <descent/matrices/matrices.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

/// The policy matrices on CUDA, with products by cuBLAS (link -lcublas). The optimizer's constructor creates the handle
/// and its workspace. step() enqueues on the optimizer's stream, allocates nothing and may be captured.
namespace descent::detail {

/// host_work on a device: operations are added to a batch. Everything except products runs only if the step is applied.
template <class Plan> class cuda_work {
 public:
  using real = typename Plan::real;
  using terms = typename Plan::matrix_rule::template terms<real>;
  template <std::size_t I> using state = typename matrix_plan<Plan>::template slot<I>;  // the type that stores it
  static constexpr bool immediate = false, rounds_operands = true;

  std::int64_t rows, columns, updates;
  real *memory_begin, *scratch_begin;
  std::vector<std::int64_t> const &memory_parts, &scratch_parts;
  terms const* k;
  double* sum_begin;
  bool always;
  matrix_batch* batch;

  std::int64_t size() const { return rows * columns; }
  real* input(int c) const { return scratch_begin + scratch_parts[std::size_t(c)]; }
  real* scratch(int i) const { return input(input_count<Plan> + i); }
  real* memory(int i) const { return memory_begin + memory_parts[std::size_t(i)]; }
  double* sums() const { return sum_begin; }
  bool due(std::int64_t n) const { return always || (updates - 1) % n == 0; }

  template <class F> void each(std::int64_t n, F const& f) const {
    batch->add({n}, [](matrix_batch const& b, matrix_extent x, functors<F> const& all) {
      launch(matrix_each<F>, b.grid(blocks(x.n, elements_of_block)), chunk_threads, b.stream, b.gate, x.n, all);
    }, f);
  }
  template <class F> void total(std::int64_t n, F const& f, double* to) const {
    batch->add({n}, [](matrix_batch const& b, matrix_extent x, functors<F> const& all, functors<double*> const& sums) {
      launch(matrix_partials<F>, b.grid(chunks_of(x.n)), chunk_threads, b.stream, b.gate, x.n, all, b.partials);
      launch(add_matrix_partials<>, b.grid(1), total_threads, b.stream, b.gate, chunks_of(x.n), b.partials, sums);
    }, f, to);
  }
  template <class F> void each_element(F const& f) const { each_element(rows, columns, f); }
  template <class F> void each_element(std::int64_t r, std::int64_t c, F const& f) const {
    batch->add({r, c}, [](matrix_batch const& b, matrix_extent x, functors<F> const& all) {
      std::int64_t const parts = blocks(x.columns, elements_of_block);
      launch(matrix_elements<F>, b.grid(x.n * parts), chunk_threads, b.stream, b.gate, x.columns, unsigned(parts), all);
    }, f);
  }
  template <bool Largest = false, class F, class Store> void each_row(F const& f, Store const& store) const {
    batch->add({rows, columns}, [](matrix_batch const& b, matrix_extent x, functors<F> const& all,
                                   functors<Store> const& stores) {
      launch(matrix_rows<Largest, F, Store>, b.grid(x.n), chunk_threads, b.stream, b.gate, x.columns, all, stores);
    }, f, store);
  }
  template <bool Largest = false, class F, class Store> void each_column(F const& f, Store const& store) const {
    batch->add({rows, columns}, [](matrix_batch const& b, matrix_extent x, functors<F> const& all,
                                   functors<Store> const& stores) {
      std::int64_t const segments = blocks(x.n, segment_rows), wide = blocks(x.columns, chunk_threads);
      launch(matrix_segments<Largest, F>, b.grid(segments * wide), chunk_threads, b.stream, b.gate, x.n, x.columns, all,
             b.partials);
      launch(matrix_columns<Largest, Store>, b.grid(wide), chunk_threads, b.stream, b.gate, segments, x.columns,
             b.partials, stores);
    }, f, store);
  }

  template <class F> void teams(std::int64_t n, F const& f) const {
    batch->add({n}, [](matrix_batch const& b, matrix_extent x, functors<F> const& all) {
      launch(matrix_teams<F>, b.grid(x.n), chunk_threads, b.stream, b.gate, all);
    }, f);
  }

  /// c <- a a'; c <- a b
  void square(dense<real> a, real* c) const { multiply(a, a.t(), c); }
  void symmetric_product(dense<real> a, dense<real> b, real* c) const { multiply(a, b, c); }
  void product(dense<real> a, dense<real> b, real* c) const { multiply(a, b, c); }
  /// With operands of bfloat16.
  void square(dense<bfloat16> a, bfloat16* c) const { multiply(a, a.t(), c); }
  void symmetric_product(dense<bfloat16> a, dense<bfloat16> b, bfloat16* c) const { multiply(a, b, c); }
  template <class T> void product(dense<bfloat16> a, dense<bfloat16> b, T* c) const { multiply(a, b, c); }

 private:
  static std::int64_t blocks(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }
  template <class T, class Result> void multiply(dense<T> a, dense<T> b, Result* c) const {
    batch->add(matrix_product::of(a, b, c));
  }
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
    std::size_t at_once = 1;
    for (auto const& b : common.where->batches) at_once = std::max(at_once, b.matrices.size());
    arena.add(partials_, at_once * std::size_t(common.where->partials));
    arena.add_zeros(sums_, at_once * std::size_t(matrix_sums));
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
        begin(u, 1);
        batch_.gate = {};
        batch_.next_matrix();
        common.rules[0].start_memory(work(u, 0, false));
        batch_.run();
      }
    }
  }

  /// Calls then(n) once it has enqueued the updates of the first n matrices of this rank.
  template <class Groups, class Then>
  void step(device_view<Plan> const& v, control_view<Plan> const& w, Groups const& groups, step_call const& call,
            bool capturing, Then const& then) {
    [[maybe_unused]] auto const range = begin_range<Plan>("matrices");
    captured_ = captured_ || capturing;
    if constexpr (Plan::parallel || Plan::splits) ++common.updates;  // ranks come here in calls that update only
    else common.count(w.policies, call);
    // Replays of a captured step are not seen here, so micro-batches can no longer be counted.
    if (!common.completes && !captured_) return;
    launch(find_matrix_terms<Plan>, 1, total_threads, *stream_, v, w, matrices_);
    std::size_t done = 0;
    then(done);
    for (auto const& batch : common.where->batches) {
      auto const g = std::size_t(common.where->matrices[batch.matrices[0]].group);
      done += batch.matrices.size();
      if (groups[g].frozen && !capturing) continue;
      begin(batch.matrices[0], batch.size);
      directions_.clear();
      for (std::size_t i = 0; i < batch.matrices.size(); ++i) {
        std::size_t const u = batch.matrices[i];
        auto const [first, count] = chunks_[u];
        auto const work = this->work(u, i, capturing);
        matrix_inputs<Plan> inputs{};
        for (int c = 0; c < input_count<Plan>; ++c) inputs.at[c] = work.input(c);
        launch_packets(false, count, *stream_, front_packets<Plan>{v, states_of(u), units_ + u, inputs, first});
        batch_.next_matrix();
        directions_.push_back(rules_at_work_[g].transform(work));
      }
      batch_.run();
      for (std::size_t i = 0; i < batch.matrices.size(); ++i) {
        std::size_t const u = batch.matrices[i];
        auto const [first, count] = chunks_[u];
        launch_packets(false, count, *stream_, back_packets<Plan>{v, states_of(u), units_ + u, directions_[i], first});
      }
      then(done);
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
  /// Begins a batch of matrices like u.
  void begin(std::size_t u, int size) {
    auto const& x = common.where->matrices[u];
    std::int64_t end = 0;
    parts_ = common.where->scratch_of(rules_at_work_[std::size_t(x.group)], x.shape, end);
    batch_.clear();
    batch_.gate = {&view_.control->applied, &view_.groups[x.group].frozen};
    batch_.stream = *stream_, batch_.blas = blas_.on(*stream_);
    batch_.precision = precision_of(rules_at_work_[std::size_t(x.group)]);
    batch_.size = size, batch_.stride = end * std::int64_t(sizeof(real));
    batch_.scratch = reinterpret_cast<std::byte const*>(scratch_);
    batch_.partials = {partials_, common.where->partials};
  }
  /// The work on matrix u, the i-th of the batch.
  cuda_work<Plan> work(std::size_t u, std::size_t i, bool capturing) {
    auto const& x = common.where->matrices[u];
    std::int64_t const begin = std::int64_t(i) * batch_.stride / std::int64_t(sizeof(real));
    return {x.shape.rows,
            x.shape.columns,
            common.updates,
            memory_,
            scratch_ + begin,
            x.memory,
            parts_,
            &(units_ + u)->terms,
            sums_ + i * std::size_t(matrix_sums),
            capturing,
            &batch_};
  }

  typename Plan::policies const* policies_ = nullptr;
  cudaStream_t const* stream_ = nullptr;
  bool captured_ = false;
  device_view<Plan> view_{};
  cublas blas_;
  std::vector<std::pair<std::int64_t, std::int64_t>> chunks_;  // first and count
  matrix_batch batch_;
  std::vector<std::int64_t> parts_;
  std::vector<real*> directions_;
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
