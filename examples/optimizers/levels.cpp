// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "define.hpp"

template struct example::optimizers_at<descent::amp::O1, example::device_backend>;
template struct example::optimizers_at<descent::amp::O2, example::device_backend>;
template struct example::optimizers_at<descent::amp::O3, example::device_backend>;
