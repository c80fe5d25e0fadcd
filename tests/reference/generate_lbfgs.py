"""Writes values_lbfgs.txt: iterates of torch.optim.LBFGS in float64.

Set up as generate.py says; then python generate_lbfgs.py. The tests read values_lbfgs.txt and never run this script.
The header of that file describes the format.
"""

import pathlib
import platform

import torch

header = """\
# Iterates of torch.optim.LBFGS in float64, with its tolerances at 0 where a case does not say them.
# Written by generate_lbfgs.py with python {python}, torch {torch}, on the CPU.
#
# bowl: x of 4 and 6 elements counted i = 0..9, from 0.1 (i + 1); a = 1 + i, c = sin(i):
#     f = sum a (x - c)^2 / 2 + 0.05 sum (x - c)^4 + 0.5 sum (x[i+1] - x[i])^2
# rosenbrock: x of one element and one, from -1.2 and 1: f = (1 - x)^2 + 100 (y - x^2)^2
# chain: x of 8 and 12 elements counted i = 0..19, from cos(i); a = 10^(4 i / 19), c = sin(i):
#     f = sum a (x - c)^2 / 2 + sum (10 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2)
#
# Format: case <problem> search=<none|strong_wolfe> lr=<> history=<>, then lines
#     <iterations> <evaluations> <spread> <parameter 0> <parameter 1> ...
# each from a new start, with max_iter=<iterations>. spread is how far the iterates of eight more runs are from these at
# most, whose starts are other by 1e-15 of themselves and whose losses by 2e-16: what rounding alone can do.
#
# A case with stop=<reason> sets what it names (tolerance_grad, tolerance_change, max_eval) and has one line, of where
# PyTorch stops by itself.
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


def chain():
    i = torch.arange(20, dtype=torch.float64)
    a, c = 10 ** (4 * i / 19), torch.sin(i)
    parts = [torch.nn.Parameter(torch.cos(i[:8])), torch.nn.Parameter(torch.cos(i[8:]))]

    def f():
        x = torch.cat(parts)
        return ((a * (x - c) ** 2).sum() / 2 + (10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())

    return parts, f


def run(problem, search, lr, history, iterations, tolerance_grad=0, tolerance_change=0, max_eval=10 ** 6, shift=None):
    parts, f = problem()
    if shift is not None:
        with torch.no_grad():
            for p in parts:
                p *= 1 + 1e-15 * torch.randn(p.shape, generator=shift, dtype=torch.float64)
    optimizer = torch.optim.LBFGS(
        parts, lr=lr, max_iter=iterations, max_eval=max_eval, tolerance_grad=tolerance_grad,
        tolerance_change=tolerance_change, history_size=history, line_search_fn=None if search == "none" else search)
    evaluations = 0

    def closure():
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        loss = f()
        loss.backward()
        if shift is not None:
            loss = loss.detach() * (1 + 2e-16 * torch.randn((), generator=shift, dtype=loss.dtype))
        return loss

    optimizer.step(closure)
    return optimizer.state[parts[0]]["n_iter"], evaluations, torch.cat([p.detach() for p in parts])


def write_line(out, *arguments, **options):
    done, evaluations, x = run(*arguments, **options)
    spread = 0
    for seed in range(8):
        done2, evaluations2, x2 = run(*arguments, **options, shift=torch.Generator().manual_seed(seed))
        assert (done2, evaluations2) == (done, evaluations), (arguments, options)
        spread = max(spread, float((x2 - x).abs().max()))
    out.write(f"{done} {evaluations} {spread:.1e} " + " ".join("%.17g" % v for v in x) + "\n")


few, many = (1, 2, 3, 5, 8, 13, 21), (1, 2, 5, 10, 20, 50, 100)
before_the_floor = (*few[:-1], 16)  # after these, rounding of the loss decides how often it is evaluated
with open(pathlib.Path(__file__).with_name("values_lbfgs.txt"), "w") as out:
    out.write(header.format(python=platform.python_version(), torch=torch.__version__.split("+")[0]))
    for problem, search, lr, history, numbers in [
            (bowl, "none", 1, 10, few), (bowl, "none", 0.5, 3, few), (bowl, "strong_wolfe", 1, 10, before_the_floor),
            (bowl, "strong_wolfe", 0.1, 2, few), (rosenbrock, "strong_wolfe", 1, 10, few),
            (rosenbrock, "strong_wolfe", 0.01, 2, few), (chain, "none", 1, 5, many), (chain, "none", 0.5, 5, many),
            (chain, "strong_wolfe", 1, 5, many), (chain, "strong_wolfe", 0.3, 20, many)]:
        out.write(f"\ncase {problem.__name__} search={search} lr={lr} history={history}\n")
        for iterations in numbers:
            write_line(out, problem, search, lr, history, iterations)
    for problem, search, lr, history, stop, option, value in [
            (chain, "none", 1, 5, "gradient", "tolerance_grad", 2.0),
            (chain, "strong_wolfe", 1, 5, "gradient", "tolerance_grad", 2.0),
            (chain, "none", 1, 5, "change", "tolerance_change", 1e-3),
            (chain, "strong_wolfe", 1, 5, "change", "tolerance_change", 1e-2),
            (bowl, "strong_wolfe", 1, 10, "slope", "tolerance_change", 1e-6),
            (chain, "none", 1, 5, "evaluations", "max_eval", 30),
            (chain, "strong_wolfe", 1, 5, "evaluations", "max_eval", 30),
            (rosenbrock, "strong_wolfe", 1, 10, "evaluations", "max_eval", 9),
            (rosenbrock, "strong_wolfe", 0.01, 2, "evaluations", "max_eval", 22),  # in the middle of a line search
            (rosenbrock, "strong_wolfe", 0.01, 2, "evaluations", "max_eval", 23)]:
        out.write(f"\ncase {problem.__name__} search={search} lr={lr} history={history} stop={stop} {option}={value}\n")
        write_line(out, problem, search, lr, history, 200, **{option: value})
