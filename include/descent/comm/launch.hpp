// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/hash.hpp>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace descent::comm {

/// The rank and size that a launcher gave this process, read from the environment. Without a launcher: one rank.
/// If launchers are nested, the innermost counts: torchrun (if TORCHELASTIC_RUN_ID is set), then those of MPI and
/// Horovod, then Flux, PALS and srun. The others of these that are set must agree, so that a stale RANK is not
/// taken for this start's.
struct launch {
  int rank = 0, size = 1;              ///< of all processes
  int local_rank = 0, local_size = 1;  ///< of the processes on this node; size 0: not known (Flux on several nodes)
  /// torchrun, deepspeed, kubeflow, mpirun, mvapich, horovodrun, mpiexec, flux, pals, srun, or empty
  std::string launcher;
  /// A name shared by all processes of a start: up to 200 characters without '/', empty without a launcher. It is
  /// unique if the launcher names its starts; otherwise it is made of other variables (docs/data_parallel.md).
  std::string job;
  std::string address;  ///< MASTER_ADDR, or empty
  int port = 0;         ///< MASTER_PORT, or 0; torchrun's own store listens on it

  /// Throws std::invalid_argument, with the variable, its value and what is allowed, if a variable is not a number, out
  /// of range or missing, if launchers disagree, or if an unknown launcher has left its mark: its processes would
  /// otherwise train one by one, each as rank 0 of 1.
  static launch from_environment() {
    return from([](char const* name) { return std::getenv(name); }, hydra());
  }
  /// The same with get(name), which returns a string or null. `hydra` is where Hydra's mpiexec listens, or empty.
  template <class Get> static launch from(Get const& get, std::string const& hydra = "");

 private:
  static std::string hydra();
};

}  // namespace descent::comm

