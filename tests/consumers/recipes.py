# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: recipes.py project-root

The recipes of docs/install have the project's version, and those for vcpkg and Spack install a package. Functions with
the names of vcpkg's and Spack's stand in for them; run.sh has the ways that are tested with the real programs."""
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

root = pathlib.Path(sys.argv[1]).resolve()
recipes = root / "docs/install"
version = re.search(r" version: '([^']+)'", (root / "meson.build").read_text(encoding="utf-8"))[1]


def installed(prefix, package):
    """The prefix has the headers and the CMake package, of this version."""
    assert (prefix / "include/descent/descent.hpp").is_file(), prefix
    for name in ("descent-config.cmake", "descent-target.cmake"):
        assert (prefix / package / name).is_file(), name
    assert f'"{version}"' in (prefix / package / "descent-config-version.cmake").read_text(encoding="utf-8")


def vcpkg(work):
    port = recipes / "vcpkg/descent"
    manifest = json.loads((port / "vcpkg.json").read_text(encoding="utf-8"))
    assert manifest["version-semver"] == version, manifest
    stand_in = work / "vcpkg.cmake"
    stand_in.write_text("""
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()
function(vcpkg_cmake_configure word path)
  run(cmake -S "${path}" -B "${CURRENT_BUILDTREES_DIR}" "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}")
endfunction()
function(vcpkg_cmake_install)
  run(cmake --install "${CURRENT_BUILDTREES_DIR}")
endfunction()
function(vcpkg_cmake_config_fixup word path)
  file(RENAME "${CURRENT_PACKAGES_DIR}/${path}" "${CURRENT_PACKAGES_DIR}/share/descent")
endfunction()
function(vcpkg_install_copyright word file)
  configure_file("${file}" "${CURRENT_PACKAGES_DIR}/share/descent/copyright" COPYONLY)
endfunction()
include("${PORT_DIR}/portfile.cmake")
""", encoding="utf-8")
    subprocess.run(["cmake", f"-DPORT_DIR={port}", f"-DCURRENT_BUILDTREES_DIR={work}/build",
                    f"-DCURRENT_PACKAGES_DIR={work}/vcpkg", "-P", stand_in], check=True)
    installed(work / "vcpkg", "share/descent")
    assert (work / "vcpkg/share/descent/copyright").is_file()


def spack(work):
    recipe = recipes / "spack/packages/descent/package.py"
    run = functools.partial(subprocess.run, check=True, cwd=work / "clone", stdout=subprocess.DEVNULL)
    names = {"Package": object, "which": lambda name: lambda *words: run([name, *words])}
    names |= dict.fromkeys(("license", "version", "depends_on"), lambda *words, **more: None)
    sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), types.ModuleType("spack.package")
    vars(sys.modules["spack.package"]).update(names)
    module = {"__file__": str(recipe)}
    exec(compile(recipe.read_text(encoding="utf-8"), recipe, "exec"), module)  # pylint: disable=exec-used
    assert module["Descent"].git == f"file://{root}", module["Descent"].git
    for folder in ("include", "docs/install"):
        shutil.copytree(root / folder, work / "clone" / folder)
    shutil.copy(root / "meson.build", work / "clone")
    module["Descent"]().install(None, work / "spack")
    installed(work / "spack", "share/cmake/descent")


with tempfile.TemporaryDirectory() as folder:
    vcpkg(pathlib.Path(folder))
    spack(pathlib.Path(folder))
text = (recipes / "conanfile.py").read_text(encoding="utf-8")
compile(text, "conanfile.py", "exec")
print(f"the recipes are of {version}")
