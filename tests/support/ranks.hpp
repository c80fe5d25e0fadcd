// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/threads.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/ranks/parallel.hpp>

#include "support/clock.hpp"
#include "support/message.hpp"
#include "support/rank_model.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

/// Models trained by several ranks, each a thread, and by one process with the sum of their gradients.
namespace ranks {

inline bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

/// The message of the Exception that work() throws; empty if it throws none.
template <class Exception = std::exception, class Work> std::string thrown(Work const& work) {
  return test::message<Exception>(work);
}

/// Runs work(comm) on every rank, each a thread. Returns the messages of what they threw, by rank.
template <class Work>
std::vector<std::string> on_ranks(descent::comm::threads& world, Work const& work) {
  std::vector<std::string> why(std::size_t(world.size()));
  std::vector<std::thread> team;
  for (int r = 0; r < world.size(); ++r)
    team.emplace_back([&, r] {
      why[std::size_t(r)] = thrown([&] {
        auto comm = world.rank(r);
        work(comm);
      });
    });
  for (auto& one : team) one.join();
  return why;
}
inline bool none(std::vector<std::string> const& thrown) {
  for (auto const& one : thrown)
    if (!one.empty()) {
      MESSAGE(one);
      return false;
    }
  return true;
}

/// Runs work(comm) on every rank of a new world; nothing may be thrown.
template <class Work> void with_ranks(int ranks, Work const& work) {
  descent::comm::threads world{ranks, std::chrono::seconds(60)};
  CHECK(none(on_ranks(world, work)));
}
/// Runs work(in_row, in_column) on a grid of ranks. A row is a model, a column are the ranks with the same part of it.
template <class Work> void on_grid(int rows, int columns, Work const& work) {
  std::vector<std::unique_ptr<descent::comm::threads>> of_rows, of_columns;
  for (int r = 0; r < rows; ++r)
    of_rows.push_back(std::make_unique<descent::comm::threads>(columns, std::chrono::seconds(60)));
  for (int c = 0; c < columns; ++c)
    of_columns.push_back(std::make_unique<descent::comm::threads>(rows, std::chrono::seconds(60)));
  with_ranks(rows * columns, [&](auto& comm) {
    int const row = comm.rank() / columns, column = comm.rank() % columns;
    auto in_row = of_rows[std::size_t(row)]->rank(column);
    auto in_column = of_columns[std::size_t(column)]->rank(row);
    work(in_row, in_column);
  });
}
/// Runs work(comm, policy) with replicated and with sharded, on every rank of one world.
template <class Work> void on_both(int ranks, Work const& work) {
  with_ranks(ranks, [&](auto& comm) {
    work(comm, descent::replicated{comm});
    work(comm, descent::sharded{comm});
  });
}

/// What an optimizer or a loader saves, and the load of it.
using pieces = std::map<std::string, std::vector<std::byte>>;
pieces saved(auto& opt) {
  pieces all;
  opt.save([&](std::string const& name, auto elements) {
    auto const bytes = std::as_bytes(elements);
    all[name].assign(bytes.begin(), bytes.end());
  });
  return all;
}
void load(auto& opt, pieces const& all) {
  opt.load([&]<class T>(std::string const& name, std::span<T const>) {
    auto const& bytes = all.at(name);
    std::vector<std::remove_const_t<T>> elements(bytes.size() / sizeof(T));
    std::memcpy(elements.data(), bytes.data(), bytes.size());
    return elements;
  });
}

constexpr int steps = 6;

/// Trains one process on the sum of all ranks' gradients, divided by the number of ranks.
template <class Value, class Gradient, class Rule, class... Ps>
model<Value, Gradient> alone(int ranks, Rule const& rule, Ps... policies) {
  model<Value, Gradient> m;
  descent::optimizer opt{m.list(), rule, policies..., descent::accumulate{1}};
  for (int t = 0; t < steps; ++t) {
    m.set(t, 0, ranks);
    opt.step(ranks);
  }
  return m;
}

/// Every rank's values after the same steps on its own gradients.
template <class Value, class Gradient, class Policy, class Rule, class... Ps>
std::vector<model<Value, Gradient>> together(int ranks, Policy const& policy, Rule const& rule, Ps... policies) {
  descent::comm::threads world{ranks, std::chrono::seconds(60)};
  std::vector<model<Value, Gradient>> all;
  for (int r = 0; r < ranks; ++r) all.emplace_back(r);  // differ until the constructor broadcasts those of rank 0
  CHECK(none(on_ranks(world, [&](auto& comm) {
    auto& m = all[std::size_t(comm.rank())];
    descent::optimizer opt{m.list(), rule, policies..., policy(comm)};
    for (int t = 0; t < steps; ++t) {
      m.set(t, comm.rank(), comm.rank() + 1);
      opt.step();
    }
  })));
  return all;
}

inline auto const replicated = [](auto& comm) { return descent::replicated{comm}; };
inline auto const sharded = [](auto& comm) { return descent::sharded{comm}; };
inline auto const replicated_ordered = [](auto& comm) { return descent::replicated{comm, descent::ordered_sum{}}; };
inline auto const sharded_ordered = [](auto& comm) { return descent::sharded{comm, descent::ordered_sum{}}; };
inline auto const replicated_float = [](auto& comm) { return descent::replicated{comm, descent::float_sum{}}; };
inline auto const sharded_float = [](auto& comm) { return descent::sharded{comm, descent::float_sum{}}; };

/// All ways to sum give every rank the values of one process.
template <class Value, class Gradient = Value, class Rule, class... Ps>
void same_as_alone(Rule const& rule, Ps... policies) {
  for (int ranks : {1, 2, 3, 5}) {
    INFO("ranks ", ranks);
    auto const want = alone<Value, Gradient>(ranks, rule, policies...);
    auto const holds = [&](char const* how, auto const& policy) {
      INFO(how);
      for (auto const& got : together<Value, Gradient>(ranks, policy, rule, policies...)) CHECK(got == want);
    };
    holds("replicated", replicated);
    holds("sharded", sharded);
  }
}

}  // namespace ranks
