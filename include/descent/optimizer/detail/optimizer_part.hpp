// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/fields.hpp>
#include <descent/optimizer/checkpoint.hpp>
#include <descent/optimizer/detail/run_part.hpp>
#include <descent/ranks/detail/agreement.hpp>
#include <descent/core/detail/containers.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace descent {
template <class Value, class Gradient, class Rule, class... Ps> class optimizer;
}

namespace descent::detail {

template <class Rule> void add_fields(run_fields& to, std::string const& prefix, Rule& rule) {
  static_assert(
      has_named_settings<Rule>(),
      "save_file(): not all fields of this rule can be read, because it, or a field, is not an aggregate of "
      "at most 32 fields; list them: template <class F> void each_field(F const& f) { f(\"width\", width); }");
  each_setting(rule, prefix,
               [&](std::string const& name, auto const& x) { to.emplace_back(name, text_of_setting(x)); });
}
/// Sets all fields of the rule, and takes them from `from`. What is wrong, if anything.
template <class Rule>
std::string set_fields(std::map<std::string, std::string>& from, std::string const& prefix, Rule& rule) {
  std::string wrong;
  each_setting(rule, prefix, [&](std::string const& name, auto& x) {
    auto const found = from.find(name);
    if (!wrong.empty()) return;
    if (found == from.end()) wrong = "the file has no field '" + name + "'";
    else if (!set_from_text(x, found->second)) wrong = "the field '" + name + "' cannot hold " + found->second;
    else from.erase(found);
  });
  return wrong;
}

inline dtype dtype_of_elements(element_type t) {
  constexpr dtype types[] = {dtype::f64, dtype::f32, dtype::f16, dtype::bf16, dtype::i64,
                             dtype::i32, dtype::u32, dtype::u16, dtype::u8,   dtype::u8};
  return types[int(t)];
}

template <class Plan> struct matrix_rules_of { using type = std::monostate; };
template <class Plan> requires(Plan::has_matrices) struct matrix_rules_of<Plan> {
  using type = plain_vector<typename Plan::matrix_rule>;
};

/// The part of an optimizer: values, pieces, and what is known of its rules.
template <class Value, class Gradient, class Rule, class... Ps>
class run_access::part<optimizer<Value, Gradient, Rule, Ps...>> final : public run_part {
  using optimizer_type = optimizer<Value, Gradient, Rule, Ps...>;
  using base = optimizer_base<Value, Gradient, Rule, Ps...>;
  using traits = optimizer_traits<Value, Gradient, Rule, Ps...>;
  using plan = typename traits::plan;
  using entries = plain_vector<group_entry<Rule>>;

 public:
  explicit part(optimizer_type& of) : of_(of), memory_(traits::backend_in(of.policies_), of_.core_.alive().storage) {}

  std::vector<run_piece> pieces() override {
    of_.refuse_between(save_or_load);
    summarize();
    pieces_ = of_.pieces();
    std::vector<run_piece> all;
    auto const& where = of_.core_.where;
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      auto const& x = where.tensors[t];
      with_types<plan>(x.types, [&]<class Typed>() {
        auto const* const value = static_cast<typename Typed::value const*>(static_cast<void const*>(x.value));
        all.push_back(whole_piece(where.names[t], value, shape_of(t), x.count));
      });
    }
    for (piece& p : pieces_)
      if (!is_value(p) && is_there(p)) all.push_back(in_file(p));
    return all;
  }
  run_summary const* summary() override { return &summary_; }
  run_memory& memory() override { return memory_; }

