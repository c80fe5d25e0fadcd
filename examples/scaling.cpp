// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// How a training step scales: a model's projection to 4096 GPUs, with its inputs, and a picture of it beside measured
// runs.
//
// parts/projection.hpp and parts/grid.hpp have the model.
#include "parts/arguments.hpp"
#include "parts/chart.hpp"
#include "parts/grid.hpp"
#include "parts/output.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>

namespace {

using namespace example;
using namespace example::projection;

constexpr int sizes[] = {1, 8, 64, 512, 1024, 4096};

struct sized {
  char const* name;
  double parameters;
  int layers;
  double width, inner;  // of the layers; `inner` that of the feed-forward part
  int inner_matrices;   // in it
};
constexpr sized payloads[] = {
    {"124 M", 124e6, 12, 768, 3072, 2}, {"1.5 B", 1.5e9, 48, 1600, 6400, 2}, {"7 B", 7e9, 32, 4096, 11008, 3}};

/// The model of a size; with Muon, whose matrices are those of the layers: query, key and value in one, output, and the
/// feed-forward part.
model of(model m, sized const& size, bool muon) {
  m.parameters = size.parameters;
  for (int layer = 0; muon && layer < size.layers; ++layer) {
    m.add_matrix(3 * size.width, size.width);
    m.add_matrix(size.width, size.width);
    for (int i = 0; i < size.inner_matrices; ++i) m.add_matrix(size.inner, size.width);
  }
  return m;
}

void print(cluster const& c, model const& inputs, bool muon) {
  std::printf(
      "A projection, not a measurement.\n\n"
      "cluster   %d GPUs in a node; %.0f GB/s of each GPU, in the node and between (assumed); tree %.2f of it\n"
      "          a step: ring %.1f us, tree %.1f us in the node, %.0f us between nodes; a few bytes: %.1f us\n"
      "          and %.1f or %.1f us a step\n",
      c.gpus_per_node, c.bus / 1e9, c.tree, 1e6 * c.ring_link, 1e6 * c.tree_link, 1e6 * c.network, 1e6 * c.tiny_base,
      1e6 * c.tiny_link, 1e6 * c.tiny_network);
  std::printf(
      "training  %.0f tokens for each GPU; %.0f TFLOP/s, of which %.0f %% (assumed); memory %.2f TB/s,\n"
      "          of which %.0f %% (assumed); adamw with masters in float, %.0f bytes for a parameter;\n"
      "          gradients in bfloat16, sent in %d bucket%s\n\n",
      inputs.tokens, inputs.peak / 1e12, 100 * inputs.utilization, inputs.memory / 1e12, 100 * inputs.memory_share,
      inputs.bytes_of_step, inputs.buckets,
      inputs.buckets == 1 ? " after the backward pass" : "s, all but the last while it goes on");
  if (muon)
    std::puts(
        "muon      2 n^2 (4 m + 14 n) operations for each n x m matrix of the layers, 2 n^2 (10 m + 5 n) up to\n"
        "          m = 1.5 n, in bfloat16 at the same share of the peak; sharded: those of the rank that has most,\n"
        "          and no matrix is divided on the wire\n");
  for (sized const& size : payloads) {
    model const m = of(inputs, size, muon);
    std::printf("%s parameters, %.3g GB: milliseconds\n"
                "  GPUs                compute     wire  latency     norm   update%s    step  efficiency  "
                "most besides compute\n",
                size.name, m.payload() / 1e9, muon ? " products" : "");
    for (int n : sizes)
      for (auto const& [label, w] :
           {std::pair{"replicated, ring", way::ring}, {"replicated, tree", way::tree}, {"sharded", way::sharded}}) {
        if (n == 1 && w != way::tree) continue;
        step const s = step_of(c, m, n, w);
        std::printf("%6d  %-17s %8.2f %8.2f %8.2f %8.3f %8.2f ", n, n == 1 ? "" : label, 1e3 * s.compute, 1e3 * s.wire,
                    1e3 * s.latency, 1e3 * s.tiny, 1e3 * s.update);
        if (muon) std::printf("%8.2f ", 1e3 * s.products);
        std::printf("%7.2f  %9.2f%%  %s\n", 1e3 * s.total(), 100 * efficiency(c, m, n, w), s.dominant());
      }
    std::puts("");
  }
}

/// Models that are cut, on the fastest grids that fit.
void print_grids(cluster const& c, model const& inputs, bool muon, double room) {
  constexpr sized cut[] = {payloads[2], {"70 B", 70e9, 80, 8192, 28672, 3}};
  std::printf(
      "A projection, not a measurement: the fastest grids of GPUs whose values, gradients, masters and moments fit\n"
      "into %.0f GB of each. Tokens, rates and bandwidths are those of `scaling`; micro-batches of 2048 tokens.\n%s\n",
      room / 1e9, muon ? "Muon needs whole matrices, so that no layer is cut.\n" : "");
  for (sized const& size : cut) {
    model const m = of(inputs, size, muon);
    layers const l{size.layers, size.width};
    std::printf(
        "%s parameters: milliseconds\n  GPUs  tensor x pipeline x data               compute   tensor    sends  "
        "   idle gradients  norm   update%s    step    GB\n",
        size.name, muon ? " products" : "");
    for (int n : {64, 512, 4096})
      for (bool const sharded : {false, true})
        for (int widest : {1, 8}) {
          grid const g = fastest(c, m, l, n, room, muon ? 1 : widest, sharded);
          if (muon && widest > 1) continue;
          if (g.data == 0) {
            std::printf("%6d  none fits%s, %s\n", n, widest > 1 ? "" : " with whole layers",
                        sharded ? "sharded" : "replicated");
            continue;
          }
          if (widest > 1 && g.tensor == 1) continue;  // that is the line before
          grid_step const s = step_of(c, m, l, g, sharded);
          std::printf("%6d  %d x %2d x %4d          %-12s %8.1f %8.1f %8.1f %8.1f %8.1f %6.2f %8.1f ", n, g.tensor,
                      g.pipeline, g.data, sharded ? "sharded" : "replicated", 1e3 * s.compute, 1e3 * s.tensor,
                      1e3 * s.sends, 1e3 * s.idle, 1e3 * s.gradients, 1e3 * s.norm, 1e3 * s.update);
          if (muon) std::printf("%8.1f ", 1e3 * s.products);
          std::printf("%8.1f %5.1f\n", 1e3 * s.total(), s.memory / 1e9);
        }
    std::puts("");
  }
}

/// Measured runs. Each line after the first has ranks, policy, milliseconds of a step, and milliseconds of that in
/// step(). For each policy, one rank comes first.
panel measured(std::string const& path) {
  std::ifstream file{path};
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error(path + ": cannot be read");
  pen const black{6, 0}, ideal{3, 2};
  panel p{"measured: times as fast as one process", "processes", axis::logarithmic, {{"a core for each", {}}},
          x_axis::doubling};
  p.curves[0].with = ideal;
  double alone = 0;
  while (std::getline(file, line)) {
    auto const fields = split(line, ',');
    double ranks = 0, all = 0;
    if (fields.size() != 4 || !read(fields[0], ranks) || !read(fields[2], all))
      throw std::runtime_error(path + ": no line of runs: " + example::quoted(line));
    if (p.curves.back().name != fields[1]) {
      p.curves.push_back({fields[1], {}});
      p.curves.back().with = pen{black.colour, p.curves.size() - 2};
      alone = all;
    }
    p.curves.back().points.push_back({ranks, alone / all});
    p.curves.back().marks.push_back({ranks, alone / all});
  }
  for (auto const& [ranks, _] : p.curves.back().points) p.curves[0].points.push_back({ranks, ranks});
  return p;
}

std::string picture(cluster const& c, model m, std::string const& runs) {
  panel sent{"projection: exposed communication, ms", "GPUs", axis::logarithmic, {}, x_axis::doubling};
  panel share{"projection: efficiency, %", "GPUs", axis::linear, {}, x_axis::doubling};
  for (int size = 0; size < 3; ++size)
    for (bool const sharded : {false, true}) {
      m.parameters = payloads[size].parameters;
      std::string const label = std::string{payloads[size].name} + (sharded ? ", sharded" : ", replicated");
      sent.curves.push_back({label, {}});
      share.curves.push_back({label, {}});
      sent.curves.back().with = share.curves.back().with = pen{std::size_t(size), sharded};
      for (int n = 8; n <= 4096; n *= 2) {
        way const w = sharded ? way::sharded : replicated(c, m, n);
        step const s = step_of(c, m, n, w);
        sent.curves.back().points.push_back({double(n), 1e3 * (s.wire + s.latency + s.tiny)});
        share.curves.back().points.push_back({double(n), 100 * efficiency(c, m, n, w)});
      }
    }
  return draw("A training step on more and more ranks: measured, and a projection by a model",
              {measured(runs), sent, share});
}

constexpr char const* help = R"(usage: scaling [options]

Projects how long a training step takes on up to 4096 GPUs, and prints the inputs of this model and its tables.

