# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Conan 2: `conan create docs/install` packages the headers of this clone as descent/<version>, with CMake's target
descent::descent. The CUDA Toolkit is not a package: CUDA_HOME says where it is, /usr/local/cuda by default."""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load


class Descent(ConanFile):
    name = "descent"
    description = "the optimization step of machine learning on CUDA, header-only"
    license = "MIT"
    package_type = "header-library"
    implements = ["auto_header_only"]
    settings = "os", "compiler"
    no_copy_source = True

    def set_version(self):
        build = load(self, os.path.join(self.recipe_folder, "..", "..", "meson.build"))
        self.version = re.search(r" version: '([^']+)'", build)[1]

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        copy(self, "descent/*", os.path.join(root, "include"), os.path.join(self.export_sources_folder, "include"))
        copy(self, "license.md", os.path.join(root, "docs"), self.export_sources_folder)

    def validate(self):
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 20)

    def package(self):
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))
        copy(self, "license.md", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        cuda = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
        self.cpp_info.includedirs = ["include", os.path.join(cuda, "cccl"), cuda]
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        if self.settings.get_safe("os") == "Linux":
            self.cpp_info.system_libs = ["pthread"]
