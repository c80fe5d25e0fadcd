// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Every policy of the step does the same on the device as on the host, bit for bit.
#include "support.cuh"
#include "support/counted.hpp"
#include "support/own_policies.hpp"

#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/cautious_decay.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/gradient_ahead.hpp>
#include <descent/policies/gradient_factor_at.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/maximize.hpp>
#include <descent/policies/memory_from.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/sam.hpp>
#include <descent/policies/state_in.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/presets/amp.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/momo.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/training/loss_scaler.hpp>
#include <descent/training/qk_clip.hpp>

#include <cuda/stream_ref>

#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Tails, an unaligned tensor, an empty one, two groups; rows, also across chunks.
std::vector<test::tensor> const model{{4096 + 1001, 0, 0, 0, 3}, {0, 1}, {7, 1}, {130, 0, 3, 1, 13}, {8, 1}};

/// Good steps, an overflow in the fourth, a frozen group in the sixth. Calls before(twins) before each.
template <class Value, class Gradient = Value, class Before, class Rule, class... Ps>
void agrees_after(Before const& before, Rule rule, Ps... policies) {
  auto both = test::twins_of<Value, Gradient>(model, rule, policies...);
  for (int t = 1; t <= 7; ++t) {
    both.x.new_gradients(std::uint64_t(t));
    if (t == 4) both.x.gradient_of(2, 3) = Gradient(infinity);
    if (t == 6) both.each([](auto& opt) { opt.freeze(1); });
    before(both);
    both.step();
  }
  both.expect_same();
}
template <class Value, class Gradient = Value, class Rule, class... Ps> void agrees(Rule rule, Ps... policies) {
  agrees_after<Value, Gradient>([](auto&) {}, rule, policies...);
}

/// A caller's functor for true gradients.
struct halve {
  template <class Real> __host__ __device__ Real operator()(Real g) const { return g / 2; }
};

}  // namespace

namespace ds = descent;

