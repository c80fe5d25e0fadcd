// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "problem.cuh"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

/// Times contestants side by side and decides by the results.
namespace experiments {

struct event {
  cudaEvent_t handle = nullptr;
  event() { require_cuda(cudaEventCreate(&handle), "cudaEventCreate"); }
  ~event() { cudaEventDestroy(handle); }
  event(event const&) = delete;
};

struct graph {
  cudaGraphExec_t handle = nullptr;
  template <class F> graph(cudaStream_t stream, F const& enqueue) {
    cudaGraph_t made = nullptr;
    require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    enqueue();
    require_cuda(cudaStreamEndCapture(stream, &made), "cudaStreamEndCapture");
    require_cuda(cudaGraphInstantiate(&handle, made, 0), "cudaGraphInstantiate");
    require_cuda(cudaGraphDestroy(made), "cudaGraphDestroy");
  }
  ~graph() { cudaGraphExecDestroy(handle); }
  graph(graph const&) = delete;
};

/// In microseconds.
struct spread { double low = 0, median = 0, high = 0; };
inline spread spread_of(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  auto const at = [&](double share) { return x[std::size_t(share * double(x.size() - 1) + 0.5)]; };
  return {at(0.25), at(0.5), at(0.75)};
}

struct contestant {
  std::string name;
  std::function<void(int)> step;  // with the buffers of one set
};

struct settings {
  cudaStream_t stream;
  bool quick = false;
  std::FILE* out = nullptr;
  int rounds() const { return quick ? 1 : 60; }
  int warm_up() const { return quick ? 0 : 10; }
  double sample() const { return quick ? 0 : 1000; }  // microseconds
};

/// A sample is the number of steps that take a millisecond, in a graph or launched one by one, each with the next set
/// of buffers. All contestants have a turn in each round, in a rotating order.
inline std::vector<spread> time_all(settings const& how, std::vector<contestant> const& all, int sets, bool graphs) {
  event begin, end;
  auto const timed = [&](auto const& enqueue) {
    require_cuda(cudaEventRecord(begin.handle, how.stream), "cudaEventRecord");
    enqueue();
    require_cuda(cudaEventRecord(end.handle, how.stream), "cudaEventRecord");
    require_cuda(cudaEventSynchronize(end.handle), "cudaEventSynchronize");
    float ms = 0;
    require_cuda(cudaEventElapsedTime(&ms, begin.handle, end.handle), "cudaEventElapsedTime");
    return double(ms) * 1000;
  };
  std::vector<int> repeats;
  std::vector<std::unique_ptr<graph>> captured;
  std::vector<std::vector<double>> samples(all.size());
  for (auto const& one : all) {
    auto const some = [&](int count) {
      for (int i = 0; i < count; ++i) one.step(i % sets);
    };
    some(how.warm_up());
    double const each = timed([&] { some(sets); }) / sets;
    int const fit = each > 0 ? int(std::min(how.sample() / each, 300.0)) : 1;
    repeats.push_back(std::max(1, (fit + sets - 1) / sets) * sets);
    if (graphs) captured.push_back(std::make_unique<graph>(how.stream, [&] { some(repeats.back()); }));
  }
  for (int round = 0; round < how.rounds(); ++round)
    for (std::size_t turn = 0; turn < all.size(); ++turn) {
      std::size_t const c = (turn + std::size_t(round)) % all.size();
      double const us = timed([&] {
        if (graphs) require_cuda(cudaGraphLaunch(captured[c]->handle, how.stream), "cudaGraphLaunch");
        else for (int i = 0; i < repeats[c]; ++i) all[c].step(i % sets);
      });
      samples[c].push_back(us / repeats[c]);
    }
  std::vector<spread> result;
  for (auto const& x : samples) result.push_back(spread_of(x));
  return result;
}

/// The purpose of a comparison: a gain decides for the experiment; a loss decides against it; neither; or the first
/// contestant is a ceiling, and the others should reach a share of it.
enum class purpose { decides, watches, shows, ceiling };

/// Records the measurements and decides by the rule of each experiment.
class record {
 public:
  explicit record(settings const& how) : how_(how) {}

