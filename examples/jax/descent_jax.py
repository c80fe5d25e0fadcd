# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""descent's AdamW as a function in JAX, in place under jit.

    import descent_jax
    descent_jax.register("./libdescent_jax.so")  # made by build.py
    opt = descent_jax.AdamW(1e-3)
    state = opt.init(params)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def train(params, state, batch):
        return opt.step(params, jax.grad(loss)(params, batch), state)
"""
import ctypes
import typing

import jax
import jax.numpy as jnp
import numpy as np


def register(library):
    """Registers the handlers of a library that build.py made: that for the CPU and, if it is there, that for CUDA."""
    functions = ctypes.CDLL(library)
    jax.ffi.register_ffi_target("descent_adamw", jax.ffi.pycapsule(functions.descent_adamw), platform="cpu")
    if hasattr(functions, "descent_adamw_cuda"):
        jax.ffi.register_ffi_target("descent_adamw", jax.ffi.pycapsule(functions.descent_adamw_cuda), platform="CUDA")


class State(typing.NamedTuple):
    """The number of steps so far, and the moments, which are trees like the parameters."""
    count: jax.Array
    mu: typing.Any
    nu: typing.Any


class AdamW:
    """optax.adamw, with its names and defaults. Parameters and gradients are trees of float32. The learning rate is a
    number, or a schedule: a function of the count. A rate that is negative or not finite is an error on the CPU; on CUDA,
    where a kernel cannot throw, such a step changes nothing, the count included. The count stays at 2^31 - 1, like
    optax's."""

    def __init__(self, learning_rate, b1=0.9, b2=0.999, eps=1e-8, weight_decay=1e-4):
        if not callable(learning_rate) and not isinstance(learning_rate, jax.core.Tracer):
            if not (np.isfinite(learning_rate) and learning_rate >= 0):
                raise ValueError(f"learning_rate must be finite and at least 0, is {learning_rate}")
        self.learning_rate = learning_rate
        self.fields = {name: np.float64(x) for name, x in
                       {"beta1": b1, "beta2": b2, "eps": eps, "weight_decay": weight_decay}.items()}

    def init(self, params):
        return State(jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, params),
                     jax.tree.map(jnp.zeros_like, params))

    def step(self, params, grads, state):
        """The new parameters and the new state. One call of XLA for the whole tree. Each result takes the memory of its
        argument; where that is still needed, XLA copies it first."""
        p, tree = jax.tree.flatten(params)
        g, m, v = (tree.flatten_up_to(x) for x in (grads, state.mu, state.nu))
        for i, leaves in enumerate(zip(p, g, m, v)):
            if len({jnp.shape(x) for x in leaves}) > 1:
                shapes = ", ".join(str(jnp.shape(x)) for x in leaves)
                raise ValueError(f"parameter {i}, its gradient and its moments must have one shape, have {shapes}")
        rate = self.learning_rate(state.count) if callable(self.learning_rate) else self.learning_rate
        results = [state.count, *p, *m, *v]
        arguments = [jnp.asarray(rate, jnp.float32), state.count, *p, *g, *m, *v]
        n = len(p)
        place = {1 + i: i for i in range(1 + n)} | {1 + n + i: i for i in range(1 + n, 1 + 3 * n)}
        call = jax.ffi.ffi_call("descent_adamw", [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in results],
                                input_output_aliases=place)
        count, *new = call(*arguments, **self.fields)
        return (tree.unflatten(new[:n]),
                State(count, tree.unflatten(new[n:2 * n]), tree.unflatten(new[2 * n:])))
