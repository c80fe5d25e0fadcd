// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Checkpoints of several ranks: any number of them goes on from what any number has saved, and whatever happens to one
// of them, all are told, and the old checkpoint or the new one is there.
#include <descent/any_optimizer.hpp>
#include <descent/comm/threads.hpp>
#include <descent/io/async_save.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/io/checkpoints.hpp>
#include <descent/io/collect.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/model_parallel.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lion.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/clock.hpp"
#include "support/file_difference.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/remote.hpp"
#include "support/run_file.hpp"
#include "support/saved_objects.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ds = descent;
using namespace std::string_literals;
using namespace std::string_view_literals;
using fault = ds::comm::threads::fault;
using ranks::has, ranks::on_ranks, ranks::with_ranks;
using test::contents, test::file_difference, test::message, test::temporary_folder;
using nlohmann::json;
using strings = std::vector<std::string>;

namespace {

// ---- what is trained -----------------------------------------------------------------------------------------------

constexpr int items = 30;  // of a batch; the numbers of ranks divide it

/// Seven chunks: with an empty tensor, one of a single element, and one whose rows cross chunks.
std::vector<std::size_t> const several{4099, 1, 0, 8195, 7};
/// Fewer chunks than ranks.
std::vector<std::size_t> const few{5, 0, 3};

template <class Value> using model = ranks::model<Value, float>;

/// The end of a backward pass, and the step.
template <class Opt, class Model> void end(Opt& opt, Model& m, double weight) {
  if constexpr (requires { opt.ready(0); })
    for (std::size_t k = m.value.size(); k-- > 0;) opt.ready(k);
  opt.step(weight);
}
/// A step on one rank's share of a batch. The batch's gradient is the same for any number of ranks: what the first one
/// adds, the last one takes away. Hyperparameters change on the way.
template <class Opt, class Model> void step(Opt& opt, Model& m, int t, int rank, int team) {
  if (t == 1) opt.group(1).lr /= 2, opt.freeze(0);
  if (t == 4) opt.freeze(0, false);
  double const scale = opt.loss_scale();
  int const weight = items / team, extra = (rank == 0) - (rank == team - 1);
  for (std::size_t k = 0; k < m.value.size(); ++k)
    for (std::size_t i = 0; i < m.value[k].size(); ++i)
      m.gradient[k][i] =
          float(scale * (ranks::gradient_of(0, t, k, i) * weight + ranks::gradient_of(1, t, k, i) * extra));
  end(opt, m, weight);
}
template <class Opt, class Model> void train(Opt& opt, Model& m, int from, int to, int rank, int team) {
  for (int t = from; t < to; ++t) step(opt, m, t, rank, team);
}
template <class Opt, class Model, class Comm> void train(Opt& opt, Model& m, int from, int to, Comm const& comm) {
  train(opt, m, from, to, comm.rank(), comm.size());
}

/// What is stored beside the values: averages and slow weights; masters, with a loss scale; the other half of masters.
struct averaged {
  using value = float;
  template <class... Ps> static auto make(ds::parameters<float> const& list, Ps... policies) {
    return accumulating(1, list, policies...);
  }
  template <class... Ps> static auto accumulating(int n, ds::parameters<float> const& list, Ps... policies) {
    return ds::optimizer{
        list, ds::adamw{.lr = 0.01}, ds::ema{.decay = 0.5}, ds::lookahead{.k = 2}, ds::accumulate{n}, policies...};
  }
  /// In buckets, of another size for each number of ranks.
  template <class Comm> static auto shards(Comm& comm) {
    return ds::sharded{comm, ds::ordered_sum{}, ds::overlap{.bucket_bytes = 4000 * 4 * comm.size()}};
  }
};
struct scaled {
  using value = ds::half;
  template <class... Ps> static auto make(ds::parameters<ds::half, float> const& list, Ps... policies) {
    return ds::optimizer{list, ds::adamw{.lr = 0.01}, ds::master<float>{}, ds::accumulate{1},
                         ds::dynamic_loss_scale{.init = 4, .interval = 2}, policies...};
  }
  template <class Comm> static auto shards(Comm& comm) { return ds::sharded{comm, ds::ordered_sum{}}; }
};
struct in_two_halves {
  using value = ds::bfloat16;
  template <class... Ps> static auto make(ds::parameters<ds::bfloat16, float> const& list, Ps... policies) {
    return ds::optimizer{list, ds::lion{.lr = 0.001}, ds::master_remainder{}, ds::accumulate{1}, policies...};
  }
  template <class Comm> static auto shards(Comm& comm) { return ds::sharded{comm, ds::ordered_sum{}}; }
};

template <class Comm> auto replicas(Comm& comm) { return ds::replicated{comm, ds::ordered_sum{}}; }
/// Calls f(way, policy) for both ways to share the work, on every rank of one world.
template <class Storage, class F> void in_both_ways(int team, F const& f) {
  with_ranks(team, [&](auto& comm) {
    f(comm, "replicated", replicas(comm));
    f(comm, "sharded", Storage::shards(comm));
  });
}

// ---- what is compared ----------------------------------------------------------------------------------------------

/// All bytes that a rank has of a run.
template <class Opt, class Model> std::string all_of(Opt& opt, Model const& m) {
  std::string all;
  auto const add = [&](void const* data, std::size_t bytes) {
    if (bytes) all.append(static_cast<char const*>(data), bytes);
  };
  opt.save([&](std::string const& name, auto elements) {
    all += name;
    add(elements.data(), elements.size_bytes());
  });
  for (auto const& v : m.value) add(v.data(), v.size() * sizeof v[0]);
  for (int g = 0; g < 2; ++g) all += std::to_string(opt.group(g).lr);
  return all;
}

/// One file of what was saved at `path`.
std::string whole(std::string const& path) {
  ds::collect(path, path + ".whole");
  return path + ".whole";
}

/// The part files of a manifest, which are in its folder; those of other names are none of them.
strings parts_of(temporary_folder const& folder, std::string const& manifest) {
  strings all;
  for (auto const& name : folder.names())
    if (name.starts_with(manifest + ".") && has(name, "-of-")) all.push_back(name);
  return all;
}

// ---- the law -------------------------------------------------------------------------------------------------------

/// One process, and every number of ranks in both ways, save after three steps. All of them load what each has saved,
/// and have the state of the process; and after one step more, and after three.
template <class Storage> void all_go_on_from_all(std::vector<std::size_t> const& sizes, std::vector<int> const& teams) {
  using model = ::model<typename Storage::value>;
  temporary_folder folder;
  strings files{folder / "one"};
  model one(0, sizes);
  auto alone = Storage::make(one.list());
  train(alone, one, 0, 3, 0, 1);
  ds::save_file(files[0], alone);
  CHECK(file_difference(files[0], whole(files[0])) == "");
  model const saved = one;
  train(alone, one, 3, 4, 0, 1);
  model const fourth = one;
  train(alone, one, 4, 6, 0, 1);
  ds::save_file(folder / "end", alone);

  for (int const team : teams) {
    auto const name = [&](char const* way) { return folder / (way + std::to_string(team)); };
    in_both_ways<Storage>(team, [&](auto& comm, char const* way, auto policy) {
      INFO(way, ", ", team, " ranks save");
      model m(comm.rank(), sizes);
      auto opt = Storage::make(m.list(), policy);
      train(opt, m, 0, 3, comm);
      ds::save_file(name(way), opt);
      CHECK(m == saved);
      train(opt, m, 3, 4, comm);
      CHECK(m == fourth);
    });
    for (char const* way : {"replicated", "sharded"}) {
      INFO(way, ", ", team, " ranks have saved");
      CHECK(file_difference(files[0], whole(name(way))) == "");
      CHECK(parts_of(folder, way + std::to_string(team)).size() == (way[0] == 's' ? std::size_t(team) : 0));
      files.push_back(name(way));
    }
  }

  auto const go_on = [&](auto& opt, model& m, int rank, int team) {
    std::string state;
    for (auto const& file : files) {
      CAPTURE(file);
      auto const report = ds::load_file(file, opt);
      CHECK(m == saved);
      if (state.empty()) state = all_of(opt, m);
      CHECK((all_of(opt, m) == state));
      CHECK(report.same_configuration);
      CHECK(report.converted == 0);
      CHECK(report.left_over.empty());
      train(opt, m, 3, 4, rank, team);
      CHECK(m == fourth);
    }
    train(opt, m, 4, 6, rank, team);
    CHECK(m == one);
  };
  model other(7, sizes);
  auto another = Storage::make(other.list());
  go_on(another, other, 0, 1);
  for (int const team : teams)
    in_both_ways<Storage>(team, [&](auto& comm, char const* way, auto policy) {
      INFO(way, ", ", team, " ranks load");
      model m(comm.rank() + 9, sizes);
      auto opt = Storage::make(m.list(), policy);
      go_on(opt, m, comm.rank(), team);
      std::string const end = folder / (way + std::to_string(team) + ".end");
      ds::save_file(end, opt);
      if (comm.rank() == 0) CHECK(file_difference(folder / "end", whole(end)) == "");
    });
}

}  // namespace

