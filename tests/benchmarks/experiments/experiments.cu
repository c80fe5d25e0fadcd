// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// Other ways to launch the update, compared with the engine. docs/design/0006-launch-experiments.md says what is
/// expected of each and which rule decides. One call on a machine with a GPU runs them all, in some minutes and 16 GB
/// of device memory:
///
///     nvcc -std=c++20 -O3 -arch=native -Iinclude tests/benchmarks/experiments/experiments.cu -o experiments
///     ./experiments
///
/// The exit code says whether all variants give the engine's bits. If one does not, -fmad=false tells whether the
/// compiler only contracted a * b + c differently.
#include "../../../examples/parts/arguments.hpp"
#include "kernels.cuh"
#include "timing.cuh"

#include <memory>
#include <stdexcept>
#include <string>

using namespace experiments;

namespace {

template <class Value, class Rule, class... Ps> using plan = detail::plan<Value, Value, Rule, Ps...>;
using in_float = plan<float, ds::adamw, ds::clip_norm, ds::cuda>;  // as in the optimizer
using with_master = plan<ds::bfloat16, ds::adamw, ds::master<float>>;
using in_bfloat16 = plan<ds::bfloat16, ds::adamw, ds::stochastic_rounding, ds::states<ds::bfloat16>>;
using approximate = plan<ds::bfloat16, adamw_approximate, ds::stochastic_rounding, ds::states<ds::bfloat16>>;
using ceiling = plan<float, streams_alone>;

std::vector<std::int64_t> gpt2() {
  std::vector<std::int64_t> sizes{50257 * 768, 1024 * 768};
  for (int layer = 0; layer < 12; ++layer)
    sizes.insert(sizes.end(),
                 {768, 768, 768 * 2304, 2304, 768 * 768, 768, 768, 768, 768 * 3072, 3072, 3072 * 768, 768});
  sizes.insert(sizes.end(), {768, 768});
  return sizes;
}

struct around {
  settings how;
  record found;
  int multiprocessors, resident;  // blocks of 512 threads
  bool dependent;  // whether this program has code for programmatic dependent launches

