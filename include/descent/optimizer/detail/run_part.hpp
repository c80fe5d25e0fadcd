// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer/detail/pieces.hpp>
#include <descent/backends/detail/run_memory.hpp>
#include <descent/core/tensor_info.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// The parts of a run as a file sees them.
namespace descent::detail {

/// What messages call a save or a load, which ask the same of a part.
inline constexpr char const* save_or_load = "save_file() or load_file()";

/// Consecutive elements of a tensor. `shape` is that of the whole tensor, whose elements before `begin` and after
/// `begin + count` are on other ranks. A struct is its bytes, of shape [number, size].
struct run_piece {
  std::string name;
  dtype type;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, count = 0;
  void const* data = nullptr;  // in the memory of the part, or that of the host if `own`
  std::size_t alignment = descent::bytes_of(type);
  bool divided = false;               // whether ranks have parts of it
  bool any_count = false;             // whether another count can be taken
  std::shared_ptr<void const> own{};  // the elements, if they are a copy

  std::size_t bytes() const { return std::size_t(count) * descent::bytes_of(type); }
};

/// The piece whose elements T has the whole tensor; a T that no file has is a struct.
template <class T>
run_piece whole_piece(std::string name, T const* data, std::vector<std::int64_t> shape, std::int64_t count) {
  if constexpr (std::is_same_v<T, char>) return {std::move(name), dtype::u8, std::move(shape), 0, count, data};
  else if constexpr (file_element<T>) return {std::move(name), dtype_of<T>, std::move(shape), 0, count, data};
  else {
    static_assert(std::is_trivially_copyable_v<T>, "save_file: the elements of a piece are numbers or plain structs");
    shape.push_back(sizeof(T));
    return {std::move(name), dtype::u8, std::move(shape), 0, count * std::int64_t(sizeof(T)), data, alignof(T)};
  }
}
/// The same with a copy of the elements.
template <class T> run_piece copied_piece(std::string name, std::span<T const> x) {
  auto const n = std::int64_t(x.size());
  auto const bytes = std::as_bytes(x);
  auto const own = std::make_shared<std::vector<std::byte> const>(bytes.begin(), bytes.end());
  run_piece piece = whole_piece(std::move(name), reinterpret_cast<T const*>(own->data()), {n}, n);
  piece.own = own;
  return piece;
}

/// Calls f(bytes) for the bytes of a piece, at most `most` of them at a time. Waits for copies from a device.
template <class F> void each_block(run_piece const& p, run_memory& memory, std::size_t most, F const& f) {
  auto const* const data = static_cast<std::byte const*>(p.data);
  if (p.own || memory.on_host()) return f(std::span(data, p.bytes()));
  if (most > p.bytes()) most = p.bytes();
  auto const staging = memory.staging(most);
  for (std::size_t done = 0; done < p.bytes(); done += most) {
    std::size_t const n = most < p.bytes() - done ? most : p.bytes() - done;
    memory.copy(staging.get(), data + done, n);
    memory.mark()();
    f(std::span<std::byte const>(staging.get(), n));
  }
}

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

using any_writer = std::function<void(std::string const&, any_elements const&)>;
using any_reader = std::function<any_answer(std::string const&, any_elements const&)>;

inline void write_pieces(std::string const& made_by, std::vector<piece> const& all, any_writer const& write) {
  write("made_by", elements_of(made_by));
  for (piece const& p : all)
    if (p.elements.count > 0) write(p.id.name, p.elements);
}

/// The answers to all pieces, those of no elements empty. `names`, those of all saved pieces, may be null. Throws
/// std::invalid_argument if an answer does not fit, or a name is missing or left over.
inline std::vector<any_answer> read_pieces(std::string const& made_by, std::vector<piece> const& all,
                                           any_reader const& read, std::vector<std::string> const* names) {
  if (names && name_table(*names).find("made_by", *names) < 0) require_names(all, *names);
  any_answer const theirs = read("made_by", elements_of(made_by));
  require_made_by(made_by, {static_cast<char const*>(theirs.data()), theirs.bytes()});
  if (names) require_names(all, *names);
  std::vector<any_answer> answers;
  for (piece const& p : all) {
    if (p.elements.count == 0) {
      answers.emplace_back(nullptr, 0);
      continue;
    }
    any_answer const& answer = answers.emplace_back(read(p.id.name, p.elements));
    auto const refuse = [&](std::string const& what) {
      throw std::invalid_argument("load: '" + p.id.name + "' " + what);
    };
    if (answer.bytes() % p.elements.size != 0)
      refuse("has " + std::to_string(answer.bytes()) + " bytes, no multiple of " + std::to_string(p.elements.size));
    if (reinterpret_cast<std::uintptr_t>(answer.data()) % p.alignment != 0)
      refuse("must be aligned to " + std::to_string(p.alignment) + " bytes");
    require_size("load: '" + p.id.name + "'", std::size_t(p.elements.count), answer.bytes() / p.elements.size);
  }
  return answers;
}

/// Part of what a run saves: an optimizer, a loader, tensors.
struct run_part {
  virtual ~run_part() = default;

  /// What there is to save. On CUDA waits for the stream. Throws std::logic_error if the part cannot be saved now.
  virtual std::vector<run_piece> pieces() = 0;
  virtual run_summary const* summary() { return nullptr; }  // after pieces(); after check(), what there will be
  virtual run_memory& memory() = 0;

  /// Throws std::invalid_argument, with nothing changed, if the answers cannot be taken. `saved`, the summary of the
  /// file, is null if its hyperparameters are not wanted.
  virtual void check(run_answers const& answers, run_summary const* saved) = 0;
  /// Takes what check() was given. Throws only if may_refuse(); undo() then puts back what there was. On the host
  /// allocates nothing otherwise.
  virtual void take() = 0;
  virtual bool may_refuse() const { return false; }
  virtual void undo() {}

  virtual int rank() const { return 0; }
  virtual int ranks() const { return 1; }
  /// The text of each rank. Waits for all.
  virtual std::vector<std::string> exchange(std::string const& mine) { return {mine}; }
  /// The same for the ranks of a model that are split by model_parallel.
  virtual int model_rank() const { return 0; }
  virtual int model_ranks() const { return 1; }
  virtual std::vector<std::string> exchange_in_model(std::string const& mine) { return {mine}; }
};

/// What files and any_optimizer need of an optimizer. Its part is in optimizer_part.hpp.
struct run_access {
  template <class Optimizer> class part;
  template <class AnyOptimizer> static std::unique_ptr<run_part> part_of(AnyOptimizer& of) { return of.alive().part(); }

  template <class Optimizer> static void save(Optimizer& of, any_writer const& write) {
    of.refuse_between("save()");
    write_pieces(of.made_by_text(), of.pieces(), write);
  }
  template <class Optimizer>
  static void load(Optimizer& of, any_reader const& read, std::vector<std::string> const* names) {
    of.refuse_between("load()");
    auto const all = of.pieces();
    auto const answers = read_pieces(of.made_by_text(), all, read, names);
    std::vector<void const*> elements;
    for (any_answer const& answer : answers) elements.push_back(answer.bytes() > 0 ? answer.data() : nullptr);
    of.check_answers(all, elements);
    of.put_answers(all, elements);
  }
};

}  // namespace descent::detail