TEST_CASE("any number of ranks resumes, bit for bit, from what any number has saved: averages, in buckets") {
  all_go_on_from_all<averaged>(several, {1, 2, 3, 5});
  all_go_on_from_all<averaged>(few, {1, 3, 6});
}
TEST_CASE("any number of ranks resumes, bit for bit, from what any number has saved: masters and a loss scale") {
  all_go_on_from_all<scaled>(several, {1, 2, 3, 5});
}
TEST_CASE("any number of ranks resumes, bit for bit, from what any number has saved: masters in two halves") {
  all_go_on_from_all<in_two_halves>(several, {1, 2, 3, 5});
}

namespace {

/// A part of the user's own, which may refuse what it is given.
struct counter {
  int count = 0;
  bool refuses = false;
  void save(auto const& f) const { f("count"s, std::span<int const>(&count, 1)); }
  void load(auto const& f) {
    std::span<int const> const x = f("count"s, std::span<int const>(&count, 1));
    if (refuses) throw std::invalid_argument("no count is good enough");
    count = x[0];
  }
};

}  // namespace

TEST_CASE("all parts of a run are in one file: two optimizers, one of them any, a number, and what has load(f)") {
  temporary_folder folder;
  for (int const team : {3, 2})
    with_ranks(team, [&](auto& comm) {
      model<float> m(comm.rank(), several), n(comm.rank(), few);
      auto opt = averaged::make(m.list(), averaged::shards(comm));
      ds::any_optimizer other(averaged::make(n.list(), averaged::shards(comm)));
      int number = 10 * team;
      counter counted{number};
      auto const saved = [&](auto const& f) {
        f(opt, ds::named("other", other), ds::named("number", number), counted);
      };
      if (team == 3) {
        train(opt, m, 0, 3, comm);
        return saved([&](auto&&... parts) { ds::save_file(folder / "run", parts...); });
      }
      auto const load = [&] { saved([&](auto&&... parts) { ds::load_file(folder / "run", parts...); }); };
      auto const before = all_of(opt, m);
      counted.refuses = comm.rank() == 1;  // the other rank has taken its count by then
      std::string const why = message<std::exception>(load);
      CHECK(why == (comm.rank() == 1 ? ""s : "rank 1: "s) + "no count is good enough");
      CHECK(counted.count == number);
      CHECK((all_of(opt, m) == before));
      counted.refuses = false;
      load();
      CHECK(number == 30);
      CHECK(counted.count == 30);
      CHECK(opt.report().step == 3);
    });
}

// ---- what differs from rank to rank --------------------------------------------------------------------------------

namespace {

/// What a program may have beside the optimizer of all ranks: everything is 1, but part `which` is x.
struct beside {
  static constexpr char const* parts[] = {
      "number", "text", "list", "count", "alone.w0", "alone.groups", "loader.position", "loader.fingerprint"};
  int number;
  std::string text;
  std::vector<float> list;
  counter counted;
  model<float> m{0, few};
  decltype(ds::optimizer{m.list(), ds::adamw{}}) opt{m.list(), ds::adamw{.lr = 0.1}};
  decltype(test::loader_of(1)) data;

  explicit beside(int which, int x = 1)
      : number(which == 0 ? x : 1), text(std::size_t(which == 1 ? x : 1), 'x'),
        list(std::size_t(3), float(which == 2 ? x : 1)), counted{which == 3 ? x : 1},
        data(test::loader_of(which == 7 ? std::uint64_t(x) : 1)) {
    for (auto& v : m.gradient) std::ranges::fill(v, float(which == 4 ? x : 1));
    opt.step();
    if (which == 4) m.value[0][0] = float(x);
    if (which == 5) opt.group(1).lr = x;
    for (int t = 0; t < (which == 6 ? x : 1); ++t) data.next();
  }
  /// f of all parts, each as `as` makes it one.
  template <class As, class F> auto with(As const& as, F const& f) {
    return f(as(ds::named("number", number)), as(ds::named("text", text)), as(ds::named("list", list)), as(counted),
             as(ds::named("alone", opt)), as(data));
  }
  std::string all() {
    std::string x = all_of(opt, m) + std::to_string(number) + " " + text + " " + std::to_string(counted.count);
    for (float const one : list) x += " " + std::to_string(one);
    return x + " " + std::to_string(data.position().epoch) + " " + std::to_string(data.position().batch);
  }
};
auto const plain = [](auto&& part) -> auto& { return part; };
auto const own = [](auto&& part) { return ds::each_rank(part); };

}  // namespace