  --buckets N      gradients are sent in N buckets during the backward pass (default: 1, after it)
  --tokens N       tokens of a step on each GPU
  --rule NAME      adamw (default), or muon, with its products for the matrices of the layers
  --grid GB        instead of the tables: models that are cut, on grids of GPUs with so much memory
  --draw FILE      instead of the tables: a picture of the projection beside measured runs
  --runs FILE      these runs, which scaling.sh measures
  --help           this text
)";

void run(std::vector<std::string> const& arguments) {
  model m{.parameters = 0};
  std::string file, runs, rule = "adamw";
  double room = 0;
  std::vector<std::string> const names{"--buckets", "--tokens", "--rule", "--draw", "--runs", "--grid"};
  each_option(arguments, names, [&](std::string const& name, std::string const& value) {
    if (name == "--buckets") m.buckets = integer(name, value, 1, 10000);
    else if (name == "--tokens") m.tokens = positive(name, value);
    else if (name == "--grid") room = 1e9 * positive(name, value);
    else (name == "--rule" ? rule : name == "--draw" ? file : runs) = value;
  });
  if (file.empty() != runs.empty()) fail("--draw and --runs belong together");
  one_of("--rule", rule, {"adamw", "muon"});
  if (room > 0) print_grids(cluster{}, m, rule == "muon", room);
  else if (file.empty()) print(cluster{}, m, rule == "muon");
  else write_file(file, picture(cluster{}, m, runs));
}

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run); }
