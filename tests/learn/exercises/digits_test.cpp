// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../verdict.hpp"

#include <random>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2")  // the loops below; the library need not be optimized here
#endif

using learn::number;

namespace {

constexpr int inputs = 64, hidden = 64, classes = 10, batch = 64, most_steps = 150;

struct images {
  std::vector<float> x;
  std::vector<int> label;
  int count() const { return int(label.size()); }
};

char const* const digits[] = {
#include "../../../examples/data/digits.inc"
};

/// Every fifth image is for the test.
void read(images& train, images& test) {
  int number = 0;
  for (char const* line : digits) {
    images& part = ++number % 5 == 0 ? test : train;
    for (; line[1] != '\0'; ++line)
      if (*line != ' ') part.x.push_back(float(*line <= '9' ? *line - '0' : *line - 'a' + 10) / 16);
    part.label.push_back(*line - '0');
  }
}

struct network {
  std::vector<float> w1 = std::vector<float>(hidden * inputs), w2 = std::vector<float>(classes * hidden);
  std::vector<float> b1 = std::vector<float>(hidden), b2 = std::vector<float>(classes);
  std::vector<float> dw1 = w1, dw2 = w2, db1 = b1, db2 = b2;

  explicit network(unsigned seed) {
    std::mt19937 random(seed);
    auto const fill = [&](std::vector<float>& w, double width) {
      for (float& one : w) one = float(width * (2 * (double(random()) / 4294967295.0) - 1));
    };
    fill(w1, std::sqrt(6.0 / inputs));
    fill(w2, std::sqrt(6.0 / (hidden + classes)));
  }

  /// The outputs z of one image, through the hidden units h.
  void forward(float const* x, float* h, float* z) const {
    for (int j = 0; j < hidden; ++j) {
      float const* w = w1.data() + j * inputs;
      float sum = 0;
      for (int i = 0; i < inputs; ++i) sum += w[i] * x[i];
      h[j] = std::max(0.f, sum + b1.data()[j]);
    }
    for (int k = 0; k < classes; ++k) {
      float const* w = w2.data() + k * hidden;
      float sum = b2.data()[k];
      for (int j = 0; j < hidden; ++j) sum += w[j] * h[j];
      z[k] = sum;
    }
  }

  /// Adds the gradient of the image's part of the mean loss; returns the loss.
  double backward(float const* x, int label) {
    float h[hidden], z[classes], dh[hidden] = {};
    forward(x, h, z);
    float const largest = *std::max_element(z, z + classes);
    float sum = 0;
    for (float const one : z) sum += std::exp(one - largest);
    for (int k = 0; k < classes; ++k) {
      float const dz = (std::exp(z[k] - largest) / sum - float(k == label)) / batch;
      db2.data()[k] += dz;
      for (int j = 0; j < hidden; ++j) {
        dw2.data()[k * hidden + j] += dz * h[j];
        dh[j] += dz * w2.data()[k * hidden + j];
      }
    }
    for (int j = 0; j < hidden; ++j) {
      if (h[j] <= 0) continue;
      db1.data()[j] += dh[j];
      float* dw = dw1.data() + j * inputs;
      for (int i = 0; i < inputs; ++i) dw[i] += dh[j] * x[i];
    }
    return double(std::log(sum)) - double(z[label] - largest);
  }

  double accuracy(images const& of) const {
    float h[hidden], z[classes];
    int right = 0;
    for (int n = 0; n < of.count(); ++n) {
      forward(of.x.data() + n * inputs, h, z);
      right += std::max_element(z, z + classes) - z == of.label.data()[n];
    }
    return 100.0 * right / of.count();
  }
};

/// The steps until 97 % of the test images are right. Ends the program if it takes more than most_steps.
int steps_to_goal(images const& train, images const& test, unsigned seed) {
  network net(seed);
  ds::parameters<float> params;
  params.add("w1", net.w1.data(), net.dw1.data(), ds::shape{hidden, inputs});
  params.add("b1", net.b1, net.db1);
  params.add("w2", net.w2.data(), net.dw2.data(), ds::shape{classes, hidden});
  params.add("b2", net.b2, net.db2);
  auto opt = make_optimizer(params);
  std::mt19937 random(100 + seed);
  std::vector<int> order;
  std::string const start = "start " + std::to_string(seed) + ": ";
  double loss = 0, accuracy = 0, best = 0, first_rate = 0;
  for (int t = 1; t <= most_steps; ++t) {
    if (int(order.size()) < batch) {
      order.clear();
      for (int n = 0; n < train.count(); ++n) order.push_back(n);
      for (int n = train.count(); n > 1; --n) std::swap(order[std::size_t(n - 1)], order[random() % unsigned(n)]);
    }
    opt.zero_grad();
    loss = 0;
    for (int k = 0; k < batch; ++k) {
      loss += net.backward(train.x.data() + order.back() * inputs, train.label[std::size_t(order.back())]) / batch;
      order.pop_back();
    }
    opt.step();
    if (t == 1) first_rate = opt.report().learning_rate;
    if (!std::isfinite(loss))
      learn::wrong(start + "the loss is " + number(loss) + " at step " + std::to_string(t) +
                   "; is the learning rate too large?");
    accuracy = net.accuracy(test);
    best = std::max(best, accuracy);
    if (accuracy >= 97) return t;
  }
  std::string const sentence = start + "after 150 steps " + number(accuracy) + " % are right, at best " + number(best) +
                               " %, and the loss is " + number(loss);
  double const rate = opt.report().learning_rate;
  if (rate < 0.02 * first_rate)
    learn::wrong(sentence + "; the rate has fallen to " + number(rate) + ": does the schedule end too early?");
  if (best > accuracy + 5) learn::wrong(sentence + "; is the learning rate too large?");
  if (best < 95) learn::wrong(sentence + "; it learns too slowly: is the learning rate too small?");
  learn::wrong(sentence + "; this is close: is another rate better, or more momentum, or another rule?");
}

}  // namespace

int main() {
  images train, test;
  read(train, test);
  std::string all;
  double sum = 0;
  for (unsigned seed : {1, 2, 3}) {
    int const steps = steps_to_goal(train, test, seed);
    sum += steps;
    all += (all.empty() ? "" : seed == 3 ? " and " : ", ") + std::to_string(steps);
  }
  std::printf("97 %% after %s steps, on average %s\n", all.c_str(), number(std::round(sum / 3)).c_str());
}
