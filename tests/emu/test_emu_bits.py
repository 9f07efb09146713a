"""Logic, shifts, permutes, fields and counts of the emulator against PTX's pseudo-code."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_rows import COUNT, Row, check, per_lane, random_bits

import smemkern

U32 = 0xFFFFFFFF


def logic() -> list[Row]:
    rows = []
    for t in ("pred", "b16", "b32", "b64"):
        two = (t, t)
        rows += [
            Row(f"and.{t} {{d}}, {{a}}, {{b}}", (t,), two, lambda a, b: a & b),
            Row(f"or.{t} {{d}}, {{a}}, {{b}}", (t,), two, lambda a, b: a | b),
            Row(f"xor.{t} {{d}}, {{a}}, {{b}}", (t,), two, lambda a, b: a ^ b),
        ]
        if t == "pred":
            rows += [
                Row("not.pred {d}, {a}", (t,), (t,), lambda a: 1 - a),
                Row("and.pred {d}, {a}, !{b}", (t,), two, lambda a, b: a & (1 - b)),
                Row("or.pred {d}, !{a}, !{b}", (t,), two, lambda a, b: (1 - a) | (1 - b)),
                Row("xor.pred {d}, !{a}, {b}", (t,), two, lambda a, b: (1 - a) ^ b),
                Row("mov.pred {d}, !{a}", (t,), (t,), lambda a: 1 - a),
            ]
        else:
            rows.append(Row(f"not.{t} {{d}}, {{a}}", (t,), (t,), lambda a: ~a))
            rows.append(Row(f"cnot.{t} {{d}}, {{a}}", (t,), (t,), lambda a: a == 0))
    return rows


def looked_up(a: int, b: int, c: int, table: int) -> int:
    return sum(
        (table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k
        for k in range(32)
    )


def lop3() -> list[Row]:
    three = ("b32", "b32", "b32")
    rows = [
        Row(
            f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table:#x}",
            ("b32",),
            three,
            per_lane(lambda a, b, c, table=table: looked_up(a, b, c, table)),
        )
        for table in (0x00, 0x1A, 0x40, 0x80, 0x96, 0xE8, 0xCA, 0xFE, 0xFF)
    ]
    for op, combine in (("and", lambda x, y: x and y), ("or", lambda x, y: x or y)):
        for negated in (False, True):

            def model(a, b, c, q, combine=combine, negated=negated):
                d = looked_up(a, b, c, 0x80)
                return d, int(combine(d != 0, bool(q) != negated))

            rows.append(
                Row(
                    f"lop3.{op}.b32 {{d}}|{{e}}, {{a}}, {{b}}, {{c}}, 0x80, "
                    f"{'!' if negated else ''}{{f}}",
                    ("b32", "pred"),
                    (*three, "pred"),
                    lambda *sources, model=model: tuple(
                        zip(*per_lane(model)(*sources), strict=True)
                    ),
                    values=lambda rng: [
                        *(rng.integers(0, 16, COUNT, dtype=np.uint32) for _ in range(3)),
                        rng.integers(0, 2, COUNT, dtype=np.uint32),
                    ],
                )
            )
    return rows


def shifts() -> list[Row]:
    rows = []
    for n in (16, 32, 64):
        mask = (1 << n) - 1
        for t in (f"b{n}", f"u{n}", f"s{n}"):
            if t[0] == "b":
                rows.append(
                    Row(
                        f"shl.{t} {{d}}, {{a}}, {{b}}",
                        (t,),
                        (t, "u32"),
                        per_lane(lambda a, b, mask=mask: a << min(b, 64) & mask),
                    )
                )
            rows.append(
                Row(
                    f"shr.{t} {{d}}, {{a}}, {{b}}",
                    (t,),
                    (t, "u32"),
                    per_lane(lambda a, b: a >> min(b, 64)),
                )
            )
    for mode, amount in (("clamp", lambda c: min(c, 32)), ("wrap", lambda c: c & 31)):
        three = ("b32", "b32", "u32")
        rows += [
            Row(
                f"shf.l.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}",
                ("b32",),
                three,
                per_lane(lambda a, b, c, amount=amount: (b << 32 | a) << amount(c) >> 32),
            ),
            Row(
                f"shf.r.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}",
                ("b32",),
                three,
                per_lane(lambda a, b, c, amount=amount: (b << 32 | a) >> amount(c)),
            ),
        ]
    return rows


def permuted(a: int, b: int, selectors: list[int]) -> int:
    data = a | b << 32
    result = 0
    for k, selector in enumerate(selectors):
        byte = data >> 8 * (selector & 7) & 0xFF
        if selector & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * k
    return result


# The bytes that each mode picks for results 0..3, by the two low bits of c.
PRMT_MODES = {
    "f4e": lambda n: [(n + k) % 8 for k in range(4)],
    "b4e": lambda n: [(n - k) % 8 for k in range(4)],
    "rc8": lambda n: [n] * 4,
    "ecl": lambda n: [max(k, n) for k in range(4)],
    "ecr": lambda n: [min(k, n) for k in range(4)],
    "rc16": lambda n: [n % 2 * 2 + k % 2 for k in range(4)],
}


def permutes() -> list[Row]:
    three = ("b32", "b32", "b32")
    rows = [
        Row(
            "prmt.b32 {d}, {a}, {b}, {c}",
            ("b32",),
            three,
            per_lane(lambda a, b, c: permuted(a, b, [c >> 4 * k & 15 for k in range(4)])),
        )
    ]
    for mode, selectors in PRMT_MODES.items():
        rows.append(
            Row(
                f"prmt.b32.{mode} {{d}}, {{a}}, {{b}}, {{c}}",
                ("b32",),
                three,
                per_lane(lambda a, b, c, s=selectors: permuted(a, b, s(c & 3))),
            )
        )
    return rows


def find(a: int, n: int, shift: bool) -> int:
    magnitude = ~a if a < 0 else a
    if magnitude == 0:
        return U32
    position = magnitude.bit_length() - 1
    return n - 1 - position if shift else position


def nth_set(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else U32
    count = abs(offset) - 1
    position = base
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += 1 if offset > 0 else -1
    return U32


def counts() -> list[Row]:
    rows = []
    for n in (32, 64):
        b = (f"b{n}",)
        rows += [
            Row(f"popc.b{n} {{d}}, {{a}}", ("u32",), b, per_lane(int.bit_count)),
            Row(
                f"clz.b{n} {{d}}, {{a}}",
                ("u32",),
                b,
                per_lane(lambda a, n=n: n - a.bit_length()),
            ),
            Row(
                f"brev.b{n} {{d}}, {{a}}",
                b,
                b,
                per_lane(lambda a, n=n: int(f"{a:0{n}b}"[::-1], 2)),
            ),
        ]
        for t in (f"u{n}", f"s{n}"):
            for shift in (False, True):
                rows.append(
                    Row(
                        f"bfind{'.shiftamt' if shift else ''}.{t} {{d}}, {{a}}",
                        ("u32",),
                        (t,),
                        per_lane(lambda a, n=n, shift=shift: find(a, n, shift)),
                    )
                )
    rows.append(
        Row(
            "fns.b32 {d}, {a}, {b}, {c}",
            ("b32",),
            ("b32", "b32", "s32"),
            per_lane(nth_set),
            values=lambda rng: [
                random_bits(rng, "b32", COUNT),
                rng.integers(0, 32, COUNT, dtype=np.uint32),
                rng.integers(-34, 35, COUNT, dtype=np.int32),
            ],
        )
    )
    return rows


def extracted_signed(a: int, b: int, c: int, n: int) -> int:
    position, length = b & 0xFF, c & 0xFF
    sign = a >> min(position + length - 1, n - 1) & 1 if length else 0
    result = 0
    for k in range(n):
        inside = k < length and position + k < n
        result |= (a >> (position + k) & 1 if inside else sign) << k
    return result


def extracted_unsigned(a: int, b: int, c: int, n: int) -> int:
    position, length = b & 0xFF, c & 0xFF
    return a >> position & ((1 << length) - 1)


def inserted(a: int, b: int, c: int, d: int, n: int) -> int:
    position, length = c & 0xFF, d & 0xFF
    for k in range(length):
        if position + k < n:
            b = b & ~(1 << (position + k)) | (a >> k & 1) << (position + k)
    return b


def bit_mask(a: int, b: int, clamp: bool) -> int:
    a1, b1 = a & 31, b & 31
    mask0 = U32 << a1 & U32
    mask1 = U32 << (a1 + b1) & U32
    overflow = a1 + b1 >= 32
    if clamp:
        if a >= 32:
            overflow, mask0 = True, 0
        overflow = overflow or b >= 32
    if overflow:
        mask1 = 0
    elif b1 == 0:
        mask1 = U32
    return mask0 & ~mask1


def extend(a: int, b: int, clamp: bool, signed: bool) -> int:
    b1 = b & 31
    too_large = clamp and b >= 32
    mask = 0 if too_large else U32 << b1 & U32
    negative = signed and b1 and not too_large and a >> (b1 - 1) & 1
    return a & ~mask | (mask if negative else 0)


def small(limit: int):
    """Positions and lengths: mostly within a word, some up to what PTX allows."""

    def values(rng: np.random.Generator) -> np.ndarray:
        near = rng.integers(0, limit, COUNT, dtype=np.uint32)
        far = rng.integers(0, 256, COUNT, dtype=np.uint32)
        return np.where(rng.random(COUNT) < 0.8, near, far)

    return values


def fields() -> list[Row]:
    rows = []
    for n in (32, 64):
        position = small(n + 8)
        for t, model in ((f"u{n}", extracted_unsigned), (f"s{n}", extracted_signed)):
            rows.append(
                Row(
                    f"bfe.{t} {{d}}, {{a}}, {{b}}, {{c}}",
                    (t,),
                    (t, "u32", "u32"),
                    per_lane(lambda a, b, c, n=n, model=model: model(a, b, c, n)),
                    values=lambda rng, t=t, p=position: [
                        random_bits(rng, t, COUNT),
                        p(rng),
                        p(rng),
                    ],
                )
            )
        b = f"b{n}"
        rows.append(
            Row(
                f"bfi.{b} {{d}}, {{a}}, {{b}}, {{c}}, {{f}}",
                (b,),
                (b, b, "u32", "u32"),
                per_lane(lambda a, b, c, d, n=n: inserted(a, b, c, d, n)),
                values=lambda rng, b=b, p=position: [
                    random_bits(rng, b, COUNT),
                    random_bits(rng, b, COUNT),
                    p(rng),
                    p(rng),
                ],
            )
        )
    for mode in ("clamp", "wrap"):
        rows.append(
            Row(
                f"bmsk.{mode}.b32 {{d}}, {{a}}, {{b}}",
                ("b32",),
                ("b32", "b32"),
                per_lane(lambda a, b, clamp=mode == "clamp": bit_mask(a, b, clamp)),
                values=lambda rng: [small(40)(rng), small(40)(rng)],
            )
        )
        for t in ("u32", "s32"):
            rows.append(
                Row(
                    f"szext.{mode}.{t} {{d}}, {{a}}, {{b}}",
                    (t,),
                    ("u32", "u32"),
                    per_lane(
                        lambda a, b, clamp=mode == "clamp", signed=t == "s32": extend(
                            a, b, clamp, signed
                        )
                    ),
                    values=lambda rng: [random_bits(rng, "u32", COUNT), small(40)(rng)],
                )
            )
    return rows


ROWS = logic() + lop3() + shifts() + permutes() + counts() + fields()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_instruction(row: Row, device: str) -> None:
    check(row, device)


def test_the_predicate_of_lop3_is_one_for_other_instructions() -> None:
    """Negated, as a guard and in logic: it holds in all of its bits, or in none."""
    out = np.full((4, 32), 9, "u4")
    text = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 y)
{
    .reg .b32 %i, %d, %v; .reg .b64 %y; .reg .pred %p<4>;
    ld.param.u64 %y, [y]; mov.u32 %i, %tid.x; mad.wide.u32 %y, %i, 4, %y;
    setp.lt.u32 %p0, %i, 16;
    lop3.and.b32 %d|%p1, %i, 5, -1, 0x80, %p0;
    not.pred %p2, %p1; selp.u32 %v, 1, 0, %p2; st.global.u32 [%y], %v;
    mov.u32 %v, 0; @!%p1 mov.u32 %v, 1; st.global.u32 [%y+128], %v;
    xor.pred %p2, %p1, %p0; selp.u32 %v, 1, 0, %p2; st.global.u32 [%y+256], %v;
    mov.u32 %v, 0; @%p1 mov.u32 %v, 1; st.global.u32 [%y+384], %v;
    ret;
}
"""
    smemkern.Kernel(text, "k")(1, 32, out, device="emu")
    i = np.arange(32)
    p = (i & 5 != 0) & (i < 16)
    assert np.array_equal(out, [~p, ~p, p ^ (i < 16), p])


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_fields_of_every_length(kind: str) -> None:
    """Their ends at the top of the word, beyond it, and one before."""
    bits, signed = int(kind[1:]), kind[0] == "s"
    rng = np.random.default_rng(bits)
    places = [(p, n) for p in range(66) for n in (0, 1, 31, 32, 33, 62, 63, 64, 65, 255)] * 4
    values = rng.integers(0, 1 << 64, len(places), dtype="u8")
    out, args = np.zeros_like(values), np.array(places, "u4")
    text = f"""
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z)
{{
    .reg .b32 %i, %p, %n; .reg .b64 %x, %y, %z, %a; .reg .b{bits} %v;
    ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u64 %z, [z];
    mad.lo.u32 %i, %ctaid.x, %ntid.x, %tid.x;
    mad.wide.u32 %x, %i, 8, %x; mad.wide.u32 %y, %i, 8, %y; mad.wide.u32 %z, %i, 8, %z;
    ld.global.b{bits} %v, [%x]; ld.global.v2.u32 {{%p, %n}}, [%y];
    bfe.{kind} %v, %v, %p, %n; st.global.b{bits} [%z], %v;
    ret;
}}
"""
    smemkern.Kernel(text, "k")(len(places) // 33, 33, values, args, out, device="emu")
    for value, (position, length), got in zip(values.tolist(), places, out.tolist(), strict=True):
        word = value % (1 << bits)
        if signed and word >> (bits - 1):
            word -= 1 << bits
        field = (word >> position) % (1 << length)
        if signed and length and field >> (length - 1):
            field -= 1 << length
        assert got % (1 << bits) == field % (1 << bits), (value, position, length)
