// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Operators on tensors over the C interface of ../c_api, for PyTorch's stable ABI: one library for every Python and for
// PyTorch 2.10 and later. descent_torch.py is their face; build.py compiles them.
#include "descent_c.h"

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using tensors = std::vector<Tensor>;
using names = std::vector<std::string>;

[[noreturn]] void fail(std::string const& what) { throw std::runtime_error(what); }
void require(descent_status status) {
  if (status != DESCENT_OK) fail(descent_message());
}

struct optimizer {
  descent_options options{};
  std::int32_t device = -1;
  names called;  // the parameters
  std::vector<descent_parameter> bound;  // with the addresses that the library has
  descent_optimizer* of = nullptr;

  optimizer() = default;
  optimizer(optimizer const&) = delete;
  ~optimizer() { descent_destroy(of); }
};

/// Optimizers by number; 0 is none. An operator cannot take a pointer.
std::mutex of_table;
std::map<std::int64_t, std::shared_ptr<optimizer>> table;
std::shared_ptr<optimizer> at(std::int64_t number) {
  std::lock_guard const lock(of_table);
  auto const found = table.find(number);
  if (found == table.end()) fail("there is no optimizer " + std::to_string(number));
  return found->second;
}

/// Makes the device of the optimizer's tensors the current one.
std::optional<torch::stable::accelerator::DeviceGuard> guard(optimizer const& o) {
  if (!o.options.on_cuda) return {};
  return std::optional<torch::stable::accelerator::DeviceGuard>(std::in_place, o.device);
}

descent_type type_of(Tensor const& t, std::string const& what) {
  switch (t.scalar_type()) {
    case ScalarType::Float: return DESCENT_FLOAT;
    case ScalarType::Half: return DESCENT_HALF;
    case ScalarType::BFloat16: return DESCENT_BFLOAT16;
    default: fail(what + " must be float32, float16 or bfloat16");
  }
}
/// The address of a tensor like the optimizer's others.
void* address(optimizer const& o, Tensor const& t, std::string const& what) {
  if (!t.is_cpu() && !t.is_cuda()) fail(what + " must be on the CPU or on CUDA");
  if (t.is_cuda() != (o.options.on_cuda != 0) || (t.is_cuda() && t.get_device_index() != o.device))
    fail(what + " is on another device than the first parameter; take one optimizer per device");
  if (type_of(t, what) != o.options.type)
    fail(what + " has another type than the first parameter; take one optimizer per type");
  if (!t.is_contiguous()) fail(what + " is not contiguous");
  return t.mutable_data_ptr();
}
std::vector<descent_parameter> views(optimizer const& o, tensors const& values, tensors const& gradients) {
  if (values.size() != o.called.size() || gradients.size() != o.called.size())
    fail("the optimizer has " + std::to_string(o.called.size()) + " parameters, got " + std::to_string(values.size()) +
         " and " + std::to_string(gradients.size()) + " gradients");
  auto list = o.bound;
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::string const who = "parameter '" + o.called[i] + "'", its = "the gradient of " + who;
    if (values[i].numel() != list[i].rows * list[i].columns) fail(who + " has another number of elements than before");
    if (gradients[i].numel() != values[i].numel()) fail(its + " has another number of elements");
    list[i].value = address(o, values[i], who), list[i].gradient = address(o, gradients[i], its);
  }
  return list;
}

std::int64_t create(std::string const& rule, names const& fields, std::vector<double> const& settings,
                    names const& called, tensors const& values, tensors const& gradients,
                    std::vector<std::int64_t> const& columns, std::vector<std::int64_t> const& groups, double clip_norm,
                    double loss_scale, std::int64_t stream) {
  auto o = std::make_shared<optimizer>();
  o->called = called;
  if (values.empty() || columns.size() != called.size() || groups.size() != called.size())
    fail("create: the lists must have one entry per parameter, and there must be a parameter");
  o->options.type = type_of(values[0], "parameter '" + called[0] + "'");
  o->options.clip_norm = clip_norm, o->options.loss_scale = loss_scale;
  o->options.on_cuda = values[0].is_cuda(), o->options.stream = reinterpret_cast<void*>(stream);
  if (o->options.on_cuda) o->device = values[0].get_device_index();
  for (std::size_t i = 0; i < called.size(); ++i) {
    std::int64_t const n = values.at(i).numel(), c = columns[i];
    if (c < 1 || n % c != 0)
      fail("create: parameter '" + called[i] + "' cannot have " + std::to_string(c) + " columns");
    o->bound.push_back({o->called[i].c_str(), nullptr, nullptr, n / c, c, static_cast<int>(groups[i])});
  }
  o->bound = views(*o, values, gradients);
  std::vector<descent_setting> list;
  for (std::size_t i = 0; i < fields.size(); ++i) list.push_back({fields[i].c_str(), settings.at(i)});
  auto const device = guard(*o);
  require(
      descent_create(&o->of, rule.c_str(), list.data(), list.size(), o->bound.data(), o->bound.size(), &o->options));
  std::lock_guard const lock(of_table);
  std::int64_t const number = table.empty() ? 1 : table.rbegin()->first + 1;
  table.emplace(number, std::move(o));
  return number;
}
void destroy(std::int64_t number) {
  std::shared_ptr<optimizer> o = at(number);
  auto const device = guard(*o);
  {
    std::lock_guard const lock(of_table);
    table.erase(number);
  }
  o.reset();
}

