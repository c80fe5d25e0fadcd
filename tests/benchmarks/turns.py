"""Times contestants in an interleaved order."""

import math
import statistics
import time

from contestant import Refused

pause = 5e-3  # seconds between turns, so that the threads of the last contestant go to sleep


def quartiles(seconds):
    a, b, c = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else 3 * seconds
    return {"median": b, "q1": a, "q3": c, "samples": seconds}


def time_turns(runs, single, given):
    """Quartiles of each contestant, or the message of one that failed. `runs` are functions of samples and steps. If
    `single` is not 0, a sample has that many steps."""
    steps, cost, found, failed = {}, 0, {name: {"seconds": [], "host_seconds": []} for name in runs}, {}
    def measure(name, samples, n):
        try:
            time.sleep(pause)
            return {} if name in failed else runs[name](samples, n)
        except Refused as error:
            failed[name] = str(error)
            return {}
    for name in runs:
        once = min(measure(name, 2, 1).get("seconds", []), default=0)
        steps[name] = single or min(max(1, math.ceil(given.sample / max(once, 1e-9))), 2000)
        cost += 2 * max(steps[name] * once, pause / given.per_turn)
    samples = max(given.least, min(given.most, int(given.seconds / max(cost, 1e-9))))
    order = list(runs)
    for turn in range(math.ceil(samples / given.per_turn)):
        for name in order[turn % len(order):] + order[:turn % len(order)]:
            for kind, seconds in measure(name, given.per_turn, steps[name]).items():
                found[name][kind] += seconds
    return {name: {"refused": failed[name]} if name in failed else
            {kind: {**quartiles(seconds), "steps": steps[name]} for kind, seconds in found[name].items() if seconds}
            for name in order}
