// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/fields.hpp>
#include <descent/core/policy.hpp>
#include <descent/core/range.hpp>

#include <string>
#include <string_view>

/// The settings of a policy, as ranks compare them, files have them in the fingerprint, and explain() prints them.
namespace descent::detail {

/// Policies whose fields are no settings of the training: the backend, and where memory is. Nor are pointers: to
/// communicators, to the caller's loss and factor, and to what a loss_scaler shares.
template <class P>
inline constexpr bool has_settings =
    !is_one_of<typename P::policy_kind, kind::backend, kind::memory, kind::state_memory>;

/// Whether a policy is a schedule that is no aggregate and does not list its fields, or has such a part.
template <class P> inline constexpr bool has_hidden_settings = false;
template <class P> requires requires(P p) { P::of_field(), p.schedule; }
inline constexpr bool has_hidden_settings<P> = !has_named_settings<decltype(P::schedule)>();

/// "ema", or "the schedule of lr".
template <class P> std::string name_of_policy() {
  if constexpr (requires { P::of_field(); }) return "the schedule of " + P::of_field();
  else return rule_name<P>();
}

/// Calls f(name, field) for each setting of a policy.
template <class P, class F> void each_policy_setting(P policy, F const& f) {
  if constexpr (!has_settings<P>) {
    return;
  } else if constexpr (requires { policy.bucket_bytes; }) {
    f(std::string("bucket_bytes"), policy.bucket_bytes), f(std::string("agree_every"), policy.updates_between);
  } else if constexpr (requires { P::of_field(); }) {
    each_setting(policy.schedule, "", f);
    f(std::string("group"), policy.group);
  } else if constexpr (lists_fields<P>) {
    policy.each_field([&](std::string_view name, auto& field) { f(std::string(name), field); });
  } else {
    each_setting(policy, "", f);
  }
}

}  // namespace descent::detail
