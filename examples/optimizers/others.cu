// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "adaptive.cpp"
#include "free.cpp"
#include "momentum.cpp"
#include "torch.cpp"
