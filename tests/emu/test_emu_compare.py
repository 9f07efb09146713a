"""setp, set, selp and slct of the emulator: every relation, type, combination and result."""

from __future__ import annotations

from itertools import product

import exact_float as ef
import numpy as np
import pytest
from exact_float import BF16, F16, F32, F64, FORMATS
from ptx_rows import COUNT, Row, check, edges, random_bits

INTEGER = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
UNSIGNED = {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}
# Of an order, -1, 0, 1 or None for unordered.
FLOAT = {
    "eq": lambda o: o == 0,
    "ne": lambda o: o in (-1, 1),
    "lt": lambda o: o == -1,
    "le": lambda o: o in (-1, 0),
    "gt": lambda o: o == 1,
    "ge": lambda o: o in (0, 1),
    "num": lambda o: o is not None,
    "nan": lambda o: o is None,
}
FLOAT |= {
    name + "u": lambda o, relation=relation: o is None or relation(o)
    for name, relation in list(FLOAT.items())
    if name not in ("num", "nan")
}
FLOAT["equ"], FLOAT["neu"] = FLOAT.pop("equ"), FLOAT.pop("neu")
COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def float_relation(fmt, name: str, ftz: bool):
    relation = FLOAT[name]

    def holds(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        def one(x: int, y: int) -> bool:
            if ftz:
                x, y = fmt.flush(x), fmt.flush(y)
            return relation(ef.compare(fmt.decode(x), fmt.decode(y)))

        return np.array([one(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)])

    return holds


def relations() -> list[tuple[str, str, bool, object]]:
    """Type, relation, whether flushed, and the model that gives booleans."""
    found = []
    for n in (16, 32, 64):
        found += [(f"b{n}", r, False, INTEGER[r]) for r in ("eq", "ne")]
        found += [(f"u{n}", r, False, f) for r, f in (INTEGER | UNSIGNED).items()]
        found += [(f"s{n}", r, False, f) for r, f in INTEGER.items()]
    for fmt, name in product((F32, F64, F16, BF16), FLOAT):
        for ftz in (False, True) if fmt in (F32, F16) else (False,):
            found.append((fmt.name, name, ftz, float_relation(fmt, name, ftz)))
    return found


def near(t: str):
    """Pairs of which many are equal or close."""

    def values(rng: np.random.Generator) -> list[np.ndarray]:
        a, b = (random_bits(rng, t, COUNT) for _ in range(2))
        edge = np.array(edges(t), dtype=np.uint64).astype(f"u{a.dtype.itemsize}").view(a.dtype)
        half = COUNT // 2
        a[:half] = rng.choice(edge, half)
        b[:half] = rng.choice(edge, half)
        b[half::4] = a[half::4]
        return [a, b]

    return values


def near_with_predicate(t: str):
    return lambda rng: [*near(t)(rng), rng.integers(0, 2, COUNT, dtype=np.uint32)]


def setp_rows() -> list[Row]:
    rows = []
    for t, relation, ftz, holds in relations():
        name = f"setp.{relation}{'.ftz' if ftz else ''}.{t}"
        rows.append(Row(f"{name} {{d}}, {{a}}, {{b}}", ("pred",), (t, t), holds, values=near(t)))
    some = [r for r in relations() if r[1] in ("lt", "neu", "eq", "geu", "hs")]
    for t, relation, ftz, holds in some:
        dotted = ".ftz" if ftz else ""
        if t in ("f16", "bf16"):  # these have one result
            for (op, combine), negated in product(COMBINE.items(), (False, True)):
                rows.append(
                    Row(
                        f"setp.{relation}.{op}{dotted}.{t} {{d}}, {{a}}, {{b}}, "
                        f"{'!' if negated else ''}{{c}}",
                        ("pred",),
                        (t, t, "pred"),
                        lambda a, b, c, holds=holds, combine=combine, negated=negated: combine(
                            holds(a, b), (c != 0) != negated
                        ),
                        values=near_with_predicate(t),
                    )
                )
            continue
        rows.append(
            Row(
                f"setp.{relation}{dotted}.{t} {{d}}|{{e}}, {{a}}, {{b}}",
                ("pred", "pred"),
                (t, t),
                lambda a, b, holds=holds: (holds(a, b), ~holds(a, b)),
                values=near(t),
            )
        )
        for (op, combine), negated in product(COMBINE.items(), (False, True)):

            def both(a, b, c, holds=holds, combine=combine, negated=negated):
                t, third = holds(a, b), (c != 0) != negated
                return combine(t, third), combine(~t, third)

            rows.append(
                Row(
                    f"setp.{relation}.{op}{dotted}.{t} {{d}}|{{e}}, {{a}}, {{b}}, "
                    f"{'!' if negated else ''}{{c}}",
                    ("pred", "pred"),
                    (t, t, "pred"),
                    both,
                    values=near_with_predicate(t),
                )
            )
    t, relation, ftz, holds = next(r for r in relations() if r[:2] == ("s32", "lt"))
    rows.append(
        Row(
            "setp.lt.and.s32 _|{d}, {a}, {b}, {c}",
            ("pred",),
            (t, t, "pred"),
            lambda a, b, c: ~holds(a, b) & (c != 0),
            values=near_with_predicate(t),
        )
    )
    return rows


def packed_rows() -> list[Row]:
    rows = []
    for fmt, relation in product((F16, BF16), ("lt", "ne", "equ", "nan")):
        t2 = fmt.name + "x2"
        holds = float_relation(fmt, relation, False)

        def both(a, b, holds=holds):
            return holds(a & 0xFFFF, b & 0xFFFF), holds(a >> 16, b >> 16)

        def pairs(rng, t=fmt.name):
            low, high = near(t)(rng), near(t)(rng)
            return [
                x.astype(np.uint32) | y.astype(np.uint32) << 16
                for x, y in zip(low, high, strict=True)
            ]

        def pairs_with_predicate(rng, pairs=pairs):
            return [*pairs(rng), rng.integers(0, 2, COUNT, dtype=np.uint32)]

        def set_to(one, both=both):
            def model(a, b):
                low, high = both(a, b)
                return np.where(low, one, 0) | np.where(high, one << 16, 0)

            return model

        rows += [
            Row(
                f"setp.{relation}.{t2} {{d}}|{{e}}, {{a}}, {{b}}",
                ("pred", "pred"),
                (t2, t2),
                both,
                values=pairs,
            ),
            Row(
                f"setp.{relation}.and.{t2} {{d}}|{{e}}, {{a}}, {{b}}, {{c}}",
                ("pred", "pred"),
                (t2, t2, "pred"),
                lambda a, b, c, both=both: tuple(h & (c != 0) for h in both(a, b)),
                values=pairs_with_predicate,
            ),
            Row(
                f"set.{relation}.{t2}.{t2} {{d}}, {{a}}, {{b}}",
                (t2,),
                (t2, t2),
                set_to(ef.one(fmt)),
                values=pairs,
            ),
            Row(
                f"set.{relation}.u32.{t2} {{d}}, {{a}}, {{b}}",
                ("u32",),
                (t2, t2),
                set_to(0xFFFF),
                values=pairs,
            ),
        ]
    return rows


def set_rows() -> list[Row]:
    rows = []
    for t, relation, ftz, holds in relations():
        if relation not in ("eq", "lt", "ge", "gtu", "num", "hi"):
            continue
        results = {"u32": 0xFFFFFFFF, "s32": -1}
        if t in ("f16", "bf16"):
            results |= {"u16": 0xFFFF, "s16": -1}
        else:
            results["f32"] = ef.one(F32)
        if t != "bf16":
            results["f16"] = ef.one(F16)
        if t != "f16" and not ftz:
            results["bf16"] = ef.one(BF16)
        dotted = ".ftz" if ftz else ""
        for d, one in results.items():
            rows.append(
                Row(
                    f"set.{relation}{dotted}.{d}.{t} {{d}}, {{a}}, {{b}}",
                    (d,),
                    (t, t),
                    lambda a, b, holds=holds, one=one: np.where(holds(a, b), one, 0),
                    values=near(t),
                )
            )
        rows.append(
            Row(
                f"set.{relation}.xor{dotted}.u32.{t} {{d}}, {{a}}, {{b}}, !{{c}}",
                ("u32",),
                (t, t, "pred"),
                lambda a, b, c, holds=holds: np.where(holds(a, b) ^ (c == 0), 0xFFFFFFFF, 0),
                values=near_with_predicate(t),
            )
        )
    return rows


def choice_rows() -> list[Row]:
    rows = [
        Row(
            "selp.b32 {d}, {a}, {b}, !{c}",
            ("b32",),
            ("b32", "b32", "pred"),
            lambda a, b, c: np.where(c != 0, b, a),
        )
    ]
    for t in [f"{k}{n}" for k in "bus" for n in (16, 32, 64)] + ["f32", "f64"]:
        rows += [
            Row(
                f"selp.{t} {{d}}, {{a}}, {{b}}, {{c}}",
                (t,),
                (t, t, "pred"),
                lambda a, b, c: np.where(c != 0, a, b),
            ),
            Row(
                f"slct.{t}.s32 {{d}}, {{a}}, {{b}}, {{c}}",
                (t,),
                (t, t, "s32"),
                lambda a, b, c: np.where(c >= 0, a, b),
            ),
        ]
        for ftz in (False, True):

            def by_sign(a, b, c, ftz=ftz):
                bits = [F32.flush(x) if ftz else x for x in c.tolist()]
                zero = FORMATS["f32"].decode(0)
                at_least = [(ef.compare(F32.decode(x), zero) or 0) >= 0 for x in bits]
                number = [not isinstance(F32.decode(x), ef.Nan) for x in bits]
                return np.where(np.array(at_least) & np.array(number), a, b)

            rows.append(
                Row(
                    f"slct{'.ftz' if ftz else ''}.{t}.f32 {{d}}, {{a}}, {{b}}, {{c}}",
                    (t,),
                    (t, t, "f32"),
                    by_sign,
                )
            )
    return rows


ROWS = setp_rows() + packed_rows() + set_rows() + choice_rows()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_instruction(row: Row, device: str) -> None:
    check(row, device)
