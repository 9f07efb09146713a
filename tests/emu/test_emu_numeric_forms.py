"""Matrix products and narrow conversions: the emulator takes the forms that ptxas takes, and only
those.

The candidates are all combinations of tables, most of which are not PTX. numeric_forms.json holds
those that ptxas of CUDA 13.0 takes for sm_90a. To ask the ptxas in the PATH again,

    python tests/emu/test_emu_numeric_forms.py     # writes the file anew
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from matrix_inputs import ELEMENTS

import smemkern

RECORD = Path(__file__).with_name("numeric_forms.json")
HEADER = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry form()
{
    .reg .pred %p<2>; .reg .b16 %h<9>; .reg .b32 %r<400>; .reg .b64 %d<9>; .reg .f64 %f<400>;
"""
EACH = 400  # refused forms of a kind that a test tries

SAME = [(a, a) for a in ("f16", "bf16", "tf32", "f64", "b1")]
MIXED = [*product(("e4m3", "e5m2"), repeat=2), *product(("s8", "u8"), repeat=2)]
MIXED += product(("s4", "u4"), repeat=2)
ROUNDINGS = ("", ".rn", ".rz", ".rm", ".rp")

# Forms that ptxas takes and the PTX ISA does not have: selectors that name another quad's lanes;
# f64 products that no load fits.
NOT_PTX = re.compile(
    r"mma\.sp.*m16n8k32\.row\.col\.f32\.f16\.f16\.f32 .* [23];|wmma.*m16n16k(8|16).*\.f64"
)
# Forms of later chips that the emulator takes for any target.
SM_100 = re.compile(r"cvt\.r[nz]\.satfinite(\.relu)?\.tf32")


def names(first: int, count: int, kind: str = "r") -> str:
    return "{" + ", ".join(f"%{kind}{first + k}" for k in range(count)) + "}"


