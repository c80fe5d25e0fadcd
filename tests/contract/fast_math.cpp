// Compiled with -Ofast, -ffast-math, -ffinite-math-only or --use_fast_math: non-finite numbers are still found, in
// every type and norm. The step is skipped and changes nothing; settings that are not a number are refused.
#include <descent/descent.hpp>
#if defined(__CUDACC__)
#include <descent/descent.cuh>
#endif

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"

namespace ds = descent;

// Volatile: otherwise the compiler would assume that these numbers do not occur.
std::uint64_t const volatile bits_of_bad[] = {0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000000,
                                              0xfff0000000000000};
double bad_number(int which) { return __builtin_bit_cast(double, std::uint64_t(bits_of_bad[which])); }
constexpr int bad_count = 4;

/// Memory of the backend.
template <class T> class buffer {
 public:
  explicit buffer(std::vector<T> const& x) : size_(x.size()) {
#if defined(__CUDACC__)
    REQUIRE(cudaMalloc(&data_, size_ * sizeof(T)) == cudaSuccess, "%s", "cudaMalloc");
#else
    data_ = new T[size_];
#endif
    write(x);
  }
  buffer(buffer const&) = delete;
  buffer& operator=(buffer const&) = delete;
  ~buffer() {
#if defined(__CUDACC__)
    cudaFree(data_);
#else
    delete[] data_;
#endif
  }
  T* data() const { return data_; }
  void write(std::vector<T> const& x) { copy(data_, x.data()); }
  std::vector<T> read() const {
    std::vector<T> x(size_);
    copy(x.data(), data_);
    return x;
  }

 private:
  void copy(T* to, T const* from) const {
#if defined(__CUDACC__)
    REQUIRE(cudaMemcpy(to, from, size_ * sizeof(T), cudaMemcpyDefault) == cudaSuccess, "%s", "cudaMemcpy");
#else
    std::memcpy(to, from, size_ * sizeof(T));
#endif
  }
  std::size_t size_;
  T* data_;
};

/// clang 14 does not deduce the arguments of an optimizer from aggregates.
template <class T, class Rule, class... Ps> auto make(ds::parameters<T> const& params, Rule rule, Ps... policies) {
#if defined(__CUDACC__)
  return ds::optimizer<T, T, Rule, Ps..., ds::cuda>(params, rule, policies..., ds::cuda{});
#else
  return ds::optimizer<T, T, Rule, Ps...>(params, rule, policies...);
#endif
}

template <class T> std::vector<T> numbers(std::size_t n, double scale) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = ds::narrow<T>(scale * (1 + double(i % 7)) / 8);
  return x;
}
template <class T> bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Every non-finite number, in small and large tensors, between two good steps.
template <class T, class Rule, class... Ps> void skips(char const* name, Rule rule, Ps... policies) {
  for (std::size_t n : {5, 1000}) {
    buffer<T> a(numbers<T>(n, 1)), b(numbers<T>(n, 2)), ga(numbers<T>(n, 0.5)), gb(numbers<T>(n, 0.25));
    ds::parameters<T> params;
    params.add("a", a.data(), ga.data(), std::int64_t(n));
    params.add("b", b.data(), gb.data(), std::int64_t(n));
    auto opt = make(params, rule, policies...);
    opt.step();
    REQUIRE(opt.report().applied && opt.diagnose().empty(), "%s: a good step", name);
    auto const after = a.read(), after_b = b.read(), good = gb.read();
    REQUIRE(!same_bits(after, numbers<T>(n, 1)), "%s: a good step changes values", name);
    double scale = opt.loss_scale();
    for (int which = 0; which < bad_count; ++which) {
      std::vector<T> g = good;
      g[n - 2] = ds::narrow<T>(bad_number(which));
      gb.write(g);
      opt.step();
      auto const r = opt.report();
      REQUIRE(!r.applied && r.step == 1 && r.skipped == which + 1, "%s: %zu elements, number %d", name, n, which);
      REQUIRE(r.why == "the gradient of 'b' is not finite", "%s: %s", name, r.why.c_str());
      REQUIRE(same_bits(a.read(), after) && same_bits(b.read(), after_b), "%s: values changed", name);
      auto const found = opt.diagnose();
      REQUIRE(found.size() == 2 && found[0].finite && !found[1].finite, "%s: diagnose()", name);
      REQUIRE(ds::is_finite(found[0].norm) && !ds::is_finite(found[1].norm), "%s: norms of diagnose()", name);
      if (scale != 1) REQUIRE(opt.loss_scale() == scale / 2, "%s: the loss scale is %g", name, opt.loss_scale());
      scale = opt.loss_scale();
    }
    gb.write(good);
    opt.step();
    REQUIRE(opt.report().applied && opt.report().step == 2, "%s: the next good step", name);
  }
}