// Policies that do not affect each other are tested together, since each optimizer takes long to compile.
TEST_CASE("a loss scale, static or dynamic, grows, backs off and skips alike") {
  agrees<ds::half>(ds::adamw{}, ds::master<float>{}, ds::dynamic_loss_scale{.init = 64, .interval = 2},
                   ds::clip_norm{1}, ds::ema{.decay = 0.5}, ds::zero_grad{});
  agrees<ds::half>(ds::sgd{.momentum = 0.5}, ds::static_loss_scale{8}, ds::zero_grad{}, ds::stochastic_rounding{8},
                   ds::states<ds::half>{}, ds::lookahead{.k = 3});
}
TEST_CASE("norms of every kind clip alike, over everything, groups and tensors") {
  agrees<double>(ds::adam{}, ds::clip<ds::norm::l1>{1});
  agrees<float>(ds::adam{}, ds::clip<ds::norm::l1, ds::scope::tensor>{1});
  agrees<float>(ds::lion{}, ds::clip<ds::norm::inf, ds::scope::group>{0.5}, ds::maximize{});
}
TEST_CASE("rules with sums clip alike") {
  agrees<float>(ds::lamb{}, ds::clip_adaptive{}, ds::dynamic_loss_scale{.init = 4});
  agrees<float>(ds::lars{}, ds::clip<ds::norm::l2, ds::scope::group>{1, ds::torch_eps}, ds::clip_value{0.1},
                ds::gradient_noise{.eta = 1, .seed = 9});
  agrees<ds::half>(ds::dog{.reps = 0.1}, ds::dynamic_loss_scale{.init = 4}, ds::master<float>{});
}
TEST_CASE("averages and lookahead agree") {
  agrees<ds::bfloat16, float>(ds::adamw{}, test::bounded_pull{}, test::late_mean{}, ds::stochastic_rounding{5},
                              ds::skip_nonfinite{});
  agrees<float>(ds::adamw{}, ds::ema{.decay = 0.9, .start = 2, .bias_corrected = true}, ds::lookahead{.k = 2},
                ds::clip_value{0.25}, ds::gradient_noise{.eta = 1, .seed = 9}, ds::skip_nonfinite{});
  agrees<ds::half>(ds::adamw{}, ds::master<float>{}, ds::swa{.start = 2, .every = 2}, ds::skip_nonfinite{});
}
TEST_CASE("policies around the update agree") {
  agrees<ds::bfloat16, float>(ds::adamw{}, test::agreeing{}, test::bounded_update{.most = 0.5}, ds::clip_adaptive{},
                              ds::stochastic_rounding{5}, ds::ema{.decay = 0.5});
  agrees<float>(ds::lamb{}, test::agreeing{}, ds::cautious_decay{.weight_decay = 0.25, .at_zero = true},
                ds::skip_nonfinite{});
}
TEST_CASE("random rounding and noise draw the same numbers") {
  agrees<ds::bfloat16>(ds::adamw{}, ds::stochastic_rounding{7}, ds::states<ds::bfloat16>{}, ds::clip_norm{1});
  agrees<ds::bfloat16>(ds::adamw{}, ds::stochastic_values{7}, ds::master<float>{}, ds::ema{.decay = 0.5},
                       ds::clip_norm{1});
  agrees<double>(ds::adamw{}, ds::gradient_noise{.eta = 1, .seed = 9}, ds::clip<ds::norm::inf>{0.5});
}
TEST_CASE("counts in the state agree") {
  agrees<ds::bfloat16>(test::mean_descent{}, ds::states<ds::bfloat16>{}, ds::zero_grad{});
  agrees<double>(test::mean_descent{});
}
TEST_CASE("scaled rows agree") {
  test::stream const s;
  std::vector<float> const logits{1, 25, 50, 200, 400};
  test::device_vector<float> const on_device{logits, s};
  auto const scale = [&](auto& both) {
    ds::qk_clip const clip{.tau = 50, .exponent = 1};  // with exact factors
    both.host.scale_rows("w3", logits.data(), 5, clip);
    s.wait();
    both.device.scale_rows("w3", on_device.data(), 5, clip);
  };
  agrees_after<ds::bfloat16>(scale, ds::adamw{}, ds::master_remainder{}, ds::clip_adaptive{});
}
TEST_CASE("values ahead of the parameters agree") {
  agrees<ds::bfloat16>(ds::adamw{}, ds::master<float>{}, ds::ema_nesterov{.start = 1}, ds::stochastic_values{7},
                       ds::learning_rate(ds::cosine{.peak = 1e-2, .steps = 9}), ds::skip_nonfinite{});
}
TEST_CASE("the remainder of a master agrees") {
  agrees<ds::bfloat16>(ds::adamw{}, ds::master_remainder{}, ds::clip_adaptive{});
  agrees<ds::bfloat16, float>(ds::lamb{}, ds::master_remainder{}, ds::outer{.every = 2}, ds::ema{.decay = 0.5},
                              ds::maximize{}, ds::static_loss_scale{8});
}

TEST_CASE("micro-batches are counted, weighted and flushed alike") {
  auto both = test::twins_of<float>(model, ds::adamw{}, ds::accumulate{3}, ds::static_loss_scale{16}, ds::clip_norm{1},
                                    ds::zero_grad{});
  for (int t = 1; t <= 8; ++t) {
    both.x.new_gradients(std::uint64_t(t));
    both.step(t % 4 == 0 ? 0 : t % 2 + 1);
    CHECK(both.device.report().applied == (t % 3 == 0));
    both.expect_same();
    if (t == 4) both.each([](auto& opt) { opt.zero_grad(); });
  }
  both.each([](auto& opt) { opt.flush(); });
  CHECK(both.device.report().step == 3);
  both.expect_same();
  both.device.flush();
  CHECK(both.device.report().step == 3);
  for (int t = 0; t < 3; ++t) both.step(0);
  CHECK(both.device.report().why == "there are no examples: the weights since the last update are all 0");
  both.expect_same();
  both.each([](auto& opt) { CHECK_NOTHROW(opt.set_scale_state({.scale = 16})); });
  both.each([](auto& opt) { opt.step(); });
  both.each([](auto& opt) { CHECK_THROWS_AS(opt.set_scale_state({.scale = 16}), std::logic_error); });
  both.expect_same();
}

