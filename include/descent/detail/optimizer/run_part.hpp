// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/any_elements.hpp>
#include <descent/backends/host.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// The parts of a run as a file sees them: what they are made of, and how to reach their memory.
namespace descent::detail {

/// Memory of a backend, as the host reaches it. The functions of a device enqueue where no comment says that they wait.
struct run_memory {
  virtual ~run_memory() = default;
  virtual bool on_host() const { return true; }  // whether the host may read there, and copy() has copied at once
  virtual void copy(void* to, void const* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  /// Memory of the host that the device copies to at full speed.
  virtual std::shared_ptr<std::byte> staging(std::size_t bytes) {
    constexpr std::align_val_t page{4096};
    return {static_cast<std::byte*>(::operator new(bytes, page)), [](std::byte* p) { ::operator delete(p, page); }};
  }
  /// Throws std::logic_error if nothing can be waited for now.
  virtual void refuse_capture(char const* /*function*/) {}
  /// A function that waits for the copies so far; any thread may call it.
  virtual std::function<void()> mark() { return [] {}; }
};

/// What messages call a save or a load, which ask the same of a part.
inline constexpr char const* save_or_load = "save_file() or load_file()";

/// The memory of a backend, or of an optimizer's storage on it. Each backend specializes it.
template <class Backend> struct memory_of_backend;
template <class System> struct memory_of_backend<host<System>> : run_memory {
  template <class... Storage> explicit memory_of_backend(host<System> const&, Storage const&...) {}
};

/// Consecutive elements of a tensor. `shape` is that of the whole tensor, whose elements before `begin` and after
/// `begin + count` are on other ranks.
struct run_piece {
  std::string name;
  element_type type;
  std::size_t size;  // bytes of an element
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, count = 0;
  void const* data = nullptr;  // in the memory of the part, or in `own`
  bool divided = false;    // whether ranks have parts of it
  bool any_count = false;  // whether another count can be taken
  std::vector<std::byte> own{};  // if it is not in the memory of the part

  std::size_t bytes() const { return std::size_t(count) * size; }
};

/// The fields of a group's rule as texts; a bool is "true" or "false".
using run_fields = std::vector<std::pair<std::string, std::string>>;

/// What a person, or a reader in another language, wants to know of an optimizer.
struct run_summary {
  std::string made_by;
  std::vector<std::pair<std::string, int>> parameters;  // with their groups
  std::vector<run_fields> groups;  // and "frozen"
  std::int64_t step = 0;
  std::uint64_t fingerprint = 0;
};

/// The bytes of a rank's pieces in memory of the host, by name, aligned for their type.
using run_answers = std::function<std::span<std::byte const>(std::string const& name)>;

/// Part of what a run saves: an optimizer, a loader, tensors.
struct run_part {
  virtual ~run_part() = default;

  /// What there is to save. On CUDA waits for the stream. Throws std::logic_error if the part cannot be saved now.
  virtual std::vector<run_piece> pieces() = 0;
  virtual run_summary const* summary() { return nullptr; }  // after pieces()
  virtual run_memory& memory() = 0;

  /// Throws std::invalid_argument, with nothing changed, if the answers cannot be taken. `saved`, the summary of the
  /// file, is null if its hyperparameters are not wanted.
  virtual void check(run_answers const& answers, run_summary const* saved) = 0;
  /// Takes what check() was given. Throws only if may_refuse(); undo() then puts back what there was.
  virtual void take() = 0;
  virtual bool may_refuse() const { return false; }
  virtual void undo() {}

  virtual int rank() const { return 0; }
  virtual int ranks() const { return 1; }
  /// The text of each rank. Waits for all.
  virtual std::vector<std::string> exchange(std::string const& mine) { return {mine}; }
};

/// What save_file() and load_file() need of an optimizer; see optimizer_part.hpp.
struct run_access {
  template <class Optimizer> class part;
  template <class AnyOptimizer> static std::unique_ptr<run_part> part_of(AnyOptimizer& of) { return of.alive().part(); }
};

}  // namespace descent::detail
