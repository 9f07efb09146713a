"""smemkern.judge: right kernels are clean, and each way of being wrong has its verdict."""

import random
import secrets

import numpy as np
import pytest

import smemkern
from judged import ARGS, HEAD, PLACE, RELU, RIGHT, judged, kernel
from smemkern._judge.inputs import template

# ---- right kernels


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


@pytest.mark.long(instead="test_judge_command.py, whose kernels are files")
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