TEST_CASE("what rank 0 would write for all is the same on all ranks, or nothing is written") {
  for (int const team : {2, 3}) {
    temporary_folder folder;
    in_both_ways<averaged>(team, [&](auto& comm, char const* way, auto policy) {
      model<float> m(comm.rank(), few);
      auto opt = averaged::make(m.list(), policy);
      std::string const run = folder / way;
      ds::save_file(run, opt);
      ds::async_save saver;
      ds::checkpoints const newest(folder / (way + "s"s));
      ds::checkpoints checkpoints(folder / (way + "s"s));
      for (int which = 0; which <= 8; ++which) {
        CAPTURE(which);
        beside x(which, comm.rank() == team - 1 ? 2 : 1);  // the last rank has another
        auto const refused = [&](auto const& save) {
          std::string const why = message<std::invalid_argument>([&] { x.with(plain, save); });
          std::string const part = which < 8 ? beside::parts[which] : "";
          CHECK(why == (which == 8 ? ""
                                   : "save_file: ranks 0 and " + std::to_string(team - 1) + " have different '" + part +
                                         "', of which a file keeps one for all ranks: give all ranks the same, or save "
                                         "the part of each as each_rank(part)"));
        };
        refused([&](auto&... parts) { saver.save(run, opt, parts...); });
        saver.wait();
        refused([&](auto&... parts) { checkpoints.save(1, std::nullopt, opt, parts...); });
        refused([&](auto&... parts) { ds::save_file(run, opt, parts...); });
        if (which < 8) CHECK((!newest.newest() && ds::load_file(run, opt).left_over.empty()));
        // all may differ in what is of each rank
        CHECK(message<std::exception>(
                  [&] { x.with(own, [&](auto&&... parts) { ds::save_file(run + ".own", opt, parts...); }); }) == "");
      }
      CHECK(newest.newest()->step == 1);
    });
  }
}

TEST_CASE("each_rank: each rank resumes with its own part, on as many ranks") {
  for (int const team : {1, 2, 3}) {
    temporary_folder folder;
    in_both_ways<averaged>(team, [&](auto& comm, char const* way, auto policy) {
      std::string const run = folder / way, late = run + ".late", other = run + ".other";
      int const rank = comm.rank();
      model<float> m(rank, few);
      auto opt = averaged::make(m.list(), policy);
      int common = 5;
      for (int which = 0; which < 8; ++which) {
        CAPTURE(which);
        beside x(which, rank + 2);
        std::string const mine = x.all();
        auto const to = [&](auto const& save) {
          x.with(own, [&](auto&&... parts) { save(opt, ds::named("common", common), parts...); });
        };
        to([&](auto&&... parts) { ds::save_file(run, parts...); });
        ds::async_save saver;
        to([&](auto&&... parts) { saver.save(late, parts...); });
        x.number = 9, x.list.assign(3, 9.0f), x.m.value[0][0] = 9, common = 9, x.opt.step();
        saver.wait();
        if (rank == 0) ds::collect(run, other);
        ds::save_file(run + ".unused", opt);  // waits for rank 0
        for (auto const& path : {run, late, other}) {
          CAPTURE(path);
          beside y(which == 7 ? 7 : 8, which == 7 ? rank + 2 : 1);
          common = 9;
          auto const report = y.with(
              own, [&](auto&&... parts) { return ds::load_file(path, opt, ds::named("common", common), parts...); });
          CHECK((y.all() == mine));
          CHECK((common == 5 && report.left_over.empty() && report.same_configuration));
        }
      }
    });
    // by another number of ranks
    with_ranks(team == 2 ? 3 : 2, [&](auto& comm) {
      model<float> m(comm.rank(), few);
      auto opt = averaged::make(m.list(), replicas(comm));
      beside x(8);
      int number = 7, common = 7;
      std::string const path = folder / "sharded", now = std::to_string(team == 2 ? 3 : 2);
      std::string const why = message<std::exception>([&] {
        ds::load_file(path, {.partial = true}, opt, ds::each_rank(ds::named("number", number)),
                      ds::each_rank(ds::named("alone", x.opt)));
      });
      CAPTURE(why);
      CHECK(has(why, "\n  'number' is there for each of " + std::to_string(team) + " ranks, there are now " + now +
                         ": leave the part out, with load_options{.partial = true}"));
      CHECK((has(why, "'alone.w0' is there for each of ") && !has(why, "missing")));
      auto const report = ds::load_file(path, {.partial = true}, opt, ds::named("common", common));
      CHECK((number == 7 && common == 5));
      CHECK(has(report.left_over.at(0), "rank.0."));
    });
  }
}

TEST_CASE("what is on a device is compared, too, in copies of any length") {
  std::size_t const half = std::exchange(ds::detail::run_stream::half, 16);
  temporary_folder folder;
  with_ranks(2, [&](auto& comm) {
    model<float> m(0, few);
    auto opt = averaged::make(m.list(), replicas(comm));
    for (std::size_t const n : {0, 1, 4, 5, 11}) {
      test::remote far{"far", std::vector<std::uint32_t>(n, 7)};
      ds::save_file(folder / "run", opt, far);
      for (std::size_t i = 0; i < n; ++i) {
        far.x[i] += unsigned(comm.rank());
        CHECK(has(message<std::exception>([&] { ds::save_file(folder / "run", opt, far); }), "have different 'far'"));
        far.x[i] = 7;
      }
    }
  });
  ds::detail::run_stream::half = half;
}

TEST_CASE("each_rank: a part of all ranks is none, and one name is one part") {
  temporary_folder folder;
  with_ranks(2, [&](auto& comm) {
    model<float> m(0, few);
    auto opt = averaged::make(m.list(), averaged::shards(comm));
    int n = comm.rank();
    CHECK(message<std::invalid_argument>([&] { ds::save_file(folder / "run", ds::each_rank(opt)); }) ==
          "each_rank(part): the part must be without ranks, is one of all ranks");
    CHECK(has(message<std::exception>([&] {
                ds::save_file(folder / "run", opt, ds::each_rank(ds::named("n", n)), ds::each_rank(ds::named("n", n)));
              }),
              "two parts have the name 'rank."));
    std::string const why = message<std::exception>([&] {
      if (comm.rank() == 0) ds::save_file(folder / "run", opt, ds::each_rank(ds::named("n", n)));
      else ds::save_file(folder / "run", opt);
    });
    CHECK(why == "save_file: ranks 0 and 1 have different parts");
  });
  CHECK(folder.names().empty());
  int n = 3, m = 0;  // one process is rank 0 of one
  ds::save_file(folder / "run", ds::named("a", ds::each_rank(ds::named("n", n))));
  ds::load_file(folder / "run", ds::each_rank(ds::named("a", ds::named("n", m))));
  CHECK((m == 3 && folder.names() == strings{"run"}));
  CHECK(test::listed(folder / "run") == strings{"rank.0.a.n I32 []"});
}

