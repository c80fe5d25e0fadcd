// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// The side of a contestant in the protocol of drive.py: a line with a command comes in, a line of JSON goes out.
#include "contest.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

#include <chrono>
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

/// Bytes of the process that are in memory: now (VmRSS), or at most since mark_memory() (VmHWM).
std::int64_t resident(std::string const& which) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(which + ":")) return std::stoll(line.substr(which.size() + 1)) * 1024;
  return 0;
}
std::int64_t marked = 0;

/// `align` and `zeros` with a number each, then lines of a count of elements and how many tensors have it.
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
  // zeros come in pairs, as a grid with two features has them
  for (std::size_t i = 0; i < size; ++i)
    if (double(i / 2 % 100) < 100 * zeros) p.gradients[i] = 0;
  return p;
}

struct slot {
  problem of;
  std::unique_ptr<contest> run;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class server {
 public:
  explicit server(std::string about) : about_(std::move(about)) {}

  /// False at the end.
  bool answer(std::string const& line) {
    std::istringstream words(line);
    std::string command, name;
    words >> command >> name;
    if (command == "quit") return false;
    try {
      if (command == "hello") hello();
      else if (command == "load") load(name, words);
      else if (command == "check") check(at(name), words);
      else if (command == "time") time(at(name), words);
      else if (command == "unload") slots_.erase(name), std::printf("{}\n");
      else throw std::runtime_error("no such command: " + line);
    } catch (std::exception const& e) {
      std::string text = e.what();
      for (char& c : text)
        if (c == '"' || c == '\\' || c == '\n') c = ' ';
      std::printf("{\"error\": \"%s\"}\n", text.c_str());
    }
    std::fflush(stdout);
    return true;
  }

 private:
  slot& at(std::string const& name) {
    auto const found = slots_.find(name);
    if (found == slots_.end()) throw std::runtime_error("nothing is loaded as " + name);
    return *found->second;
  }

  void hello() {
    int threads = 1;
#if defined(_OPENMP)
    threads = omp_get_max_threads();
#endif
    std::printf("{\"threads\": %d, \"recipes\": [", threads);
    char const* comma = "";
    for (auto const& [name, _] : recipes()) std::printf("%s\"%s\"", comma, name.c_str()), comma = ", ";
    std::printf("], %s}\n", about_.c_str());
  }

  void load(std::string const& name, std::istream& words) {
    std::string recipe, case_file, table_file;
    words >> recipe >> case_file >> table_file;
    maker const make = find_recipe(recipe);
    if (!make) throw std::runtime_error("there is no recipe " + recipe);
    auto made = std::make_unique<slot>();
    made->of = read_problem(case_file, table_file);
    made->run = make(made->of);
    std::printf("{\"extra_bytes\": %lld, \"step_bytes\": %.17g}\n", static_cast<long long>(made->run->extra_bytes()),
                made->run->step_bytes());
    slots_[name] = std::move(made);
  }

  /// Some steps, then what has become of the elements in a file of lines: tensor, element in it.
  void check(slot const& s, std::istream& words) {
    int steps = 0;
    std::string samples;
    words >> steps >> samples;
    for (int i = 0; i < steps; ++i) s.run->refill(), s.run->step();
    std::printf("{\"grown\": %lld", static_cast<long long>(resident("VmHWM") - marked));
    for (char const stream : s.run->streams()) {
      std::printf(", \"%c\": [", stream);
      std::ifstream in(samples);
      char const* comma = "";
      for (std::int64_t tensor, i; in >> tensor >> i; comma = ", ")
        std::printf("%s%.17g", comma, s.run->read(stream, tensor, i));
      std::printf("]");
    }
    std::printf("}\n");
  }

  /// Seconds that a step takes: samples, each the mean of some steps, after steps that do not count. These go on until
  /// threads of another contestant, which wait for work without sleep for a while, have gone to sleep.
  void time(slot const& s, std::istream& words) {
    int samples = 0, steps = 0;
    words >> samples >> steps;
    s.run->refill();
    for (double const start = now(); now() - start < 5e-3;) s.run->step();
    std::printf("{\"seconds\": [");
    for (int k = 0; k < samples; ++k) {
      s.run->refill();
      double const start = now();
      for (int i = 0; i < steps; ++i) s.run->step();
      std::printf("%s%.9g", k ? ", " : "", (now() - start) / steps);
    }
    std::printf("]}\n");
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

void mark_memory() {
  std::ofstream("/proc/self/clear_refs") << 5;  // VmHWM starts anew
  marked = resident("VmRSS");
}

int serve(std::string const& about) {
  server s(about);
  for (std::string line; std::getline(std::cin, line);)
    if (!s.answer(line)) break;
  return 0;
}

}  // namespace bench
