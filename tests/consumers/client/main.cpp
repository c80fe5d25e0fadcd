// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Trains twice, before and after the client took descent, and compares every bit of values, masters and moments. Each
// step has its gradients at another address and runs on one of two streams; the loss scale changes. Exits with 0 if
// equal.
#include "adam.hpp"
#include "memory.hpp"

#include <cstdio>
#include <cstring>

namespace {

constexpr int steps = 12;
constexpr std::int64_t counts[] = {5000, 7, 1, 129};

struct run {
  std::vector<tensor> tensors;
  float* inverse_scale = static_cast<float*>(take(sizeof(float)));
  void *first = make_stream(), *second = make_stream();
  std::vector<void*> taken{inverse_scale};

  template <class T> T* tensor_of(std::int64_t count, float start) {
    auto const x = std::vector<T>(std::size_t(count), T(start));
    T* const p = static_cast<T*>(take(x.size() * sizeof(T)));
    put(p, x.data(), x.size() * sizeof(T), first);
    taken.push_back(p);
    return p;
  }
  run() {
    for (std::int64_t n : counts)
      tensors.push_back(
          {tensor_of<__half>(n, 0.75f), tensor_of<float>(n, 0.75f), tensor_of<float>(n, 0), tensor_of<float>(n, 0), n});
  }
  ~run() {
    for (void* p : taken) give_back(p);
    end_stream(first), end_stream(second);
  }
  run(run const&) = delete;
  run& operator=(run const&) = delete;

  template <class Make> void train(Make const& make) {
    auto const optimizer = make(settings{3e-3f, 0.9f, 0.999f, 1e-8f, 0.01f}, tensors, inverse_scale, first);
    for (int t = 1; t <= steps; ++t) {
      void *const now = t % 2 ? first : second, *const before = t % 2 ? second : first;
      order(before, now);
      float const scale = t < 6 ? 1024 : 512, inverse = 1 / scale;
      put(inverse_scale, &inverse, sizeof inverse, now);
      std::vector<__half*> gradients;
      for (tensor const& x : tensors) {
        std::vector<__half> g(std::size_t(x.count) + std::size_t(t));
        for (std::size_t i = 0; i < g.size(); ++i)
          g[i] = __half(scale * (float((i * 37 + std::size_t(t) * 101) % 257) / 128 - 1) / 16);
        auto* const at = static_cast<__half*>(take(g.size() * sizeof(__half)));
        put(at, g.data(), g.size() * sizeof(__half), now);
        gradients.push_back(at + t % 3);  // aligned or not
        taken.push_back(at);
      }
      optimizer->step(gradients, now);
    }
    order(second, first);
  }
  template <class T> std::vector<T> all(T* tensor::* member) const {
    std::vector<T> to;
    for (tensor const& x : tensors) {
      std::vector<T> one(std::size_t(x.count));
      get(one.data(), x.*member, one.size() * sizeof(T), first);
      to.insert(to.end(), one.begin(), one.end());
    }
    return to;
  }
};

template <class T> bool same(char const* what, run const& a, run const& b, T* tensor::* member) {
  auto const x = a.all(member), y = b.all(member);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) wrong += std::memcmp(&x[i], &y[i], sizeof(T)) != 0;
  if (wrong) std::printf("%s: %zu of %zu differ\n", what, wrong, x.size());
  return wrong == 0;
}

}  // namespace

int main() {
  run before, after;
  before.train(make_before);
  after.train(make_after);
  bool equal = same("values", before, after, &tensor::value);
  equal &= same("masters", before, after, &tensor::master);
  equal &= same("m", before, after, &tensor::m);
  equal &= same("v", before, after, &tensor::v);
  float const moved = before.all(&tensor::master)[3] - 0.75f;
  if (moved == 0) std::printf("nothing was trained\n");
  return equal && moved != 0 ? 0 : 1;
}
