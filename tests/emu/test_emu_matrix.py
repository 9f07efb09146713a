"""Every matrix instruction: bit by bit as an H200 computes it, and as exact arithmetic wants it.

matrix_h200.json holds checksums of what one H200 (sm_90a, driver 580) made of the seeded inputs of
matrix_cases.py, so the comparison with hardware runs where there is none; where there is one, the
GPU is asked again.
"""

from __future__ import annotations

import json
import zlib
from itertools import product
from pathlib import Path

import matrix_cases as mc
import numpy as np
import pytest
from matrix_inputs import ELEMENTS, FLOATS, words_of
from matrix_wgmma import A_BYTES, Wgmma

import smemkern
from checks import HAS_GPU

RUNS = mc.all_runs()
RECORDED = json.loads((Path(__file__).parent / "matrix_h200.json").read_text())


def name_of(case, spread: str) -> str:
    return f"{case} {spread}".strip()


def runs_of(kind: type) -> list:
    return [run for run in RUNS if isinstance(run[0], kind)]


def test_all_runs_are_recorded() -> None:
    assert {name_of(*run) for run in RUNS} == set(RECORDED)


@pytest.mark.parametrize("kind", [mc.Move, mc.Mma, mc.Wmma, Wgmma])
def test_as_recorded_on_an_h200(kind) -> None:
    compared, wrong = 0, []
    for case, spread in runs_of(kind):
        inputs = mc.run_inputs(case, spread)
        of_inputs, *expected = RECORDED[name_of(case, spread)]
        if zlib.crc32(json.dumps(mc.checksums(inputs)).encode()) != of_inputs:
            continue  # another NumPy may draw other numbers
        compared += 1
        if mc.checksums(mc.outputs(case, inputs, "emu")) != expected:
            wrong.append(name_of(case, spread))
    if not compared:
        pytest.skip("this NumPy draws other inputs than the recorded ones")
    assert not wrong


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")
@pytest.mark.parametrize("kind", [mc.Move, mc.Mma, mc.Wmma, Wgmma])
def test_as_the_gpu_here(kind) -> None:
    """The recorded sums are Hopper's: other chips add in other steps."""
    wrong = []
    for case, spread in runs_of(kind):
        inputs = mc.run_inputs(case, spread)
        pairs = zip(mc.outputs(case, inputs, "emu"), mc.outputs(case, inputs, "cuda"), strict=True)
        for emu, gpu in pairs:
            if not np.array_equal(emu.view(np.uint8), gpu.view(np.uint8)):
                wrong.append(f"{name_of(case, spread)}: {np.count_nonzero(emu != gpu)}")
    assert not wrong


# ---- against models that know nothing of tensor cores ----


def values(bits: np.ndarray, name: str) -> np.ndarray:
    """Elements' bit patterns as numbers: int64 or float64."""
    size, mantissa, exponent = ELEMENTS[name]
    bits = bits.astype(np.int64)
    if not exponent:
        signed = name[0] == "s" and bits >> (size - 1) & 1 == 1
        return np.where(signed, bits - (1 << size), bits)
    if name == "tf32":
        bits = bits >> 13 << 13
    if name == "f64":
        return bits.view(np.float64)
    fraction = bits & ((1 << mantissa) - 1)
    biased = bits >> mantissa & ((1 << exponent) - 1)
    significand = np.where(biased > 0, 1.0, 0.0) + fraction / 2.0**mantissa
    scale = np.maximum(biased, 1) - ((1 << (exponent - 1)) - 1)
    sign = np.where(bits >> (size - 1) & 1 == 1, -1.0, 1.0)
    return sign * significand * 2.0 ** scale.astype(float)


