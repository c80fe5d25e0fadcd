// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// The library and hand-written loops as contestants of loader.py: each line with a command is answered by a line of
// JSON. loader.py lists the commands, and loader_torch.py has the same data.
#include <descent/data/loader.hpp>
#include <descent/data/raw_records.hpp>
#include <descent/data/resident.hpp>
#include <descent/data/sources.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ds = descent;

namespace {

constexpr std::int64_t row = 4096;  // bytes of a record of bytes
constexpr ds::shuffled shuffled{.seed = 1};

/// What a program is asked to load.
struct task {
  std::string of, way;  // the case, and who reads: descent, resident or loop
  int workers = 0;
  std::int64_t records = 0, batch = 0;
  std::string file;
};

/// What an epoch delivered: all contestants must find the same.
struct totals {
  std::int64_t records = 0;
  double sum = 0;  // of all elements; exact
};

/// A contestant with one case loaded.
struct contestant {
  virtual ~contestant() = default;
  virtual void run(int epochs) = 0;
  virtual totals check() = 0;
};

/// Keeps the compiler from leaving out what it cannot see to be used.
template <class T> void use(T const& x) { asm volatile("" : : "g"(&x) : "memory"); }

template <class Range> double sum_of(Range const& elements) {
  if constexpr (sizeof elements[0] == 1)
    return double(std::accumulate(elements.begin(), elements.end(), std::int64_t{}));
  else return std::accumulate(elements.begin(), elements.end(), 0.0);
}
template <class Fields> void add(totals& to, ds::batch<Fields> const& b) {
  to.records += b.size();
  to.sum += sum_of(b.template get<"x">());
  if constexpr (Fields::count > 1) to.sum += sum_of(b.template get<"y">());
}

/// A loader. What it has read ahead before the clock starts does not count: seek() discards it.
template <class Source, class Order> class of_loader : public contestant {
 public:
  of_loader(Source from, Order order, task const& t)
      : data_(std::move(from), ds::batches{.size = t.batch}, order, ds::workers{.threads = t.workers}) {}
  void run(int epochs) override {
    data_.seek({++epoch_, 0});
    for (int e = 0; e < epochs; ++e)
      for (auto const& b : data_.epoch()) use(b.template get<"x">()[0]);
    epoch_ += epochs;
  }
  totals check() override {
    totals t;
    data_.seek({++epoch_, 0});
    for (auto const& b : data_.epoch()) add(t, b);
    return t;
  }

 private:
  ds::loader<Source, Order> data_;
  std::int64_t epoch_ = 0;
};

/// The same with all records read beforehand; drops a smaller last batch.
template <class Source> class of_resident : public contestant {
 public:
  of_resident(Source from, task const& t)
      : data_(std::move(from), ds::batches{.size = t.batch, .last = ds::last_batch::drop}, shuffled) {}
  void run(int epochs) override {
    for (std::int64_t b = 0; b < epochs * data_.batches_per_epoch(); ++b) use(data_.next().template get<"x">()[0]);
  }
  totals check() override {
    totals t;
    for (std::int64_t b = 0; b < data_.batches_per_epoch(); ++b) add(t, data_.next());
    return t;
  }

 private:
  ds::resident<Source, ds::shuffled> data_;
};

/// A loop over batches: read(first, n) writes the records of places [first, first + n) and returns what was written.
class of_loop : public contestant {
 public:
  using reader = std::function<double(std::int64_t first, std::int64_t n, bool sums)>;

  of_loop(task const& t, std::function<void()> begin, reader read)
      : t_(t), begin_(std::move(begin)), read_(std::move(read)) {}
  void run(int epochs) override {
    for (int e = 0; e < epochs; ++e) epoch(false);
  }
  totals check() override { return {t_.records, epoch(true)}; }

 private:
  double epoch(bool sums) {
    double sum = 0;
    begin_();
    for (std::int64_t first = 0; first < t_.records; first += t_.batch)
      sum += read_(first, std::min(t_.batch, t_.records - first), sums);
    return sum;
  }

