// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// A network whose layers are on two devices, here two threads: one works while the other waits, or both work on
// micro-batches in a pipeline; one norm over both for clipping: docs/learn/split_model.md.
#include "pipeline.hpp"

#include <array>
#include <cstddef>
#include <cstdio>

using namespace example;
using namespace example::learn;

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::options const options{
        argc,
        argv,
        {.what = "Trains a network whose layers are on two devices, with the batch as a whole and in micro-batches.",
         .figures = false}};
    std::array const runs{on_two_devices("the whole batch at once", 1, {0, 0}),
                          on_two_devices("four micro-batches: all forward, then all backward", 4, {4, 4}),
                          on_two_devices("four micro-batches: backward as soon as possible", 4, {1, 0})};
    auto const one = on_one_device();
    for (auto const& r : runs) {
      std::printf("%s: differs from one device by %g\n", r.fastest.title.c_str(), largest_difference(r.w, one));
      for (std::size_t k : {0, 1}) {
        std::printf("  device %d:", int(k + 1));
        for (auto const& p : r.fastest.pieces)
          if (p.lane.ends_with(k ? '2' : '1')) std::printf(" %c%s", p.kind == "forward" ? 'F' : 'B', p.text.c_str());
        std::printf("; activations of %d images\n", int(r.kept[k]));
      }
    }
    auto const clipped = on_one_device(ds::clip_norm{limit});
    auto const of_all = on_two_devices("", 4, {1, 0}, clip::all).w, of_own = on_two_devices("", 4, {1, 0}, clip::own).w;
    std::printf("one device, with and without clipping: %.3f\n", largest_difference(clipped, one));
    std::printf("clipped by one norm on two devices: differs from one device by %g\n",
                largest_difference(of_all, clipped));
    std::printf("clipped by a norm on each device: by %.3f\n", largest_difference(of_own, clipped));
    claim(!runs[0].together && runs[1].together && runs[2].together,
          "only in pipelines do both devices work at a time");
    options.write(draw("A step of a network on two devices; numbers are micro-batches", "ms",
                       {runs[0].fastest, runs[1].fastest, runs[2].fastest}));
  });
}
