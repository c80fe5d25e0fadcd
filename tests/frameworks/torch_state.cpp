// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// usage: torch_state RULE float|double|masters|scaled IN OUT FIRST COUNT [FIELD=VALUE...]
//
// Continues a run of torch_state.py: loads IN, does COUNT iterations from number FIRST on, and saves OUT. The fields
// decide which state there is; all others come with the file.
#include <descent/io/checkpoint.hpp>
#include <descent/optimizer.hpp>
#include <descent/presets/rules.hpp>
#include <descent/rules/asgd.hpp>
#include <descent/rules/rprop.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ds = descent;

namespace {

struct arguments {
  std::string rule, type, in, out;
  std::size_t first, count;
  std::vector<std::pair<std::string, double>> fields;
};

struct tensor {
  char const* name;
  ds::shape shape;
  int group;
};
constexpr std::array<tensor, 3> tensors{{{"net.0.weight", {3, 4}, 0}, {"net.0.bias", {5}, 1}, {"scale", {1}, 1}}};

double start(std::size_t k, std::size_t i) { return (double((i * 7 + k * 3) % 11) - 5) / 8; }
double gradient(std::size_t k, std::size_t i, std::size_t t) {
  return (double((i * 37 + t * 101 + k * 59) % 257) - 128) / 256;
}

template <class Value, class Rule, class... Policies>
void train(arguments const& wanted, Rule rule, Policies... policies) {
  for (auto const& [name, x] : wanted.fields) ds::set_field(rule, name, x);
  std::array<std::vector<Value>, tensors.size()> values, gradients;
  ds::parameters<Value> list;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    auto const& [name, shape, group] = tensors[k];
    auto const n = std::size_t(shape.rows * shape.columns);
    for (std::size_t i = 0; i < n; ++i) values[k].push_back(Value(start(k, i)));
    gradients[k].resize(n);
    list.add(name, values[k].data(), gradients[k].data(), shape, ds::group{group});
  }
  ds::optimizer opt{list, rule, policies...};
  ds::load_file(wanted.in, opt);
  for (std::size_t t = wanted.first; t < wanted.first + wanted.count; ++t) {
    double const scale = opt.loss_scale();
    for (std::size_t k = 0; k < tensors.size(); ++k)
      for (std::size_t i = 0; i < gradients[k].size(); ++i) gradients[k][i] = Value(float(gradient(k, i, t) * scale));
    if (wanted.type == "scaled" && t % 5 == 3) gradients[1][2] = std::numeric_limits<Value>::infinity();
    opt.step();
  }
  ds::save_file(wanted.out, opt);
}

template <class Rule> bool trains(arguments const& wanted) {
  if (wanted.rule != ds::detail::plain_name<Rule>()) return false;
  if (wanted.type == "float") return train<float>(wanted, Rule{}), true;
  if (wanted.type == "double") return train<double>(wanted, Rule{}), true;
  if constexpr (std::is_same_v<Rule, ds::adamw>) {
    if (wanted.type == "masters") return train<ds::bfloat16>(wanted, Rule{}, ds::master<float>{}), true;
    if (wanted.type == "scaled")
      return train<float>(wanted, Rule{}, ds::dynamic_loss_scale{.init = 1024, .interval = 4}), true;
  }
  return false;
}

template <class... Rules> bool trains_one_of(arguments const& wanted) { return (trains<Rules>(wanted) || ...); }

int run(std::vector<std::string> const& words) {
  arguments wanted{words.at(0), words.at(1), words.at(2), words.at(3), std::stoul(words.at(4)), std::stoul(words.at(5)),
                   {}};
  for (std::size_t i = 6; i < words.size(); ++i) {
    std::size_t const end = words[i].find('=');
    wanted.fields.emplace_back(words[i].substr(0, end), std::stod(words[i].substr(end + 1)));
  }
  if (trains_one_of<ds::sgd, ds::adam, ds::adamw, ds::amsgrad, ds::nadam, ds::radam, ds::adamax, ds::adadelta,
                    ds::adagrad, ds::rmsprop, ds::rprop, ds::asgd, ds::lion>(wanted))
    return 0;
  std::fprintf(stderr, "there is no %s with %s\n", wanted.rule.c_str(), wanted.type.c_str());
  return 2;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run({words + 1, words + count});
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
