// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Checkpoints of what is in device memory: the host's file, to the bit, and what saving never does to the device.
#include "support.cuh"

#include <descent/cuda.cuh>
#include <descent/io/async_save.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/optimizer.hpp>
#include <descent/optimizer/find_nonfinite.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/training/loss_scaler.hpp>

#include "support/clock.hpp"
#include "support/file_difference.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace ds = descent;
using ds::half;
using test::contents, test::file_difference, test::message, test::temporary_folder;
using strings = std::vector<std::string>;

std::vector<test::tensor> const model{{4096 + 20}, {30, 0, 1, 2, 3}, {0}, {8, 1}};

/// The same optimizer on host and device.
auto both() {
  return test::twins_of<half>(model, ds::adamw{.lr = 0.01}, ds::master<float>{}, ds::ema{.decay = 0.5},
                              ds::dynamic_loss_scale{.init = 4, .interval = 2});
}
template <class Twins> void train(Twins& x, int from, int to) {
  for (int t = from; t < to; ++t) x.x.new_gradients(std::uint64_t(t + 1)), x.step();
}

/// Goes through memory of this size, so that tensors and staging memory begin and end at different places.
struct small_staging {
  std::size_t const usual = ds::detail::run_stream::half;
  explicit small_staging(std::size_t bytes) { ds::detail::run_stream::half = bytes; }
  small_staging(small_staging const&) = delete;
  ~small_staging() { ds::detail::run_stream::half = usual; }
};

/// While it exists, files are not there before go() is called.
class held_files {
  static inline std::atomic<bool> may_go{false};

 public:
  held_files() {
    may_go = false;
    ds::detail::file_calls::before = [](char const* call, std::size_t&) {
      if (call == std::string_view("rename")) CHECK(test::comes_true([] { return bool(may_go); }));
      return 0;
    };
  }
  held_files(held_files const&) = delete;
  ~held_files() { ds::detail::file_calls::before = nullptr; }
  void go() const { may_go = true; }
};

}  // namespace

TEST_CASE("a device's file is the host's; each resumes, bit for bit, from the other's, with any staging memory") {
  temporary_folder folder;
  std::string const of_host = folder / "host", of_device = folder / "device", small = folder / "small";
  auto run = both();
  run.host.group(1).lr = 0.005, run.device.group(1).lr = 0.005;
  train(run, 0, 3);
  ds::save_file(of_host, run.host);
  ds::save_file(of_device, run.device);
  if (!test::contracted) {
    CHECK(file_difference(of_host, of_device) == "");
    CHECK((contents(of_host) == contents(of_device)));
  }
  for (std::size_t const bytes : {1000, 8232, 16464, 1 << 20}) {
    small_staging const staging(bytes);
    ds::save_file(small, run.device);
    CHECK((contents(small) == contents(of_device)));
  }
  train(run, 3, 6);
  run.expect_same();

  auto other = both();
  train(other, 0, 1);
  CHECK(ds::load_file(of_host, other.device).same_configuration);
  CHECK(ds::load_file(of_device, other.host).same_configuration);
  other.expect_same();
  CHECK(other.device.report().step == 3);
  CHECK(other.device.group(1).lr == 0.005);
  train(other, 3, 6);
  other.expect_same();
  if (!test::contracted) CHECK(test::same_bits(other.x.value, run.x.value));
}

TEST_CASE("values in device memory without an optimizer, and a shared loss scale") {
  temporary_folder folder;
  test::stream s;
  test::tensors<half> x{model, s}, y{model, s};
  ds::loss_scaler here{ds::dynamic_loss_scale{.init = 64}};
  ds::loss_scaler there{ds::dynamic_loss_scale{.init = 64}, ds::cuda{s}};
  ds::save_file(folder / "host", x.on_host(), here);
  ds::save_file(folder / "device", ds::values(x.on_device(), ds::cuda{s}), there);
  CHECK((contents(folder / "host") == contents(folder / "device")));

  auto const guards = y.device_value.get(s);
  y.each([&](std::size_t k, std::int64_t i) { y.value_of(k, i) = half(1); });
  y.device_value.put(y.value, s);
  auto changed = there.state();
  changed.scale = 2;
  there.set_state(changed);
  auto const report = ds::load_file(folder / "host", ds::values(y.on_device(), ds::cuda{s}), there);
  CHECK(report.tensors == 5);
  CHECK(test::same_bits(y.device_value.get(s), guards));
  CHECK(there.state().scale == 64);
}

TEST_CASE("find_nonfinite() sees NaN in device memory, in the state and what a step makes of it") {
  auto run = both();
  CHECK(ds::find_nonfinite(run.device).empty());
  std::vector<float> m(4096 + 20);
  m[600] = m[4100] = std::numeric_limits<float>::quiet_NaN();
  run.device.set_state<0>(run.x.name(0), m);
  train(run, 0, 1);
  ds::detail::run_access::part<decltype(run.device)> part(run.device);
  for (std::size_t const bytes : {1000, 1 << 20}) {
    std::string all;
    for (auto const& x : ds::detail::find_nonfinite(part, bytes))
      all += x.name + " " + std::to_string(x.first) + " " + std::to_string(x.count) + ", ";
    std::string const name = run.x.name(0), where = " 600 2, ";
    CHECK(all == name + where + name + ".state.m" + where + name + ".master" + where + name + ".average" + where);
  }
}

