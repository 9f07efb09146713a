"""Which forms of instructions the emulator takes: those that it took when forms.json was recorded.

Each form is one that another test checks, changed in one place: another type, a modifier more or
less, an operand of another kind. Most such forms are not PTX and are refused. Some are, and run; so
do some that ptxas refuses, as constants of another kind, or modifiers in another order. A
line of the record is an opcode with a letter for each of its forms. After a change that is meant,

    python tests/emu/test_emu_forms.py     # writes the file anew; then read what has changed
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import test_emu_bits
import test_emu_compare
import test_emu_convert
import test_emu_float
import test_emu_half
import test_emu_integer
import test_emu_move
import test_emu_special
from ptx_rows import TYPES, Row

import smemkern

RECORD = Path(__file__).with_name("forms.json")
MODULES = (
    *(test_emu_bits, test_emu_compare, test_emu_convert, test_emu_float),
    *(test_emu_half, test_emu_integer, test_emu_move, test_emu_special),
)
KINDS = ("u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64", "b128")
KINDS += ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "tf32", "e4m3x2", "pred")
MODIFIERS = ("sat", "ftz", "rn", "rm", "rzi", "lo", "wide", "cc", "relu", "satfinite", "approx")
MODIFIERS += ("full", "uni", "NaN", "xorsign", "abs", "clamp", "wrap", "and", "eq", "l", "shiftamt")
OPERANDS = ("%h1", "%r1", "%d1", "%q1", "%p1", "!%p1", "1", "300", "1.5", "0f3F800000", "_")
OPERANDS += ("{%r1, %r2}", "{%h1, %h2}", "%r1|%p1", "%p1|%p2", "-%r1", "[%d1]", "%tid.x", "nowhere")
EACH = 300  # forms of an opcode, at most
TAKEN = "+"
REFUSED = {
    smemkern.UnsupportedInstructionError: "u",
    smemkern.KernelImageError: "p",
    smemkern.LaunchError: "l",
}


def changed(text: str) -> Iterator[str]:
    """The form with one place changed."""
    head, _, operands = text.partition(" ")
    parts, given = head.split("."), operands.split(", ")
    for k, part in enumerate(parts[1:], 1):
        yield f"{'.'.join(parts[:k] + parts[k + 1 :])} {operands}"
        for kind in KINDS if part in KINDS else ():
            yield f"{'.'.join([*parts[:k], kind, *parts[k + 1 :]])} {operands}"
    for modifier in MODIFIERS:
        yield f"{'.'.join([parts[0], modifier, *parts[1:]])} {operands}"
    yield f"{head} {', '.join(given[:-1])}"
    yield f"{head} {', '.join([*given, given[-1]])}"
    for k in range(len(given)):
        for operand in OPERANDS:
            yield f"{head} {', '.join([*given[:k], operand, *given[k + 1 :]])}"


def declared(row: Row) -> str:
    names = dict(zip("de", row.results, strict=False)) | dict(
        zip("abcf", row.sources, strict=False)
    )
    kept = {name: row.registers.get(name, TYPES[of].register) for name, of in names.items()}
    return " ".join(f".reg {register} %{name};" for name, register in kept.items())


def forms() -> dict[str, list[tuple[str, str]]]:
    """Of each opcode (declarations, instruction), in an order that is always the same."""
    found: dict[str, dict[str, str]] = {}
    for row in (row for module in MODULES for row in module.ROWS if not row.setup):
        for text in changed(row.text):
            opcode = text.split()[0].split(".")[0]
            instruction = filled(text)
            found.setdefault(opcode, {}).setdefault(instruction, f"{declared(row)} {row.declared}")
    chosen = {}
    for opcode, every in found.items():
        order = sorted(every, key=lambda text: hashlib.sha256(text.encode()).digest())
        chosen[opcode] = [(every[text], text) for text in sorted(order[:EACH])]
    return dict(sorted(chosen.items()))


def filled(text: str) -> str:
    """With registers for the operands: format would take vectors for names."""
    for name in "deabcf":
        text = text.replace(f"{{{name}}}", f"%{name}")
    return text


def outcome(declarations: str, instruction: str) -> str:
    text = f""".version 8.3
.target sm_90
.address_size 64
.visible .entry form()
{{
    {declarations}
    .reg .b16 %h1, %h2; .reg .b32 %r1, %r2; .reg .b64 %d1; .reg .b128 %q1; .reg .pred %p1, %p2;
    {instruction};
    ret;
}}
"""
    try:
        smemkern.Kernel(text, "form")(1, 32, device="emu")
    except smemkern.Error as error:
        return next(letter for kind, letter in REFUSED.items() if isinstance(error, kind))
    return TAKEN


def outcomes() -> dict[str, str]:
    return {op: "".join(outcome(*form) for form in every) for op, every in forms().items()}


@pytest.mark.long(instead="the tests of each kind of instruction")
def test_forms_are_taken_and_refused_as_recorded() -> None:
    recorded, now, every = json.loads(RECORD.read_text()), outcomes(), forms()
    assert now.keys() == recorded.keys()
    assert {op: len(letters) for op, letters in now.items()} == {
        op: len(letters) for op, letters in recorded.items()
    }
    differ = [
        f"{text}: {letter}, was {before}"
        for op in now
        for (_, text), letter, before in zip(every[op], now[op], recorded[op], strict=True)
        if letter != before
    ]
    assert not differ, f"{len(differ)} forms:\n" + "\n".join(differ[:20])


if __name__ == "__main__":
    RECORD.write_text(json.dumps(outcomes(), indent=0) + "\n")