  /// The first contestant is the engine or the ceiling.
  void times(std::string const& experiment, std::string const& where, std::vector<contestant> const& all, int sets,
             bool graphs, std::int64_t parameters, double bytes, purpose what) {
    auto const found = time_all(how_, all, sets, graphs);
    if (how_.quick) return;
    std::printf("\n%s, %s, %s\n  %-44s %10s %22s %8s %9s\n", experiment.c_str(), where.c_str(),
                graphs ? "graphs" : "launches", "", "us", "quartiles", "GB/s", "of first");
    for (std::size_t c = 0; c < all.size(); ++c) {
      spread const& s = found[c];
      double const rate = bytes * double(parameters) / s.median / 1000, gain = found[0].median / s.median;
      std::printf("  %-44s %10.2f %10.2f %11.2f %8.0f %9.3f\n", all[c].name.c_str(), s.median, s.low, s.high, rate,
                  gain);
      std::fprintf(how_.out,
                   "{\"experiment\": \"%s\", \"case\": \"%s\", \"graphs\": %s, \"variant\": \"%s\", "
                   "\"parameters\": %lld, \"bytes_per_parameter\": %g, \"us\": %.3f, \"quartiles\": [%.3f, %.3f], "
                   "\"GBps\": %.1f, \"rate_of_first\": %.4f}\n",
                   experiment.c_str(), where.c_str(), graphs ? "true" : "false", all[c].name.c_str(),
                   static_cast<long long>(parameters), bytes, s.median, s.low, s.high, rate, gain);
      if (c == 0 || what == purpose::shows) continue;
      auto& d = decisions_[{experiment, all[c].name}];
      d.of_ceiling |= what == purpose::ceiling;
      if (what == purpose::watches) {
        d.worst = std::min(d.worst, gain);
      } else {
        d.gain = d.gain == 0 ? gain : std::min(d.gain, gain);
        d.clear &= s.high < found[0].low;
      }
    }
    std::fflush(how_.out);
    std::fflush(stdout);
  }

  /// Reports whether a fact holds.
  void check(std::string const& what, bool holds, std::string const& detail = "") {
    failed_ += !holds;
    std::printf("%s %s%s%s\n", holds ? "same:" : "NOT THE SAME:", what.c_str(), detail.empty() ? "" : ", ",
                detail.c_str());
    std::fprintf(how_.out, "{\"check\": \"%s\", \"holds\": %s, \"detail\": \"%s\"}\n", what.c_str(),
                 holds ? "true" : "false", detail.c_str());
  }
  void skipped(std::string const& what, std::string const& why) {
    std::printf("skipped: %s: %s\n", what.c_str(), why.c_str());
    std::fprintf(how_.out, "{\"skipped\": \"%s\", \"why\": \"%s\"}\n", what.c_str(), why.c_str());
  }

  /// A variant is taken if it gains more than 3 % in every case that decides, by more than the quartiles, and never
  /// loses more than 3 %. Returns the number of failed checks.
  int decide() const {
    if (!how_.quick) std::printf("\n%-34s %-44s %8s %10s\n", "decisions", "", "gain", "elsewhere");
    for (auto const& [of, d] : decisions_) {
      bool const taken = d.of_ceiling ? d.gain >= 0.92 : d.gain > 1.03 && d.clear && d.worst > 0.97;
      char const* const word = d.of_ceiling ? (taken ? "holds" : "DOES NOT HOLD") : taken ? "TAKE" : "leave";
      std::printf("%-34s %-44s %7.1f%% %9.1f%%  %s\n", of.first.c_str(), of.second.c_str(), 100 * (d.gain - 1),
                  100 * (d.worst - 1), word);
      std::fprintf(how_.out,
                   "{\"decision\": \"%s\", \"variant\": \"%s\", \"gain\": %.4f, \"worst\": %.4f, \"is\": \"%s\"}\n",
                   of.first.c_str(), of.second.c_str(), d.gain, d.worst, word);
    }
    std::printf("%d checks failed\n", failed_);
    return failed_;
  }

 private:
  struct decision {
    double gain = 0, worst = 1;
    bool clear = true, of_ceiling = false;
  };
  settings how_;
  std::map<std::pair<std::string, std::string>, decision> decisions_;
  int failed_ = 0;
};

}  // namespace experiments
