// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/optimizer/detail/made_by.hpp>
#include <descent/optimizer/detail/pieces.hpp>
#include <descent/optimizer/state.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace descent {

/// Checkpoints: the pieces of a run, save() and load().
template <class Plan, class Engine> class optimizer_checkpoint : public optimizer_state<Plan, Engine> {
 protected:
  using base = optimizer_state<Plan, Engine>;
  using rule_type = typename Plan::rule;
  using base::base, base::core_;

  static constexpr bool has_plateau = detail::has<Plan, kind::plateau>;
  static constexpr bool owns_scale = detail::has<Plan, kind::loss_scale> && !Plan::shares_scale;

 public:
  /// Calls f(name, elements) for each piece of what the optimizer owns, with a span of const elements in the stored
  /// type. The pieces are:
  ///
  ///     for a parameter "W", in the backend's memory:
  ///       W.state.m      a member of the state, by its name in the rule's `slots`, or by its number
  ///       W.matrix.m     a member of the matrix rule's state, or by number a part of its memory
  ///       W.master, W.remainder, W.average, W.slow, W.outer, W.row_updates
  ///     W.memory, memory   of the rule, per tensor or per group, in the backend's memory. With model_parallel{} every
  ///                      rank has those of the whole model, because every rank decides a step with them
  ///     made_by          a text, on the host: the rule, the types and the policies that give the pieces their meaning
  ///     step, matrix_updates, loss_scale, plateau      one element each, on the host
  ///
  /// The caller saves values, hyperparameters, which groups are frozen, and a shared loss scale. On CUDA waits for the
  /// stream. Throws std::logic_error while micro-batches wait for their update, after ready(), and while values are
  /// replaced or moved (swap_average(), ascend(), move_ahead()).
  template <class F> void save(F const& f) const {
    refuse_between("save()");
    std::string const mine = made_by_text();
    f(std::string("made_by"), std::span<char const>(mine));
    each_piece(*this, [&](detail::piece_id const& id, auto const& read, auto const&, auto const&) {
      auto const piece = read();
      if (auto const elements = span_over(piece); !elements.empty()) f(id.name, elements);
    });
  }
  /// Restores all pieces of an optimizer that was constructed like the saved one. f(name, elements) is called with each
  /// current piece and returns its replacement: a span, vector or array of the same type and length. Parameters may be
  /// in another order. Gradients then count as multiplied by the loss scale, whatever unscale() did. Throws like
  /// save(), and with nothing changed: std::invalid_argument if a length or the text of "made_by" differs (return it
  /// unchanged to skip that check), what set_step(), set_scale_state(), set_plateau() and set_row_updates() throw, and
  /// what f throws. Does not check that states and masters are finite.
  template <class F> void load(F const& f) {
    refuse_between("load()");
    load_pieces(f, nullptr);
  }
  /// The same, given a range with the names of all saved pieces: throws std::invalid_argument with the names that are
  /// missing or left over.
  template <class F, class Names> void load(F const& f, Names const& names) {
    refuse_between("load()");
    std::vector<std::string> there;
    for (auto const& name : names) there.emplace_back(name);
    load_pieces(f, &there);
  }

  /// Gives the parameters new addresses. `params` has the same names, sizes, shapes and groups, in any order; the
  /// caller has already moved the values, and the gradients if micro-batches wait. On CUDA it allocates no device
  /// memory, waits for nothing, and enqueues one small kernel for each 128 parameters. Graphs captured earlier use
  /// the new addresses from their next replay on; a captured call sets its addresses at each replay. Throws
  /// std::invalid_argument, with nothing changed, if the lists differ in more than addresses, or memory overlaps or
  /// is out of reach; std::logic_error after ready() and while values are replaced or moved.
  void rebind(parameters<typename Plan::value, typename Plan::own_gradient> const& params) {
    Engine& e = core_.alive();
    core_.refuse_averages("rebind()");
    core_.refuse_elsewhere("rebind()");
    core_.refuse_ready("rebind()");
    detail::layout<typename Plan::value, typename Plan::own_gradient> const now(params);
    detail::refuse_const_gradients<Plan>(now);
    auto const addresses = core_.where.addresses_in(now);
    std::string read_only = now.read_only;
    e.rebind(core_.where, addresses);
    core_.where.rebind(addresses);
    core_.where.read_only = std::move(read_only);
  }

  /// Sets t, the number of updates applied so far, in [0, 2^62]. Throws std::invalid_argument, with nothing changed, if
  /// t is out of range and, on the host, if a schedule leaves its field's range at t. A matrix rule that does work
  /// every n updates then assumes that no update was skipped; load() restores the exact count.
  void set_step(std::int64_t t) {
    core_.alive();
    require_step(t);
    core_.check_schedules(t);
    put_step(t);
  }

  /// The scale for the next loss; on CUDA waits for the stream.
  double loss_scale() const { return core_.waiting("loss_scale()").read_scale().scale; }
  /// Pointer to the loss scale in the backend's memory; kernels, including captured ones, may read it.
  float const* loss_scale_pointer() const { return core_.alive().loss_scale_pointer(); }
  /// The state of the loss scale. On CUDA reading waits for the stream; setting is enqueued, but with accumulate waits.
  /// Setting throws std::invalid_argument if the policy can never reach that state, and std::logic_error while
  /// micro-batches, whose gradients have the scale, wait for their update.
  loss_scale_state scale_state() const { return core_.waiting("scale_state()").read_scale(); }
  void set_scale_state(loss_scale_state const& s)
      requires(detail::otherwise("no scale of its own: set the loss_scaler's") || owns_scale) {
    check_scale(s);
    if constexpr (detail::has<Plan, kind::accumulation>) core_.refuse_batches("set_scale_state()");
    core_.alive().set_control(&control_block::scale, s, core_.groups);
  }

  /// The state of the plateau; waits, enqueues and throws like scale_state().
  plateau_state plateau() const
      requires(detail::otherwise("observe(), plateau(): give the policy on_plateau{}") || has_plateau) {
    return core_.waiting("plateau()").read_control().plateau;
  }
  void set_plateau(plateau_state const& s)
      requires(detail::otherwise("observe(), plateau(): give the policy on_plateau{}") || has_plateau) {
    check_plateau(s);
    core_.alive().set_control(&control_block::plateau, s, core_.groups);
  }

  /// Copies values, masters, states, averages, groups, t and loss scale from one rank to all, for example after that
  /// rank has loaded a checkpoint. Waits for all ranks and, on CUDA, for the stream. Throws like step(); after a
  /// comm_error, any element may have its old or its new value.
  void broadcast(int root = 0)
      requires(detail::otherwise("it gives all ranks what one of them has: give replicated{comm}") ||
               (Plan::parallel && !Plan::shards)) {
    Engine& e = core_.waiting("broadcast()");
    core_.refuse_averages("broadcast()");
    core_.refuse_elsewhere("broadcast()");
    e.broadcast(core_.groups, root);
    core_.end_unscaled();
  }

  /// Throws std::invalid_argument on every rank, with the first difference and which rank has what, unless all ranks
  /// have the same t, groups and loss scale and bitwise the same values, masters, states and averages. With sharded,
  /// compares only the values, because each rank owns a part of the rest. Changes nothing; broadcast() makes the ranks
  /// equal. Reads each buffer once and exchanges 8 bytes for each. Waits for all ranks and, on CUDA, for the stream.
  void agree() requires(detail::otherwise("there is one rank: give the policy replicated{comm} or sharded{comm}") ||
                        Plan::parallel) {
    core_.waiting("agree()").agree(core_.where, core_.groups);
  }

 private:
  friend struct detail::run_access;

  static std::string made_by_text() { return detail::made_by<Plan>(); }

  /// Does what load() does, with all names if they are known.
  template <class F> void load_pieces(F const& f, std::vector<std::string> const* there) {
    auto const all = pieces();
    if (there && detail::name_table(*there).find("made_by", *there) < 0) detail::require_names(all, *there);
    std::string const mine = made_by_text();
    answer_to<std::span<char const>, F> const theirs(mine, "made_by", f);
    detail::require_made_by(mine, {theirs.elements().begin(), theirs.elements().end()});
    if (there) detail::require_names(all, *there);
    std::vector<detail::sole_any> kept;
    std::vector<void const*> answers;
    each_piece(*this, [&](detail::piece_id const& id, auto const& read, auto const&, auto const&) {
      answers.push_back(nullptr);
      if (auto const piece = read(); span_over(piece).empty()) return;
      auto* const a = new answer_to<decltype(read()), F>(read(), id.name, f);
      kept.push_back(detail::owned_any(a));
      detail::require_size("load: '" + id.name + "'", span_over(a->piece).size(), a->elements().size());
      answers.back() = a->elements().data();
    });
    check_answers(all, answers);
    put_answers(all, answers);
  }

  /// All pieces, also those that are empty.
  std::vector<detail::piece> pieces() {
    std::vector<detail::piece> all;
    each_piece(*this, [&](detail::piece_id const& id, auto const& read, auto const& check, auto const& put) {
      auto const now = read();
      using read_type = std::remove_const_t<decltype(now)>;
      auto const elements = span_over(now);
      using element = typename decltype(elements)::value_type;
      detail::piece& p = all.emplace_back(detail::piece{id, detail::elements_of(elements), alignof(element)});
      p.is_memory = has_memory<rule_type> && !id.by_element && id.name.ends_with("memory");
      auto const taken_by = [this, n = elements.size()](auto const& call) {
        return detail::sole_function<void const*>(
            [this, n, call](void const* x) { call(*this, std::span(static_cast<element const*>(x), n)); });
      };
      if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(check)>, anything>) p.check = taken_by(check);
      if constexpr (!std::is_same_v<read_type, std::span<element const>>) {
        auto* const own = new read_type(now);
        p.own = detail::owned_any(own), p.elements.data = own->data(), p.put = taken_by(put);
      }
    });
    return all;
  }
  /// Throws, with nothing changed, if the optimizer cannot take these elements. An answer is null for an empty piece.
  void check_answers(std::vector<detail::piece> const& all, std::vector<void const*> const& answers) {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (answers[i]) {
        detail::require_answer(all[i], answers[i], core_.alive());
        if (all[i].check) all[i].check(answers[i]);
      }
    if constexpr (detail::checks_schedules<Engine, group_entry<rule_type>>) {
      std::int64_t const step = *static_cast<std::int64_t const*>(answers[0]);
      auto const now = std::as_writable_bytes(core_.alive().memories());
      std::vector<std::byte> const kept(now.begin(), now.end());
      auto const put_back = [&] {
        for (std::size_t i = 0; i < kept.size(); ++i) now[i] = kept[i];
      };
      try {  // with the rule's memory that belongs to that step
        for (std::size_t i = 0; i < all.size(); ++i)
          if (answers[i] && all[i].is_memory) copy_into(all[i], answers[i]);
        core_.check_schedules(step);
      } catch (...) {
        put_back();
        throw;
      }
      put_back();
    }
  }
  /// Takes elements that check_answers() has accepted. On the host allocates nothing, and so does not throw.
  void put_answers(std::vector<detail::piece> const& all, std::vector<void const*> const& answers) {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (answers[i]) all[i].put ? all[i].put(answers[i]) : copy_into(all[i], answers[i]);
    if constexpr (Plan::sums) core_.alive().set_groups(core_.groups);  // the next sums depend on what was put back
    core_.end_unscaled();
    core_.alive().read_control();  // waits until all is copied
  }
  void copy_into(detail::piece const& p, void const* from) {
    core_.alive().storage.copy(const_cast<void*>(p.elements.data), from, p.elements.bytes());
  }
  void put_step(std::int64_t t) {
    core_.alive().set_control(&control_block::step, t, core_.groups);
    if constexpr (Plan::has_matrices) core_.alive().matrices.common.updates = t;
  }

  struct anything {
    void operator()(auto const&, auto const&) const {}
  };
  template <class Range> static auto span_over(Range const& x) {
    using span = decltype(std::span(x));
    return std::span<typename span::value_type const>(x);
  }

  /// f's answer to a piece, and the piece, because the answer may be a view of it.
  template <class Piece, class F> struct answer_to {
    using shown = decltype(span_over(std::declval<Piece const&>()));
    Piece piece;
    std::decay_t<std::invoke_result_t<F const&, std::string const&, shown>> given;

    answer_to(Piece shown_piece, std::string const& name, F const& f)
        : piece(std::move(shown_piece)), given(f(name, span_over(piece))) {}
    auto elements() const {
      static_assert(std::is_same_v<decltype(span_over(given)), shown>,
                    "load(f): f(name, elements) returns elements of the type that it is shown; convert on purpose");
      return span_over(given);
    }
  };

  void refuse_between(char const* function) const {
    core_.waiting(function);
    core_.refuse_averages(function);
    core_.refuse_elsewhere(function);
    core_.refuse_ready(function);
    core_.refuse_batches(function);
  }
  static void require_step(std::int64_t t) { detail::require_steps("set_step", "the step", t, 0); }
  void check_scale(loss_scale_state const& s) const {
    detail::require_scale_state(detail::get<kind::loss_scale>(core_.alive().policies()), s);
  }
  static void check_plateau(plateau_state const& s) {
    constexpr char const* name = "set_plateau";
    detail::require(s.value >= 0 && s.value <= 1, name, "the value", "in [0, 1]", s.value);
    detail::require(!is_nan(s.best), name, "the best metric", "a number", s.best);
    detail::require_steps(name, "the count of bad metrics", s.bad, 0);
    detail::require_steps(name, "the cooldown left", s.cooldown, 0);
    detail::require_steps(name, "the count of metrics in the mean", s.collected, 0);
    detail::require(s.collected > 0 || s.mean == 0, name, "the mean of no metric", "0", s.mean);
  }

  /// f(id, read, check, put) for each piece, the step first. read() returns it; put(optimizer, elements) restores it
  /// and throws only if check(optimizer, elements) does.
  template <class Self, class F> static void each_piece(Self& self, F const& f) {
    f(detail::piece_id{"step"}, [&] { return std::array{self.core_.alive().read_control().step}; },
      [](auto const&, auto const& x) { require_step(x[0]); }, [](auto& to, auto const& x) { to.put_step(x[0]); });
    if constexpr (Plan::has_matrices)
      f(detail::piece_id{"matrix_updates"}, [&] { return std::array{self.core_.alive().matrices.common.updates}; },
        [](auto const&, auto const& x) { detail::require_steps("load", "'matrix_updates'", x[0], 0); },
        [](auto& to, auto const& x) { to.core_.alive().matrices.common.updates = x[0]; });
    if constexpr (owns_scale)
      f(detail::piece_id{"loss_scale"}, [&] { return std::array{self.scale_state()}; },
        [](auto const& of, auto const& x) { of.check_scale(x[0]); },
        [](auto& to, auto const& x) { to.core_.alive().set_control(&control_block::scale, x[0], to.core_.groups); });
    if constexpr (has_plateau)
      f(detail::piece_id{"plateau"}, [&] { return std::array{self.plateau()}; },
        [](auto const& of, auto const& x) { of.check_plateau(x[0]); },
        [](auto& to, auto const& x) { to.core_.alive().set_control(&control_block::plateau, x[0], to.core_.groups); });
    for (std::size_t t = 0; t < self.core_.where.names.size(); ++t) each_piece_of(self, t, f);
    if constexpr (has_memory<rule_type> && Plan::unit_per_tensor) {
      auto const& names = self.core_.whole().names;
      for (std::size_t u = 0; u < names.size(); ++u)
        array({names[u] + ".memory"}, [&] { return self.rule_memory().subspan(u, 1); }, f);
    } else if constexpr (has_memory<rule_type>) {
      array({"memory"}, [&] { return self.rule_memory(); }, f);
    }
  }
  /// A piece in the backend's memory.
  template <class Read, class F, class Check = anything>
  static void array(detail::piece_id const& id, Read const& read, F const& f, Check const& check = {}) {
    f(id, read, check, anything());
  }
  template <class Self, class F> static void each_piece_of(Self& self, std::size_t t, F const& f) {
    std::string const& name = self.core_.where.names[t];
    auto const elements = [&](std::string const& what, auto const& read) {
      array({name + what, std::ptrdiff_t(t), true}, read, f);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (elements(".state." + detail::slot_in_piece<rule_type>(I), [&] { return self.template state_of<I>(t); }), ...);
    }(typename Plan::every_slot{});
    if constexpr (Plan::has_matrices)
      each_matrix_piece<Plan>(self.core_.alive().matrices, self.core_.where.tensors, t,
                              [&](std::string const& what, std::int64_t whole, auto const& read) {
                                array({name + what, std::ptrdiff_t(t), whole == 0, whole}, read, f);
                              });
    detail::each_kept<Plan>([&]<std::size_t I, class T>(char const* called) {
      elements("." + std::string(called), [&] {
        if constexpr (I == base::buffer_number::master) return self.master_of(t);
        else return self.template view<T>(I, t);
      });
    });
    if constexpr (Plan::per_row_step)
      array({name + ".row_updates", std::ptrdiff_t(t)}, [&] { return self.row_updates_of(t); }, f,
            [&](auto const& of, auto const& x) { of.require_counts("load: '" + name + ".row_updates'", x); });
  }
};

namespace detail {
template <class Value, class Gradient, class Rule, class... Ps>
using optimizer_base = optimizer_checkpoint<typename optimizer_traits<Value, Gradient, Rule, Ps...>::plan,
                                  typename optimizer_traits<Value, Gradient, Rule, Ps...>::backend::template engine<
                                      typename optimizer_traits<Value, Gradient, Rule, Ps...>::plan>>;
}  // namespace detail

}  // namespace descent
