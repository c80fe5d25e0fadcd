// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "descent_c.h"

#include "recipe.hpp"

#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

struct descent_optimizer {
  c_api::made made;
  descent::element_type type;
  double (*lr)(std::int64_t n, void* user) = nullptr;
  void* user = nullptr;
};

namespace {

thread_local char message[1024] = "";

descent_status fail(descent_status status, char const* why) noexcept {
  std::snprintf(message, sizeof message, "%s", why);
  return status;
}

/// Calls f(); no exception leaves.
template <class F> descent_status guarded(F const& f) noexcept {
  try {
    f();
    return DESCENT_OK;
  } catch (std::bad_alloc const&) {
    return fail(DESCENT_OUT_OF_MEMORY, "out of memory");
  } catch (std::invalid_argument const& e) {
    return fail(DESCENT_INVALID_ARGUMENT, e.what());
  } catch (std::logic_error const& e) {
    return fail(DESCENT_WRONG_ORDER, e.what());
  } catch (c_api::device_failed const& e) {
    return fail(DESCENT_DEVICE_FAILED, e.what());
  } catch (std::exception const& e) {
    return fail(DESCENT_FAILED, e.what());
  } catch (...) {
    return fail(DESCENT_FAILED, "unknown error");
  }
}
void require(void const* p, char const* what) {
  if (!p) throw std::invalid_argument(std::string(what) + " is null");
}
/// The same with the optimizer.
template <class F> descent_status with(descent_optimizer* optimizer, F const& f) noexcept {
  return guarded([&] {
    require(optimizer, "the optimizer");
    try {
      f(optimizer->made.of);
    } catch (std::exception const& e) {
      if (optimizer->made.is_device_error(e)) throw c_api::device_failed(e.what());
      throw;
    }
  });
}
template <class T> std::span<T const> span_of(T const* p, std::size_t n, char const* what) {
  if (n > 0) require(p, what);
  return {p, n};
}

}  // namespace

char const* descent_message() { return message; }

descent_status descent_create(descent_optimizer** made, char const* rule, descent_setting const* settings,
                              std::size_t settings_count, descent_parameter const* parameters,
                              std::size_t parameters_count, descent_options const* options) {
  return guarded([&] {
    require(made, "`made`"), require(rule, "`rule`"), require(options, "`options`");
    auto const type = c_api::type_of(options->type);
    if (options->on_cuda != 0 && options->on_cuda != 1)
      c_api::refuse("on_cuda must be 0 or 1, is " + std::to_string(options->on_cuda));
    c_api::recipe const r{rule, span_of(settings, settings_count, "`settings`"),
                          c_api::list_of(span_of(parameters, parameters_count, "`parameters`"), type), type, *options};
    auto optimizer = std::make_unique<descent_optimizer>(
        descent_optimizer{options->on_cuda ? c_api::make_on_cuda(r) : c_api::make_on_host(r), type});
    *made = optimizer.release();
  });
}
void descent_destroy(descent_optimizer* optimizer) { delete optimizer; }

descent_status descent_step(descent_optimizer* optimizer) {
  return with(optimizer, [&](auto& of) {
    std::vector<double> before;
    if (optimizer->lr) {
      double const lr = optimizer->lr(of.report().step, optimizer->user);
      for (int g = 0; g < of.groups(); ++g) before.push_back(of.get(g, "lr"));
      for (int g = 0; g < of.groups(); ++g) of.set(g, "lr", lr);
    }
    try {
      of.step();
    } catch (...) {
      for (std::size_t g = 0; g < before.size(); ++g) of.set(int(g), "lr", before[g]);
      throw;
    }
  });
}
descent_status descent_zero_grad(descent_optimizer* optimizer) {
  return with(optimizer, [](auto& of) { of.zero_grad(); });
}
descent_status descent_set(descent_optimizer* optimizer, int group, char const* name, double value) {
  return with(optimizer, [&](auto& of) {
    require(name, "`name`");
    of.set(group, name, value);
  });
}
descent_status descent_get(descent_optimizer* optimizer, int group, char const* name, double* value) {
  return with(optimizer, [&](auto& of) {
    require(name, "`name`"), require(value, "`value`");
    *value = of.get(group, name);
  });
}
descent_status descent_get_interval(descent_optimizer* optimizer, char const* name, descent_interval* interval) {
  return with(optimizer, [&](auto& of) {
    require(name, "`name`"), require(interval, "`interval`");
    auto const x = of.allowed(name);
    *interval = {x.low, x.high, x.above, x.below, x.infinite, x.text};
  });
}
descent_status descent_schedule(descent_optimizer* optimizer, double (*lr)(std::int64_t n, void* user), void* user) {
  return with(optimizer, [&](auto&) { optimizer->lr = lr, optimizer->user = user; });
}
descent_status descent_rebind(descent_optimizer* optimizer, descent_parameter const* parameters, std::size_t count) {
  return with(optimizer, [&](auto& of) {
    of.rebind(c_api::list_of(span_of(parameters, count, "`parameters`"), optimizer->type));
  });
}
descent_status descent_get_report(descent_optimizer* optimizer, descent_report* report) {
  return with(optimizer, [&](auto& of) {
    require(report, "`report`");
    auto const r = of.report();
    *report = {r.step, r.skipped, r.applied, r.learning_rate, r.loss_scale, r.grad_norm, r.clip_factor};
  });
}
descent_status descent_get_loss_scale(descent_optimizer* optimizer, double* scale) {
  return with(optimizer, [&](auto& of) {
    require(scale, "`scale`");
    *scale = of.loss_scale();
  });
}
descent_status descent_save(descent_optimizer* optimizer,
                            int (*write)(char const* name, void const* data, std::size_t bytes, void* user),
                            void* user) {
  return with(optimizer, [&](auto& of) {
    if (!write) throw std::invalid_argument("`write` is null");
    of.save([&](std::string const& name, descent::any_elements const& elements) {
      std::vector<std::byte> copy(elements.bytes());
      optimizer->made.fetch(copy.data(), elements.data, copy.size());
      if (int const code = write(name.c_str(), copy.data(), copy.size(), user))
        throw std::runtime_error("saving '" + name + "' failed: the callback returned " + std::to_string(code));
    });
  });
}
descent_status descent_load(descent_optimizer* optimizer,
                            int (*read)(char const* name, void* data, std::size_t bytes, void* user), void* user) {
  return with(optimizer, [&](auto& of) {
    if (!read) throw std::invalid_argument("`read` is null");
    of.load([&](std::string const& name, descent::any_elements const& elements) {
      std::vector<std::byte> saved(elements.bytes());
      if (int const code = read(name.c_str(), saved.data(), saved.size(), user))
        throw std::runtime_error("loading '" + name + "' failed: the callback returned " + std::to_string(code));
      return saved;
    });
  });
}
