// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/minimizers/detail/population.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/optimizer.hpp>
#include <descent/parameters.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <ranges>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace descent {

/// The settings of ESGD. The letters are those of the paper.
struct esgd {
  int population = 8;         ///< mu, the sets of parameters that are trained
  int offspring = 16;         ///< lambda, new sets in each generation
  int parents = 2;            ///< rho, the parents of one offspring
  int elite = 4;              ///< m, the best sets, which always survive
  int generations = 20;       ///< K
  double deviation = 0.01;    ///< sigma_1, of the mutations in generation 1
  double annealing = 0.9;     ///< sigma_k / sigma_(k-1)
  double spread = 0.01;       ///< deviation of the first individuals from the initial values
  std::uint64_t seed = 0;     ///< of all random numbers
  double target = -std::numeric_limits<double>::infinity();  ///< stops if the best fitness is not above it
  int patience = 0;           ///< stops after so many generations without improvement; 0: never

  void check() const {
    constexpr char const* name = "esgd";
    auto const count = [](int n) { return n >= 1 && n <= 65536; };
    detail::require(count(population), name, "population", "in [1, 65536]", population);
    detail::require(count(offspring), name, "offspring", "in [1, 65536]", offspring);
    detail::require(parents >= 1 && parents <= population, name, "parents", "in [1, population]", parents);
    detail::require(elite >= 1 && elite <= population, name, "elite", "in [1, population]", elite);
    detail::require(generations >= 1, name, "generations", "at least 1", generations);
    detail::require_nonnegative(name, "deviation", deviation);
    detail::require(annealing > 0 && annealing <= 1, name, "annealing", "in (0, 1]", annealing);
    detail::require_nonnegative(name, "spread", spread);
    detail::require(!is_nan(target), name, "target", "a number", target);
    detail::require(patience >= 0, name, "patience", "at least 0", patience);
  }
};

/// Why an evolution stopped.
enum class esgd_stop { generations, target, patience, callback, not_finite };

namespace detail {
inline char const* name_of(esgd_stop why) {
  switch (why) {
    case esgd_stop::generations: return "all generations are complete";
    case esgd_stop::target: return "the best fitness reached the target";
    case esgd_stop::patience: return "the best fitness did not improve for `patience` generations";
    case esgd_stop::callback: return "the callback requested it";
    default: return "no individual has a finite fitness";
  }
}
}  // namespace detail

/// Fitness is a loss: smaller is better. A value that is not finite counts as infinite.
struct esgd_result {
  esgd_stop why;      ///< why it stopped
  double best;        ///< fitness of the best individual so far, which the values hold at the end
  double mean;        ///< of the finite fitness values in the population
  double elite_mean;  ///< of the m best individuals; never increases
  int generations, evaluations;  ///< so far
  int backed_off;     ///< individuals that the last generation's training made worse
  double deviation;   ///< sigma_k of the last generation; 0 before the first
  /// `why` as text.
  std::string reason() const { return detail::name_of(why); }
};

namespace detail {

inline constexpr double worst = std::numeric_limits<double>::infinity();
inline constexpr int parents_stream = 246, survivors_stream = 247, rules_stream = 248;

/// Draws `count` of the elements from index `first` on, without replacement, and moves them to index `first` and up.
template <class T>
void draw_to_front(std::vector<T>& all, int first, int count, std::uint64_t seed, std::int64_t step, int stream) {
  for (int i = first; i < first + count; ++i) {
    std::uint64_t const left = all.size() - std::size_t(i), word = random_at(seed, step, i, stream).word[0];
    std::swap(all[std::size_t(i)], all[std::size_t(i) + std::size_t(word * left >> 32)]);
  }
}

template <class Range> struct rule_in {
  static_assert(std::ranges::range<Range const>,
                "esgd: the rules must be a range, such as std::vector{adamw{}, adamw{.lr = 1e-4}}, or a range of "
                "std::variant<...> for several types");
  using type = void;
};
template <std::ranges::range Range> struct rule_in<Range> { using type = std::ranges::range_value_t<Range const>; };

/// Rules of one type or of several. with(rule, f) calls f with the rule itself.
template <class Rule> struct alternatives {
  using first = Rule;
  template <template <class> class Holds> static constexpr bool all = Holds<Rule>::value;
  template <class F> static void with(Rule const& rule, F const& f) { f(rule); }
};
template <class First, class... Rest> struct alternatives<std::variant<First, Rest...>> {
  using first = First;
  template <template <class> class Holds>
  static constexpr bool all = (Holds<First>::value && ... && Holds<Rest>::value);
  template <class F> static void with(std::variant<First, Rest...> const& rule, F const& f) { std::visit(f, rule); }
};

struct mutated_copies {};

}  // namespace detail