def fragment(element: str, elements: int, first: int) -> str:
    if element == "f64":
        return names(first, max(elements // 32, 1), "f")
    return names(first, max(elements * ELEMENTS[element][0] // 1024, 1))


def suffixes(a: str, d: str) -> list[tuple[str, str]]:
    """(modifier before the types, modifier after them)."""
    if a == "b1":
        return [("", ".xor.popc"), ("", ".and.popc")]
    if a == "f64":
        return [(r, "") for r in ROUNDINGS]
    return [("", ""), (".satfinite", "")] if d == "s32" else [("", "")]


def mma_forms() -> Iterator[str]:
    shapes = [(8, 8, k) for k in (4, 16, 32, 128)]
    shapes += [(16, 8, k) for k in (4, 8, 16, 32, 64, 128, 256)]
    accumulators = [("f16", "f16"), ("f16", "f32"), ("f32", "f16"), ("f32", "f32")]
    accumulators += [("s32", "s32"), ("f64", "f64")]
    for sp, (a, b), (m, n, k), (d, c) in product(
        ("", ".sp", ".sp::ordered_metadata"), SAME + MIXED, shapes, accumulators
    ):
        for (before, after), selector in product(suffixes(a, d), range(5 if sp else 1)):
            types = f"{d}.{a}.{b}.{c}{after}"
            head = f"mma{sp}.sync.aligned.m{m}n{n}k{k}.row.col{before}.{types}"
            operands = [fragment(d, m * n, 0), fragment(a, m * k // (2 if sp else 1), 20)]
            operands += [fragment(b, n * k, 40), fragment(c, m * n, 60)]
            operands += ["%r99", str(selector)] if sp else []
            yield f"{head} {', '.join(operands)};"
    for la, lb, d, c in product(("row", "col"), ("row", "col"), *[("f16", "f32")] * 2):
        count = {"f16": 4, "f32": 8}
        operands = [names(0, count[d]), names(20, 2), names(40, 2), names(60, count[c])]
        yield f"mma.sync.aligned.m8n8k4.{la}.{lb}.{d}.f16.f16.{c} {', '.join(operands)};"


def wmma_forms() -> Iterator[str]:
    shapes = [(16, 16, 16), (32, 8, 16), (8, 32, 16), (16, 16, 8), (8, 8, 4), (8, 8, 32)]
    shapes += [(8, 8, 128)]
    accumulators = [("f16", "f16"), ("f16", "f32"), ("f32", "f16"), ("f32", "f32")]
    accumulators += [("s32", "s32"), ("f64", "f64")]
    pairs = [*SAME, *((a, b) for a, b in MIXED if a[0] != "e")]
    for (m, n, k), la, lb, (a, b), (d, c) in product(
        shapes, ("row", "col"), ("row", "col"), pairs, accumulators
    ):
        for before, after in suffixes(a, d):
            bits, saturate = (after, "") if a == "b1" else ("", before)
            rounding, saturate = (saturate, "") if a == "f64" else ("", saturate)
            every = f"{d}.{a}.{b}.{c}"
            types = f"{d}.{c}" if a == "f16" else every
            order = f"{la}.{lb}.m{m}n{n}k{k}{rounding}"
            head = f"wmma.mma{bits}.sync.aligned.{order}.{types}{saturate}"
            factors = (
                [names(20, 8), names(40, 8)]
                if a == "f16"
                else [fragment(a, m * k, 20), fragment(b, n * k, 40)]
            )
            operands = [fragment(d, m * n, 0), *factors, fragment(c, m * n, 60)]
            yield f"{head} {', '.join(operands)};"
            if a == "f16":  # the factors' types are not written
                yield f"{head} {', '.join(operands)};".replace(types, every)


def wgmma_forms() -> Iterator[str]:
    pairs = [("f16", "f16"), ("bf16", "bf16"), ("tf32", "tf32"), ("b1", "b1"), *MIXED]
    for sp, (a, b), d, n, k, in_registers in product(
        ("", ".sp"),
        pairs,
        ("f16", "f32", "s32"),
        (8, 24, 40, 48, 256),
        (8, 16, 32, 64, 256),
        (0, 1),
    ):
        for (before, after), selector in product(suffixes(a, d), range(4 if sp else 1)):
            head = f"wgmma.mma_async{sp}.sync.aligned.m64n{n}k{k}{before}.{d}.{a}.{b}{after}"
            count = n // 8 * (2 if d == "f16" else 4)
            operands = [names(0, count), names(200, 4) if in_registers else "%d0", "%d1"]
            operands += ["%r299", str(selector)] if sp else []
            operands += ["%p0"] + (["1", "1"] if d != "s32" else [])
            operands += ["0"] * (2 - in_registers) if a in ("f16", "bf16") else []
            yield f"{head} {', '.join(operands)};"


REGISTERS = {
    **{"f16": "%h", "bf16": "%h", "f32": "%r", "f64": "%d", "tf32": "%r", "f16x2": "%r"},
    **{"bf16x2": "%r", "e4m3x2": "%h", "e5m2x2": "%h"},
}


def cvt_forms() -> Iterator[str]:
    """Of floating-point types narrower than f32."""
    for to, source, rounding in product(
        (t for t in REGISTERS if t not in ("f32", "f64")),
        REGISTERS,
        ("", "rn", "rz", "rna", "rp", "rm"),
    ):
        if source == "tf32":
            continue
        for saturate, relu, ftz in product(("", ".satfinite", ".sat"), ("", ".relu"), ("", ".ftz")):
            dot = f".{rounding}" if rounding else ""
            head = f"cvt{dot}{ftz}{saturate}{relu}.{to}.{source}"
            d = f"{REGISTERS[to]}1"
            yield f"{head} {d}, {REGISTERS[source]}2;"
            if source == "f32":
                yield f"{head} {d}, %r2, %r3;"


KINDS = {"mma": mma_forms, "wmma": wmma_forms, "wgmma": wgmma_forms, "cvt": cvt_forms}


# ---- the record ----


def refused_lines(forms: list[str], path: Path) -> set[int]:
    """Which forms ptxas refuses in one file; -1: it names no line."""
    first = HEADER.count("\n") + 1
    path.write_text(HEADER + "\n".join(forms) + "\nret;\n}\n")
    found = subprocess.run(
        ["ptxas", "-arch=sm_90a", "-O0", "-o", str(path.with_suffix(".cubin")), str(path)],
        capture_output=True,
        text=True,
    )
    lines = {int(line) - first for line in re.findall(r"line (\d+); error", found.stderr)}
    return lines or ({-1} if found.returncode else set())


def accepted(forms: Iterable[str]) -> list[str]:
    """Together, most that are no PTX are found. In the others' presence some faults are not, and
    some forms disturb each other, so the rest is asked one by one."""
    every = list(forms)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forms.ptx"
        refused = refused_lines(every, path)
        rest = [form for k, form in enumerate(every) if k not in refused]
        return [form for form in rest if not refused_lines([form], path)]


# ---- the tests ----


def run(forms: Iterable[str]) -> None:
    """Decodes all, and runs none."""
    skip = "setp.ne.u32 %p0, 0, 1; @%p0 bra END;\n"
    text = HEADER + skip + "\n".join(forms) + "\nEND: ret;\n}\n"
    smemkern.Kernel(text, "form")(1, 128, device="emu")


def is_taken(form: str) -> bool:
    try:
        run([form])
    except smemkern.UnsupportedInstructionError:
        return False
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_takes_what_ptxas_takes(kind: str) -> None:
    forms = [form for form in json.loads(RECORD.read_text())[kind] if not NOT_PTX.search(form)]
    assert forms and set(forms) <= set(KINDS[kind]())
    run(forms)


@pytest.mark.parametrize("kind", KINDS)
def test_refuses_what_ptxas_refuses(kind: str) -> None:
    recorded = {form for form in json.loads(RECORD.read_text())[kind] if not NOT_PTX.search(form)}
    seed = np.random.SeedSequence().entropy
    rng = np.random.default_rng(seed)
    others = [f for f in KINDS[kind]() if f not in recorded and not SM_100.match(f)]
    chosen = rng.choice(len(others), min(EACH, len(others)), replace=False)
    taken = [others[k] for k in chosen if is_taken(others[k])]
    assert not taken, f"seed {seed}: {taken[:10]}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_names_the_form(kind: str) -> None:
    form = next(form for form in KINDS[kind]() if not is_taken(form))
    with pytest.raises(smemkern.UnsupportedInstructionError, match=re.escape(form.split()[0])):
        run([form])


if __name__ == "__main__":
    RECORD.write_text(json.dumps({k: accepted(f()) for k, f in KINDS.items()}, indent=0) + "\n")
