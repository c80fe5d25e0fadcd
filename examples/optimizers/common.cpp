// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "define.hpp"

template struct example::optimizers<float, example::device_backend, example::common_rules>;