  task t_;
  std::function<void()> begin_;
  reader read_;
};

/// Where a loop writes a batch: a buffer that begins a page, so that its place does not slow down a copy by chance.
template <class T> class buffer {
 public:
  explicit buffer(std::int64_t n) : data_(static_cast<T*>(std::aligned_alloc(page, pages(n) * page))) {}
  T* data() const { return data_.get(); }
  double sum(std::int64_t n) const { return sum_of(std::span<T const>(data_.get(), std::size_t(n))); }

 private:
  static constexpr std::size_t page = 4096;
  static std::size_t pages(std::int64_t n) { return std::size_t(n) * sizeof(T) / page + 1; }
  struct release { void operator()(void* p) const { std::free(p); } };
  std::unique_ptr<T[], release> data_;
};

/// The usual table of a shuffled epoch.
struct shuffled_table {
  std::vector<std::int64_t> records;
  std::mt19937_64 random{1};

  explicit shuffled_table(std::int64_t n) : records(std::size_t(n)) { std::iota(records.begin(), records.end(), 0); }
  void shuffle() { std::shuffle(records.begin(), records.end(), random); }
};

template <class T> std::vector<T> numbers(std::int64_t n, std::int64_t period) {
  std::vector<T> x(static_cast<std::size_t>(n));
  std::int64_t i = 0;
  for (T& each : x) {
    each = T(i);
    if (++i == period) i = 0;
  }
  return x;
}

/// Records of `Width` elements of `From` and a label, which a batch has as float.
template <class From, int Width> struct labelled {
  static constexpr bool mapped = !std::is_same_v<From, float>;
  static float of(From x) { return mapped ? float(x) / 16 : float(x); }

  explicit labelled(std::int64_t n) : x(numbers<From>(n * Width, 17)), y(numbers<std::int64_t>(n, 10)) {}

  auto source() const {
    ds::in_memory memory{ds::column{ds::field<"x", From>{Width}, x}, ds::column{ds::field<"y", std::int64_t>{}, y}};
    if constexpr (!mapped) {
      return memory;
    } else {
      return ds::map{std::move(memory), ds::fields{ds::field<"x", float>{Width}, ds::field<"y", std::int64_t>{}},
                     [](auto const& in, auto const& out, ds::record_random&) {
                       std::ranges::transform(in.template get<"x">(), out.template get<"x">().begin(), of);
                       out.template value<"y">() = in.template value<"y">();
                     }};
    }
  }
  std::unique_ptr<contestant> loop(task const& t) const {
    auto const order = std::make_shared<shuffled_table>(t.records);
    auto const to = std::make_shared<buffer<float>>(t.batch * Width);
    auto const labels = std::make_shared<buffer<std::int64_t>>(t.batch);
    return std::make_unique<of_loop>(t, [=] { order->shuffle(); }, [=, this](std::int64_t first, auto n, bool sums) {
      for (std::int64_t k = 0; k < n; ++k) {
        std::int64_t const i = order->records[std::size_t(first + k)];
        std::transform(x.data() + i * Width, x.data() + (i + 1) * Width, to->data() + k * Width, of);
        labels->data()[k] = y[std::size_t(i)];
      }
      use(*to->data()), use(*labels->data());
      return sums ? to->sum(n * Width) + labels->sum(n) : 0.0;
    });
  }

  std::vector<From> x;
  std::vector<std::int64_t> y;
};

/// A source that waits as long for each record as a file on a network might.
struct slow {
  std::int64_t n;
  auto fields() const { return ds::fields{ds::field<"x", std::int64_t>{}}; }
  std::int64_t size() const { return n; }
  void read(std::int64_t i, auto const& out, ds::record_random&) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    out.template value<"x">() = i;
  }
};

/// A contestant that keeps its data.
template <class Data> class keeping : public contestant {
 public:
  template <class Make> keeping(std::shared_ptr<Data const> data, Make const& make)
      : data_(std::move(data)), of_(make(*data_)) {}
  void run(int epochs) override { of_->run(epochs); }
  totals check() override { return of_->check(); }

 private:
  std::shared_ptr<Data const> data_;
  std::unique_ptr<contestant> of_;
};

using made = std::unique_ptr<contestant>;

template <class Source, class Order> made loading(Source from, Order order, task const& t) {
  return std::make_unique<of_loader<Source, Order>>(std::move(from), order, t);
}
template <class Data, class Make> made with(std::shared_ptr<Data const> data, Make const& make) {
  return std::make_unique<keeping<Data>>(std::move(data), make);
}

