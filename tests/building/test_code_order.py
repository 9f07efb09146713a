"""Where ptxas puts the code of kernels whose warps have different work."""

import re
from pathlib import Path

import pytest

import smemkern
from smemkern._compiler import cuda_tools

IMAGES = Path(smemkern._core.config()["images"])
NEAR = 8192  # bytes of machine code


@pytest.mark.parametrize(
    ("image", "entry"),
    [
        ("gemm_tf32x3-float32-stages4", "gemm_tf32x3"),
        ("gemm_tf32-float32-block_m128", "gemm_tf32_96"),
        ("gemm_bf16-bfloat16-block_m128", "gemm_bf16_thin"),
        ("gemm_ozaki2-float64-moduli14-stages4", "gemm_ozaki2"),
    ],
)
def test_the_first_copy_is_near_the_beginning(image, entry):
    """The code after it, of what multiplies, is up to 100 KB long, and each line that is fetched
    delays the first copy: MULTIPLIES in wgmma_ring.cuh."""
    try:
        cubin = cuda_tools.compiled(
            (IMAGES / f"{image}.ptx").read_text(),
            entry,
        ).cubin
        text = cuda_tools.disassembly(cubin)
    except cuda_tools.ToolError as error:
        pytest.skip(str(error))
    copies = re.findall(r"/\*([0-9a-f]+)\*/\s+UTMALDG", text)
    assert copies and int(copies[0], 16) < NEAR