  std::vector<std::int64_t> large() const {
    return how.quick ? std::vector<std::int64_t>{9000, 12, 1001, 1, 256} : gpt2();
  }
  std::string large_name() const { return how.quick ? "some small tensors" : "GPT-2 124M"; }
  int sets() const { return how.quick ? 1 : 3; }
};

/// Several sets of buffers for one plan, so that none is in the cache when its turn comes.
template <class Plan> struct sets_of {
  using one_step = std::function<void(problem<Plan>&)>;
  struct variant {
    std::string name;
    one_step run;
    bool whole = false;  // includes norm and control block
  };
  std::vector<std::unique_ptr<problem<Plan>>> sets;
  std::uint64_t wanted;  // the hash after three of the engine's steps

  sets_of(around const& a, std::vector<std::int64_t> const& sizes, int count,
          typename Plan::policies const& policies = {}) {
    for (int i = 0; i < count; ++i)
      sets.push_back(std::make_unique<problem<Plan>>(sizes, policies, a.how.stream, a.how.quick));
    wanted = hash_of(engine());
  }
  static variant engine() {
    return {"as the engine", [](problem<Plan>& x) { x.update(); }};
  }
  std::uint64_t hash_of(variant const& v) {
    auto& x = *sets[0];
    x.reset();
    for (int t = 0; t < 3; ++t) {
      if (!v.whole) x.before_update();
      v.run(x);
    }
    return x.hash_of_all();
  }

  /// Checks the variants, then times them.
  void run(around& a, std::string const& experiment, std::string const& where, std::vector<variant> const& all,
           purpose what, bool graphs = false) {
    std::vector<contestant> list;
    for (auto const& v : all) {
      if (!graphs) a.found.check(experiment + ", " + where + ", " + v.name, hash_of(v) == wanted);
      list.push_back({v.name, [this, run = v.run](int set) { run(*sets[std::size_t(set)]); }});
    }
    for (auto& x : sets) x->before_update();
    double const bytes = double(Plan::update_bytes(used()) + (all[0].whole ? Plan::pass_bytes(used()) : 0));
    a.found.times(experiment, where, list, int(sets.size()), graphs, sets[0]->elements(), bytes, what);
  }
  static std::array<bool, Plan::slots> used() {
    std::array<bool, Plan::slots> all;
    all.fill(true);
    return all;
  }
};

// ---- 1: the engine compared with a copy of the same number of bytes ----

template <class Plan> void beside_copy(around& a, std::string const& name, sets_of<Plan>& of, bool with_streams) {
  double const bytes = double(Plan::update_bytes(of.used()));
  std::int64_t const n = of.sets[0]->elements(), half = std::int64_t(bytes / 2) * n;
  detail::device_array<std::byte> const from(static_cast<std::size_t>(half)), to(static_cast<std::size_t>(half));
  require_cuda(cudaMemset(from.get(), 1, std::size_t(half)), "cudaMemset");
  std::vector<contestant> list{{"copy", [&](int) {
    require_cuda(cudaMemcpyAsync(to.get(), from.get(), std::size_t(half), cudaMemcpyDeviceToDevice, a.how.stream),
                 "cudaMemcpyAsync");
  }}, {"as the engine", [&](int set) { of.sets[std::size_t(set)]->update(); }}};
  for (auto& x : of.sets) x->before_update();
  std::vector<std::unique_ptr<problem<ceiling>>> streams;
  for (int i = 0; i < a.sets() && with_streams; ++i) {
    streams.push_back(std::make_unique<problem<ceiling>>(a.large(), typename ceiling::policies{}, a.how.stream));
    streams.back()->before_update();
  }
  if (with_streams)
    list.push_back({"its loads and stores alone", [&](int set) { streams[std::size_t(set)]->update(); }});
  a.found.times("1 " + name, a.large_name(), list, a.sets(), false, n, bytes, purpose::ceiling);
}

/// Steps of the optimizer, as users call them, give the bits that all variants are compared with.
void same_as_optimizer(around& a, sets_of<in_float>& of) {
  auto& x = *of.sets[0];
  x.reset();
  std::uint64_t values;
  {
    ds::optimizer opt{x.parameters(), ds::adamw{}, ds::clip_norm{}, ds::cuda{a.how.stream}};
    for (int t = 0; t < 3; ++t) opt.step();
    values = x.hash_of_values();
  }
  of.hash_of(of.engine());
  a.found.check("0 the engine's launches, and optimizer::step()", values == x.hash_of_values());
}

// ---- 2, 3, 4: the grid ----

using body = detail::update_packets<in_float>;
template <int Threads, int Blocks, class Plan = in_float> auto pieces(int run, std::int64_t grid) {
  return [=](problem<Plan>& x) {
    using body = detail::update_packets<Plan>;
    constexpr int each = int(detail::chunk_packets) / Threads;
    std::int64_t const count = x.chunks() * each, blocks = (count + run - 1) / run;
    detail::launch(each_piece<body, Threads, Blocks>, grid == 0 ? blocks : std::min(grid, blocks), Threads, x.stream(),
                   pieces_of<body, Threads, Blocks>{{x.view()}}, count, run);
  };
}

void grids(around& a, sets_of<in_float>& of, std::string const& where, purpose what) {
  std::int64_t const p = a.multiprocessors;
  of.run(a, "2 grid", where, {of.engine(),
    {"one block a chunk, in a loop", pieces<512, 2>(1, 0)},
    {"persistent, 1 block a multiprocessor", pieces<512, 2>(1, p)},
    {"persistent, 2 blocks a multiprocessor", pieces<512, 2>(1, 2 * p)},
    {"persistent, 4 blocks a multiprocessor", pieces<512, 2>(1, 4 * p)},
    {"cub::DeviceFor::Bulk", [](problem<in_float>& x) {
      require_cuda(cub::DeviceFor::Bulk(x.chunks() * detail::chunk_packets, packet_numbered<body>{{x.view()}},
                                        x.stream()), "cub::DeviceFor::Bulk");
    }}}, what);
  of.run(a, "3 chunk", where, {of.engine(), {"8 Ki", pieces<512, 2>(2, 0)}, {"16 Ki", pieces<512, 2>(4, 0)},
                               {"64 Ki", pieces<512, 2>(16, 0)}}, what);
  of.run(a, "4 block", where, {of.engine(), {"4 blocks of 256 threads, 2 Ki each", pieces<256, 4>(1, 0)},
                               {"4 blocks of 256 threads, 4 Ki each", pieces<256, 4>(2, 0)}}, what);
}

// ---- 5: cache hints ----

template <hint Gradient, hint State> void hinted(problem<in_float>& x) {
  using body = hinted_update<in_float, Gradient, State>;
  detail::launch_packets(false, x.chunks(), x.stream(), body{x.view()});
}
void hints(around& a, sets_of<in_float>& of, std::string const& where, purpose what) {
  of.run(a, "5 hints", where, {of.engine(),
    {"gradients .cs", hinted<hint::streaming, hint::none>},
    {"gradients, values, states .cs", hinted<hint::streaming, hint::streaming>},
    {"gradients L1::no_allocate", hinted<hint::no_allocate, hint::none>},
    {"gradients, values, states L1::no_allocate", hinted<hint::no_allocate, hint::no_allocate>},
    {"gradients L2::evict_first", hinted<hint::evict_first, hint::none>},
    {"gradients, values, states L2::evict_first", hinted<hint::evict_first, hint::evict_first>}}, what);
}

// ---- 6, 7: the whole step, norm and update ----

auto one_kernel(std::int64_t grid) {
  return [grid](problem<in_float>& x) {
    launch_with(cudaLaunchAttributeCooperative, whole_step<in_float>, grid, detail::total_threads, x.stream(), x.view(),
                x.controls());
  };
}

void whole_steps(around& a, std::vector<std::int64_t> const& sizes, std::string const& where, int sets, purpose what) {
  sets_of<in_float> of(a, sizes, sets);
  detail::device_array<unsigned> const done(1);
  require_cuda(cudaMemset(done.get(), 0, 4), "cudaMemset");
  using variant = typename sets_of<in_float>::variant;
  std::int64_t const pairs = (of.sets[0]->chunks() + 1) / 2;
  auto const last_block = [&](problem<in_float>& x) {
    detail::launch(measure_and_control<in_float>, std::min<std::int64_t>(pairs, a.resident), detail::total_threads,
                   x.stream(), x.view(), x.controls(), done.get());
  };
  variant const engine{"as the engine, three launches", [](problem<in_float>& x) {
    x.before_update();
    x.update();
  }, true};
  std::vector<variant> six{engine, {"the last block does the control block", [=](problem<in_float>& x) {
    last_block(x);
    x.update();
  }, true}};
  if (a.dependent) {
    auto const early = cudaLaunchAttributeProgrammaticStreamSerialization;
    auto const update = [=](problem<in_float>& x) {
      launch_with(early, update_later<body>, x.chunks(), detail::packet_threads, x.stream(), body{x.view()});
    };
    six.push_back({"dependent launches", [=](problem<in_float>& x) {
      x.measure();
      launch_with(early, control_later<in_float>, 1, detail::total_threads, x.stream(), x.view(), x.controls());
      update(x);
    }, true});
    six.push_back({"dependent launches, blocks of 256 threads", [=](problem<in_float>& x) {
      x.measure();
      launch_with(early, control_later<in_float>, 1, detail::total_threads, x.stream(), x.view(), x.controls());
      launch_with(early, pieces_later<body, 256, 4>, x.chunks(), 256, x.stream(), pieces_of<body, 256, 4>{{x.view()}},
                  2 * x.chunks(), 2);
    }, true});
    six.push_back({"dependent launch after the last block", [=](problem<in_float>& x) {
      last_block(x);
      update(x);
    }, true});
  }
  variant const in_one{"one cooperative kernel", one_kernel(std::min<std::int64_t>(of.sets[0]->chunks(), a.resident)),
                       true};
  for (bool const graphs : {false, true}) {
    of.run(a, "6 launches", where, six, what, graphs);
    if (a.resident > 0)  // an engine could use this for small models
      of.run(a, "7 one kernel", where, {engine, in_one}, what == purpose::decides ? what : purpose::shows, graphs);
  }
}

// ---- 8: square root and division ----

void arithmetic(around& a) {
  ds::stochastic_rounding const seed{1};
  sets_of<in_bfloat16> exact(a, a.large(), a.sets(), {seed, {}});
  sets_of<approximate> fast(a, a.large(), a.sets(), {seed, {}});
  exact.sets[0]->reset(), fast.sets[0]->reset();
  exact.sets[0]->before_update(), exact.sets[0]->update();
  fast.sets[0]->before_update(), fast.sets[0]->update();
  auto const off = distance_of(*exact.sets[0], *fast.sets[0]);
  bool const close = off.ulp <= 1 && off.different * 100 < std::uint64_t(exact.sets[0]->elements());
  a.found.check("8 approximate, after a step", close,
                std::to_string(off.different) + " values differ, by at most " + std::to_string(off.ulp) + " ulp");
  for (auto& x : exact.sets) x->before_update();
  for (auto& x : fast.sets) x->before_update();
  a.found.times("8 bfloat16, stochastic rounding", a.large_name(),
                {{"IEEE", [&](int set) { exact.sets[std::size_t(set)]->update(); }},
                 {"approximate", [&](int set) { fast.sets[std::size_t(set)]->update(); }}},
                a.sets(), false, exact.sets[0]->elements(), double(in_bfloat16::update_bytes(exact.used())),
                purpose::decides);
}

// ---- 9: threads and blocks where a packet takes more registers, or has fewer bytes ----

template <int Threads, int Blocks, int Unroll, class Plan> auto tiles() {
  return [](problem<Plan>& x) {
    using body = detail::update_packets<Plan>;
    detail::launch(each_tile<body, Threads, Blocks, Unroll>, x.chunks(), Threads, x.stream(), body{x.view()});
  };
}
template <class Plan> void shapes(around& a, std::string const& name, std::vector<std::int64_t> const& sizes,
                                  std::string const& where, int sets, purpose what,
                                  typename Plan::policies const& policies = {}) {
  using body = detail::update_packets<Plan>;
  sets_of<Plan> of(a, sizes, sets, policies);
  of.run(a, "9 " + name, where, {of.engine(),
    {"4 blocks of 256 threads, 2 Ki each", pieces<256, 4, Plan>(1, 0)},
    {"4 blocks of 256 threads", tiles<256, 4, 1, Plan>()},
    {"4 blocks of 256 threads, two packets at once", tiles<256, 4, 2, Plan>()},
    {"3 blocks of 256 threads", tiles<256, 3, 1, Plan>()},
    {"3 blocks of 256 threads, two packets at once", tiles<256, 3, 2, Plan>()},
    {"2 blocks of 256 threads", tiles<256, 2, 1, Plan>()},
    {"8 blocks of 128 threads", tiles<128, 8, 1, Plan>()},
    {"6 blocks of 128 threads", tiles<128, 6, 1, Plan>()},
    {"4 blocks of 128 threads", tiles<128, 4, 1, Plan>()},
    {"cub::DeviceFor::Bulk", [](problem<Plan>& x) {
      require_cuda(cub::DeviceFor::Bulk(x.chunks() * detail::chunk_packets, packet_numbered<body>{{x.view()}},
                                        x.stream()), "cub::DeviceFor::Bulk");
    }}}, what);
}
template <int Blocks, class Plan> auto bounded() {
  return [](problem<Plan>& x) {
    detail::launch(measure_bounded<Plan, problem<Plan>::what, Blocks>, x.view().chunk_count, detail::chunk_threads,
                   x.stream(), x.view(), x.controls(), ds::step_call{});
  };
}
template <class Plan> void passes(around& a, std::string const& name) {
  using variant = typename sets_of<Plan>::variant;
  sets_of<Plan> of(a, a.large(), a.sets());
  std::vector<contestant> list;
  for (auto const& v :
       {variant{"as the engine", [](problem<Plan>& x) { x.measure(); }},
        variant{"3 blocks of 256 threads", bounded<3, Plan>()}, variant{"4 blocks of 256 threads", bounded<4, Plan>()},
        variant{"5 blocks of 256 threads", bounded<5, Plan>()}, variant{"6 blocks of 256 threads", bounded<6, Plan>()},
        variant{"8 blocks of 256 threads", bounded<8, Plan>()}}) {
    a.found.check("9 pass of " + name + ", " + v.name, of.hash_of({v.name, [&v](problem<Plan>& x) {
                                                                     v.run(x);
                                                                     x.control();
                                                                     x.update();
                                                                   }}) == of.hash_of({"", [](problem<Plan>& x) {
                                                                                        x.measure();
                                                                                        x.control();
                                                                                        x.update();
                                                                                      }}));
    list.push_back({v.name, [&of, run = v.run](int set) { run(*of.sets[std::size_t(set)]); }});
  }
  a.found.times("9 pass of " + name, a.large_name(), list, a.sets(), false, of.sets[0]->elements(),
                double(Plan::pass_bytes(of.used())), purpose::decides);
}
using in_half = plan<ds::half, ds::adamw, ds::master<float>, ds::dynamic_loss_scale, ds::clip_norm, ds::ema>;
void all_shapes(around& a) {
  std::string const one = "one tensor of 10^6, in the cache";
  shapes<in_half>(a, "half, master, average", a.large(), a.large_name(), a.sets(), purpose::decides);
  shapes<in_bfloat16>(a, "bfloat16, stochastic rounding", a.large(), a.large_name(), a.sets(), purpose::decides,
                      {ds::stochastic_rounding{1}, {}});
  shapes<with_master>(a, "bfloat16 and master", a.large(), a.large_name(), a.sets(), purpose::decides);
  shapes<in_float>(a, "float", a.large(), a.large_name(), a.sets(), purpose::decides);
  passes<plan<float, ds::lamb>>(a, "LAMB");
  passes<in_float>(a, "a norm in float");
  passes<in_half>(a, "a norm in half");
  if (a.how.quick) return;
  shapes<in_float>(a, "float", {100000}, "one tensor of 10^5, in the cache", 1, purpose::watches);
  shapes<in_float>(a, "float", {1000000}, one, 1, purpose::watches);
  shapes<in_half>(a, "half, master, average", {1000000}, one, 1, purpose::watches);
}

// ---- the same bits from every grid ----

void grids_agree(around& a, sets_of<in_float>& of) {
  int same = 0, all = 0;
  auto const take = [&](typename sets_of<in_float>::variant const& v) { ++all, same += of.hash_of(v) == of.wanted; };
  std::int64_t const p = a.multiprocessors;
  for (std::int64_t const grid : {std::int64_t(1), std::int64_t(3), p, 3 * p + 1})
    for (int const run : {1, 3, 64}) {
      take({"", pieces<512, 2>(run, grid)});
      take({"", pieces<256, 4>(run, grid)});
    }
  for (std::int64_t const grid : {1, 3, a.resident})
    if (a.resident > 0) take({"", one_kernel(grid), true});
  a.found.check("0 bits from grids of any size", same == all, std::to_string(all) + " grids");
}

int attribute(cudaDeviceAttr which) {
  int value = 0;
  require_cuda(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute");
  return value;
}

int run(bool quick, bool all, std::FILE* out) {
  cudaDeviceProp device;
  require_cuda(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  cudaFuncAttributes code;
  require_cuda(cudaFuncGetAttributes(&code, update_later<body>), "cudaFuncGetAttributes");
  int resident = 0;
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, whole_step<in_float>, detail::total_threads, 0),
               "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  detail::owned_stream const stream = detail::new_stream();
  settings const how{stream.get(), quick, out};
  around a{how, record(how), device.multiProcessorCount,
           attribute(cudaDevAttrCooperativeLaunch) ? resident * device.multiProcessorCount : 0, code.ptxVersion >= 90};
  std::printf("%s, %d multiprocessors, L2 %d MiB; code of PTX %d\n", device.name, device.multiProcessorCount,
              device.l2CacheSize >> 20, code.ptxVersion);
  std::fprintf(out, "{\"device\": \"%s\", \"multiprocessors\": %d, \"l2\": %d, \"quick\": %s}\n", device.name,
               device.multiProcessorCount, device.l2CacheSize, quick ? "true" : "false");
  if (!a.dependent) a.found.skipped("6, dependent launches", "they need -arch of compute capability 9.0 or more");
  if (a.resident == 0) a.found.skipped("7", "the device has no cooperative launches");
  if (!all) {
    all_shapes(a);
    return a.found.decide();
  }
  {
    sets_of<in_float> of(a, a.large(), a.sets());
    same_as_optimizer(a, of);
    grids_agree(a, of);
    beside_copy(a, "AdamW, float", of, true);
    grids(a, of, a.large_name(), purpose::decides);
    hints(a, of, a.large_name(), purpose::decides);
  }
  {
    sets_of<with_master> of(a, a.large(), a.sets());
    beside_copy(a, "AdamW, bfloat16 and master", of, false);
  }
  if (!quick) {
    sets_of<in_float> of(a, {1000000}, 1);
    grids(a, of, "one tensor of 10^6, in the cache", purpose::watches);
    hints(a, of, "one tensor of 10^6, in the cache", purpose::watches);
    for (std::int64_t const n : {10000, 100000, 1000000, 10000000, 30000000})
      whole_steps(a, {n}, "one tensor of " + std::to_string(n), n < 10000000 ? 1 : 3,
                  n <= 1000000 ? purpose::decides : purpose::watches);
  }
  whole_steps(a, a.large(), a.large_name(), a.sets(), purpose::watches);
  arithmetic(a);
  all_shapes(a);
  return a.found.decide();
}

constexpr char const* help = R"(usage: experiments [--quick] [--shapes] [RESULTS]

Compares other ways to launch the update with the engine's, in bits and in time.

  --quick     small sizes once, only to check the bits
  --shapes    only experiment 9
  RESULTS     a file (default: experiments.jsonl)
  --help      this text
)";

void run_all(std::vector<std::string> arguments) {
  bool const quick = std::erase(arguments, "--quick") > 0, shapes = std::erase(arguments, "--shapes") > 0;
  std::string file = "experiments.jsonl";
  example::each_option(arguments, {"--quick", "--shapes"}, [](auto&, auto&) { example::fail("flags have no value"); },
                       [&](std::string const& word) { file = word; });
  std::FILE* const out = std::fopen(file.c_str(), "w");
  if (!out) throw std::runtime_error(file + ": cannot be written");
  int const failed = run(quick, !shapes, out);
  std::fclose(out);
  if (failed != 0) throw std::runtime_error("not all variants give the engine's bits");
}

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run_all); }
