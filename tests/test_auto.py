"""Variant "auto": what it picks, and that its result is as accurate as was asked for."""

import numpy as np
import pytest

import smemkern
from checks import assert_gemm, random_matrix

GEMM_DTYPES = ["float32", "float64", "float16", "bfloat16"]


def picked(a, b, **options):
    return smemkern._core.plan("gemm", (a, b), {"variant": "auto", **options})["variant"]


@pytest.mark.parametrize("dtype", GEMM_DTYPES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 300, 7), (130, 140, 150), (0, 3, 2)])
def test_any_call_has_a_row(shape, dtype, device, rng):
    m, n, k = shape
    a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
    result = smemkern.gemm(a, b, device=device)
    assert_gemm(result, a, b)
    assert_gemm(smemkern.gemm(b.T, a.T, device=device), b.T, a.T)


def test_rows_on_the_emulator():
    """A plan is made for the emulator."""
    for dtype, row in (("f4", "vectorized"), ("f8", "vectorized"), ("f2", "fp16")):
        x = np.ones((4, 4), dtype)
        assert picked(x, x) == row


@pytest.mark.parametrize("accuracy", ["float32", "norm", "tf32", "tf32-norm"])
def test_accuracy(accuracy, device, rng):
    a, b = random_matrix(rng, (300, 200), "f4"), random_matrix(rng, (200, 260), "f4")
    result = smemkern.gemm(a, b, accuracy=accuracy, device=device)
    exact = a.astype("f8") @ b.astype("f8")
    error = np.linalg.norm(result - exact) / np.linalg.norm(exact)
    assert error < (5e-4 if accuracy.startswith("tf32") else 1e-6)


def test_accuracy_of_float64():
    """Residues only where they are asked for, and where they are faster."""
    chosen = {
        (n, accuracy): smemkern.choices(n, n, n, dtype="float64", accuracy=accuracy)[0].variant
        for n in (300, 4096)
        for accuracy in ("float32", "norm")
    }
    assert chosen.pop((4096, "norm")) == "ozaki2"
    assert set(chosen.values()) == {"fp64"}


def test_accuracy_that_there_is_not():
    x = np.ones((4, 4), "f4")
    with pytest.raises(ValueError, match="'float32', 'norm', 'tf32' or 'tf32-norm', not 'half'"):
        smemkern.gemm(x, x, accuracy="half")
    with pytest.raises(TypeError, match="accuracy must be"):
        smemkern.gemm(x, x, accuracy=16)
    with pytest.raises(ValueError, match="variant 'tiled' has its own"):
        smemkern.gemm(x, x, variant="tiled", accuracy="tf32")


def test_small_elements_keep_their_bits(device, rng):
    """The default is right element by element, where rows hold both large and small numbers: on a
    GPU by the row that makes float32 of tf32, which the emulator has to be told to take."""
    m, k = (1024, 512) if device == "cuda" else (128, 64)
    a, b = random_matrix(rng, (m, k), "f4"), random_matrix(rng, (k, 2 * k), "f4")
    a[:, ::2] *= np.float32(2.0**-30)
    b[1::2, :k] = 0
    [row] = [row for row in smemkern.variants("gemm") if row.name == "tf32x3"]
    variant = "auto" if device == "cuda" else row.name
    assert_gemm(smemkern.gemm(a, b, variant=variant, device=device), a, b, row=row)
