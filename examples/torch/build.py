#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: build.py extension LIBRARY OUT      compiles descent_torch.cpp into OUT, a library for torch.ops.load_library
       build.py program OUT [ARGUMENT...]     compiles train.cpp, a libtorch program

Run it with the Python that has PyTorch. LIBRARY is the shared library of ../c_api; the extension finds it where it is
now. CXX is the compiler. ARGUMENTs go to it; the program needs where the headers of CUDA are."""
import os
import pathlib
import subprocess
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

import torch

here = pathlib.Path(__file__).resolve().parent
of_torch = pathlib.Path(torch.__file__).parent
command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-isystem", of_torch / "include", f"-L{of_torch / 'lib'}"]
match sys.argv[1:]:
    case ["extension", library, out]:
        library = pathlib.Path(library).resolve()
        command += ["-shared", "-fPIC", "-DTORCH_TARGET_VERSION=0x020a000000000000", f"-I{here.parent / 'c_api'}",
                    here / "descent_torch.cpp", library, f"-Wl,-rpath,{library.parent}", "-ltorch_cpu", "-o", out]
    case ["program", out, *arguments]:
        command += ["-fopenmp", f"-I{here.parent.parent / 'include'}", "-isystem",
                    of_torch / "include/torch/csrc/api/include", here / "train.cpp", *arguments,
                    f"-Wl,-rpath,{of_torch / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10", "-o", out]
    case _:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
sys.exit(subprocess.run(command, check=False).returncode)
