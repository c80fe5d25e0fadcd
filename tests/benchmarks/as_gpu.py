"""A host contestant that claims to run on a GPU, for the test of the driver.    usage: as_gpu.py ROOM COMMAND...

Passes lines to the contestant COMMAND and its answers back. Answers room and count itself, for a GPU with ROOM free
bytes.
"""

import json
import subprocess
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

gpu = {"device": {"name": "no GPU", "capability": "0.0", "multiprocessors": 1, "l2_bytes": 1 << 20, "memory_bytes": 1,
                  "driver_cuda": "0.0", "cuda": "0.0"}, "counts": True, "once": True}


def main(room, command):
    inner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in sys.stdin:
        if line.startswith("room"):
            answer = {"free": int(room)}
        elif line.startswith("count"):
            answer = {"launches": 7, "synchronisations": 2}
        else:
            print(line, end="", file=inner.stdin, flush=True)
            answer = json.loads(inner.stdout.readline())
            if line.startswith("hello"):
                answer |= gpu
        print(json.dumps(answer), flush=True)
    inner.stdin.close()
    inner.wait()


main(sys.argv[1], sys.argv[2:])
