// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/detail/safetensors_rules.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace descent::detail {

/// Takes the events of nlohmann's parser: no tree is built. What a derived class does not take is refused, and with it
/// a document that is nested more deeply than it may be.
class json_events : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit json_events(std::string const& path) : path_(path) {}
  json_events(json_events const&) = delete;

  void parse(std::string_view text) { nlohmann::json::sax_parse(text.begin(), text.end(), this); }

  bool null() override { throw refusal("null"); }
  bool boolean(bool) override { throw refusal("a truth value"); }
  bool number_integer(number_integer_t) override { throw refusal("a negative number"); }
  bool number_unsigned(number_unsigned_t x) override { throw refusal(number_text(std::to_string(x))); }
  bool number_float(number_float_t, string_t const& text) override { throw refusal(number_text(text)); }
  bool string(string_t& text) override { throw refusal(in_quotes(text)); }
  bool binary(binary_t&) override { throw refusal("binary data"); }
  bool start_object(std::size_t) override { throw refusal("an object"); }
  bool start_array(std::size_t) override { throw refusal("an array"); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t end, std::string const& token, nlohmann::json::exception const& error) override {
    if (error.id == 406) throw refusal(number_text(token));  // beyond the range of double
    throw refusal_of_text(end);
  }

 protected:
  /// What to throw for a value that must be another one.
  virtual data_error refusal(std::string const& got) const = 0;
  /// What to throw if the text is no JSON. The parser has read `end` bytes.
  virtual data_error refusal_of_text(std::size_t end) const = 0;
  static std::string number_text(std::string_view text) { return "the number " + std::string(text.substr(0, 40)); }

  std::string const& path_;
};

/// Takes the events of a header.
class header_events final : public json_events {
 public:
  using json_events::json_events;

  std::vector<tensor_info> tensors;  ///< in the order of the header
  text_map metadata;

