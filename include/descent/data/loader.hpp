// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>
#include <descent/core/communicator.hpp>
#include <descent/core/policy.hpp>
#include <descent/data/batch.hpp>
#include <descent/data/batches.hpp>
#include <descent/data/loader_options.hpp>
#include <descent/data/order.hpp>
#include <descent/data/source.hpp>
#include <descent/data/detail/loader_core.hpp>
#include <descent/data/detail/meeting.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace descent {

namespace detail {

template <class T> inline constexpr bool is_backend = false;
template <class T> requires std::same_as<typename T::policy_kind, kind::backend>
inline constexpr bool is_backend<T> = true;

template <class... More> struct backend_among { using type = host<>; };
template <class First, class... More> struct backend_among<First, More...> {
  using type = typename std::conditional_t<is_backend<First>, std::type_identity<First>, backend_among<More...>>::type;
};

template <class T> inline constexpr bool says_ranks = communicator<T> || std::is_same_v<T, rank_slice>;
template <class T> inline constexpr bool is_setting = is_backend<T> || says_ranks<T>;
template <class... T> inline constexpr bool says_ranks_once = (0 + ... + int(says_ranks<std::remove_cvref_t<T>>)) <= 1;

/// The part of one rank, and the ranks that have the others if they can be asked.
struct rank_part {
  rank_slice mine{};
  data_ranks ranks{};

  template <class Backend, class T> void take(Backend const& backend, T&& from) {
    using type = std::remove_cvref_t<T>;
    if constexpr (communicator<type>) {
      static_assert(
          std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>,
          "loader, resident: ranks compare their data over the communicator, so it is a variable that is not const; "
          "rank_slice{comm.rank(), comm.size()} compares nothing");
      mine = {from.rank(), from.size()};
      ranks = data_ranks(from, backend);
    } else if constexpr (std::is_same_v<type, rank_slice>) {
      mine = from;
    }
  }
};
template <class Backend> Backend backend_of() { return {}; }
template <class Backend, class First, class... More> Backend backend_of(First const& first, More const&... more) {
  if constexpr (is_backend<First>) return first;
  else return backend_of<Backend>(more...);
}

}  // namespace detail

