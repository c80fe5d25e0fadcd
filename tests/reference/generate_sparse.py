"""Writes values_sparse.txt: the trajectory of torch.optim.SparseAdam in float64.

Set up as generate.py says; then python generate_sparse.py. The tests read values_sparse.txt and never run this
script.
"""

import torch

from problem import gradient, run_torch, shapes, write

what = """\
# Row r of tensor k has a gradient at step t only where (5 t + 3 r + k) % 4 is not 0; tensors 0 and 1 have rows of one
# element.
#
"""


def gradients(params, t):
    for k, p in enumerate(params):
        rows = torch.tensor([r for r in range(shapes[k][0]) if (5 * t + 3 * r + k) % 4 != 0], dtype=torch.int64)
        yield torch.sparse_coo_tensor(
            rows[None], torch.from_numpy(gradient(k, t))[rows], p.shape, check_invariants=True)


def cases():
    for options in dict(lr=0.05, beta1=0.8, beta2=0.95, eps=1e-3), dict(lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8):
        yield "adam", "torch", options, run_torch(lambda params: torch.optim.SparseAdam(
            params, lr=options["lr"], betas=(options["beta1"], options["beta2"]), eps=options["eps"]),
            gradients=gradients)


write("values_sparse.txt", "generate_sparse.py", what, cases())
