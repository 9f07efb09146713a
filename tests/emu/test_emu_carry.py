"""Chains of add.cc, addc, sub.cc, subc, mad.cc and madc against a model of the carry flag.

The flag is a carry, never a borrow: x - y is x + ~y + 1. So sub.cc sets it where nothing is
borrowed, and it means the same to addc and subc.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from ptx_rows import edges, random_bits

import smemkern

THREADS = 128
N_SOURCES = 6


def model(text: str, bits: int, sources: list[int], carry: int) -> tuple[int, int]:
    """The result and the new flag."""
    name, *modifiers = text.split(".")
    mask = (1 << bits) - 1
    if name in ("mad", "madc"):
        a, b, c = sources
        if modifiers[-1][0] == "s":
            a, b = (x - (x >> (bits - 1) << bits) for x in (a, b))
        x, y = (a * b >> (bits if modifiers[0] == "hi" else 0)) & mask, c
    elif name in ("sub", "subc"):
        x, y = sources[0], ~sources[1] & mask
    else:
        x, y = sources
    total = x + y + (carry if name.endswith("c") else name == "sub")
    return total & mask, total >> bits if "cc" in modifiers else carry


def chain(rng: random.Random, bits: int, length: int) -> list[tuple[str, list[int]]]:
    """Instructions with the numbers of their sources. The first sets the flag."""
    steps = []
    for k in range(length):
        t = rng.choice("us") + str(bits)
        reads = rng.random() < 0.7 and k > 0
        writes = ".cc" if k == 0 or not reads or rng.random() < 0.6 else ""
        name = rng.choice(["add", "sub", "mad"]) + ("c" if reads else "")
        part = rng.choice([".lo", ".hi"]) if name.startswith("mad") else ""
        n = 3 if part else 2
        steps.append((f"{name}{part}{writes}.{t}", [rng.randrange(N_SOURCES) for _ in range(n)]))
    return steps


def run(bits: int, steps: list[tuple[str, list[int]]], values: np.ndarray) -> np.ndarray:
    size = bits // 8
    loads = "".join(
        f"ld.global.u{bits} %s{k}, [%i+{size * THREADS * k}];" for k in range(N_SOURCES)
    )
    body = "".join(
        f"{text} %d{k}, {', '.join(f'%s{s}' for s in sources)};\n"
        for k, (text, sources) in enumerate(steps)
    )
    stores = "".join(
        f"st.global.u{bits} [%o+{size * THREADS * k}], %d{k};\n" for k in range(len(steps))
    )
    kernel = smemkern.Kernel(
        ".version 8.3\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
        f".reg .b{bits} %s<{N_SOURCES}>, %d<{len(steps)}>; .reg .b32 %t; .reg .b64 %i, %o, %w;\n"
        "ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;\n"
        f"mul.wide.u32 %w, %t, {size}; add.u64 %i, %i, %w; add.u64 %o, %o, %w;\n"
        f"{loads}\n{body}{stores}ret;}}",
        "k",
    )
    results = np.zeros((len(steps), THREADS), values.dtype)
    kernel(1, THREADS, values, results, device="emu")
    return results


@pytest.mark.parametrize("bits", [32, 64])
def test_random_chains(bits):
    seed = random.SystemRandom().randrange(1 << 32)
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    values = np.array([random_bits(numbers, f"u{bits}", THREADS) for _ in range(N_SOURCES)])
    special = np.array(edges(f"u{bits}"), values.dtype)
    values[:, ::2] = numbers.choice(special, (N_SOURCES, THREADS // 2))
    steps = chain(rng, bits, 200)
    results = run(bits, steps, values)
    for lane in range(THREADS):
        carry = 0
        for (text, sources), got in zip(steps, results[:, lane].tolist(), strict=True):
            operands = [int(values[s, lane]) for s in sources]
            expected, carry = model(text, bits, operands, carry)
            assert got == expected, f"seed {seed}, lane {lane}: {text} of {operands}"


@pytest.mark.parametrize(("a", "b", "borrows"), [(1, 2, True), (2, 1, False), (7, 7, False)])
def test_addc_after_sub_reads_a_carry(a, b, borrows):
    values = np.zeros((N_SOURCES, THREADS), "u4")
    values[0], values[1] = a, b
    difference, carry = run(32, [("sub.cc.u32", [0, 1]), ("addc.u32", [2, 2])], values)
    assert (difference == (a - b) % 2**32).all()
    assert (carry == (not borrows)).all()
