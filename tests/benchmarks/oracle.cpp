// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// The recipes in double as the plainest loops, without the library's arithmetic. Each contestant's numbers are compared
// with these before it is timed.
#include "contest.hpp"
#include "settings.hpp"

#include <descent/policies/storage.hpp>

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

namespace ds = descent;

enum class method { sgd, momentum, adamw, lion, lamb, lars };
enum class storage { as_float, as_half, as_bfloat16 };

struct form {
  method rule;
  storage stored = storage::as_float;
  float scale = 1;
  bool clips = false, averages = false;
};

double round_to(storage s, float x) {
  return s == storage::as_half ? float(ds::half(x)) : s == storage::as_bfloat16 ? float(ds::bfloat16(x)) : x;
}

class oracle : public contest {
 public:
  oracle(problem const& p, form const& f)
      : of_(p), form_(f), kinds_(by_tensor() ? p.elements : std::min(p.elements, std::int64_t(p.values.size()))),
        p_(kinds_), m_(f.rule == method::sgd ? 0 : kinds_),
        v_(f.rule == method::adamw || f.rule == method::lamb ? kinds_ : 0), e_(f.averages ? kinds_ : 0) {
    for (std::int64_t i = 0; i < kinds_; ++i) p_[i] = round_to(f.stored, p.value(i));
    for (std::int64_t i = 0; f.averages && i < kinds_; ++i) e_[i] = p_[i];
  }

  void step() override {
    ++t_;
    unbias1_ = 1 - std::pow(beta1, double(t_)), unbias2_ = 1 - std::pow(beta2, double(t_));
    double factor = 1;
    if (form_.clips) {
      double sum = 0;
      for (std::int64_t i = 0; i < kinds_; ++i) sum += gradient(i) * gradient(i) * double(how_many(i));
      if (std::sqrt(sum) + 1e-6 > clip) factor = clip / (std::sqrt(sum) + 1e-6);
    }
    if (by_tensor()) {
#pragma omp parallel for schedule(dynamic)
      for (auto const& tensor : of_.tensors) update_layer(tensor.first, tensor.first + tensor.count);
    } else {
#pragma omp parallel for
      for (std::int64_t i = 0; i < kinds_; ++i) update(i, gradient(i) * factor);
    }
  }
  std::string streams() const override {
    return form_.averages ? "pwe" : form_.stored == storage::as_float ? "p" : "pw";
  }
  double read(char stream, std::int64_t tensor, std::int64_t i) const override {
    return (stream == 'e' ? e_ : p_)[(of_.tensors[std::size_t(tensor)].first + i) % kinds_];
  }

 private:
  bool by_tensor() const { return form_.rule == method::lamb || form_.rule == method::lars; }
  /// The number of elements with the same numbers as i, which stay the same unless norms of tensors enter.
  std::int64_t how_many(std::int64_t i) const { return (of_.elements - i - 1) / kinds_ + 1; }
  double gradient(std::int64_t i) const { return round_to(form_.stored, of_.gradient(i) * form_.scale) / form_.scale; }

  double adam(std::int64_t i, double g) const {
    m_[i] = beta1 * m_[i] + (1 - beta1) * g;
    v_[i] = beta2 * v_[i] + (1 - beta2) * g * g;
    return direction(i);
  }
  double direction(std::int64_t i) const {
    return m_[i] / unbias1_ / (std::sqrt(v_[i] / unbias2_) + eps) + decay * p_[i];
  }

  void update(std::int64_t i, double g) const {
    switch (form_.rule) {
      case method::sgd: p_[i] -= lr * g; break;
      case method::momentum: p_[i] -= lr * (m_[i] = momentum * m_[i] + g); break;
      case method::lion: {
        double const c = beta1 * m_[i] + (1 - beta1) * g;
        p_[i] -= lion_lr * (double(c > 0) - double(c < 0) + decay * p_[i]);
        m_[i] = lion_beta2 * m_[i] + (1 - lion_beta2) * g;
        break;
      }
      default: p_[i] -= lr * adam(i, g);
    }
    if (form_.averages) e_[i] = ema * e_[i] + (1 - ema) * p_[i];
  }

  /// Rules whose rate depends on the norms of a tensor.
  void update_layer(std::int64_t begin, std::int64_t end) const {
    double pp = 0, gg = 0, uu = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      double const g = gradient(i), u = form_.rule == method::lamb ? adam(i, g) : 0;
      pp += p_[i] * p_[i], gg += g * g, uu += u * u;
    }
    double const p = std::sqrt(pp), g = std::sqrt(gg);
    if (form_.rule == method::lamb) {
      double const ratio = pp > 0 && uu > 0 ? std::sqrt(pp / uu) : 1;
      for (std::int64_t i = begin; i < end; ++i) p_[i] -= lr * ratio * direction(i);
    } else {
      double const rate = p > 0 && g > 0 ? lars_lr * lars_trust * p / (g + decay * p) : lars_lr;
      for (std::int64_t i = begin; i < end; ++i)
        p_[i] -= m_[i] = momentum * m_[i] + rate * (gradient(i) + decay * p_[i]);
    }
  }

  problem const& of_;
  form form_;
  std::int64_t kinds_;  // number of elements computed: those of one round of the table, or all
  arena<double> p_, m_, v_, e_;
  std::int64_t t_ = 0;
  double unbias1_ = 0, unbias2_ = 0;
};

maker with(form const& f) {
  return [f](problem const& p) -> std::unique_ptr<contest> { return std::make_unique<oracle>(p, f); };
}

recipe const recipes[] = {
    {"sgd", with({method::sgd})},
    {"momentum", with({method::momentum})},
    {"adamw", with({method::adamw})},
    {"adamw_clip", with({method::adamw, storage::as_float, 1, true})},
    {"lion", with({method::lion})},
    {"lamb", with({method::lamb})},
    {"lars", with({method::lars})},
    {"adamw_bf16", with({method::adamw, storage::as_bfloat16})},
    {"adamw_bf16_clip", with({method::adamw, storage::as_bfloat16, 1, true})},
    {"adamw_bf16_sr", with({method::adamw, storage::as_bfloat16})},
    {"adamw_half_o2", with({method::adamw, storage::as_half, loss_scale, true, true})},
};

}  // namespace
}  // namespace bench

int main() { return bench::serve("\"name\": \"oracle\""); }
