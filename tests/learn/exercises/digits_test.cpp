// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../digits.hpp"

using learn::number, learn::images, learn::network;

namespace {

constexpr int batch = 64, most_steps = 150;

/// The steps until 97 % of the test images are right. Ends the program if it takes more than most_steps.
int steps_to_goal(images const& train, images const& test, unsigned seed) {
  network net(seed);
  auto opt = make_optimizer(learn::parameters_of(net));
  learn::shuffled_batches batches{std::mt19937(100 + seed)};
  std::string const start = "start " + std::to_string(seed) + ": ";
  double loss = 0, accuracy = 0, best = 0, first_rate = 0;
  for (int t = 1; t <= most_steps; ++t) {
    opt.zero_grad();
    loss = batches.backward(net, train, batch);
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
  learn::read(train, test);
  std::string all;
  double sum = 0;
  for (unsigned seed : {1, 2, 3}) {
    int const steps = steps_to_goal(train, test, seed);
    sum += steps;
    all += (all.empty() ? "" : seed == 3 ? " and " : ", ") + std::to_string(steps);
  }
  std::printf("97 %% after %s steps, on average %s\n", all.c_str(), number(std::round(sum / 3)).c_str());
}
