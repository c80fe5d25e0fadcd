// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "rules.hpp"

static bool const added = bench::add_rules(example::common_rules{});
