// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "descent_c.h"

#include <descent/any_optimizer.hpp>

#include <cstddef>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// What the functions of the interface and the makers of optimizers share.
namespace c_api {

/// What an optimizer is made from.
struct recipe {
  std::string rule;
  std::span<descent_setting const> settings;
  std::vector<descent::any_parameter> parameters;
  descent::element_type type;
  descent_options options;
};

/// An optimizer, and what depends on its backend.
struct made {
  descent::any_optimizer of;
  void (*fetch)(void* to, void const* from, std::size_t bytes);  // copies to host memory
  bool (*is_device_error)(std::exception const& e);
};

made make_on_host(recipe const& r);
made make_on_cuda(recipe const& r);

/// CUDA returned an error.
struct device_failed : std::runtime_error { using std::runtime_error::runtime_error; };

[[noreturn]] inline void refuse(std::string const& what) { throw std::invalid_argument(what); }

/// Takes an int: as a descent_type, a number that is none would be undefined before it could be checked.
inline descent::element_type type_of(int type) {
  switch (type) {
    case DESCENT_FLOAT: return descent::element_type::f32;
    case DESCENT_HALF: return descent::element_type::f16;
    case DESCENT_BFLOAT16: return descent::element_type::bf16;
    default: refuse("type must be 0, 1 or 2, is " + std::to_string(type));
  }
}

inline std::vector<descent::any_parameter> list_of(std::span<descent_parameter const> all, descent::element_type type) {
  std::vector<descent::any_parameter> list;
  for (descent_parameter const& p : all) {
    if (!p.name) refuse("a parameter has no name");
    list.push_back({p.name, p.value, p.gradient, type, type, {p.rows, p.columns}, {p.group}});
  }
  return list;
}

}  // namespace c_api