// ---- when one rank fails -------------------------------------------------------------------------------------------

namespace {

/// Each case is tried in both ways: f(comm, optimizer, model, sharded, folder) after "run" was saved at step 3 and two
/// steps more. Then "run" is still that file, and the next save leaves nothing beside its own parts.
template <class F> void spoil(int team, F const& f) {
  for (bool const sharded : {false, true}) {
    CAPTURE(sharded);
    temporary_folder folder;
    std::vector<std::string> states(static_cast<std::size_t>(team));
    auto const trained = [&](auto& comm, auto policy, auto const& work) {
      model<float> m(comm.rank(), several);
      auto opt = averaged::make(m.list(), policy);
      work(opt, m);
    };
    auto const in_way = [&](auto& comm, auto const& work) {
      if (sharded) trained(comm, averaged::shards(comm), work);
      else trained(comm, replicas(comm), work);
    };
    with_ranks(team, [&](auto& comm) {
      in_way(comm, [&](auto& opt, auto& m) {
        train(opt, m, 0, 3, comm);
        ds::save_file(folder / "run", opt);
        states[std::size_t(comm.rank())] = all_of(opt, m);
        train(opt, m, 3, 5, comm);
        f(comm, opt, m, sharded, folder);
        ds::load_file(folder / "run", opt);
        CHECK((all_of(opt, m) == states[std::size_t(comm.rank())]));
        ds::save_file(folder / "run", opt);
        if (comm.rank() == 0) CHECK(folder.names().size() == (sharded ? std::size_t(team) + 1 : 1));
        ds::load_file(folder / "run", opt);
        CHECK((all_of(opt, m) == states[std::size_t(comm.rank())]));
      });
    });
  }
}
/// What all ranks are told of a failure of one.
std::string told(int rank, int failed, std::string const& what) {
  return rank == failed ? what : "rank " + std::to_string(failed) + ": " + what;
}

}  // namespace

TEST_CASE("a rank that cannot write fails the save of all; the old checkpoint stays") {
  spoil(3, [](auto& comm, auto& opt, auto&, bool sharded, auto& folder) {
    int const failed = sharded ? 1 : 0;  // replicated: rank 0 alone writes
    std::string const path = folder / (comm.rank() == failed ? "gone/run" : "run");
    auto const refuses = [&](auto const& f) {
      std::string const why = message<std::exception>(f);
      CAPTURE(why);
      CHECK(why.starts_with(told(comm.rank(), failed, folder / "gone/run")));
      CHECK(why.ends_with(": cannot be written: its folder cannot be opened: No such file or directory"));
    };
    refuses([&] { ds::save_file(path, opt); });
    ds::async_save saver;
    saver.save(path, opt);
    CHECK(saver.pending());
    refuses([&] { saver.wait(); });
    CHECK_FALSE(saver.pending());
    saver.wait();
    saver.save(path, opt);
    refuses([&] { saver.save(folder / "run", opt); });
    CHECK_FALSE(saver.pending());
    if (comm.rank() == 0) CHECK(folder.names().size() == (sharded ? 4 : 1));  // nothing of the saves that failed

    std::string const is_folder = ": cannot be written: Is a directory";
    CHECK(message<std::exception>([&] { ds::save_file(folder.path, opt); }) == folder.path + is_folder);
  });
}

TEST_CASE("a disk that fails at any place leaves nothing of the save, unless its file is there already") {
  static std::atomic<int> calls, fails;
  auto const sync = [](char const* call, std::size_t&) { return call == "fsync"sv && ++calls == fails ? EIO : 0; };
  for (bool const in_background : {false, true})
    for (int place = 1; place <= 7; ++place) {  // for each of three files: itself, then its folder
      CAPTURE(in_background);
      CAPTURE(place);
      temporary_folder folder;
      with_ranks(2, [&](auto& comm) {
        model<float> m(0, few);
        auto opt = averaged::make(m.list(), averaged::shards(comm));
        auto const save = [&] {
          if (in_background) ds::async_save().save(folder / "run", opt);
          else ds::save_file(folder / "run", opt);
        };
        save();
        auto state = all_of(opt, m);
        train(opt, m, 0, 2, comm);
        if (place >= 6) state = all_of(opt, m);
        ds::save_file(folder / "other", opt);
        if (comm.rank() == 0) calls = 0, fails = place, ds::detail::file_calls::before = sync;
        opt.agree();
        CHECK(message<std::exception>(save).empty() == (place == 7));
        opt.agree();
        if (comm.rank() == 0) {
          ds::detail::file_calls::before = nullptr;
          CHECK(parts_of(folder, "run").size() == (place == 6 ? 4 : 2));
        }
        ds::load_file(folder / "run", opt);
        CHECK((all_of(opt, m) == state));
        save();
        if (comm.rank() == 0) CHECK(folder.names().size() == 6);
      });
    }
}

TEST_CASE("parts are beside the file that a symbolic link points to") {
  temporary_folder folder;
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink("sub/run", folder / "link");
  std::filesystem::create_symlink("link", folder / "second");
  with_ranks(2, [&](auto& comm) {
    model<float> m(0, few);
    auto opt = averaged::make(m.list(), averaged::shards(comm));
    for (char const* saved : {"link", "second", "sub/run", "link"}) {
      train(opt, m, 0, 1, comm);
      ds::save_file(folder / saved, opt);
      auto const state = all_of(opt, m);
      for (char const* loaded : {"sub/run", "second", "link"}) {
        train(opt, m, 1, 2, comm);
        ds::load_file(folder / loaded, opt);
        CHECK((all_of(opt, m) == state));
      }
    }
  });
  CHECK(folder.names() == strings{"link", "second", "sub"});
  auto const entries = std::filesystem::directory_iterator(folder / "sub");
  CHECK(std::distance(begin(entries), end(entries)) == 3);
  CHECK(file_difference(whole(folder / "second"), whole(folder / "link")) == "");
}