TEST_CASE("queries outside a step give the host's answers") {
  auto both = test::twins_of<float>(model, ds::adamw{}, ds::dynamic_loss_scale{.init = 1024}, ds::ema{.decay = 0.5});
  auto& x = both.x;
  both.steps(2);
  CHECK(both.host.gradient_norm() == both.device.gradient_norm());
  CHECK(both.host.gradient_norm(ds::group{1}) == both.device.gradient_norm(ds::group{1}));
  CHECK(both.host.gradient_norm("w3") == both.device.gradient_norm("w3"));
  CHECK(both.device.gradient_norm() == doctest::Approx(both.device.report().grad_norm));
  both.each([](auto& opt) { opt.freeze(1); });
  CHECK(both.device.gradient_norm(ds::group{1}) > 0);
  CHECK(both.host.gradient_norm(ds::group{1}) == both.device.gradient_norm(ds::group{1}));
  CHECK(both.host.gradient_norm() == both.device.gradient_norm());
  both.each([](auto& opt) { opt.freeze(1, false); });

  auto const swap = [](auto& opt) { opt.swap_average(); };
  both.each([](auto& opt) { opt.transform_gradients(halve{}); });
  x.expect_same();
  both.each([](auto& opt) { opt.unscale(); });
  x.expect_same();
  CHECK_THROWS_AS(both.device.unscale(), std::logic_error);
  both.each([](auto& opt) { opt.step(); });
  both.expect_same();

  both.each([](auto& opt) { opt.unscale(); });
  both.host.zero_grad();
  test::graph const zeroes(both.s, [&] { both.device.zero_grad(); });
  CHECK(zeroes.nodes == 2);
  zeroes.launch(both.s);
  both.steps(1);  // on new gradients, which have the loss scale
  both.expect_same();

  both.each(swap);
  x.expect_same();
  CHECK_THROWS_AS(both.device.step(), std::logic_error);
  both.each(swap);
  both.expect_same();

  x.gradient_of(2, 1) = infinity;
  both.step();
  auto const h = both.host.diagnose(), d = both.device.diagnose();
  REQUIRE(d.size() == model.size());
  for (std::size_t t = 0; t < d.size(); ++t) {
    CHECK(d[t].name == h[t].name);
    CHECK(d[t].finite == (t != 2));
    CHECK((d[t].norm == h[t].norm || t == 2));
  }
}

TEST_CASE("what a rule averages is swapped in and out alike, and the norm is answered where no step measures it") {
  auto both = test::twins_of<ds::half>(model, ds::schedule_free_adamw{.lr = 0.1}, ds::master<float>{});
  auto const swap = [](auto& opt) { opt.swap_average(); };
  both.steps(3);
  both.each(swap);
  both.x.expect_same();
  both.each(swap);
  both.expect_same();
  CHECK(both.host.gradient_norm() == both.device.gradient_norm());
  CHECK(both.device.diagnose().empty());
}

TEST_CASE("values look ahead and come back alike") {
  auto both = test::twins_of<ds::half>(model, ds::heavy_ball{.lr = 0.1}, ds::gradient_ahead{}, ds::master<float>{},
                                       ds::vary<&ds::heavy_ball::momentum>(ds::linear{0.5, 0.9, 5}));
  for (int t = 0; t < 3; ++t) {
    both.each([](auto& opt) { opt.move_ahead(); });
    both.x.expect_same();
    both.steps(1);
    both.expect_same();
  }
}

