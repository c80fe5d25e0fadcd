// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/ranks/detail/agreement.hpp>
#include <descent/engine/step/layout.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

/// A model whose parameters are on several ranks, as each of them sees it.
namespace descent::detail {

/// A parameter as a rank describes it to the others.
struct held_tensor {
  std::string name;
  std::int64_t count = 0, columns = 1;
  int group = 0, types = 0, matrix = 0, as = 0;
};

/// A tensor whose columns are on several ranks: the columns of each, which has all rows.
struct cut_by_columns {
  std::int64_t rows = 0;
  std::vector<std::int64_t> columns;
};

/// All that a rank has as text: names have no NUL character.
template <class Layout> std::string text_of_model(Layout const& where) {
  std::string text;
  for (std::size_t t = 0; t < where.tensors.size(); ++t) {
    auto const& x = where.tensors[t];
    text += where.names[t] + '\0';
    std::int64_t const numbers[] = {x.count,
                                    where.columns[t],
                                    std::int64_t(x.group),
                                    std::int64_t(x.types),
                                    std::int64_t(x.matrix),
                                    std::int64_t(where.holdings[t])};
    for (std::int64_t const n : numbers) text += std::to_string(n) + '\0';  // unlike a stream, without separators
  }
  return text;
}
inline std::vector<held_tensor> model_in(std::string const& text) {
  std::vector<held_tensor> all;
  std::size_t at = 0;
  auto const next = [&] {
    std::size_t const begin = at, end = text.find('\0', begin);
    at = end + 1;
    return text.substr(begin, end - begin);
  };
  auto const next_number = [&] {
    std::string const digits = next();
    std::int64_t n = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), n);
    return n;
  };
  while (at < text.size()) {
    held_tensor& x = all.emplace_back();
    x.name = next(), x.count = next_number(), x.columns = next_number();
    for (int* field : {&x.group, &x.types, &x.matrix, &x.as}) *field = int(next_number());
  }
  return all;
}

[[noreturn]] inline void refuse_held(std::string const& name, int first, int second, std::string const& what) {
  throw std::invalid_argument("model_parallel: parameter '" + name + "' is on ranks " + std::to_string(first) +
                              " and " + std::to_string(second) + what);
}

/// Throws std::invalid_argument if two ranks cannot both have a parameter of this name.
inline void require_held(held_tensor const& a, int rank_of_a, held_tensor const& b, int rank_of_b) {
  char const* const as[] = {"as neither", "as copied", "as a part", "as columns"};
  auto const fail = [&](std::string const& what) { refuse_held(a.name, rank_of_a, rank_of_b, what); };
  if (a.as != b.as)
    fail(std::string(", but is marked ") + as[a.as] + " on the first and " + as[b.as] + " on the second");
  if (a.as == int(held::whole)) fail(": mark it by mark_copied(), mark_part() or mark_columns(), or rename one");
  if (a.group != b.group || a.types != b.types || a.matrix != b.matrix)
    fail(", but in other groups, types or roles as a matrix");
  if (a.as == int(held::copy) && (a.count != b.count || a.columns != b.columns))
    fail(" as copies, but with " + std::to_string(a.count) + " elements in rows of " + std::to_string(a.columns) +
         " and " + std::to_string(b.count) + " in rows of " + std::to_string(b.columns));
  if (a.as == int(held::part) && a.columns != b.columns)
    fail(" as parts with rows of " + std::to_string(a.columns) + " and of " + std::to_string(b.columns) +
         " elements: mark it by mark_columns() if each has some columns of all rows");
  if (a.as == int(held::columns) && a.count / a.columns != b.count / b.columns)
    fail(" as columns of " + std::to_string(a.count / a.columns) + " and of " + std::to_string(b.count / b.columns) +
         " rows");
}

/// The whole model, in the order of the ranks, and what this rank has of it.
template <class Layout> struct model_layout {
  Layout whole{{}, {}, {}};  // without addresses; the parts of a tensor are one tensor
  // Of each tensor of this rank:
  std::vector<std::size_t> number;   // in the whole
  std::vector<std::int64_t> shift;   // from a chunk's number on this rank to that in the whole
  std::vector<std::int64_t> element_shift;  // the same for the numbers of elements in the arena
  std::vector<std::uint8_t> counts;  // whether it is in sums; of copies only the first is
  std::vector<std::size_t> part;     // if ranks have columns of it: how many ranks before do
  std::vector<cut_by_columns> cuts;  // of each tensor of the whole; without columns if it is not cut so

  std::int64_t chunk(std::int64_t own, std::size_t tensor) const { return own + shift[tensor]; }
};

/// Waits for all ranks. Throws std::invalid_argument, the same on all, if their parameters are no model.
template <class Layout, class Comm> model_layout<Layout> model_of(Layout const& where, Comm& comm) {
  using record = typename decltype(where.tensors)::value_type;
  struct place {
    std::size_t number;
    std::int64_t chunks;  // of the same tensor on the ranks before
    std::size_t part = 0;
  };
  auto const is_cut = [](held_tensor const& x) { return x.as == int(held::part) || x.as == int(held::columns); };
  std::unordered_map<std::string, std::pair<held_tensor, int>> first;
  std::unordered_map<std::string, std::size_t> numbers;
  std::vector<record> records;
  std::vector<std::string> names;
  std::vector<std::int64_t> columns;
  std::vector<place> own;
  model_layout<Layout> model;
  auto const texts = gathered_texts(comm, text_of_model(where));
  for (int r = 0; r < int(texts.size()); ++r)
    for (held_tensor const& x : model_in(texts[std::size_t(r)])) {
      auto const [at, is_new] = first.try_emplace(x.name, x, r);
      place here{records.size(), 0};
      if (is_new) {
        numbers[x.name] = here.number;
        record all{};
        all.count = x.count, all.group = x.group, all.types = std::uint8_t(x.types), all.matrix = x.matrix != 0;
        records.push_back(all);
        names.push_back(x.name);
        columns.push_back(x.columns);
        model.cuts.emplace_back();
        if (x.matrix && is_cut(x))
          throw std::invalid_argument("model_parallel: parameter '" + x.name +
                                      "' is a part, but a matrix rule updates whole matrices: add it by its "
                                      "number of elements, without a shape");
      } else {
        require_held(at->second.first, at->second.second, x, r);
        here.number = numbers[x.name];
        if (auto& all = records[here.number]; is_cut(x)) {
          here.chunks = chunks_of(all.count);
          all.count = here.chunks * chunk_size + x.count;
        }
      }
      if (x.as == int(held::columns)) {
        cut_by_columns& cut = model.cuts[here.number];
        here.part = cut.columns.size();
        cut.rows = x.count / x.columns;
        cut.columns.push_back(x.columns);
      }
      if (r == comm.rank()) {
        own.push_back(here);
        model.counts.push_back(is_new || is_cut(x));
      }
    }
  model.whole = Layout(std::move(records), std::move(names), std::move(columns));
  for (std::size_t t = 0; t < own.size(); ++t) {
    model.number.push_back(own[t].number);
    model.part.push_back(own[t].part);
    auto const& x = model.whole.tensors[own[t].number];
    model.shift.push_back(x.first_chunk + own[t].chunks - where.tensors[t].first_chunk);
    model.element_shift.push_back(x.arena + own[t].chunks * chunk_size - where.tensors[t].arena);
  }
  return model;
}

/// The same, with what is wrong as text, empty if nothing is.
template <class Layout, class Comm>
std::string find_model(model_layout<Layout>& model, Layout const& where, Comm& comm) {
  try {
    model = model_of(where, comm);
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return {};
}

}  // namespace descent::detail
