// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Launchers describe the process in the environment; what they say is accepted as it is or refused.
#include <descent/comm/launch.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"

#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using descent::comm::launch;

namespace {

using variables = std::map<std::string, std::string>;

launch of(variables const& set, std::string const& hydra = "") {
  auto const get = [&](std::string const& name) -> char const* {
    auto const at = set.find(name);
    return at == set.end() ? nullptr : at->second.c_str();
  };
  return launch::from(get, hydra);
}
variables operator+(variables a, variables const& b) {
  for (auto const& [name, value] : b) a[name] = value;
  return a;
}
variables without(variables a, std::string const& name) {
  a.erase(name);
  return a;
}
std::string refusal(variables const& set) {
  return test::message([&] { of(set); });
}
void check(launch const& at, char const* launcher, int rank, int size, int local_rank, int local_size) {
  CHECK(at.launcher == launcher);
  CHECK(at.rank == rank);
  CHECK(at.size == size);
  CHECK(at.local_rank == local_rank);
  CHECK(at.local_size == local_size);
}
void names(std::string const& message, std::initializer_list<char const*> parts) {
  INFO(message);
  for (char const* part : parts) {
    INFO(part);
    CHECK(message.find(part) != message.npos);
  }
}

// What these versions of the launchers set: Open MPI 4.1, torchrun 2.x, MPICH 4; Slurm's according to its manual.
variables const mpirun{{"OMPI_COMM_WORLD_RANK", "3"},       {"OMPI_COMM_WORLD_SIZE", "4"},
                       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                       {"OMPI_MCA_ess_base_jobid", "1688403969"}};
variables const torchrun{{"RANK", "3"},
                         {"WORLD_SIZE", "4"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "node0"},
                         {"MASTER_PORT", "29500"},
                         {"TORCHELASTIC_RUN_ID", "02c477ae"},
                         {"TORCHELASTIC_RESTART_COUNT", "0"}};
variables const by_hand{{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}};
variables const srun{{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"},
                     {"SLURM_NODEID", "1"}, {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                     {"SLURM_STEP_ID", "0"}};
variables const mpiexec{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};

}  // namespace

TEST_CASE("launch: without a launcher a process is alone") {
  check(of({}), "", 0, 1, 0, 1);
  CHECK(of({}).job.empty());
  CHECK(of({{"MASTER_ADDR", "node0"}}).size == 1);
}

TEST_CASE("launch: each launcher's variables are rank, size, local rank, local size, job and address") {
  check(of(mpirun), "mpirun", 3, 4, 1, 2);
  check(of(torchrun), "torchrun", 3, 4, 1, 2);
  check(of(by_hand), "torchrun", 3, 4, 1, 2);
  check(of(srun), "srun", 3, 4, 1, 2);
  check(of(mpiexec), "mpiexec", 3, 4, 1, 2);
  CHECK(of(torchrun).address == "node0");
  CHECK(of(torchrun).port == 29500);
}

TEST_CASE("launch: the environment of each launcher that was ever tried alone gives rank 3 of 4, 1 of 2 on the node") {
  struct row {
    char const* launcher;
    variables set;
    int local_size = 2;
    char const* job = nullptr;
  };
  auto const numbered = [](std::string const& before) {
    return variables{
        {before + "RANK", "3"}, {before + "SIZE", "4"}, {before + "LOCAL_RANK", "1"}, {before + "LOCAL_SIZE", "2"}};
  };
  variables const pmi{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}};
  variables const flux{{"FLUX_TASK_RANK", "3"},
                       {"FLUX_JOB_SIZE", "4"},
                       {"FLUX_TASK_LOCAL_ID", "1"},
                       {"FLUX_JOB_NNODES", "2"},
                       {"FLUX_JOB_ID", "f7"}};
  variables const pals{
      {"PALS_RANKID", "3"}, {"PALS_LOCAL_RANKID", "1"}, {"PMI_SIZE", "4"}, {"PMI_RANK", "3"}, {"PALS_APID", "a1"}};
  variables const deepspeed{{"RANK", "3"},       {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"},   {"LOCAL_SIZE", "2"},
                            {"CROSS_RANK", "1"}, {"CROSS_SIZE", "2"}, {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29500"}};
  for (row const& x : std::vector<row>{
           {"mvapich", numbered("MV2_COMM_WORLD_")},
           {"mvapich", numbered("MVP_COMM_WORLD_")},
           {"mvapich", numbered("MV2_COMM_WORLD_") + pmi},
           {"horovodrun", numbered("HOROVOD_") + variables{{"HOROVOD_GLOO_RENDEZVOUS_PORT", "9"}}, 2, "horovodrun.9"},
           {"horovodrun",
            numbered("HOROVOD_") + variables{{"HOROVOD_GLOO_RENDEZVOUS_PORT", "9"}} + srun +
                variables{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"}},
            2, "horovodrun.77.9"},
           {"mpiexec", pmi + variables{{"PMI_LOCAL_RANK", "1"}, {"PMI_LOCAL_SIZE", "2"}}},
           {"mpiexec", pals + variables{{"PALS_LOCAL_SIZE", "2"}}, 2, "a1"},
           {"mpiexec", pals + variables{{"PMI_LOCAL_RANK", "1"}, {"PMI_LOCAL_SIZE", "2"}}, 2, "a1"},
           {"pals", without(pals, "PMI_RANK") + variables{{"PALS_LOCAL_SIZE", "2"}}, 2, "a1"},
           {"flux", flux, 0, "f7"},
           {"mpiexec", flux + pmi, 0, "f7"},
           {"flux", flux + variables{{"FLUX_JOB_NNODES", "1"}}, 4, "f7"},
           {"mpirun", flux + mpirun + variables{{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "2"}}, 2, "1688403969"},
           {"deepspeed", deepspeed, 2, "deepspeed.n0.29500"},
           {"srun", srun + variables{{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "64"}}, 2,
            "77.0"},  // --preserve-env
           {"srun", without(srun, "SLURM_NTASKS") + variables{{"SLURM_STEP_NUM_TASKS", "4"}}, 2, "77.0"}}) {
    INFO(x.set.begin()->first);
    check(of(x.set), x.launcher, 3, 4, 1, x.local_size);
    if (x.job) CHECK(of(x.set).job == x.job);
  }
  // one process in each pod
  check(of({{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}), "kubeflow", 3, 4, 0, 1);
  check(of({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}), "mpiexec", 0, 1, 0, 1);
}

TEST_CASE("launch: any two launchers that disagree are refused, with the names and values of both") {
  auto const ranks = [](std::string const& before, char const* rank) {
    return variables{
        {before + "RANK", rank}, {before + "SIZE", "4"}, {before + "LOCAL_RANK", "1"}, {before + "LOCAL_SIZE", "2"}};
  };
  std::vector<std::string> const all{"OMPI_COMM_WORLD_", "MV2_COMM_WORLD_", "MVP_COMM_WORLD_", "HOROVOD_"};
  for (auto const& a : all)
    for (auto const& b : all)
      if (a != b)
        names(refusal(ranks(a, "3") + ranks(b, "2")),
              {(a + "RANK").c_str(), (b + "RANK").c_str(), "rank 3 of 4", "rank 2 of 4"});
}

TEST_CASE("launch: a process of a launcher that is not known is not taken for one that is alone") {
  for (char const* name : {"PMIX_RANK", "MPIRUN_RANK", "ALPS_APP_PE", "JSM_NAMESPACE_RANK"}) {
    names(refusal({{name, "3"}}), {name, "'3'", "WORLD_SIZE"});
    check(of(by_hand + variables{{name, "3"}}), "torchrun", 3, 4, 1, 2);
  }
  check(of({{"SLURM_STEP_ID", "4294967290"}, {"PMIX_RANK", "0"}}), "", 0, 1, 0, 1);
  names(refusal({{"PALS_RANKID", "3"}, {"PALS_LOCAL_RANKID", "1"}, {"PALS_LOCAL_SIZE", "2"}}),
        {"PMI_SIZE must be set"});
}

TEST_CASE("launch: a job's name is another after each start, as far as the launcher says, and never empty") {
  CHECK(of(mpirun).job == "1688403969");
  CHECK(of(mpirun + variables{{"PMIX_NAMESPACE", "prterun-node0-12@1"}}).job == "prterun-node0-12@1");
  CHECK(of(torchrun).job == "02c477ae.0");
  CHECK(of(torchrun + variables{{"TORCHELASTIC_RESTART_COUNT", "1"}}).job == "02c477ae.1");
  variables const none = torchrun + variables{{"TORCHELASTIC_RUN_ID", "none"}};  // torchrun's default
  CHECK(of(none).job == "torchrun.node0.29500.0");
  CHECK(of(none + variables{{"MASTER_PORT", "29501"}}).job == "torchrun.node0.29501.0");
  CHECK(of(none + variables{{"TORCHELASTIC_RESTART_COUNT", "1"}}).job == "torchrun.node0.29500.1");
  CHECK(of(torchrun + variables{{"TORCHELASTIC_RUN_ID", ""}}).job == "torchrun.node0.29500.0");
  CHECK(of(mpirun + variables{{"PMIX_NAMESPACE", ""}}).job == "1688403969");
  CHECK(of(without(mpirun, "OMPI_MCA_ess_base_jobid")).job == "mpirun");
  CHECK(of(srun).job == "77.0");
  CHECK(of(srun + variables{{"SLURM_RESTART_COUNT", "2"}}).job == "77.0.2");  // requeued: step numbers start again
  CHECK(of(by_hand).job == "torchrun");
  CHECK(of(by_hand + variables{{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "4000"}}).job == "torchrun.node0.4000");
  CHECK(of(srun + by_hand).job == "77.0");
  CHECK(of({}).job == "");
}

TEST_CASE("launch: Hydra's starts are named by the port of their mpiexec, behind the batch system's job") {
  CHECK(of(mpiexec).job == "mpiexec");
  CHECK(of(mpiexec, "vm:40189").job == "mpiexec.vm:40189");
  CHECK(of(mpiexec + variables{{"PBS_JOBID", "12.head"}}, "vm:40189").job == "mpiexec.12.head.vm:40189");
  CHECK(of(mpirun, "vm:40189").job == "1688403969");

  auto const port = [](std::initializer_list<std::string> arguments) {
    std::string line;
    for (auto const& one : arguments) line += one + '\0';
    return descent::detail::hydra_port(line);
  };
  CHECK(port({"/usr/bin/hydra_pmi_proxy", "--control-port", "vm:40189", "--rmk", "user"}) == "vm:40189");
  CHECK(port({"hydra_pmi_proxy", "--rmk", "user", "--control-port", "vm:40189"}) == "vm:40189");
  CHECK(port({"hydra_pmi_proxy", "--control-port"}) == "");
  CHECK(port({"sh", "--control-port", "vm:40189"}) == "");
  CHECK(port({}) == "");
}

TEST_CASE("launch: a job's name can be that of a file, and keeps long ones apart") {
  auto const named = [](std::string const& id) { return of(torchrun + variables{{"TORCHELASTIC_RUN_ID", id}}).job; };
  CHECK(named("team/run 7") == "team_run 7.0");
  std::string const longest(198, 'a'), longer(400, 'a');
  CHECK(named(longest) == longest + ".0");
  CHECK(named(longer).size() <= 200);
  CHECK(named(longer) == named(longer));
  CHECK(named(longer) != named(longer + "b"));
}

TEST_CASE("launch: Slurm's tasks per node are those of this node") {
  auto const on = [](char const* list, char const* node) {
    return of(srun + variables{{"SLURM_STEP_TASKS_PER_NODE", list}, {"SLURM_NODEID", node}}).local_size;
  };
  CHECK(on("2(x3),4,3(x2)", "0") == 2);
  CHECK(on("2(x3),4,3(x2)", "2") == 2);
  CHECK(on("2(x3),4,3(x2)", "3") == 4);
  CHECK(on("2(x3),4,3(x2)", "5") == 3);
  CHECK(on("4", "0") == 4);
  for (char const* list : {"", ",", "2(x3", "2(x3)4", "2(3)", "2(x0)", "2(x)", "(x2)", "two", "2,"})
    names(refusal(srun + variables{{"SLURM_STEP_TASKS_PER_NODE", list}, {"SLURM_NODEID", "7"}}),
          {"SLURM_STEP_TASKS_PER_NODE must be"});
  names(refusal(srun + variables{{"SLURM_NODEID", "2"}}), {"SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID = 2", "'2(x2)'"});
}

TEST_CASE("launch: srun counts only for what it has started itself") {
  check(of(without(srun, "SLURM_STEP_ID")), "", 0, 1, 0, 1);                       // a batch script
  check(of(srun + variables{{"SLURM_STEP_ID", "4294967290"}}), "", 0, 1, 0, 1);  // an interactive step
  // srun starts one mpirun, torchrun or daemon on each of two nodes, and these start four processes
  variables const daemon = srun + variables{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "0"},
                                            {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}};
  check(of(daemon + mpirun), "mpirun", 3, 4, 1, 2);
  check(of(daemon + torchrun), "torchrun", 3, 4, 1, 2);
  check(of(daemon + mpiexec), "mpiexec", 3, 4, 1, 2);
  check(of(mpirun + torchrun + variables{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}), "torchrun", 3,
        4, 1, 2);
}

TEST_CASE("launch: launchers that agree are fine, and say what the other does not") {
  check(of(mpirun + by_hand), "mpirun", 3, 4, 1, 2);
  check(of(srun + by_hand), "srun", 3, 4, 1, 2);
  check(of(srun + variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), "mpiexec", 3, 4, 1, 2);  // srun --mpi=pmi2
  check(of(mpirun + variables{{"RANK", "3"}, {"WORLD_SIZE", "4"}}), "mpirun", 3, 4, 1, 2);
}

TEST_CASE("launch: launchers that disagree are refused with what each says") {
  names(refusal(srun + by_hand +
                variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}}),
        {"srun (SLURM_PROCID, ...) says rank 3 of 4", "torchrun (RANK, ...) says rank 0 of 1", "unset"});
  names(refusal(mpirun + by_hand + variables{{"RANK", "2"}}), {"mpirun", "rank 3 of 4", "rank 2 of 4"});
  names(refusal(mpirun + by_hand + variables{{"LOCAL_RANK", "0"}}), {"1 of 2 on this node", "0 of 2 on this node"});
  names(refusal(mpirun + mpiexec + variables{{"PMI_SIZE", "5"}}), {"mpirun", "mpiexec", "rank 3 of 5"});
  names(
      refusal(srun + variables{{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}),
      {"MPI_LOCALRANKID must be set together with PMI_RANK, is not set; mpiexec (PMI_RANK, ...) says rank 2 of 4, srun "
       "(SLURM_PROCID, ...) says rank 3 of 4"});
  names(refusal(torchrun + variables{{"LOCAL_SIZE", "3"}}), {"LOCAL_SIZE must be equal to LOCAL_WORLD_SIZE, 2, is 3"});
  names(refusal(mpiexec + variables{{"PMI_LOCAL_RANK", "0"}}),
        {"PMI_LOCAL_RANK must be equal to MPI_LOCALRANKID, 1, is 0"});
}

TEST_CASE("launch: half of a launcher's variables is refused with the one that is missing") {
  using half = std::pair<variables, std::vector<std::string>>;
  for (auto const& [set, missing] :
       {half{mpirun, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                      "OMPI_COMM_WORLD_LOCAL_SIZE"}},
        half{torchrun, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}},
        half{mpiexec, {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}},
        half{srun, {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID"}}})
    for (auto const& name : missing) names(refusal(without(set, name)), {(name + " must be").c_str()});
  names(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), {"LOCAL_RANK must be set together with RANK"});
  names(refusal({{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}), {"RANK must be set together with LOCAL_RANK"});
}

TEST_CASE("launch: what is no number or out of range is refused with variable, value and range") {
  for (char const* text : {"", " 3", "3 ", "+3", "3.0", "0x3", "three", "-1", "4", "99999999999999999999"})
    names(refusal(mpirun + variables{{"OMPI_COMM_WORLD_RANK", text}}),
          {"OMPI_COMM_WORLD_RANK must be an integer in [0, 3], is '", text});
  for (char const* text : {"0", "-4", "x", "2147483648"})
    names(refusal(torchrun + variables{{"WORLD_SIZE", text}}), {"WORLD_SIZE must be an integer in [1, ", text});
  names(refusal(torchrun + variables{{"LOCAL_RANK", "2"}}), {"LOCAL_RANK must be an integer in [0, 1], is '2'"});
  names(refusal(torchrun + variables{{"LOCAL_WORLD_SIZE", "5"}}), {"LOCAL_WORLD_SIZE must be an integer in [1, 4]"});
  for (char const* text : {"0", "65536", "http"})
    names(refusal(torchrun + variables{{"MASTER_PORT", text}}), {"MASTER_PORT must be an integer in [1, 65535]", text});
  CHECK(of(mpirun + variables{{"OMPI_COMM_WORLD_RANK", "0"}}).rank == 0);
}

TEST_CASE("launch: the environment itself is read") {
  launch const before = launch::from_environment();
  CHECK(before.size >= 1);
  auto const put = [](variables const& set, bool in) {
    for (auto const& [name, value] : set) in ? setenv(name.c_str(), value.c_str(), 1) : unsetenv(name.c_str());
  };
  if (before.size > 1) return;  // a launcher started this test
  put(torchrun, true);
  launch const at = launch::from_environment();
  put(torchrun, false);
  check(at, "torchrun", 3, 4, 1, 2);
}