/// Delivers the batches of a source in an order, read ahead by worker threads: PyTorch's DataLoader.
///
///     loader data{source, batches{.size = 64}, shuffled{.seed = 1}, workers{.threads = 4}};
///     for (int e = 0; e < 10; ++e)
///       for (auto const& batch : data.epoch()) step(batch.get<"x">(), batch.get<"y">());
///
/// After the workers you may pass, in any order, a communicator or rank_slice{rank, ranks}, whose rank then gets its
/// part of each global batch, and a backend. With cuda{stream} (device_loader.hpp) batches are in device memory, copied
/// from pinned memory on the loader's own stream. The batches are the same for any number of workers and ranks and on
/// any backend.
///
/// Ranks of a communicator, which must live as long as the loader, compare their data at construction and their
/// positions in load(): these calls wait for all ranks. With rank_slice, and in seek(), nothing is compared: all ranks
/// must have the same records, batches, order and seeds, and the same calls of seek().
///
/// Records are written straight into their batch, in a ring of ahead + 2 slots that is allocated at construction. One
/// thread at a time may call the functions of a loader. Its destructor waits for the records that workers are reading,
/// and so does a function that changes the position. In a child of fork(), which does not have the workers, all
/// functions but position() throw std::logic_error, and the destructor leaves the memory as it is. A loader without
/// worker threads keeps working there.
template <source S, record_order O = sequential, class Backend = host<>> class loader {
  using core = detail::loader_core<S, O, typename detail::slots_of<Backend>::type>;

 public:
  using batch_type = batch<fields_of<S>>;  ///< what is delivered

  /// Throws std::invalid_argument if a setting is out of range or the first epoch has no batches, and on all ranks of a
  /// communicator if their data differ: the number of records, fields, batches, seeds, the order of the first epoch, or
  /// the contents of the first and the last record, which it reads. Starts the workers.
  template <class... More>
  explicit loader(S from, batches cut = {}, O order = {}, workers const& w = {}, More&&... more) {
    static_assert((detail::is_setting<std::remove_cvref_t<More>> && ...),
                  "loader: after the workers it takes a rank_slice or a communicator, and a backend");
    static_assert(detail::says_ranks_once<More...>,
                  "loader: one communicator or rank_slice: that of the ranks that share the batches");
    Backend const backend = detail::backend_of<Backend>(more...);
    detail::rank_part part;
    (part.take(backend, std::forward<More>(more)), ...);
    ranks_ = std::move(part.ranks);
    core_ = ranks_.or_tell("no loader", [&] {
      core_pointer made(new core(std::move(from), cut, std::move(order), w, part.mine, backend));
      made->fill().require_batches();
      return made;
    });
    ranks_.agree([&] { return core_->fill().facts(); });
    core_->start();
  }

  /// The batches of an epoch that are left, for a range-based for.
  class rest_of_epoch {
   public:
    /// Asks for the next batch at each step.
    class iterator {
     public:
      using difference_type = std::ptrdiff_t;  ///< as of any iterator
      using value_type = batch_type;  ///< what is delivered

      explicit iterator(loader* of = nullptr, std::int64_t epoch = 0) : of_(of), epoch_(epoch) { ++*this; }
      batch_type operator*() const { return batch_type(*at_); }  ///< refers to the loader's memory
      /// The next batch of the epoch.
      iterator& operator++() {
        at_ = of_ ? of_->next_of(epoch_) : nullptr;
        return *this;
      }
      void operator++(int) { ++*this; }
      /// Whether the epoch has ended.
      friend bool operator==(iterator const& i, std::default_sentinel_t) { return !i.at_; }

     private:
      loader* of_;
      std::int64_t epoch_;
      detail::batch_data<fields_of<S>> const* at_ = nullptr;
    };

    explicit rest_of_epoch(loader* of) : of_(of) {}
    iterator begin() const { return iterator(of_, of_->position().epoch); }  ///< delivers the first batch
    std::default_sentinel_t end() const { return {}; }  ///< the end of the epoch

   private:
    loader* of_;
  };

  /// The batches of the epoch at position() that are not yet delivered. After the last one the position is the
  /// beginning of the next epoch. Taking a batch throws loader_error if the source or the order threw or the deadline
  /// has passed; the position is then still that of the batch, which is read again when it is asked for again.
  rest_of_epoch epoch() { return rest_of_epoch(this); }
  /// The next batch, of this epoch or the next one. Throws like epoch(), and std::logic_error if the epoch has no
  /// batches.
  batch_type next() {
    auto const at = core_->next(-1);
    if (!at) throw std::logic_error("loader: epoch " + std::to_string(position().epoch) + " has no batches");
    return batch_type(*at);
  }

  loader_position position() const { return core_->position(); }  ///< the next batch: what has been delivered
  /// The number of batches in an epoch.
  std::int64_t batches_in(std::int64_t epoch) { return core_->fill().cut().count(core_->fill().places(epoch)->size()); }
  /// Continues with another batch. Throws std::invalid_argument if there is no such epoch or batch. Epochs end at 2^55.
  void seek(loader_position to) {
    detail::require_epoch(to.epoch);
    std::int64_t const n = to.batch == 0 ? 1 : batches_in(to.epoch);
    detail::require(to.batch >= 0 && to.batch < n, "loader", "the batch", ("in [0, " + std::to_string(n) + ")").c_str(),
                    to.batch);
    core_->restart(to);
  }
  /// The position after so many batches from the beginning of epoch 0, for instance those whose step was applied. For
  /// orders whose epochs have the same number of places.
  loader_position position_after(std::int64_t delivered) {
    std::int64_t const n = batches_in(0);
    detail::require(delivered >= 0, "loader", "the number of batches", "at least 0", delivered);
    if (n == 0) throw std::logic_error("loader: epoch 0 has no batches");
    return {delivered / n, delivered % n};
  }

  /// Calls f(name, elements) for what is to be saved, like optimizer::save():
  ///
  ///     loader.position       epoch and batch, of `at`
  ///     loader.fingerprint    a hash of fields, batches, order and seed; not of workers or ranks
  template <class F> void save(F const& f, loader_position const& at) {
    detail::save_position(f, at, core_->fill().fingerprint(at.epoch));
  }
  /// The same for the batch after those that were delivered.
  template <class F> void save(F const& f) { save(f, position()); }
  /// Resumes where another loader was saved, with the records that it would have delivered. f(name, elements) returns
  /// the saved elements. Throws std::invalid_argument, with nothing changed, if the number of elements or the
  /// fingerprint differs, on all ranks of a communicator if their positions differ, and like seek().
  template <class F> void load(F const& f) {
    auto const print = [&](std::int64_t epoch) { return core_->fill().fingerprint(epoch); };
    seek(detail::load_position_of_all(ranks_, f, position(), print));
  }

  /// What was delivered so far and where the time went.
  loader_report report() const { return core_->report(); }

 private:
  detail::batch_data<fields_of<S>> const* next_of(std::int64_t epoch) {
    auto const at = core_->next(epoch);
    if (!at && core_->position().epoch == epoch) core_->restart({epoch + 1, 0});
    return at;
  }

  /// In a child of fork() the core's locks and threads are those of the parent.
  struct let_go {
    void operator()(core* of) const {
      if (of->is_of_this_process()) delete of;
    }
  };
  using core_pointer = std::unique_ptr<core, let_go>;

  detail::data_ranks ranks_;
  core_pointer core_;
};
template <source S> loader(S) -> loader<S>;
template <source S> loader(S, batches) -> loader<S>;
template <source S, record_order O> loader(S, batches, O) -> loader<S, O>;
template <source S, record_order O, class... More>
loader(S, batches, O, workers const&, More&&...)
    -> loader<S, O, typename detail::backend_among<std::remove_cvref_t<More>...>::type>;

}  // namespace descent
