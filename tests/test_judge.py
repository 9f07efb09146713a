"""smemkern.judge: right kernels are clean, and each way of being wrong has its verdict."""

import json
import random
import secrets

import numpy as np
import pytest

import smemkern
from smemkern._judge import Tolerance
from smemkern._judge_inputs import (
    PATTERNS,
    VALUES,
    Case,
    arguments,
    cases,
    evaluate,
    extent,
    odd_sizes,
    poison,
    template,
)

HEAD = """extern "C" __global__ void f(const float *x, const float *w, float *y, int n) {
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
"""
RELU = "if (i < n) y[i] = fmaxf(x[i], 0) * w[i] + 1;"
ARGS = ["f32[n]=random", "f32[n]=random", "f32[n]", "i32=n"]
PLACE = {"grid": "cdiv(n, 64)", "block": 64, "sizes": {"n": 150}}
LIMITS = {"timeout": 10.0, "max_instructions": 200_000}


def kernel(body, before=""):
    return smemkern.Kernel(f"{before}\n{HEAD}{body}\n}}", "f")


def judged(candidate, reference=RELU, before="", **more):
    left = reference if callable(reference) else kernel(reference)
    given = PLACE | LIMITS | more
    return smemkern.judge(left, kernel(candidate, before), given.pop("args", ARGS), **given)


# ---- right kernels

