"""Checks that a contestant computes the same numbers as the oracle."""

import math

from contestant import Refused

check_steps = 3


def compare(recipe, got, want):
    """Raises Refused unless the numbers equal the oracle's, up to the rounding of their storage type."""
    bits = {"adamw_half_o2": 10, "adamw_bf16": 7, "adamw_bf16_clip": 7, "adamw_bf16_sr": 7}.get(recipe, 23)
    random_bits = recipe == "adamw_bf16_sr"
    for stream in "pwe":
        if stream not in want or (stream == "w" and random_bits):
            continue
        if stream not in got:
            raise Refused(f"says nothing of '{stream}'")
        if len(got[stream]) != len(want[stream]):
            raise Refused(f"'{stream}': {len(got[stream])} numbers for {len(want[stream])}")
        stored = bits if stream == "w" or random_bits else 23
        for i, (x, y) in enumerate(zip(got[stream], want[stream])):
            ulp = 2.0 ** (math.frexp(max(abs(y), 1e-3))[1] - 1 - stored)
            most = (check_steps + 1 if random_bits else 0.51 if stored < 23 else 4) * ulp + 2e-6
            if not abs(x - y) <= most:
                raise Refused(f"sample {i} of '{stream}' is {x:.9g} after {check_steps} steps, should be {y:.9g}")
