# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
include("$ENV{DESCENT_CPM}")
# snippet: cpm
CPMAddPackage(
  NAME descent
  GIT_REPOSITORY "${DESCENT_URL}"
  GIT_TAG "${DESCENT_COMMIT}"
  SOURCE_SUBDIR docs/install)
# end