TEST_CASE("in the background: the file has what the stream had reached, while steps continue") {
  temporary_folder folder;
  auto run = both(), other = both();
  ds::async_save saver;
  {
    held_files const files;
    train(run, 0, 2);
    saver.save(folder / "run", run.device);
    train(run, 2, 5);
    CHECK(saver.pending());
    CHECK(folder.names().size() <= 1);
    files.go();
    saver.wait();
  }
  CHECK(folder.names() == strings{"run"});
  ds::load_file(folder / "run", other.device);
  ds::load_file(folder / "run", other.host);
  other.expect_same();
  CHECK(other.host.report().step == 2);
  train(other, 2, 5);
  CHECK(test::same_bits(other.x.value, run.x.value));

  run.s.wait(), other.s.wait();
  if (test::in_software()) cudasim_reset_counters();
  saver.save(folder / "run", run.device);
  if (test::in_software()) {  // the snapshot's memory is kept
    CHECK(cudasim_count("allocations") == 0);
    CHECK(cudasim_count("launches") == 0);
  }
  saver.wait();
  ds::load_file(folder / "run", other.device);
  ds::load_file(folder / "run", other.host);
  other.expect_same();
  CHECK(other.host.report().step == 5);
}

TEST_CASE("saving and loading allocate no device memory, keep no pinned memory, and leave the default stream alone") {
  temporary_folder folder;
  auto run = both();
  train(run, 0, 1);
  ds::save_file(folder / "run", run.device);
  cudaStream_t waits_for_default;  // while it captures, nothing may enter the default stream
  test::cuda(cudaStreamCreate(&waits_for_default));
  test::cuda(cudaStreamBeginCapture(waits_for_default, cudaStreamCaptureModeRelaxed));
  if (test::in_software()) cudasim_reset_counters();
  {
    ds::async_save saver;
    ds::save_file(folder / "run", run.device);
    ds::load_file(folder / "run", run.device);
    ds::save_file(folder / "values", ds::values(run.x.on_device(), ds::cuda{run.s}));
    ds::load_file(folder / "values", ds::values(run.x.on_device(), ds::cuda{run.s}));
    saver.save(folder / "run", run.device);
    saver.wait();
  }
  if (test::in_software()) {
    CHECK(cudasim_count("device_allocations") == 0);
    CHECK(cudasim_count("host_allocations") == cudasim_count("host_frees"));
  }
  cudaGraph_t nothing;
  std::size_t nodes = 1;
  test::cuda(cudaStreamEndCapture(waits_for_default, &nothing));
  test::cuda(cudaGraphGetNodes(nothing, nullptr, &nodes));
  CHECK(nodes == 0);
  test::cuda(cudaGraphDestroy(nothing));
  test::cuda(cudaStreamDestroy(waits_for_default));
  run.expect_same();
}

TEST_CASE("in the background: a file is written while another stream is capturing") {
  temporary_folder folder;
  auto run = both();
  test::stream other;
  ds::async_save saver;
  saver.save(folder / "run", run.device);
  ds::detail::memory_of_backend<ds::cuda> memory(ds::cuda{run.s});
  auto const copied = memory.mark();
  test::graph const captured(other, [&] {
    std::async(std::launch::async, [&] { copied(); }).get();  // as the thread of the saver waits
    std::async(std::launch::async, [&] { memory.staging(1000); }).get();
    test::cuda(cudaMemsetAsync(run.x.device_gradient.data(), 0, 8, other));
  });
  CHECK(captured.nodes == 1);
  saver.wait();
  ds::load_file(folder / "run", run.host);
  run.expect_same();
}

TEST_CASE("a stream that is capturing can neither be saved nor loaded; the capture and the file stay what they are") {
  temporary_folder folder;
  auto run = both();
  std::string const path = folder / "run";
  ds::save_file(path, run.device);
  ds::async_save saver;
  ds::loss_scaler const scale{ds::dynamic_loss_scale{}, ds::cuda{run.s}};
  auto const before = contents(path);
  auto const captured = [&](auto const& between) {
    return test::graph(run.s, [&] { run.device.step(), between(), run.device.step(); }).nodes;
  };
  auto const all = captured([&] {
    auto const refused = [](auto const& call) {
      CHECK(message(call) ==
            "save_file() or load_file() waits for the stream, which is capturing: call it after the graph has run");
    };
    auto values = ds::values(run.x.on_device(), ds::cuda{run.s});
    refused([&] { ds::save_file(path, run.device); });
    refused([&] { ds::load_file(path, run.device); });
    refused([&] { saver.save(path, run.device); });
    refused([&] { ds::save_file(path, values); });
    refused([&] { ds::load_file(path, values); });
    refused([&] { saver.save(path, values); });
    CHECK(message([&] { scale.state(); }) ==
          "loss_scaler::state() waits for the stream, which is capturing: call it after the graph has run");
    CHECK_FALSE(saver.pending());
  });
  CHECK(all == captured([] {}));
  CHECK((contents(path) == before));
  CHECK(folder.names() == strings{"run"});
  ds::load_file(path, run.device);
  run.expect_same();
}
