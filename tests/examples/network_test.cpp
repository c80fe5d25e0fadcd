// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/cpu.hpp"
#include "../../examples/parts/network.hpp"
#include "gradient_check.hpp"

using namespace example;

TEST_CASE("network: every gradient of the three networks is that of the mean loss") {
  auto digits = embedded_digits();
  digits.train.limit(6);
  image_rows const images = rows_of(digits.train);
  constexpr int batch = 6;

  for (auto const* name : {"softmax", "shallow", "deep", "relu3,sigmoid2"}) {
    CAPTURE(name);
    cpu device;
    random_source random{3};
    network<cpu, double> net{device, digits.train.features, parse_network(name), digits.classes, batch, random};
    net.forward(images);
    net.backward();
    net.take_totals();

    auto const loss = [&] {
      net.forward(images);
      return net.take_totals().loss / batch;
    };
    for (auto& layer : net.layers()) {
      check_gradient(layer.weight, layer.weight_gradient, loss);
      check_gradient(layer.bias, layer.bias_gradient, loss);
    }
  }
}

TEST_CASE("network: pixels are from 0 to 1, and batches have the images of an order that is shuffled each epoch") {
  labelled_images const images{.pixels = {0, 16, 8, 4, 2, 1}, .labels = {0, 1, 2}, .features = 2, .brightest = 16};
  image_rows const rows = rows_of(images).part({1, 2});
  std::vector<double> x(4);
  for (int i = 0; i < 4; ++i) read_pixels<double>{x.data(), rows.pixels, rows.scale}(i);
  CHECK(x == std::vector<double>{8 / 16., 4 / 16., 2 / 16., 1 / 16.});

  auto batches = batches_of(images, {.size = 2}, reshuffled{5}, cpu{});
  random_source shuffling{5, 1};
  auto order = in_order(3);
  for (int epoch = 0; epoch < 3; ++epoch) {
    shuffling.shuffle(order);
    std::size_t k = 0;
    for (auto const& batch : batches.epoch()) {
      image_rows const b = rows_of(batch, images);
      for (int i = 0; i < b.count; ++i, ++k) {
        CHECK(b.labels[i] == order[k]);
        CHECK(b.pixels[2 * i + 1] == images.pixels[std::size_t(2 * order[k] + 1)]);
      }
    }
    CHECK(k == 3);
  }
}