/// The message, or nothing.
template <class F> std::string message(F const& f) {
  try {
    f();
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return "";
}

template <class Rule, class... Ps> void refuses(char const* what, Rule rule, Ps... policies) {
  buffer<float> w(numbers<float>(5, 1)), g(numbers<float>(5, 1));
  ds::parameters<float> params;
  params.add("w", w.data(), g.data(), 5);
  std::string const said = message([&] { make(params, rule, policies...); });
  REQUIRE(said.find(what) != std::string::npos, "'%s' instead of '%s'", said.c_str(), what);
}

template <class Rule> void loss_is_judged(Rule rule) {
  buffer<float> w(numbers<float>(5, 1)), g(numbers<float>(5, 1)), loss(std::vector<float>{1});
  ds::parameters<float> params;
  params.add("w", w.data(), g.data(), 5);
  auto opt = make(params, rule, ds::loss_at{loss.data()});
  opt.step();
  REQUIRE(opt.report().applied, "%s", "a finite loss");
  auto const before = w.read();
  for (int which = 0; which < bad_count; ++which) {
    loss.write({float(bad_number(which))});
    opt.step();
    REQUIRE(opt.report().why == "the loss is not finite", "%s", opt.report().why.c_str());
    REQUIRE(same_bits(w.read(), before), "loss %d changed values", which);
  }
}

/// Elements that a transform or the conversion to 16 bits checks itself.
void elements() {
  std::size_t const n = 21;
  buffer<float> w(numbers<float>(n, 1));
  buffer<ds::bfloat16> v(numbers<ds::bfloat16>(n, 1));
  std::vector<float> g(n, 1);
  std::vector<ds::bfloat16> h(n, ds::narrow<ds::bfloat16>(1.f));
  for (std::size_t i = 0; i < n; i += 2) g[i] = float(bad_number(int(i / 2) % bad_count));
  for (std::size_t i = 0; i < n; i += 2) h[i] = ds::narrow<ds::bfloat16>(bad_number(int(i / 2) % 2));
  buffer<float> gw(g);
  buffer<ds::bfloat16> gv(h);
  ds::parameters<float> params;
  params.add("w", w.data(), gw.data(), std::int64_t(n));
  make(params, ds::chain<ds::zero_nonfinite, ds::sgd>{{}, ds::sgd{.lr = 0.5}}).step();
  ds::parameters<ds::bfloat16> narrow;
  narrow.add("v", v.data(), gv.data(), std::int64_t(n));
  make(narrow, ds::sgd{.lr = 0.5}).step();
  auto const x = w.read(), before = numbers<float>(n, 1);
  auto const y = v.read();
  for (std::size_t i = 0; i < n; ++i) {
    REQUIRE(x[i] == before[i] - (i % 2 ? 0.5f : 0), "zero_nonfinite: element %zu is %g", i, double(x[i]));
    REQUIRE(ds::is_nan(ds::widen<float>(y[i])) == (i % 2 == 0), "bfloat16: element %zu is %g", i,
            double(ds::widen<float>(y[i])));
  }
}

/// A momentum that is bad at the second update.
struct broken {
  double bad;
  DESCENT_HD double operator()(std::int64_t t) const { return t == 1 ? bad : 0.9; }
};

void settings() {
  double const none = bad_number(0), infinite = bad_number(2);
  refuses("adamw: lr must be finite and at least 0", ds::adamw{.lr = none});
  refuses("adamw: lr must be finite and at least 0", ds::adamw{.lr = infinite});
  refuses("adamw: beta1 must be in [0, 1)", ds::adamw{.beta1 = none});
  refuses("clip_norm: max must be above 0", ds::sgd{}, ds::clip_norm{.max = none});
  refuses("scale must be", ds::sgd{}, ds::static_loss_scale{none});
  refuses("scale must be", ds::sgd{}, ds::static_loss_scale{infinite});
  refuses("initial must be set to a finite value", ds::sgd{}, ds::learning_rate(ds::exponential{}));

  buffer<float> w(numbers<float>(5, 1)), g(numbers<float>(5, 1));
  ds::parameters<float> params;
  params.add("w", w.data(), g.data(), 5);
  auto opt = make(params, ds::sgd{}, ds::accumulate{2}, ds::vary<&ds::sgd::momentum>(broken{none}));
  REQUIRE(opt.state<0>("w").size() == 5, "%s", "a momentum that follows a schedule needs its state");
  for (double weight : {none, infinite, -infinite})
    REQUIRE(message([&] { opt.step(weight); }).find("weight must be") != std::string::npos, "step(%g)", weight);

  for (int n = 0; n < 4; ++n) opt.step();
  auto const r = opt.report();
  REQUIRE(r.step == 1 && r.skipped == 1 && r.why.find("momentum of group 0 must be finite") != std::string::npos,
          "a schedule that is not a number: %s", r.why.c_str());

  REQUIRE((ds::exponential{.initial = 1, .factor = 0.5}(3) == 0.125), "%s", "a schedule without a limit");
  ds::plateau const p{.patience = 0};
  auto s = p.start();
  p.next(s, none);
  REQUIRE(s.bad == 0 && s.value == 0.1, "%s", "a metric that is not a number is bad");
}

int main() {
  skips<float>("float, skip_nonfinite", ds::adamw{}, ds::skip_nonfinite{});
  skips<float>("float, clip_norm", ds::sgd{}, ds::clip_norm{.max = 1});
  skips<float>("float, infinity norm", ds::sgd{}, ds::clip<ds::norm::inf>{.max = 0.1});
  skips<float>("float, L1 norm", ds::sgd{}, ds::clip<ds::norm::l1>{.max = 1});
  skips<double>("double, clip_norm", ds::sgd{}, ds::clip_norm{.max = 1});
  skips<double>("double, infinity norm", ds::sgd{}, ds::clip<ds::norm::inf>{.max = 0.1});
  skips<ds::half>("half, O2", ds::adamw{}, ds::amp::O2{});
  skips<ds::bfloat16>("bfloat16, O2", ds::adamw{}, ds::amp::O2_of<ds::bfloat16>{});
  loss_is_judged(ds::polyak{.lr = 0.1});
  elements();
  settings();
}
