// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "define.hpp"

template struct example::optimizers<descent::half, example::device_backend, example::common_rules>;