/// Evolutionary stochastic gradient descent (Cui et al. 2018, algorithm 1 with K_s = K_v = 1): mu sets of parameters
/// are trained by competing rules and recombined. Generation k = 1, 2, ..., K:
///
///     SGD:        each theta_j is trained with a rule drawn from the list; restored if its fitness became worse
///     evolution:  theta_i <- (1/rho) sum of rho parents + N(0, sigma_k^2)    lambda offspring, parents drawn at random
///                 sigma_k = sigma_1 a^(k-1)
///     selection:  the m best of parents and offspring, and mu - m drawn from all others
///
/// The best fitness never increases. The caller keeps one set of values; an individual is copied into it to be trained
/// or evaluated. The mu + lambda individuals are kept in the backend's memory, bit for bit in the type of the values;
/// memory() says how much. The state of one optimizer at a time is added to that. All random numbers depend only on
/// seed, generation, individual and element. Host and device make the same offspring bit for bit if neither contracts
/// a * b + c. On CUDA all work goes to the stream. Each recombination waits for it, and each training begins with
/// allocations, as an optimizer's constructor does.
template <class Value, class Gradient, class Rule, class... Ps> class esgd_optimizer {
  template <class R> using optimizer_traits = detail::optimizer_traits<Value, Gradient, R, Ps...>;
  template <class R> struct makes_optimizer {
    static constexpr bool value = sizeof(typename optimizer_traits<R>::checked) > 0;
  };
  using rule_types = detail::alternatives<Rule>;
  static_assert(rule_types::template all<makes_optimizer>);
  using backend = typename optimizer_traits<typename rule_types::first>::backend;

 public:
  /// Throws std::invalid_argument like optimizer, and if a setting is out of range or there is no rule or no element.
  template <class Rules>
  esgd_optimizer(parameters<Value, Gradient> const& params, Rules const& rules, esgd settings, Ps... policies)
      : set_((settings.check(), settings)), params_(params), rules_(std::begin(rules), std::end(rules)),
        policies_(policies...), population_(params, set_.population + set_.offspring, backend_in(policies...)) {
    detail::require(!rules_.empty(), "esgd", "the number of rules", "at least 1", 0);
    detail::require(population_.elements() > 0, "esgd", "the number of elements", "at least 1", 0);
    optimizer_traits<typename rule_types::first>::check(optimizer_traits<typename rule_types::first>::set(policies...));
    for (std::size_t i = 0; i < rules_.size(); ++i) try {
        rule_types::with(rules_[i], []<class R>(R const& rule) {
          descent::check_rule<typename optimizer_traits<R>::plan::real>(rule);
        });
      } catch (std::invalid_argument const& e) {
        throw std::invalid_argument("rule " + std::to_string(i) + ": " + e.what());
      }
  }
  template <class Rules>
  esgd_optimizer(parameters<Value, Gradient> const& params, Rules const& rules) requires(sizeof...(Ps) == 0)
      : esgd_optimizer(params, rules, esgd{}) {}

  /// Evolves from the current values until there is a reason to stop. The values are then the best individual so far,
  /// bit for bit. train(optimizer) takes steps on the values with an optimizer of its own. fitness() returns their
  /// loss, on the same data for all. progress(result), called after each generation, may return false to stop.
  /// Individual 0 is the initial values. initialize(i), called with the initial values in place, sets the values of
  /// individual i = 1, ..., mu - 1; without it they are mutated by N(0, spread^2). If one of the functions throws, the
  /// values become the best individual so far, or the initial values.
  template <class Train, class Fitness, class Progress, class Initialize>
  esgd_result minimize(Train&& train, Fitness&& fitness, Progress&& progress, Initialize&& initialize) {
    static_assert(std::is_invocable_r_v<double, Fitness&>, "esgd: fitness() must return the loss, a number");
    static_assert(std::is_invocable_r_v<bool, Progress&, esgd_result const&>,
                  "esgd: progress(result) must return whether to continue");
    population_.save(0);
    best_ = {0, detail::worst};
    try {
      esgd_result r = evolve(train, fitness, progress, initialize);
      population_.load(best_.slot);
      return r;
    } catch (...) {
      population_.load(best_.slot);
      throw;
    }
  }
  template <class Train, class Fitness, class Progress>
  esgd_result minimize(Train&& train, Fitness&& fitness, Progress&& progress) {
    return minimize(train, fitness, progress, detail::mutated_copies{});
  }
  template <class Train, class Fitness> esgd_result minimize(Train&& train, Fitness&& fitness) {
    return minimize(train, fitness, [](esgd_result const&) { return true; });
  }

  /// The memory of the population; the same for every call of minimize().
  memory_report memory() const {
    std::int64_t const bytes = (set_.population + set_.offspring) * population_.bytes_of_slot();
    return {{{"population", bytes}}, population_.elements(), bytes};
  }

 private:
  struct individual {
    int slot;
    double fitness;
  };

  template <class Train, class Fitness, class Progress, class Initialize>
  esgd_result evolve(Train& train, Fitness& fitness, Progress& progress, Initialize& initialize) {
    int const mu = set_.population, lambda = set_.offspring;
    int evaluations = 0;
    auto const fitness_here = [&] {
      ++evaluations;
      double const f = double(fitness());
      return is_finite(f) ? f : detail::worst;
    };
    all_.clear();
    for (int i = 0; i < mu + lambda; ++i) all_.push_back({i, 0});

    for (int i = 0; i < mu; ++i) {
      if constexpr (!std::is_same_v<std::remove_const_t<Initialize>, detail::mutated_copies>) {
        population_.load(0);
        if (i > 0) initialize(i), population_.save(i);
      } else if (i > 0) {
        population_.recombine(i, {0}, set_.spread, set_.seed, step_of(0, i));
        population_.load(i);
      }
      keep(all_[std::size_t(i)], fitness_here());
    }
    esgd_result r{esgd_stop::generations, best_.fitness, 0, 0, 0, evaluations, 0, 0};
    describe(r);
    auto const stopped = [&](esgd_stop why) { return r.why = why, r; };
    if (r.best == detail::worst) return stopped(esgd_stop::not_finite);
    if (r.best <= set_.target) return stopped(esgd_stop::target);

    for (int k = 1, since_better = 0;; ++k) {
      r.deviation = set_.deviation * power(set_.annealing, k - 1);
      r.backed_off = 0;
      for (int j = 0; j < mu; ++j) {
        individual& x = all_[std::size_t(j)];
        population_.load(x.slot);
        train_once(train, step_of(k, j));
        double const f = fitness_here();
        bool const worse = !is_finite(f) || f > x.fitness;
        r.backed_off += worse;
        if (worse) continue;
        population_.save(x.slot);
        keep(x, f);
      }
      for (int i = 0; i < lambda; ++i) {
        individual& x = all_[std::size_t(mu + i)];
        population_.recombine(x.slot, draw_parents(step_of(k, i)), r.deviation, set_.seed, step_of(k, i));
        population_.load(x.slot);
        keep(x, fitness_here());
      }
      auto const better = [](individual const& a, individual const& b) { return a.fitness < b.fitness; };
      std::stable_sort(all_.begin(), all_.end(), better);
      best_ = all_.front();
      detail::draw_to_front(all_, set_.elite, mu - set_.elite, set_.seed, k, detail::survivors_stream);

      since_better = best_.fitness < r.best ? 0 : since_better + 1;
      r.best = best_.fitness;
      r.generations = k;
      r.evaluations = evaluations;
      describe(r);
      if (!progress(std::as_const(r))) return stopped(esgd_stop::callback);
      if (r.best <= set_.target) return stopped(esgd_stop::target);
      if (k == set_.generations) return stopped(esgd_stop::generations);
      if (set_.patience > 0 && since_better >= set_.patience) return stopped(esgd_stop::patience);
    }
  }

  /// A unique number for each individual of each generation.
  static std::int64_t step_of(int generation, int individual) { return std::int64_t(generation) << 16 | individual; }

  void keep(individual& x, double fitness) {
    x.fitness = fitness;
    if (fitness < best_.fitness) best_ = x;
  }

  template <class Train> void train_once(Train& train, std::int64_t step) {
    std::uint64_t const word = detail::random_at(set_.seed, step, 0, detail::rules_stream).word[0];
    rule_types::with(rules_[std::size_t(word * rules_.size() >> 32)], [&]<class R>(R const& rule) {
      using trained = optimizer<Value, Gradient, R, Ps...>;
      static_assert(std::is_invocable_v<Train&, trained&>,
                    "esgd: train(optimizer) must take the optimizer of any rule: [&](auto& optimizer) { ... }");
      trained one = std::apply([&](auto const&... p) { return trained{params_, rule, p...}; }, policies_);
      train(one);
    });
  }

  std::vector<int> draw_parents(std::int64_t step) const {
    std::vector<int> slots;
    for (int j = 0; j < set_.population; ++j) slots.push_back(all_[std::size_t(j)].slot);
    detail::draw_to_front(slots, 0, set_.parents, set_.seed, step, detail::parents_stream);
    slots.resize(std::size_t(set_.parents));
    return slots;
  }

  void describe(esgd_result& r) const {
    std::vector<double> finite;
    for (int j = 0; j < set_.population; ++j)
      if (is_finite(all_[std::size_t(j)].fitness)) finite.push_back(all_[std::size_t(j)].fitness);
    std::sort(finite.begin(), finite.end());
    auto const mean_of = [&](std::size_t n) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += finite[i];
      return n ? sum / double(n) : detail::worst;
    };
    r.mean = mean_of(finite.size());
    bool const whole = finite.size() >= std::size_t(set_.elite);
    r.elite_mean = whole ? mean_of(std::size_t(set_.elite)) : detail::worst;
  }

  static backend backend_in([[maybe_unused]] Ps const&... policies) {
    return optimizer_traits<typename rule_types::first>::backend_in(
        optimizer_traits<typename rule_types::first>::set(policies...));
  }

  esgd set_;
  parameters<Value, Gradient> params_;
  detail::self_movable<std::vector<Rule>> rules_;
  std::tuple<Ps...> policies_;
  detail::self_movable<detail::population<Value, Gradient, backend>> population_;
  detail::self_movable<std::vector<individual>> all_;  // the parents, then the offspring
  individual best_{};
};

template <class Value, class Gradient, class Rules>
esgd_optimizer(parameters<Value, Gradient> const&, Rules const&)
    -> esgd_optimizer<Value, Gradient, typename detail::rule_in<Rules>::type>;
template <class Value, class Gradient, class Rules, class... Ps>
esgd_optimizer(parameters<Value, Gradient> const&, Rules const&, esgd, Ps...)
    -> esgd_optimizer<Value, Gradient, typename detail::rule_in<Rules>::type, Ps...>;

}  // namespace descent
