// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The tasks of docs/how_to.md that concern files and data, each with what must hold after it.
#include "../parts/arguments.hpp"
#include "../parts/claim.hpp"
#include "../parts/output.hpp"

#include <descent/data/csv.hpp>
#include <descent/data/loader.hpp>
#include <descent/data/npy.hpp>
#include <descent/data/sources.hpp>
#include <descent/data/token_file.hpp>
#include <descent/descent.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/io/checkpoints.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds = descent;
using example::claim, example::close;

namespace {

/// A new folder, which is current and is removed at the end.
struct work_folder {
  std::filesystem::path before = std::filesystem::current_path();
  std::string path = (std::filesystem::temp_directory_path() / "how_to_XXXXXX").string();
  work_folder() {
    if (!::mkdtemp(path.data())) throw std::runtime_error(path + ": cannot be made");
    std::filesystem::current_path(path);
  }
  work_folder(work_folder const&) = delete;
  ~work_folder() {
    std::filesystem::current_path(before);
    std::filesystem::remove_all(path);
  }
};

struct model {
  std::vector<float> w = std::vector<float>(8), dw = w, b = std::vector<float>(2), db = b;

  ds::parameters<float> parameters() {
    ds::parameters<float> params;
    params.add("w", w, dw);
    params.add("b", b, db);
    return params;
  }
  void backward() {
    for (std::size_t i = 0; i < w.size(); ++i) dw[i] = w[i] - float(i);
    for (std::size_t i = 0; i < b.size(); ++i) db[i] = b[i] - 1;
  }
};

// ---- the optimizer

void averages() {
  model m;
  auto const params = m.parameters();
  ds::optimizer opt{params, ds::sgd{.lr = 0.1}, ds::ema{.decay = 0.5}};
  for (int t = 0; t < 2; ++t) m.backward(), opt.step();
  // snippet: average_file
  ds::save_file("ema.safetensors", ds::named("w", opt.average("w")), ds::named("b", opt.average("b")));
  // end
  model other;
  ds::load_file("ema.safetensors", other.parameters());
  claim(other.w[7] > 0 && other.w[7] < m.w[7] && std::ranges::equal(other.b, opt.average("b")), "averages are loaded");
}

void two_players() {
  model one, other;
  ds::parameters<float> generator = one.parameters(), critic = other.parameters();
  // snippet: gan
  ds::optimizer g{generator, ds::adam{.lr = 2e-4, .beta1 = 0.5}};
  ds::optimizer d{critic, ds::sgd{.momentum = 0.9}, ds::learning_rate(ds::linear{0.01, 0, 5000})};
  // end
  one.backward(), g.step();
  for (int t = 0; t < 5; ++t) other.backward(), d.step();
  // snippet: gan_saved
  ds::save_file("gan.safetensors", ds::named("g", g), ds::named("d", d));
  // end
  auto const w = one.w, v = other.w;
  one.backward(), g.step(), other.backward(), d.step();
  ds::load_file("gan.safetensors", ds::named("g", g), ds::named("d", d));
  claim(one.w == w && other.w == v && g.report().step == 1 && d.report().step == 5, "each resumes its own run");
}

// ---- checkpoints

void resume() {
  model one, other;
  std::int64_t epoch = 3;
  {
    auto const params = one.parameters();
    ds::optimizer opt{params, ds::adamw{.lr = 0.1}};
    for (int t = 0; t < 5; ++t) one.backward(), opt.step();
    // snippet: save
    ds::save_file("run.safetensors", opt, ds::named("epoch", epoch));
    // end
    for (int t = 0; t < 5; ++t) one.backward(), opt.step();
  }
  auto const params = other.parameters();
  epoch = 0;
  // snippet: resume
  ds::optimizer opt{params, ds::adamw{}};  // constructed as before
  ds::load_file("run.safetensors", opt, ds::named("epoch", epoch));
  // end
  for (int t = 0; t < 5; ++t) other.backward(), opt.step();
  claim(epoch == 3 && opt.report().step == 10 && one.w == other.w && one.b == other.b, "the run resumes bit for bit");
}

void several() {
  model m;
  auto const params = m.parameters();
  ds::optimizer opt{params, ds::adamw{.lr = 0.1}};
  auto const validate = [&] { return (m.w[7] - 5) * (m.w[7] - 5); };
  // snippet: several
  ds::checkpoints folder{"checkpoints", {.last = 2, .best = 1}};
  for (int step = 1; step <= 100; ++step) {
    m.backward();
    opt.step();
    if (step % 10 == 0) folder.save(step, validate(), opt);
  }
  if (auto const best = folder.best()) ds::load_file(best->path, opt);
  // end
  claim(folder.list().size() == 3 && folder.newest()->step == 100, "the last two and the best are there");
  claim(opt.report().step == folder.best()->step && opt.report().step < 90, "the best is loaded");
}

void weights() {
  model pretrained, m;
  auto const of_pretrained = pretrained.parameters();
  for (float& x : pretrained.w) x = 2;
  ds::optimizer before{of_pretrained, ds::sgd{.momentum = 0.9}};
  ds::save_file("pretrained.safetensors", before);
  // snippet: weights
  auto const params = m.parameters();
  ds::load_file("pretrained.safetensors", {.partial = true}, params);  // values alone, before the optimizer is made
  ds::optimizer opt{params, ds::adamw{}};
  // end
  claim(m.w == pretrained.w && opt.report().step == 0, "the values are loaded, and the run is new");
}

void other_names() {
  model old, m;
  std::vector<float> head(4, 7.f), dhead(4);
  auto const of_old = old.parameters();
  for (float& x : old.w) x = 3;
  ds::save_file("old.safetensors", of_old);
  // snippet: other_names
  ds::parameters<float> params;
  params.add("w", m.w, m.dw);
  params.add("head", head, dhead);  // new in this program, while the file's "b" is not
  auto const report = ds::load_file("old.safetensors", {.partial = true, .missing = ds::missing_tensors::keep}, params);
  for (auto const& name : report.kept) std::printf("not in the file: %s\n", name.c_str());
  for (auto const& name : report.left_over) std::printf("not in the program: %s\n", name.c_str());
  // end
  claim(m.w == old.w && head[0] == 7, "what both have is loaded");
  claim(report.kept == std::vector<std::string>{"head"} && report.left_over == std::vector<std::string>{"b"},
        "the report names the rest");
}

// ---- data

// snippet: own_source
struct squares {  // 1000 records, read when they are asked for
  auto fields() const { return ds::fields{ds::field<"x", float>{}, ds::field<"y", float>{}}; }
  std::int64_t size() const { return 1000; }
  void read(std::int64_t i, auto const& out, ds::record_random&) const {
    float const x = float(i) / 1000;
    out.template value<"x">() = x, out.template value<"y">() = x * x;
  }
};
// end

void raw_state() {
  model m, other;
  {
    auto const params = m.parameters();
    ds::optimizer opt{params, ds::adamw{.lr = 0.01}};
    for (int t = 0; t < 10; ++t) m.backward(), opt.step();
    other.w = m.w, other.b = m.b;
    auto const copied = [](auto const& view) { return std::vector<float>(view.begin(), view.end()); };
    auto const exp_avg = copied(opt.state<0>("w")), exp_avg_sq = copied(opt.state<1>("w"));
    auto const m_of_b = copied(opt.state<0>("b")), v_of_b = copied(opt.state<1>("b"));
    for (int t = 0; t < 10; ++t) m.backward(), opt.step();

    auto const now = other.parameters();
    // snippet: raw_state
    ds::optimizer next{now, ds::adamw{.lr = 0.01}};  // `now` has PyTorch's values
    next.set_state<0>("w", exp_avg);                 // m
    next.set_state<1>("w", exp_avg_sq);              // v; the same for every parameter
    next.set_step(10);                               // PyTorch's `step`
    // end
    next.set_state<0>("b", m_of_b), next.set_state<1>("b", v_of_b);
    for (int t = 0; t < 10; ++t) other.backward(), next.step();
  }
  claim(m.w == other.w && m.b == other.b, "the run continues bit for bit");
}

void own_source() {
  int batches = 0;
  double sum = 0;
  // snippet: own_source_used
  ds::loader data{squares{}, ds::batches{.size = 64}, ds::shuffled{.seed = 1}, ds::workers{.threads = 2}};
  for (int epoch = 0; epoch < 2; ++epoch)
    for (auto const& batch : data.epoch()) {
      std::span<float const> const x = batch.get<"x">();  // batch.size() records
      ++batches;
      sum += x[0] * x[0] == batch.get<"y">()[0];
    }
  // end
  claim(batches == 2 * 16 && sum == batches, "an epoch has each record");
}

void csv() {
  example::write_file("houses.csv", "rooms,area,price\n2,50,100\n3,80,170\n4,120,250\n");
  // snippet: csv
  ds::csv_file const file("houses.csv");
  ds::csv_numbers<ds::field<"x", float>> const x(file, 0, 2);    // two columns from column 0 on: rooms, area
  ds::csv_numbers<ds::field<"y", float>> const y(file, "price");  // the column of this name
  ds::loader data{ds::zip{x, y}, ds::batches{.size = 3}, ds::shuffled{.seed = 1}};
  auto const batch = data.next();
  // end
  auto const of_x = batch.get<"x">(), of_y = batch.get<"y">();
  claim(of_x.size() == 6 && of_y.size() == 3, "three rows of two inputs and a target");
  for (std::size_t i = 0; i < 3; ++i)
    claim(of_y[i] == (of_x[2 * i] == 2 ? 100 : of_x[2 * i] == 3 ? 170 : 250), "of one line each");
  ds::csv_numbers<ds::field<"x", float>> const all(file, 0);
  claim(all.fields().template at<0>().size() == 3, "a number alone is the first of all columns that are left");
}

void npy() {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
  header.resize(117, ' ');
  std::string const begin("\x93NUMPY\x01\x00\x76\x00", 10);
  float const elements[] = {1, 2, 3, 4, 5, 6};
  example::write_file("x.npy", begin + header + "\n" + std::string(reinterpret_cast<char const*>(elements), 24));
  // snippet: npy
  ds::npy_file<ds::field<"x", float>> const x("x.npy");  // numpy.save("x.npy", x.astype("float32")), of 3 x 2
  ds::loader data{x, ds::batches{.size = 3}};
  auto const batch = data.next();  // the first axis counts records: shape 3 x 2
  // end
  claim(batch.shape<"x">() == std::vector<std::int64_t>{3, 2} && batch.get<"x">()[5] == 6, "rows of the array");
}

void tokens() {
  std::string bytes;
  auto const add = [&](auto x) { bytes.append(reinterpret_cast<char const*>(&x), sizeof x); };
  for (int i = 0; i < 256; ++i) add(std::int32_t(i == 0 ? 20240520 : i == 1 ? 1 : i == 2 ? 101 : 0));
  for (int i = 0; i < 101; ++i) add(std::uint16_t(i));
  example::write_file("train.bin", bytes);
  // snippet: tokens
  ds::token_file const text("train.bin", 10);  // records of 10 tokens and the 10 that follow each
  ds::loader data{text, ds::batches{.size = 4}, ds::shuffled{.seed = 1}};
  auto const batch = data.next();
  auto const tokens = batch.get<"tokens">(), targets = batch.get<"targets">();  // 4 x 10 std::int32_t each
  // end
  claim(text.size() == 10 && tokens.size() == 40 && targets[0] == tokens[0] + 1, "targets follow their tokens");
}

}  // namespace

int main() {
  return example::exit_code([] {
    work_folder const folder;
    for (auto const task :
         {averages, two_players, resume, several, weights, other_names, raw_state, own_source, csv, npy, tokens})
      task();
  });
}