  void check(run_answers const& answers, run_summary const* saved) override {
    answers_ = answers;
    groups_ = of_.core_.groups;
    if constexpr (plan::has_matrices) matrix_rules_ = of_.core_.alive().matrices.common.rules;
    if (saved) set_groups(*saved);
    if constexpr (plan::has_matrices)
      for (std::size_t g = 0; g < matrix_rules_.size(); ++g) check_rule(g, matrix_rules_[g]);
    for (std::size_t g = 0; g < groups_.size(); ++g) check_rule(g, groups_[g].rule);
    traits::check_slots(groups_, of_.policies_, of_.used_);
    elements_.clear();
    for (piece const& p : pieces_) elements_.push_back(element_of(p));
    values_.clear();
    for (auto const& name : of_.core_.where.names) values_.push_back(answers_(name).data());
    swap_rules();  // schedules are checked with the saved rules
    try {
      of_.check_answers(pieces_, elements_);
      summarize();  // take() must not allocate
    } catch (...) {
      swap_rules();
      throw;
    }
    swap_rules();
  }
  void take() override {
    swap_rules();
    for (std::size_t t = 0; t < values_.size(); ++t) {
      auto const& x = of_.core_.where.tensors[t];
      memory_.copy(x.value, values_[t], std::size_t(x.count * x.value_size()));
    }
    of_.put_answers(pieces_, elements_);
  }

  int rank() const override {
    if constexpr (plan::parallel) return team().rank();
    else return 0;
  }
  int ranks() const override {
    if constexpr (plan::parallel) return team().size();
    else return 1;
  }
  std::vector<std::string> exchange(std::string const& mine) override {
    if constexpr (plan::parallel) return of_.core_.waiting(save_or_load).ranks.exchange(mine);
    else return {mine};
  }
  int model_rank() const override {
    if constexpr (plan::splits) return model().rank();
    else return 0;
  }
  int model_ranks() const override {
    if constexpr (plan::splits) return model().size();
    else return 1;
  }
  std::vector<std::string> exchange_in_model(std::string const& mine) override {
    std::vector<std::string> all{mine};
    if constexpr (plan::splits) {
      using comm = std::remove_cvref_t<decltype(model())>;
      host_meeting<comm::on_device>::meet(model(), traits::backend_in(of_.policies_), save_or_load,
                                          [&](auto&& over) { all = gathered_texts(over, mine); });
    }
    return all;
  }

 private:
  auto& team() const { return *get<kind::parallel>(of_.core_.alive().policies()).comm; }
  auto& model() const { return *get<kind::model>(of_.core_.alive().policies()).comm; }

  std::vector<std::int64_t> shape_of(std::size_t t) const {
    std::int64_t const n = of_.core_.where.tensors[t].count, columns = of_.core_.where.columns[t];
    return columns == 1 ? std::vector{n} : std::vector{n / columns, columns};
  }

  /// Whether a piece is a master that is the value itself, which is saved as such.
  bool is_value(piece const& p) const {
    return p.id.tensor >= 0 && p.elements.data &&
           p.elements.data == of_.core_.where.tensors[std::size_t(p.id.tensor)].value;
  }
  /// Whether ranks have parts of a piece, perhaps not this one.
  static bool is_divided(piece const& p) { return plan::shards && (p.id.by_element || p.id.whole > 0); }
  bool is_there(piece const& p) const {
    if (!is_divided(p)) return p.elements.count > 0;
    if (p.id.whole > 0) return true;
    std::size_t const t = std::size_t(p.id.tensor);
    if constexpr (plan::slots > 0)
      for (std::size_t i = 0; i < plan::slots; ++i)
        if (p.id.name == of_.core_.where.names[t] + ".state." + slot_in_piece<Rule>(i) &&
            (!of_.used_[i] || of_.core_.where.tensors[t].matrix))
          return false;
    return of_.core_.where.tensors[t].count > 0;
  }
  /// Takes the piece's own elements with it.
  run_piece in_file(piece& p) const {
    any_elements const& x = p.elements;
    bool const is_struct = x.type == element_type::other;
    std::vector<std::int64_t> shape{x.count};
    if (p.id.tensor >= 0) {
      std::size_t const t = std::size_t(p.id.tensor);
      if (p.id.whole > 0) shape = {p.id.whole};
      if (p.id.by_element || shape[0] == of_.core_.where.tensors[t].count) shape = shape_of(t);
    }
    if (is_struct) shape.push_back(std::int64_t(x.size));
    run_piece in{p.id.name,
                 dtype_of_elements(x.type),
                 std::move(shape),
                 0,
                 x.count * (is_struct ? std::int64_t(x.size) : 1),
                 x.data,
                 p.alignment};
    if (p.own.get()) in.own = std::make_shared<sole_any>(std::move(p.own));
    if constexpr (plan::shards)
      if (is_divided(p)) {
        std::size_t const t = std::size_t(p.id.tensor);
        in.begin = p.id.whole > 0 ? 0 : of_.core_.where.own.parts[t].begin;
        in.divided = true;
      }
    return in;
  }
  /// The answer to a piece; null if it has no elements here.
  void const* element_of(piece const& p) const {
    if (p.elements.count == 0) return nullptr;
    auto const& names = of_.core_.where.names;
    return answers_(is_value(p) ? names[std::size_t(p.id.tensor)] : p.id.name).data();
  }
  void swap_rules() {
    std::swap<entries>(groups_, of_.core_.groups);
    if constexpr (plan::has_matrices) std::swap(matrix_rules_, of_.core_.alive().matrices.common.rules);
  }

