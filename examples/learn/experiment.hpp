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

/// What a program does, in one sentence, and what it takes besides --help. `words` names its arguments that are no
/// options, if it has any.
struct taken_options { char const* what; bool picture = true, figures = true; char const* words = ""; };

/// The options of a program that trains nothing: --picture and --csv, or neither if it draws nothing. Throws
/// std::invalid_argument for other options and, unless the program takes words, for other arguments, and
/// std::runtime_error for files that cannot be written.
struct options {
  std::string picture{}, csv{};
  std::vector<std::string> words{};  // arguments that are no options

  using takes = taken_options;
  static constexpr takes only_help(char const* what) { return {.what = what, .picture = false, .figures = false}; }

  options(int argc, char** argv, takes more) : options(argc, argv, more, {}) {}

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
  void write_dots(std::string const& title, std::vector<dot_panel> const& panels) const {
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
  struct setter { std::string option, what; std::string* value; };  // option: `--name VALUE`
  using setters = std::vector<setter>;

  options(int argc, char** argv, takes more, setters known) {
    if (more.picture) known.push_back({"--picture FILE", "draws the result as SVG", &picture});
    if (more.figures) known.push_back({"--csv FILE", "writes the figures of the picture", &csv});
    std::vector<std::string> const arguments(argv + 1, argv + argc);
    std::string const more_words = more.words;
    if (asks_for_help(arguments)) {
      std::printf("usage: %s%s%s%s\n\n%s\n\n", program_invocation_short_name, more_words.empty() ? "" : " ", more.words,
                  known.empty() ? "" : " [options]", more.what);
      for (auto const& s : known) std::printf("  %-18s %s\n", s.option.c_str(), s.what.c_str());
      std::printf("  %-18s this text\n", "--help");
      std::exit(0);
    }
    std::vector<std::string> names;
    for (auto const& s : known) names.push_back(split(s.option, ' ')[0]);
    auto const take = [&](std::string const& name, std::string const& text) {
      *known[std::size_t(std::ranges::find(names, name) - names.begin())].value = text;
    };
    auto const take_word = [&](std::string const& word) {
      if (more_words.empty()) refuse_word(word);
      words.push_back(word);
    };
    each_option(arguments, names, take, take_word);
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

/// The options of a program that trains. Claims are about the digits, and about the program's own batches.
struct experiment : options {
  std::uint64_t seed = 1, seeds = 1;
  std::vector<int> batches{};
  bool own_batches = true;

  /// What the program does, and the defaults of its --seeds and --batch; it has neither without one.
  struct defaults { char const* what; std::string seeds{}, batches{}; };

  experiment(int argc, char** argv, defaults const& of) : experiment(argc, argv, of, {"1", of.seeds, of.batches}) {}

  void claim(bool holds, std::string const& sentence) const {
    if (data_name() == "digits") example::claim(holds, sentence);
    else if (!holds) std::printf("not with these data: %s\n", sentence.c_str());
  }

 private:
  struct texts { std::string seed, seeds, batches; };

  static setters known(texts& text) {
    setters all{{"--seed N", "the first seed (default: 1)", &text.seed},
                {"--data NAME|DIR", "digits (default), fashion or a directory, as for `train`", &data_name()}};
    if (!text.seeds.empty())
      all.push_back(
          {"--seeds N", "how many seeds, of which it shows mean and range (default: " + text.seeds + ")", &text.seeds});
    if (!text.batches.empty())
      all.push_back({"--batch N,N,...", "the batches that it compares (default: " + text.batches + ")", &text.batches});
    return all;
  }

  experiment(int argc, char** argv, defaults const& of, texts text)
      : options(argc, argv, {.what = of.what}, known(text)), own_batches{text.batches == of.batches} {
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
