// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "stop.hpp"
#include "text.hpp"

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

/// The command line of a program and its exit status. Mistakes are reported as std::invalid_argument.
namespace example {

[[noreturn]] inline void fail(std::string const& what) { throw std::invalid_argument(what); }

/// How many letters of `a` must be replaced, left out, inserted or swapped with the next one to get `b`.
inline std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

/// The name that was probably meant: one that begins with the text, or that differs in at most a third of its letters.
/// Empty if there is none.
inline std::string nearest(std::string const& text, std::vector<std::string> const& names) {
  auto const distance = [&](std::string const& name) {
    bool const begun = text.size() > 2 && name.starts_with(text);
    auto const longer = std::max(name.size(), text.size()) - std::min(name.size(), text.size());
    return std::tuple{begun ? 1 : edits(text, name), longer};
  };
  auto const best = std::ranges::min_element(names, {}, distance);
  return best != names.end() && std::get<0>(distance(*best)) <= (text.size() + 2) / 3 ? *best : std::string{};
}

/// `: did you mean NAME?`, or nothing if no name is near.
inline std::string did_you_mean(std::string const& text, std::vector<std::string> const& names) {
  auto const name = nearest(text, names);
  return name.empty() ? name : ": did you mean " + name + "?";
}

/// Reports that `what`, such as `there is no schedule`, has no such name, with the nearest one or all there are.
[[noreturn]] inline void fail_unknown(std::string const& what, std::string const& text,
                                      std::vector<std::string> const& names) {
  auto const meant = did_you_mean(text, names);
  fail(what + " " + example::quoted(text) + (meant.empty() ? "; there are\n" + in_lines(names) : meant));
}

template <class Number>
Number integer(std::string const& name, std::string const& text, Number low, Number high) {
  Number x{};
  if (!read(text, x) || x < low || x > high)
    fail(name + " must be an integer from " + std::to_string(low) + " to " + std::to_string(high) + ", is " +
         example::quoted(text));
  return x;
}

inline double number(std::string const& name, std::string const& text) {
  double x = 0;
  if (text == "true" || text == "false") return text == "true";
  if (!read(text, x)) fail(name + " must be a number, is " + example::quoted(text));
  return x;
}

inline double positive(std::string const& name, std::string const& text) {
  double const x = number(name, text);
  if (!(x > 0)) fail(name + " must be above 0, is " + example::quoted(text));
  return x;
}

inline std::string one_of(std::string const& name, std::string const& text, std::vector<std::string> const& allowed) {
  if (std::ranges::count(allowed, text) == 0)
    fail(name + " must be one of " + joined(allowed, ", ") + ", is " + example::quoted(text) +
         did_you_mean(text, allowed));
  return text;
}

inline bool asks_for_help(std::vector<std::string> const& arguments) {
  return std::ranges::any_of(arguments, [](auto const& word) { return word == "--help" || word == "-h"; });
}

[[noreturn]] inline void refuse_word(std::string const& word) { fail("unknown argument " + example::quoted(word)); }

/// Calls take(name, value) for each option, which is `--name value` or `--name=value` and must be one of `names`, and
/// take_word(word) for each other argument.
inline void each_option(std::vector<std::string> const& arguments, std::vector<std::string> const& names,
                        std::function<void(std::string const&, std::string const&)> const& take,
                        std::function<void(std::string const&)> const& take_word = refuse_word) {
  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    if (!argument->starts_with("--")) {
      take_word(*argument);
      continue;
    }
    auto const equals = argument->find('=');
    auto const name = argument->substr(0, equals);
    if (std::ranges::count(names, name) == 0) {
      auto all = names;
      all.push_back("--help");
      fail("unknown option " + example::quoted(name) + did_you_mean(name, all));
    }

    bool const apart = equals == std::string::npos;
    if (apart && argument + 1 == arguments.end()) fail(name + " needs a value");
    take(name, apart ? *++argument : argument->substr(equals + 1));
  }
}

/// For a program without options: gives each argument to the function in its place.
inline void each_word(std::vector<std::string> const& arguments,
                      std::vector<std::function<void(std::string const&)>> const& take) {
  std::size_t place = 0;
  each_option(arguments, {}, [](auto&, auto&) {},
              [&](std::string const& word) { place < take.size() ? take[place++](word) : refuse_word(word); });
}

/// Called at the end of a program. Throws std::runtime_error if stdout could not be written.
inline void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw std::runtime_error("standard output cannot be written");
}

/// The exit status of run(): 0, 130 for `stopped`, 2 for std::invalid_argument, 1 for another exception or if stdout
/// could not be written. Messages go to stderr.
template <class Main> int exit_code(Main const& run) {
  auto const say = [](std::exception const& error) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.what());
  };
  try {
    run();
    flush_output();
    return 0;
  } catch (stopped const& stop) {
    say(stop);
    return 130;
  } catch (std::invalid_argument const& error) {
    say(error);
    std::fprintf(stderr, "%s --help lists the options\n", program_invocation_short_name);
    return 2;
  } catch (std::exception const& error) {
    say(error);
    return 1;
  }
}

/// The same for a command line: --help prints `help`, otherwise the program is run(arguments), or run() for a program
/// without arguments.
template <class Main> int exit_code(int argc, char** argv, std::string const& help, Main const& run) {
  return exit_code([&] {
    std::vector<std::string> const arguments(argv + 1, argv + argc);
    if (asks_for_help(arguments)) {
      std::fputs(help.c_str(), stdout);
    } else if constexpr (std::invocable<Main, std::vector<std::string>>) {
      run(arguments);
    } else {
      each_word(arguments, {});
      run();
    }
  });
}

}  // namespace example
