# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: unchanged.py depfile output... -- command...

Runs a compiler that writes a dependency file, unless the command, its programs and the text of all files that it read
are as they were when it last succeeded: then the outputs are kept. Ninja compares times only. What the files were is
written to `depfile`.json."""
import functools
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()


@functools.cache
def digest_of(path, time, size):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def digest(path):
    now = os.stat(path)  # a command may write what it names
    return digest_of(path, now.st_mtime_ns, now.st_size)


def state_of(command, depfile, reads):
    """All that the result depends on: the dependency file names what is read beside `reads`."""
    names = shlex.split(depfile.read_text(encoding="utf-8").replace("\\\n", " ").partition(":")[2]) + [*reads]
    programs = {word: os.stat(program).st_mtime for word in command if (program := shutil.which(word))}
    names += [word for word in command if word not in programs and os.path.isfile(word)]
    return {"command": command, "programs": programs, "files": {name: digest(name) for name in names}}


def run(command, depfile, outputs=(), reads=(), **options):
    """As subprocess.run with these options; if nothing has changed, returns 0 and runs nothing. `reads` names files that
    the compiler reads and leaves out of the dependency file, as GCC does with a precompiled header."""
    depfile, record = pathlib.Path(depfile), pathlib.Path(f"{depfile}.json")
    if record.exists() and all(map(os.path.exists, outputs)):
        try:
            last = json.loads(record.read_text(encoding="utf-8"))
            depfile.write_text(last["depfile"], encoding="utf-8")  # Ninja has removed it
            if state_of(command, depfile, reads) == last["state"]:
                for output in outputs:
                    os.utime(output)
                return subprocess.CompletedProcess(command, 0, "", "")
        except (OSError, ValueError):
            pass  # a file is gone, or a run was killed while it wrote the record
    record.unlink(missing_ok=True)
    done = subprocess.run(command, check=False, **options)
    if done.returncode == 0 and depfile.exists():
        last = {"depfile": depfile.read_text(encoding="utf-8"), "state": state_of(command, depfile, reads)}
        record.write_text(json.dumps(last), encoding="utf-8")
    return done


if __name__ == "__main__":
    end = sys.argv.index("--")
    sys.exit(run(sys.argv[end + 1:], sys.argv[1], sys.argv[2:end]).returncode)
