"""Where ptxas puts the code of kernels whose warps have different work."""

import re

import pytest

from checks import IMAGES
from smemkern._compiler import cuda_tools

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
        made = cuda_tools.compiled((IMAGES / f"{image}.ptx").read_text(), entry)
        text = cuda_tools.disassembly(made.cubin)
    except cuda_tools.ToolError as error:
        pytest.skip(str(error))
    copies = re.findall(r"/\*([0-9a-f]+)\*/\s+UTMALDG", text)
    assert copies and int(copies[0], 16) < NEAR
