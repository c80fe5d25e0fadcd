# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
# vcpkg, as an overlay port of this clone: vcpkg install descent --overlay-ports=<clone>/docs/install/vcpkg
# A port outside of the clone takes SOURCE_PATH from vcpkg_from_git(OUT_SOURCE_PATH SOURCE_PATH URL ... REF ...) instead.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release)  # there are only headers

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}/docs/install")
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/descent)
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/docs/license.md")
