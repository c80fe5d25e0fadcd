// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The host part with the headers of an older CUDA Toolkit, whose versions the macros name: see toolkits.sh.
#include <descent/adapters/dlpack.hpp>
#include <descent/backends/thrust.hpp>
#include <descent/descent.hpp>

#include <cuda/std/mdspan>
#include <cuda/std/span>
#include <cuda/version>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <vector>

static_assert(CUDART_VERSION / 10 * 10 == DESCENT_CUDA, "the headers are of the wanted CUDA Toolkit");
static_assert(CCCL_VERSION / 1000 * 1000 == DESCENT_CCCL, "Thrust and libcu++ are of the wanted CUDA Toolkit");

namespace ds = descent;

/// The values after ten steps on a backend.
template <class Value, class... Policies> std::vector<Value> train(Policies... policies) {
  std::vector<Value> values(12), gradients(12);
  for (std::size_t i = 0; i != 12; ++i) {
    values[i] = ds::narrow<Value>(float(i));
    gradients[i] = ds::narrow<Value>(float(i % 3) - 1);
  }
  ds::parameters<Value> params;
  params.add("span", cuda::std::span<Value>(values.data(), 6), cuda::std::span<Value>(gradients.data(), 6));
  using matrix = cuda::std::mdspan<Value, cuda::std::dextents<int, 2>>;
  params.add("mdspan", matrix(values.data() + 6, 3, 2), matrix(gradients.data() + 6, 3, 2));
  ds::optimizer opt{params, ds::adamw{.lr = 0.1}, ds::clip_norm{1}, policies...};
  for (int i = 0; i != 10; ++i) opt.step();
  return values;
}

template <class Value> bool same(std::vector<Value> const& x, std::vector<Value> const& y) {
  for (std::size_t i = 0; i != x.size(); ++i)
    if (ds::widen<float>(x[i]) != ds::widen<float>(y[i])) return false;
  return ds::widen<float>(x[2]) < 2;  // a gradient of 1
}

int main() {
  bool const singles = same(train<float>(ds::on(thrust::cpp::par)), train<float>());
  bool const halves =
      same(train<ds::half>(ds::master<float>{}, ds::on(thrust::cpp::par)), train<ds::half>(ds::master<float>{}));
  bool const brains = same(train<ds::bfloat16>(ds::stochastic_rounding{}, ds::on(thrust::cpp::par)),
                           train<ds::bfloat16>(ds::stochastic_rounding{}));
  if (!singles || !halves || !brains) std::puts("Thrust's loop gives other values than the library's own");
  return singles && halves && brains ? 0 : 1;
}