RIGHT = {
    "itself": RELU,
    "another form": "if (i < n) { float v = w[i]; y[i] = fmaf(fmaxf(x[i], 0), v, 1); }",
    "strides": """
        for (int j = t; j < n; j += 64)
            if (blockIdx.x == 0) y[j] = fmaxf(x[j], 0) * w[j] + 1;""",
    "through shared memory": """
        __shared__ float tile[64];
        if (i < n) tile[t] = x[i];
        __syncthreads();
        if (i < n) y[i] = fmaxf(tile[t], 0) * w[i] + 1;""",
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_are_clean(nvrtc, name):
    found = judged(RIGHT[name])
    assert found.verdict == "clean" and not found.problems, found
    names = [one.name for one in found.cases]
    assert names[0] == "n=150, random" and {one.verdict for one in found.cases} == {"clean"}
    for part in ("n=1,", "n=149", "n=151", "zeros", "nan in argument 1", "inf in argument 0"):
        assert any(part in one for one in names), part
    assert "n=150, random, arguments 0 and 2 the same array" in names


def sums(x, y, n):
    return np.array([x.astype(np.float64).sum()])


def softmax(x, y, n):
    e = np.exp(x.astype(np.float64) - x.max())
    y[:] = e / e.sum()


SUMS = ["f32[n]=random", "f32[1]", "i32=n"]
SUM_HEAD = (
    'extern "C" __global__ void f(const float *x, float *y, int n) {\n int t = threadIdx.x;\n'
)
OTHERS = {
    "a sum by shuffles": (
        sums,
        "float s = 0; for (int j = t; j < n; j += 32) s += x[j];"
        "for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d); if (t == 0) y[0] = s;",
        SUMS,
    ),
    "a sum backwards": (
        sums,
        "float s = 0; for (int j = n - 1; j >= 0; j--) s += x[j]; if (t == 0) y[0] = s;",
        SUMS,
    ),
    "atomics": (
        lambda x, y, n: y.__setitem__(0, y[0] + x.astype(np.float64).sum()),
        "for (int j = t; j < n; j += 32) atomicAdd(y, x[j]);",
        ["f32[n]=random", "f32[1]=zeros", "i32=n"],
    ),
    "softmax": (
        softmax,
        "float m = x[0], s = 0; for (int j = 0; j < n; j++) m = fmaxf(m, x[j]);"
        "for (int j = 0; j < n; j++) s += expf(x[j] - m);"
        "for (int j = t; j < n; j += 32) y[j] = expf(x[j] - m) / s;",
        ["f32[n]=random", "f32[n]", "i32=n"],
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_rounding_in_another_order_is_clean(nvrtc, name):
    """References compute in float64; each run has other inputs."""
    reference, body, args = OTHERS[name]
    candidate = smemkern.Kernel(SUM_HEAD + body + "}", "f")
    found = smemkern.judge(reference, candidate, args, grid=1, block=32, sizes={"n": 333})
    assert found.verdict == "clean", found
    assert found.reference is None and found.candidate.warp_instructions > 0


@pytest.mark.parametrize("dtype", ["f16", "f64", "i8", "u8", "i16", "u32", "i64"])
def test_types(nvrtc, dtype):
    name = {"f16": "__half", "f64": "double"}.get(dtype)
    name = name or (
        "unsigned " * (dtype[0] == "u") + {"8": "char", "16": "short"}.get(dtype[1:], "int")
    )
    if dtype == "i64":
        name = "long long"
    source = f"""#include <cuda_fp16.h>
    extern "C" __global__ void f(const {name} *x, {name} *y, int n) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = OFF;
    }}"""
    right, wrong = (
        smemkern.Kernel(source, "f", [f"-DOFF={what}"]) for what in ("x[i]", "x[i / 2 * 2]")
    )
    args = [f"{dtype}[n]=random", f"{dtype}[n]", "i32=n"]
    assert smemkern.judge(right, right, args, **PLACE).verdict == "clean"
    found = smemkern.judge(right, wrong, args, **PLACE)
    assert found.verdict == "wrong" and found.problems[0].element[0] % 2 == 1


def test_structs_and_arrays_that_are_given(nvrtc):
    pair = np.dtype([("at", np.int32), ("by", np.float64)], align=True)
    source = """struct Pair { int at; double by; };
    extern "C" __global__ void f(Pair one, const Pair *x, Pair *y, float z) {
        int t = threadIdx.x;
        y[t].at = x[t].at + one.at + ADD;
        y[t].by = x[t].by * one.by * z;
    }"""
    x = np.zeros(32, pair)
    x["at"], x["by"] = np.arange(32), np.nan
    one = np.zeros((), pair)
    args = [one, x, np.zeros(32, pair), np.float32(2)]
    right, wrong = (smemkern.Kernel(source, "f", [f"-DADD={what}"]) for what in ("0", "t / 31"))
    assert smemkern.judge(right, right, args, grid=1, block=32).verdict == "clean"
    found = smemkern.judge(right, wrong, args, grid=1, block=32)
    assert found.verdict == "wrong" and found.problems[0].element == (31,)


GATHER = """extern "C" __global__ void f(const float *x, const int *at, float *y, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[AT];
}"""


def test_indices_within_bounds(nvrtc):
    right, wrong = (
        smemkern.Kernel(GATHER, "f", [f"-DAT={what}"]) for what in ("at[i]", "min(at[i], m - 2)")
    )
    args = ["f32[m]=random", "i32[n]=random(0, m)", "f32[n]", "i32=n", "i32=m"]
    place = {"grid": "cdiv(n,64)", "block": 64, "sizes": {"n": 100, "m": 30}}
    found = smemkern.judge(right, right, args, **place)
    assert found.verdict == "clean"
    assert not [one for one in found.cases if one.verdict == "skipped"]  # none is out of bounds
    assert smemkern.judge(right, wrong, args, **place).verdict == "wrong"
    args[1] = "i32[n]=random(0, m + 1)"
    with pytest.raises(ValueError, match="the reference fails: .*out of bounds"):
        smemkern.judge(right, right, args, **place)
    for bounds in ("m, m", "5, 2", "0", "0, 2147483649", ""):
        args[1] = f"i32[n]=random({bounds})"
        with pytest.raises(ValueError, match="range|two bounds"):
            smemkern.judge(right, right, args, **place)


def test_numbers_within_bounds():
    for dtype in ("u8", "i16", "f32", "i64"):
        for n in (0, 1, 2, 50):
            one = template(f"{dtype}[n]=random(3, n + 5)")
            made = one.make({"n": n}, np.random.default_rng())
            assert made.size == n and ((made >= 3) & (made < n + 5)).all()
            if made.dtype.kind != "f" and n > 1:
                assert {3, n + 4} <= {*made.tolist()}


# ---- wrong kernels: (body, verdict, part of the message, part of the first case)

WRONG = {
    "writes nothing": ("", "wrong", "argument 2, element 0 is never written", "n=150, random"),
    "forgets the last": (
        RELU.replace("i < n", "i < n - 1"),
        "wrong",
        "element 149 is never written",
        "n=150, random",
    ),
    "full blocks only": (
        "if (i < n / 2 * 2) y[i] = fmaxf(x[i], 0) * w[i] + 1;",
        "wrong",
        "is never written",
        "n=1, random",
    ),
    "no guard": (RELU.removeprefix("if (i < n)"), "wrong", "out of bounds", "n=150, random"),
    "reads past the end": (
        "if (i < n) y[i] = fmaxf(x[i], 0) * w[i] + 1 + 0 * x[i + 1];",
        "wrong",
        "out of bounds",
        "n=150, random",
    ),
    "NaN": ("if (i < n) y[i] = (x[i] < 0 ? 0 : x[i]) * w[i] + 1;", "wrong", "is nan", "nan in"),
    "infinity": (
        "if (i < n) y[i] = fminf(fmaxf(x[i], 0), 1e30f) * w[i] + 1;",
        "wrong",
        "expected",
        "inf in argument 0",
    ),
    "large": (
        "if (i < n) y[i] = (x[i] > 1e9f && x[i] < 3e38f ? 0 : fmaxf(x[i], 0)) * w[i] + 1;",
        "wrong",
        "expected",
        "large",
    ),
    "writes an input": (RELU + " if (i < n) ((float *)x)[i] = 7;", "wrong", "argument 0", "random"),
    "reads an output": (
        "if (i < n) y[i] = fmaxf(x[i], 0) * w[i] + 1 + y[i] * 0;",
        "reads unwritten memory",
        "differs between two runs on different contents of the outputs",
        "n=150, random",
    ),
    "knows the poison": (
        "if (i < n) y[i] = y[i] != y[i] ? fmaxf(x[i], 0) * w[i] + 1 : 0;",
        "reads unwritten memory",
        "differs between two runs on different contents of the outputs",
        "n=150, random",
    ),
    "uninitialised": (
        "__shared__ float s[64]; if (i < n && t) s[t] = x[i];"
        "if (i < n) y[i] = fmaxf(s[t], 0) * w[i] + 1;",
        "reads unwritten memory",
        "which was never written in this block",
        "n=150, random",
    ),
    "race": (
        "__shared__ float s[64]; s[t] = i < n ? x[i] : 0;"
        "if (i < n) { float v = s[t ^ 32]; s[t] = v; y[i] = fmaxf(x[i], 0) * w[i] + 1 + 0 * v; }",
        "racy",
        "race, shared s[",
        "n=150, random",
    ),
    "endless": (
        "while (i >= 0) { __threadfence(); }",
        "wrong",
        "max_instructions",
        "n=150, random",
    ),
    "aliasing": (
        "if (i < n) { y[i] = 1; y[i] += fmaxf(x[i], 0) * w[i]; }",
        "wrong",
        "argument",
        "arguments 0 and 2 the same array",
    ),
    "one size": (
        "if (i < 150) y[i] = fmaxf(x[i], 0) * w[i] + 1;",
        "wrong",
        "out of bounds",
        "n=1,",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels(nvrtc, name):
    body, verdict, message, case = WRONG[name]
    found = judged(body)
    assert found.verdict == verdict, found
    first = next(one for one in found.problems if one.verdict == verdict)
    assert message in first.message and case in first.case, found
    assert repr(found).startswith(f"verdict: {verdict}") and first.message in repr(found)
    assert "verdict" in found._repr_html_()


def test_sources_as_text(nvrtc):
    texts = [HEAD + body + "}" for body in (RELU, WRONG["forgets the last"][0])]
    assert smemkern.judge(texts[0], texts[0], ARGS, **PLACE).verdict == "clean"
    assert smemkern.judge(texts[0], texts[1], ARGS, **PLACE).verdict == "wrong"
    ptx = kernel(RELU).ptx
    assert smemkern.judge(texts[0], ptx, ARGS, **PLACE).verdict == "clean"
    assert smemkern.judge(texts[0], HEAD, ARGS, **PLACE).verdict == "wrong"
    with pytest.raises(smemkern.CompileError, match="error"):
        smemkern.judge(HEAD, texts[0], ARGS, **PLACE)


def test_module_variables_are_fresh(nvrtc):
    """A candidate that is right from its second launch on is wrong."""
    before = "__device__ int launches[4096];"
    body = "if (i < n) { y[i] = launches[i]++ ? fmaxf(x[i], 0) * w[i] + 1 : 0; }"
    found = judged(body, before=before)
    assert found.verdict == "wrong" and found.problems[0].case == "n=150, random"


def test_elements_that_the_reference_leaves(nvrtc):
    evens = "if (2 * i < n) y[2 * i] = x[2 * i];"
    assert judged(evens, evens).verdict == "clean"
    found = judged("if (i < n) y[i] = x[i];", evens)
    assert found.verdict == "wrong" and "the reference leaves it as it was" in repr(found)
    assert found.problems[0].element == (1,)


def test_zeros_for_small_numbers_are_wrong(nvrtc):
    """The tolerance comes from the results, not from the inputs."""
    body = "for (int j = t; j < n; j += 32) y[j] = 0;"
    candidate = smemkern.Kernel(SUM_HEAD + body + "}", "f")
    args = ["f32[n]=random", "f32[n]", "i32=n"]
    found = smemkern.judge(
        softmax, candidate, args, grid=1, block=32, sizes={"n": 30000}, odd=False
    )
    assert found.verdict == "wrong" and found.problems[0].case == "n=30000, random"


def test_random_faults_are_found(nvrtc):
    """One element of the result is off, in one random case of sizes and contents."""
    seed = secrets.randbits(32)
    rng = random.Random(seed)
    for _ in range(10):
        n = rng.randrange(2, 400)
        at = rng.randrange(n)
        factor = 1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-3.5, 3)
        body = RELU + f" if (i == {at} && n == {n}) y[i] *= {factor}f;"
        found = judged(body, sizes={"n": n}, values=["ones"], aliasing=False)
        assert found.verdict == "wrong", (seed, found)
        assert found.problems[0].element == (at,), (seed, found)
        assert found.problems[0].case.startswith(f"n={n}, "), (seed, found)


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


# ---- inputs


def test_patterns():
    seed = secrets.randbits(32)
    for dtype in (np.float16, np.float32, np.float64):
        for shape in ((1,), (7,), (3, 5), (0,), (1000,)):
            rng = np.random.default_rng(seed)
            made = {
                name: pattern.fill(np.zeros(shape, dtype), rng)
                for name, pattern in PATTERNS.items()
                if "f" in pattern.kinds
            }
            assert all(one.dtype == dtype and one.shape == shape for one in made.values()), seed
            if not made["nan"].size:
                continue
            assert np.isnan(made["nan"]).any() and np.isinf(made["inf"]).any(), seed
            tiny, largest = np.finfo(dtype).tiny, np.finfo(dtype).max
            assert (np.abs(made["subnormal"]) <= tiny).all(), seed
            assert np.isfinite(made["large"].astype(float) ** 2 * 255).all(), seed
            if made["large"].size > 100:
                assert np.abs(made["large"]).max() > float(largest) ** 0.5 / 32, seed
                assert np.isnan(made["nan"]).sum() < 20, seed
                pairs = made["cancelling"].astype(float).reshape(-1, 2)
                assert np.abs(pairs.sum(1)).max() < 0.2 < np.abs(pairs).max(), seed
    for kind in "iu":
        for bits in (8, 16, 32, 64):
            like = np.zeros(50, f"{kind}{bits // 8}")
            made = PATTERNS["extremes"].fill(like, np.random.default_rng(seed))
            assert {np.iinfo(like.dtype).min, np.iinfo(like.dtype).max} <= {*made.tolist()}


def test_poisons_differ():
    rng = np.random.default_rng()
    for dtype in (np.float16, np.float32, np.float64, np.int32, np.uint64):
        like = np.zeros((40, 50), dtype)
        one, other = poison(like, rng, True), poison(like, rng, False)
        again = poison(like, rng, True)
        word = f"u{like.itemsize}"
        assert (one.view(word) != other.view(word)).mean() > 0.99
        assert (one.view(word) != again.view(word)).mean() > 0.9
        if like.dtype.kind == "f":
            assert np.isnan(one).all() and np.isfinite(other).all()
            assert (np.abs(other) > float(np.finfo(dtype).max) / 20).all()


def test_odd_sizes():
    assert odd_sizes({"n": 100}) == [{"n": n} for n in (100, 1, 99, 101, 47)]
    assert odd_sizes({}) == [{}]
    found = odd_sizes({"m": 8, "n": 1})
    assert found[0] == {"m": 8, "n": 1} and {"m": 1, "n": 1} in found and {"m": 9, "n": 1} in found
    assert len({tuple(one.items()) for one in found}) == len(found)
    assert all(size >= 1 for one in found for size in one.values())


def test_aliased_arguments_are_one_array():
    templates = [template(text) for text in ("f32[n]=random", "f32[n]=random", "f32[n]", "f32=2")]
    planned = list(cases(templates, [{"n": 9}], VALUES, "all"))
    assert [one.aliased for one in planned if one.aliased] == [(0, 1), (0, 2), (1, 2)]
    made, outputs = arguments(templates, Case({"n": 9}, aliased=(0, 2)), np.random.default_rng(1))
    assert made[0] is made[2] and made[0] is not made[1] and outputs == [False] * 4
    planned = list(cases(templates, [{"n": 9}], VALUES, "inputs"))
    assert [one.aliased for one in planned if one.aliased] == [(0, 1)]
    assert not any(one.aliased for one in cases(templates, [{"n": 9}], VALUES, "none"))


# ---- expressions


def test_expressions_are_those_of_c():
    seed = secrets.randbits(32)
    rng = random.Random(seed)
    sizes = {"m": rng.randrange(1, 99), "n": rng.randrange(1, 99)}

    def expression(depth):
        if depth == 0:
            return rng.choice(["m", "n", str(rng.randrange(1, 9))])
        one, other = expression(depth - 1), expression(depth - 1)
        return rng.choice(
            [f"({one} + {other})", f"({one}) * ({other})", f"cdiv({one}, {other})"]
            + [f"max({one}, {other})", f"min({one},{other})", f"(({one}) / ({other}))"]
        )

    names = {"cdiv": lambda a, b: -(-a // b), "max": max, "min": min, **sizes}
    for _ in range(100):
        text = expression(3)
        try:
            expected = eval(text.replace("/", "//"), dict(names))
        except ZeroDivisionError:
            continue
        if len(text) <= 200:
            assert evaluate(text, sizes) == expected, (seed, text)


@pytest.mark.parametrize(
    "text",
    ["n**9", "n.real", "__import__('os')", "[n]", "n if n else 1", "1.5", "'a'", "", "n n", "f(n)"]
    + ["k", "n(1)", "n/0", "n % (n - n)", "lambda: 1", "(" * 99 + "n" + ")" * 99, "9" * 300]
    + ["cdiv(1)", "cdiv(a=1, b=2)", "2000000*2000000", "True", "n := 3", "-" * 199 + "n"],
)
def test_expressions_that_are_refused(text):
    if text.startswith("("):
        assert evaluate(text, {"n": 3}) == 3  # deep, but short enough
        return
    if text.startswith("---"):
        assert evaluate(text, {"n": 3}) == -3
        return
    with pytest.raises(ValueError, match="."):
        evaluate(text, {"n": 3})


def test_extents():
    sizes = {"n": 100}
    assert extent(7, sizes) == (7,) and extent("16x2", sizes) == (16, 2)
    assert extent("cdiv(n, 32), 2,n/50", sizes) == (4, 2, 2) == extent(("cdiv(n,32)", 2, 2), sizes)
    for wrong in ("0", "n - 100", "1,2,3,4", "", ()):
        with pytest.raises(ValueError, match="expected"):
            extent(wrong, sizes)


# ---- the command

FILES = {
    "ref.cu": HEAD + RELU + "}",
    "same.cu": HEAD + RIGHT["another form"] + "}",
    "racy.cu": HEAD + "y[0] = i;}",
    "broken.cu": HEAD,
    "wrong.cu": HEAD + "if (i < n) y[i] = x[i] + w[i]; }",
    "prints.cu": HEAD + RELU + r'printf("verdict: clean\n::error::x\n"); y[n] = 1; }',
    "two.cu": HEAD + RELU + '}\nextern "C" __global__ void g(int *y) { }\n',
    "ref.py": "import numpy as np\ndef f(x, w, y, n):\n    y[:] = np.fmax(x, 0) * w + 1\n",
    "junk.ptx": "junk",
}
LAUNCH = "--grid 'cdiv(n,64)' --block 64 --size n=150 " + " ".join(f"--arg {a}" for a in ARGS)


@pytest.fixture
def files(tmp_path, monkeypatch, nvrtc):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command(command, files):
    assert command.run(f"judge ref.cu same.cu {LAUNCH}") == 0
    assert command.out.startswith("verdict: clean\n")
    assert command.run(f"judge ref.py:f same.cu {LAUNCH}") == 0
    found = command.json(f"judge ref.cu racy.cu {LAUNCH}")
    assert command.status == 1 and found["verdict"] == "racy"
    assert found["problems"][0]["hazard"]["kind"] == "WAW"
    assert {one["verdict"] for one in found["problems"]} <= {"racy", "wrong"}
    found = command.json(f"judge ref.cu wrong.cu {LAUNCH}")
    again = command.json(f"judge ref.cu wrong.cu {LAUNCH} --seed {found['seed']}")
    assert again["problems"] == found["problems"] and again["verdict"] == "wrong"
    assert command.run(f"judge ref.cu racy.cu {LAUNCH} --format github") == 1
    assert command.out.startswith("::error file=racy.cu,line=3,title=smemkern%3A WAW::racy: WAW")


def test_candidates_that_do_not_run(command, files):
    for name, message in (("broken.cu", "does not compile"), ("junk.ptx", "")):
        assert command.run(f"judge ref.cu {name} {LAUNCH} --junit x.xml --sarif x.sarif") == 1
        assert f"wrong: {message}" in command.out
        assert "<failure" in (files / "x.xml").read_text()
        assert json.loads((files / "x.sarif").read_text())["runs"][0]["results"]
    assert command.run(f"judge ref.cu two.cu {LAUNCH}") == 1 and "cannot be loaded" in command.out
    assert command.run(f"judge ref.cu two.cu {LAUNCH} --kernel f") == 0
    assert command.run(f"judge ref.cu same.cu {LAUNCH} --arg i32=1") == 2
    assert "takes 4 arguments" in command.err


def test_a_candidate_cannot_print_a_verdict(command, files):
    assert command.run(f"judge ref.cu prints.cu {LAUNCH}") == 1
    assert command.out.startswith("verdict: wrong\n") and "verdict: clean" not in command.out
    assert all(line.startswith("printf: ") for line in command.err.splitlines())


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (f"broken.cu same.cu {LAUNCH}", "could not compile"),
        (f"racy.cu same.cu {LAUNCH}", "the reference has a hazard"),
        (f"none.cu same.cu {LAUNCH}", "No such file"),
        (f"ref.cu none.cu {LAUNCH}", "No such file"),
        (f"ref.py same.cu {LAUNCH}", "pass ref.py:NAME"),
        (f"ref.py:g same.cu {LAUNCH}", "has no function 'g'"),
        (f"ref.cu same.cu {LAUNCH} --size m", "--size should be NAME=N"),
        (f"ref.cu same.cu {LAUNCH} --size 2=3", "--size should be NAME=N"),
        (f"ref.cu same.cu {LAUNCH} --values nans", "values should be of random"),
        (f"ref.cu same.cu {LAUNCH} --grid k", "there are: n; a size is given as --size k="),
        (f"ref.cu same.cu {LAUNCH} --arg {{5,f32[n]}}", "judge takes arrays and numbers, and no"),
        (f"ref.cu same.cu {LAUNCH} --timeout 0", "a positive number"),
        ("ref.cu same.cu --block 1", "required: --grid"),
    ],
)
def test_mistakes(command, files, words, error):
    assert command.run(f"judge {words}") == 2
    assert error in command.err and not command.out


def test_numbers_without_a_type(command, files):
    """`n` and `2*n` are of the parameter's type, as `i32=n` is of that one."""
    typed = command.json(f"judge ref.cu same.cu {LAUNCH} --seed 3")
    plain = command.json(f"judge ref.cu same.cu {LAUNCH.replace('i32=n', 'n')} --seed 3")
    assert LAUNCH.count("i32=n") == 1
    assert plain["verdict"] == typed["verdict"] == "clean"
    assert template("2*n+1").make({"n": 4}, np.random.default_rng()) == 9


def test_compiling_has_limits(files, monkeypatch):
    from pathlib import Path

    from smemkern import _judge_runs

    assert _judge_runs.compiled(Path("ref.cu"), None, ()).name == "f"
    with pytest.raises(smemkern.CompileError, match="did not compile in 0.001 seconds"):
        _judge_runs.compiled(Path("ref.cu"), None, (), seconds=0.001)
    monkeypatch.setattr(_judge_runs, "CHILD", ("-c", "import os; os.abort()"))
    with pytest.raises(smemkern.CompileError, match="ref.cu: the compiler ended with -6"):
        _judge_runs.compiled(Path("ref.cu"), None, ())
