// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/order.hpp>
#include <descent/policies/noise.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

/// A network of 1210 weights that reads handwritten digits: 64 pixels, 16 hidden units with ReLU, softmax over 10
/// digits. Sums are in double and in order; exp and log use only + - * /, so that the bits are the same everywhere.
namespace lab {

/// The first 500 of the digits in examples/data. Every fifth is for the test, as in examples/parts/digits.cpp.
struct images {
  static constexpr int pixels = 64, train = 400, test = 100;
  std::uint8_t pixel[train + test][pixels];  ///< from 0 to 16; those for training come first
  std::uint8_t digit[train + test];
};
inline constexpr images digits = [] {
  constexpr char const* lines[] = {
#include "../data/digits.inc"
  };
  images out{};
  int place[2] = {};
  for (int i = 0; i < images::train + images::test; ++i) {
    bool const test = i % 5 == 4;
    int const to = test ? images::train + place[1]++ : place[0]++;
    char const* c = lines[i];
    for (int k = 0; k < images::pixels; ++c) {
      if (*c != ' ') out.pixel[to][k++] = std::uint8_t(*c <= '9' ? *c - '0' : *c - 'a' + 10);
    }
    while (*c == ' ') ++c;
    out.digit[to] = std::uint8_t(*c - '0');
  }
  return out;
}();

struct network {
  static constexpr int in = images::pixels, hidden = 16, out = 10, tensors = 4;
  static constexpr int begin[tensors + 1] = {0, in * hidden, (in + 1) * hidden, (in + 1 + out) * hidden,
                                             (in + 1 + out) * hidden + out};  ///< of W1, b1, W2, b2
  static constexpr int weights = begin[tensors];
  static constexpr int watched[2] = {20 * hidden + 2, begin[2] + 2 * out};  ///< a weight of W1 and one of W2, of unit 2

  /// Where the library's random numbers for rounding see weight i: each tensor begins at a multiple of 64.
  static int arena(int i) {
    int place = i;
    for (int k = 1; k < tensors && i >= begin[k]; ++k) place += (begin[k - 1] - begin[k]) & 63;
    return place;
  }

  /// Normal with variance 2 / inputs (He et al. 2015), biases 0.
  static float initial(int i, std::uint64_t seed) {
    if ((i >= begin[1] && i < begin[2]) || i >= begin[3]) return 0;
    float z[8];
    descent::detail::normals(z, seed, 0, i / 8, 248);
    return float(double(z[i % 8]) * std::sqrt(2.0 / (i < begin[1] ? in : hidden)));
  }

  /// The loss of one image. Adds its gradient times `part` to g, if there is one.
  static double loss(float const* w, int image, bool& right, double* g = nullptr, double part = 0) {
    float const *w1 = w, *b1 = w + begin[1], *w2 = w + begin[2], *b2 = w + begin[3];
    std::uint8_t const* x = digits.pixel[image];
    int const y = digits.digit[image];
    double h[hidden], z[out], sum = 0;
    for (int j = 0; j < hidden; ++j) h[j] = double(b1[j]);
    for (int i = 0; i < in; ++i)
      if (x[i])
        for (int j = 0; j < hidden; ++j) h[j] += x[i] / 16.0 * double(w1[i * hidden + j]);
    for (double& one : h) one = one < 0 ? 0 : one;
    for (int k = 0; k < out; ++k) z[k] = double(b2[k]);
    for (int j = 0; j < hidden; ++j)
      for (int k = 0; k < out; ++k) z[k] += h[j] * double(w2[j * out + k]);
    int best = 0;
    for (int k = 1; k < out; ++k) best = z[k] > z[best] ? k : best;
    double const most = z[best], own = z[y];
    right = best == y;
    for (double& one : z) sum += one = exp_of(one - most);
    if (g) {
      double back[hidden] = {};
      for (int k = 0; k < out; ++k) {
        double const dz = part * (z[k] / sum - (k == y));
        g[begin[3] + k] += dz;
        for (int j = 0; j < hidden; ++j) {
          g[begin[2] + j * out + k] += dz * h[j];
          back[j] += dz * double(w2[j * out + k]);
        }
      }
      for (int j = 0; j < hidden; ++j) {
        if (h[j] == 0) back[j] = 0;
        g[begin[1] + j] += back[j];
      }
      for (int i = 0; i < in; ++i)
        if (x[i])
          for (int j = 0; j < hidden; ++j) g[i * hidden + j] += back[j] * (x[i] / 16.0);
    }
    return log_of(sum) - (own - most);
  }

  /// The mean loss of mini-batch `call` of the epochs that ds::shuffled orders, and its gradient.
  static double batch(float const* w, std::uint64_t seed, std::int64_t call, int size, double* g) {
    double loss_sum = 0;
    std::int64_t epoch = -1;
    descent::permutation order;
    for (int i = 0; i < size; ++i) {
      std::int64_t const place = (call - 1) * size + i;
      if (place / images::train != epoch) {
        epoch = place / images::train;
        order = descent::shuffled{seed}.at(images::train, epoch);
      }
      bool right;
      loss_sum += loss(w, int(order[place % images::train]), right, g, 1.0 / size);
    }
    return loss_sum / size;
  }

  /// The mean loss of the images for the test, and the part of them that is read correctly.
  static double test(float const* w, double& accuracy) {
    double sum = 0;
    int good = 0;
    for (int i = images::train; i < images::train + images::test; ++i) {
      bool right;
      sum += loss(w, i, right);
      good += right;
    }
    accuracy = double(good) / images::test;
    return sum / images::test;
  }

 private:
  static constexpr double ln2 = 0.6931471805599453;
  /// For x at most 0. Taylor's series about the nearest multiple of ln 2.
  static double exp_of(double x) {
    if (x != x) return x;
    if (x < -700) return 0;
    double const n = std::floor(x / ln2 + 0.5), r = x - n * ln2;
    double e = 1;
    for (int k = 14; k > 0; --k) e = 1 + e * (r / k);
    return e * __builtin_bit_cast(double, std::uint64_t(std::int64_t(n) + 1023) << 52);
  }
  /// For x in [1, 10]: 2 artanh((x - 1) / (x + 1)), after x is halved until it is at most 1.5.
  static double log_of(double x) {
    int halved = 0;
    for (; x > 1.5 && halved < 5; ++halved) x = x / 2;
    double const z = (x - 1) / (x + 1), square = z * z;
    double series = 0;
    for (int k = 23; k > 0; k -= 2) series = series * square + 1.0 / k;
    return 2 * z * series + halved * ln2;
  }
};

}  // namespace lab
