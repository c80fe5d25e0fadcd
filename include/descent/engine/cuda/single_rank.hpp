// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/row_clip.hpp>

/// What the CUDA engine exchanges with other ranks if there are none.
namespace descent::detail {

/// With one rank there is nothing to do.
template <class Plan> class cuda_ranks {
  static_assert(!Plan::parallel, "replicated and sharded on a device: #include <descent/ranks/parallel.cuh>");

 public:
  template <class... Ts> void join(Ts const&...) {}
  template <class... Ts> void add_to(Ts const&...) {}
  template <class... Ts> void show_in(Ts const&...) {}
  template <class... Ts> void describe(Ts const&...) {}
  template <class F> void start(F const& make) { make(); }
};

/// Without model_parallel{} this rank has the whole model.
template <class Plan> class cuda_model {
  static_assert(!Plan::splits, "model_parallel on a device: #include <descent/ranks/model_parallel.cuh>");

 public:
  template <class... Ts> void join(Ts const&...) {}
  template <class... Ts> void add_to(Ts const&...) {}
  template <class... Ts> void show_in(Ts const&...) const {}
  template <class... Ts> void describe(Ts const&...) {}
  template <class F> void start(F const& make) { make(); }
  template <class Where> all_row_pieces rows_of(Where const& where) const { return all_row_pieces(where); }
};

}  // namespace descent::detail
