// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

inline void descend(double& w, double g, double lr) { w = w - lr * g; }
