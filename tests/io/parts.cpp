// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// usage: parts FOLDER     For read_parts.py: three ranks save FOLDER/run in parts; FOLDER/whole is one file of them.
#include <descent/comm/threads.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/io/collect.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>

#include "support/rank_model.hpp"

#include <string>
#include <thread>
#include <vector>

namespace ds = descent;

int main(int, char** arguments) {
  std::string const folder = arguments[1];
  ds::comm::threads world{3};
  std::vector<std::thread> team;
  for (int r = 0; r < 3; ++r)
    team.emplace_back([&, r] {
      auto comm = world.rank(r);
      ranks::model<ds::half, float> m;
      ds::optimizer opt{m.list(), ds::adamw{.lr = 0.01}, ds::master<float>{}, ds::states<ds::bfloat16>{},
                        ds::dynamic_loss_scale{.init = 4}, ds::sharded{comm}};
      for (int t = 0; t < 3; ++t) m.set(t, r, r + 1), opt.step();
      std::string const note = "after three steps";
      ds::save_file(folder + "/run", opt, ds::named("note", note));
    });
  for (auto& one : team) one.join();
  ds::collect(folder + "/run", folder + "/whole");
}
