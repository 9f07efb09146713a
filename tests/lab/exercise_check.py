"""Whether a source solves an exercise: what the page does in JavaScript, for tests."""

import re

import numpy as np
from lab_compiler import Run


def mix(x):
    x ^= x >> 16
    x = x * 0x21F0AAAD & 0xFFFFFFFF
    x ^= x >> 15
    x = x * 0x735A2D97 & 0xFFFFFFFF
    return x ^ x >> 15


def filled(argument):
    """The array or scalar of an argument of exercise.json."""
    dtype = np.dtype(argument["type"])
    if "shape" not in argument:
        return dtype.type(argument["value"])
    count = int(np.prod(argument["shape"]))
    if argument["fill"] == "constant":
        values = np.full(count, argument["value"])
    elif argument["fill"] == "range":
        values = np.arange(count)
    else:
        low, high, seed = argument["low"], argument["high"], argument["seed"]
        start = seed * 0x9E3779B9 & 0xFFFFFFFF
        hashes = [mix((mix(i ^ start) + seed) & 0xFFFFFFFF) for i in range(count)]
        values = np.array([low + h % (high - low + 1) for h in hashes])
    return values.astype(dtype).reshape(argument["shape"])


def bare(source):
    """Without comments and white space."""
    return re.sub(r"//[^\n]*|/\*.*?\*/|\s", "", source, flags=re.DOTALL)


def measures(kernel, run, dynamic):
    t = run.trace
    loads = sum(row.requests for row in t.global_ if row.op == "load")
    return {
        "hazards": len(t.hazards),
        "shared_wavefronts": t.shared_wavefronts,
        "shared_requests": t.shared_requests,
        "conflict_factor": max((row.factor for row in t.shared), default=1.0),
        "shared_bytes": kernel.shared_bytes + dynamic,
        "warp_instructions": t.warp_instructions,
        "barriers": t.barriers,
        "global_requests": sum(row.requests for row in t.global_),
        "global_sectors": sum(row.sectors for row in t.global_),
        "global_load_requests": loads,
    }


def holds(limit, found, source):
    if "keep" in limit:
        return bare(limit["keep"]) in bare(source)
    if "forbid" in limit:
        return bare(limit["forbid"]) not in bare(source)
    value = found[limit["measure"]]
    if limit["measure"] == "values":
        return value
    return limit.get("at_least", 0) <= value <= limit.get("at_most", float("inf"))


class Checked:
    def __init__(self, exercise, source, make_kernel):
        kernel = make_kernel(source, exercise["kernel"])
        reference = make_kernel(exercise["reference"], exercise["kernel"])
        arguments = [filled(argument) for argument in exercise["arguments"]]
        dynamic = exercise["shared_bytes"]
        self.run = Run(kernel, exercise["grid"], exercise["block"], arguments, dynamic)
        grid, block = exercise["reference_grid"], exercise["reference_block"]
        want = Run(reference, grid, block, arguments)
        self.found = measures(kernel, self.run, dynamic)
        pairs = zip(self.run.arrays(), want.arrays(), strict=True)
        self.found["values"] = all(a.tobytes() == b.tobytes() for a, b in pairs)
        self.reference, self.arguments = want, arguments
        self.failed = [
            limit.get("measure") or ("keep" if "keep" in limit else "forbid")
            for limit in exercise["limits"]
            if not holds(limit, self.found, source)
        ]
