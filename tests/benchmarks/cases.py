"""The cases of the benchmarks: lists of tensors as in real models, and the recipes that each is measured with."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str
    what: str
    tensors: tuple  # of (elements, number of such tensors)
    align: int = 16  # of tensors, in elements
    zeros: float = 0  # fraction of gradients that are 0

    @property
    def elements(self):
        return sum(count * times for count, times in self.tensors)

    @property
    def count(self):
        return sum(times for _, times in self.tensors)


def flat(n):
    return Case(f"flat_{n}", f"one tensor of {n:,}", ((n, 1),))


def split(n, tensors):
    return Case(f"split_{n}_{tensors}", f"{n:,} in {tensors:,} tensor{'s' * (tensors > 1)}", ((n // tensors, tensors),))


def gpt2():
    layer = (768, 768, 768 * 2304, 2304, 768 * 768, 768, 768, 768, 768 * 3072, 3072, 3072 * 768, 768)
    sizes = (50257 * 768, 1024 * 768) + 12 * layer + (768, 768)
    return Case("gpt2", "GPT-2 124M", tuple((n, 1) for n in sizes))


def resnet50():
    sizes, inputs = [64 * 3 * 49, 64, 64], 64
    for blocks, width in zip((3, 4, 6, 3), (64, 128, 256, 512)):
        for block in range(blocks):
            sizes += [width * inputs, width, width, width * width * 9, width, width, 4 * width * width]
            sizes += [4 * width, 4 * width] + ([4 * width * inputs, 4 * width, 4 * width] if block == 0 else [])
            inputs = 4 * width
    return Case("resnet50", "ResNet-50", tuple((n, 1) for n in sizes + [1000 * 2048, 1000]))


def hash_grid(zeros):
    name, what = ("hash_grid_sparse", ", 90 % gradients 0") if zeros else ("hash_grid", "")
    return Case(name, "hash grid and MLP" + what, ((12_196_240, 1), (32 * 64, 1), (64 * 64, 1), (64 * 16, 1)),
                zeros=zeros)


def llama2_7b():
    layer = ((4096 * 4096, 4), (11008 * 4096, 3), (4096, 2))
    return Case("llama2_7b", "Llama-2 7B", ((32000 * 4096, 2),) + 32 * layer + ((4096, 1),))


def odd(tensors):
    sizes, x = [], 1
    for _ in range(tensors):
        x = x * 48271 % 2147483647
        sizes.append(1 + x % 4099)
    return Case("odd", f"{tensors:,} tensors of 1 to 4099, not aligned", tuple((n, 1) for n in sizes), align=1)


cases = [flat(10**k) for k in range(3, 10)]
cases += [gpt2(), resnet50(), hash_grid(0), hash_grid(0.9), llama2_7b(), odd(1000)]
cases += [Case("1000x1024", "1000 tensors of 1024", ((1024, 1000),)),
          Case("10000x64", "10,000 tensors of 64", ((64, 10000),))]
cases += [split(1024000, tensors) for tensors in (1, 10, 100, 1000, 10000)]
cases += [Case("quick_flat", "one tensor of 40,003", ((40003, 1),)),
          Case("quick_many", "50 tensors of 1 to 4099, not aligned", odd(50).tensors, align=1),
          Case("quick_few", "16 tensors of 1 to 4099, not aligned", odd(16).tensors, align=1)]
by_name = {case.name: case for case in cases}

assert by_name["gpt2"].elements == 124_439_808 and by_name["gpt2"].count == 148
assert by_name["resnet50"].elements == 25_557_032 and by_name["resnet50"].count == 161
assert by_name["llama2_7b"].elements == 6_738_415_616 and by_name["llama2_7b"].count == 291

# Bytes in memory per parameter: value, gradient and everything that the recipe keeps.
resident = {"sgd": 8, "momentum": 12, "adamw": 16, "adamw_clip": 16, "lion": 12, "lamb": 16, "lars": 12,
            "adamw_bf16": 16, "adamw_bf16_clip": 16, "adamw_half_o2": 20, "adamw_bf16_sr": 8}
what = {"sgd": "SGD, float", "momentum": "SGD with momentum, float", "adamw": "AdamW, float",
        "adamw_clip": "AdamW, float, clipped norm", "lion": "Lion, float",
        "lamb": "LAMB, float", "lars": "LARS, float", "adamw_bf16": "AdamW, bfloat16 with float master",
        "adamw_bf16_clip": "AdamW, bfloat16 with float master, clipped norm",
        "adamw_half_o2": "AdamW, half with float master, dynamic loss scale, clipped norm, EMA, zeroed gradients",
        "adamw_bf16_sr": "AdamW, all bfloat16, stochastic rounding"}

large = ["flat_10000", "flat_100000", "flat_1000000", "flat_10000000", "flat_100000000"]
shapes = ["gpt2", "resnet50", "hash_grid", "hash_grid_sparse", "1000x1024", "10000x64", "odd"]
policies = ["policies_0", "policies_1", "policies_2", "policies_3", "policies_4", "policies_5"]
groups = ["groups_1", "groups_10", "groups_100", "groups_1000"]


def plan(name, recipes, device=False):
    """Pairs of a case and an available recipe."""
    plans = plans_of_device if device else plans_of_host
    if name == "rules":
        return [("flat_100000000", recipe) for recipe in recipes if recipe.startswith("rule_")]
    if name == "growth":
        return ([(f"flat_{10**k}", "adamw") for k in range(3, 9)] +
                [(f"split_1024000_{10**k}", "adamw") for k in range(5)] + [("1000x1024", g) for g in groups] +
                [("flat_10000000", p) for p in policies])
    if name not in plans:
        raise ValueError(f"there is no set of cases {name}")
    return plans[name]


plans_of_host = {
    "quick": [(case, recipe) for recipe in ("adamw", "adamw_bf16_clip") for case in ("quick_flat", "quick_many")],
    "default": [(case, "adamw") for case in large + shapes] + [
        ("gpt2", recipe) for recipe in resident if recipe not in ("adamw", "adamw_clip", "adamw_bf16")],
    "all": [(case, recipe) for recipe in resident for case in large + shapes + ["llama2_7b"]],
    "huge": [("flat_1000000000", "adamw")]}

plans_of_device = {
    "quick": [(case, recipe) for recipe in resident for case in ("quick_flat", "quick_many")],
    "few": [("quick_few", recipe) for recipe in resident],
    "default": [("flat_100000000", "adamw"), ("gpt2", "adamw"), ("gpt2", "adamw_half_o2"),
                ("flat_100000000", "adamw_bf16"), ("flat_100000000", "adamw_bf16_sr"), ("1000x1024", "adamw_clip"),
                ("flat_100000", "adamw_clip"), ("flat_100000", "adamw"), ("flat_100000000", "lamb")] + [
        ("gpt2", recipe) for recipe in resident if recipe not in ("adamw", "adamw_clip", "adamw_half_o2")] + [
        (case, "adamw") for case in ["flat_10000", "flat_1000000", "flat_10000000"] + shapes if case != "gpt2"],
    "all": plans_of_host["all"] + [("flat_1000000000", "adamw")],
    "huge": [("llama2_7b", "adamw_bf16_sr"), ("llama2_7b", "adamw_bf16_clip"), ("flat_1000000000", "adamw"),
             ("flat_1000000000", "adamw_bf16_sr")]}
