"""Writes values_follow.txt: one trajectory of every rule whose gradients follow the parameters, in float64.

Set up as generate.py, generate_optax.py and generate_timm.py say; then python generate_follow.py. It runs the other
scripts with other gradients and takes of each rule the case with most options that are not 0 and that needs no schedule
and nothing around it but adaptive clipping. The tests read values_follow.txt and never run this script.
"""

import importlib.metadata
import pathlib
import runpy

import problem

what = """\
# Here the gradients are others than above: those of f = (p - 2)^2 / 2^k, that is g = (p - 2) * 2 / 2^k at the current
# parameters. The rules are computed as the file of the option `of` says. The loss of polyak and momo is the sum of f
# over all elements.
"""

files = dict(
    generate="values.txt", generate_torch="values_torch.txt", generate_optax="values_optax.txt",
    generate_timm="values_timm.txt", generate_more="values_more.txt", generate_free="values_free.txt",
    generate_loss="values_loss.txt")
# These have cases of the same gradients in values_free_quadratic.txt.
elsewhere = ("dowg", "prodigy", "dadapt_adamw")

write = problem.write
problem.recorded_gradients = problem.quadratic_gradients
for function in (problem.run_torch, problem.run_optax):
    function.__defaults__ = tuple(
        problem.quadratic_gradients if callable(one) and one.__name__ == "recorded_gradients" else one
        for one in function.__defaults__)

chosen, most = {}, {}


def choose(name, script, what, cases, more_versions={}):
    if name not in files.values():
        return
    for rule, peer, options, trajectory in cases:
        if rule in elsewhere or "schedule" in options or not options.get("with", "agc").startswith("agc"):
            continue
        if rule == "fromage" and options["lr"] > 0.05:
            continue  # its steps do not shrink: around the optimum they multiply rounding errors
        in_use = sum(x != 0 for x in options.values())
        if in_use >= most.get((name, rule), 0):
            most[name, rule] = in_use
            chosen[name, rule] = (rule, peer, options | dict(of=name), trajectory)


def with_loss(optimizer, more):
    """run_optax whose loss follows the parameters, too."""
    loss = {}

    def gradients(params, t):
        loss["value"] = sum(((p - 2) ** 2 / 2 ** k).sum() for k, p in enumerate(params))
        return problem.quadratic_gradients(params, t)

    return run_optax(optimizer, gradients, more=lambda t: loss)


run_optax = problem.run_optax
problem.write = choose
for script in files:
    if script == "generate_loss":
        problem.run_optax = with_loss
    runpy.run_path(str(pathlib.Path(__file__).with_name(script + ".py")))
write("values_follow.txt", "generate_follow.py", what, chosen.values(),
      {name: importlib.metadata.version(name) for name in ("pytorch_optimizer", "timm")})
