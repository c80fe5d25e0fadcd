"""A contestant with a fault, for the test of the driver.    usage: broken.py FAULT COMMAND...

Passes lines to the contestant COMMAND and its answers back, with one fault.
"""

import json
import subprocess
import sys
import time

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()


def off(answer):  # one number of one sample, by the effect of a missing weight decay
    answer["p"][7] *= 1 + 2e-4


def late(answer):  # one element that was not reached
    answer["p"][-1] += 1e-3


def short(answer):
    answer["p"].pop()


def silent(answer):
    del answer["p"]


def not_a_number(answer):
    answer["p"][0] = float("nan")


def failed(answer):
    answer.clear()
    answer["error"] = "no memory"


def main(fault, command):
    inner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in sys.stdin:
        if fault == "slow" and line.startswith("check"):
            time.sleep(60)
        if fault == "garbled" and line.startswith("check"):
            print("what a library prints", flush=True)
        if line.startswith({"mute": "hello", "dead": "check", "dead_later": "time"}.get(fault, "nothing")):
            inner.kill()
            inner.wait()
            sys.exit(3)
        print(line, end="", file=inner.stdin, flush=True)
        answer = inner.stdout.readline()
        if line.startswith("check") and fault in globals():
            changed = json.loads(answer)
            globals()[fault](changed)
            answer = json.dumps(changed) + "\n"
        print(answer, end="", flush=True)
    inner.stdin.close()
    inner.wait()


main(sys.argv[1], sys.argv[2:])
