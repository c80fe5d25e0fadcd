// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// What most tests need. No rule and no schedule: a change of one would compile every test again.
#include <descent/optimizer.hpp>
#include <descent/zero_grad.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>
