"""Kernels in Triton's language on the subjects of its tutorials; writes the PTX of each.

python triton_kernels.py FOLDER      # an interpreter that has triton; no GPU is needed
"""

import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x, y, out, n, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@triton.jit
def softmax_rows(x, out, columns, SIZE: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, SIZE)
    value = tl.load(x + row * columns + at, at < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + at, power / tl.sum(power, 0), at < columns)


@triton.jit
def normalize_rows(x, out, weight, bias, columns, SIZE: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, SIZE)
    value = tl.load(x + row * columns + at, at < columns, other=0.0)
    centred = tl.where(at < columns, value - tl.sum(value, 0) / columns, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / columns + 1e-5)
    w, b = tl.load(weight + at, at < columns), tl.load(bias + at, at < columns)
    tl.store(out + row * columns + at, centred * scale * w + b, at < columns)


@triton.jit
def matrix_product(a, b, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for begin in range(0, k, BK):
        inner = begin + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * k + inner[None, :])
        right = tl.load(b + inner[:, None] * n + columns[None, :])
        total += tl.dot(left, right)
    tl.store(out + rows[:, None] * n + columns[None, :], total)


@triton.jit
def attention(q, k, v, out, scale, rows, SIZE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    row, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, SIZE)
    query = tl.load(q + row[:, None] * SIZE + inner[None, :])
    top, total = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, SIZE), tl.float32)
    for begin in range(0, rows, BN):
        column = begin + tl.arange(0, BN)
        key = tl.load(k + column[None, :] * SIZE + inner[:, None])
        score = tl.dot(query, key) * scale
        larger = tl.maximum(top, tl.max(score, 1))
        power, shrink = tl.exp(score - larger[:, None]), tl.exp(top - larger)
        value = tl.load(v + column[:, None] * SIZE + inner[None, :])
        result = result * shrink[:, None] + tl.dot(power.to(tl.float16), value)
        total, top = total * shrink + tl.sum(power, 1), larger
    tl.store(out + row[:, None] * SIZE + inner[None, :], result / total[:, None])


@triton.jit
def running_sum(x, out, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.cumsum(tl.load(x + at), 0))


@triton.jit
def sort_rows(x, out, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def count_values(x, out, SIZE: tl.constexpr, BINS: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * SIZE + tl.arange(0, SIZE))
    tl.atomic_add(out + tl.arange(0, BINS), tl.histogram(value, BINS))


KERNELS = {
    vector_add: ({"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"SIZE": 1024}),
    softmax_rows: ({"x": "*fp32", "out": "*fp32", "columns": "i32"}, {"SIZE": 1024}),
    normalize_rows: (
        {"x": "*fp32", "out": "*fp32", "weight": "*fp32", "bias": "*fp32", "columns": "i32"},
        {"SIZE": 1024},
    ),
    matrix_product: (
        {"a": "*fp16", "b": "*fp16", "out": "*fp32", "m": "i32", "n": "i32", "k": "i32"},
        {"BM": 64, "BN": 64, "BK": 32},
    ),
    attention: (
        {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp32", "scale": "fp32", "rows": "i32"},
        {"SIZE": 64, "BM": 64, "BN": 32},
    ),
    running_sum: ({"x": "*fp32", "out": "*fp32"}, {"SIZE": 512}),
    sort_rows: ({"x": "*i32", "out": "*i32"}, {"SIZE": 256}),
    count_values: ({"x": "*i32", "out": "*i32"}, {"SIZE": 1024, "BINS": 64}),
}


def main() -> None:
    out = Path(sys.argv[1])
    for kernel, (types, constants) in KERNELS.items():
        source = ASTSource(kernel, {**types, **dict.fromkeys(constants, "constexpr")}, constants)
        made = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 4})
        (out / f"{kernel.__name__}.ptx").write_text(made.asm["ptx"])
    print(f"triton {triton.__version__}")


if __name__ == "__main__":
    main()
