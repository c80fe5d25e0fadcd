// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/hash.hpp>
#include <descent/data/batch.hpp>
#include <descent/data/batches.hpp>
#include <descent/data/loader_options.hpp>
#include <descent/data/source.hpp>
#include <descent/data/detail/host_slots.hpp>
#include <descent/data/detail/position.hpp>
#include <descent/ranks/detail/differences.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What ranks that share batches compare: each finds its part of a batch by itself, so all must cut the same data.
namespace descent::detail {

/// Ranks have other data, or one of them has none. Thrown on all of them.
struct ranks_differ : std::invalid_argument { using std::invalid_argument::invalid_argument; };

/// The ranks of a communicator, or none.
class data_ranks {
 public:
  data_ranks() = default;
  template <class Comm, class Backend>
  data_ranks(Comm& comm, Backend const& backend) : compare_([&comm, backend](std::vector<std::string> const& facts) {
    std::string difference;
    std::uint64_t none = 0;
    host_meeting<Comm::on_device>::meet(comm, backend, "a comparison of loaders", [&](auto&& over) {
      difference = difference_in(over, facts, none, "ranks disagree about the data:");
    });
    if (!difference.empty()) throw ranks_differ(difference);
  }) {
    if (comm.size() == 1) compare_ = nullptr;
  }

  /// Throws ranks_differ on all ranks if facts() differs, a list of texts. Waits for all ranks.
  template <class Facts> void agree(Facts const& facts) const {
    if (compare_) compare_(facts());
  }
  /// Returns work(). If it throws, the other ranks, which wait in agree(), are told why.
  template <class Work> auto or_tell(char const* lacks, Work const& work) const {
    try {
      return work();
    } catch (std::exception const& e) {
      tell(lacks, e);
      throw;
    }
  }
  void tell(char const* lacks, std::exception const& e) const {
    if (compare_) try {
        compare_({std::string(lacks) + ": " + e.what()});
      } catch (std::exception const&) {}  // this rank's own reason is the better one
  }

 private:
  std::function<void(std::vector<std::string> const&)> compare_;
};

/// The contents of a record, or why it cannot be read.
template <class S> std::string fact_of_record(S const& from, std::int64_t i, std::uint64_t seed) {
  std::string const name = "record " + std::to_string(i);
  try {
    batch_layout<fields_of<S>> const layout(from.fields(), 1);
    host_slots const memory(1, layout.bytes, host<>());
    std::memset(memory.read(0), 0, layout.bytes);
    record_random random(seed, 0, i);
    from.read(i, layout.row(memory.read(0), 0), random);
    return name + " with contents " + hash_text(hash_of({reinterpret_cast<char const*>(memory.read(0)), layout.bytes}));
  } catch (std::exception const& e) {
    return name + " that cannot be read: " + e.what();
  }
}

template <class O> std::string fact_of_order(O const& order, std::int64_t records) {
  try {
    auto const places = order.epoch(records, 0);
    std::string text = std::to_string(places.size()) + " places in epoch 0";
    std::uint64_t hash = hash_of("");
    std::int64_t const step = std::max<std::int64_t>(places.size() / 64, 1);
    for (std::int64_t place = 0; place < places.size(); place += step) {
      std::int64_t const record = places[place];
      hash = hash_of({reinterpret_cast<char const*>(&record), sizeof record}, hash);
      if (place < 4) text += (place ? ", " : ": records ") + std::to_string(record);
    }
    return text + ", hash " + hash_text(hash);
  } catch (std::exception const& e) {
    return std::string("no order of epoch 0: ") + e.what();
  }
}

/// What must be equal on ranks that share batches. `seed`: of the records' random numbers.
template <class S, class O>
std::vector<std::string> facts_of_data(S const& from, batches const& cut, O const& order, std::uint64_t seed) {
  std::vector<std::string> facts{"a loader", std::to_string(from.size()) + " records"};
  from.fields().each([&](auto i, auto const& f) {
    std::string text = "field '" + std::string(f.name.view()) + "' of " +
                       std::to_string(sizeof(typename fields_of<S>::template element<i>)) + "-byte elements, shape [";
    for (auto const n : f.shape()) text += (text.back() == '[' ? "" : ", ") + std::to_string(n);
    facts.push_back(text + "]");
  });
  char const* const ends[] = {"is kept", "is dropped", "is padded"};
  facts.push_back("batches of " + std::to_string(cut.size) + " records, of which a smaller last one " +
                  ends[int(cut.last)]);
  facts.push_back("records' random numbers of seed " + std::to_string(seed));
  facts.push_back("the order " + type_text<O>());
  if constexpr (requires { std::to_string(order.seed); })
    facts.push_back("an order of seed " + std::to_string(order.seed));
  facts.push_back(fact_of_order(order, from.size()));
  if (from.size() > 0)
    for (std::int64_t i : {std::int64_t{0}, from.size() - 1}) facts.push_back(fact_of_record(from, i, seed));
  return facts;
}

/// load_position(), of which the ranks compare what they have found.
template <class F, class Print>
loader_position load_position_of_all(data_ranks const& ranks, F const& f, loader_position const& now,
                                     Print const& print) {
  loader_position const to = ranks.or_tell("no position", [&] { return load_position(f, now, print); });
  ranks.agree([&] {
    return std::vector{"epoch " + std::to_string(to.epoch) + ", batch " + std::to_string(to.batch),
                       "epoch " + std::to_string(to.epoch) + " of an order with hash " + hash_text(print(to.epoch))};
  });
  return to;
}

}  // namespace descent::detail
