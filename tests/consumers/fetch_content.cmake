# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
# snippet: fetch_content
include(FetchContent)
FetchContent_Declare(descent
  GIT_REPOSITORY "${DESCENT_URL}"
  GIT_TAG "${DESCENT_COMMIT}"
  SOURCE_SUBDIR docs/install)
FetchContent_MakeAvailable(descent)
# end
