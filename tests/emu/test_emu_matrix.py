"""Every matrix instruction: bit by bit as an H200 computes it, and as exact arithmetic wants it.

matrix_h200.json holds checksums of what one H200 (sm_90a, driver 580) made of the seeded inputs of
matrix_cases.py, so the comparison with hardware runs where there is none; where there is one, the
GPU is asked again. On a machine with an H200,

    PYTHONPATH=tests python tests/emu/test_emu_matrix.py   # adds runs that have no checksums yet
"""

from __future__ import annotations

import json
import zlib
from itertools import product
from pathlib import Path

import exact_float as ef
import matrix_cases as mc
import numpy as np
import pytest
from matrix_inputs import ELEMENTS, FLOATS, words_of
from matrix_wgmma import A_BYTES, Wgmma

import smemkern
from checks import HAS_GPU

RUNS = mc.all_runs()
RECORD = Path(__file__).parent / "matrix_h200.json"
RECORDED = json.loads(RECORD.read_text())


def name_of(case, spread: str) -> str:
    return f"{case} {spread}".strip()


def checksum_of(inputs) -> int:
    return zlib.crc32(json.dumps(mc.checksums(inputs)).encode())


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
        if checksum_of(inputs) != of_inputs:
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


def ask_gpu(case, spread: str) -> list[int]:
    inputs = mc.run_inputs(case, spread)
    return [checksum_of(inputs), *mc.checksums(mc.outputs(case, inputs, "cuda"))]


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


# ---- sparse products, against dense ones of the same matrix with its zeros ----


