// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/cpu.hpp"
#include "../../examples/parts/network.hpp"
#include "gradient_check.hpp"

using namespace example;

TEST_CASE("network: every gradient of the three networks is that of the mean loss") {
  auto digits = embedded_digits();
  digits.train.limit(6);
  image_source<cpu> const images{digits.train};
  constexpr int batch = 6;

  for (auto const* name : {"softmax", "shallow", "deep", "relu3,sigmoid2"}) {
    CAPTURE(name);
    cpu device;
    random_source random{3};
    network<cpu, double> net{device, digits.train.features, parse_network(name), digits.classes, batch, random};
    net.forward(images, 0, batch);
    net.backward();
    net.take_totals();

    auto const loss = [&] {
      net.forward(images, 0, batch);
      return net.take_totals().loss / batch;
    };
    for (auto& layer : net.layers()) {
      check_gradient(layer.weight, layer.weight_gradient, loss);
      check_gradient(layer.bias, layer.bias_gradient, loss);
    }
  }
}

TEST_CASE("network: images are read in the given order, with pixels from 0 to 1") {
  labelled_images const images{.pixels = {0, 16, 8, 4, 2, 1}, .labels = {0, 1, 2}, .features = 2, .brightest = 16};
  image_source<cpu> source{images};
  source.order = {2, 0, 1};
  std::vector<double> x(4);
  for (int i = 0; i < 4; ++i)
    read_images<double>{x.data(), source.pixels.data(), source.order.data(), 2, source.scale}(i);
  CHECK(x == std::vector<double>{2 / 16., 1 / 16., 0, 1});
}
