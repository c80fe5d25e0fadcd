// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// A contestant's side of the protocol of drive.py: each line with a command is answered by a line of JSON.
#include "contest.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace bench {
namespace {

std::map<std::string, maker>& recipes() {
  static std::map<std::string, maker> all;
  return all;
}

/// `align` and `zeros`, each with a number, then lines with a number of elements and how many tensors have it.
problem read_problem(std::string const& case_file, std::string const& table_file) {
  problem p;
  std::ifstream in(case_file);
  std::string word;
  std::int64_t align = 0;
  double zeros = 0;
  if (!(in >> word >> align >> word >> zeros)) throw std::runtime_error(case_file + " is no case");
  for (std::int64_t count, times; in >> count >> times;)
    for (; times > 0; --times) {
      p.tensors.push_back({p.arena, count, p.elements});
      p.elements += count;
      p.arena += (count + align - 1) / align * align;
    }
  std::ifstream table(table_file, std::ios::binary | std::ios::ate);
  if (!table) throw std::runtime_error(table_file + " cannot be read");
  std::size_t const size = std::size_t(table.tellg()) / sizeof(float) / 2;
  table.seekg(0);
  for (auto* half : {&p.values, &p.gradients}) {
    half->resize(size);
    table.read(reinterpret_cast<char*>(half->data()), std::streamsize(size * sizeof(float)));
  }
  // zeros come in pairs, as in a grid with two features
  for (std::size_t i = 0; i < size; ++i)
    if (double(i / 2 % 100) < 100 * zeros) p.gradients[i] = 0;
  return p;
}

/// A contest, on request in several copies that take turns, so that a step finds nothing of the last one in a cache.
struct slot {
  problem of;
  maker make;
  std::vector<std::unique_ptr<contest>> sets;
  std::size_t turn = 0;
  int warm = 0;  // steps, at most 10

  void step() { sets[turn++ % sets.size()]->step(); }
  void refill() {
    for (auto const& x : sets) x->refill();
  }
  /// Steps that do not count: at least ten at first, and at least 5 ms. By then, threads of another contestant, which
  /// busy-wait for work for a while, have gone to sleep.
  void warm_up() {
    for (double const start = now(); warm < 10 || now() - start < 5e-3; warm = std::min(warm + 1, 10)) step(), wait();
  }
};

class server {
 public:
  explicit server(std::string about) : about_(std::move(about)) {}

  /// False at the end.
  bool answer(std::string const& line) {
    std::istringstream words(line);
    std::string command, name;
    words >> command >> name;
    if (command == "quit") return false;
    std::ostringstream out;
    out.precision(17);
    try {
      if (command == "hello") hello(out);
      else if (command == "room") out << "{\"free\": " << free_memory() << "}";
      else if (command == "load") load(name, words, out);
      else if (command == "check") check(at(name), words, out);
      else if (command == "sets") sets(at(name), words, out);
      else if (command == "time") time(at(name), words, out);
      else if (command == "unload") slots_.erase(name), out << "{}";
      else throw std::runtime_error("no such command: " + line);
    } catch (std::exception const& e) {
      std::string text = e.what();
      for (char& c : text)
        if (c == '"' || c == '\\' || c == '\n') c = ' ';
      out.str("");
      out << "{\"error\": \"" << text << "\"}";
    }
    std::puts(out.str().c_str());
    std::fflush(stdout);
    return true;
  }

 private:
  slot& at(std::string const& name) {
    auto const found = slots_.find(name);
    if (found == slots_.end()) throw std::runtime_error("nothing is loaded as " + name);
    return *found->second;
  }

  void hello(std::ostream& out) {
    out << "{\"recipes\": [";
    char const* comma = "";
    for (auto const& [name, _] : recipes()) out << comma << '"' << name << '"', comma = ", ";
    out << "], " << about_ << about_platform() << "}";
  }

  void load(std::string const& name, std::istream& words, std::ostream& out) {
    std::string recipe, case_file, table_file;
    words >> recipe >> case_file >> table_file;
    auto made = std::make_unique<slot>();
    made->make = find_recipe(recipe);
    if (!made->make) throw std::runtime_error("there is no recipe " + recipe);
    made->of = read_problem(case_file, table_file);
    made->sets.push_back(made->make(made->of));
    contest const& run = *made->sets[0];
    out << "{\"extra_bytes\": " << run.extra_bytes() << ", \"step_bytes\": " << run.step_bytes() << "}";
    slots_[name] = std::move(made);
  }

  /// Runs some steps, then reads the elements that a file lists in lines: tensor, element in it.
  void check(slot const& s, std::istream& words, std::ostream& out) {
    int steps = 0;
    std::string samples;
    words >> steps >> samples;
    contest& run = *s.sets[0];
    for (int i = 0; i < steps; ++i) run.refill(), run.step();
    out << "{\"grown\": " << grown_memory();
    for (char const stream : run.streams()) {
      out << ", \"" << stream << "\": [";
      std::ifstream in(samples);
      char const* comma = "";
      for (std::int64_t tensor, i; in >> tensor >> i; comma = ", ") out << comma << run.read(stream, tensor, i);
      out << "]";
    }
    if (auto const counts = run.counts())
      out << ", \"launches\": " << counts->launches << ", \"synchronisations\": " << counts->synchronisations;
    out << "}";
  }

  void sets(slot& s, std::istream& words, std::ostream& out) {
    std::size_t count = 1;
    words >> count;
    while (s.sets.size() < count) s.sets.push_back(s.make(s.of));
    out << "{}";
  }

  /// Seconds of a step, and seconds until its call returns: samples, each the mean of some steps.
  void time(slot& s, std::istream& words, std::ostream& out) {
    int samples = 0, steps = 0;
    words >> samples >> steps;
    s.refill();
    s.warm_up();
    std::ostringstream host;
    char const* comma = "";
    out.precision(9);
    out << "{\"seconds\": [";
    for (int k = 0; k < samples; ++k, comma = ", ") {
      s.refill();
      auto const [seconds, host_seconds] = time_steps(steps, [&] { s.step(); });
      out << comma << seconds, host << comma << host_seconds;
    }
    out << "], \"host_seconds\": [" << host.str() << "]}";
  }

  std::string about_;
  std::map<std::string, std::unique_ptr<slot>> slots_;
};

}  // namespace

recipe::recipe(std::string name, maker make) { recipes()[std::move(name)] = std::move(make); }

maker find_recipe(std::string const& name) {
  auto const found = recipes().find(name);
  return found == recipes().end() ? maker{} : found->second;
}

int serve(std::string const& about) {
  server s(about);
  for (std::string line; std::getline(std::cin, line);)
    if (!s.answer(line)) break;
  return 0;
}

}  // namespace bench
