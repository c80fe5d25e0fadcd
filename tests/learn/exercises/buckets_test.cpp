// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../verdict.hpp"

namespace {

using list = std::vector<std::size_t>;

/// With the comparison of the size and the limit, and from the last parameter or from the first.
list right(std::vector<long> const& bytes, long limit, bool strictly = false, bool alone = true) {
  list first;
  long size = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    bool const fits = strictly ? size + bytes[i] < limit : size + bytes[i] <= limit;
    if (!first.empty() && (fits || (!alone && size <= limit))) first.back() = i, size += bytes[i];
    else first.push_back(i), size = bytes[i];
  }
  return first;
}
std::string text(list const& all) {
  std::string joined;
  for (std::size_t one : all) joined += (joined.empty() ? "" : ", ") + std::to_string(one);
  return joined.empty() ? "nothing" : joined;
}

void check(std::vector<long> const& bytes, long limit) {
  list const got = buckets(bytes, limit), want = right(bytes, limit);
  if (got == want) return;
  std::string sentence = "bytes";
  for (long one : bytes) sentence += " " + std::to_string(one);
  sentence +=
      ", limit " + std::to_string(limit) + ": buckets() returns " + text(got) + " and should return " + text(want);
  if (got.empty()) learn::wrong(sentence + "; the lines are still to be written.");
  if (got == list(want.rbegin(), want.rend()))
    learn::wrong(sentence + "; are they in the order of the parameters? The last one is ready first.");
  if (got == right(bytes, limit, true)) learn::wrong(sentence + "; a bucket may have exactly `limit` bytes.");
  if (got == right(bytes, limit, false, false))
    learn::wrong(sentence + "; is the bucket closed only once it is too large? Look before you add.");
  learn::wrong(sentence + ".");
}

}  // namespace

int main() {
  check({4, 4, 4, 4, 4}, 8);
  check({1, 100, 2, 3, 5, 50, 7}, 10);
  check({9}, 1);
  check({}, 1);
  check({3, 3, 3, 3}, 100);
}
