"""PTX 1.x and 2.x as nvopencc wrote it: parameters in the body, prototypes without a semicolon,
.tex, .reg and .local outside of functions, and modifiers that were left out."""

from __future__ import annotations

import random

import numpy as np
import pytest

import smemkern

SMALLEST_NORMAL = np.float32(2**-126)
OPERATIONS = {
    "add.f32": np.add,
    "sub.f32": np.subtract,
    "mul.f32": np.multiply,
    "min.f32": np.minimum,
    "max.f32": np.maximum,
}


def floats(seed: int, n: int = 64) -> np.ndarray:
    """Of all magnitudes around the smallest normal number, both signs, and some ordinary ones."""
    rng = np.random.default_rng(seed)
    exponents = rng.choice([*range(-149, -120), *range(-70, -55), -3, 0, 4], n)
    return (rng.uniform(1, 2, n) * rng.choice([-1, 1], n) * 2.0**exponents).astype(np.float32)


def flushed(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < SMALLEST_NORMAL, np.copysign(np.float32(0), x), x)


def module(lines: str, version: str = "1.4", target: str = "sm_13", before: str = "") -> str:
    """%f1, %f2 and %f3 are the thread's floats; it stores %f4."""
    return f"""
.version {version}
.target {target}
{before}
.entry k (.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out)
{{
    .reg .u64 %rd<9>; .reg .f32 %f<9>; .reg .u32 %r<9>; .reg .pred %p<3>;
    cvt.u32.u16 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4;
    ld.param.u64 %rd2, [a]; add.u64 %rd2, %rd2, %rd1; ld.global.f32 %f1, [%rd2];
    ld.param.u64 %rd3, [b]; add.u64 %rd3, %rd3, %rd1; ld.global.f32 %f2, [%rd3];
    ld.param.u64 %rd4, [c]; add.u64 %rd4, %rd4, %rd1; ld.global.f32 %f3, [%rd4];
    ld.param.u64 %rd5, [out]; add.u64 %rd5, %rd5, %rd1;
    {lines}
    st.global.f32 [%rd5], %f4;
    exit;
}}
"""


def run(text: str, *sources: np.ndarray) -> np.ndarray:
    out = np.zeros_like(sources[0])
    given = [*sources, *[sources[0]] * (3 - len(sources))]
    smemkern.Kernel(text, "k")(1, out.size, *given, out, device="emu")
    return out


@pytest.mark.parametrize("operation", OPERATIONS)
def test_sm_1x_flushes_subnormals(operation):
    seed = random.randrange(2**32)
    a, b = floats(seed), floats(seed + 1)
    line = f"{operation} %f4, %f1, %f2;"
    model = OPERATIONS[operation]
    with np.errstate(under="ignore"):
        expected = flushed(model(flushed(a), flushed(b)))
        kept = model(a, b)
    np.testing.assert_array_equal(run(module(line), a, b), expected, err_msg=f"seed {seed}")
    later = module(line, "2.0", "sm_20")
    np.testing.assert_array_equal(run(later, a, b), kept, err_msg=f"seed {seed}")


def test_mad_without_a_rounding_is_fused():
    """As ptxas compiles modules of sm_1x for later GPUs."""
    seed = random.randrange(2**32)
    rng = np.random.default_rng(seed)
    a, b = (rng.uniform(1, 2, 64).astype(np.float32) for _ in range(2))
    c = -(a * b)  # what remains is the rounding error of the product
    expected = (a.astype(np.float64) * b + c).astype(np.float32)
    got = run(module("mad.f32 %f4, %f1, %f2, %f3;"), a, b, c)
    np.testing.assert_array_equal(got, expected, err_msg=f"seed {seed}")
    assert expected.any()


def test_mad_without_a_rounding_needs_sm_1x():
    a = np.ones(32, np.float32)
    text = module("mad.f32 %f4, %f1, %f2, %f3;", "2.0", "sm_20")
    with pytest.raises(smemkern.UnsupportedInstructionError, match="mad.f32"):
        run(text, a)


