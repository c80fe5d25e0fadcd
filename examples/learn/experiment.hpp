// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/arguments.hpp"
#include "../parts/chart.hpp"
#include "../parts/claim.hpp"
#include "../parts/dataset.hpp"
#include "../parts/dots.hpp"
#include "../parts/output.hpp"
#include "../parts/text.hpp"

#include <algorithm>
#include <cstddef>
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
/// A program that draws nothing has neither. Throws std::invalid_argument for other options and, unless the program
/// takes words, for other arguments, and std::runtime_error for files that cannot be written.
struct options {
  std::string picture{}, csv{};
  std::vector<std::string> words{};  // arguments that are no options

  using takes = taken_options;
  static constexpr takes only_help{.picture = false, .figures = false};

  options(int argc, char** argv, takes more) : options(argc, argv, more, "", {}) {}
  options(int argc, char** argv) : options(argc, argv, takes{}) {}

  /// Draws panels into `picture` and writes their points to `csv`, where these are named.
  void write(std::string const& title, std::vector<panel> const& panels, std::size_t columns = 1) const {
    if (!picture.empty()) write_file(picture, draw(title, panels, columns));
    if (csv.empty()) return;
    std::string lines = "panel,curve,x,y\n";
    for (auto const& p : panels)
      for (auto const& c : p.curves)
        for (auto const* points : {&c.points, &c.marks})
          for (auto const [x, y] : *points) lines += line(p.title, c.name, x, y);
    for (auto const& p : panels)
      for (auto const& c : p.curves)
        for (auto const [x, low, high] : c.bars)
          lines += line(p.title, c.name + ", lowest", x, low) + line(p.title, c.name + ", highest", x, high);
    write_file(csv, lines);
  }
  /// The same for dot plots; x is the number of a value in its row, from 1.
  void write(std::string const& title, std::vector<dot_panel> const& panels) const {
    if (!picture.empty()) write_file(picture, draw_dots(title, panels));
    if (csv.empty()) return;
    std::string lines = "panel,curve,x,y\n";
    for (auto const& p : panels)
      for (auto const& r : p.rows)
        for (std::size_t k = 0; k < r.values.size(); ++k) lines += line(p.title, r.name, double(k + 1), r.values[k]);
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
  static std::string line(std::string const& panel, std::string const& curve, double x, double y) {
    return '"' + panel + "\",\"" + curve + "\"," + short_number(x) + ',' + short_number(y) + '\n';
  }
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
///     --seeds N      how many seeds, for a program that shows their mean and range
///     --data NAME    digits (built in), fashion or a directory, as for `train`; claims are about the digits
///     --batch 8,32   the sizes of batches, for a program that compares some; claims are about its own
struct experiment : options {
  std::uint64_t seed = 1, seeds = 1;
  std::vector<int> batches{};
  bool own_batches = true;

  /// The defaults of a program's --seeds and --batch; a program has neither without one.
  struct defaults { std::string seeds{}, batches{}; };

  experiment(int argc, char** argv, defaults const& of) : experiment(argc, argv, of, {"1", of.seeds, of.batches}) {}
  experiment(int argc, char** argv) : experiment(argc, argv, defaults{}) {}

  void claim(bool holds, std::string const& sentence) const {
    if (data_name() == "digits") example::claim(holds, sentence);
    else if (!holds) std::printf("not with these data: %s\n", sentence.c_str());
  }

 private:
  struct texts { std::string seed, seeds, batches; };

  static setters known(texts& text) {
    setters all{{"--seed", &text.seed}, {"--data", &data_name()}};
    if (!text.seeds.empty()) all.emplace_back("--seeds", &text.seeds);
    if (!text.batches.empty()) all.emplace_back("--batch", &text.batches);
    return all;
  }

  experiment(int argc, char** argv, defaults const& of, texts text)
      : options(argc, argv, {},
                std::string{" [--seed N]"} + (of.seeds.empty() ? "" : " [--seeds N]") + " [--data digits|fashion|DIR]" +
                    (of.batches.empty() ? "" : " [--batch N,N,...]"),
                known(text)),
        own_batches{text.batches == of.batches} {
    seed = integer("--seed", text.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max() / 2);
    if (!of.seeds.empty()) seeds = integer("--seeds", text.seeds, std::uint64_t{1}, std::uint64_t{1000});
    int const images = data().train.count();  // mistakes are found before anything is printed
    if (of.batches.empty()) return;
    for (auto const& one : split(text.batches, ',')) {
      batches.push_back(integer("each batch of --batch", one, 1, images));
      if (batches.size() > 1 && batches.back() <= batches.end()[-2])
        fail("the batches of --batch must increase, are " + example::quoted(text.batches));
    }
  }
};

}  // namespace example::learn