  bool null() override { return is_extra() || is_no_metadata() || json_events::null(); }
  bool boolean(bool x) override { return is_extra() || json_events::boolean(x); }
  bool number_integer(number_integer_t x) override { return is_extra() || json_events::number_integer(x); }
  bool number_float(number_float_t x, string_t const& text) override {
    return is_extra() || json_events::number_float(x, text);
  }
  bool start_object(std::size_t) override {
    if (is_extra()) return open_extra();
    if (at_ == place::outside) at_ = place::header;
    else if (at_ == place::header) at_ = key_ == metadata_key ? place::metadata : place::entry;
    else throw refusal("an object");
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ > 0) return true;
    if (at_ == place::header) begin_entry(name);
    else if (at_ == place::metadata) begin_text(name);
    else begin_field(name);
    return true;
  }
  bool string(string_t& text) override {
    if (is_extra()) return true;
    if (at_ == place::metadata) metadata.emplace(text_key_, std::move(text));
    else if (at_ == place::entry && field_ == dtype_field) take_type(text);
    else throw refusal(in_quotes(text));
    return true;
  }
  bool start_array(std::size_t) override {
    if (is_extra()) return open_extra();
    if (at_ != place::entry || field_ == dtype_field) throw refusal("an array");
    at_ = field_ == shape_field ? place::shape : place::offsets;
    return true;
  }
  bool number_unsigned(number_unsigned_t x) override {
    if (is_extra()) return true;
    bool const in_shape = at_ == place::shape;
    if ((!in_shape && at_ != place::offsets) || x > number_unsigned_t(std::numeric_limits<std::int64_t>::max()))
      throw refusal(number_text(std::to_string(x)));
    auto& list = in_shape ? tensors.back().shape : offsets_;
    list.push_back(std::int64_t(x));
    if (in_shape && list.size() > most_axes) fail("the number of axes", "above 8", "at most 8");
    if (!in_shape && list.size() > 2) fail("the number of data_offsets", "above 2", "2");
    return true;
  }
  bool end_array() override {
    if (depth_ > 0) return --depth_, true;
    if (at_ == place::offsets && offsets_.size() < 2)
      fail("the number of data_offsets", std::to_string(offsets_.size()), "2");
    at_ = place::entry;
    return true;
  }
  bool end_object() override {
    if (depth_ > 0) return --depth_, true;
    if (at_ == place::entry) end_entry();
    at_ = at_ == place::header ? place::outside : place::header;
    return true;
  }

 private:
  enum class place { outside, header, metadata, entry, shape, offsets };
  static constexpr unsigned dtype_field = 1, shape_field = 2, offsets_field = 4;
  static constexpr int most_depth = 100;

  /// Whether a value belongs to a field that the format does not have. The reference implementation ignores these.
  bool is_extra() const { return at_ == place::entry && field_ == 0; }
  bool open_extra() {
    if (depth_ == most_depth) fail("the depth of a value", "above 100", "at most 100");
    return ++depth_, true;
  }
  /// A null instead of texts is none, as for the reference implementation.
  bool is_no_metadata() const { return at_ == place::header && key_ == metadata_key; }

  void begin_entry(std::string const& name) {
    key_ = name;
    if (name == metadata_key) {
      if (std::exchange(has_metadata_, true)) fail("the number of these keys", "2", "1");
      return;
    }
    if (auto const problem = problem_of_name(name); !problem.empty()) fail("the name", problem, allowed_name);
    if (tensors.size() == most_tensors) fail("the number of tensors up to this one", "1000001", "at most 1000000");
    tensors.push_back({.name = name});
    offsets_.clear();
    field_ = seen_ = 0;
  }
  void begin_text(std::string const& name) {
    if (metadata.contains(name)) fail("the number of keys " + in_quotes(name), "2", "1");
    text_key_ = name;
  }
  void begin_field(std::string const& name) {
    field_ = name == "dtype" ? dtype_field : name == "shape" ? shape_field : name == "data_offsets" ? offsets_field : 0;
    if (seen_ & field_) fail("the number of fields " + in_quotes(name), "2", "1");
    seen_ |= field_;
  }
  void end_entry() {
    if (seen_ != (dtype_field | shape_field | offsets_field))
      fail("the entry", "incomplete", "one with dtype, shape and data_offsets");
    auto const [begin, end] = std::pair(offsets_[0], offsets_[1]);
    if (begin > end)
      fail("the beginning of the data", std::to_string(begin), "at most " + std::to_string(end) + ", their end");
    tensor_info& t = tensors.back();
    t.offset = begin;
    t.bytes = end - begin;
    auto const needed = bytes_of_shape(t.type, t.shape);
    if (!needed) fail("the shape", shape_text(t.shape), "one with less than 2^63 bytes");
    if (t.type == dtype::unknown) return;  // the size of its elements is not known
    if (*needed != t.bytes)
      fail("the number of bytes", std::to_string(t.bytes),
           std::to_string(*needed) + " for " + descent::name_of(t.type) + " of shape " + shape_text(t.shape));
  }
  void take_type(std::string& text) {
    tensor_info& t = tensors.back();
    for (std::size_t i = 0; i < known_types; ++i)
      if (text == dtype_rows[i].name) return t.type = dtype(i), void();
    std::size_t constexpr most = 100;
    if (text.empty() || text.size() > most) fail("the dtype", in_quotes(text), "a name of 1 to 100 bytes");
    t.type = dtype::unknown, t.type_name = std::move(text);
  }

  std::string subject() const {
    if (at_ == place::outside) return "offset 8";
    return key_ == metadata_key ? std::string(metadata_key) : "tensor " + in_quotes(key_);
  }
  [[noreturn]] void fail(std::string const& what, std::string const& got, std::string const& expected) const {
    throw data_error(path_, subject(), what, got, expected);
  }
  data_error refusal(std::string const& got) const override {
    auto const of = [&](std::string const& what, std::string const& expected) {
      return data_error(path_, subject(), what, got, expected);
    };
    if (at_ == place::outside) return of("the header", "an object");
    if (at_ == place::header && key_ == metadata_key) return of("the value", "an object of texts or null");
    if (at_ == place::header) return of("the entry", "an object with dtype, shape and data_offsets");
    if (at_ == place::metadata) return of("the value of " + in_quotes(text_key_), "a text");
    if (at_ == place::shape) return of("an extent", "an integer from 0 to 2^63 - 1");
    if (at_ == place::offsets) return of("one of data_offsets", "an integer from 0 to 2^63 - 1");
    if (field_ == 0) return of("the value of another field", "one in the range of double");
    if (field_ == dtype_field) return of("the dtype", "a text");
    return of(field_ == shape_field ? "the shape" : "data_offsets", "an array of integers");
  }

  data_error refusal_of_text(std::size_t end) const override {
    return {path_, "offset " + std::to_string(7 + end), "the header", "no JSON from here on", "JSON in UTF-8"};
  }

  place at_ = place::outside;
  std::string key_;  ///< of the header
  std::string text_key_;  ///< of the metadata
  bool has_metadata_ = false;
  unsigned field_ = 0, seen_ = 0;
  int depth_ = 0;  ///< of objects and arrays in a value that is skipped
  std::vector<std::int64_t> offsets_;
};

/// Takes the events of the list of hashes, an object of texts.
class hash_events final : public json_events {
 public:
  using json_events::json_events;

  text_map hashes;  ///< by the names of tensors

  bool start_object(std::size_t) override {
    if (std::exchange(inside_, true)) throw refusal("an object");
    return true;
  }
  bool key(string_t& name) override {
    if (hashes.contains(name)) throw data_error(path_, "tensor " + in_quotes(name), "the number of hashes", "2", "1");
    key_ = name;
    return true;
  }
  bool string(string_t& text) override {
    if (!inside_) throw refusal(in_quotes(text));
    hashes.emplace(key_, std::move(text));
    return true;
  }

 private:
  data_error refusal(std::string const& got) const override {
    if (!inside_) return {path_, std::string(metadata_key), "'xxh3'", got, "an object of hashes"};
    return {path_, "tensor " + in_quotes(key_), "the hash", got, "a text"};
  }
  data_error refusal_of_text(std::size_t) const override {
    return {path_, std::string(metadata_key), "'xxh3'", "no JSON", "an object of hashes"};
  }

  std::string key_;
  bool inside_ = false;
};

}  // namespace descent::detail
