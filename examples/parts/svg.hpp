// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <string>
#include <vector>

/// What all pictures share: text whose width is known, and one document with a light and a dark form.
namespace example::svg {

template <class... T> std::string format(char const* form, T... values) {
  char text[512];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

std::string escaped(std::string const& text);

/// The width of a text in DejaVu Sans, the widest font of the style; in another font it is narrower.
double width(std::string const& text, double size, bool bold = false);

/// The text in lines of at most `most` units, broken at spaces.
std::vector<std::string> wrapped(std::string const& text, double size, double most, bool bold = false);

std::string text(double x, double y, std::string const& content, std::string const& attributes = "");
std::string line(double x1, double y1, double x2, double y2, std::string const& attributes);

/// Lines of text, the first with its base at y.
std::string lines(double x, double y, double distance, std::vector<std::string> const& all,
                  std::string const& attributes = "");

/// The width of a picture, and its margin: the site's column has 830 units.
constexpr double page = 780, margin = 16;

/// The height of the title at the top of a picture.
double heading(std::string const& title, double width = page);

/// A picture with its title; `inside` begins below heading(title).
std::string document(std::string const& title, double height, std::string const& inside, double width = page);

}  // namespace example::svg
