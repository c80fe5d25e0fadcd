// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "descent_c.h"

#include <descent/report.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

/// Optimizers of any rule, type and backend behind virtual functions.
namespace c_api {

using writer = std::function<void(std::string const& name, void const* data, std::size_t bytes)>;
using reader = std::function<void(std::string const& name, void* data, std::size_t bytes)>;

struct any_optimizer {
  virtual ~any_optimizer() = default;
  virtual void step() = 0;
  virtual void zero_grad() = 0;
  virtual int groups() const = 0;
  virtual void set(int group, std::string const& field, double value) = 0;
  virtual double get(int group, std::string const& field) = 0;
  virtual descent::step_report report() const = 0;
  virtual double loss_scale() const = 0;
  virtual void rebind(std::span<descent_parameter const> parameters) = 0;
  virtual void save(writer const& write) const = 0;
  virtual void load(reader const& read) = 0;
  /// Whether an exception is about the device.
  virtual bool is_device_error(std::exception const& e) const = 0;
};

/// What an optimizer is made from.
struct recipe {
  std::string rule;
  std::span<descent_setting const> settings;
  std::span<descent_parameter const> parameters;
  descent_options options;
};

/// CUDA returned an error.
struct device_failed : std::runtime_error { using std::runtime_error::runtime_error; };

std::unique_ptr<any_optimizer> make_on_host(recipe const& r);
std::unique_ptr<any_optimizer> make_on_cuda(recipe const& r);

}  // namespace c_api
