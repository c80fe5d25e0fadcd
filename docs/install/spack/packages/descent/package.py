# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
import os

from spack.package import *

# The clone that this recipe is a part of. A recipe outside of it has the URL of a clone here instead.
clone = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 5))


class Descent(Package):
    """The optimization step of machine learning on CUDA, header-only."""

    git = "file://" + clone
    license("MIT")

    version("main", branch="main")

    depends_on("cxx", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("cuda@12.4:")

    def install(self, spec, prefix):
        cmake = which("cmake")
        cmake("-S", "docs/install", "-B", "build", "-DCMAKE_INSTALL_PREFIX=" + str(prefix))
        cmake("--install", "build")
