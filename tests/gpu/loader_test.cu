// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Batches in device memory: the bytes of the host's, with nothing overwritten too early and no wait of the user's
// thread.
#include "support.cuh"

#include <descent/data/device_loader.hpp>
#include <descent/data/resident.cuh>
#include <descent/data/sources.hpp>

#include "support/clock.hpp"
#include "support/message.hpp"

#include <cstring>
#include <numeric>
#include <span>

using namespace test;

namespace {

std::vector<int> const& numbers() {
  static auto const all = [] {
    std::vector<int> n(41);
    std::iota(n.begin(), n.end(), 0);
    return n;
  }();
  return all;
}

/// Rows of 4, 3, 16 and 2064 bytes.
auto source_of() {
  return ds::map{ds::in_memory{ds::column{ds::field<"n", int>{}, numbers()}},
                 ds::fields{ds::field<"n", int>{}, ds::field<"c", std::uint8_t>{3}, ds::field<"f", float>{2, 2},
                            ds::field<"l", double>{258}},
                 [](auto const& in, auto const& out, auto& random) {
                   int const n = out.template value<"n">() = in.template value<"n">();
                   for (auto& c : out.template get<"c">()) c = std::uint8_t(3 * n);
                   for (auto& f : out.template get<"f">()) f = float(random.uniform());
                   for (auto& l : out.template get<"l">()) l = n * 0.5;
                 }};
}
/// The first three fields only.
auto small_source() {
  auto const large = source_of();
  auto const f = large.fields();
  return ds::map{large, ds::fields{f.get<"n">(), f.get<"c">(), f.get<"f">()},
                 [](auto const& in, auto const& out, auto&) {
                   std::memcpy(out.template get<"n">().data(), in.template get<"n">().data(), 4);
                   std::memcpy(out.template get<"c">().data(), in.template get<"c">().data(), 3);
                   std::memcpy(out.template get<"f">().data(), in.template get<"f">().data(), 16);
                 }};
}

/// Copies what batches have behind each other, in the order of the stream, while later batches are on their way.
class kept {
 public:
  explicit kept(stream const& s) : s_(s) { cuda(cudaMalloc(&memory_, capacity)); }
  ~kept() { cudaFree(memory_); }
  template <class T> void keep(std::span<T> elements) {
    cuda(cudaMemcpyAsync(memory_ + size_, elements.data(), elements.size_bytes(), cudaMemcpyDeviceToDevice, s_));
    size_ += elements.size_bytes();
  }
  template <class Batch> void keep_all(Batch const& b) {
    keep(b.template get<"n">());
    keep(b.template get<"c">());
    keep(b.template get<"f">());
  }
  std::vector<std::uint8_t> all() const { return from_device(memory_, size_, s_); }

 private:
  static constexpr std::size_t capacity = 1 << 20;
  stream const& s_;
  std::uint8_t* memory_ = nullptr;
  std::size_t size_ = 0;
};
/// The same on the host.
struct kept_here {
  std::vector<std::uint8_t> bytes{};
  template <class Batch> void keep_all(Batch const& b) {
    auto const keep = [&](auto elements) {
      auto const raw = std::as_bytes(elements);
      for (auto const byte : raw) bytes.push_back(std::uint8_t(byte));
    };
    keep(b.template get<"n">()), keep(b.template get<"c">()), keep(b.template get<"f">());
  }
};

}  // namespace

TEST_CASE("device batches: the host's bytes, for any number of workers and slots, also of ragged records") {
  stream s;
  auto const source = source_of();
  ds::batches const cut{.size = 7};
  kept_here want;
  ds::loader here{source, cut, ds::shuffled{.seed = 2}, ds::workers{.seed = 3}};
  for (int t = 0; t < 14; ++t) want.keep_all(here.next());
  for (auto const& number : {std::pair{0, 0}, {1, 0}, {2, 1}, {2, 4}}) {
    INFO(number.first, " threads, ", number.second, " ahead");
    kept got{s};
    ds::workers const workers{.threads = number.first, .ahead = number.second, .seed = 3};
    ds::loader data{source, cut, ds::shuffled{.seed = 2}, workers, ds::cuda{s}};
    for (int t = 0; t < 14; ++t) {
      auto const b = data.next();
      REQUIRE(b.get<"n">().size() == std::size_t(b.size()));
      got.keep_all(b);
    }
    CHECK(same_bits(got.all(), want.bytes));
    CHECK(data.report().batches == 14);
    CHECK(data.report().copied >= 0);
  }

  auto const ragged = ds::map{ds::in_memory{ds::column{ds::field<"n", int>{}, numbers()}},
                              ds::fields{ds::ragged<"t", int>(5, -1)}, [](auto const& in, auto const& out, auto&) {
                                int const n = in.template value<"n">();
                                out.template set_length<"t">(n % 4);
                                for (int k = 0; k < n % 4; ++k) out.template get<"t">()[std::size_t(k)] = n;
                              }};
  ds::loader rows{ragged, ds::batches{.size = 3}, ds::sequential{}, ds::workers{.threads = 2}, ds::cuda{s}};
  rows.next();
  auto const b = rows.next();  // records 3, 4, 5
  CHECK(b.shape<"t">() == std::vector<std::int64_t>{3, 3});
  CHECK(from_device(b.get<"t">().data(), 9, s) == std::vector{3, 3, 3, -1, -1, -1, 5, -1, -1});
  CHECK(from_device(b.lengths<"t">().data(), 3, s) == std::vector<std::int32_t>{3, 0, 1});
}