TEST_CASE("a rank that cannot save or load makes the save and the load of all fail, and all can continue") {
  temporary_folder folder;
  with_ranks(3, [&](auto& comm) {
    model<float> m(0, few);
    auto opt = averaged::accumulating(2, m.list(), averaged::shards(comm));
    ds::save_file(folder / "run", opt);
    m.set(0, 0, 1);
    if (comm.rank() == 2) end(opt, m, 1);
    auto const refuses = [&](auto const& f) {
      CHECK(message<std::exception>(f) ==
            told(comm.rank(), 2, "save_file() or load_file() while micro-batches wait for their update: 1"));
    };
    refuses([&] { ds::save_file(folder / "run", opt); });
    refuses([&] { ds::load_file(folder / "run", opt); });
    ds::async_save saver;
    refuses([&] { saver.save(folder / "run", opt); });
    CHECK_FALSE(saver.pending());
    CHECK(opt.report().step == 0);
    for (int t = comm.rank() == 2 ? 1 : 0; t < 2; ++t) end(opt, m, 1);
    CHECK(opt.report().step == 1);
    ds::save_file(folder / "run", opt);
    CHECK(ds::load_file(folder / "run", opt).version == ds::version);
    ds::checkpoints checkpoints(folder.path);
    CHECK(message<std::exception>([&] { checkpoints.save(comm.rank() == 2 ? -1 : 1, std::nullopt, opt); }) ==
          told(comm.rank(), 2, "checkpoints: the step must be at least 0, is -1"));
    checkpoints.save(7, 0.5, opt);
    auto const other = [&](int step, double metric) {
      return message<std::exception>([&] { checkpoints.save(step, metric, opt); });
    };
    CHECK(other(comm.rank() == 2 ? 9 : 8, 1) ==
          "checkpoints: rank 2 saves step 9 with metric 1, rank 0 saves step 8 with metric 1: all ranks must give the "
          "same");
    CHECK(other(8, comm.rank() == 1 ? std::nan("") : 0.5) ==
          "checkpoints: rank 1 saves step 8 with metric NaN, rank 0 saves step 8 with metric 0.5: all ranks must give "
          "the same");
    std::string const newer = folder / "step-7.safetensors is newer than step 6, which is to be saved: ";
    CHECK(other(6, 0.5).starts_with(told(comm.rank(), 0, "checkpoints: " + newer)));
    if (comm.rank() == 0) checkpoints.remove_after(0);
    checkpoints.save(3, std::nan(""), opt);
  });
  ds::checkpoints const left(folder.path);
  CHECK((left.newest()->step == 3 && !left.newest()->metric));
  left.remove_after(0);
  CHECK(folder.names().size() == 4);
}

TEST_CASE("ranks of a model save to files of their own and load them, all or none") {
  temporary_folder const folder;
  auto const path = [&](int rank) { return folder / ("model" + std::to_string(rank)); };
  auto const run = [&](auto const& work) {
    std::vector<float> after(2);
    ds::comm::threads world{2, std::chrono::seconds(60)};
    auto const why = on_ranks(world, [&](auto& comm) {
      std::vector<float> w(3, 1.f + float(comm.rank())), g(3, 1);
      ds::parameters<float> params;
      params.add("w", w, g);
      params.mark_part("w");
      ds::optimizer opt{params, ds::adamw{}, ds::model_parallel{comm}};
      try {
        work(opt, comm.rank());
      } catch (...) {
        after[std::size_t(comm.rank())] = w[0];
        throw;
      }
      after[std::size_t(comm.rank())] = w[0];
    });
    return std::pair{why, after};
  };
  auto const [one_path, unchanged] = run([&](auto& opt, int) { ds::save_file(path(0), opt); });
  for (auto const& why : one_path) CHECK(has(why, "ranks 0 and 1 of a model save to one path"));
  CHECK(!std::filesystem::exists(path(0)));

  auto const [saved, trained] = run([&](auto& opt, int rank) { opt.step(), ds::save_file(path(rank), opt); });
  CHECK(saved == strings(2));
  auto const [loaded, resumed] = run([&](auto& opt, int rank) { ds::load_file(path(rank), opt); });
  CHECK((loaded == strings(2) && resumed == trained));
  auto const [other, kept] = run([&](auto& opt, int) { ds::load_file(path(0), opt); });
  CHECK(has(other[1], "saved by rank 0 of 2 of a model, this is rank 1 of 2: each has a file of its own"));
  CHECK((has(other[0], "rank 1: ") && kept == std::vector<float>{1, 2}));
  run([&](auto& opt, int rank) {
    opt.step();
    if (rank == 0) opt.set_step(7);
    ds::save_file(path(rank), opt);
  });
  auto const [steps, same] = run([&](auto& opt, int rank) { ds::load_file(path(rank), opt); });
  for (auto const& why : steps) CHECK(has(why, "rank 1 of the model loads step 1, rank 0 step 7"));
  CHECK(same == std::vector<float>{1, 2});
}

TEST_CASE("sharded: the parts of masters and slow weights that a file lacks follow its values") {
  temporary_folder const folder;
  std::size_t const n = 10007;  // several chunks, divided among the ranks
  std::vector<ds::bfloat16> trained;
  for (std::size_t i = 0; i < n; ++i) trained.push_back(ds::narrow<ds::bfloat16>(float(i % 251)));
  ds::save_file(folder / "values", ds::named("w", trained));
  ranks::with_ranks(3, [&](auto& comm) {
    std::vector<ds::bfloat16> w(n, ds::narrow<ds::bfloat16>(0.f)), g(n, ds::narrow<ds::bfloat16>(0.f));
    ds::parameters<ds::bfloat16> list;
    list.add("w", w.data(), g.data(), n);
    ds::optimizer opt{list, ds::lion{.weight_decay = 0}, ds::master<float>{}, ds::lookahead{.k = 1}, ds::sharded{comm}};
    ds::load_file(folder / "values", {.missing = ds::missing_tensors::keep}, opt);
    opt.step();
    CHECK(std::memcmp(w.data(), trained.data(), n * sizeof w[0]) == 0);
  });
}

