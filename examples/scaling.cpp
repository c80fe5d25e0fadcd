// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// How a training step scales: a model's projection to 4096 GPUs, with its inputs, and a picture of it beside measured
// runs.
//
//   scaling                                          the projection, as tables
//   scaling --buckets 8 --tokens 4096                other inputs
//   scaling --draw scaling.svg --runs scaling.csv    the picture; scaling.sh measures the runs
//
// parts/projection.hpp has the model.
#include "parts/arguments.hpp"
#include "parts/chart.hpp"
#include "parts/output.hpp"
#include "parts/program.hpp"
#include "parts/projection.hpp"

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
};
constexpr sized payloads[] = {{"124 M", 124e6}, {"1.5 B", 1.5e9}, {"7 B", 7e9}};

void print(cluster const& c, model m) {
  std::printf("A projection, not a measurement.\n\n"
              "cluster   %d GPUs in a node; %.0f GB/s of each GPU, in the node and between (assumed); tree %.2f of it\n"
              "          a step: ring %.1f us, tree %.1f us in the node, %.0f us between nodes; a few bytes: %.1f us\n"
              "          and %.1f or %.1f us a step\n",
              c.gpus_per_node, c.bus / 1e9, c.tree, 1e6 * c.ring_link, 1e6 * c.tree_link, 1e6 * c.network,
              1e6 * c.tiny_base, 1e6 * c.tiny_link, 1e6 * c.tiny_network);
  std::printf("training  %.0f tokens for each GPU; %.0f TFLOP/s, of which %.0f %% (assumed); memory %.2f TB/s,\n"
              "          of which %.0f %% (assumed); adamw with masters in float, %.0f bytes for a parameter;\n"
              "          gradients in bfloat16, sent in %d bucket%s\n\n",
              m.tokens, m.peak / 1e12, 100 * m.utilization, m.memory / 1e12, 100 * m.memory_share, m.bytes_of_step,
              m.buckets, m.buckets == 1 ? " after the backward pass" : "s, all but the last while it goes on");
  for (auto const& [name, parameters] : payloads) {
    m.parameters = parameters;
    std::printf("%s parameters, %.3g GB: milliseconds\n"
                "  GPUs                compute     wire  latency     norm   update    step  efficiency  "
                "most besides compute\n",
                name, m.payload() / 1e9);
    for (int n : sizes)
      for (auto const& [label, w] :
           {std::pair{"replicated, ring", way::ring}, {"replicated, tree", way::tree}, {"sharded", way::sharded}}) {
        if (n == 1 && w != way::tree) continue;
        step const s = step_of(c, m, n, w);
        std::printf("%6d  %-17s %8.2f %8.2f %8.2f %8.3f %8.2f %7.2f  %9.2f%%  %s\n", n, n == 1 ? "" : label,
                    1e3 * s.compute, 1e3 * s.wire, 1e3 * s.latency, 1e3 * s.tiny, 1e3 * s.update, 1e3 * s.total(),
                    100 * efficiency(c, m, n, w), s.dominant());
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
          x_axis::doubling, true};
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
  panel sent{"projection: exposed communication, ms", "GPUs", axis::logarithmic, {}, x_axis::doubling, true};
  panel share{"projection: efficiency, %", "GPUs", axis::linear, {}, x_axis::doubling, true};
  for (int size = 0; size < 3; ++size)
    for (bool const sharded : {false, true}) {
      auto const& [name, parameters] = payloads[size];
      m.parameters = parameters;
      std::string const label = std::string{name} + (sharded ? ", sharded" : ", replicated");
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

void run(std::vector<std::string> const& arguments) {
  model m{.parameters = 0};
  std::string file, runs;
  auto const known = [](std::string const& name) {
    return name == "--buckets" || name == "--tokens" || name == "--draw" || name == "--runs";
  };
  bool const wanted = each_option(arguments, known, [&](std::string const& name, std::string const& value) {
    if (name == "--buckets") m.buckets = integer(name, value, 1, 10000);
    else if (name == "--tokens") m.tokens = positive(name, value);
    else (name == "--draw" ? file : runs) = value;
  });
  if (!wanted) {
    std::puts("scaling [--buckets N] [--tokens N] [--draw FILE --runs FILE]");
    return;
  }
  if (file.empty() != runs.empty()) fail("--draw and --runs belong together");
  if (file.empty()) print(cluster{}, m);
  else write_file(file, picture(cluster{}, m, runs));
}

}  // namespace

int main(int argc, char** argv) {
  return example::exit_status("scaling", [&] { run({argv + 1, argv + argc}); });
}
