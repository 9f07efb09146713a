"""Sectors of tex1Dfetch, beside Nsight Compute's counts of the same warp on an H200.

texture_counts_h200.json: the float32 texel that each lane fetches (-1: the lane is inactive), and
l1tex__t_{sectors,requests}_pipe_tex_mem_texture.sum.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import smemkern

RECORD = Path(__file__).parent / "texture_counts_h200.json"
CASES = json.loads(RECORD.read_text())["cases"]
N = 16384

PTX = """
.version 8.4
.target sm_90a
.address_size 64
.visible .entry fetch(.param .u64 texture, .param .u64 texels, .param .u64 out)
{
    .reg .b64 %t, %p, %q; .reg .b32 %i, %x, %d<4>; .reg .pred %off;
    ld.param.u64 %t, [texture]; ld.param.u64 %p, [texels]; ld.param.u64 %q, [out];
    mov.u32 %i, %tid.x;
    mad.wide.u32 %p, %i, 4, %p; mad.wide.u32 %q, %i, 4, %q;
    ld.global.s32 %x, [%p];
    setp.eq.s32 %off, %x, -1;
    @%off bra END;
    tex.1d.v4.u32.s32 {%x, %d1, %d2, %d3}, [%t, %x];
    st.global.b32 [%q], %x;
END:
    ret;
}
"""


def trace(texels: list[int], dtype: str = "f4") -> tuple[smemkern.Trace, np.ndarray]:
    out = np.zeros(32, np.uint32)
    texture = smemkern.Texture(np.arange(N).astype(dtype))
    arguments = (texture, np.array(texels, np.int32), out)
    kernel = smemkern.Kernel(PTX, "fetch")
    return smemkern.trace(kernel, 1, 32, *arguments, hazards=True), out


@pytest.mark.parametrize("name", CASES)
def test_sectors_of_linear_memory(name):
    case = CASES[name]
    found, out = trace(case["texels"])
    [row] = [row for row in found.global_ if row.op == "texture"]
    assert (row.requests, row.sectors, row.width) == (1, case["sectors"], 4)
    texels = np.array(case["texels"])
    groups = (texels >= 0).reshape(4, 8).any(axis=1)
    assert groups.sum() == case["requests"]
    assert (out.view("f4")[texels >= 0] == texels[texels >= 0]).all()
    assert not found.hazards


def test_texels_outside_are_no_access():
    found, _ = trace([-2] * 16 + [N - 1] + [N] * 15)
    [row] = [row for row in found.global_ if row.op == "texture"]
    assert (row.sectors, row.bytes) == (1, 4)
    nothing, _ = trace([N] * 32)
    assert not [row for row in nothing.global_ if row.op == "texture"]
