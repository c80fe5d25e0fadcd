"""Writes values_presets.txt: trajectories of PyTorch and optax optimizers with their defaults, in float64.

Set up as generate.py says; then python generate_presets.py. The tests read values_presets.txt and never run this
script.
"""

import optax
import torch

from problem import run_optax, run_torch, write

what = """\
# Every optimizer has its defaults, but for the learning rate.
"""


def cases():
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad"):
        lr = 0.02
        yield name, "torch", dict(lr=lr), run_torch(lambda params: getattr(torch.optim, name)(params, lr=lr))
    for name in ("adamw", "adagrad", "rmsprop", "lion", "lars", "lamb", "amsgrad", "nadam",
                 "radam"):
        yield name, "optax", dict(lr=0.02), run_optax(getattr(optax, name)(0.02))


write("values_presets.txt", "generate_presets.py", what, cases())