template <class Data> made labelled_case(task const& t) {
  return with(std::make_shared<Data const>(t.records), [&](Data const& data) -> made {
    if (t.way == "loop") return data.loop(t);
    if constexpr (!Data::mapped)
      if (t.way == "resident") return std::make_unique<of_resident<decltype(data.source())>>(data.source(), t);
    return loading(data.source(), shuffled, t);
  });
}
/// Records of T in memory, one after another: the loop is memcpy.
template <class T> made memory_case(task const& t, std::int64_t width) {
  using elements = std::vector<T>;
  return with(std::make_shared<elements const>(numbers<T>(t.records * width, 251)), [&](elements const& x) -> made {
    if (t.way != "loop") return loading(ds::in_memory{ds::column{ds::field<"x", T>{width}, x}}, ds::sequential{}, t);
    auto const to = std::make_shared<buffer<T>>(t.batch * width);
    return std::make_unique<of_loop>(t, [] {}, [=, &x](std::int64_t first, auto n, bool sums) {
      std::memcpy(to->data(), x.data() + first * width, std::size_t(n * width) * sizeof(T));
      use(*to->data());
      return sums ? to->sum(n * width) : 0.0;
    });
  });
}
made file_case(task const& t) {
  if (t.way != "loop") return loading(ds::raw_records<ds::field<"x", std::uint8_t>>(t.file, {row}), shuffled, t);
  return with(std::make_shared<ds::mapped_file const>(t.file), [&](ds::mapped_file const& file) -> made {
    auto const order = std::make_shared<shuffled_table>(t.records);
    auto const to = std::make_shared<buffer<std::uint8_t>>(t.batch * row);
    return std::make_unique<of_loop>(t, [=] { order->shuffle(); }, [=, &file](std::int64_t first, auto n, bool sums) {
      for (std::int64_t k = 0; k < n; ++k)
        std::memcpy(to->data() + k * row, file.bytes().data() + order->records[std::size_t(first + k)] * row, row);
      use(*to->data());
      return sums ? to->sum(n * row) : 0.0;
    });
  });
}
made slow_case(task const& t) {
  if (t.way != "loop") return loading(slow{t.records}, ds::sequential{}, t);
  return std::make_unique<of_loop>(t, [] {}, [](std::int64_t first, std::int64_t n, bool) {
    double sum = 0;
    for (std::int64_t i = first; i < first + n; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      sum += double(i);
    }
    return sum;
  });
}

made make(task const& t) {
  if (t.of == "floats") return labelled_case<labelled<float, 20>>(t);
  if (t.of == "digits") return labelled_case<labelled<std::uint8_t, 64>>(t);
  if (t.of == "bytes") return memory_case<std::uint8_t>(t, row);
  if (t.of == "single") return memory_case<std::int64_t>(t, 1);
  if (t.of == "file") return file_case(t);
  if (t.of == "slow") return slow_case(t);
  throw std::runtime_error("there is no case " + t.of);
}

std::map<std::string, made> slots;

void answer(std::istream& words, std::ostream& out) {
  std::string command, name;
  words >> command >> name;
  if (command == "hello") {
    out << R"({"name": "the library, and a loop that does the same", "compiler": "g++ )" << __VERSION__
        << R"(", "flags": ")" << BENCH_FLAGS << "\"}";
    return;
  }
  if (command == "load") {
    task t;
    words >> t.of >> t.way >> t.workers >> t.records >> t.batch >> t.file;
    slots[name] = make(t);
    out << "{}";
    return;
  }
  if (command == "unload") {
    slots.erase(name);
    out << "{}";
    return;
  }
  contestant& of = *slots.at(name);
  if (command == "check") {
    totals const t = of.check();
    out << "{\"records\": " << t.records << ", \"sum\": " << t.sum << "}";
    return;
  }
  int epochs = 1;
  words >> epochs;
  auto const began = std::chrono::steady_clock::now();
  of.run(epochs);
  out << "{\"seconds\": " << std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() / epochs
      << "}";
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    std::istringstream words(line);
    std::ostringstream out;
    out.precision(17);
    try {
      answer(words, out);
    } catch (std::exception const& e) {
      std::string text = e.what();
      for (char& c : text)
        if (c == '"' || c == '\\' || c == '\n') c = ' ';
      out.str("");
      out << "{\"error\": \"" << text << "\"}";
    }
    std::puts(out.str().c_str());
    std::fflush(stdout);
  }
  slots.clear();
}