TEST_CASE("a report without waiting is that of a step before, or of the last") {
  test::stream s;
  test::tensors<float> x{model, s};
  ds::optimizer opt{x.on_device(), ds::adamw{}, ds::dynamic_loss_scale{.init = 64, .interval = 2},
                    ds::ema{.decay = 0.5}, ds::cuda{s}};
  CHECK(opt.last_report().step == 0);
  for (int t = 1; t <= 6; ++t) {
    x.new_gradients(std::uint64_t(t));
    if (t == 3) x.gradient_of(0, 0) = infinity;
    x.send_gradients();
    auto const before = opt.report();
    opt.step();
    s.wait();
    auto const late = opt.last_report();
    CHECK(late.step == before.step);
    CHECK(late.skipped == before.skipped);
    CHECK(late.loss_scale == before.loss_scale);
    CHECK((t == 1 || late.applied == before.applied));
  }
}

TEST_CASE("one loss scale for two optimizers on the device") {
  test::stream s;
  test::tensors<float> x{model, s}, y{model, s};
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 64}, ds::cuda{s}};
  ds::optimizer a{x.on_device(), ds::adamw{}, ds::shared_loss_scale{scaler}, ds::cuda{s}};
  ds::optimizer b{y.on_device(), ds::sgd{}, ds::shared_loss_scale{scaler}, ds::accumulate{2}, ds::cuda{s}};
  x.gradient_of(0, 5) = infinity;
  x.send_gradients();
  a.step();
  b.step();
  CHECK(scaler.loss_scale() == 64);
  scaler.update();
  CHECK(!a.report().applied);
  CHECK(scaler.loss_scale() == 64);  // gradients that wait have it
  CHECK_THROWS_AS(scaler.set_state({.scale = 4}), std::logic_error);
  b.step();
  CHECK(b.report().applied);
  scaler.update();
  CHECK(scaler.loss_scale() == 32);
  CHECK(a.loss_scale() == 32);
  CHECK(test::from_device(scaler.loss_scale_pointer(), 1, s)[0] == 32);
  CHECK_THROWS_AS(scaler.update(), std::logic_error);
  a.step();
  scaler.update(8);
  CHECK(b.loss_scale() == 8);
  b.step();
  {
    auto const next = b.gathered(y.on_device());
    { auto const gone = std::move(b); }
    CHECK_THROWS_AS(scaler.set_state({.scale = 4}), std::logic_error);
  }
  scaler.set_state({.scale = 4});
  CHECK(a.loss_scale() == 4);
}

TEST_CASE("your own loss scale is set on the device") {
  test::stream s;
  test::tensors<float> x{model, s};
  ds::optimizer opt{x.on_device(), ds::adamw{}, ds::dynamic_loss_scale{.interval = 2}, ds::ema{.decay = 0.5},
                    ds::cuda{s}};
  opt.set_scale_state({.scale = 8, .good = 1});
  opt.step();
  CHECK(opt.loss_scale() == 16);
  CHECK(opt.scale_state().good == 0);
}

