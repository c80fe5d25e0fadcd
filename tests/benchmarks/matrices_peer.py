# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: matrices_peer.py torch|optax blocks width

Muon of PyTorch or optax on the matrices of matrices.cpp, with its protocol."""
import sys
import time

import numpy as np

peer, blocks, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
shapes = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)] * blocks
i = np.arange(sum(r * c for r, c in shapes), dtype=np.float64)
ends = np.cumsum([r * c for r, c in shapes])
gradients = [g.reshape(s) for g, s in zip(np.split(np.sin(i * i).astype(np.float32), ends[:-1]), shapes)]

if peer == "torch":
    import torch
    parameters = [torch.nn.Parameter(torch.full(s, 0.01)) for s in shapes]
    for p, g in zip(parameters, gradients):
        p.grad = torch.from_numpy(g)
    optimizer = torch.optim.Muon(parameters, lr=0.02)
    step = optimizer.step
else:
    import jax
    import optax.contrib
    optimizer = optax.contrib.muon(0.02)
    parameters = [jax.numpy.full(s[::-1], 0.01) for s in shapes]  # its columns are the outputs
    gradients = [jax.numpy.asarray(g.T) for g in gradients]
    state = optimizer.init(parameters)

    @jax.jit
    def update(parameters, state, gradients):
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state

    def step():
        global parameters, state
        parameters, state = jax.block_until_ready(update(parameters, state, gradients))

for _ in sys.stdin:
    begin = time.perf_counter()
    step()
    print(f"{time.perf_counter() - begin:.9f}", flush=True)
