// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/detail/reader.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace descent {

/// Writes one file with all that several ranks have saved at `from`, like the file of one rank. Reads and checks
/// everything; needs no optimizer. Throws data_error if a part is missing or damaged, and like save_file().
inline void collect(std::string const& from, std::string const& to) {
  detail::saved_run const saved(from);
  std::vector<tensor_info> infos;
  std::vector<detail::saved_run::tensor const*> tensors;
  for (auto const& [name, t] : saved.tensors()) {
    infos.push_back({.name = name, .type = t.type, .shape = t.shape, .type_name = t.type_name});
    tensors.push_back(&t);
  }
  text_map texts = saved.texts();
  texts.erase("parts");
  safetensors_writer file(to, std::move(infos), std::move(texts));
  for (std::size_t const i : file.order())
    for (auto const& r : tensors[i]->runs) {
      r.file->check(*r.at);
      file.write(r.file->bytes(*r.at));
    }
  for (auto const& f : saved.files()) f.check_unchanged();
  file.commit();
}

}  // namespace descent