TEST_CASE("half and float parameters share one step and one decision") {
  test::stream s;
  std::vector<ds::half> w(5000), g(5000);
  std::vector<float> b(300), h(300);
  for (std::size_t i = 0; i < w.size(); ++i)
    w[i] = ds::half(test::noise(i, 1)), g[i] = ds::half(64 * test::noise(i, 2));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = test::noise(i, 3), h[i] = 64 * test::noise(i, 4);
  test::device_vector<ds::half> dw{w, s}, dg{g, s};
  test::device_vector<float> db{b, s}, dh{h, s};
  auto const train = [&](ds::half* w, ds::half* g, float* b, float* h, auto backend) {
    ds::parameters<ds::mixed<ds::half, float>> params;
    params.add("weight", w, g, 5000);
    params.add("norm", b, h, 300, ds::group{1});
    return ds::optimizer{params, ds::adamw{}, ds::amp::O2{}, ds::clip_norm{1}, ds::ema{.decay = 0.5},
                         ds::dynamic_loss_scale{.init = 64}, backend};
  };
  auto host = train(w.data(), g.data(), b.data(), h.data(), ds::host<>{});
  auto device = train(dw.data(), dg.data(), db.data(), dh.data(), ds::cuda{s});
  for (int t = 0; t < 4; ++t) {
    h[7] = t == 2 ? infinity : 1.f;
    dh.put(h, s);
    std::int64_t const before = ds::detail::launches;
    host.step();
    device.step();
    CHECK(ds::detail::launches - before == 3);
  }
  test::expect_same(w, dw.get(s), "half values");
  test::expect_same(b, db.get(s), "float values");
  CHECK(device.report().skipped == 1);
  CHECK(device.report().loss_scale == 32);
  CHECK(device.report().grad_norm == host.report().grad_norm);
  for (char const* name : {"weight", "norm"}) {
    auto const same = [&](auto h, auto d, std::string const& what) {
      test::expect_same(std::vector<float>(h.begin(), h.end()), test::from_device(d.data(), d.size(), s), what);
    };
    same(host.average(name), device.average(name), "average");
    same(host.master(name), device.master(name), "master");
  }
}
TEST_CASE("sam ascends and comes back alike, with and without a pass for the norm in the step") {
  std::uint64_t t = 10;
  auto const ascend = [&](auto& both) {
    both.x.send_gradients();
    if (t == 10) both.each([](auto& opt) { CHECK(opt.diagnose().empty()); });  // nothing is measured yet
    both.each([](auto& opt) { opt.ascend(); });
    both.x.expect_same();
    both.x.new_gradients(++t);  // at the ascended point
  };
  agrees_after<float>(ascend, ds::adamw{}, ds::sam{.rho = 2});
  agrees_after<ds::half>(ascend, ds::adamw{}, ds::sam{.rho = 2}, ds::master<float>{},
                         ds::dynamic_loss_scale{.init = 4});
  agrees_after<ds::bfloat16>(ascend, ds::adamw{}, ds::sam{.rho = 2}, ds::master_remainder{}, ds::clip_norm{1});
}
TEST_CASE("sam: a captured ascent and step are the eager ones") {
  auto const call = [](auto& opt) { opt.ascend(), opt.step(); };
  auto runs = test::replayed_of<float>(model, call, ds::adamw{}, ds::sam{});
  for (std::uint64_t t = 1; t <= 4; ++t) runs.step(t), runs.expect_same();
}
TEST_CASE("a rule that looks at the loss agrees, the loss being where the backend is") {
  ds::momo const rule{.lr = 0.5, .weight_decay = 0.1, .adapt = true};
  test::stream s;
  test::tensors<float> x{model, s};
  float on_host = 0;
  test::device_vector<float> on_device{{0}, s};
  ds::optimizer host{x.on_host(), rule, ds::loss_at{&on_host}};
  ds::optimizer device{x.on_device(), rule, ds::loss_at{on_device.data()}, ds::cuda{s}};
  for (int t = 1; t <= 4; ++t) {
    x.new_gradients(std::uint64_t(t));
    x.send_gradients();
    on_host = t == 2 ? NAN : t == 3 ? infinity : 40.f / float(t);  // skipped, and forgotten
    on_device.put({on_host}, s);
    host.step(), device.step();
    CHECK(device.report().applied == (t == 1 || t == 4));
    CHECK(device.report().why == host.report().why);
  }
  CHECK(device.report().step == 2);
  x.expect_same();
}
TEST_CASE("a factor of the gradients in device memory is that of the host, and a graph reads it at replay") {
  test::stream s;
  test::tensors<float> x{model, s}, y{model, s};
  double on_host = 1;
  test::device_vector<double> on_device{{1}, s};
  auto const make = [&](auto const& list, double const* factor, auto... backend) {
    return ds::optimizer{list, ds::adamw{}, ds::clip_norm{0.5}, ds::gradient_factor_at{factor}, backend...};
  };
  auto host = make(x.on_host(), &on_host);
  auto device = make(x.on_device(), on_device.data(), ds::cuda{s});
  auto captured = make(y.on_device(), on_device.data(), ds::cuda{s});
  test::graph const recorded(s, [&] { captured.step(); });
  for (double const factor : {0.25, 3.0, 0.0, double(NAN), 1.0}) {
    x.new_gradients(std::uint64_t(8 * factor)), y.new_gradients(std::uint64_t(8 * factor));
    x.send_gradients(), y.send_gradients();
    on_host = factor, on_device.put({factor}, s);
    test::expect_same(host.gradient_norm(), device.gradient_norm(), "norm");
    host.step(), device.step(), recorded.launch(s);
    test::expect_same(host.report(), device.report());
    CHECK(captured.report().applied == (factor > 0));
  }
  x.expect_same();
  CHECK(test::same_bits(x.device_value.get(s), y.device_value.get(s)));
}
namespace {

// snippet: pool
struct pool {
  void* allocate(std::size_t bytes, cudaStream_t stream) {
    void* p = nullptr;
    if (cudaMallocAsync(&p, bytes, stream) != cudaSuccess) throw std::bad_alloc();
    return p;
  }
  void deallocate(void* p, std::size_t, cudaStream_t stream) { cudaFreeAsync(p, stream); }
};
// end
/// The same with the members of cuda::mr::resource.
struct pool_of_cccl {
  std::size_t bytes = 0;
  void* allocate(cuda::stream_ref stream, std::size_t n, std::size_t alignment) {
    CHECK(alignment == 256);
    bytes += n;
    return pool().allocate(n, stream.get());
  }
  void deallocate(cuda::stream_ref stream, void* p, std::size_t n, std::size_t alignment) {
    CHECK(alignment == 256);
    bytes -= n;
    pool().deallocate(p, n, stream.get());
  }
};
struct counted_pool : pool {
  int allocations = 0, live = 0;
  bool empty = false;
  void* allocate(std::size_t bytes, cudaStream_t stream) {
    if (empty) throw std::bad_alloc();
    ++allocations, ++live;
    return pool::allocate(bytes, stream);
  }
  void deallocate(void* p, std::size_t bytes, cudaStream_t stream) { pool::deallocate(p, bytes, stream), --live; }
};

}  // namespace
TEST_CASE("memory_from: one allocation of the caller's memory is all that an optimizer takes") {
  test::stream s;
  test::tensors<ds::half> x{model, s}, y{model, s};
  counted_pool from;
  auto const make = [&](auto const& list, auto... more) {
    return ds::optimizer{
        list,    ds::adamw{}, ds::master<float>{}, ds::ema{.decay = 0.5}, ds::clip_norm{1}, ds::lookahead{.k = 2},
        more..., ds::cuda{s}};
  };
  {
    auto a = make(x.on_device());
    if (test::in_software()) cudasim_reset_counters();
    auto b = make(y.on_device(), ds::memory_from{&from});
    CHECK(from.allocations == 1);
    if (test::in_software()) {
      CHECK(cudasim_count("allocations") == 2);  // the other is pinned
      CHECK(cudasim_count("synchronisations") == 1);
      CHECK(cudasim_count("memcpys") == 2);
    }
    for (std::uint64_t t = 1; t <= 3; ++t) {
      x.new_gradients(t), x.send_gradients(), a.step();
      y.new_gradients(t), y.send_gradients(), b.step();
    }
    for (int i = 0; i < 2; ++i) a.swap_average(), b.swap_average();
    CHECK(from.allocations == 2);
    CHECK(test::same_bits(x.device_value.get(s), y.device_value.get(s)));
    from.empty = true;
    CHECK_THROWS_AS(make(y.on_device(), ds::memory_from{&from}), std::bad_alloc);
    b.step();
    CHECK(b.report().step == 4);
  }
  CHECK(from.live == 0);

  pool_of_cccl other;
  ds::detail::device_source const source(other, 0, s);
  void* const p = source.allocate(300);
  CHECK(other.bytes == 300);
  source.deallocate(p, 300);
  CHECK(other.bytes == 0);
}
TEST_CASE("state_in: state in the caller's memory is updated there, aligned or not, in a graph, and after rebind()") {
  test::stream s;
  for (std::size_t const shift : {0, 1}) {
    CAPTURE(shift);
    test::tensors<ds::half> x{model, s}, y{model, s};
    std::vector<std::unique_ptr<test::device_vector<float>>> memory;
    ds::state_memory list;
    for (std::size_t k = 0; k < model.size(); ++k)
      for (char const* piece : {".state.m", ".state.v", ".master", ".average"}) {
        auto const size = std::size_t(model[k].count) + shift + 1;
        memory.push_back(std::make_unique<test::device_vector<float>>(std::vector<float>(size, -7.f), s));
        list.add(x.name(k) + piece, memory.back()->data() + shift);
      }
    auto const make = [&](auto const& params, auto... more) {
      return ds::optimizer{params, ds::adamw{}, ds::master<float>{}, ds::ema{.decay = 0.5}, more..., ds::cuda{s}};
    };
    auto own = make(x.on_device());
    auto in = make(y.on_device(), ds::state_in{&list});
    test::graph const recorded(s, [&] { in.step(); });
    for (std::uint64_t t = 1; t <= 4; ++t) {
      for (auto* data : {&x, &y}) data->new_gradients(t), data->send_gradients();
      own.step();
      if (t == 2) in.rebind(y.on_device());
      if (t % 2) recorded.launch(s);
      else in.step();
    }
    for (int i = 0; i < 2; ++i) own.swap_average(), in.swap_average();
    CHECK(test::same_bits(x.device_value.get(s), y.device_value.get(s)));
    for (std::size_t k = 0; k < model.size(); ++k) {
      auto const name = x.name(k);
      auto const same = [&](auto a, auto b) {
        CHECK(test::same_bits(test::from_device(a.data(), a.size(), s), test::from_device(b.data(), b.size(), s)));
      };
      same(own.state<0>(name), in.state<0>(name));
      same(own.state<1>(name), in.state<1>(name));
      same(own.master(name), in.master(name));
      same(own.average(name), in.average(name));
    }
    for (auto const& one : memory) CHECK(one->get(s).back() == -7);
    auto const name = x.name(0);
    std::vector<float> const master(std::size_t(model[0].count), 0.3f);
    in.set_master(name, master);
    auto const values = y.device_value.get(s);
    for (std::int64_t i = 0; i < model[0].count; ++i)
      if (test::number(values[y.place(0, i)]) != test::number(ds::half(0.3f))) FAIL("value ", i, " is not the master");
  }
}
TEST_CASE("state_in: memory of the host is refused on the device" *
          doctest::skip(!test::host_memory_is_out_of_reach())) {
  test::stream s;
  test::tensors<float> x{{{7}}, s};
  std::vector<float> m(7);
  ds::state_memory list;
  list.add("w0.state.m", m);
  CHECK_THROWS_AS(ds::optimizer(x.on_device(), ds::adamw{}, ds::state_in{&list}, ds::cuda{s}), std::invalid_argument);
}
TEST_CASE("loss_at: a pointer to host memory is refused on the device" *
          doctest::skip(!test::host_memory_is_out_of_reach())) {
  test::stream s;
  test::tensors<float> x{model, s};
  float f = 0;
  CHECK_THROWS_AS(ds::optimizer(x.on_device(), ds::momo{}, ds::loss_at{&f}, ds::cuda{s}), std::invalid_argument);
}
