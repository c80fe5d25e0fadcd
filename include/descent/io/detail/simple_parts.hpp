// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/host/memory_check.hpp>
#include <descent/optimizer/detail/run_part.hpp>
#include <descent/core/detail/block.hpp>
#include <descent/parameters.hpp>
#include <descent/training/loss_scaler.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Parts of a run beside optimizers: values, tensors, numbers, loss scales, and whatever has save(f) and load(f).
namespace descent::detail {

struct part_on_host : run_part {
  run_memory& memory() override { return memory_; }

 private:
  run_memory memory_;
};

/// The values of parameters, without an optimizer.
template <class Value, class Gradient, class Backend> class values_part final : public run_part {
 public:
  values_part(parameters<Value, Gradient> const& of, Backend const& backend) : of_(of), memory_(backend) {}

  std::vector<run_piece> pieces() override {
    memory_.refuse_capture(save_or_load);
    std::vector<run_piece> all;
    for (auto const& v : of_.views()) {
      outside_memory const m{v.value, v.count, types<Value>::sizes[v.types], "values of '" + v.name + "': the memory"};
      if constexpr (requires { memory_.require_source(m); }) memory_.require_source(m);
      else require_host_memory(m);
      auto const shape = v.columns == 1 ? std::vector{v.count} : std::vector{v.count / v.columns, v.columns};
      [&]<int... I>(std::integer_sequence<int, I...>) {
        ((v.types == I ? all.push_back(whole_piece(v.name, static_cast<value<I> const*>(v.value), shape, v.count))
                       : void()),
         ...);
      }(std::make_integer_sequence<int, types<Value>::count>{});
    }
    return all;
  }
  run_memory& memory() override { return memory_; }
  void check(run_answers const& answers, run_summary const*) override {
    from_.clear();
    for (auto const& v : of_.views()) from_.push_back(answers(v.name));
  }
  void take() override {
    for (std::size_t i = 0; i < from_.size(); ++i) memory_.copy(of_.views()[i].value, from_[i].data(), from_[i].size());
    if (!memory_.on_host()) memory_.mark()();
  }

 private:
  template <int I> using value = typename types<Value>::template at<I>;
  parameters<Value, Gradient> of_;
  memory_of_backend<Backend> memory_;
  std::vector<std::span<std::byte const>> from_;
};

/// A number, or contiguous elements, in memory of the host.
template <class T> class elements_part final : public part_on_host {
 public:
  elements_part(std::string name, T* data, std::vector<std::int64_t> shape, std::int64_t count)
      : name_(std::move(name)), data_(data), shape_(std::move(shape)), count_(count) {}

  std::vector<run_piece> pieces() override {
    require_host_memory({data_, count_ * std::int64_t(sizeof(T)), 1, "named(\"" + name_ + "\", x): the memory of x"});
    return {whole_piece(name_, static_cast<T const*>(data_), shape_, count_)};
  }
  void check(run_answers const& answers, run_summary const*) override { from_ = answers(name_); }
  void take() override {
    if constexpr (!std::is_const_v<T>)
      if (!from_.empty()) std::memcpy(data_, from_.data(), from_.size());
  }

 private:
  std::string name_;
  T* data_;
  std::vector<std::int64_t> shape_;
  std::int64_t count_;
  std::span<std::byte const> from_;
};

/// A text of any length.
class text_part final : public part_on_host {
 public:
  text_part(std::string name, std::string& text) : name_(std::move(name)), text_(text) {}

  std::vector<run_piece> pieces() override {
    std::int64_t const n = std::int64_t(text_.size());
    run_piece piece = whole_piece(name_, std::as_const(text_).data(), {n}, n);
    piece.any_count = true;
    return {piece};
  }
  void check(run_answers const& answers, run_summary const*) override {
    auto const bytes = answers(name_);
    to_.assign(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  }
  void take() override { text_.swap(to_); }

 private:
  std::string name_;
  std::string &text_, to_{};
};

template <class Policy, class Backend> class scaler_part final : public part_on_host {
 public:
  explicit scaler_part(loss_scaler<Policy, Backend>& of) : of_(of) {}

  std::vector<run_piece> pieces() override {
    loss_scale_state const state = of_.state();
    return {copied_piece("loss_scale", std::span(&state, 1))};
  }
  void check(run_answers const& answers, run_summary const*) override {
    std::memcpy(&to_, answers("loss_scale").data(), sizeof to_);
    require_scale_state(of_.policy_, to_);
    of_.at_rest("load_file()");
  }
  void take() override { of_.engine_.set({to_}); }  // without the check, which allocates

 private:
  loss_scaler<Policy, Backend>& of_;
  loss_scale_state to_;
};

struct save_probe {
  template <class T> void operator()(std::string const&, std::span<T const>) const {}
};
struct load_probe {
  template <class T> std::span<T const> operator()(std::string const&, std::span<T const> x) const { return x; }
};
/// What calls f(name, elements) with its pieces, which are in memory of the host; load(f) throws with nothing changed.
template <class T> concept has_pieces = requires(T& of) { of.save(save_probe{}), of.load(load_probe{}); };

template <has_pieces Of> class pieces_part final : public part_on_host {
 public:
  explicit pieces_part(Of& of) : of_(of) {}

  std::vector<run_piece> pieces() override {
    std::vector<run_piece> all;
    of_.save([&]<class T>(std::string const& name, std::span<T const> x) { all.push_back(copied_piece(name, x)); });
    return all;
  }
  void check(run_answers const& answers, run_summary const*) override {
    answers_ = answers;
    before_.clear();
    for (auto& piece : pieces()) before_.emplace(piece.name, piece);
  }
  bool may_refuse() const override { return true; }
  void take() override { load(answers_); }
  void undo() override {
    load([this](std::string const& name) {
      run_piece const& piece = before_.at(name);
      return std::span(static_cast<std::byte const*>(piece.data), piece.bytes());
    });
  }

 private:
  void load(run_answers const& from) {
    of_.load([&]<class T>(std::string const& name, std::span<T const>) {
      auto const bytes = from(name);
      return std::span<T const>(reinterpret_cast<T const*>(bytes.data()), bytes.size() / sizeof(T));
    });
  }

  Of& of_;
  run_answers answers_;
  std::map<std::string, run_piece> before_;
};

}  // namespace descent::detail
