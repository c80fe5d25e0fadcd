// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/control.hpp>
#include <descent/detail/layout.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

/// What ranks must have in common before they train together.
namespace descent::detail {

/// FNV-1a.
inline std::uint64_t hash_of(std::string const& text, std::uint64_t h = 0xcbf29ce484222325) {
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3;
  return h;
}

/// Throws std::invalid_argument on every rank, with the same message, unless all have the same facts: which is the
/// first that differs, and what which ranks have. Waits for all ranks.
template <class Comm> void require_same_facts(Comm& comm, std::vector<std::string> const& facts) {
  auto const n = std::size_t(comm.size());
  auto const gathered = [&]<class T>(std::vector<T> const& mine) {
    std::vector<T> all(mine.size() * n);
    comm.all_gather(reinterpret_cast<std::byte const*>(mine.data()), reinterpret_cast<std::byte*>(all.data()),
                    std::int64_t(mine.size() * sizeof(T)));
    return all;
  };
  std::uint64_t whole = 0xcbf29ce484222325;
  std::vector<std::uint64_t> hashes;
  for (auto const& f : facts) hashes.push_back(hash_of(f)), whole = hash_of(f + '\n', whole);
  auto const first = gathered(std::vector<std::uint64_t>{facts.size(), whole});
  bool same = true;
  std::size_t fewest = facts.size();
  for (std::size_t r = 0; r < n; ++r) {
    same = same && first[2 * r] == first[0] && first[2 * r + 1] == first[1];
    fewest = std::min(fewest, std::size_t(first[2 * r]));
  }
  if (same) return;

  hashes.resize(fewest);
  auto const all = gathered(hashes);
  std::size_t differs = 0;
  auto const agreed = [&](std::size_t i) {
    for (std::size_t r = 1; r < n; ++r)
      if (all[r * fewest + i] != all[i]) return false;
    return true;
  };
  while (differs < fewest && agreed(differs)) ++differs;

  constexpr std::size_t room = 256;
  std::string text = differs < facts.size() ? facts[differs] : "nothing more";
  text.resize(room);
  text.back() = '\0';
  auto const texts = gathered(std::vector<char>(text.begin(), text.end()));
  std::vector<std::string> said, who;
  for (std::size_t r = 0; r < n; ++r) {
    std::string const one(texts.data() + r * room);
    auto const at = std::find(said.begin(), said.end(), one);
    if (at == said.end()) said.push_back(one), who.push_back(std::to_string(r));
    else who[std::size_t(at - said.begin())] += ", " + std::to_string(r);
  }
  std::string message = "ranks are about to train different things:";
  for (std::size_t i = 0; i < said.size(); ++i)
    message += (i ? "; " : " ") + said[i] + " (rank " + who[i] + ")";
  throw std::invalid_argument(message);
}

inline std::string exact(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", x);
  return text;
}

/// Types, tensors, and what the rule's groups and the policies come to at a few steps.
template <class Plan>
std::vector<std::string> facts_of(layout<typename Plan::value, typename Plan::gradient> const& where,
                                  std::vector<group_entry<typename Plan::rule>> const& groups,
                                  typename Plan::policies const& policies) {
  using rule = typename Plan::rule;
  std::vector<std::string> facts{std::string("rule and policies ") + typeid(Plan).name(),
                                 std::to_string(where.tensors.size()) + " parameters"};
  for (std::size_t t = 0; t < where.tensors.size(); ++t) {
    auto const& x = where.tensors[t];
    facts.push_back("parameter " + std::to_string(t) + " '" + where.names[t] + "' of " + std::to_string(x.count) +
                    " elements in " + std::to_string(where.columns[t]) + " columns, types " + std::to_string(x.types) +
                    ", group " + std::to_string(x.group));
  }
  for (std::int64_t t : {1, 2, 1000}) {
    std::string const at = ", update " + std::to_string(t) + ":";
    if constexpr (!has_loss<rule>)
      for (auto const& g : groups) {
        memory_of<rule> memory{};
        double totals[Plan::sum_count + 1];
        std::fill(std::begin(totals), std::end(totals), 1.0);
        auto const unit = [&] {
          if constexpr (Plan::sums) return terms_of<Plan>(g, policies, t, 1, totals, 1, &memory, 0);
          else return terms_of<Plan>(g, policies, t, 1, &memory, 0);
        }();
        std::string text = "terms of group " + std::to_string(g.number) + at;
        for (std::size_t i = 0; i < members<rule::template terms>; ++i)
          text += " " + exact(double(reinterpret_cast<typename Plan::real const*>(&unit.terms)[i]));
        facts.push_back(text + (g.frozen ? " frozen" : ""));
      }
    if constexpr (Plan::has_step_terms) {
      auto const k = find_step_terms<Plan>(groups[0].rule, policies, t);
      facts.push_back("policies" + at + " value clip " + exact(double(k.limit)) + ", noise " + exact(double(k.noise)) +
                      ", average " + exact(double(k.keep)) + " " + exact(double(k.take)) + ", lookahead " +
                      exact(double(k.pull)) + ", seeds " + std::to_string(k.noise_seed) + " " +
                      std::to_string(k.rounding_seed));
    }
    if constexpr (Plan::template given<typename Plan::accumulation>)
      facts.push_back("micro-batches" + at + " " + std::to_string(micro_batches<Plan>(policies, t)));
  }
  if constexpr (Plan::template given<typename Plan::clip>)
    facts.push_back("clip factor of norm 1e30: " + exact(clip_factor<Plan>(policies, {1e30, 1e30, 1}, 1)));
  control_block const c = start_of<Plan>(policies);
  facts.push_back("loss scale " + exact(double(c.scale.scale)));
  return facts;
}

}  // namespace descent::detail
