"""Writes values_lbfgs.txt: iterates of torch.optim.LBFGS in float64.

    python3 -m venv refenv && . refenv/bin/activate
    pip install numpy torch==2.15.0
    python generate_lbfgs.py

The tests read values_lbfgs.txt and never run this script. The header of that file describes the format.
"""

import pathlib
import platform

import torch

header = """\
# Iterates of torch.optim.LBFGS in float64, with its tolerances at 0.
# Written by generate_lbfgs.py with python {python}, torch {torch}, on the CPU.
#
# bowl: x of 4 and 6 elements counted i = 0..9, from 0.1 (i + 1); a = 1 + i, c = sin(i):
#     f = sum a (x - c)^2 / 2 + 0.05 sum (x - c)^4 + 0.5 sum (x[i+1] - x[i])^2
# rosenbrock: x of one element and one, from -1.2 and 1: f = (1 - x)^2 + 100 (y - x^2)^2
#
# Format: case <problem> search=<none|strong_wolfe> lr=<> history=<>, then lines
#     <iterations> <evaluations> <parameter 0> <parameter 1> ...
# each from a new start, with max_iter=<iterations>.
"""


def bowl():
    parts = [torch.nn.Parameter(0.1 * torch.arange(1, 5, dtype=torch.float64)),
             torch.nn.Parameter(0.1 * torch.arange(5, 11, dtype=torch.float64))]
    i = torch.arange(10, dtype=torch.float64)
    a, c = 1 + i, torch.sin(i)

    def f():
        x = torch.cat(parts)
        return ((a * (x - c) ** 2).sum() / 2 + 0.05 * ((x - c) ** 4).sum() + 0.5 * ((x[1:] - x[:-1]) ** 2).sum())

    return parts, f


def rosenbrock():
    parts = [torch.nn.Parameter(torch.tensor([x], dtype=torch.float64)) for x in (-1.2, 1.0)]

    def f():
        x, y = parts
        return ((1 - x) ** 2 + 100 * (y - x ** 2) ** 2).sum()

    return parts, f


def run(problem, search, lr, history, iterations):
    parts, f = problem()
    optimizer = torch.optim.LBFGS(
        parts, lr=lr, max_iter=iterations, max_eval=10 ** 6, tolerance_grad=0, tolerance_change=0,
        history_size=history, line_search_fn=None if search == "none" else search)
    evaluations = 0

    def closure():
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        loss = f()
        loss.backward()
        return loss

    optimizer.step(closure)
    return evaluations, torch.cat([p.detach() for p in parts])


with open(pathlib.Path(__file__).with_name("values_lbfgs.txt"), "w") as out:
    out.write(header.format(python=platform.python_version(), torch=torch.__version__.split("+")[0]))
    for problem, search, lr, history in [
            (bowl, "none", 1, 10), (bowl, "none", 0.5, 3), (bowl, "strong_wolfe", 1, 10), (bowl, "strong_wolfe", 0.1, 2),
            (rosenbrock, "strong_wolfe", 1, 10), (rosenbrock, "strong_wolfe", 0.01, 2)]:
        out.write(f"\ncase {problem.__name__} search={search} lr={lr} history={history}\n")
        for iterations in (1, 2, 3, 5, 8, 13, 21):
            evaluations, x = run(problem, search, lr, history, iterations)
            out.write(f"{iterations} {evaluations} " + " ".join("%.17g" % v for v in x) + "\n")