void set(std::int64_t number, std::int64_t group, std::string const& field, double value) {
  require(descent_set(at(number)->of, static_cast<int>(group), field.c_str(), value));
}

void step(std::int64_t number, tensors const& values, tensors const& gradients) {
  auto const o = at(number);
  auto const device = guard(*o);
  auto now = views(*o, values, gradients);
  bool moved = false;
  for (std::size_t i = 0; i < now.size(); ++i)
    moved = moved || now[i].value != o->bound[i].value || now[i].gradient != o->bound[i].gradient;
  if (moved) {
    require(descent_rebind(o->of, now.data(), now.size()));
    o->bound = std::move(now);
  }
  require(descent_step(o->of));
}

std::vector<double> report(std::int64_t number) {
  auto const o = at(number);
  auto const device = guard(*o);
  descent_report r{};
  require(descent_get_report(o->of, &r));
  return {static_cast<double>(r.step),   static_cast<double>(r.skipped), static_cast<double>(r.applied),
          r.learning_rate, r.loss_scale, r.grad_norm, r.clip_factor};
}
double loss_scale(std::int64_t number) {
  auto const o = at(number);
  auto const device = guard(*o);
  double scale = 0;
  require(descent_get_loss_scale(o->of, &scale));
  return scale;
}

/// The pieces of the state, as bytes in host memory.
std::tuple<names, tensors> save(std::int64_t number) {
  auto const o = at(number);
  auto const device = guard(*o);
  std::tuple<names, tensors> all;
  auto const write = [](char const* name, void const* data, std::size_t size, void* user) {
    auto& [called, bytes] = *static_cast<std::tuple<names, tensors>*>(user);
    std::int64_t const shape[] = {static_cast<std::int64_t>(size)};
    Tensor const piece = torch::stable::empty({shape, 1}, ScalarType::Byte);
    if (size > 0) std::memcpy(piece.mutable_data_ptr(), data, size);
    called.push_back(name), bytes.push_back(piece);
    return 0;
  };
  require(descent_save(o->of, write, &all));
  return all;
}
void load(std::int64_t number, names const& called, tensors const& bytes) {
  auto const o = at(number);
  auto const device = guard(*o);
  std::map<std::string, Tensor> all;
  for (std::size_t i = 0; i < called.size(); ++i) {
    Tensor const& piece = bytes.at(i);
    if (piece.scalar_type() != ScalarType::Byte || !piece.is_cpu() || !piece.is_contiguous())
      fail("load: '" + called[i] + "' must be a contiguous tensor of bytes on the CPU");
    all.insert_or_assign(called[i], piece);
  }
  auto const read = [](char const* name, void* data, std::size_t size, void* user) {
    auto const& from = *static_cast<std::map<std::string, Tensor> const*>(user);
    auto const found = from.find(name);
    if (found == from.end()) return 1;
    if (static_cast<std::size_t>(found->second.numel()) != size) return 2;
    if (size > 0) std::memcpy(data, found->second.const_data_ptr(), size);
    return 0;
  };
  require(descent_load(o->of, read, &all));
}

}  // namespace

STABLE_TORCH_LIBRARY(descent, m) {
  m.def("create(str rule, str[] fields, float[] settings, str[] names, Tensor(a!)[] values, Tensor[] gradients, "
        "int[] columns, int[] groups, float clip_norm, float loss_scale, int stream) -> int");
  m.def("destroy(int of) -> ()");
  m.def("set(int of, int group, str field, float value) -> ()");
  m.def("step(int of, Tensor(a!)[] values, Tensor[] gradients) -> ()");
  m.def("report(int of) -> float[]");
  m.def("loss_scale(int of) -> float");
  m.def("save(int of) -> (str[], Tensor[])");
  m.def("load(int of, str[] names, Tensor[] pieces) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(descent, CompositeExplicitAutograd, m) {
  m.impl("create", TORCH_BOX(&create));
  m.impl("destroy", TORCH_BOX(&destroy));
  m.impl("set", TORCH_BOX(&set));
  m.impl("step", TORCH_BOX(&step));
  m.impl("report", TORCH_BOX(&report));
  m.impl("loss_scale", TORCH_BOX(&loss_scale));
  m.impl("save", TORCH_BOX(&save));
  m.impl("load", TORCH_BOX(&load));
}
