// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "platform.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// What the benchmark contestants share: the problem, and how a program serves contests to the driver.
namespace bench {

/// Tensors of one case, in one arena. Their values and gradients repeat the numbers of one short table, so that every
/// contestant, in any language, starts from the same numbers.
struct problem {
  struct tensor { std::int64_t begin, count, first; };  // where in the arena, and the number of its first element
  std::vector<tensor> tensors;
  std::int64_t elements = 0, arena = 0;
  std::vector<float> values, gradients;  // the table

  float value(std::int64_t element) const { return values[std::size_t(element) % values.size()]; }
  float gradient(std::int64_t element) const { return gradients[std::size_t(element) % gradients.size()]; }
};

/// Memory for numbers that a contestant owns besides values and gradients. The thread that uses a page touches it
/// first.
template <class T> class arena {
 public:
  explicit arena(std::int64_t n)
      : data_(static_cast<T*>(std::aligned_alloc(4096, (std::size_t(n) * sizeof(T) / 4096 + 1) * 4096))), size_(n) {
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i) data_.get()[i] = T(0.0f);
  }
  T* get() const { return data_.get(); }
  std::int64_t bytes() const { return size_ * std::int64_t(sizeof(T)); }
  T& operator[](std::int64_t i) const { return data_.get()[i]; }

 private:
  struct release { void operator()(void* p) const { std::free(p); } };
  std::unique_ptr<T[], release> data_;
  std::int64_t size_;
};

/// arena[..] <- f(number of the element)
template <class T, class F> void fill(arena<T> const& to, problem const& p, F const& f) {
  for (auto const& t : p.tensors) {
#pragma omp parallel for schedule(static) if (t.count > 32768)
    for (std::int64_t i = 0; i < t.count; ++i) to[t.begin + i] = T(f(t.first + i));
  }
}

/// Values and gradients of a problem; a gradient in memory is `scale` times the true one.
template <class T, class G = T> struct numbers {
  problem const& of;
  arena<T> values;
  arena<G> gradients;
  float scale;

  explicit numbers(problem const& p, float gradient_scale = 1)
      : of(p), values(p.arena), gradients(p.arena), scale(gradient_scale) {
    fill(values, of, [&](std::int64_t i) { return of.value(i); });
    refill();
    mark_memory();
  }
  void refill() {
    fill(gradients, of, [&](std::int64_t i) { return of.gradient(i) * scale; });
  }
};

/// The launches of one step, and how often it waits for the device.
struct step_counts { int launches, synchronisations; };

/// One recipe on one problem.
struct contest {
  virtual ~contest() = default;
  virtual void step() = 0;
  /// Restores gradients that a step has zeroed; not timed.
  virtual void refill() {}
  /// An element's exact parameter, stored value or average, by the letters p, w, e; see streams.
  virtual double read(char stream, std::int64_t tensor, std::int64_t i) const = 0;
  virtual std::string streams() const { return "p"; }
  /// Bytes besides values and gradients that the contestant reports as its own.
  virtual std::int64_t extra_bytes() const { return 0; }
  /// Bytes that one step moves, or 0 if the contestant does not report them.
  virtual double step_bytes() const { return 0; }
  /// May run steps.
  virtual std::optional<step_counts> counts() { return {}; }
};

using maker = std::function<std::unique_ptr<contest>(problem const&)>;

/// Each unit adds its recipes.
struct recipe { recipe(std::string name, maker make); };

/// The maker of a recipe, or an empty one.
maker find_recipe(std::string const& name);

/// Answers the driver until it sends quit. `about` goes to the driver: members of an object in JSON.
int serve(std::string const& about);

}  // namespace bench