TEST_CASE("ranks that save to different folders, or read different files, get an error") {
  spoil(2, [](auto& comm, auto& opt, auto& m, bool sharded, auto& folder) {
    if (comm.rank() == 1) std::filesystem::create_directory(folder / "other");
    std::string const path = comm.rank() == 1 ? folder / "other/run" : folder / "run";
    auto const before = all_of(opt, m);
    auto const why = message<std::exception>([&] { ds::load_file(folder / (comm.rank() == 1 ? "none" : "run"), opt); });
    CHECK(why.starts_with(comm.rank() == 1 ? folder / "none: " : "rank 1: "));
    if (sharded) {
      auto const said = message<std::exception>([&] { ds::save_file(path, opt); });
      CHECK(has(said, "; rank 1 has written it: all ranks must save to the same folder"));
      CHECK(std::filesystem::exists(folder / "run"));
      CHECK_FALSE(std::filesystem::exists(folder / "other/run"));
    }
    std::string const own = folder / ("of_" + std::to_string(comm.rank()));
    CHECK(has(message<std::exception>([&] { ds::save_file(own, opt); }),
              "ranks 0 and 1 save to files of different names, this one to 'of_" + std::to_string(comm.rank()) + "'"));
    CHECK_FALSE(std::filesystem::exists(own));
    std::string const two = folder / "two", three = folder / "three";
    ds::save_file(two, opt);
    train(opt, m, 5, 6, comm);
    ds::save_file(three, opt);
    auto const now = all_of(opt, m);
    CHECK((now != before));
    std::string const mine = comm.rank() == 1 ? three : two;
    CHECK(message<std::exception>([&] { ds::load_file(mine, opt); }) ==
          mine + ": rank 1 has read a different file than rank 0");
    CHECK((all_of(opt, m) == now));
    if (comm.rank() == 0) {
      std::filesystem::remove_all(folder / "other");
      for (auto const& name : folder.names())
        if (name.starts_with("two") || name.starts_with("three")) std::filesystem::remove(folder / name);
    }
  });
}

TEST_CASE("a load that does not fit the program of one rank changes nothing on any") {
  spoil(2, [](auto& comm, auto& opt, auto& m, bool, auto& folder) {
    auto const before = all_of(opt, m);
    int number = 5;
    auto const why = message<std::exception>([&] {
      if (comm.rank() == 1) ds::load_file(folder / "run", opt, ds::named("number", number));
      else ds::load_file(folder / "run", opt);
    });
    CHECK(why == told(comm.rank(), 1, folder / "run does not fit:\n  missing: 'number'"));
    CHECK((all_of(opt, m) == before));
    CHECK(number == 5);
  });
}

// ---- files that are not what was saved -----------------------------------------------------------------------------

namespace {

using tensor_list = std::vector<ds::tensor_data>;

/// Parts that three ranks have saved, and what is done to them.
struct saved_parts {
  temporary_folder folder;
  strings names;

  saved_parts() {
    save("run", 3);
    names = parts_of(folder, "run");
    REQUIRE(names.size() == 3);
  }
  void save(std::string const& name, int steps) const {
    with_ranks(3, [&](auto& comm) {
      model<float> m(0, several);
      auto opt = averaged::make(m.list(), averaged::shards(comm));
      train(opt, m, 0, steps, comm);
      ds::save_file(folder / name, opt);
    });
  }
  std::string part(std::size_t r) const { return folder / names[r]; }

  /// Lets edit(tensors, texts) change a file.
  template <class Edit> static void rewrite(std::string const& path, Edit const& edit) {
    ds::safetensors_file const old(path);
    tensor_list tensors;
    for (auto const& t : old.tensors()) tensors.push_back({t.name, t.type, t.shape, old.bytes(t)});
    auto texts = old.metadata();
    edit(tensors, texts);
    ds::save_safetensors(path, tensors, texts);
  }
  /// The same for a part, which the manifest then names with its new hash.
  template <class Edit> void rewrite_part(std::size_t r, Edit const& edit) const {
    std::string const old = ds::safetensors_file(part(r)).header_hash();
    rewrite(part(r), edit);
    std::string const now = ds::safetensors_file(part(r)).header_hash();
    edit_parts([&](std::string& text) { replace(text, old, now); });
  }
  template <class Edit> void edit_parts(Edit const& edit) const {
    rewrite(folder / "run", [&](auto&, auto& texts) { edit(texts.at("parts")); });
  }
  static void replace(std::string& text, std::string const& from, std::string const& to) {
    auto const at = text.find(from);
    REQUIRE_MESSAGE(at != text.npos, from << " is not in " << text);
    text.replace(at, from.size(), to);
  }
  /// Two ranks and collect() refuse to read the run, with a sentence that has `why`. Nothing changes.
  void refused(std::string const& why) const {
    CAPTURE(why);
    with_ranks(2, [&](auto& comm) {
      model<float> m(5, several);
      auto opt = averaged::make(m.list(), averaged::shards(comm));
      train(opt, m, 0, 2, comm);
      auto const before = all_of(opt, m);
      std::string const said = message<std::runtime_error>([&] { ds::load_file(folder / "run", opt); });
      INFO("rank ", comm.rank(), ": ", said);
      CHECK(has(said, why));
      CHECK((said.starts_with(folder.path) || said.starts_with("rank " + std::to_string(1 - comm.rank()) + ": ")));
      CHECK((all_of(opt, m) == before));
      train(opt, m, 2, 3, comm);
    });
    std::string const said = message<std::runtime_error>([&] { ds::collect(folder / "run", folder / "whole"); });
    INFO(said);
    CHECK(has(said, why));
    CHECK_FALSE(std::filesystem::exists(folder / "whole"));
  }
};

}  // namespace

TEST_CASE("parts that are missing, damaged, or of another save are refused on all ranks") {
  saved_parts const saved;
  for (std::size_t r = 0; r < 3; ++r) {
    CAPTURE(r);
    std::string const path = saved.part(r), good = contents(path);
    std::filesystem::remove(path);
    saved.refused(saved.folder / "run" + ": __metadata__: the part '" + saved.names[r] + "' is missing, must be there");
    std::string bad = good;
    bad.back() = char(bad.back() ^ 1);
    saved.folder.write(saved.names[r], bad);
    saved.refused(path + ": tensor '");
    bad = good;
    bad[100] = char(bad[100] ^ 1);
    saved.folder.write(saved.names[r], bad);
    saved.refused(path + ": ");
    saved.folder.write(saved.names[r], good.substr(0, good.size() - 4));
    saved.refused("the number of bytes from here");
    saved.folder.write(saved.names[r], good);
  }
  saved.save("other", 4);
  auto const theirs = parts_of(saved.folder, "other");
  auto const good = contents(saved.part(1));
  std::filesystem::copy_file(saved.folder / theirs[1], saved.part(1),
                             std::filesystem::copy_options::overwrite_existing);
  saved.refused(saved.part(1) + ": __metadata__: 'xxh3_header'");
  std::filesystem::copy_file(saved.part(0), saved.part(1), std::filesystem::copy_options::overwrite_existing);
  saved.refused("'xxh3_header'");
  saved.folder.write(saved.names[1], good);
  saved.save("again", 3);  // is not damaged by what was done to the run
  CHECK(file_difference(whole(saved.folder / "run"), whole(saved.folder / "again")) == "");
}

