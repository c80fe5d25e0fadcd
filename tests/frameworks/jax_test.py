# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: jax_test.py library c_api-library     (PYTHONPATH names examples/jax and tests/c_api)

Laws of examples/jax, on the CPU."""
import ctypes as c
import functools
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

import jax
import jax.numpy as jnp
import numpy as np
import optax

from descent_c import Options, Parameter, Setting, load

import descent_jax

descent_jax.register(sys.argv[1])
options = {"b1": 0.8, "b2": 0.95, "eps": 1e-6, "weight_decay": 0.1}


def tree(seed):
    random = np.random.default_rng(seed)
    shapes = {"layer": [(7, 5), (200_001,)], "scale": (), "none": (0, 3), "row": (1, 9)}
    return jax.tree.map(lambda shape: jnp.array(random.standard_normal(shape), jnp.float32), shapes,
                        is_leaf=lambda x: isinstance(x, tuple))


directions = tree(2)


def gradients(step):
    """They depend on the step alone: nothing in the training can amplify a difference."""
    return jax.tree.map(lambda x: jnp.sin(x * (step + 1)), directions)


def apart(a, b):
    def largest(x, y):
        return np.max(np.abs(np.asarray(x, np.float64) - y), initial=0)
    return max(jax.tree.leaves(jax.tree.map(largest, a, b)))


def same(a, b):
    return all(jax.tree.leaves(jax.tree.map(lambda x, y: np.array_equal(x, y), a, b)))


def by_optax(rate, steps):
    peer = optax.adamw(rate, **options)
    params = tree(1)
    state = peer.init(params)

    @jax.jit
    def train(params, state, step):
        updates, state = peer.update(gradients(step), state, params)
        return optax.apply_updates(params, updates), state
    for step in range(steps):
        params, state = train(params, state, step)
    return params, state


# 100 steps of about 0.01, each with a handful of float32 operations on numbers of size 1 in another order than optax's:
# 100 * 2^-24 = 6e-6 if all roundings add up. A wrong eps, decay or bias correction is 1e-4 or more away.
tolerance = 6e-6


def equals_optax():
    for rate in (0.01, optax.cosine_decay_schedule(0.01, 80)):
        opt = descent_jax.AdamW(rate, **options)

        @functools.partial(jax.jit, donate_argnums=(0, 1))
        def train(params, state, step, opt=opt):
            return opt.step(params, gradients(step), state)
        params = tree(1)
        state = opt.init(params)
        for step in range(100):
            params, state = train(params, state, step)

        theirs, peer_state = by_optax(rate, 100)
        print(f"AdamW: {apart(params, theirs):.1e} from optax.adamw after 100 steps")
        assert apart(params, theirs) < tolerance
        assert apart(params, tree(1)) > 0.1
        assert state.count == peer_state[0].count == 100
        assert apart(state.mu, peer_state[0].mu) < tolerance and apart(state.nu, peer_state[0].nu) < tolerance

        # the same inside a loop that is compiled as a whole, and without jit
        @jax.jit
        def loop(params, state, opt=opt):
            return jax.lax.fori_loop(0, 100, lambda i, x: opt.step(x[0], gradients(i), x[1]), (params, state))
        looped = loop(tree(1), opt.init(tree(1)))
        assert apart(looped, (params, state)) < tolerance
    opt = descent_jax.AdamW(0.01, **options)
    eager = opt.step(tree(1), gradients(0), opt.init(tree(1)))
    assert apart(eager[0], by_optax(0.01, 1)[0]) < tolerance


def works_in_place():
    opt = descent_jax.AdamW(0.01)

    def addresses(x):
        return [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(x) if leaf.size]
    step = jax.jit(opt.step, donate_argnums=(0, 2))
    params = jax.tree.map(jnp.array, tree(1))
    state = opt.init(params)
    before = addresses((params, state))
    now = step(params, gradients(0), state)
    assert addresses(now) == before
    # What is not donated stays as it was.
    params, state = tree(1), opt.init(tree(1))
    jax.jit(opt.step)(params, gradients(0), state)
    assert same(params, tree(1)) and same(state, opt.init(params))


def has_the_bits_of_the_library():
    """The rule alone gives what an optimizer of the library gives, here through the C interface."""
    lib = load(sys.argv[2])
    rate = float(np.float32(0.01))
    p, g = (np.array(x["layer"][1]) for x in (tree(1), gradients(0)))
    opt = descent_jax.AdamW(rate, **options)
    params, state = {"x": jnp.array(p)}, opt.init({"x": jnp.array(p)})
    fields = {"lr": rate, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6, "weight_decay": 0.1}
    settings = (Setting * 5)(*[Setting(name.encode(), value) for name, value in fields.items()])
    of = c.c_void_p()
    parameter = Parameter(b"x", p.ctypes.data, g.ctypes.data, p.size, 1, 0)
    assert lib.descent_create(c.byref(of), b"adamw", settings, c.c_size_t(5), c.byref(parameter), c.c_size_t(1),
                              c.byref(Options())) == 0, lib.descent_message()
    for step in range(20):
        g[:] = np.asarray(gradients(step)["layer"][1])
        params, state = opt.step(params, {"x": jnp.array(g)}, state)
        assert lib.descent_step(of) == 0
    lib.descent_destroy(of)
    assert np.array_equal(p, params["x"])


def counts_to_the_end():
    """The count stays at its largest number, as optax's does, and the update there is still AdamW's."""
    most = 2 ** 31 - 1
    opt, peer = descent_jax.AdamW(0.01, **options), optax.adamw(0.01, **options)
    params, grads = {"x": jnp.ones(3)}, {"x": jnp.full(3, 0.5)}
    at = most - 1
    state, theirs = opt.init(params)._replace(count=jnp.int32(at)), peer.init(params)
    theirs = (theirs[0]._replace(count=jnp.int32(at)), *theirs[1:])
    ours = params
    for wanted in (most, most, most):
        ours, state = opt.step(ours, grads, state)
        updates, theirs = peer.update(grads, theirs, params)
        params = optax.apply_updates(params, updates)
        assert state.count == theirs[0].count == wanted
        assert apart(ours, params) < tolerance


def refuses():
    def fails(wanted, f):
        try:
            jax.block_until_ready(f())
        except Exception as error:  # the type is JAX's
            assert wanted in str(error), f"wanted '{wanted}', got '{error}'"
            return
        raise AssertionError(f"wanted '{wanted}', but nothing was thrown")
    params = {"x": jnp.ones(3)}

    def after(wanted, params=params, grads=params, **more):
        opt = descent_jax.AdamW(0.01, **more)
        fails(wanted, lambda: opt.step(params, grads, opt.init(params)))
    after("beta1 must be in [0, 1) in float, is 1", b1=1.0)
    after("eps must be finite and above 0 in float, is 1e-60", eps=1e-60)
    after("parameter 0, its gradient and its moments must be float32", grads={"x": jnp.ones(3, jnp.bfloat16)})
    for shape in ((4,), (3, 1), (1, 3), ()):
        after("parameter 0, its gradient and its moments must have one shape", grads={"x": jnp.ones(shape)})
    for rate in (-0.1, float("nan"), float("inf")):
        fails("learning_rate must be finite and at least 0, is", lambda rate=rate: descent_jax.AdamW(rate))
        opt = descent_jax.AdamW(lambda count, rate=rate: rate)
        fails("the learning rate must be finite and at least 0, is",
              lambda opt=opt: jax.jit(opt.step)(params, params, opt.init(params)))
    opt = descent_jax.AdamW(0.01)
    fails("the count must be at least 0, is -1", lambda: opt.step(params, params, opt.init(params)._replace(
        count=jnp.int32(-1))))
    x = [jnp.zeros(3) for _ in range(4)]
    fails("parameter 0, its gradient and its moments differ in shape: (3) and (3, 1)",
          lambda: jax.ffi.ffi_call("descent_adamw", [jax.ShapeDtypeStruct((), jnp.int32)] +
                                   [jax.ShapeDtypeStruct((3,), jnp.float32)] * 3,
                                   input_output_aliases={1: 0, 2: 1, 4: 2, 5: 3})(
              jnp.float32(0.1), jnp.int32(0), x[0], jnp.zeros((3, 1)), x[2], x[3], **descent_jax.AdamW(0.1).fields))
    fields = descent_jax.AdamW(0.1).fields
    shapes = [jax.ShapeDtypeStruct((), jnp.int32)] + [jax.ShapeDtypeStruct((3,), jnp.float32)] * 3
    for aliases in ({}, {5: 3}, {1: 0, 2: 1, 4: 2}):
        fails("a result has memory of its own; give input_output_aliases",
              lambda aliases=aliases: jax.ffi.ffi_call("descent_adamw", shapes, input_output_aliases=aliases)(
                  jnp.float32(0.1), jnp.int32(0), *x, **fields))
    fails("there must be 4 arguments and 3 results per parameter, got 3 and 3",
          lambda: jax.ffi.ffi_call("descent_adamw", shapes, input_output_aliases={1: 0})(
              jnp.float32(0.1), jnp.int32(0), *x[:3], **fields))


for law in (equals_optax, works_in_place, has_the_bits_of_the_library, counts_to_the_end, refuses):
    law()
print("jax: ok")