TEST_CASE("device batches: only workers wait, for copies; asking while the stream is capturing is refused") {
  stream s, other;
  auto const source = source_of();
  ds::loader data{source, ds::batches{.size = 4}, ds::sequential{}, ds::workers{.threads = 2}, ds::cuda{s}};
  data.next();
  if (in_software()) cudasim_reset_counters();
  for (int t = 0; t < 10; ++t) data.next();
  if (in_software()) {
    CHECK(cudasim_count("allocations") == 0);
    CHECK(test::comes_true([] {  // once no worker counts between the two
      auto const of_events = cudasim_count("event_synchronisations");
      return cudasim_count("synchronisations") == of_events;
    }));
    CHECK(cudasim_count("launches") == 0);
  }
  auto const at = data.position();
  graph const nothing(other, [&] {
    for (int t = 0; t < 6; ++t) data.next();  // workers wait while another stream is capturing
  });
  CHECK(data.position() != at);
  graph const none(s, [&] {
    CHECK(message([&] { data.next(); }) ==
          "loader: a batch cannot be asked for while the stream is capturing; use resident");
  });
  CHECK(data.next().size() > 0);
}

TEST_CASE("resident on a device: one launch makes the host's batch, and an epoch is one graph") {
  stream s;
  ds::shuffled const order{.seed = 6};
  auto const both = [&](auto const& source, ds::batches cut) {
    ds::resident here{source, cut, order};
    ds::resident data{source, cut, order, ds::cuda{s}};
    kept_here want;
    kept got{s};
    for (int t = 0; t < 15; ++t) {
      want.keep_all(here.next());
      CHECK(launches([&] { got.keep_all(data.next()); }) == 1);
      CHECK(same_bits(from_device(data.records().data(), data.records().size(), s),
                      std::vector<std::int64_t>(here.records().begin(), here.records().end())));
    }
    CHECK(same_bits(got.all(), want.bytes));
    CHECK(data.position() == here.position());
  };
  both(source_of(), ds::batches{8, ds::last_batch::drop});
  both(small_source(), ds::batches{9, ds::last_batch::pad});
  both(small_source(), ds::batches{41});

  auto const source = small_source();
  ds::batches const cut{10, ds::last_batch::drop};
  ds::resident data{source, cut, order, ds::cuda{s}};
  std::vector<int> seen(40);
  int* all = nullptr;
  cuda(cudaMalloc(&all, 40 * sizeof(int)));
  data.next();  // initcheck looks at what a graph's copies read before its kernels have written it
  data.seek({0, 0});
  graph const epoch(s, [&] {
    for (std::int64_t b = 0; b < data.batches_per_epoch(); ++b)
      cuda(cudaMemcpyAsync(all + 10 * b, data.next().get<"n">().data(), 10 * sizeof(int), cudaMemcpyDeviceToDevice, s));
    CHECK(message([&] { data.position(); }).starts_with("resident::position()"));
    CHECK(message([&] { data.seek({0, 0}); }).starts_with("resident::seek()"));
  });
  CHECK(epoch.nodes == 8);
  for (std::int64_t e = 0; e < 3; ++e) {
    if (in_software()) cudasim_reset_counters();
    epoch.launch(s);
    if (in_software()) {
      CHECK(cudasim_count("graph_launches") == 1);
      CHECK(cudasim_count("launches") + cudasim_count("synchronisations") + cudasim_count("memcpys") == 0);
    }
    auto const n = from_device(all, 40, s);
    auto const places = order.epoch(41, e);
    for (std::size_t p = 0; p < 40; ++p) CHECK(n[p] == places[std::int64_t(p)]);
  }
  CHECK(data.position() == ds::loader_position{3, 0});
  data.seek({1, 3});
  CHECK(from_device(data.next().get<"n">().data(), 1, s)[0] == order.epoch(41, 1)[30]);
  CHECK(data.position() == ds::loader_position{2, 0});
  cuda(cudaFree(all));
}