TEST_CASE("parts with a hole, an overlap or another shape are refused on all ranks, with the tensor") {
  auto const tried = [](auto const& change, std::string const& why) {
    saved_parts const saved;
    change(saved);
    saved.refused(why);
  };
  auto const ranges = [&](std::vector<std::size_t> const& ranks, auto const& edit, std::string const& why) {
    tried(
        [&](saved_parts const& saved) {
          for (auto const r : ranks)
            saved.rewrite_part(r, [&](auto&, auto& texts) {
              auto all = json::parse(texts.at("ranges"));
              edit(all);
              texts.at("ranges") = all.dump();
            });
        },
        why);
  };
  for (std::size_t r = 0; r < 3; ++r)
    for (std::int64_t const begin : {std::int64_t{-1}, std::int64_t{1}, std::int64_t{4097}, INT64_MAX})
      ranges({r}, [&](json& all) { all["w3.average"]["begin"] = begin; }, ": 'w3.average': the first element is ");
  ranges(
      {1}, [](json& all) { all.erase("w3.average"); }, ": __metadata__: the range of 'w3.average' is missing, must be");
  ranges({1}, [](json& all) { all["w3.average"] = 1; }, "'ranges' is unreadable: ");
  ranges({1}, [](json& all) { all["w3.average"]["shape"][0] = "x"; }, "'ranges' is unreadable: ");
  ranges({1}, [](json& all) { all["w3.average"]["shape"] = {5, 1639}; },
         "'w3.average': the type and shape is F32 [5, 1639], must be F32 [1639, 5], as in other parts");
  ranges({0, 1, 2}, [](json& all) { all["w3.average"]["shape"] = {std::int64_t{1} << 62, 4}; },
         "'w3.average': the shape of the whole tensor is [4611686018427387904, 4], must be extents of at least 0");
  ranges({0, 1, 2}, [](json& all) { all["w3.average"]["shape"] = {1640, 5}; },
         "run: 'w3.average': the number of elements of all parts is 8195, must be 8200");
  ranges({0, 1, 2}, [](json& all) { all["w3.average"]["shape"] = {1638, 5}; },
         "run: 'w3.average': the number of elements of all parts is 8195, must be 8190");

  auto const of_average = [](tensor_list& tensors) -> ds::tensor_data& {
    return *std::ranges::find(tensors, "w3.average"s, &ds::tensor_data::name);
  };
  tried(
      [&](saved_parts const& saved) {
        saved.rewrite_part(1, [&](tensor_list& tensors, auto&) { of_average(tensors).type = ds::dtype::i32; });
      },
      "'w3.average': the type and shape is I32 [1639, 5], must be F32 [1639, 5], as in other parts");
  tried(
      [&](saved_parts const& saved) {
        saved.rewrite_part(0, [&](tensor_list& tensors, auto&) {
          auto& t = of_average(tensors);
          t.bytes = t.bytes.first(t.bytes.size() - 4), t.shape[0] -= 1;
        });
      },
      ": 'w3.average': the first element is ");
  tried(
      [&](saved_parts const& saved) {
        saved.rewrite_part(0, [&](tensor_list& tensors, auto&) {
          tensors.erase(std::ranges::find(tensors, "w3.average"s, &ds::tensor_data::name));
        });
      },
      ": 'w3.average': the first element is ");
}

TEST_CASE("a manifest that names other files, other hashes, or is no JSON, is refused on all ranks") {
  auto const tried = [](auto const& edit, std::string const& why) {
    saved_parts const saved;
    saved.edit_parts([&](std::string& text) {
      auto all = json::parse(text);
      edit(all, saved);
      text = all.dump();
    });
    saved.refused(why);
  };
  tried([](json& all, auto& saved) { all[1]["file"] = "../" + saved.names[1]; },
        "'parts' is unreadable: a name with a folder");
  tried([](json& all, auto& saved) { all[1]["file"] = saved.names[0]; }, "'xxh3_header'");
  tried([](json& all, auto&) { all[1]["xxh3_header"] = "0123456789abcdef"; }, "'xxh3_header'");
  tried([](json& all, auto&) { all[1].erase("xxh3_header"); }, "'parts' is unreadable: ");
  tried([](json& all, auto&) { all = json::parse("[[1]]"); }, "'parts' is unreadable: ");
  tried([](json& all, auto&) { all = json::parse("[[[[[[1]]]]]]"); }, "'parts' is unreadable: ");
  tried([](json& all, auto&) { all.erase(0); }, "the first element is ");
  tried([](json& all, auto&) { all.push_back(all[0]); }, "the first element is ");
  saved_parts const saved;
  saved.edit_parts([](std::string& text) { text.pop_back(); });
  saved.refused("'parts' is unreadable: ");
}

// ---- slow ranks ----------------------------------------------------------------------------------------------------

namespace {

/// While it exists, each file waits for something before it is there.
template <class Until> class slow_disk {
  static inline Until const* until_ = nullptr;

 public:
  explicit slow_disk(Until const& until) {
    until_ = &until;
    ds::detail::file_calls::before = [](char const* call, std::size_t&) {
      if (call == "rename"sv) CHECK(test::comes_true(*until_));
      return 0;
    };
  }
  slow_disk(slow_disk const&) = delete;
  ~slow_disk() { ds::detail::file_calls::before = nullptr; }
};

/// Calls f(comm, optimizer, model) on every rank, with optimizers that share the state or do not.
template <class F> auto with_optimizer(bool sharded, std::vector<std::size_t> const& sizes, F const& f) {
  return [=, &f](auto& comm) {
    auto const call = [&](auto policy) {
      model<float> m(comm.rank(), sizes);
      auto opt = averaged::make(m.list(), policy);
      f(comm, opt, m);
    };
    if (sharded) call(averaged::shards(comm));
    else call(replicas(comm));
  };
}

/// What a single process loads: the step, and whether its values are those.
std::int64_t loaded_step(std::string const& path, std::vector<model<float>> const& after_step) {
  model<float> m(3, few);
  auto opt = averaged::make(m.list());
  ds::load_file(path, opt);
  std::int64_t const t = opt.report().step;
  CHECK(m == after_step.at(std::size_t(t)));
  return t;
}
/// The values of a process after each of six steps.
std::vector<model<float>> after_each_step() {
  model<float> m(0, few);
  auto opt = averaged::make(m.list());
  std::vector<model<float>> all{m};
  for (int t = 0; t < 6; ++t) step(opt, m, t, 0, 1), all.push_back(m);
  return all;
}

}  // namespace

