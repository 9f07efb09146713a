"""A program for test_random_calls.py: calls of soak_cases.py, by their seeds, of arrays on a GPU.

Arguments: the first seed, the number of calls.
"""

import sys
from pathlib import Path
from random import Random

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS.parent / "benchmarks")]

import soak_cases  # noqa: E402
from rows import parameter_sets  # noqa: E402


class OnHost(Exception):
    """The call's arrays cannot be on the GPU."""


def on_gpu(random, device, dtype):
    if dtype.name == "bfloat16":
        raise OnHost
    return soak_cases.OnGpu()


soak_cases.on_gpu_of = on_gpu
first, count = map(int, sys.argv[1:])
for seed in range(first, first + count):
    check = soak_cases.CHECKS[seed % len(soak_cases.CHECKS)]
    print("seed", seed, flush=True)
    try:
        print(check(Random(seed), "cuda", 70, parameter_sets), flush=True)
    except OnHost:
        print("left out")
print("PASS")
