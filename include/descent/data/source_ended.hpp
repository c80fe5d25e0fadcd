// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <stdexcept>

namespace descent {

/// A source throws this if it can read no more records, for instance because its connection or its processes are
/// gone. A loader then delivers no batch, also with on_error::skip, which would leave out all records that follow.
struct source_ended : std::runtime_error { using std::runtime_error::runtime_error; };

}  // namespace descent
