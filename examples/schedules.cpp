// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Every schedule of descent: all in two pictures, or one as a table.
//
// A schedule is a function of the step, so it can be printed and drawn before any training.
#include "parts/arguments.hpp"
#include "parts/chart.hpp"
#include "parts/output.hpp"

#include <descent/schedules/combine.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/cycles.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/table.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/training/large_batch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ds = descent;
namespace {

using function = std::function<double(std::int64_t)>;

struct variant {
  std::string name;
  function values;
};
struct shown {
  std::string name;
  std::vector<variant> variants;
};

/// A schedule as a function; checks that its fields are in range.
template <ds::schedule S> function of(S const& s) {
  ds::detail::check_schedule(s);
  return s;
}

/// A plateau whose metric falls and then stops falling.
function watched(ds::plateau const& p, std::int64_t n) {
  std::vector<double> values;
  auto s = p.start();
  for (std::int64_t t = 0; t <= n; ++t) {
    values.push_back(s.value);
    p.next(s, std::exp(-15 * double(t) / double(n)) + 0.1 * s.value);
  }
  return [values](std::int64_t t) { return values.at(std::size_t(t)); };
}

/// A batch that grows from 1 to 16 after a warm-up, in place of a rate that falls to a half, a quarter, ...
ds::batch_growth<ds::warmup<ds::step>> growing(std::int64_t n) {
  return {.rate = {.steps = n / 10, .then = {1, 0.5, n * 3 / 20}}, .batch = 1, .largest = 16, .begin = n / 10};
}

/// All schedules over n steps.
std::vector<shown> all(std::int64_t n) {
  using wc = ds::warmup<ds::constant>;
  using ds::anneal, ds::cycles;
  return {
      {"constant", {{"constant", of(ds::constant{0.5})}}},
      {"linear", {{"linear", of(ds::linear{1, 0.1, n * 8 / 10})}}},
      {"polynomial",
       {{"power 1/2", of(ds::polynomial{1, 0.1, 0.5, n * 8 / 10})},
        {"power 2", of(ds::polynomial{1, 0.1, 2, n * 8 / 10})},
        {"power 4", of(ds::polynomial{1, 0.1, 4, n * 8 / 10})}}},
      {"step", {{"step", of(ds::step{1, 0.5, n / 5})}}},
      {"multi_step", {{"multi_step", of(ds::multi_step<3>{1, 0.3, {n * 3 / 10, n * 6 / 10, n * 8 / 10}})}}},
      {"interval_decay", {{"interval_decay", of(ds::interval_decay{1, 0.7, n / 10, n * 3 / 10, n * 8 / 10})}}},
      {"exponential",
       {{"smooth", of(ds::exponential{1, 0.5, n / 5})},
        {"staircase", of(ds::exponential{1, 0.5, n / 5, true})},
        {"limit", of(ds::exponential{1, 0.5, n / 10, false, 0.2})}}},
      {"multiplicative",
       {{"multiplicative", of(ds::multiplicative<41>(1, [](auto t) { return 1 - 1 / double(20 + t); }))}}},
      {"inverse_time",
       {{"smooth", of(ds::inverse_time{1, 1, n / 5})}, {"staircase", of(ds::inverse_time{1, 1, n / 5, true})}}},
      {"inverse_sqrt",
       {{"alone", of(ds::inverse_sqrt{1, n / 10})},
        {"after a warm-up", of(ds::warmup<ds::inverse_sqrt>{n / 10, {1, n / 10}})},
        {"delayed", of(ds::delayed{n / 10, ds::inverse_sqrt{1, n / 10}})}}},
      {"noam", {{"warmup 10", of(ds::noam{1, 512, n / 10})}, {"warmup 30", of(ds::noam{1, 512, n * 3 / 10})}}},
      {"cosine",
       {{"once", of(ds::cosine{1, 0.1, n / 2})},
        {"swing", of(ds::cosine{1, 0.1, n / 2, 1, ds::cosine::swing})},
        {"exponent 3", of(ds::cosine{1, 0.1, n / 2, 3})}}},
      {"cosine_restarts",
       {{"multiplier 1", of(ds::cosine_restarts{1, 0, n / 4})},
        {"multiplier 2", of(ds::cosine_restarts{1, 0, n / 7, 2})},
        {"decay", of(ds::cosine_restarts{1, 0, n / 4, 1, 0.6})}}},
      {"warmup",
       {{"linear", of(ds::warmup<ds::cosine>{n * 3 / 10, {1, 0, n * 7 / 10}})},
        {"cosine", of(wc{n * 3 / 10, {1}, wc::cosine})},
        {"exponential", of(wc{n * 3 / 10, {1}, wc::exponential, 0.01})},
        {"logarithmic", of(wc{n * 3 / 10, {1}, wc::logarithmic})}}},
      {"wsd",
       {{"sqrt", of(ds::wsd{1, 0, n / 10, n * 5 / 10, n * 4 / 10})},
        {"linear", of(ds::wsd{1, 0, n / 10, n * 5 / 10, n * 4 / 10, ds::wsd::linear})},
        {"cosine", of(ds::wsd{1, 0, n / 10, n * 5 / 10, n * 4 / 10, ds::wsd::cosine})},
        {"exponential", of(ds::wsd{1, 0, n / 10, n * 5 / 10, n * 4 / 10, ds::wsd::exponential})}}},
      {"one_cycle",
       {{"cosine", of(ds::one_cycle{.peak = 1, .steps = n})},
        {"linear", of(ds::one_cycle{.peak = 1, .steps = n, .shape = anneal::linear})},
        {"three phases", of(ds::one_cycle{.peak = 1, .steps = n, .three_phases = true})}}},
      {"one_cycle_momentum",
       {{"cosine", of(ds::one_cycle_momentum{.steps = n})},
        {"linear", of(ds::one_cycle_momentum{.steps = n, .shape = anneal::linear})},
        {"three phases", of(ds::one_cycle_momentum{.steps = n, .three_phases = true})}}},
      {"cyclic",
       {{"triangular", of(ds::cyclic{0.1, 1, n / 10, n / 5})},
        {"triangular2", of(ds::cyclic{0.1, 1, n / 10, n / 5, cycles::triangular2})},
        {"exp_range", of(ds::cyclic{0.1, 1, n / 10, n / 5, cycles::exp_range, std::pow(0.1, 1 / double(n))})}}},
      {"cyclic_momentum",
       {{"triangular", of(ds::cyclic_momentum{0.8, 0.9, n / 10, n / 5})},
        {"triangular2", of(ds::cyclic_momentum{0.8, 0.9, n / 10, n / 5, cycles::triangular2})}}},
      {"cyclical_decay",
       {{"multiplier 1", of(ds::cyclical_decay{1, n / 5, 1, double(n) / 5})},
        {"multiplier 2", of(ds::cyclical_decay{1, n / 10, 2, double(n) / 5})}}},
      {"piecewise",
       {{"constant", of(ds::piecewise_constant<3>{{n / 5, n / 2, n * 8 / 10}, {0.4, 1, 0.6, 0.1}})},
        {"linear", of(ds::piecewise_interpolated<3>{{n / 5, n / 2, n * 8 / 10}, {0.4, 1, 0.6, 0.1}})},
        {"cosine", of(ds::piecewise_interpolated<3>{{n / 5, n / 2, n * 8 / 10}, {0.4, 1, 0.6, 0.1}, anneal::cosine})}}},
      {"swa_rate",
       {{"cosine", of(ds::swa_rate<ds::exponential>{{1, 0.3, n / 2}, n / 2, 0.2, n / 4})},
        {"linear", of(ds::swa_rate<ds::exponential>{{1, 0.3, n / 2}, n / 2, 0.2, n / 4, anneal::linear})}}},
      {"join",
       {{"join", of(ds::join{{n / 5, n / 2}, ds::linear{0, 1, n / 5}, ds::constant{1}, ds::step{0.8, 0.6, n / 8}})}}},
      {"chained",
       {{"chained", of(ds::chained{ds::cosine{1, 0.1, n}, ds::linear{0, 1, n / 10}, ds::step{1, 0.7, n / 4}})}}},
      {"combine",
       {{"scaled", of(ds::scaled{0.8, ds::cosine{1, 0, n}})},
        {"clamped", of(ds::clamped{0.3, 0.7, ds::cosine{1, 0, n}})},
        {"delayed", of(ds::delayed{n / 5, ds::cosine{1, 0, n / 2}})},
        {"per_epoch", of(ds::per_epoch{ds::cosine{1, 0, 10}, n / 10})},
        {"fractional_epochs", of(ds::fractional_epochs{[](double e) { return 1 / (1 + e); }, n / 10})}}},
      {"table",
       {{"linear", of(ds::table_schedule<4>{{n / 10, 0.2}, {n * 3 / 10, 1}, {n * 6 / 10, 0.8}, {n * 9 / 10, 0.1}})},
        {"constant", of(ds::table_schedule<4>{{{n / 10, 0.2}, {n * 3 / 10, 1}, {n * 6 / 10, 0.8}, {n * 9 / 10, 0.1}},
                                              ds::between_knots::constant})}}},
      {"gradual_warmup",
       {{"k = 8", of(ds::gradual_warmup<ds::step>{8, n / 5, {1, 0.3, n * 2 / 5}})},
        {"k = 2", of(ds::gradual_warmup<ds::step>{2, n / 5, {1, 0.3, n * 2 / 5}})}}},
      {"batch_growth",
       {{"rate asked for", of(growing(n).rate)},
        {"rate left", of(ds::remaining_rate{growing(n)})},
        {"batch / 16", of(ds::scaled{1. / 16, growing(n)})}}},
      {"plateau",
       {{"patience 5", watched({.patience = n / 20, .relative = 1e-2}, n)},
        {"factor 0.5", watched({.factor = 0.5, .patience = n / 20, .relative = 1e-2}, n)}}},
  };
}

/// The values of steps 0 to n, joined by lines. A jump is upright: a change of more than four times those before and
/// after it.
example::curve drawn(variant const& v, std::int64_t n) {
  example::curve c{v.name, {}};
  auto const change = [&](std::int64_t t) { return t < 0 || t >= n ? 0 : std::abs(v.values(t + 1) - v.values(t)); };
  for (std::int64_t t = 0; t <= n; ++t) {
    c.points.push_back({double(t), v.values(t)});
    if (t > 0 && change(t) > 1e-9 + 4 * std::max(change(t - 1), change(t + 1)))
      c.points.push_back({double(t + 1), v.values(t)});
  }
  return c;
}

/// One of two halves.
std::string gallery(std::int64_t n, int half) {
  std::vector<example::panel> panels;
  auto const schedules = all(n);
  std::size_t const first_half = (schedules.size() + 1) / 2;
  for (std::size_t k = half == 1 ? 0 : first_half; k < (half == 1 ? first_half : schedules.size()); ++k) {
    example::panel p{schedules[k].name, "", example::axis::linear, {}};
    for (auto const& v : schedules[k].variants) p.curves.push_back(drawn(v, n));
    panels.push_back(p);
  }
  return example::draw("Schedules, value at each of " + std::to_string(n) + " steps, " + std::to_string(half) + " of 2",
                       panels, 3);
}

void print(shown const& s, std::int64_t n) {
  std::printf("%8s", "step");
  for (auto const& v : s.variants) std::printf("  %15s", v.name.c_str());
  std::puts("");
  for (std::int64_t t = 0; t <= n; ++t) {
    std::printf("%8lld", static_cast<long long>(t));
    for (auto const& v : s.variants) std::printf("  %15.8g", v.values(t));
    std::puts("");
  }
}

constexpr char const* help = R"(usage: schedules [NAME] [options]

Prints the values of a schedule at each step, its variants side by side, or draws all schedules; without NAME and
options, prints the names.

