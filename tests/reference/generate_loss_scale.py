"""Writes loss_scale.txt: trajectories of torch.amp.GradScaler on the CPU.

Set up as generate.py says; then python generate_loss_scale.py. The tests read loss_scale.txt and never run this
script. The header of that file describes the format.
"""

import math
import pathlib
import platform
import random
import struct

import torch

header = """\
# Trajectories of torch.amp.GradScaler("cpu"), to replay with.
# Written by generate_loss_scale.py with python {python}, torch {torch}, on the CPU. Each step is backward of a scaled
# loss whose gradient is infinite where the step overflows, then scaler.step(SGD), scaler.update(), and reading of the
# scale and of _growth_tracker. {sequences} sequences, {steps} steps: five with the defaults, four of them 9000 steps,
# and 495 of 10,100 drawn ones, taken in turn from each class: the interval and which of growth, refused growth, backing
# off, subnormal scales and an end before 0 they reach.
#
# Format: '#' starts a comment line, and the rest is a sequence a line:
#     <init> <growth> <backoff> <interval> <steps> <overflows> <trajectory>
# init: the bits of a float, in hex. growth, backoff: doubles, in the shortest form that reads back exactly.
# overflows: in hex, step i (from 0) being bit 3 - i % 4 of digit i / 4; 1 where the step overflows.
# trajectory: scale and growth tracker after every step, in order:
#     <n>.      n steps (1 where n is absent) after which the scale is what it was and the tracker is one more
#     =         a step after which the scale is what it was and the tracker is 0
#     <bits>;   a step after which the scale has these 8 digits as its bits, and the tracker is 0
"""


def bits(x):
    return f"{struct.unpack('<I', struct.pack('<f', x))[0]:08x}"


def to_float(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def run(init, growth, backoff, interval, pattern):
    """The scale and tracker after each step. Stops before a scale of 0, which a scaler with a floor cannot follow."""
    scaler = torch.amp.GradScaler("cpu", init_scale=init, growth_factor=growth, backoff_factor=backoff,
                                  growth_interval=interval)
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    trajectory = []
    for overflow in pattern:
        scaler.scale((weight * (math.inf if overflow else 0.0)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        weight.grad = None
        with torch.no_grad():
            weight.zero_()
        scale = scaler.get_scale()
        if scale == 0:
            break
        trajectory.append((scale, scaler._get_growth_tracker()))
    return trajectory


def encode(init, trajectory):
    out, scale, tracker, same = [], init, 0, 0

    def flush():
        if same:
            out.append(("" if same == 1 else str(same)) + ".")

    for new_scale, new_tracker in trajectory:
        if new_scale == scale and new_tracker == tracker + 1:
            same += 1
        else:
            assert new_tracker == 0, (scale, tracker, new_scale, new_tracker)
            flush()
            same = 0
            out.append("=" if new_scale == scale else bits(new_scale) + ";")
        scale, tracker = new_scale, new_tracker
    flush()
    return "".join(out)


def hexadecimal(pattern):
    padded = list(pattern) + [False] * (-len(pattern) % 4)
    return "".join(f"{sum(8 >> j for j in range(4) if padded[i + j]):x}" for i in range(0, len(padded), 4))


def draw(rng):
    kind = rng.randrange(8)
    if kind == 0:  # near the largest float
        init = to_float(rng.uniform(0.1, 1) * 3.4e38)
    elif kind == 1:  # near the smallest float
        init = to_float(rng.uniform(0.1, 1) * 2.0 ** rng.randrange(-147, -115)) or 1.0
    elif kind == 2:
        init = to_float(rng.uniform(1, 1e6))
    else:
        init = 2.0 ** rng.randrange(0, 33)
    growth = rng.choice([2.0, 2.0, 1.5, 4.0, 1.001, 10.0, round(rng.uniform(1.0001, 5), 4), rng.uniform(1.0001, 2)])
    backoff = rng.choice([0.5, 0.5, 0.25, 0.9, 0.999, 0.1, round(rng.uniform(0.01, 0.99), 3), rng.uniform(0.3, 0.999)])
    interval = rng.choice([1, 1, 2, 3, 4, 5, 8, 13, 30])
    steps = rng.choice([8, 16, 24, 32, 40])
    rate = rng.choice([0, 0.02, 0.1, 0.1, 0.2, 0.3, 0.5, 0.9])
    return init, growth, backoff, interval, [rng.random() < rate for _ in range(steps)]


def branches(case, trajectory):
    """The class of a sequence: its interval and the kinds of changes that it reaches."""
    before, reached = (case[0], 0), set()
    for overflow, after in zip(case[4], trajectory):
        if overflow:
            reached.add("backs off to a subnormal" if after[0] < 2.0**-126 else "backs off")
        elif after[1] == 0:
            reached.add("grows" if after[0] > before[0] else "growth to infinity is refused")
        before = after
    if len(trajectory) < len(case[4]):
        reached.add("would vanish")
    return case[3], frozenset(reached)


def chosen(drawn, count):
    """The first of each class of branches, then the second of each, and so on, in drawn order."""
    classes = {}
    for i, (case, trajectory) in enumerate(drawn):
        classes.setdefault(branches(case, trajectory), []).append(i)
    turns = sorted((turn, i) for of in classes.values() for turn, i in enumerate(of))
    return [drawn[i] for i in sorted(i for _, i in turns[:count])]


def main():
    rng = random.Random(20260101)
    drawn = [draw(rng) for _ in range(10100)]
    defaults = [(65536.0, 2.0, 0.5, 2000, [rng.random() < rate for _ in range(9000)])
                for rate in (0.0, 1 / 3000, 1 / 1000, 1 / 300)]
    defaults.append((65536.0, 2.0, 0.5, 2000, [True] * 400))
    runs = chosen([(case, trajectory) for case in drawn if (trajectory := run(*case))], 495)
    runs += [(case, run(*case)) for case in defaults]
    lines, steps = [], 0
    for (init, growth, backoff, interval, pattern), trajectory in runs:
        pattern = pattern[:len(trajectory)]
        steps += len(trajectory)
        lines.append(f"{bits(init)} {growth!r} {backoff!r} {interval} {len(trajectory)} {hexadecimal(pattern)} "
                     f"{encode(init, trajectory)}")
    out = pathlib.Path(__file__).with_name("loss_scale.txt")
    out.write_text(header.format(python=platform.python_version(), torch=torch.__version__, sequences=len(lines),
                                 steps=steps) + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
