"""Triton kernels for test_triton.py, in a file of their own: Triton reads their source."""

import triton
import triton.language as tl


@triton.jit
def axpy(a, x, y, out, n, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    tl.store(out + at, a * tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def unmasked(x, out, n, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at) + 1, at < n)  # the load has no mask


@triton.jit
def row_sums(x, out, row_stride, col_stride, n, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    row = tl.load(x + tl.program_id(0) * row_stride + at * col_stride, at < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(row))


@triton.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + i[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * N + j[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot(left, right))


@triton.jit
def optional(x, bias, out, scales, add_one, half: tl.float16, brain: tl.bfloat16, n: tl.constexpr):
    at = tl.arange(0, n)
    value = tl.load(x + at) * scales[0] + scales[1]
    if bias is not None:
        value += tl.load(bias + at)
    if add_one:
        value += 1
    tl.store(out + at, value + half.to(tl.float32) + brain.to(tl.float32))


@triton.jit
def doubled_tiles(x, out, M: tl.constexpr, N: tl.constexpr):
    at = [tl.program_id(0) * M, tl.program_id(1) * N]
    tile = x.load(at)
    out.store(at, tile + tile)


CONFIGS = [triton.Config({"SIZE": 64}, num_warps=2), triton.Config({"SIZE": 512}, num_warps=8)]
heuristic = triton.heuristics({"SIZE": lambda args: triton.next_power_of_2(args["n"])})(axpy)
try:
    tuned = triton.autotune(CONFIGS, key=["n"], reset_to_zero=["out"])(axpy)
except RuntimeError:  # Triton before 3.4 asks the driver where the kernel is defined
    tuned = None
