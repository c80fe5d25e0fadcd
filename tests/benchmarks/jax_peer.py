"""JAX with optax as a contestant, in the protocol of drive.py.    usage: jax_peer.py [cpu|cuda]

A step is one function under jit, with donated values and state. Python cannot record events on JAX's stream, so steps
are timed by the clock until the last of them is done.
"""

import functools
import math
import os
import sys
from importlib.metadata import version

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
import optax

import peer
from peer import beta1, beta2, clip, decay, ema, eps, lion_beta2, lion_lr, loss_scale, lr, momentum

types = {"float": jnp.float32, "half": jnp.float16, "bfloat16": jnp.bfloat16}
adam = {"learning_rate": lr, "b1": beta1, "b2": beta2, "eps": eps, "weight_decay": decay}
growth_interval = 2000


def rule(name):
    if name in ("sgd", "momentum"):
        return optax.sgd(lr, momentum=momentum if name == "momentum" else None)
    if name == "lion":
        return optax.lion(lion_lr, b1=beta1, b2=lion_beta2, weight_decay=decay)
    return optax.lamb(**adam) if name == "lamb" else optax.adamw(**adam)


class DeviceMemory:
    def __init__(self):
        self.marked = jax.devices()[0].memory_stats()["bytes_in_use"]

    def grown(self):
        return jax.devices()[0].memory_stats()["peak_bytes_in_use"] - self.marked


def each(f, *trees):
    return jax.tree.map(f, *trees)


@functools.cache
def step_of(name, stored):
    """The step as a function of the numbers and the gradients; also returns zeroed gradients if the recipe does so."""
    optimizer = rule(name)
    scaled = name == "adamw_half_o2"
    def step(x, g):
        p, state = x.get("p", x["w"]), x["state"]
        if name == "adamw_bf16_sr":
            p, state = each(lambda a: a.astype(jnp.float32), (p, state))
        grads = each(lambda a: a.astype(jnp.float32) / (x["scale"] if scaled else 1), g)
        if scaled or name.endswith("clip"):
            norm = jnp.sqrt(sum(jnp.sum(a * a) for a in jax.tree.leaves(grads)))
            grads = each(lambda a: a * jnp.minimum(1, clip / (norm + 1e-6)), grads)
        updates, next_state = optimizer.update(grads, state, p)
        now = {"state": next_state, "p": optax.apply_updates(p, updates)}
        if scaled:
            finite = jnp.isfinite(norm)
            now = each(lambda new, old: jnp.where(finite, new, old), now, {"state": state, "p": p})
            steps = jnp.where(finite, x["steps"] + 1, 0)
            grow = steps == growth_interval
            now |= {"e": each(lambda e, q: ema * e + (1 - ema) * q, x["e"], now["p"]),
                    "scale": x["scale"] * jnp.where(finite, jnp.where(grow, 2.0, 1.0), 0.5),
                    "steps": jnp.where(grow, 0, steps)}
        now["w"] = each(lambda a: a.astype(stored), now["p"])
        if "p" not in x:
            del now["p"]
            now["state"] = each(lambda new, old: new.astype(old.dtype), now["state"], x["state"])
        return now, each(jnp.zeros_like, g) if scaled else None
    return jax.jit(step, donate_argnums=(0, 1) if scaled else (0,))


class Recipe:
    last = None  # the result of the step that was enqueued last

    def __init__(self, name, case):
        stored = types[peer.stored_as(name)]
        self.zeroes = scaled = name == "adamw_half_o2"
        self.w = self.tiles(case, np.frombuffer(case.values, np.float32), stored)
        self.kept = self.tiles(case, np.frombuffer(case.gradients, np.float32) * (loss_scale if scaled else 1), stored)
        self.g = each(jnp.copy, self.kept) if scaled else self.kept
        jax.block_until_ready((self.w, self.g))
        self.memory = DeviceMemory() if jax.devices()[0].memory_stats() else peer.Memory()
        self.copies = stored != jnp.float32 and name != "adamw_bf16_sr"
        p = each(lambda a: a.astype(jnp.float32), self.w)
        self.x = {"w": self.w, "state": rule(name).init(p if self.copies else self.w)}
        if self.copies:
            self.x["p"] = p
        if scaled:
            self.x |= {"e": each(jnp.copy, p), "scale": jnp.float32(loss_scale), "steps": jnp.int32(0)}
        del self.w, p
        self.run, self.once = step_of(name, stored), 0

    @staticmethod
    def tiles(case, table, stored):
        out, first = [], 0
        for n in case.counts:
            out.append(jax.device_put(np.resize(np.roll(table, -first % len(table)), n).astype(stored)))
            first += n
        return out

    def step(self):
        self.x, zeroed = self.run(self.x, self.g)
        self.g = zeroed or self.g
        Recipe.last = self.x

    def refill(self):
        if self.zeroes:
            self.g = jax.block_until_ready(each(jnp.copy, self.kept))

    def wait(self):
        jax.block_until_ready(Recipe.last)

    def time(self, steps, step):
        """Extends the steps to 20 ms if the recipe allows it, so that the latency of the first matters little."""
        if not self.zeroes and self.once:
            steps = max(steps, math.ceil(2e-2 / self.once))
        self.once, host = peer.time_by_clock(steps, step, self.wait)
        return self.once, host

    def grown(self):
        return self.memory.grown()

    def extra_bytes(self):
        return sum(a.nbytes for kind in ("state", "p", "e") for a in jax.tree.leaves(self.x.get(kind, ())))

    def streams(self):
        def of(tensors):
            def read(wanted):
                here = {t: np.asarray(tensors[t].astype(jnp.float32)) for t in {t for t, _ in wanted}}
                return [float(here[t][i]) for t, i in wanted]
            return read
        out = {"p": of(self.x.get("p", self.x["w"]))} | ({"w": of(self.x["w"])} if self.copies else {})
        return out | ({"e": of(self.x["e"])} if "e" in self.x else {})


def main(platform="cpu"):
    jax.config.update("jax_platforms", platform)
    about = {"name": "JAX, optax, jit", "threads": 1, "compiler": f"jax {version('jax')}, optax {version('optax')}",
             "flags": f"jaxlib {version('jaxlib')}", "most_tensors": 200,  # with more, it compiles for minutes
             "recipes": ["sgd", "momentum", "adamw", "adamw_clip", "adamw_bf16", "adamw_bf16_clip", "adamw_half_o2",
                         "adamw_bf16_sr", "lion", "lamb"]}
    if platform != "cpu":
        about |= {"device": jax.devices()[0].device_kind, "once": True}  # it frees its memory only when it ends
    peer.serve(about, Recipe)


if __name__ == "__main__":
    main(*sys.argv[1:])
