# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: matrices_peer.py torch|torch_captured|optax blocks width [cpu|cuda]

Muon of PyTorch or optax on the matrices of matrices.cpp, or of matrices.cu, with their protocol."""
import sys
import time

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

import numpy as np

peer, blocks, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
device = sys.argv[4] if len(sys.argv) > 4 else "cpu"
steps = 20 if device == "cuda" else 1
shapes = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)] * blocks
i = np.arange(sum(r * c for r, c in shapes), dtype=np.float64)
ends = np.cumsum([r * c for r, c in shapes])
gradients = [g.reshape(s) for g, s in zip(np.split(np.sin(i * i).astype(np.float32), ends[:-1]), shapes)]


def end():
    pass


if peer.startswith("torch"):
    import torch
    parameters = [torch.nn.Parameter(torch.full(s, 0.01, device=device)) for s in shapes]
    for p, g in zip(parameters, gradients):
        p.grad = torch.from_numpy(g).to(device)
    optimizer = torch.optim.Muon(parameters, lr=0.02)
    step = optimizer.step
    if device == "cuda":
        end = torch.cuda.synchronize
    if peer == "torch_captured":
        for _ in range(3):
            step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            optimizer.step()
        step = graph.replay
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
    for _ in range(steps):
        step()
    end()
    print(f"{(time.perf_counter() - begin) / steps:.9f}", flush=True)