@pytest.mark.parametrize(
    ("operation", "model"),
    [
        ("div.f32 %f4, %f1, %f2", lambda a, b: a / b),
        ("rcp.f32 %f4, %f1", lambda a, b: 1 / a),
        ("sqrt.f32 %f4, %f1", lambda a, b: np.sqrt(a)),
        ("rsqrt.f32 %f4, %f1", lambda a, b: 1 / np.sqrt(a)),
        ("sin.f32 %f4, %f1", lambda a, b: np.sin(a)),
        ("cos.f32 %f4, %f1", lambda a, b: np.cos(a)),
        ("lg2.f32 %f4, %f1", lambda a, b: np.log2(a)),
        ("ex2.f32 %f4, %f1", lambda a, b: np.exp2(a)),
    ],
)
def test_functions_were_approximate_before_1_4(operation, model):
    seed = random.randrange(2**32)
    rng = np.random.default_rng(seed)
    a, b = (rng.uniform(0.5, 3, 64).astype(np.float32) for _ in range(2))
    expected = model(a.astype(np.float64), b.astype(np.float64))
    got = run(module(operation + ";", "1.3"), a, b)
    np.testing.assert_allclose(got, expected, 1e-5, 1e-5, err_msg=f"seed {seed}")
    with pytest.raises(smemkern.UnsupportedInstructionError, match=operation.split(".")[0]):
        run(module(operation + ";", "1.4"), a, b)


def test_parameters_in_the_body():
    for n in range(1, 20):
        sum_up = "".join(f"ld.param.u32 %r2, [p{k}]; add.u32 %r1, %r1, %r2;\n" for k in range(n))
        declared = "".join(f".param .u32 p{k};\n" for k in range(n))
        text = f"""
            .version 1.3
            .target sm_10
            .entry k
            {{
                .reg .u32 %r<4>; .reg .u64 %rd<2>;
                .param .u64 out; {declared} mov.u32 %r1, 0;
                {sum_up} ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r1; exit;
            }}"""
        out, given = np.zeros(1, "u4"), [random.randrange(2**20) for _ in range(n)]
        smemkern.Kernel(text, "k")(1, 1, out, *given, device="emu")
        assert out[0] == sum(given), given


def test_prototypes_without_a_semicolon():
    prototype = ".visible .func (.param .f32 result) twice (.param .f32 x)\n"
    body = "{ .reg .f32 %f<3>; ld.param.f32 %f1, [x]; add.f32 %f2, %f1, %f1;"
    before = f"{prototype}\n{prototype}{body} st.param.f32 [result], %f2; ret; }}"
    call = "call.uni (%f4), twice, (%f1);"
    a = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(module(call, "2.1", "sm_20", before), a), 2 * a)


def test_later_prototypes_need_their_semicolon():
    text = module("mov.f32 %f4, %f1;", "3.0", "sm_20", ".visible .func f (.param .f32 x)")
    with pytest.raises(smemkern.KernelImageError, match="expected ';' or '{'"):
        smemkern.Kernel(text, "k")


def test_a_byte_order_mark_is_named():
    """As some editors of that time wrote it; ptxas refuses it, too."""
    text = "\ufeff" + module("mov.f32 %f4, %f1;").lstrip()
    with pytest.raises(smemkern.KernelImageError, match="line 1: .* byte order mark"):
        run(text, np.zeros(1, np.float32))


def test_a_texture_declared_with_tex():
    image = np.arange(32, dtype=np.float32)
    line = "cvt.s32.u16 %r2, %tid.x; tex.1d.v4.f32.s32 {%f4, %f5, %f6, %f7}, [image, {%r2}];"
    text = module(line, before=".tex .u64 image;")
    out = np.zeros_like(image)
    textures = {"image": smemkern.Texture(image)}
    smemkern.Kernel(text, "k")(1, 32, out, out, out, out, device="emu", textures=textures)
    np.testing.assert_array_equal(out, image)


def test_registers_and_local_variables_outside_of_functions():
    """Each thread has its own."""
    before = ".reg .f32 %g<3>;\n.local .align 4 .f32 kept[2];"
    lines = "mov.f32 %g2, %f1; st.local.f32 [kept+4], %g2; ld.local.f32 %f4, [kept+4];"
    a = floats(random.randrange(2**32))
    a = a[np.abs(a) >= SMALLEST_NORMAL]
    np.testing.assert_array_equal(run(module(lines, before=before), a), a)
    with pytest.raises(smemkern.KernelImageError, match="found '.reg'"):
        run(module(lines, "3.0", "sm_20", before), a)


def test_many_declarations_outside_of_functions():
    text = module("mov.f32 %f4, %f1;", before=".reg .u32 r;\n" * 65)
    with pytest.raises(smemkern.KernelImageError, match="more than 64 .reg and .local"):
        run(text, np.zeros(1, np.float32))
