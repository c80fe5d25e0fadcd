// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// A libtorch program with an optimizer of descent, in place on the tensors of a module. It trains a small network
// twice, with descent::adamw and with torch::optim::AdamW, and fails if the two differ.
#include <descent/descent.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

namespace ds = descent;

namespace {

/// The parameters of a module whose gradients stay where they are: zero_grad(false) from now on.
ds::parameters<float> parameters_of(torch::nn::Module& module) {
  ds::parameters<float> list;
  for (auto& item : module.named_parameters()) {
    at::Tensor& p = item.value();
    p.mutable_grad() = torch::zeros_like(p);
    list.add(item.key(), p.data_ptr<float>(), p.grad().data_ptr<float>(), p.numel(),
             ds::group{p.dim() > 1 ? 0 : 1});  // biases are group 1
  }
  return list;
}

torch::nn::Sequential network() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(8, 32), torch::nn::Tanh(), torch::nn::Linear(32, 1));
}
double lr(std::int64_t step) { return 0.01 / (1 + 0.1 * double(step)); }

template <class Step> double train(torch::nn::Sequential& net, Step const& step) {
  torch::manual_seed(2);
  double loss_now = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    at::Tensor const x = torch::randn({64, 8}), y = torch::sin(x.sum(1, true));
    at::Tensor const loss = torch::mse_loss(net->forward(x), y);
    loss.backward();
    step(i);
    loss_now = loss.item<double>();
  }
  return loss_now;
}

}  // namespace

int main() {
  auto ours = network(), theirs = network();

  ds::optimizer opt{parameters_of(*ours), ds::adamw{.weight_decay = 0.1},
                    ds::learning_rate([](std::int64_t n) { return lr(n); }), ds::zero_grad{}};
  opt.group(1).weight_decay = 0;
  double const a = train(ours, [&](std::int64_t) { opt.step(); });

  std::vector<at::Tensor> matrices, biases;
  for (at::Tensor const& p : theirs->parameters()) (p.dim() > 1 ? matrices : biases).push_back(p);
  auto const group = [](std::vector<at::Tensor> const& list, double weight_decay) {
    using options = torch::optim::AdamWOptions;
    return torch::optim::OptimizerParamGroup(list, std::make_unique<options>(options().weight_decay(weight_decay)));
  };
  torch::optim::AdamW peer({group(matrices, 0.1), group(biases, 0)});
  double const b = train(theirs, [&](std::int64_t i) {
    for (auto& group : peer.param_groups()) group.options().set_lr(lr(i));
    peer.step();
    peer.zero_grad();
  });

  double apart = 0;
  for (std::size_t i = 0; i < ours->parameters().size(); ++i)
    apart = std::max(apart, (ours->parameters()[i] - theirs->parameters()[i]).abs().max().item<double>());
  std::printf("loss %.6f with descent, %.6f with PyTorch; no parameter differs by more than %.1e\n", a, b, apart);
  return apart < 1e-4 ? 0 : 1;
}