TEST_CASE("while a rank writes, the others wait in short collectives, so that a long save loses nobody") {
  for (bool const sharded : {false, true})
    for (bool const in_background : {false, true}) {
      CAPTURE(sharded);
      CAPTURE(in_background);
      temporary_folder folder;
      ds::comm::threads world{2, test::patience};
      std::atomic<int> begun[2]{};
      world.before = [&](int r, std::int64_t) { return ++begun[r], fault::none; };
      auto const more = [&] {
        auto const now = std::min<int>(begun[0], begun[1]);
        thread_local int const first = now;  // of the thread that writes one file
        return now > first + 2;
      };
      slow_disk const disk(more);
      CHECK(ranks::none(on_ranks(world, with_optimizer(sharded, few, [&](auto&, auto& opt, auto&) {
                                   if (!in_background) return ds::save_file(folder / "run", opt);
                                   ds::async_save saver;
                                   saver.save(folder / "run", opt);
                                   saver.wait();
                                 }))));
      CHECK(parts_of(folder, "run").size() == (sharded ? 2 : 0));
    }
}

TEST_CASE("in the background: the file has the state at save(), while training continues") {
  auto const want = after_each_step();
  for (bool const sharded : {false, true}) {
    CAPTURE(sharded);
    temporary_folder folder;
    std::atomic<int> trained = 0;
    auto const all_trained = [&] { return trained == 3; };
    slow_disk const disk(all_trained);
    with_ranks(3, with_optimizer(sharded, few, [&](auto& comm, auto& opt, auto& m) {
                 ds::async_save saver;
                 train(opt, m, 0, 3, comm);
                 saver.save(folder / "first", opt);
                 train(opt, m, 3, 5, comm);
                 CHECK(saver.pending());
                 ++trained;
                 saver.save(folder / "second", opt);
                 train(opt, m, 5, 6, comm);
                 saver.wait();
                 CHECK_FALSE(saver.pending());
                 saver.wait();
                 ds::async_save().save(folder / "third", opt);
                 CHECK(std::filesystem::exists(folder / "third"));
               }));
    CHECK(loaded_step(folder / "first", want) == 3);
    CHECK(loaded_step(folder / "second", want) == 5);
    CHECK(loaded_step(folder / "third", want) == 6);
    CHECK(folder.names().size() == (sharded ? 12 : 3));
  }
}

TEST_CASE("in the background: an exception of all ranks waits for no other rank, and leaves a whole checkpoint") {
  auto const want = after_each_step();
  for (bool const sharded : {false, true}) {
    temporary_folder folder;
    with_ranks(2, with_optimizer(sharded, few, [&](auto& comm, auto& opt, auto& m) {
                 ds::save_file(folder / "run", opt);
                 train(opt, m, 0, 3, comm);
                 CHECK(message<std::runtime_error>([&] {
                         ds::async_save saver;
                         saver.save(folder / "run", opt);
                         throw std::runtime_error("no more data");
                       }) == "no more data");
                 ds::save_file(folder / "other", opt);  // by now both ranks' threads are done
               }));
    CHECK(loaded_step(folder / "run", want) == (sharded ? 0 : 3));
  }
}

// ---- lost ranks ----------------------------------------------------------------------------------------------------

TEST_CASE(
    "a rank that is lost at any place of a save: the others are told, and the old checkpoint or the new is there") {
  auto const want = after_each_step();
  for (int how = 0; how < 8; ++how) {
    bool const sharded = how & 1, quietly = how & 2, in_background = how & 4;
    CAPTURE(sharded);
    CAPTURE(quietly);
    CAPTURE(in_background);
    int old = 0, places = 0;
    for (bool lost = true; lost; ++places) {
      REQUIRE(places < 100);
      CAPTURE(places);
      temporary_folder folder;
      ds::comm::threads world{3, test::patience};
      bool armed = false;  // these belong to rank 1
      int passed = 0;
      lost = false;
      world.before = [&](int r, std::int64_t) {
        if (r != 1 || !armed || passed++ != places) return fault::none;
        lost = true;
        if (!quietly) return fault::killed;
        world.comes_too_late(1);
        return fault::vanished;
      };
      auto const thrown = on_ranks(world, with_optimizer(sharded, few, [&](auto& comm, auto& opt, auto& m) {
                                     train(opt, m, 0, 3, comm);
                                     ds::save_file(folder / "run", opt);
                                     train(opt, m, 3, 5, comm);
                                     if (comm.rank() == 1) armed = true;
                                     try {
                                       if (in_background) ds::async_save().save(folder / "run", opt);
                                       else ds::save_file(folder / "run", opt);
                                     } catch (ds::comm_error const&) {
                                       if (comm.rank() != 1)
                                         CHECK(message([&] { ds::save_file(folder / "run", opt); }) ==
                                               "this optimizer lost its ranks in an earlier call: make a new one");
                                       throw;
                                     }
                                     if (comm.rank() == 1) armed = false;
                                   }));
      for (int r = 0; r < 3; ++r) {
        INFO("rank ", r, ": ", thrown[std::size_t(r)]);
        if (!lost) CHECK(thrown[std::size_t(r)].empty());
        else if (r != 1) CHECK(has(thrown[std::size_t(r)], quietly ? " for rank 1" : "rank 1 was killed"));
      }
      std::int64_t const step = loaded_step(folder / "run", want);
      CHECK((step == 5 || (step == 3 && lost)));
      old += step == 3;
      model<float> m(0, few);
      auto alone = averaged::make(m.list());
      ds::save_file(folder / "run", alone);
      CHECK(folder.names() == strings{"run"});
    }
    CHECK(old > 1);
    CHECK(places > old);
  }
}

TEST_CASE("what a killed rank has left beside its part is removed, and nothing else") {
  temporary_folder folder;
  strings const left{"run.0123456789abcdef.1-of-3", "run.0123456789abcdef.1-of-3.4711-fedcba9876543210.tmp"};
  strings const others{"run.0123456789abcdef.1-of-",
                       "run.0123456789abcdef.of-3",
                       "run.0123456789abcde.1-of-3",
                       "run.0123456789abcdef0.1-of-3",
                       "run2.0123456789abcdef.1-of-3",
                       "run.0123456789abcdef.1-of-3.tmp",
                       "run.0123456789abcdef.1-of-3.4711-fedcba987654321.tmp",
                       "run.0123456789abcdef.1-of-3.fedcba9876543210.tmp",
                       "a.run.0123456789abcdef.1-of-3",
                       ".0123456789abcdef.1-of-3"};
  for (auto const* names : {&left, &others})
    for (auto const& name : *names) folder.write(name, "");
  int number = 1;
  ds::save_file(folder / "run", ds::named("number", number));
  auto want = others;
  want.push_back("run");
  std::ranges::sort(want);
  CHECK(folder.names() == want);
}
