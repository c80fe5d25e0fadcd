// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/state_access.hpp>
#include <descent/schedule.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace descent::detail {

/// The face's part with which a run is saved, and goes on.
template <class Plan, class Engine> class saved_run : public state_access<Plan, Engine> {
 protected:
  using base = state_access<Plan, Engine>;
  using base::base, base::alive, base::waiting, base::where_, base::groups_, base::require_plateau;
  using typename base::rule;

 public:
  /// All that the optimizer owns, in pieces: calls f(name, elements) for each that there is, with a span of constants
  /// in the type that is stored. Of a parameter "W" that is "W.state.0", as state<0>("W") and so on, "W.master",
  /// "W.remainder", "W.average", "W.slow", "W.row_updates", "W.matrix.0"; of what the rule remembers "memory" or, where
  /// that is for each tensor, "W.memory", all in the backend's memory; on the host, of one element each, "step",
  /// "loss_scale" and "plateau". Values, hyperparameters, what is frozen and a loss scale that is shared are the
  /// caller's. On CUDA waits for the stream. Throws std::logic_error while micro-batches wait for their update, and
  /// between calls that move the values elsewhere.
  template <class F> void save(F const& f) const {
    refuse_between("save()");
    each_piece(*this, [&](std::string const& name, auto const& read, auto const&, auto const&) {
      auto const piece = read();
      if (auto const elements = span_over(piece); !elements.empty()) f(name, elements);
    });
  }
  /// Puts all pieces back into an optimizer that was made like the saved one: f(name, elements) gets a piece as it is,
  /// and returns what comes in its place, a span, vector or array of the same type and length. The order of parameters
  /// may be another. Gradients count as scaled then, whatever unscale() did. Throws as save() and, with nothing changed,
  /// std::invalid_argument on another length and as set_step(), set_scale_state() and set_plateau(), and whatever f
  /// throws.
  template <class F> void load(F const& f) {
    refuse_between("load()");
    std::vector<std::shared_ptr<void>> answers;
    each_piece(*this, [&](std::string const& name, auto const& read, auto const& check, auto const&) {
      answers.emplace_back();
      if (auto const piece = read(); span_over(piece).empty()) return;
      auto const a = std::make_shared<answer_to<decltype(read()), F>>(read(), name, f);
      static_assert(std::is_same_v<decltype(a->elements()), decltype(span_over(a->piece))>,
                    "load(f): f(name, elements) returns elements of the type that it is shown; convert on purpose");
      this->require_size("load: '" + name + "'", span_over(a->piece).size(), a->elements().size());
      check(*this, a->elements());
      answers.back() = a;
    });
    auto answer = answers.begin();
    each_piece(*this, [&](std::string const&, auto const& read, auto const&, auto const& put) {
      auto const* const a = static_cast<answer_to<decltype(read()), F> const*>((answer++)->get());
      if (a) put(*this, a->elements());
    });
    if constexpr (Plan::sums) alive().set_groups(groups_);  // what the next sums need depends on what was put back
    this->end_unscaled();
    alive().read_control();  // waits until all is copied
  }

  /// Puts back t, the updates applied so far, in [0, 2^62]. Throws std::invalid_argument, with nothing changed, on
  /// another number and, on the host, where a schedule is out of its field's range at t.
  void set_step(std::int64_t t) {
    alive();
    check_step(t);
    alive().set_control(&control_block::step, t, groups_);
  }

  /// The state of the loss scale, to save and to put back; on CUDA reading waits for the stream, setting is enqueued.
  loss_scale_state scale_state() const { return waiting("scale_state()").read_scale(); }
  void set_scale_state(loss_scale_state const& s) {
    static_assert(owns_scale,
                  "set_scale_state(): the optimizer has no loss scale of its own; a shared one is set in its "
                  "loss_scaler");
    require_scale(s.scale);
    alive().set_control(&control_block::scale, s, groups_);
  }

  /// The state of the plateau, likewise.
  plateau_state plateau() const {
    require_plateau();
    return waiting("plateau()").read_control().plateau;
  }
  void set_plateau(plateau_state const& s) {
    require_plateau();
    check_plateau(s);
    alive().set_control(&control_block::plateau, s, groups_);
  }

  /// Values, masters, states, averages, groups, t and loss scale become those of one rank, on which they were put back,
  /// say. Waits for all ranks and, on CUDA, for the stream. Throws as step(); after a comm_error values may be those of
  /// either.
  void broadcast(int root = 0) {
    static_assert(Plan::parallel && !Plan::shards,
                  "broadcast(): it gives all ranks what one of them has, which only replicated{comm} lets them have");
    Engine& e = waiting("broadcast()");
    this->refuse_averages("broadcast()");
    this->refuse_elsewhere("broadcast()");
    e.broadcast(groups_, root);
    this->end_unscaled();
  }

  /// Throws std::invalid_argument on every rank, with the first difference and which ranks have what, unless all have
  /// the same t, groups, loss scale and, to the bit, values, masters, states and averages; with sharded the values only
  /// of these, as each rank has its own part of the others. Nothing changes, and broadcast() mends. Each buffer is read
  /// once, and 8 bytes for each are compared. Waits for all ranks and, on CUDA, for the stream.
  void agree() {
    static_assert(Plan::parallel, "agree(): there is one rank: give the policy replicated{comm} or sharded{comm}");
    waiting("agree()").agree(this->where_, groups_);
  }

 private:
  struct anything {
    void operator()(auto const&, auto const&) const {}
  };
  static constexpr bool owns_scale = Plan::template given<typename Plan::loss_scale> && !Plan::shares_scale;

  template <class Range> static auto span_over(Range const& x) {
    using span = decltype(std::span(x));
    return std::span<typename span::value_type const>(x);
  }

  /// What f answers to a piece, which stays as it may be a view of it.
  template <class Piece, class F> struct answer_to {
    using shown = decltype(span_over(std::declval<Piece const&>()));
    Piece piece;
    std::decay_t<std::invoke_result_t<F const&, std::string const&, shown>> given;

    answer_to(Piece shown_piece, std::string const& name, F const& f)
        : piece(std::move(shown_piece)), given(f(name, span_over(piece))) {}
    auto elements() const { return span_over(given); }
  };

  void refuse_between(char const* function) const {
    Engine const& e = waiting(function);
    this->refuse_averages(function);
    this->refuse_elsewhere(function);
    this->refuse_ready(function);
    if (auto const n = e.read_control().batches)
      throw std::logic_error(std::string(function) + " while micro-batches wait for their update: " +
                             std::to_string(n));
  }
  void check_step(std::int64_t t) const {
    require_steps("set_step", "the step", t, 0);
    this->check_schedules(t);
  }
  static void check_plateau(plateau_state const& s) {
    constexpr char const* name = "set_plateau";
    require(s.value >= 0 && s.value <= 1, name, "the value", "in [0, 1]", s.value);
    require(!is_nan(s.best), name, "the best metric", "a number", s.best);
    require(s.bad >= 0, name, "the count of bad metrics", "at least 0", s.bad);
    require(s.cooldown >= 0, name, "the cooldown left", "at least 0", s.cooldown);
    require(s.collected >= 0, name, "the count of metrics in the mean", "at least 0", s.collected);
  }

  /// f(name, read, check, put) for each piece: what read() gives now, and what put(optimizer, elements) makes of it,
  /// which throws only where check(optimizer, elements) does.
  template <class Self, class F> static void each_piece(Self& self, F const& f) {
    f("step", [&] { return std::array{self.alive().read_control().step}; },
      [](auto const& of, auto const& x) { of.check_step(x[0]); }, [](auto& to, auto const& x) { to.set_step(x[0]); });
    if constexpr (owns_scale)
      f("loss_scale", [&] { return std::array{self.scale_state()}; },
        [](auto const&, auto const& x) { require_scale(x[0].scale); },
        [](auto& to, auto const& x) { to.set_scale_state(x[0]); });
    if constexpr (Plan::template given<typename Plan::plateau>)
      f("plateau", [&] { return std::array{self.plateau()}; },
        [](auto const& of, auto const& x) { of.check_plateau(x[0]); },
        [](auto& to, auto const& x) { to.set_plateau(x[0]); });
    for (std::size_t t = 0; t < self.where_.names.size(); ++t) each_piece_of(self, t, f);
    if constexpr (has_memory<rule> && !Plan::unit_per_tensor) array("memory", [&] { return self.rule_memory(); }, f);
  }
  /// A piece that lies in the backend's memory.
  template <class Read, class F> static void array(std::string const& name, Read const& read, F const& f) {
    f(name, read, anything{}, [&read](auto& to, auto const& x) { to.put("load", read(), x); });
  }
  template <class Self, class F> static void each_piece_of(Self& self, std::size_t t, F const& f) {
    auto const piece = [&, &name = self.where_.names[t]](std::string const& what, auto const& read) {
      array(name + what, read, f);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (piece(".state." + std::to_string(I), [&] { return self.template state_of<I>(t); }), ...);
    }(typename Plan::every_slot{});
    if constexpr (Plan::has_matrices) each_matrix_piece(self, t, piece);
    if constexpr (Plan::has_master) piece(".master", [&] { return self.master_of(t); });
    if constexpr (Plan::has_remainder)
      piece(".remainder", [&] { return self.template view<std::uint16_t>(self.alive().remainder(), t); });
    if constexpr (Plan::template given<typename Plan::average>)
      piece(".average", [&] { return self.template view<typename Plan::real>(self.alive().average(), t); });
    if constexpr (Plan::template given<typename Plan::lookahead>)
      piece(".slow", [&] { return self.template view<typename Plan::slow>(self.alive().slow(), t); });
    if constexpr (has_memory<rule> && Plan::unit_per_tensor)
      piece(".memory", [&] { return self.rule_memory().subspan(t, 1); });
    if constexpr (Plan::own_updates) piece(".row_updates", [&] { return self.row_updates_of(t); });
  }
  template <class Self, class Piece> static void each_matrix_piece(Self& self, std::size_t t, Piece const& piece) {
    constexpr std::size_t slots = members<Plan::matrix_rule::template state>;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (piece(".matrix." + std::to_string(I), [&] { return self.template matrix_state_of<I>(t); }), ...);
    }(std::make_index_sequence<slots>{});
    auto const& matrices = self.alive().matrices();
    for (std::size_t part = 0; part < matrices.where().parts(t); ++part)
      piece(".matrix." + std::to_string(slots + part), [&] { return matrix_memory<Plan>(matrices, t, part); });
  }
};

template <class Value, class Gradient, class Rule, class... Ps>
using face = saved_run<typename chosen<Value, Gradient, Rule, Ps...>::plan,
                       typename chosen<Value, Gradient, Rule, Ps...>::backend::template engine<
                           typename chosen<Value, Gradient, Rule, Ps...>::plan>>;

}  // namespace descent::detail
