// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "batches.hpp"
#include "dense.hpp"
#include "layer_sizes.hpp"
#include "random.hpp"
#include "softmax.hpp"
#include "training_state.hpp"

#include <descent/parameters.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace example {

namespace ds = descent;

/// Pixels from 0 to 1.
template <class Real> struct read_pixels {
  Real* x;
  std::uint8_t const* pixels;
  float scale;

  DESCENT_HD void operator()(std::int64_t i) const { x[i] = Real(scale * float(pixels[i])); }
};

/// Fully connected layers that end in a softmax. Parameters and their gradients are stored as Value, data between the
/// layers as the device's real<Value>.
template <class Device, class Value> class network {
 public:
  using real = typename Device::template real<Value>;
  template <class T> using array = typename Device::template array<T>;

  float loss_weight = 1;              // factor of the loss in backward(); the totals are without it
  float const* loss_scale = nullptr;  // another factor, in the device's memory

  network(Device& device, int features, std::vector<layer_size> const& hidden, int classes, int batch,
          random_source& random)
      : device_{device}, classes_{classes}, input_(std::size_t(batch) * features), loss_(batch), correct_(batch) {
    int inputs = features;
    for (auto const& [outputs, function] : hidden) {
      layers_.emplace_back(inputs, outputs, function, batch, random);
      inputs = outputs;
    }
    layers_.emplace_back(inputs, classes, activation::identity, batch, random);
  }

  std::vector<dense<Device, Value>>& layers() { return layers_; }

  /// Views of the network's memory, for the optimizer.
  ds::parameters<Value> parameters() {
    ds::parameters<Value> all;
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      auto& layer = layers_[k];
      auto const name = "layer" + std::to_string(k + 1);
      auto const outputs = std::int64_t(layer.bias.size());
      all.add(name + ".weight", layer.weight.data(), layer.weight_gradient.data(),
              ds::shape{outputs, std::int64_t(layer.weight.size()) / outputs});
      all.add(name + ".bias", layer.bias.data(), layer.bias_gradient.data(), layer.bias.size());
    }
    return all;
  }

  /// Adds to the totals.
  void forward(image_rows const& images) {
    rows_ = images.count;
    device_.each(std::int64_t{rows_} * images.features, read_pixels<real>{input_.data(), images.pixels, images.scale});
    for (std::size_t k = 0; k < layers_.size(); ++k) layers_[k].forward(device_, input_of(k), rows_);

    auto& last = layers_.back();
    device_.each(rows_, softmax_cross_entropy<real>{last.output.data(), last.output_gradient.data(), images.labels,
                                                    classes_, loss_.data(), correct_.data(), loss_weight, loss_scale});
  }

  /// Overwrites all gradients with those of the mean loss of the batch of the last forward().
  void backward() {
    backward(rows_, false, [](std::size_t) {});
  }

  /// The same for the sum of the losses divided by `images`, for part of a batch. With `add`, rounds the part's
  /// gradients and adds them to the existing ones. Calls done(k) when those of layer k are complete, last layer first.
  void backward(double images, bool add, auto const& done) {
    if (add && !part_) {
      std::size_t largest = 0;
      for (auto const& layer : layers_) largest = std::max(largest, layer.weight.size());
      part_.emplace(largest);
    }
    for (std::size_t k = layers_.size(); k-- > 0;) {
      layers_[k].backward(device_, input_of(k), rows_, k > 0 ? layers_[k - 1].output_gradient.data() : nullptr, images,
                          add ? &*part_ : nullptr);
      done(k);
    }
  }

  /// All parameters, layer by layer. Waits for the device.
  std::vector<Value> values() const {
    std::vector<Value> all;
    for (auto const& layer : layers_)
      for (auto const* parameters : {&layer.weight, &layer.bias}) {
        auto const here = device_.to_host(*parameters);
        all.insert(all.end(), here.begin(), here.end());
      }
    return all;
  }

  struct sums {
    double loss;
    std::int64_t correct;
  };

  /// Sums over all images since the last call. Waits for the device.
  sums take_totals() {
    auto const loss = device_.to_host(loss_);
    auto const correct = device_.to_host(correct_);
    device_.set_zero(loss_);
    device_.set_zero(correct_);
    return {std::accumulate(loss.begin(), loss.end(), 0.0),
            std::accumulate(correct.begin(), correct.end(), std::int64_t{0})};
  }

  /// The sums before they are added up, to be put back into another network. Waits for the device.
  totals_by_place totals() const { return {device_.to_host(loss_), device_.to_host(correct_)}; }
  void set_totals(totals_by_place const& saved) {
    device_.to_device(saved.loss, loss_);
    device_.to_device(saved.correct, correct_);
  }

 private:
  real const* input_of(std::size_t k) const { return k > 0 ? layers_[k - 1].output.data() : input_.data(); }

  Device& device_;
  int classes_, rows_ = 0;
  array<real> input_;
  std::vector<dense<Device, Value>> layers_;
  array<double> loss_;
  array<std::int64_t> correct_;
  std::optional<array<Value>> part_;
};

}  // namespace example