  void summarize() {
    auto const& core = of_.core_;
    summary_ = {made_by<plan>(), {}, {}, core.alive().read_control().step, 0};
    std::string facts = summary_.made_by;
    for (std::size_t t = 0; t < core.where.names.size(); ++t) {
      auto const& x = core.where.tensors[t];
      summary_.parameters.emplace_back(core.where.names[t], x.group);
      facts += "\n" + core.where.names[t] + " " + std::to_string(x.count) + " " +
               std::to_string(core.where.columns[t]) + " " + std::to_string(x.types) + " " + std::to_string(x.group);
    }
    for (std::size_t g = 0; g < core.groups.size(); ++g) {
      run_fields fields;
      Rule rule = core.groups[g].rule;
      add_fields(fields, "", rule);
      if constexpr (plan::has_matrices) {
        auto matrix_rule = core.alive().matrices.common.rules[g];
        add_fields(fields, "matrix", matrix_rule);
      }
      fields.emplace_back("frozen", text_of_setting(bool(core.groups[g].frozen)));
      facts += "\ngroup";
      for (auto const& [name, text] : fields) facts += " " + name + " " + text;
      summary_.groups.push_back(std::move(fields));
    }
    of_.policies_.each([&](auto const& p) {
      using kind_of_policy = typename std::remove_cvref_t<decltype(p)>::policy_kind;
      if constexpr (is_one_of<kind_of_policy, kind::parallel, kind::accumulation>) return;  // one run on any ranks
      std::vector<std::string> settings;
      add_policy_facts(settings, p);
      for (auto const& text : settings) facts += "\n" + text;
    });
    summary_.fingerprint = hash_of(facts);
  }

  void set_groups(run_summary const& saved) {
    if (saved.groups.size() != groups_.size())
      throw std::invalid_argument("the file has " + std::to_string(saved.groups.size()) + " groups, the optimizer " +
                                  std::to_string(groups_.size()));
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      std::map<std::string, std::string> fields(saved.groups[g].begin(), saved.groups[g].end());
      bool frozen = false;
      auto const of_frozen = fields.extract("frozen");
      if (of_frozen.empty() || !set_from_text(frozen, of_frozen.mapped()))
        refuse_group(g, "the file does not say whether it is frozen");
      std::string wrong = set_fields(fields, "", groups_[g].rule);
      if constexpr (plan::has_matrices)
        if (wrong.empty()) wrong = set_fields(fields, "matrix", matrix_rules_[g]);
      if (wrong.empty() && !fields.empty()) wrong = "the rule has no field '" + fields.begin()->first + "'";
      if (!wrong.empty()) refuse_group(g, wrong);
      groups_[g].frozen = frozen;
    }
  }
  template <class R> static void check_rule(std::size_t group, R const& rule) {
    try {
      descent::check_rule<typename plan::real>(rule);
    } catch (std::invalid_argument const& e) {
      refuse_group(group, e.what());
    }
  }

  optimizer_type& of_;
  memory_of_backend<typename traits::backend> memory_;
  run_summary summary_;
  run_answers answers_;
  entries groups_;
  typename matrix_rules_of<plan>::type matrix_rules_;
  std::vector<piece> pieces_;
  std::vector<void const*> elements_, values_;  // the answers to them, and to the values
};

}  // namespace descent::detail
