// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// Eigen's array expressions, one statement for each line of the formula, on each thread's share of the elements: Eigen
// itself runs an expression on one thread.
#include "loop.hpp"
#include "settings.hpp"

#include <Eigen/Core>

#include <cmath>

namespace bench {
namespace {

using array = Eigen::Map<Eigen::ArrayXf>;

/// A rule that keeps `Kept` arrays besides values and gradients.
template <class Rule, int Kept> class expressions : public contest {
 public:
  explicit expressions(problem const& p) : numbers_(p), m_(Kept > 0 ? p.arena : 0), v_(Kept > 1 ? p.arena : 0) {}

  void step() override {
    Rule const rule(++t_);
    sweep(numbers_.of, [&](std::int64_t begin, std::int64_t end) {
      auto const part = [&](arena<float> const& x) { return array(x.get() + begin, end - begin); };
      array p = part(numbers_.values), g = part(numbers_.gradients);
      if constexpr (Kept == 0) rule(p, g);
      if constexpr (Kept > 0) {
        array m = part(m_);
        if constexpr (Kept == 1) rule(p, g, m);
        if constexpr (Kept == 2) {
          array v = part(v_);
          rule(p, g, m, v);
        }
      }
    });
  }
  double read(char, std::int64_t tensor, std::int64_t i) const override {
    return numbers_.values[numbers_.of.tensors[std::size_t(tensor)].begin + i];
  }
  std::int64_t extra_bytes() const override { return m_.bytes() + v_.bytes(); }

 private:
  numbers<float> numbers_;
  arena<float> m_, v_;
  std::int64_t t_ = 0;
};

struct sgd {
  explicit sgd(std::int64_t) {}
  void operator()(array& p, array const& g) const { p -= float(lr) * g; }
};
struct heavy {
  explicit heavy(std::int64_t) {}
  void operator()(array& p, array const& g, array& b) const {
    b = float(momentum) * b + g;
    p -= float(lr) * b;
  }
};
struct lion {
  explicit lion(std::int64_t) {}
  void operator()(array& p, array const& g, array& m) const {
    p -= float(lion_lr) * ((float(beta1) * m + float(1 - beta1) * g).sign() + float(decay) * p);
    m = float(lion_beta2) * m + float(1 - lion_beta2) * g;
  }
};
struct adamw {
  explicit adamw(std::int64_t t)
      : m_unbias(float(1 / (1 - std::pow(beta1, double(t))))), v_unbias(float(1 / (1 - std::pow(beta2, double(t))))) {}
  void operator()(array& p, array const& g, array& m, array& v) const {
    m = float(beta1) * m + float(1 - beta1) * g;
    v = float(beta2) * v + float(1 - beta2) * g.square();
    p -= float(lr) * (m * m_unbias / ((v * v_unbias).sqrt() + float(eps)) + float(decay) * p);
  }
  float m_unbias, v_unbias;
};

template <class Rule, int Kept> maker made() {
  return [](problem const& p) -> std::unique_ptr<contest> { return std::make_unique<expressions<Rule, Kept>>(p); };
}
recipe const recipes[] = {
    {"sgd", made<sgd, 0>()}, {"momentum", made<heavy, 1>()}, {"lion", made<lion, 1>()}, {"adamw", made<adamw, 2>()}};

}  // namespace
}  // namespace bench

int main() {
#define BENCH_TEXT(x) #x
#define BENCH_NUMBER(x) BENCH_TEXT(x)
  return bench::serve("\"name\": \"Eigen " BENCH_NUMBER(EIGEN_WORLD_VERSION) "." BENCH_NUMBER(EIGEN_MAJOR_VERSION) "."
                      BENCH_NUMBER(EIGEN_MINOR_VERSION) ", a share for each thread\", \"compiler\": \"g++ " __VERSION__
                      "\", \"flags\": \"" BENCH_FLAGS "\"");
}
