// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "parts/cpu.hpp"
#include "train.hpp"

template struct example::training<example::cpu, descent::bfloat16>;
