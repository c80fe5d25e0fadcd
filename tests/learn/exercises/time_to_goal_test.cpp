// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../digits.hpp"

using learn::number, learn::images, learn::network;

namespace {

constexpr double most_ms = 180, of_step = 1, of_image = 0.05;

/// The milliseconds until 95 % of the test images are right. Ends the program if it takes more than most_ms.
double time_to_goal(images const& train, images const& test, unsigned seed) {
  network net(seed);
  auto opt = make_optimizer(learn::parameters_of(net));
  learn::shuffled_batches batches{std::mt19937(100 + seed)};
  double const step = of_step + of_image * batch;
  std::string const start = "start " + std::to_string(seed) + ": ";
  double accuracy = 0, loss = 0;
  int steps = 0;
  while ((steps + 1) * step <= most_ms) {
    ++steps;
    opt.zero_grad();
    loss = batches.backward(net, train, batch);
    opt.step();
    if (!std::isfinite(loss)) learn::wrong(start + "the loss is " + number(loss) + "; is the learning rate too large?");
    accuracy = net.accuracy(test);
    if (accuracy >= 95) return steps * step;
  }
  std::string const sentence = start + "after " + std::to_string(steps) + " steps and " + number(most_ms) + " ms " +
                               number(accuracy) + " % are right";
  if (steps < 25) learn::wrong(sentence + "; a step takes " + number(step) + " ms: is the batch too large?");
  if (step < 1.4) learn::wrong(sentence + "; only " + number(batch) + " images in a step of " + number(step) +
                               " ms: is the batch too small?");
  learn::wrong(sentence + "; the batch leaves enough steps: is another rate better, or more momentum?");
}

}  // namespace

int main() {
  if (batch < 1 || batch > 1438) learn::wrong("the batch is " + number(batch) + " and must be from 1 to 1438");
  images train, test;
  learn::read(train, test);
  std::string all;
  for (unsigned seed : {1, 2, 3}) {
    std::string const separator = seed == 1 ? "" : seed == 3 ? " and " : ", ";
    all += separator + number(time_to_goal(train, test, seed));
  }
  std::printf("95 %% after %s ms\n", all.c_str());
}
