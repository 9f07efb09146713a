"""mov of the emulator: registers, immediates, packing and unpacking."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_rows import Row, check


def moves() -> list[Row]:
    types = [f"{k}{n}" for k in "bus" for n in (16, 32, 64)] + ["f32", "f64", "pred"]
    return [Row(f"mov.{t} {{d}}, {{a}}", (t,), (t,), lambda a: a) for t in types]


def immediates() -> list[Row]:
    def constant(bits: int):
        return lambda a: np.full(len(a), bits, dtype=a.dtype)

    return [
        Row("mov.u32 {d}, 0xdeadbeef", ("u32",), ("u32",), constant(0xDEADBEEF)),
        Row("mov.s16 {d}, -2", ("b16",), ("b16",), constant(0xFFFE)),
        Row("mov.u64 {d}, -1", ("u64",), ("u64",), constant((1 << 64) - 1)),
        Row("mov.f32 {d}, 0f7FC00001", ("f32",), ("f32",), constant(0x7FC00001)),
        Row("mov.f32 {d}, 1.5", ("f32",), ("f32",), constant(0x3FC00000)),
        Row("mov.f64 {d}, 0dBFF8000000000000", ("f64",), ("f64",), constant(0xBFF8000000000000)),
        Row("mov.pred {d}, 1", ("pred",), ("pred",), constant(1)),
    ]


def vectors() -> list[Row]:
    def joined(bits: int):
        def model(*parts):
            whole = [0] * len(parts[0])
            for k, part in enumerate(parts):
                whole = [w | int(x) << bits * k for w, x in zip(whole, part, strict=True)]
            return whole

        return model

    def part(k: int, bits: int):
        return lambda a: [int(x) >> bits * k & ((1 << bits) - 1) for x in a]

    return [
        Row("mov.b32 {d}, {{{a}, {b}}}", ("b32",), ("b16", "b16"), joined(16)),
        Row("mov.b64 {d}, {{{a}, {b}}}", ("b64",), ("b32", "b32"), joined(32)),
        Row("mov.b64 {d}, {{{a}, {b}, {c}, {f}}}", ("b64",), ("b16",) * 4, joined(16)),
        Row("mov.b64 {d}, {{{a}, 7}}", ("b64",), ("b32",), lambda a: joined(32)(a, [7] * len(a))),
        Row(
            "mov.b32 {{{d}, {e}}}, {a}",
            ("b16", "b16"),
            ("b32",),
            lambda a: (part(0, 16)(a), part(1, 16)(a)),
        ),
        Row(
            "mov.b64 {{{d}, {e}}}, {a}",
            ("b32", "b32"),
            ("b64",),
            lambda a: (part(0, 32)(a), part(1, 32)(a)),
        ),
        Row("mov.b64 {{_, {d}}}, {a}", ("b32",), ("b64",), part(1, 32)),
        Row("mov.b32 {{{d}, _}}, {a}", ("b16",), ("b32",), part(0, 16)),
        Row(
            "mov.b64 {{_, {d}, _, {e}}}, {a}",
            ("b16", "b16"),
            ("b64",),
            lambda a: (part(1, 16)(a), part(3, 16)(a)),
        ),
        # Through a 128-bit register.
        Row(
            "mov.b128 {{{d}, {e}}}, %whole",
            ("b64", "b64"),
            ("b64", "b64"),
            lambda a, b: (a, b),
            setup="mov.b128 %whole, {{{a}, {b}}}",
            declared=".reg .b128 %whole;",
        ),
    ]


ROWS = moves() + immediates() + vectors()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_instruction(row: Row, device: str) -> None:
    check(row, device)
