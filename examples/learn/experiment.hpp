// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/arguments.hpp"
#include "../parts/chart.hpp"
#include "../parts/claim.hpp"
#include "../parts/dataset.hpp"
#include "../parts/output.hpp"
#include "../parts/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

/// The command line of the course's programs.
namespace example::learn {

/// What a program takes besides --help.
struct taken_options { bool picture = true, figures = true, words = false; };

/// The options of a program that trains nothing:
///
///     --picture FILE    draws the result as SVG
///     --csv FILE        writes its figures, if it has any
///
/// A program that draws nothing has neither. Throws std::invalid_argument for other options and, unless the program takes words, for other arguments, and
/// std::runtime_error for files that cannot be written.
struct options {
  std::string picture{}, csv{};
  std::vector<std::string> words{};  // arguments that are no options

  using takes = taken_options;
  static constexpr takes only_help{.picture = false, .figures = false};

  options(int argc, char** argv, takes more) : options(argc, argv, more, "", {}) {}
  options(int argc, char** argv) : options(argc, argv, takes{}) {}

  /// Draws panels into `picture` and writes their points to `csv`, where these are named.
  void write(std::string const& title, std::vector<panel> const& panels) const {
    if (!picture.empty()) write_file(picture, draw(title, panels));
    if (csv.empty()) return;
    std::string lines = "panel,curve,x,y\n";
    for (auto const& p : panels)
      for (auto const& c : p.curves)
        for (auto const* points : {&c.points, &c.marks})
          for (auto const [x, y] : *points)
            lines += in_csv(p.title) + ',' + in_csv(c.name) + ',' + short_number(x) + ',' + short_number(y) + '\n';
    write_file(csv, lines);
  }
  /// Writes a picture that is drawn.
  void write(std::string const& svg) const {
    if (!picture.empty()) write_file(picture, svg);
  }

 protected:
  using setters = std::vector<std::pair<std::string, std::string*>>;

  options(int argc, char** argv, takes more, std::string usage, setters known) {
    if (more.picture) known.emplace_back("--picture", &picture), usage += " [--picture FILE]";
    if (more.figures) known.emplace_back("--csv", &csv), usage += " [--csv FILE]";
    std::vector<std::string> named;
    for (int i = 1; i < argc; ++i) {
      std::string const word = argv[i];
      bool const option = word.starts_with("--") || word == "-h";
      if (!option && !more.words) fail("unknown argument " + example::quoted(word));
      (option ? named : words).push_back(word);
      bool const apart = option && word != "-h" && word != "--help" && word.find('=') == word.npos;
      if (apart && i + 1 < argc) named.push_back(argv[++i]);
    }
    auto const setter = [&](std::string const& name) {
      return std::ranges::find(known, name, &setters::value_type::first);
    };
    if (!each_option(named, [&](auto const& name) { return setter(name) != known.end(); },
                     [&](auto const& name, auto const& text) { *setter(name)->second = text; })) {
      std::printf("usage: %s%s%s\n", argv[0], usage.c_str(), more.words ? " [argument...]" : "");
      std::exit(0);
    }
    for (auto const& file : {picture, csv})
      if (!file.empty()) require_writable(file);
  }

 private:
  static std::string in_csv(std::string const& text) { return '"' + text + '"'; }
};

/// The data of this run, see experiment.
inline std::string& data_name() {
  static std::string name = "digits";
  return name;
}
/// Of other data than the digits, as many images as there are digits.
inline dataset const& data() {
  static dataset const all = [] {
    dataset const digits = embedded_digits();
    if (data_name() == "digits") return digits;
    dataset other = load_dataset(data_name());
    other.train.limit(digits.train.count()), other.test.limit(digits.test.count());
    return other;
  }();
  return all;
}

/// The options of a program that trains:
///
///     --seed N       the first seed (1)
///     --data NAME    digits (built in), fashion or a directory, as for `train`; claims are about the digits
struct experiment : options {
  std::uint64_t seed = 1;

  experiment(int argc, char** argv) : experiment(argc, argv, "1") {}

  void claim(bool holds, std::string const& sentence) const {
    if (data_name() == "digits") example::claim(holds, sentence);
    else if (!holds) std::printf("not with these data: %s\n", sentence.c_str());
  }

 private:
  experiment(int argc, char** argv, std::string text)
      : options(argc, argv, {}, " [--seed N] [--data digits|fashion|DIR]",
                {{"--seed", &text}, {"--data", &data_name()}}) {
    seed = integer("--seed", text, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max() / 2);
    data();  // mistakes are found before anything is printed
  }
};

}  // namespace example::learn