def elements_of(words: np.ndarray, name: str) -> np.ndarray:
    """Registers (trial, register, lane) as elements (trial, register, lane, place)."""
    size = ELEMENTS[name][0]
    if size == 64:
        return words[..., None]
    places = np.arange(32 // size, dtype=np.uint32) * np.uint32(size)
    mask = np.uint32((1 << size) - 1) if size < 32 else np.uint32(0xFFFFFFFF)
    return words[..., None] >> places & mask


def dense(words: np.ndarray, name: str, lines: int, is_c: bool = False) -> np.ndarray:
    """(trial, line, place in it) as PTX draws the fragments: A by rows, B by columns, C by rows."""
    elements = values(elements_of(words, name), name)
    trials, count, _, per = elements.shape
    group, thread = np.divmod(np.arange(32), 4)
    halves = 2 if lines == 16 else 1
    length = count * 32 * per // lines
    out = np.zeros((trials, lines, length), elements.dtype)
    for r, place in product(range(count), range(per)):
        if is_c:
            index = r * per + place
            line, at = group + 8 * (index // 2), 2 * thread + index % 2
        else:
            line, at = group + 8 * (r % halves), (4 * (r // halves) + thread) * per + place
        out[:, line, at] = elements[:, r, :, place]
    return out


MMA = mc.mma_cases()


@pytest.mark.parametrize("case", [c for c in MMA if c.d.element == "s32"], ids=str)
def test_integers_are_exact(case) -> None:
    inputs = case.inputs(8, "wide")
    m = case.c.count * 4
    a, b = dense(inputs[0], case.a.element, m), dense(inputs[1], case.b.element, 8)
    c = dense(inputs[2], "s32", m, is_c=True)
    if ".xor" in case.text:
        products = (a[:, :, None, :] != b[:, None, :, :]).sum(-1)
    else:
        products = a @ b.transpose(0, 2, 1)
    exact = c + products
    if "satfinite" in case.text:
        exact = np.clip(exact, -(1 << 31), (1 << 31) - 1)
    got = dense(case.run(inputs, "emu"), "s32", m, is_c=True)
    assert np.array_equal(got.astype(np.int32), exact.astype(np.int32))


@pytest.mark.parametrize("case", [c for c in MMA if c.a.element in FLOATS], ids=str)
def test_floats_are_near_exact_arithmetic(case) -> None:
    """|error| <= (k + 2) units of the accumulator's last place, of the sum of absolute values."""
    inputs = case.inputs(8, "near")
    m = 8 if case.text.startswith("mma.sync.aligned.m8") else 16
    a, b = dense(inputs[0], case.a.element, m), dense(inputs[1], case.b.element, 8)
    c = dense(inputs[2], case.c.element, m, is_c=True)
    exact = c + a @ b.transpose(0, 2, 1)
    size = abs(c) + abs(a) @ abs(b).transpose(0, 2, 1)
    got = dense(case.run(inputs, "emu"), case.d.element, m, is_c=True)
    unit = {"f16": 2.0**-11, "f32": 2.0**-23, "f64": 2.0**-53}[case.d.element]
    assert np.all(abs(got - exact) <= (case.k + 2) * unit * size)


@pytest.mark.parametrize("case", [c for c in MMA if c.a.element in FLOATS], ids=str)
def test_small_whole_numbers_are_exact(case) -> None:
    """Each of A, B and C is -2 ... 2: every product and sum is representable."""
    rng = np.random.default_rng(len(str(case)))
    size, mantissa, exponent = ELEMENTS[case.a.element]
    words = []
    for part in (case.a, case.b, case.c):
        size, mantissa, exponent = ELEMENTS[part.element]
        bias = (1 << (exponent - 1)) - 1
        bits = np.array([0, bias << mantissa, (bias + 1) << mantissa], dtype=np.uint64)
        per = max(32 // size, 1)
        shape = (8, part.count, 32, per)
        elements = rng.choice(bits, shape)
        elements |= rng.integers(0, 2, shape, dtype=np.uint64) << np.uint64(size - 1)
        words.append(words_of(elements, part.element)[..., 0])
    m = 8 if case.text.startswith("mma.sync.aligned.m8") else 16
    a, b = dense(words[0], case.a.element, m), dense(words[1], case.b.element, 8)
    c = dense(words[2], case.c.element, m, is_c=True)
    got = dense(case.run(words, "emu"), case.d.element, m, is_c=True)
    assert np.array_equal(got, c + a @ b.transpose(0, 2, 1))


@pytest.mark.parametrize("case", mc.move_cases(), ids=str)
def test_moves_of_distinct_elements(case) -> None:
    inputs = case.inputs()
    memory, rows, fragment = inputs
    after_memory, after = case.run(inputs, "emu")
    row, column = np.divmod(np.arange(64), 8)
    lane, place = row * 4 + column // 2, column % 2

    def matrices(words: np.ndarray) -> np.ndarray:
        halves = words.view(np.uint16).reshape(len(words), 32, 2)
        return halves[:, lane, place].reshape(len(words), 8, 8)

    if case.opcode == "movmatrix":
        assert np.array_equal(matrices(after), matrices(fragment).transpose(0, 2, 1))
        return
    at = rows[: 8 * case.count, None] // 2 + np.arange(8)
    loaded = matrices(after if case.opcode == "ldmatrix" else fragment)
    if case.transposed:
        loaded = loaded.transpose(0, 2, 1)
    assert np.array_equal(after_memory[at].reshape(case.count, 8, 8), loaded)
    if case.opcode == "stmatrix":
        expected = memory.copy()
        expected[at] = loaded.reshape(-1, 8)
        assert np.array_equal(after_memory, expected)


# ---- what is refused ----


def test_part_of_a_warp_is_refused() -> None:
    case = MMA[0]
    a, b, c = case.inputs(1, "near")
    out = np.zeros((1, case.d.count, 32), np.uint32)
    kernel = smemkern.Kernel(case.ptx(), "matrix")
    with pytest.raises(
        smemkern.LaunchError, match=r"only 24 of the warp's 32 lanes .* all of them"
    ):
        kernel(1, 24, a, b, c, out, device="emu")


def test_part_of_a_warpgroup_is_refused() -> None:
    case = Wgmma(8, "f16", "f16", "f32")
    memory, a, c = case.inputs("near")
    out = np.zeros((case.d_count, 128), np.uint32)
    kernel = smemkern.Kernel(case.ptx(), "matrix")
    with pytest.raises(smemkern.LaunchError, match="wgmma needs four warps"):
        kernel(1, 96, memory, a, c, out, device="emu")


def test_part_of_a_warp_of_a_warpgroup_is_refused() -> None:
    case = Wgmma(8, "f16", "f16", "f32")
    memory, a, c = case.inputs("near")
    out = np.zeros((case.d_count, 128), np.uint32)
    text = case.ptx().replace("wgmma.fence.sync.aligned;", "")  # which would refuse it, too
    kernel = smemkern.Kernel(text, "matrix")
    with pytest.raises(smemkern.LaunchError, match=r"only 16 of the warp's .*wgmma.mma_async"):
        kernel(1, 112, memory, a, c, out, device="emu")


def test_row_address_must_be_aligned() -> None:
    case = mc.Move("ldmatrix", 2, False)
    memory, rows, fragment = case.inputs()
    rows[9] += 4
    kernel = smemkern.Kernel(case.ptx(), "matrix")
    with pytest.raises(smemkern.LaunchError, match=r"misaligned address.*thread \(9, 0, 0\)"):
        kernel(1, 32, memory, rows, fragment, device="emu")
    rows[9], rows[20] = 0, 4  # lane 20 gives no address to .x2
    kernel(1, 32, memory, rows, fragment, device="emu")


def test_operand_beyond_shared_memory() -> None:
    case = Wgmma(256, "f16", "f16", "f32", 128, advance=32)
    text = case.ptx().replace(f"add.u32 %to, %base, {A_BYTES + 32}", "add.u32 %to, %base, 40960")
    out = np.zeros((case.d_count, 128), np.uint32)
    kernel, inputs = smemkern.Kernel(text, "matrix"), case.inputs("near")
    with pytest.raises(smemkern.LaunchError, match="past the end of the block's shared memory"):
        kernel(1, 128, *inputs, out, device="emu")


@pytest.mark.parametrize(
    ("known", "unknown"),
    [
        ("m16n8k16", "m16n8k32"),
        (".row.col.", ".col.row."),
        (".f16.f16.f16.f16", ".f16.bf16.f16.f16"),
        ("mma.sync", "mma.sp.sync"),
        ("mma.sync.aligned.", "mma.sync.aligned.rowwise."),
    ],
)
def test_unknown_forms_name_themselves(known: str, unknown: str) -> None:
    case = next(c for c in MMA if "m16n8k16.row.col.f16.f16" in c.text)
    text = case.ptx().replace(known, unknown)
    out = np.zeros((1, case.d.count, 32), np.uint32)
    kernel, inputs = smemkern.Kernel(text, "matrix"), case.inputs(1, "near")
    with pytest.raises(smemkern.UnsupportedInstructionError, match=r"does not support .* `mma\."):
        kernel(1, 32, *inputs, out, device="emu")
