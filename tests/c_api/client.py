#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: client.py library

Trains through examples/c_api with Python's ctypes: AdamW against its formula in double, a schedule, save and load."""
import ctypes as c
import math
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

from descent_c import Options, Parameter, Rate, Read, Setting, Write, load

lib = load(sys.argv[1])


def require(status):
    if status:
        raise RuntimeError(f"status {status}: {lib.descent_message().decode()}")


class AdamW:
    def __init__(self, n, lr):
        self.w, self.g = (c.c_float * n)(*[1.0] * n), (c.c_float * n)()
        self.of = c.c_void_p()
        parameter = Parameter(b"w", c.addressof(self.w), c.addressof(self.g), n, 1, 0)
        settings = (Setting * 2)(Setting(b"lr", lr), Setting(b"weight_decay", 0.1))
        require(lib.descent_create(c.byref(self.of), b"adamw", settings, c.c_size_t(2), c.byref(parameter), c.c_size_t(1),
                                   c.byref(Options())))

    def step(self):
        require(lib.descent_step(self.of))


opt = AdamW(7, 0.1)
rate = Rate(lambda n, _: 0.1 / (n + 1))
require(lib.descent_schedule(opt.of, rate, None))
m = v = 0.0
p = 1.0
for t in range(1, 11):
    for i in range(7):
        opt.g[i] = math.sin(opt.w[i])
    g, lr = opt.g[0], 0.1 / t
    opt.step()
    p -= lr * 0.1 * p
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    p -= lr * (m / (1 - 0.9 ** t)) / (math.sqrt(v / (1 - 0.999 ** t)) + 1e-8)
assert abs(opt.w[6] - p) < 1e-5, (opt.w[6], p)

pieces = {}


@Write
def write(name, data, size, _):
    pieces[name] = c.string_at(data, size)
    return 0


@Read
def read(name, data, size, _):
    if len(pieces.get(name, b"")) != size:
        return 1
    c.memmove(data, pieces[name], size)
    return 0


require(lib.descent_save(opt.of, write, None))
assert {b"w.state.m", b"w.state.v", b"step"} <= pieces.keys(), pieces.keys()
again = AdamW(7, 0.1)
again.w[:] = opt.w[:]
require(lib.descent_load(again.of, read, None))
require(lib.descent_schedule(opt.of, Rate(0), None))
for each in (opt, again):
    require(lib.descent_set(each.of, 0, b"lr", c.c_double(0.01)))
    each.g[:] = [0.5] * 7
    each.step()
assert opt.w[:] == again.w[:]
assert lib.descent_set(opt.of, 0, b"rho", c.c_double(1)) == 1
assert lib.descent_message().startswith(b"the rule has no field 'rho'; it has lr, ")
for each in (opt, again):
    lib.descent_destroy(each.of)
print("python: ok")
