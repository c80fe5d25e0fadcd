// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

/// Ranks that main.cpp has started.
namespace ranks {

inline bool is_rank() { return std::getenv("DESCENT_TEST_RANK") != nullptr; }
inline int rank() { return std::atoi(std::getenv("DESCENT_TEST_RANK")); }
inline int size() { return std::atoi(std::getenv("DESCENT_TEST_RANKS")); }

/// Broadcasts a value of rank 0; all ranks must call it equally often.
inline auto const hand_out = [](int rank, int, auto& value) {
  static int number = 0;
  std::filesystem::path const file = std::string(std::getenv("DESCENT_TEST_FOLDER")) + "/" + std::to_string(number++);
  if (rank == 0) {
    std::ofstream(file.string() + ".part", std::ios::binary).write(reinterpret_cast<char const*>(&value), sizeof value);
    std::filesystem::rename(file.string() + ".part", file);
  } else {
    auto const start = std::chrono::steady_clock::now();
    while (!std::filesystem::exists(file)) {
      if (std::chrono::steady_clock::now() - start > std::chrono::seconds(60))
        throw std::runtime_error("rank 0 has handed out nothing for 60 s");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&value), sizeof value);
  }
};

}  // namespace ranks
