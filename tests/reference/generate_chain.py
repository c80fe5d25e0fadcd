"""Writes values_chain.txt: trajectories of optax.chain(transforms..., rule), in float64.

Set up as generate.py says; then python generate_chain.py. The tests read values_chain.txt and never run this script.
The header of that file describes the problem and the format.
"""

import optax

from problem import run_optax, write

what = """\
# A case's rule is a chain of optax's transforms, by name, in front of optax's rule. weight_decay is that of
# add_decayed_weights, decay that of ema or trace.
"""

rules = dict(
    adam=lambda lr: optax.adam(lr),
    sgd=lambda lr: optax.sgd(lr),
    lamb=lambda lr: optax.lamb(lr),
    momentum=lambda lr: optax.sgd(lr, momentum=0.9),
    yogi=lambda lr: optax.yogi(lr),
)

cases = (
    ("clip-l2-adam", dict(lr=0.01, c=0.3, weight_decay=0.1),
     lambda c, weight_decay: (optax.clip(c), optax.add_decayed_weights(weight_decay)), "adam"),
    ("l2-clip-adam", dict(lr=0.01, c=0.3, weight_decay=0.1),
     lambda c, weight_decay: (optax.add_decayed_weights(weight_decay), optax.clip(c)), "adam"),
    ("sign-scale-momentum", dict(lr=0.01, factor=0.5),
     lambda factor: (optax.scale_by_sign(), optax.scale(factor)), "momentum"),
    ("trace-yogi", dict(lr=0.01, decay=0.8, nesterov=1),
     lambda decay, nesterov: (optax.trace(decay, nesterov=bool(nesterov)),), "yogi"),
    ("ema-sgd", dict(lr=0.1, decay=0.8), lambda decay: (optax.ema(decay),), "sgd"),
    ("raw-ema-lamb", dict(lr=0.01, decay=0.8), lambda decay: (optax.ema(decay, debias=False),), "lamb"),
    ("rms-adam", dict(lr=0.01, max=0.25), lambda max: (optax.clip_by_block_rms(max),), "adam"),
    ("l2-normalize-momentum", dict(lr=0.05, weight_decay=0.1, scale=0.5, eps=1e-3),
     lambda weight_decay, scale, eps: (optax.add_decayed_weights(weight_decay),
                                       optax.normalize_by_update_norm(scale_factor=scale, eps=eps)), "momentum"),
)

write("values_chain.txt", "generate_chain.py", what, (
    (name, "optax", options, run_optax(optax.chain(
        *transforms(**{k: v for k, v in options.items() if k != "lr"}), rules[rule](options["lr"]))))
    for name, options, transforms, rule in cases))
