// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/mapped_file.hpp>
#include <descent/optimizer/detail/run_part.hpp>
#include <descent/core/detail/floating_point_mode.hpp>
#include <descent/io/safetensors.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

/// Texts in the metadata of a run's file.
namespace descent::detail {

using json = nlohmann::json;

inline std::string text_in(safetensors_file const& file, std::string const& key) {
  auto const found = file.metadata().find(key);
  return found == file.metadata().end() ? std::string() : found->second;
}

/// Throws std::invalid_argument if values are nested deeper than save_file() nests them. A filter of the parser would
/// look through all earlier neighbours of a value at its end.
inline void require_shallow(std::string const& text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (c == '"') quoted = !quoted;
    else if (quoted) i += c == '\\';
    else if (c == '[' || c == '{') depth += 1;
    else if (c == ']' || c == '}') depth -= 1;
    if (depth > 4) throw std::invalid_argument("too deep");
  }
}
/// Reads one of the texts: parses it and calls read(json). Throws data_error if it has another form than read expects.
template <class F> void read_text(std::string const& path, std::string const& key, std::string const& text,
                                  F const& read) {
  try {
    require_shallow(text);
    floating_point_scope const standard;  // numbers are rounded as the thread does
    read(json::parse(text));
  } catch (std::exception const& e) {
    throw data_error(path, "__metadata__", "'" + key + "'", std::string("unreadable: ") + e.what(),
                     "JSON as save_file() writes it");
  }
}

inline std::string quoted_json(std::string const& text) { return json(text).dump(); }
/// The items, separated and between brackets.
template <class Range, class F> std::string list_in(char const* brackets, Range const& items, F const& text_of_item) {
  std::string text(1, brackets[0]);
  for (auto const& item : items) text += (text.size() > 1 ? ", " : "") + text_of_item(item);
  return text + brackets[1];
}

/// A field of a rule. Enumerators are strings, and so are infinity and NaN, which JSON lacks.
inline std::string json_of_field(std::pair<std::string, std::string> const& field) {
  std::string const text = field.second == "-0" ? "-0.0" : field.second;  // readers drop the sign of an integer 0
  std::size_t const digit = text.find_first_of("0123456789");
  bool const is_number = digit == 0 || (digit == 1 && text[0] == '-');
  bool const is_word = text != "true" && text != "false" && !is_number;
  return quoted_json(field.first) + ": " + (is_word ? quoted_json(text) : text);
}
inline std::string field_of_json(json const& x) {
  if (!x.is_primitive() || x.is_null()) throw std::invalid_argument("a field is not a number");
  return x.is_string() ? x.get<std::string>() : x.dump();
}

inline void add_summary(text_map& to, std::string const& prefix, run_summary const& s) {
  to[prefix + "made_by"] = s.made_by;
  to[prefix + "parameters"] = list_in("[]", s.parameters, [](auto const& p) {
    return "[" + quoted_json(p.first) + ", " + std::to_string(p.second) + "]";
  });
  to[prefix + "groups"] =
      list_in("[]", s.groups, [](auto const& fields) { return list_in("{}", fields, json_of_field); });
  to[prefix + "step"] = std::to_string(s.step);
  to[prefix + "fingerprint"] = hash_text(s.fingerprint);
}

/// The rule, and its fields if the file has them.
struct saved_summary {
  std::optional<std::string> made_by;
  std::optional<run_summary> fields;
  std::string fingerprint;
};
inline saved_summary summary_in(std::string const& path, text_map const& texts, std::string const& prefix) {
  saved_summary s;
  if (auto const found = texts.find(prefix + "made_by"); found != texts.end()) s.made_by = found->second;
  if (auto const found = texts.find(prefix + "fingerprint"); found != texts.end()) s.fingerprint = found->second;
  if (auto const found = texts.find(prefix + "groups"); found != texts.end())
    read_text(path, found->first, found->second, [&](json const& groups) {
      s.fields.emplace();
      for (json const& group : groups) {
        auto& fields = s.fields->groups.emplace_back();
        for (auto const& [name, x] : group.items()) fields.emplace_back(name, field_of_json(x));
      }
    });
  return s;
}

/// A range of a tensor in a part file.
struct tensor_range {
  std::int64_t begin;
  std::vector<std::int64_t> shape;  // of the whole tensor
};
inline std::string text_of_ranges(std::map<std::string, tensor_range> const& ranges) {
  return list_in("{}", ranges, [](auto const& named) {
    auto const& [begin, shape] = named.second;
    auto const extents = list_in("[]", shape, [](std::int64_t extent) { return std::to_string(extent); });
    return quoted_json(named.first) + ": {\"begin\": " + std::to_string(begin) + ", \"shape\": " + extents + "}";
  });
}
inline std::map<std::string, tensor_range> ranges_in(std::string const& path, std::string const& text) {
  std::map<std::string, tensor_range> ranges;
  read_text(path, "ranges", text, [&](json const& all) {
    for (auto const& [name, r] : all.items())
      ranges[name] = {r.at("begin").get<std::int64_t>(), r.at("shape").get<std::vector<std::int64_t>>()};
  });
  return ranges;
}

/// A part file, as the manifest names it.
struct part_file { std::string name, header_hash; };  // without its folder; see safetensors_file::header_hash
inline std::string text_of_parts(std::vector<part_file> const& parts) {
  return list_in("[]", parts, [](part_file const& p) {
    return "{\"file\": " + quoted_json(p.name) + ", \"xxh3_header\": " + quoted_json(p.header_hash) + "}";
  });
}
inline std::vector<part_file> parts_in(std::string const& path, std::string const& text) {
  std::vector<part_file> parts;
  read_text(path, "parts", text, [&](json const& all) {
    for (json const& p : all) {
      parts.push_back({p.at("file").get<std::string>(), p.at("xxh3_header").get<std::string>()});
      if (parts.back().name.find('/') != std::string::npos) throw std::invalid_argument("a name with a folder");
    }
  });
  return parts;
}

}  // namespace descent::detail
