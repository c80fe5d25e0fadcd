// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/transform.hpp>
#include <descent/core/detail/loops.hpp>

#include <array>
#include <tuple>

/// The layout of a chain, computed from the types of its parts.
namespace descent::detail {

/// The numbers of several structs, side by side.
template <class Real, std::size_t N> struct numbers { Real member[N]; };
template <class Real> struct numbers<Real, 0> {};

/// cut() reads the struct whose members begin at number At; paste() writes it.
template <template <class> class Struct, std::size_t At, class Real, std::size_t N>
DESCENT_HD Struct<Real> cut([[maybe_unused]] numbers<Real, N> const& from) {
  Struct<Real> to{};
  if constexpr (members<Struct> > 0)
    for (std::size_t i = 0; i < members<Struct>; ++i) real_at<Real>(to, i) = from.member[At + i];
  return to;
}
template <template <class> class Struct, std::size_t At, class Real, std::size_t N>
DESCENT_HD void paste([[maybe_unused]] numbers<Real, N>& to, [[maybe_unused]] Struct<Real> const& from) {
  if constexpr (members<Struct> > 0)
    for (std::size_t i = 0; i < members<Struct>; ++i) to.member[At + i] = real_at<Real>(from, i);
}

template <class R, class... Facts>
concept finds_terms = requires(R const r, Facts&&... facts) {
  { r.at(std::int64_t(1), facts...) } -> std::same_as<typename R::template terms<double>>;
};

template <class... Parts> struct chain_plan {
  static constexpr std::size_t count = sizeof...(Parts), last = count - 1, none = count;
  template <std::size_t I> using part = std::tuple_element_t<I, std::tuple<Parts...>>;
  using rule = part<last>;

  static_assert(update_rule<rule>, "chain{transforms..., rule}: the last part must be an update rule");
  static_assert((0 + ... + update_rule<Parts>) <= 1, "chain{transforms..., rule}: only the last part may be a rule");
  static_assert((std::size_t(0) + ... + gradient_transform<Parts>) >= last,
                "chain{transforms..., rule}: each part before the rule must be a gradient transform, with 'template "
                "<class Real> struct terms', 'terms<double> at(std::int64_t t) const' and 'template <class Real> "
                "static Real apply(Real p, Real g, terms<Real> const& k)'");

 private:
  static constexpr std::array<std::size_t, count> slot_counts{transform_slots<Parts>...};
  static constexpr std::array<std::size_t, count> term_counts{members<Parts::template terms>...};
  static constexpr std::array<bool, count> sums{has_sums<Parts>...};
  static constexpr std::array<bool, count> normal{(takes_normal<Parts> || transform_takes_normal<Parts>)...};
  static constexpr std::array<bool, count> named{(has_slot_names<Parts> || transform_slots<Parts> == 0)...};

  static constexpr std::size_t first_of(std::array<bool, count> const& which) {
    std::size_t i = 0;
    while (i < count && !which[i]) ++i;
    return i;
  }
  static constexpr std::size_t sum_of(std::array<std::size_t, count> const& counts, std::size_t end) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < end; ++i) sum += counts[i];
    return sum;
  }

 public:
  static constexpr std::size_t slots = sum_of(slot_counts, count), terms = sum_of(term_counts, count);
  /// The first number of a part. The rule's state comes first, so that its members keep the numbers that they have
  /// without the chain.
  template <std::size_t I>
  static constexpr std::size_t slot_at = I == last ? 0 : slot_counts[last] + sum_of(slot_counts, I);
  template <std::size_t I> static constexpr std::size_t terms_at = sum_of(term_counts, I);

  template <std::size_t I> static constexpr bool counted_by(std::size_t slot) {
    if constexpr (slot_counts[I] == 0) return false;
    else return slot - slot_at<I> < slot_counts[I] && is_count<part<I>>(slot - slot_at<I>);
  }
  /// Whether a member of the state is a count, according to its part.
  static constexpr bool counted(std::size_t slot) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (counted_by<I>(slot) || ...);
    }(std::make_index_sequence<count>{});
  }

  /// Whether a term may be infinite, according to its part.
  DESCENT_HD static constexpr bool unbounded(std::size_t term) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return ((term - terms_at<I> < members<part<I>::template terms> && may_be_infinite<part<I>>(term - terms_at<I>)) ||
              ...);
    }(std::make_index_sequence<count>{});
  }

  /// The part with sums and the part that takes normals, or `none`.
  static constexpr std::size_t summing = first_of(sums), noisy = first_of(normal);
  static constexpr bool transform_sums = summing < last;
  using summing_part = part<summing == none ? last : summing>;
  /// Whether the sums need the state: that of the rule, or that of a transform before them.
  static constexpr bool sums_of_state = [] {
    if constexpr (summing == none) return false;
    else return has_sums_of_state<summing_part> || sum_of(slot_counts, summing) > 0;
  }();

  static_assert(count_true(sums) <= 1,
                "chain{transforms..., rule}: only one part may have sums; a second one would need another pass");
  static_assert(!transform_sums || transform_has_sums<summing_part>,
                "chain{transforms..., rule}: a transform with sums needs 'sum(p, g, k)' and 'at(t, totals)'");
  static_assert(count_true(normal) <= 1,
                "chain{transforms..., rule}: only one part may take normals; two would get the same numbers");
  static_assert(summing == none || noisy >= summing,
                "chain{transforms..., rule}: noise must not stand before a part with sums, which would not see it; use "
                "the policy gradient_noise");

  /// The names of the state's members, or 0 if a part has none.
  static constexpr auto names() {
    if constexpr (slots == 0 || count_true(named) < count) return 0;
    else {
      std::array<char const*, slots> all{};
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        ([&] {
          if constexpr (slot_counts[I] > 0)
            for (std::size_t i = 0; i < slot_counts[I]; ++i) all[slot_at<I> + i] = part<I>::slots[i];
        }(), ...);
      }(std::make_index_sequence<count>{});
      return all;
    }
  }

  /// Whether at(t, facts...) gives the terms of all parts. A transform with sums takes the totals, the rule the rest.
  template <class... Facts> static constexpr bool finds() {
    if constexpr (!transform_sums) return finds_terms<rule, Facts...>;
    else if constexpr (sizeof...(Facts) == 0) return true;
    else return finds_with_totals<Facts...>();
  }

 private:
  template <class Totals, class... Rest> static constexpr bool finds_with_totals() {
    return finds_terms<summing_part, Totals> && finds_terms<rule, Rest...>;
  }
};

}  // namespace descent::detail
