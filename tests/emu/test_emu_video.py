"""Video instructions of the emulator against the PTX ISA's pseudocode, in Python integers.

Each test draws forms at random: types, selectors, saturation, secondary operation or mask. The
sources are edge values and random bits.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from ptx_rows import edges, random_bits

import smemkern

THREADS = 256
SCALAR = ("vadd", "vsub", "vabsdiff", "vmin", "vmax")
SIMD = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset")
COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
WORD = 0xFFFFFFFF


def average(a, b):
    return (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1


ARITHMETIC = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
    "vavrg": average,
}


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def extended(value: int, bits: int, kind: str) -> int:
    return signed(value, bits) if kind == "s32" else value & ((1 << bits) - 1)


def clamped(value: int, bits: int, kind: str) -> int:
    low, high = (
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind == "s32" else (0, (1 << bits) - 1)
    )
    return min(max(value, low), high)


def part(word: int, selector: str, kind: str) -> int:
    if not selector:
        return extended(word, 32, kind)
    bits = {"b": 8, "h": 16}[selector[1]]
    return extended(word >> bits * int(selector[2]), bits, kind)


def scalar_selector(rng: random.Random) -> str:
    return rng.choice(["", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"])


def finish(value: int, c: int, kind: str, secondary: str, selector: str) -> int:
    """The secondary operation or the merge."""
    if secondary == "add":
        return value + c
    if secondary in ("min", "max"):
        return {"min": min, "max": max}[secondary](value, extended(c, 32, kind))
    if not selector:
        return value
    bits = {"b": 8, "h": 16}[selector[1]]
    mask, shift = (1 << bits) - 1, bits * int(selector[2])
    return (c & ~(mask << shift)) | (value & mask) << shift


def target_bits(selector: str) -> int:
    return {"": 32, "b": 8, "h": 16}[selector[1:2]]


def dressed(rng: random.Random) -> tuple[str, str, bool]:
    """A secondary operation, a selector of the destination, or neither; and whether c is named."""
    secondary = rng.choice(["", "", "add", "min", "max"])
    selector = scalar_selector(rng) if not secondary else ""
    return secondary, selector, bool(secondary or selector or rng.random() < 0.3)


def scalar_form(rng: random.Random):
    name = rng.choice([*SCALAR, "vset", "vshl", "vshr"])
    td, ta, tb = (rng.choice(["u32", "s32"]) for _ in range(3))
    a_at, b_at = scalar_selector(rng), scalar_selector(rng)
    secondary, d_at, has_c = dressed(rng)
    sat = rng.random() < 0.5 and name != "vset"
    mode = rng.choice(["clamp", "wrap"])
    compare = rng.choice(list(COMPARE))
    if name in ("vshl", "vshr"):
        tb = "u32"
        middle = f".{td}.{ta}.{tb}{'.sat' * sat}.{mode}"
    elif name == "vset":
        td = "u32"
        middle = f".{ta}.{tb}.{compare}"
    else:
        middle = f".{td}.{ta}.{tb}{'.sat' * sat}"

    def model(a: int, b: int, c: int) -> int:
        x, y = part(a, a_at, ta), part(b, b_at, tb)
        if name == "vset":
            value = int(COMPARE[compare](x, y))
        elif name in ("vshl", "vshr"):
            amount = y & 31 if mode == "wrap" else min(y, 32)
            value = signed(x << amount, 34) if name == "vshl" else x >> amount
        else:
            value = ARITHMETIC[name](x, y)
        if sat:
            value = clamped(value, target_bits(d_at), td)
        return finish(value, c, td, secondary, d_at)

    text = f"{name}{middle}{'.' * bool(secondary)}{secondary} {{d}}{d_at}, {{a}}{a_at}, {{b}}{b_at}"
    return text + (", {c}" if has_c else ""), model


def multiply_add_form(rng: random.Random):
    td, ta, tb = (rng.choice(["u32", "s32"]) for _ in range(3))
    a_at, b_at = scalar_selector(rng), scalar_selector(rng)
    plus_one = rng.random() < 0.3
    minus_a, minus_b, minus_c = False, False, False
    if not plus_one:
        minus_a, minus_b = rng.random() < 0.3, rng.random() < 0.3
        minus_c = minus_a == minus_b and rng.random() < 0.3
    sat, shift = rng.random() < 0.5, rng.choice([0, 7, 15])

    def model(a: int, b: int, c: int) -> int:
        is_signed = "s32" in (ta, tb) or minus_a != minus_b or minus_c
        product = part(a, a_at, ta) * part(b, b_at, tb)
        addend = extended(c if not minus_c else ~c, 32, "s32" if is_signed else "u32")
        if minus_a != minus_b:
            product = -product
        value = (product + addend + (plus_one or minus_c)) >> shift
        return clamped(value, 32, "s32" if is_signed else "u32") if sat else value

    scale = f".shr{shift}" if shift else ""
    text = (
        f"vmad.{td}.{ta}.{tb}{'.po' * plus_one}{'.sat' * sat}{scale} {{d}}, "
        f"{'-' * minus_a}{{a}}{a_at}, {'-' * minus_b}{{b}}{b_at}, {'-' * minus_c}{{c}}"
    )
    return text, model


def simd_form(rng: random.Random):
    name, n = rng.choice(SIMD), rng.choice([2, 4])
    bits, letter = 32 // n, {2: "h", 4: "b"}[n]
    td, ta, tb = (rng.choice(["u32", "s32"]) for _ in range(3))
    accumulate = rng.random() < 0.4
    sat = not accumulate and name != "vset" and rng.random() < 0.5
    compare = rng.choice(list(COMPARE))
    mask = sorted(rng.sample(range(n), rng.randint(1, n)))
    orders = [[rng.randrange(2 * n) for _ in range(n)] for _ in "ab"]
    shown = [f".{letter}" + "".join(str(k) for k in reversed(order)) for order in (*orders, mask)]
    if rng.random() < 0.3:
        orders[0], shown[0] = list(range(n)), ""
    if rng.random() < 0.3:
        orders[1], shown[1] = list(range(n, 2 * n)), ""
    if rng.random() < 0.3:
        mask, shown[2] = list(range(n)), ""

    def model(a: int, b: int, c: int) -> int:
        pair = b << 32 | a
        result = c
        for k in mask:
            x = extended(pair >> bits * orders[0][k], bits, ta)
            y = extended(pair >> bits * orders[1][k], bits, tb)
            value = int(COMPARE[compare](x, y)) if name == "vset" else ARITHMETIC[name](x, y)
            value = clamped(value, bits, td) if sat else value
            field = (1 << bits) - 1
            if accumulate:
                result += value
            else:
                result = (result & ~(field << bits * k)) | (value & field) << bits * k
        return result

    types = f".{ta}.{tb}.{compare}" if name == "vset" else f".{td}.{ta}.{tb}"
    tail = ".add" if accumulate else ".sat" if sat else ""
    return f"{name}{n}{types}{tail} {{d}}{shown[2]}, {{a}}{shown[0]}, {{b}}{shown[1]}, {{c}}", model


def kernel(forms: list[str]) -> smemkern.Kernel:
    """Loads a, b and c of each thread, and stores one result for each form."""
    body = "".join(
        f"mov.u32 %d, 77; {text.format(a='%a', b='%b', c='%c', d='%d')}; "
        f"st.global.u32 [%o+{4 * THREADS * k}], %d;\n"
        for k, text in enumerate(forms)
    )
    return smemkern.Kernel(
        ".version 8.3\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
        ".reg .b32 %a, %b, %c, %d, %t; .reg .b64 %i, %o, %w;\n"
        "ld.param.u64 %i, [in]; ld.param.u64 %o, [out];\n"
        "mov.u32 %t, %tid.x; mul.wide.u32 %w, %t, 4; add.u64 %i, %i, %w; add.u64 %o, %o, %w;\n"
        f"ld.global.u32 %a, [%i]; ld.global.u32 %b, [%i+{4 * THREADS}];"
        f"ld.global.u32 %c, [%i+{8 * THREADS}];\n{body}ret;}}",
        "k",
    )


def sources(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.array([random_bits(rng, "u32", THREADS) for _ in range(3)])
    special = np.array(edges("u32"), "u4")
    for row in values:
        row[: THREADS // 2] = rng.choice(special, THREADS // 2)
    return values


@pytest.mark.parametrize("form", [scalar_form, multiply_add_form, simd_form])
def test_random_forms(form):
    seed = random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)
    forms = [form(rng) for _ in range(120)]
    values = sources(seed)
    results = np.zeros((len(forms), THREADS), "u4")
    kernel([text for text, _ in forms])(1, THREADS, values, results, device="emu")
    triples = list(zip(*values.tolist(), strict=True))
    for (text, model), got in zip(forms, results.tolist(), strict=True):
        expected = [model(*triple) & WORD for triple in triples]
        for triple, x, y in zip(triples, got, expected, strict=True):
            assert x == y, f"seed {seed}: {text} of {[hex(v) for v in triple]}: {x:#x}, not {y:#x}"


@pytest.mark.parametrize(
    "text",
    [
        "vadd.s32.s32.s32 {d}.b0, {a}, {b}",  # merges into nothing
        "vadd.s32.s32.s32.add {d}.b0, {a}, {b}, {c}",  # a merge and a secondary operation
        "vadd.s32.s32.s32.add {d}, {a}, {b}",
        "vadd.s32.s32.s32 {d}, {a}.b4, {b}",
        "vadd.s32.s32.s32 {d}, {a}.h2, {b}",
        "vadd.s32.s32.s32 {d}, {a}.h10, {b}",
        "vadd.s32.s32 {d}, {a}, {b}",
        "vadd.f32.f32.f32 {d}, {a}, {b}",
        "vset.u32.u32.lo {d}, {a}, {b}",
        "vset.u32.u32 {d}, {a}, {b}",
        "vshl.u32.u32.s32.clamp {d}, {a}, {b}",
        "vshl.u32.u32.u32 {d}, {a}, {b}",
        "vmad.u32.u32.u32.po {d}, -{a}, {b}, {c}",
        "vmad.u32.u32.u32 {d}, -{a}, {b}, -{c}",
        "vmad.u32.u32.u32 {d}.b0, {a}, {b}, {c}",
        "vadd2.s32.s32.s32 {d}, {a}, {b}",
        "vadd2.s32.s32.s32.sat.add {d}, {a}, {b}, {c}",
        "vadd2.s32.s32.s32.min {d}, {a}, {b}, {c}",
        "vadd2.s32.s32.s32 {d}.h01, {a}, {b}, {c}",
        "vadd2.s32.s32.s32 {d}.b1, {a}, {b}, {c}",
        "vadd2.s32.s32.s32 {d}, {a}.h1, {b}, {c}",
        "vadd4.s32.s32.s32 {d}, {a}.b8210, {b}, {c}",
        "vadd4.s32.s32.s32 {d}, {a}, {b}, {c}.b0",
    ],
)
def test_forms_that_do_not_exist(text):
    """ptxas 13.0 refuses these too."""
    made = kernel([text])
    with pytest.raises(smemkern.UnsupportedInstructionError, match=text.split(maxsplit=1)[0]):
        made(1, THREADS, sources(0), np.zeros((1, THREADS), "u4"), device="emu")
