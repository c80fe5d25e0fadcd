#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: build.py OUT [ARGUMENT...]           compiles on_host.cpp into OUT, a library for descent_jax.register
       build.py --cuda OUT [ARGUMENT...]    the same with on_cuda.cu, by nvcc

Run it with the Python that has JAX. CXX and NVCC are the compilers. ARGUMENTs go to them."""
import os
import pathlib
import subprocess
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

import jax

here = pathlib.Path(__file__).resolve().parent
host = ["-O3", "-fno-math-errno", "-fopenmp", "-fPIC"]  # without errno, compilers vectorize sqrt
match sys.argv[1:]:
    case ["--cuda", out, *arguments]:
        command = [os.environ.get("NVCC", "nvcc"), "-std=c++20", f"-Xcompiler={','.join(host)}", "-O3",
                   here / "on_cuda.cu"]
    case [out, *arguments] if not out.startswith("-"):
        command = [os.environ.get("CXX", "c++"), "-std=c++20", *host]
    case _:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
command += ["-shared", here / "on_host.cpp", f"-I{here.parent.parent / 'include'}", "-isystem", jax.ffi.include_dir(),
            *arguments, "-o", out]
sys.exit(subprocess.run(command, check=False).returncode)
