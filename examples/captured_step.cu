// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Captures the backward pass and the step in a CUDA graph once and replays it. Warm-up, a loss scale, an overflow and a
// hyperparameter that changes between two replays give the same bits as the same calls without a graph.
#include "parts/arguments.hpp"
#include "parts/claim.hpp"
#include "parts/gpu.cuh"
#include "parts/least_squares.hpp"

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

using namespace example;
namespace ds = descent;

constexpr int rows = 32, columns = 12, iterations = 24, overflow_at = 11, change_at = 18;

struct training {
  std::vector<std::vector<ds::half>> values;  // after each iteration
  std::vector<ds::step_report> reports;
};

training train(bool captured, bool changes = true) {
  linear_data const data{rows, columns, 1};
  device_array<float> x{data.x}, y{data.y};
  device_array<ds::half> w{std::size_t(columns)}, g{std::size_t(columns)};
  gpu d;
  cudaStream_t const stream = d.backend().stream;

  ds::parameters<ds::half> params;
  params.add("w", w.data(), g.data(), columns);
  auto const rate = ds::warmup<ds::cosine>{.steps = 8, .then = {.peak = 0.1, .steps = 40}};
  ds::optimizer opt{params, ds::adamw{}, ds::learning_rate(rate), ds::master<float>{},
                    ds::dynamic_loss_scale{.init = 1024, .interval = 6}, ds::clip_norm{1}, ds::zero_grad{},
                    d.backend()};

  // snippet: capture
  auto const iteration = [&] {
    d.each(columns, add_gradient_of_squares<ds::half>{x.data(), y.data(), rows, columns, w.data(), g.data(), 1.f / rows,
                                                      opt.loss_scale_pointer()});
    opt.step();
  };
  cudaGraphExec_t graph{};
  if (captured) {
    cudaGraph_t recorded;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    iteration();
    check(cudaStreamEndCapture(stream, &recorded));
    check(cudaGraphInstantiate(&graph, recorded, 0));
    check(cudaGraphDestroy(recorded));
  }
  // end

  training result;
  float const ordinary = data.y[0], huge = 1e9f;
  for (int i = 1; i <= iterations; ++i) {
    float const* const first_y = i == overflow_at ? &huge : &ordinary;
    check(cudaMemcpyAsync(y.data(), first_y, sizeof(float), cudaMemcpyHostToDevice, stream));
    if (changes && i == change_at) {
      opt.group(0).weight_decay = 0.5;
      opt.commit_groups();  // for the replays; step() does this itself
    }
    if (captured) check(cudaGraphLaunch(graph, stream));
    else iteration();
    result.reports.push_back(opt.report());
    result.values.push_back(d.to_host(w));
  }
  if (graph) check(cudaGraphExecDestroy(graph));
  return result;
}

void run() {
  auto const eager = train(false), replayed = train(true);
  std::puts("iteration  step  learning rate  loss scale  w[0]");
  for (int i = 1; i <= iterations; ++i) {
    auto const k = std::size_t(i - 1);
    auto const &a = eager.reports[k], &b = replayed.reports[k];
    std::printf("%9d  %4lld  %13.5f  %10g  %8.5f  %s\n", i, static_cast<long long>(b.step), b.learning_rate,
                b.loss_scale, double(float(replayed.values[k][0])), b.why.c_str());
    claim(std::memcmp(eager.values[k].data(), replayed.values[k].data(), columns * sizeof(ds::half)) == 0,
          "a replay gives the bits of the eager step");
    claim(a.step == b.step && a.loss_scale == b.loss_scale && a.learning_rate == b.learning_rate &&
              a.grad_norm == b.grad_norm,
          "so do its reports");
    claim(b.applied == (i != overflow_at), "the overflow is skipped, and nothing else");
  }
  auto const unchanged = train(true, false);
  auto const same_as_unchanged = [&](int i) {
    auto const k = std::size_t(i - 1);
    return std::memcmp(unchanged.values[k].data(), replayed.values[k].data(), columns * sizeof(ds::half)) == 0;
  };
  claim(same_as_unchanged(change_at - 1) && !same_as_unchanged(change_at), "the change holds from the next replay on");

  auto const& r = replayed.reports;
  claim(r[3].learning_rate == 0.1 * 4 / 8 && r[7].learning_rate == 0.1, "the schedule moves inside the graph");
  claim(r[5].loss_scale == 2048 && r[overflow_at - 1].loss_scale == 1024, "so does the loss scale");
  claim(r[overflow_at - 1].step == r[overflow_at - 2].step, "a skipped step does not count");
}

constexpr char const* help = R"(usage: captured_step

Captures the backward pass and the step in a CUDA graph, and compares its replays with calls.
)";

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run); }
