# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: run.py torch|program|jax folder c_api-library compiler [argument...]
       run.py state folder torch_state compiler
       run.py cross|read_parts folder program compiler

Builds examples/torch (the extension; with `program` the libtorch program) or examples/jax with the user's build.py, and
tests it. With `state`, tests the conversion of checkpoints in examples/torch; torch_state is the program of
torch_state.cpp. With `cross` and `read_parts`, runs the script of this name in tests/io. It takes a Python that has the
framework: what DESCENT_TORCH_PYTHON, DESCENT_JAX_PYTHON or DESCENT_SAFETENSORS_PYTHON names, this one, or that of a
virtual environment in `folder`, where pip installs the framework at the first run. Without PyPI or enough space the
test is skipped."""
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import venv

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

requirements = {"torch": ["torch==2.15.0", "safetensors==0.8.0", "numpy==2.4.6"],
                "jax": ["jax==0.10.2", "optax==0.2.8"],
                "safetensors": ["safetensors==0.8.0", "numpy==2.4.6", "xxhash==4.1.0"]}
gigabytes = {"torch": 10, "jax": 2, "safetensors": 1}  # on PyPI, PyTorch for Linux comes with CUDA's libraries

what, folder, library, compiler, *arguments = sys.argv[1:]
here = pathlib.Path(__file__).resolve().parent
framework = {"jax": "jax", "cross": "safetensors", "read_parts": "safetensors"}.get(what, "torch")
example = here.parent.parent / "examples" / framework
needed = requirements[framework][:1] if what in ("torch", "program") else requirements[framework]


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def has_framework(python):
    names = [wanted.partition("==")[0] for wanted in needed]
    look = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {names})))"
    return subprocess.run([python, "-c", look], check=False).returncode == 0


def installed(home):
    """The Python of the virtual environment `home`, which is made unless a run before has done so."""
    wanted, done = requirements[framework], home / "installed"
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(home.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # three tests need PyTorch
        if done.exists() and done.read_text(encoding="utf-8").split() == wanted:
            return home / "bin" / "python"
        if not done.exists() and shutil.disk_usage(home.parent).free < gigabytes[framework] * 1e9:
            skip(f"there is no {framework}, and {home} needs {gigabytes[framework]} GB to install it")
        try:
            venv.create(home, clear=not done.exists(), with_pip=True)
        except (subprocess.CalledProcessError, OSError) as error:
            skip(f"there is no {framework}, and no virtual environment can be made: {error}")
        try:
            subprocess.run([home / "bin" / "python", "-m", "pip", "install", "-q", "--no-cache-dir",
                            "--disable-pip-version-check", "--no-compile", "--retries", "1", "--timeout", "20", *wanted],
                           stderr=subprocess.PIPE, text=True, check=True, timeout=600)
        except subprocess.TimeoutExpired:
            skip(f"there is no {framework}, and pip has not installed {' '.join(wanted)} within ten minutes")
        except subprocess.CalledProcessError as error:
            skip(f"there is no {framework}, and pip cannot install {' '.join(wanted)}:\n{error.stderr}")
        done.write_text("\n".join(wanted), encoding="utf-8")
        return home / "bin" / "python"


variable = f"DESCENT_{framework.upper()}_PYTHON"
python = os.environ.get(variable)
if python and not has_framework(python):
    sys.exit(f"{python}, which {variable} names, does not have {' and '.join(needed)}")
if not python:
    python = sys.executable if has_framework(sys.executable) else installed(pathlib.Path(folder) / framework)

with tempfile.TemporaryDirectory() as scratch:
    out = pathlib.Path(scratch) / "descent.so"
    path = f"{example}{os.pathsep}{here.parent / 'c_api'}"
    environment = os.environ | {"CXX": compiler, "PYTHONPATH": path, "OMP_NUM_THREADS": "2",
                                "PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode"), "JAX_PLATFORMS": "cpu",
                                "CUDA_VISIBLE_DEVICES": ""}

    def run(*command):
        if code := subprocess.run(command, env=environment, check=False).returncode:
            sys.exit(code if code > 0 else 1)
    match what:
        case "torch":
            run(python, example / "build.py", "extension", library, out)
            run(python, here / "torch_test.py", out)
        case "state":
            run(python, here / "torch_state.py", library)
        case "cross" | "read_parts":
            run(python, here.parent / "io" / f"{what}.py", library)
        case "program":
            run(python, example / "build.py", "program", out, *arguments, "-O0")  # 20 instead of 26 s
            run(out)
        case "jax":
            run(python, example / "build.py", out, *arguments)
            run(python, here / "jax_test.py", out, library)