  --steps N      the number of steps, at least 20 (default: 100)
  --draw FILE    all schedules in two pictures, FILE.svg and FILE_2.svg
  --help         this text
)";

void run(std::vector<std::string> const& arguments) {
  std::string name, file;
  std::int64_t steps = 100;
  auto const take = [&](std::string const& option, std::string const& value) {
    if (option == "--steps") steps = example::integer<std::int64_t>(option, value, 20, 1000000);
    else file = value;
  };
  auto const take_name = [&](std::string const& word) {
    if (!name.empty()) example::refuse_word(word);
    name = word;
  };
  example::each_option(arguments, {"--steps", "--draw"}, take, take_name);
  if (!name.empty() && !file.empty()) example::fail("--draw draws all schedules; leave out " + example::quoted(name));

  auto const schedules = all(steps);
  std::vector<std::string> names;
  for (auto const& s : schedules) names.push_back(s.name);
  auto const found = std::ranges::find(names, name);
  if (!file.empty()) {
    example::write_file(file, gallery(steps, 1));
    std::string const stem = file.ends_with(".svg") ? file.substr(0, file.size() - 4) : file;
    example::write_file(stem + "_2.svg", gallery(steps, 2));
  } else if (name.empty()) std::printf("There are\n%s.\n", example::in_lines(names).c_str());
  else if (found == names.end()) example::fail_unknown("there is no schedule", name, names);
  else print(schedules[std::size_t(found - names.begin())], steps);
}

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run); }
