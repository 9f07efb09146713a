"""Integer arithmetic of the emulator against NumPy's wrapping integers and Python's unbounded."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_rows import Row, check, per_lane

WIDTHS = (16, 32, 64)
UNSIGNED = tuple(f"u{n}" for n in WIDTHS)
SIGNED = tuple(f"s{n}" for n in WIDTHS)
INTEGERS = UNSIGNED + SIGNED


def bits(t: str) -> int:
    return int(t[1:])


def clamp(x: int, t: str) -> int:
    low = -(1 << (bits(t) - 1)) if t[0] == "s" else 0
    high = (1 << (bits(t) - (t[0] == "s"))) - 1
    return min(max(x, low), high)


def truncating_divide(a: int, b: int) -> int:
    if b == 0:
        return -1  # all ones
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def remainder(a: int, b: int) -> int:
    return a - b * truncating_divide(a, b) if b else -1


def arithmetic() -> list[Row]:
    rows = []
    for t in INTEGERS:
        one, two, three, width = (t,), (t, t), (t, t, t), bits(t)
        rows += [
            Row(f"add.{t} {{d}}, {{a}}, {{b}}", one, two, lambda a, b: a + b),
            Row(f"sub.{t} {{d}}, {{a}}, {{b}}", one, two, lambda a, b: a - b),
            Row(f"mul.lo.{t} {{d}}, {{a}}, {{b}}", one, two, lambda a, b: a * b),
            Row(f"mad.lo.{t} {{d}}, {{a}}, {{b}}, {{c}}", one, three, lambda a, b, c: a * b + c),
            Row(
                f"mul.hi.{t} {{d}}, {{a}}, {{b}}",
                one,
                two,
                per_lane(lambda a, b, n=width: a * b >> n),
            ),
            Row(
                f"mad.hi.{t} {{d}}, {{a}}, {{b}}, {{c}}",
                one,
                three,
                per_lane(lambda a, b, c, n=width: (a * b >> n) + c),
            ),
            Row(
                f"sad.{t} {{d}}, {{a}}, {{b}}, {{c}}",
                one,
                three,
                per_lane(lambda a, b, c: c + abs(a - b)),
            ),
            Row(f"div.{t} {{d}}, {{a}}, {{b}}", one, two, per_lane(truncating_divide)),
            Row(f"rem.{t} {{d}}, {{a}}, {{b}}", one, two, per_lane(remainder)),
            Row(f"min.{t} {{d}}, {{a}}, {{b}}", one, two, np.minimum),
            Row(f"max.{t} {{d}}, {{a}}, {{b}}", one, two, np.maximum),
        ]
    for t in SIGNED:
        rows += [
            Row(f"abs.{t} {{d}}, {{a}}", (t,), (t,), np.abs),
            Row(f"neg.{t} {{d}}, {{a}}", (t,), (t,), np.negative),
        ]
    for t in ("u16", "s16", "u32", "s32"):
        wide = f"{t[0]}{2 * bits(t)}"
        rows += [
            Row(f"mul.wide.{t} {{d}}, {{a}}, {{b}}", (wide,), (t, t), per_lane(lambda a, b: a * b)),
            Row(
                f"mad.wide.{t} {{d}}, {{a}}, {{b}}, {{c}}",
                (wide,),
                (t, t, wide),
                per_lane(lambda a, b, c: a * b + c),
            ),
        ]
    s32 = ("s32",)
    rows += [
        Row("add.sat.s32 {d}, {a}, {b}", s32, 2 * s32, per_lane(lambda a, b: clamp(a + b, "s32"))),
        Row("sub.sat.s32 {d}, {a}, {b}", s32, 2 * s32, per_lane(lambda a, b: clamp(a - b, "s32"))),
        Row(
            "mad.hi.sat.s32 {d}, {a}, {b}, {c}",
            s32,
            3 * s32,
            per_lane(lambda a, b, c: clamp((a * b >> 32) + c, "s32")),
        ),
        Row(
            "min.relu.s32 {d}, {a}, {b}",
            s32,
            2 * s32,
            lambda a, b: np.maximum(np.minimum(a, b), 0),
        ),
        Row(
            "max.relu.s32 {d}, {a}, {b}",
            s32,
            2 * s32,
            lambda a, b: np.maximum(np.maximum(a, b), 0),
        ),
        # Immediates, negative ones included, instead of registers.
        Row("add.s32 {d}, {a}, -7", s32, s32, lambda a: a - 7),
        Row("mul.wide.s32 {d}, {a}, -3", ("s64",), s32, lambda a: a.astype(np.int64) * -3),
        Row(
            "add.u64 {d}, {a}, 0x123456789abcdef0",
            ("u64",),
            ("u64",),
            lambda a: a + np.uint64(0x123456789ABCDEF0),
        ),
        Row("sub.u16 {d}, 1, {a}", ("u16",), ("u16",), lambda a: 1 - a),
    ]
    return rows


def low24(x: int, t: str) -> int:
    x &= 0xFFFFFF
    return x - (1 << 24) if t == "s32" and x >> 23 else x


def arithmetic24() -> list[Row]:
    rows = []
    for t in ("u32", "s32"):
        for mode, shift in (("lo", 0), ("hi", 16)):

            def product(a, b, t=t, shift=shift):
                return low24(a, t) * low24(b, t) >> shift

            rows.append(
                Row(f"mul24.{mode}.{t} {{d}}, {{a}}, {{b}}", (t,), (t, t), per_lane(product))
            )
            rows.append(
                Row(
                    f"mad24.{mode}.{t} {{d}}, {{a}}, {{b}}, {{c}}",
                    (t,),
                    (t, t, t),
                    per_lane(lambda a, b, c, f=product: f(a, b) + c),
                )
            )
    rows.append(
        Row(
            "mad24.hi.sat.s32 {d}, {a}, {b}, {c}",
            ("s32",),
            ("s32", "s32", "s32"),
            per_lane(lambda a, b, c: clamp((low24(a, "s32") * low24(b, "s32") >> 16) + c, "s32")),
        )
    )
    return rows


def halves(word: int, signed: bool) -> list[int]:
    parts = [word & 0xFFFF, word >> 16 & 0xFFFF]
    return [p - 0x10000 if signed and p >> 15 else p for p in parts]


def packed() -> list[Row]:
    rows = []
    operations = {"add": lambda a, b: a + b, "min": min, "max": max}
    for t in ("u16x2", "s16x2"):
        for op, function in operations.items():
            for relu in (False, True):
                if relu and (op == "add" or t == "u16x2"):
                    continue

                def model(a, b, signed=t[0] == "s", function=function, relu=relu):
                    pairs = zip(halves(a, signed), halves(b, signed), strict=True)
                    low, high = (max(function(*p), 0) if relu else function(*p) for p in pairs)
                    return (low & 0xFFFF) | (high & 0xFFFF) << 16

                name = f"{op}{'.relu' if relu else ''}.{t}"
                rows.append(Row(f"{name} {{d}}, {{a}}, {{b}}", (t,), (t, t), per_lane(model)))
    return rows


def parts_of(word: int, size: int, signed: bool) -> list[int]:
    parts = [word >> at & ((1 << size) - 1) for at in range(0, 32, size)]
    return [p - (1 << size) if signed and p >> (size - 1) else p for p in parts]


def dot_products() -> list[Row]:
    rows = []
    for ta in ("u32", "s32"):
        for tb in ("u32", "s32"):
            tc = "u32" if ta == tb == "u32" else "s32"
            signed_a, signed_b = ta == "s32", tb == "s32"

            def dot4(a, b, c, sa=signed_a, sb=signed_b):
                return c + sum(
                    x * y for x, y in zip(parts_of(a, 8, sa), parts_of(b, 8, sb), strict=True)
                )

            rows.append(
                Row(
                    f"dp4a.{ta}.{tb} {{d}}, {{a}}, {{b}}, {{c}}",
                    (tc,),
                    (ta, tb, tc),
                    per_lane(dot4),
                )
            )
            for mode, skipped in (("lo", 0), ("hi", 2)):

                def dot2(a, b, c, sa=signed_a, sb=signed_b, skipped=skipped):
                    bytes_b = parts_of(b, 8, sb)[skipped : skipped + 2]
                    return c + sum(x * y for x, y in zip(parts_of(a, 16, sa), bytes_b, strict=True))

                rows.append(
                    Row(
                        f"dp2a.{mode}.{ta}.{tb} {{d}}, {{a}}, {{b}}, {{c}}",
                        (tc,),
                        (ta, tb, tc),
                        per_lane(dot2),
                    )
                )
    return rows


def carries() -> list[Row]:
    """Each in a pair: what sets the carry, and what takes it. A chain shows the carry out too."""
    rows = []
    for n in (32, 64):
        for t in (f"u{n}", f"s{n}"):
            u, mask = f"u{n}", (1 << n) - 1

            def carry_of_sum(a, b, mask=mask):
                return (a & mask) + (b & mask) > mask

            def borrow(a, b, mask=mask):
                return (a & mask) < (b & mask)

            four = (t, t, t, t)
            rows += [
                Row(
                    f"addc.{t} {{d}}, {{c}}, {{f}}",
                    (t,),
                    four,
                    per_lane(lambda a, b, c, f, carry=carry_of_sum: c + f + carry(a, b)),
                    setup=f"add.cc.{t} {{d}}, {{a}}, {{b}}",
                ),
                Row(
                    f"subc.{t} {{d}}, {{c}}, {{f}}",
                    (t,),
                    four,
                    per_lane(lambda a, b, c, f, borrow=borrow: c - f - borrow(a, b)),
                    setup=f"sub.cc.{t} {{d}}, {{a}}, {{b}}",
                ),
                # The carry out of addc.cc and subc.cc, seen as 0 + 0 + carry.
                Row(
                    f"addc.{t} {{d}}, 0, 0",
                    (t,),
                    four,
                    per_lane(
                        lambda a, b, c, f, carry=carry_of_sum, mask=mask: (
                            (c & mask) + (f & mask) + carry(a, b) > mask
                        )
                    ),
                    setup=f"add.cc.{t} {{d}}, {{a}}, {{b}}; addc.cc.{t} {{d}}, {{c}}, {{f}}",
                ),
                Row(
                    f"subc.{t} {{d}}, 0, 0",
                    (t,),
                    four,
                    per_lane(
                        lambda a, b, c, f, borrow=borrow, mask=mask: (
                            -((c & mask) - (f & mask) - borrow(a, b) < 0)
                        )
                    ),
                    setup=f"sub.cc.{t} {{d}}, {{a}}, {{b}}; subc.cc.{t} {{d}}, {{c}}, {{f}}",
                ),
            ]
            for half, shift in (("lo", 0), ("hi", n)):

                def part(a, b, shift=shift, mask=mask):
                    return a * b >> shift & mask

                rows += [
                    Row(
                        f"addc.{t} {{d}}, 0, 0",
                        (t,),
                        (t, t, t),
                        per_lane(
                            lambda a, b, c, part=part, mask=mask: part(a, b) + (c & mask) > mask
                        ),
                        setup=f"mad.{half}.cc.{t} {{d}}, {{a}}, {{b}}, {{c}}",
                    ),
                    Row(
                        f"madc.{half}.{t} {{d}}, {{b}}, {{c}}, {{f}}",
                        (t,),
                        four,
                        per_lane(
                            lambda a, b, c, f, part=part, carry=carry_of_sum: (
                                part(b, c) + f + carry(a, b)
                            )
                        ),
                        setup=f"add.cc.{t} {{d}}, {{a}}, {{b}}",
                    ),
                    Row(
                        f"addc.{u} {{d}}, 0, 0",
                        (u,),
                        (t, t, t, t),
                        per_lane(
                            lambda a, b, c, f, part=part, carry=carry_of_sum, mask=mask: (
                                part(b, c) + (f & mask) + carry(a, b) > mask
                            )
                        ),
                        setup=f"add.cc.{t} {{d}}, {{a}}, {{b}}; "
                        f"madc.{half}.cc.{t} {{d}}, {{b}}, {{c}}, {{f}}",
                    ),
                ]
    return rows


ROWS = arithmetic() + arithmetic24() + packed() + dot_products() + carries()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_instruction(row: Row, device: str) -> None:
    check(row, device)
