"""smemkern.judge: what a reference may be, and the tolerance."""

import numpy as np
import pytest

import smemkern
from judged import RELU, RIGHT, judged, kernel
from smemkern._judge.tolerance import Tolerance

# ---- the reference


def test_references_that_cannot_judge(nvrtc):
    with pytest.raises(ValueError, match=r"the reference has a hazard: WAW race.*n=150"):
        judged(RELU, "y[0] = i;")
    with pytest.raises(ValueError, match="the reference fails: .*out of bounds"):
        judged(RELU, "y[i] = 1;")
    with pytest.raises(
        ValueError, match="differ in argument 2: it reads the array before it writes"
    ):
        judged(RELU, "if (i < n) y[i] += x[i];")
    with pytest.raises(ValueError, match="the reference raises ZeroDivisionError"):
        judged(RELU, lambda x, w, y, n: 1 / 0)
    with pytest.raises(ValueError, match="returns 2 arrays, and there are 1"):
        judged(RELU, lambda x, w, y, n: (x, w))
    with pytest.raises(ValueError, match=r"shape \(149,\), and the output has \(150,\)"):
        judged(RELU, lambda x, w, y, n: x[1:])


def test_cases_that_the_reference_does_not_support_are_skipped(nvrtc):
    even = "if (n % 2) { y[n] = 1; } if (i < n) y[i] = x[i];"
    found = judged("if (i < n && n % 2 == 0) y[i] = x[i];", even)
    assert found.verdict == "clean"
    skipped = [one for one in found.cases if one.verdict == "skipped"]
    assert {one.name for one in skipped} == {f"n={n}, random" for n in (1, 149, 151, 73)}
    assert all("out of bounds" in one.reason for one in skipped) and "skipped: n=1" in repr(found)


def test_a_stencil_is_not_judged_in_place(nvrtc):
    stencil = "if (i < n) y[i] = x[i] + x[(i + 1) % n];"
    found = judged(stencil, stencil)
    assert found.verdict == "clean"
    aliased = {one.name: one.verdict for one in found.cases if "same array" in one.name}
    assert aliased["n=150, random, arguments 0 and 2 the same array"] == "skipped"
    assert aliased["n=150, random, arguments 0 and 1 the same array"] == "clean"


def test_a_reference_that_one_array_changes(nvrtc):
    """One thread, so no race: reversed in place, the second half has the first's new values."""
    flip = "if (i == 0) for (int j = 0; j < n; j++) y[j] = x[n - 1 - j];"
    found = judged("if (i < n) y[i] = x[n - 1 - i];", flip)
    assert found.verdict == "clean", found
    (reason,) = {one.reason for one in found.cases if one.name.endswith("0 and 2 the same array")}
    assert "gives another result when these arguments are the same array" in reason


def test_a_reference_that_is_launched_in_another_way(nvrtc):
    found = judged(RELU, reference_launch={"grid": "cdiv(n, 32)", "block": 32})
    assert found.verdict == "clean"
    assert found.reference.sectors == found.candidate.sectors > 0
    found = judged(RELU, grid="n / 64 + 1", reference_launch={"grid": "cdiv(n, 64)"})
    assert found.verdict == "clean"


def test_counts_are_those_of_a_trace(nvrtc):
    body = RIGHT["through shared memory"]
    found = judged(body)
    x = np.ones(150, np.float32)
    t = smemkern.trace(kernel(body), 3, 64, x, x, x.copy(), 150)
    assert found.candidate.requests == t.shared_requests == 10
    assert found.candidate.wavefronts == t.shared_wavefronts
    assert found.candidate.sectors == sum(row.sectors for row in t.global_)
    assert found.candidate.warp_instructions == t.warp_instructions
    assert found.candidate.shared_bytes == 256 and found.candidate.registers > 4
    assert found.reference.requests == 0


def test_a_seed_makes_the_same_inputs(nvrtc):
    body = "if (i < n) y[i] = x[i] * 1.5f;"
    values = {judged(body, seed=7).problems[0].found for _ in range(2)}
    values |= {judged(body).problems[0].found for _ in range(2)}
    assert len(values) == 3


# ---- tolerance


@pytest.mark.parametrize(
    ("options", "factor", "verdict"),
    [
        ({}, 1 + 4e-6, "clean"),
        ({}, 1 + 1e-4, "wrong"),
        ({"equal_bits": True}, 1 + 1e-6, "wrong"),
        ({"equal_bits": True}, 1, "clean"),
        ({"rtol": 1e-2}, 1 + 5e-3, "clean"),
        ({"rtol": 1e-2}, 1 + 2e-2, "wrong"),
        ({"rtol": 0}, 1 + 1e-6, "wrong"),
        ({"atol": 1e30}, 2, "clean"),
    ],
)
def test_tolerances(nvrtc, options, factor, verdict):
    scaled = f"if (i < n) {{ float v = x[i] * w[i]; y[i] = v * float({factor - 1:.9g}) + v; }}"
    plain = "if (i < n) y[i] = x[i] * w[i];"
    assert judged(scaled, plain, values=["random"], aliasing=False, **options).verdict == verdict


def test_what_is_equal():
    nan, inf = np.nan, np.inf
    right = np.array([1, nan, inf, -inf, 0, 1e-40, 1], np.float32)
    automatic, bits = Tolerance(None, None, False), Tolerance(None, None, True)
    found = np.array([1.00001, nan, inf, -inf, -0.0, 1e-40, 1.0001], np.float32)
    assert automatic.wrong(right, found).tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert bits.wrong(right, found).tolist() == [1, 0, 0, 0, 1, 0, 1]
    swapped = np.array([nan, 1, -inf, 3e38, inf, nan, 1], np.float32)
    assert automatic.wrong(right, swapped).tolist() == [1, 1, 1, 1, 1, 1, 0]
    assert automatic.wrong(right, swapped, 1e39).tolist() == [1, 1, 1, 1, 1, 1, 0]
    whole = np.array([2**60, 2**60 + 1])
    assert automatic.wrong(whole, whole[::-1].copy()).all()