def stored_columns(metadata: np.ndarray, element: str, k: int, selector: int) -> np.ndarray:
    """Columns of A (trial, row, stored element), from the metadata (trial, lane)."""
    chunk = {"tf32": 2, "s4": 8, "u4": 8}.get(element, 4)
    n = k // chunk
    columns = np.zeros((len(metadata), 16, k // 2), int)
    for row, c in product(range(16), range(n)):
        group, second = row % 8, row // 8
        if ELEMENTS[element][0] >= 16:  # 4 codes of each of two rows per register
            lane, at = c // 4 + selector * (n // 4), 4 * (c % 4) + 16 * second
        else:  # 8 codes of a row per register
            lane, at = second + 2 * (c // 8) + 2 * selector, 4 * (c % 8)
        codes = metadata[:, 4 * group + lane] >> np.uint32(at) & 15
        first, last = codes & 3, codes >> 2
        if chunk == 2:
            columns[:, row, c] = 2 * c + (first == 2)
        elif chunk == 4:
            columns[:, row, 2 * c : 2 * c + 2] = 4 * c + np.stack([first, last], -1)
        else:
            pairs = 8 * c + 2 * np.stack([first, first, last, last], -1)
            columns[:, row, 4 * c : 4 * c + 4] = pairs + np.array([0, 1, 0, 1])
    return columns


def with_zeros(stored: np.ndarray, columns: np.ndarray, k: int) -> np.ndarray:
    out = np.zeros((*stored.shape[:2], k), stored.dtype)
    np.put_along_axis(out, columns, stored, axis=2)
    return out


def sparse_operands(case, inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    stored = dense(inputs[0], case.a.element, 16)
    columns = stored_columns(inputs[3][:, 0], case.a.element, case.k, case.selector)
    a = with_zeros(stored, columns, case.k)
    return a, dense(inputs[1], case.b.element, 8), dense(inputs[2], case.c.element, 16, is_c=True)


SPARSE = mc.sparse_cases()


@pytest.mark.parametrize("case", [c for c in SPARSE if c.d.element == "s32"], ids=str)
def test_sparse_integers_are_exact(case) -> None:
    inputs = case.inputs(8, "wide")
    a, b, c = sparse_operands(case, inputs)
    exact = c + a @ b.transpose(0, 2, 1)
    if "satfinite" in case.text:
        exact = np.clip(exact, -(1 << 31), (1 << 31) - 1)
    got = dense(case.run(inputs, "emu"), "s32", 16, is_c=True)
    assert np.array_equal(got.astype(np.int32), exact.astype(np.int32))


@pytest.mark.parametrize("case", [c for c in SPARSE if c.a.element in FLOATS], ids=str)
def test_sparse_floats_are_near_exact_arithmetic(case) -> None:
    inputs = case.inputs(8, "near")
    a, b, c = sparse_operands(case, inputs)
    exact = c + a @ b.transpose(0, 2, 1)
    size = abs(c) + abs(a) @ abs(b).transpose(0, 2, 1)
    got = dense(case.run(inputs, "emu"), case.d.element, 16, is_c=True)
    unit = {"f16": 2.0**-11, "f32": 2.0**-23}[case.d.element]
    assert np.all(abs(got - exact) <= (case.k + 2) * unit * size)


def test_metadata_of_tf32_that_is_not_valid() -> None:
    case = mc.mma("m16n8k16", *["f32", "tf32", "tf32", "f32"], variant=".sp", selector=1)
    a, b, c, metadata = case.inputs(1, "near")
    out = np.zeros((1, case.d.count, 32), np.uint32)
    kernel = smemkern.Kernel(case.ptx(), "matrix")
    metadata[0, 0, 5] = 0x0F  # lanes 0, 1 of a quad: not selected
    kernel(1, 32, a, b, c, metadata, out, device="emu")
    metadata[0, 0, 30] = metadata[0, 0, 30] & 0xFFFF0FFF | 0x8000
    with pytest.raises(smemkern.LaunchError, match="neither 0b0100 .* nor 0b1110"):
        kernel(1, 32, a, b, c, metadata, out, device="emu")


def test_rows_of_b_that_no_metadata_names_do_not_count() -> None:
    """NaNs there, and zeros in A, leave the result finite."""
    case = mc.mma("m16n8k16", *["f32", "f16", "f16", "f32"], variant=".sp", selector=0)
    a, b, c, _ = case.inputs(4, "near")
    a[...] = 0
    metadata = np.full((4, 1, 32), 0x44444444, np.uint32)  # columns 0 and 1 of every chunk
    lane = np.arange(32)
    b[:, :, lane % 2 == 1] = 0x7FFF7FFF  # lanes with rows 2 and 3 of a chunk
    got = case.run([a, b, c, metadata], "emu")
    assert np.array_equal(got, c)
    b[:, 1, 4] = 0x3C007C00  # infinity in row 8 of column 1
    changed = dense(case.run([a, b, c, metadata], "emu"), "f32", 16, is_c=True)
    nan = np.isnan(changed) | (abs(changed) > 2.0**127)
    assert nan[:, :, 1].all() and not nan[:, :, 0].any()


SPARSE_WGMMA = [
    Wgmma(n, a, b, "s32", rows, a_registers=registers, saturate=s, selector=0)
    for (a, b), rows, registers, s, n in zip(
        product(("s8", "u8"), repeat=2),
        (16, 64, 64, 16),
        (0, 1, 0, 1),
        (0, 0, 1, 1),
        (8, 64, 16, 256),
        strict=True,
    )
]


def k_major(memory: np.ndarray, lines: int, length: int, rows: int) -> np.ndarray:
    """Bytes (line, k) of a K-major operand; rows: 16 (no swizzle), or as long as a line."""
    line, k = np.indices((lines, length))
    if rows == 16:
        at = k // 16 * lines * 16 + line * 16 + k % 16
    else:
        at = line * rows + k
        at ^= (at >> 7 & rows // 16 - 1) << 4
    return memory[at]


@pytest.mark.parametrize("case", SPARSE_WGMMA, ids=str)
def test_sparse_wgmma_integers_are_exact(case) -> None:
    inputs = case.inputs("wide")
    memory, registers, c, metadata = inputs
    tile = memory.view(np.uint8)
    signed = {"s8": np.int8, "u8": np.uint8}
    b = k_major(tile[A_BYTES:], case.n, 64, case.rows).view(signed[case.b]).astype(int)
    warps = np.arange(128).reshape(4, 32)
    c_words = c[:, warps].transpose(1, 0, 2)
    if case.a_registers:
        stored = dense(registers[:, warps].transpose(1, 0, 2), case.a, 16)
    else:
        at = k_major(tile, 64, 32, 16) if case.rows == 16 else shared_a(tile, case.rows)
        stored = at.view(signed[case.a]).astype(int).reshape(4, 16, 32)
    columns = stored_columns(metadata[warps], case.a, 64, 0)
    exact = wide_c(c_words) + with_zeros(stored, columns, 64) @ b.T
    if case.saturate:
        exact = np.clip(exact, -(1 << 31), (1 << 31) - 1)
    got = wide_c(case.run(inputs, "emu")[:, warps].transpose(1, 0, 2))
    assert np.array_equal(got.astype(np.int32), exact.astype(np.int32))


def wide_c(words: np.ndarray) -> np.ndarray:
    """(warp, row, column) of accumulators of s32 with four registers per 8 columns."""
    blocks = range(0, words.shape[1], 4)
    tiles = [dense(words[:, k : k + 4], "s32", 16, is_c=True) for k in blocks]
    return np.concatenate(tiles, axis=2)


def shared_a(tile: np.ndarray, rows: int) -> np.ndarray:
    """A's 32 bytes per line, which begin rows that are longer."""
    return k_major(tile, 64, rows, rows)[:, :32]


# ---- m8n8k4 of f16 and roundings of f64 ----


def quad_matrix(words: np.ndarray, element: str, row: bool) -> np.ndarray:
    """(trial, quad, 8, 4) of a factor whose lanes hold lines of four (row), or across them."""
    elements = values(elements_of(words, element), element)
    out = np.zeros((len(words), 4, 8, 4))
    for lane, which in product(range(32), range(4)):
        line, at = (lane % 4, which) if row else (which, lane % 4)
        out[:, lane % 16 // 4, line + lane // 16 * 4, at] = elements[:, which // 2, lane, which % 2]
    return out


def quad_sums(words: np.ndarray, element: str) -> np.ndarray:
    """(trial, quad, row, column) of C or D."""
    elements = values(elements_of(words, element), element)
    out = np.zeros((len(words), 4, 8, 8))
    for lane, k in product(range(32), range(8)):
        quad, base = lane % 16 // 4, lane // 16 * 4
        if element == "f16":
            out[:, quad, base + lane % 4, k] = elements[:, k // 2, lane, k % 2]
        else:
            out[:, quad, base + lane % 2 + (k & 2), (k & 4) + (lane & 2) + k % 2] = elements[
                :, k, lane, 0
            ]
    return out


@pytest.mark.parametrize("case", mc.quad_cases(), ids=str)
def test_four_products_of_quads(case) -> None:
    inputs = case.inputs(8, "near")
    _, _, _, _, a_order, b_order, *_ = case.text.split()[0].split(".")
    a = quad_matrix(inputs[0], "f16", a_order == "row")
    b = quad_matrix(inputs[1], "f16", b_order == "col")
    c = quad_sums(inputs[2], case.c.element)
    exact = c + a @ b.transpose(0, 1, 3, 2)
    size = abs(c) + abs(a) @ abs(b).transpose(0, 1, 3, 2)
    got = quad_sums(case.run(inputs, "emu"), case.d.element)
    unit = {"f16": 2.0**-11, "f32": 2.0**-23}[case.d.element]
    assert np.all(abs(got - exact) <= 5 * unit * size)


def rounded_chain(a, b, c: int, rounding: str) -> int:
    """c + the products of a and b, one fused multiply-add after the other; all are bits of f64."""
    total = c
    for x, y in zip(a, b, strict=True):
        exact = ef.multiply_add(*(ef.F64.decode(v) for v in (x, y, total)), rounding)
        total = ef.F64.encode(exact, rounding)
    return total


@pytest.mark.parametrize("case", mc.rounding_cases(), ids=str)
def test_f64_is_rounded_as_asked(case) -> None:
    inputs = case.inputs(1, "near")
    m = case.c.count * 4
    bits = [dense_bits(inputs[0], m), dense_bits(inputs[1], 8), dense_bits(inputs[2], m, True)]
    a, b, c = (x[0].tolist() for x in bits)
    got = dense_bits(case.run(inputs, "emu"), m, True)[0].tolist()
    rounding = case.text.split(".col.")[1][:2]
    want = [[rounded_chain(a[i], b[j], c[i][j], rounding) for j in range(8)] for i in range(m)]
    assert got == want


def dense_bits(words: np.ndarray, lines: int, is_c: bool = False) -> np.ndarray:
    """`dense` of f64, as bits."""
    return dense(words, "f64", lines, is_c).view(np.uint64)


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


# ---- FLOPs ----


@pytest.mark.parametrize(
    ("case", "flops"),
    [
        (mc.mma("m16n8k16", *["f16"] * 4), 2 * 16 * 8 * 16),
        (mc.mma("m16n8k32", *["f16"] * 4, variant=".sp", selector=0), 2 * 16 * 8 * 32),
        (mc.mma("m8n8k4", *["f64"] * 4), 2 * 8 * 8 * 4),
        (mc.quad_cases()[0], 4 * 2 * 8 * 8 * 4),
        (mc.mma("m16n8k32", "s32", "s8", "s8", "s32"), 0),
    ],
    ids=str,
)
def test_flops_of_a_product(case, flops: int) -> None:
    inputs = case.inputs(3, "near")
    out = np.zeros((3, case.d.count, 32), np.uint64 if case.d.wide else np.uint32)
    kernel = smemkern.Kernel(case.ptx(), "matrix")
    traced = smemkern.trace(kernel, 3, 32, *inputs, out)
    assert traced.flops == 3 * flops


def test_flops_of_a_sparse_wgmma() -> None:
    case = Wgmma(24, "f16", "f16", "f32", selector=0)
    memory, a, c, metadata = case.inputs("near")
    out = np.zeros((case.d_count, 128), np.uint32)
    kernel = smemkern.Kernel(case.ptx(), "matrix")
    traced = smemkern.trace(kernel, 1, 128, memory, a, c, out, metadata)
    assert traced.flops == 2 * 64 * 24 * 32


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
        ("%e0, 1;", "%e0, 2;"),
        ("%e0, 1;", "%e0, -1;"),
        ("%e0, 1;", "%e0;"),
        ("%e0, 1;", "%e0, %e0;"),
        ("m16n8k32", "m16n8k33"),
        ("m16n8k32", "m16n8k64"),
        (".sp.", ".sp::unordered_metadata."),
        (".f16.f16.f16.f16", ".f32.f16.f16.f16"),
    ],
)
def test_unknown_sparse_forms_name_themselves(known: str, unknown: str) -> None:
    case = mc.mma("m16n8k32", *["f16"] * 4, variant=".sp", selector=1)
    text = case.ptx().replace(known, unknown)
    assert text != case.ptx()
    out = np.zeros((1, case.d.count, 32), np.uint32)
    kernel, inputs = smemkern.Kernel(text, "matrix"), case.inputs(1, "near")
    with pytest.raises(smemkern.UnsupportedInstructionError, match=r"does not support .* `mma\.sp"):
        kernel(1, 32, *inputs, out, device="emu")


def test_unknown_sparse_wgmma_names_itself() -> None:
    text = Wgmma(8, "f16", "f16", "f32", selector=1).ptx()
    for known, unknown in (
        ("%meta, 1,", "%meta, 2,"),
        ("%meta, 1,", ""),
        (".m64n8k32", ".m64n8k16"),
    ):
        assert known in text
        kernel = smemkern.Kernel(text.replace(known, unknown), "matrix")
        with pytest.raises(smemkern.UnsupportedInstructionError, match=r"`wgmma\.mma_async\.sp"):
            kernel(1, 128, *[np.zeros(65536, np.uint32)] * 5, device="emu")


@pytest.mark.parametrize(
    ("known", "unknown"),
    [
        ("m16n8k16", "m16n8k32"),
        (".row.col.", ".col.row."),
        (".f16.f16.f16.f16", ".f16.bf16.f16.f16"),
        ("mma.sync", "mma.sp.sync"),  # without metadata
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


def main() -> None:
    missing = [run for run in RUNS if name_of(*run) not in RECORDED]
    lines = RECORDED | {name_of(*run): ask_gpu(*run) for run in missing}
    text = ",\n".join(f"{json.dumps(name)}: {sums}" for name, sums in lines.items())
    RECORD.write_text(f"{{\n{text}\n}}\n")


if __name__ == "__main__":
    main()
