// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The library's rules on a surface of two parameters or on a small network, for the page of the lab: build.py compiles
// this file to WebAssembly, tests/learn/lab_native.cpp to a program. The caller writes lab_settings() and lab_fields(),
// calls lab_run() and reads lab_records(), and lab_layers() for the network.
#include "bench.hpp"
#include "description.hpp"

// A new rule needs its include here and its line in `rules` below.
#include <descent/rules/acprop.hpp>
#include <descent/rules/adabelief.hpp>
#include <descent/rules/adabound.hpp>
#include <descent/rules/adadelta.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamax.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/adan.hpp>
#include <descent/rules/ademamix.hpp>
#include <descent/rules/adopt.hpp>
#include <descent/rules/amsgrad.hpp>
#include <descent/rules/asgd.hpp>
#include <descent/rules/cocob.hpp>
#include <descent/rules/dadapt_adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/dowg.hpp>
#include <descent/rules/fromage.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/laprop.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/momo.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/optimistic.hpp>
#include <descent/rules/optimistic_adam.hpp>
#include <descent/rules/padam.hpp>
#include <descent/rules/polyak.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/qhadam.hpp>
#include <descent/rules/qhm.hpp>
#include <descent/rules/radam.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/rprop.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/schedule_free_sgd.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/signsgd.hpp>
#include <descent/rules/signum.hpp>
#include <descent/rules/sophia.hpp>
#include <descent/rules/yellowfin.hpp>
#include <descent/rules/yogi.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>

namespace lab {

inline double grid[128 * 128];
inline char message[400];

enum action { do_check, do_run, do_read, do_describe };
template <class Rule> void act(action what, char const* name) {
  Rule rule;
  if (what == do_describe) description.add("{\"fields\":[");
  visit_fields(rule, what == do_read ? read_field : what == do_describe ? describe_field : set_field);
  if (what == do_check) descent::check_rule(rule);
  if (what == do_describe) {
    description.close(), description.add(",");
    describe(name, ds::has_memory<Rule>, ds::has_loss<Rule>, ds::has_averaged<Rule>, sums_of<Rule>());
    if constexpr (ds::has_slot_names<Rule>)
      for (char const* slot : Rule::slots) description.add_name(slot);
    description.close(), description.add("},");
  }
  if (what == do_run) {
    bench_of<Rule> bench(rule);
    run(bench);
  }
}

struct entry {
  char const* name;
  void (*act)(action, char const*);
};
#define LAB_RULE(rule) {#rule, act<ds::rule>}
inline constexpr entry rules[] = {
    LAB_RULE(sgd),
    LAB_RULE(heavy_ball),
    LAB_RULE(qhm),
    LAB_RULE(asgd),
    LAB_RULE(rprop),
    LAB_RULE(signsgd),
    LAB_RULE(signum),
    LAB_RULE(lion),
    LAB_RULE(optimistic),
    LAB_RULE(adagrad),
    LAB_RULE(adadelta),
    LAB_RULE(rmsprop),
    LAB_RULE(adam),
    LAB_RULE(adamw),
    LAB_RULE(laprop),
    LAB_RULE(adamax),
    LAB_RULE(nadam),
    LAB_RULE(radam),
    LAB_RULE(amsgrad),
    LAB_RULE(yogi),
    LAB_RULE(adabelief),
    LAB_RULE(acprop),
    LAB_RULE(adabound),
    LAB_RULE(padam),
    LAB_RULE(qhadam),
    LAB_RULE(adan),
    LAB_RULE(adopt),
    LAB_RULE(ademamix),
    LAB_RULE(optimistic_adam),
    LAB_RULE(sophia),
    LAB_RULE(lars),
    LAB_RULE(lamb),
    LAB_RULE(novograd),
    LAB_RULE(fromage),
    LAB_RULE(dog),
    LAB_RULE(dowg),
    LAB_RULE(prodigy),
    LAB_RULE(dadapt_adamw),
    LAB_RULE(madgrad),
    LAB_RULE(cocob),
    LAB_RULE(polyak),
    LAB_RULE(momo),
    LAB_RULE(yellowfin),
    LAB_RULE(schedule_free_sgd),
    LAB_RULE(schedule_free_adamw),
};
#undef LAB_RULE
inline void on(int rule, action what) { rules[rule].act(what, rules[rule].name); }

}  // namespace lab

#if defined(__wasm__)
#define LAB_EXPORT(name) extern "C" __attribute__((export_name("lab_" #name)))
#else
#define LAB_EXPORT(name) extern "C"
#endif

LAB_EXPORT(settings) double* lab_settings() { return &lab::now.surface; }
LAB_EXPORT(fields) double* lab_fields() { return lab::field_values; }
LAB_EXPORT(records) double* lab_records() { return &lab::records[0].value0; }
LAB_EXPORT(layers) double* lab_layers() { return &lab::layers[0][0][0]; }
LAB_EXPORT(grid) double* lab_grid() { return lab::grid; }
LAB_EXPORT(message) char* lab_message() { return lab::message; }
LAB_EXPORT(check) void lab_check(int rule) { lab::on(rule, lab::do_check); }
LAB_EXPORT(run) void lab_run(int rule) { lab::on(rule, lab::do_run); }
LAB_EXPORT(used) unsigned lab_used() { return lab::used_slots; }
LAB_EXPORT(defaults) void lab_defaults(int rule) { lab::on(rule, lab::do_read); }

/// The losses on a grid of n x n points, n at most 128, row by row.
LAB_EXPORT(losses) void lab_losses(double left, double right, double low, double high, int n) {
  lab::shape const s{int(lab::now.surface), lab::now.condition, lab::now.angle, lab::now.size};
  double gradient[2];
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i)
      lab::grid[j * n + i] = s.at(left + (right - left) * i / (n - 1), low + (high - low) * j / (n - 1), gradient);
}

/// All rules, settings and entries of a record, as JSON.
LAB_EXPORT(describe) char const* lab_describe() {
  auto& text = lab::description;
  text.size = 0;
#define LAB_NAME(name) text.add_name(#name);
  text.add("{\"settings\":[");
  LAB_SETTINGS(LAB_NAME)
  text.close();
  text.add(",\"record\":[");
  LAB_RECORD(LAB_NAME)
  text.close();
#undef LAB_NAME
  text.add(",\"rules\":[");
  for (auto const& one : lab::rules) one.act(lab::do_describe, one.name);
  text.close(), text.add("}");
  return text.out;
}

#if defined(__wasm__)
// Exceptions end the call: there is nothing to catch them. What they say stays in lab_message().
namespace {
alignas(16) char exception[1024];
}
extern "C" void* __cxa_allocate_exception(std::size_t) { return exception; }
extern "C" [[noreturn]] void __cxa_throw(void* thrown, void*, void (*)(void*)) {
  char const* what = static_cast<std::exception*>(thrown)->what();
  std::size_t i = 0;
  for (; what[i] && i + 1 < sizeof lab::message; ++i) lab::message[i] = what[i];
  lab::message[i] = 0;
  __builtin_trap();
}
// The C library's streams would need a system. Nothing is ever printed.
#define LAB_CALL(name) extern "C" std::int32_t __imported_wasi_snapshot_preview1_##name
LAB_CALL(fd_close)(std::int32_t) { return 1; }
LAB_CALL(fd_seek)(std::int32_t, std::int64_t, std::int32_t, std::int32_t) { return 1; }
LAB_CALL(fd_write)(std::int32_t, std::int32_t, std::int32_t, std::int32_t) { return 1; }
#endif
