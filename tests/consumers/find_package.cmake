# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
# snippet: find_package
find_package(descent 0.1 REQUIRED)
# end
