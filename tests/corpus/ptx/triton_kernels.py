"""Kernels in Triton, and how the .ptx files beside them were made: no GPU is needed.

    pip install triton && python triton_kernels.py

A kernel takes its arguments without the constants, then pointers to scratch memory, here null.
"""

from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def axpy(x, y, a, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    value = a * tl.load(x + i, inside) + tl.load(y + i, inside)
    tl.store(y + i, value, inside)


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, i < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * cols + i, e / tl.sum(e, 0), i < cols)


@triton.jit
def scan(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.cumsum(tl.load(x + i, i < n, other=0), 0), i < n)


@triton.jit
def transpose(x, y, rows, cols, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (r[:, None] < rows) & (c[None, :] < cols)
    tile = tl.load(x + r[:, None] * cols + c[None, :], inside)
    tl.store(y + c[:, None] * rows + r[None, :], tl.trans(tile), tl.trans(inside))


@triton.jit
def matmul(a, b, c, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k0 in range(0, K, BLOCK):
        k = k0 + tl.arange(0, BLOCK)
        left = tl.load(a + m[:, None] * K + k[None, :], (m[:, None] < M) & (k[None, :] < K), 0.0)
        right = tl.load(b + k[:, None] * N + n[None, :], (k[:, None] < K) & (n[None, :] < N), 0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + m[:, None] * N + n[None, :], total, (m[:, None] < M) & (n[None, :] < N))


KERNELS = [
    (axpy, {"x": "*fp32", "y": "*fp32", "a": "fp32", "n": "i32"}, 128),
    (softmax, {"x": "*fp32", "y": "*fp32", "cols": "i32"}, 128),
    (scan, {"x": "*i32", "y": "*i32", "n": "i32"}, 256),
    (transpose, {"x": "*fp16", "y": "*fp16", "rows": "i32", "cols": "i32"}, 32),
    (matmul, {**dict.fromkeys("abc", "*fp32"), **dict.fromkeys("MNK", "i32")}, 16),
]

if __name__ == "__main__":
    for kernel, types, block in KERNELS:
        source = ASTSource(kernel, {**types, "BLOCK": "constexpr"}, {"BLOCK": block})
        made = triton.compile(source, GPUTarget("cuda", 80, 32), {"num_warps": 4})
        text, here = made.asm["ptx"], Path(__file__)
        for folder in (here.parent, Path(triton.__file__).parent.parent):
            text = text.replace(f"{folder}/", "")
        text = f"// {made.metadata.shared} bytes of dynamic shared memory\n{text}"
        here.with_name(f"triton_{kernel.__name__}.ptx").write_text(text)
