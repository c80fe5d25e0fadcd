// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/detail/reader.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

/// A load of all ranks: all take what they are given, or none does.
namespace descent::detail {

inline load_report load_run(std::string const& path, load_options const& options,
                            std::vector<named_part> const& parts) {
  job_ranks const job(parts);
  run_loading loading(path, options, parts, job);
  auto const done = [](auto const& f) { return [&f] { return f(), std::string(); }; };
  auto const prepare = [&] {
    auto const list = [&] { loading.list(); };
    job.meet(done(list));
    auto const files = job.meet_after([&] { return loading.read(), loading.hash(); });
    for (std::size_t r = 1; r < files.size(); ++r)
      if (files[r] != files[0])
        throw std::runtime_error(path + ": rank " + std::to_string(r) + " has read a different file than rank 0");
    return loading.step();
  };
  auto const steps = job.meet_in_model(prepare);
  for (std::size_t r = 1; r < steps.size(); ++r)
    if (steps[r] != steps[0])
      throw std::invalid_argument(path + ": rank " + std::to_string(r) + " of the model loads step " + steps[r] +
                                  ", rank 0 step " + steps[0]);
  auto const take_refusable = [&] {
    std::size_t most = 0;
    auto const parts_left = loading.refusable();
    for (auto const& marks : job.meet([&] { return loading.check(), std::string(parts_left.size(), '.'); }))
      most = std::max(most, marks.size());
    // One by one: a part, such as a loader, may meet those of other ranks, which must all have come this far.
    for (std::size_t i = 0; i < most; ++i)
      job.meet(done([&] {
        if (i < parts_left.size()) loading.take(parts_left[i]);
      }));
    return std::string();
  };
  try {
    job.meet_in_model(take_refusable);
  } catch (...) {
    loading.undo();
    throw;
  }
  return loading.finish();
}

}  // namespace descent::detail
