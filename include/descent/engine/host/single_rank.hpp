// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/row_clip.hpp>

#include <cstddef>
#include <cstdint>

/// What the host engine exchanges with other ranks if there are none.
namespace descent::detail {

/// With one rank there is nothing to do. ranks/parallel.hpp has what several do.
template <class Plan> class host_ranks {
 public:
  template <class Policies> explicit host_ranks(Policies const&) {}
  template <class... Ts> void join(Ts const&...) {}
  void start() {}
  template <class F> void together(F const& f) { f(); }
};

/// Without model_parallel{} this rank has the whole model. ranks/model_parallel.hpp has what several do.
template <class Plan> class host_model {
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

 public:
  template <class Groups, class Policies>
  host_model(tensors const& where, Groups const&, Policies const&) : whole_(where) {}

  static constexpr std::size_t extra = 0;  // numbers after the partial sums
  tensors const& whole() const { return whole_; }
  std::int64_t chunk(std::int64_t own, std::size_t) const { return own; }
  std::size_t unit(std::size_t tensor) const { return tensor; }
  all_row_pieces rows_of(tensors const& where) const { return all_row_pieces(where); }
  static constexpr bool counts(std::size_t) { return true; }
  void start() {}
  template <class F> void together(F const& f) { f(); }

 private:
  tensors const& whole_;
};

}  // namespace descent::detail
