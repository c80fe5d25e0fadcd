// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "svg.hpp"

#include "text.hpp"

namespace example::svg {
namespace {

constexpr short widths[] = {
#include "letter_widths.inc"
};
constexpr char const* style =
#include "picture_style.inc"
    ;

constexpr double title_size = 17, title_line = 22;

std::vector<std::string> title_lines(std::string const& title, double wide) {
  return wrapped(title, title_size, wide - 2 * margin, true);
}

}  // namespace

std::string escaped(std::string const& text) {
  std::string result;
  for (char const c : text)
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string{c};
  return result;
}

double width(std::string const& text, double size, bool bold) {
  double thousandths = 0;
  for (char const c : text) {
    auto const byte = static_cast<unsigned char>(c);
    if (byte >= 32 && byte < 127) thousandths += widths[byte - 32];
    else if (byte >= 192) thousandths += 838;  // the first byte of another character, such as ×
  }
  return thousandths / 1000 * size * (bold ? 1.12 : 1);
}

std::vector<std::string> wrapped(std::string const& text, double size, double most, bool bold) {
  std::vector<std::string> lines;
  for (auto const& word : split(text, ' ')) {
    if (!lines.empty() && width(lines.back() + ' ' + word, size, bold) <= most) lines.back() += ' ' + word;
    else lines.push_back(word);
  }
  return lines;
}

std::string text(double x, double y, std::string const& content, std::string const& attributes) {
  return format("<text x=\"%.1f\" y=\"%.1f\"%s%s>", x, y, attributes.empty() ? "" : " ", attributes.c_str()) +
         escaped(content) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, std::string const& attributes) {
  return format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, attributes.c_str());
}

std::string lines(double x, double y, double distance, std::vector<std::string> const& all,
                  std::string const& attributes) {
  std::string result;
  for (auto const& one : all) result += text(x, y, one, attributes), y += distance;
  return result;
}

double heading(std::string const& title, double wide) {
  return 16 + title_line * double(title_lines(title, wide).size());
}

std::string document(std::string const& title, double height, std::string const& inside, double wide) {
  return format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
             "font-size=\"13\" role=\"img\">\n",
             wide, height, wide, height) +
         "<title>" + escaped(title) + "</title>\n<style>" + style + "</style>\n" +
         format("<rect class=\"bg\" width=\"%.0f\" height=\"%.0f\"/>\n", wide, height) +
         lines(margin, 28, title_line, title_lines(title, wide), "font-size=\"17\" font-weight=\"bold\"") + inside +
         "</svg>\n";
}

}  // namespace example::svg
