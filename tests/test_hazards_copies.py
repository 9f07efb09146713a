"""Copies of shared memory that nobody has written: a finding comes where a value is used.

Global memory: tests/run/test_undefined_values.py. Random kernels: tests/test_undefined_random.py.
"""

import numpy as np
import pytest

import smemkern
from test_hazards import floats, line_of, traced

pytestmark = pytest.mark.usefixtures("nvrtc")

HEAD = """
struct padded { double d; int i; };
extern "C" __global__ void k(const float *x, float *y) {
    __shared__ padded s[64], other[64];
    __shared__ float4 four[64];
    __shared__ float tile[64];
    const int t = threadIdx.x;
    s[t].d = x[t];
    s[t].i = t;
    four[t].x = four[t].y = four[t].z = x[t];
    if (t % 8) tile[t] = x[t];
    __syncthreads();
"""
COPIES = {
    "padding": "other[t] = s[63 - t]; __syncthreads(); y[t] = other[t].d + other[t].i;",
    "a lane": "const float4 v = four[t]; y[t] = v.x + v.y * v.z;",
    "not used": "const float v = tile[t]; if (x[t] < 0) tile[t] = v; y[t] = 1;",
    "overwritten": "y[t] = tile[t]; y[t] = 1;",
    "in a loop": """
        for (int k = t; k < 64; k += 16) other[k] = s[k];
        __syncthreads();
        y[t] = other[t].d;""",
    "conditional": """
        padded p = {0, 0};
        if (t < 40) p = s[t];
        other[t] = p;
        __syncthreads();
        y[t] = other[t].i;""",
}
USES = {
    "the result": ("y[t] = tile[t]; // here", 8),
    "copied twice": ("""
        other[t].d = 0;
        other[t].i = 0;
        __syncthreads();
        ((float *)other)[t] = tile[t];
        __syncthreads();
        y[t] = ((float *)other)[t] * 2; // here""", 8),
    "arithmetic": ("y[t] = tile[t] + 1; // here", 8),
    "a branch": ("y[t] = 0; if (tile[t] > 0) y[t] = 1; // here", 8),
    "an address": ("y[((int *)tile)[t] & 63] = 0; // here", 8),
    "a shuffle": ("y[t] = __shfl_xor_sync(~0u, tile[t], 1); // here", 8),
    "some lanes": ("float v = tile[t]; // here\n if (x[t] > 9) v += 1; y[t] = v;", 8),
    "a lane of four": ("y[t] = four[t].w + 1; // here", 64),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_no_finding(name):
    trace = traced(HEAD + COPIES[name] + "\n}", floats(64), np.zeros(64, "f4"), grid=2)
    assert trace.hazards == ()


@pytest.mark.parametrize("name", USES)
def test_a_use_is_a_finding_at_the_load(name):
    body, count = USES[name]
    source = HEAD + body + "\n}"
    trace = traced(source, floats(64), np.zeros(64, "f4"))
    found = {(h.kind, h.line, h.count) for h in trace.hazards}
    if name == "an address":  # threads write one element, which is another finding
        found = {f for f in found if f[0] == "uninitialised"}
    assert found == {("uninitialised", line_of(source, "here"), count)}


def test_a_use_names_the_load_of_the_original():
    source = (
        HEAD
        + """
    four[t].w = tile[t]; // copied
    __syncthreads();
    y[t] = four[63 - t].w + 1; // used
}"""
    )
    [hazard] = traced(source, floats(64), np.zeros(64, "f4")).hazards
    assert (hazard.line, hazard.other_line) == (line_of(source, "used"), line_of(source, "copied"))
    assert "which holds a copy of what" in hazard.message and "had written" in hazard.message
    assert hazard.count == 8


def test_a_race_that_leaves_a_copy_undefined_is_the_finding():
    for used in ("", " + 1"):
        source = f"""
extern "C" __global__ void k(float *x, float *y) {{
    __shared__ float tile[64], other[64];
    int t = threadIdx.x;
    other[t] = tile[63 - t];
    tile[t] = x[t];
    __syncthreads();
    y[t] = other[t]{used};
}}"""
        trace = traced(source, floats(64), np.zeros(64, "f4"))
        assert [h.kind for h in trace.hazards] == ["WAR"]


PTX = """
.version 7.8
.target sm_80
.address_size 64
.shared .align 16 .b8 s[1024];
.visible .entry k(.param .u64 y)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    setp.lt.u32 %p1, %r1, 8;
    {body}
    ret;
}}
"""
LANES = {
    # what lanes that do not run the load or the mov had before stays
    "mov.u32 %r2, 1; @%p1 ld.shared.u32 %r2, [s]; st.global.u32 [%rd1], %r2;": 8,
    "ld.shared.u32 %r2, [s]; @%p1 mov.u32 %r2, 1; st.global.u32 [%rd1], %r2;": 24,
    "ld.shared.u32 %r2, [s]; mov.u32 %r3, 1; @%p1 mov.u32 %r3, %r2; st.global.u32 [%rd1], %r3;": 8,
    "ld.shared.u32 %r2, [s]; @%p1 st.global.u32 [%rd1], %r2;": 8,
    # halves of a packed value
    "ld.shared.u32 %r2, [s]; mov.u32 %r3, 1; mov.b64 %rd3, {%r3, %r2}; mov.b64 {%r4, %r5}, %rd3; "
    "st.global.u32 [%rd1], %r4;": 0,
    "ld.shared.u32 %r2, [s]; mov.u32 %r3, 1; mov.b64 %rd3, {%r2, %r3}; mov.b64 {%r4, %r5}, %rd3; "
    "st.global.u32 [%rd1], %r4;": 32,
    # a narrow load extends zeros, or the sign
    "ld.shared.u8 %r2, [s]; st.shared.u32 [s+8], %r2; ld.shared.u8 %r3, [s+9]; "
    "add.u32 %r3, %r3, 1; st.global.u32 [%rd1], %r3;": 0,
    "ld.shared.s8 %r2, [s]; st.shared.u32 [s+8], %r2; ld.shared.u8 %r3, [s+9]; "
    "add.u32 %r3, %r3, 1; st.global.u32 [%rd1], %r3;": 32,
    # a store of the byte that is defined
    "st.shared.u8 [s], 1; ld.shared.u32 %r2, [s]; st.global.u8 [%rd1], %r2;": 0,
}  # fmt: skip


@pytest.mark.parametrize("body", LANES)
def test_lanes_and_bytes(body):
    kernel = smemkern.Kernel(PTX.format(body=body), "k")
    trace = smemkern.trace(kernel, 1, 32, np.zeros(32, "u4"))
    found = [h for h in trace.hazards if h.kind == "uninitialised"]
    assert sum(h.count for h in found) == LANES[body], trace.hazards


ASYNC = """
.version 8.1
.target sm_90
.address_size 64
.shared .align 8 .b64 bar;
.shared .align 16 .b8 s[64];
.visible .entry k(.param .u64 y)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    mov.u32 %r1, bar;
    mov.u32 %r2, s;
    mbarrier.init.shared::cta.b64 [%r1], 1;
    mapa.shared::cluster.u32 %r3, %r1, 0;
    mapa.shared::cluster.u32 %r4, %r2, 0;
    mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%r1], 4;
    ld.shared.u32 %r5, [s];
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4+16], %r5, [%r3];
again:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
    @!%p1 bra again;
    ret;
}
"""


def test_a_store_that_happens_later_is_a_use():
    trace = smemkern.trace(smemkern.Kernel(ASYNC, "k"), 1, 1, np.zeros(1, "u4"))
    line = next(n for n, text in enumerate(ASYNC.splitlines(), 1) if "ld.shared" in text)
    assert ("uninitialised", line) in {(h.kind, h.line) for h in trace.hazards}


def test_long_chains_of_mov():
    """In the order of the text, and against it: which takes the analysis too many rounds."""
    n = 500
    chain = [f"mov.u32 %c{k + 1}, %c{k};" for k in range(n)]
    for lines, uses in ((chain, 32), (chain[::-1], None)):
        body = f".reg .b32 %c<{n + 1}>; ld.shared.u32 %c0, [s]; "
        body += " ".join(lines) + f" st.global.u32 [%rd1], %c{n};"
        kernel = smemkern.Kernel(PTX.format(body=body), "k")
        trace = smemkern.trace(kernel, 1, 32, np.zeros(32, "u4"))
        count = sum(h.count for h in trace.hazards)
        assert count == uses if uses else count <= 1