namespace descent::detail {

/// The variables in which a launcher passes rank and size, of all processes and of those on this node.
struct launcher_variables {
  struct pair { char const *rank, *size; };
  char const *launcher, *rank, *size;
  std::array<pair, 2> local;  // the first one of which both are set
  bool by_rank_alone = false;  // others set the rest too, so it counts only if its rank is set
};
inline constexpr launcher_variables torchrun_variables{
    "torchrun", "RANK", "WORLD_SIZE", {{{"LOCAL_RANK", "LOCAL_WORLD_SIZE"}, {"LOCAL_RANK", "LOCAL_SIZE"}}}};
inline constexpr launcher_variables mpiexec_variables{
    "mpiexec",
    "PMI_RANK",
    "PMI_SIZE",
    {{{"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, {"PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"}}}};
/// Those that start the processes themselves. If several are set, they must agree.
inline constexpr launcher_variables inner_launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     {{{"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}, {}}}},
    {"mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
     {{{"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"}, {}}}},
    {"mvapich", "MVP_COMM_WORLD_RANK", "MVP_COMM_WORLD_SIZE",
     {{{"MVP_COMM_WORLD_LOCAL_RANK", "MVP_COMM_WORLD_LOCAL_SIZE"}, {}}}},
    {"horovodrun", "HOROVOD_RANK", "HOROVOD_SIZE", {{{"HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"}, {}}}},
    mpiexec_variables,
};
/// Those of batch systems, which may have started one of the above: they count if nothing else does, or if they agree.
inline constexpr launcher_variables outer_launchers[] = {
    {"flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", {{{"FLUX_TASK_LOCAL_ID", nullptr}, {}}}, true},
    {"pals", "PALS_RANKID", "PMI_SIZE",
     {{{"PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"}, {"PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"}}}, true},
};
inline constexpr launcher_variables srun_variables{
    "srun", "SLURM_PROCID", "SLURM_NTASKS", {{{"SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"}, {}}}};
/// Ranks of launchers that do not say the size in a variable that is known.
inline constexpr char const* unknown_ranks[] = {"PMIX_RANK", "MPIRUN_RANK", "ALPS_APP_PE", "JSM_NAMESPACE_RANK"};

[[noreturn]] inline void refuse_variable(std::string const& name, std::string const& allowed, std::string const& is) {
  throw std::invalid_argument("launch: " + name + " must be " + allowed + ", is " + is);
}

/// Parses an integer in [low, high], with nothing before or after it.
inline int variable_number(std::string const& name, std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t x = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size() || x < low || x > high)
    refuse_variable(name, "an integer in [" + std::to_string(low) + ", " + std::to_string(high) + "]",
                    "'" + std::string(text) + "'");
  return int(x);
}

/// Entry `node` of a Slurm list: "2(x3),1" stands for 2, 2, 2, 1.
inline int tasks_of_node(std::string const& name, std::string_view list, int node) {
  std::string const whole(list);
  for (std::int64_t first = 0; !list.empty();) {
    std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(entry.size() == list.size() ? list.size() : entry.size() + 1);
    std::int64_t times = 1;
    if (auto const x = entry.find("(x"); x != entry.npos && entry.back() == ')') {
      times = variable_number(name, entry.substr(x + 2, entry.size() - x - 3), 1, INT32_MAX);
      entry = entry.substr(0, x);
    }
    int const tasks = variable_number(name, entry, 1, INT32_MAX);
    if (node < (first += times)) return tasks;
  }
  refuse_variable(name, "a list with an entry for SLURM_NODEID = " + std::to_string(node), "'" + whole + "'");
}

/// What one launcher says. local_rank is -1 if it does not set the local variables, local_size 0 if not known.
struct placed {
  launcher_variables by;
  int rank, size, local_rank = -1, local_size = 0;

  bool agrees(placed const& other) const {
    bool const sizes = local_size == 0 || other.local_size == 0 || local_size == other.local_size;
    bool const local = local_rank < 0 || other.local_rank < 0 || (local_rank == other.local_rank && sizes);
    return rank == other.rank && size == other.size && local;
  }
  std::string text() const {
    std::string said = std::string(by.launcher) + " (" + by.rank + ", ...) says rank " + std::to_string(rank) + " of " +
                       std::to_string(size);
    if (local_rank >= 0)
      said += ", " + std::to_string(local_rank) + (local_size > 0 ? " of " + std::to_string(local_size) : "") +
              " on this node";
    return said;
  }
};

template <class Get> std::optional<placed> read_launcher(launcher_variables by, Get const& get) {
  std::string_view const launcher = by.launcher;
  if (by.by_rank_alone && !get(by.rank)) return {};
  if (launcher == "mpiexec" && get("PALS_RANKID") && !get(by.rank)) return {};  // the size is that of PALS
  // With --preserve-env SLURM_NTASKS is that of the job.
  if (launcher == "srun" && get("SLURM_STEP_NUM_TASKS")) by.size = "SLURM_STEP_NUM_TASKS";
  auto const same = [&](char const* a, char const* b) {  // two names of one number
    if (char const *const x = a ? get(a) : nullptr, *const y = b ? get(b) : nullptr; x && y && std::string_view(x) != y)
      refuse_variable(b, std::string("equal to ") + a + ", " + x, y);
  };
  same(by.local[0].rank, by.local[1].rank), same(by.local[0].size, by.local[1].size);
  if (auto const& other = by.local[1];
      other.rank && get(other.rank) && get(other.size) && !(get(by.local[0].rank) && get(by.local[0].size))) {
    by.local[0] = other;
    if (launcher == "torchrun") by.launcher = "deepspeed";
  }
  auto const [local_rank_name, local_size_name] = by.local[0];
  char const *const rank = get(by.rank), *const size = get(by.size);
  char const* const local_rank = get(local_rank_name);
  char const* const local_size = local_size_name ? get(local_size_name) : nullptr;
  if (!rank && !size && !local_rank && !local_size) return {};
  auto const both = [&](char const* a, char const* a_is, char const* b, char const* b_is) {
    if (bool(a_is) != bool(b_is))
      refuse_variable(a_is ? b : a, std::string("set together with ") + (a_is ? a : b) + ", by " + by.launcher,
                      "not set");
  };
  both(by.rank, rank, by.size, size);
  if (local_size_name) both(local_rank_name, local_rank, local_size_name, local_size);
  if (!rank) refuse_variable(by.rank, std::string("set together with ") + local_rank_name, "not set");
  int const n = variable_number(by.size, size, 1, INT32_MAX);
  placed p{by, variable_number(by.rank, rank, 0, n - 1), n};
  if (!local_rank) return p;
  if (launcher == "flux") {
    char const* const nodes = get("FLUX_JOB_NNODES");
    p.local_size = nodes && std::string_view(nodes) == "1" ? n : 0;
  } else if (launcher == "srun") {
    char const* const node = get("SLURM_NODEID");
    if (!node) refuse_variable("SLURM_NODEID", "set together with SLURM_LOCALID, by srun", "not set");
    p.local_size = tasks_of_node(local_size_name, local_size, variable_number("SLURM_NODEID", node, 0, INT32_MAX));
  } else {
    p.local_size = variable_number(local_size_name, local_size, 1, n);
  }
  p.local_rank = variable_number(local_rank_name, local_rank, 0, (p.local_size > 0 ? p.local_size : n) - 1);
  return p;
}

/// Hydra does not put a name of the start into the environment, but its mpiexec listens on a port, which is on the
/// command line of its proxy on each node. Empty for any other command line. Arguments end with null characters.
inline std::string hydra_port(std::string_view command_line) {
  auto const next = [&] {
    std::string_view const one = command_line.substr(0, command_line.find('\0'));
    command_line.remove_prefix(one.size() == command_line.size() ? one.size() : one.size() + 1);
    return one;
  };
  if (next().find("proxy") == std::string_view::npos) return "";
  while (!command_line.empty())
    if (next() == "--control-port") return std::string(next());
  return "";
}
inline std::string contents_of_process(long pid, char const* file) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/" + file);
  return {std::istreambuf_iterator<char>(in), {}};
}
/// The parent process, or 0 if unknown.
inline long parent_of_process(long pid) {
  std::string const stat = contents_of_process(pid, "stat");  // pid (name) state parent ...
  auto const name_ends = stat.rfind(')');
  long parent = 0;
  if (name_ends != stat.npos) static_cast<void>(std::sscanf(stat.c_str() + name_ends + 1, " %*c %ld", &parent));
  return parent;
}

/// Makes a name that can be part of a file name.
inline std::string as_job(std::string name) {
  for (char& c : name)
    if (c == '/') c = '_';
  if (name.size() <= 200) return name;
  return name.substr(0, 170) + "." + std::to_string(hash_of(name));
}

/// Whether srun started this process. It did not if the step number is reserved for batch scripts or shells.
template <class Get> bool is_srun_step(Get const& get) {
  char const* const step = get("SLURM_STEP_ID");
  return step && std::string_view(step).size() < std::string_view("4294967290").size();
}

/// The name that the launcher has given to this start, or empty.
template <class Get> std::string job_of(std::string_view launcher, Get const& get) {
  auto const text = [&](char const* name) { return std::string(get(name) ? get(name) : ""); };
  auto const with = [&](char const* name) { return text(name).empty() ? "" : "." + text(name); };
  if (launcher == "torchrun") {
    std::string const run = text("TORCHELASTIC_RUN_ID");  // "none" if the user gave none
    return run.empty() || run == "none" ? "" : run + with("TORCHELASTIC_RESTART_COUNT");
  }
  if (launcher == "mpirun")
    return !text("PMIX_NAMESPACE").empty() ? text("PMIX_NAMESPACE") : text("OMPI_MCA_ess_base_jobid");
  if (launcher == "flux") return text("FLUX_JOB_ID");
  if (launcher == "pals") return text("PALS_APID");
  if (launcher == "srun" && get("SLURM_JOB_ID"))
    return text("SLURM_JOB_ID") + with("SLURM_STEP_ID") + with("SLURM_RESTART_COUNT");
  return "";
}

/// A name for a start whose launcher gives none, made of what distinguishes it from concurrent starts.
template <class Get> std::string made_job(std::string name, std::string const& hydra, Get const& get) {
  auto const add = [&](std::string const& more) {
    if (!more.empty()) name += "." + more;
  };
  for (char const* variable :
       {"PMI_JOBID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", "MASTER_ADDR",
        "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"})
    add(get(variable) ? get(variable) : "");
  add(hydra);
  return name;
}

}  // namespace descent::detail

namespace descent::comm {

inline std::string launch::hydra() {
  if (!std::getenv(detail::mpiexec_variables.rank)) return "";
  int most = 32;  // there may be scripts in between
  for (long pid = ::getppid(); pid > 0 && most > 0; pid = detail::parent_of_process(pid), --most)
    if (auto const port = detail::hydra_port(detail::contents_of_process(pid, "cmdline")); !port.empty()) return port;
  return "";
}

template <class Get> launch launch::from(Get const& get, std::string const& hydra) {
  std::vector<detail::placed> said;
  auto const add = [&](std::optional<detail::placed> const& p) {
    if (p) said.push_back(*p);
  };
  std::optional<detail::placed> around;  // a batch system whose ranks are others, so that it started one of the above
  auto const torchrun = detail::read_launcher(detail::torchrun_variables, get);
  if (!torchrun || !get("TORCHELASTIC_RUN_ID")) {
    for (auto const& by : detail::inner_launchers) add(detail::read_launcher(by, get));
    auto const add_outer = [&](detail::launcher_variables const& by) {
      if (auto const outer = detail::read_launcher(by, get))
        (said.empty() || outer->agrees(said.back()) ? add(outer) : void(around = outer));
    };
    for (auto const& by : detail::outer_launchers) add_outer(by);
    if (detail::is_srun_step(get)) add_outer(detail::srun_variables);
  }
  add(torchrun);
  launch at;
  if (char const* const address = get("MASTER_ADDR")) at.address = address;
  if (char const* const port = get("MASTER_PORT")) at.port = detail::variable_number("MASTER_PORT", port, 1, 65535);
  if (said.empty()) {
    if (get("SLURM_STEP_ID") && !detail::is_srun_step(get)) return at;  // a shell, which may have been started by PMIx
    for (char const* name : detail::unknown_ranks)
      if (char const* const rank = get(name))
        detail::refuse_variable(name, "accompanied by RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE, because its "
                                      "launcher is unknown", "'" + std::string(rank) + "', alone");
    return at;
  }

  for (detail::placed const& p : said)
    if (!p.agrees(said.front()))
      throw std::invalid_argument("launch: " + said.front().text() + ", " + p.text() +
                                  ": unset the variables of the one that did not start this process");
  at.rank = said.front().rank;
  at.size = said.front().size;
  at.launcher = said.front().by.launcher;
  at.local_rank = -1;
  for (detail::placed const& p : said)
    if (p.local_rank >= 0 && (at.local_rank < 0 || p.local_size > 0))
      at.local_rank = p.local_rank, at.local_size = p.local_size;
  if (at.launcher == "torchrun" && at.local_rank < 0 && get("KUBERNETES_SERVICE_HOST")) at.launcher = "kubeflow";
  if (at.local_rank < 0 && (at.size == 1 || at.launcher == "kubeflow")) at.local_rank = 0;  // alone on its node
  if (at.local_rank < 0)
    detail::refuse_variable(said.front().by.local[0].rank, "set together with " + std::string(said.front().by.rank),
                            "not set" + (around ? "; " + said.front().text() + ", " + around->text() : ""));
  for (detail::placed const& p : said)
    if (at.job.empty()) at.job = detail::job_of(p.by.launcher, get);
  if (at.job.empty()) at.job = detail::made_job(at.launcher, hydra, get);
  at.job = detail::as_job(at.job);
  return at;
}

}  // namespace descent::comm
