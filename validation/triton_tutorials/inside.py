"""One of Triton's tutorials under `smemkern run`: its own checks, and its functions against NumPy.

    python -m smemkern run python validation/triton_tutorials/inside.py FILE ANSWER

The tutorial runs as it is, with the first of its autotuned configurations, and without benchmarks.
Where it only runs below `__main__`, or at sizes for a GPU, its own checks are called with smaller
ones. Then its functions get inputs that NumPy drew. ANSWER is a file for the comparisons: JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton

SEED = 271128
HALF = 2.0**-10  # relative error of one rounding to float16
Names = dict[str, Any]
# What is compared, Triton's result, NumPy's, and the error that is allowed.
Comparison = tuple[str, Any, np.ndarray, float]
rng = np.random.default_rng(SEED)


def cuda(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array).to("cuda")


def normal(*shape: int, dtype: Any = np.float32, scale: float = 1) -> np.ndarray:
    return (scale * rng.standard_normal(shape)).astype(dtype)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


# ---- the tutorials ----


def vector_add(names: Names) -> Iterator[Comparison]:
    x, y = normal(5003), normal(5003)
    yield "add", names["add"](cuda(x), cuda(y)), x + y, 0


def fused_softmax(names: Names) -> Iterator[Comparison]:
    x = normal(129, 300)
    exponentials = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    yield "softmax", names["softmax"](cuda(x)), exponentials / exponentials.sum(1)[:, None], 1e-6


def matrix_multiplication(names: Names) -> Iterator[Comparison]:
    a, b = normal(200, 300, dtype=np.float16), normal(300, 136, dtype=np.float16)
    exact = product(a, b)
    limit = HALF * np.abs(exact).max()
    yield "matmul", names["matmul"](cuda(a), cuda(b)), exact, limit
    leaky = np.where(exact >= 0, exact, 0.01 * exact)
    yield "leaky_relu", names["matmul"](cuda(a), cuda(b), "leaky_relu"), leaky, limit


def low_memory_dropout(names: Names) -> Iterator[Comparison]:
    x, keep = normal(1500), rng.integers(0, 2, 1500).astype(np.int32)
    scaled = x / np.float32(0.5)
    yield "dropout", names["dropout"](cuda(x), cuda(keep), 0.5), scaled * keep, 0
    first, second, other = (names["seeded_dropout"](cuda(x), 0.5, seed) for seed in (7, 7, 8))
    mask = (first != 0).cpu().numpy()
    yield "seeded_dropout", first, scaled * mask, 0
    yield "the same seed", second, first.cpu().numpy(), 0
    yield "its share", torch.tensor(float(mask.mean())), np.array(0.5), 0.06
    differs = (first != other).any()
    yield "another seed", differs.to(torch.float32), np.array(1.0), 0


def layer_norm(names: Names) -> Iterator[Comparison]:
    x, weight, bias, dy = (normal(*shape) for shape in ((70, 500), (500,), (500,), (70, 500)))
    operands = [cuda(one).requires_grad_() for one in (x, weight, bias)]
    y = names["layer_norm"](operands[0], (500,), *operands[1:], 1e-5)
    y.backward(cuda(dy))
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    inverse = 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    normed = (x - x.mean(1, keepdims=True)) * inverse
    yield "forward", y, normed * weight + bias, 1e-5
    through = dy * weight
    mean = through.mean(1, keepdims=True)
    dx = inverse * (through - mean - normed * (through * normed).mean(1, keepdims=True))
    yield "gradient of x", operands[0].grad, dx, 1e-4
    yield "of the weights", operands[1].grad, (dy * normed).sum(0), 1e-4
    yield "of the bias", operands[2].grad, dy.sum(0), 1e-4


def fused_attention(names: Names) -> Iterator[Comparison]:
    for causal in (False, True):
        names["test_op"](1, 2, 128, 64, causal, False, "bwd", "triton-fp16")
        names["test_op"](1, 2, 128, 64, causal, False, "fwd", "triton-fp8")
        q, k, v, do = (normal(1, 2, 256, 64, dtype=np.float16, scale=0.5) for _ in range(4))
        operands = [cuda(one).requires_grad_() for one in (q, k, v)]
        out = names["attention"](*operands, causal, 0.5, False)
        out.backward(cuda(do))
        scores = 0.5 * product(q, k.swapaxes(2, 3))
        if causal:
            scores[..., np.triu(np.ones((256, 256), bool), 1)] = -np.inf
        p = np.exp(scores - scores.max(3, keepdims=True))
        p /= p.sum(3, keepdims=True)
        dp = product(do, v.swapaxes(2, 3))
        ds = 0.5 * p * (dp - (dp * p).sum(3, keepdims=True))
        exact = (product(ds, k), product(ds.swapaxes(2, 3), q), product(p.swapaxes(2, 3), do))
        yield f"forward, {causal=}", out, product(p, v), 1e-2
        for name, operand, gradient in zip("qkv", operands, exact, strict=True):
            yield f"gradient of {name}, {causal=}", operand.grad, gradient, 1e-2
    # The loads in other warps than the products.
    out = names["attention"](*(cuda(one) for one in (q, k, v)), False, 0.5, True)
    scores = 0.5 * product(q, k.swapaxes(2, 3))
    p = np.exp(scores - scores.max(3, keepdims=True))
    yield "specialised warps", out, product(p / p.sum(3, keepdims=True), v), 1e-2


def extern_functions(names: Names) -> Iterator[Comparison]:
    exact = np.arcsin(names["x"].cpu().numpy().astype(np.float64))
    yield "asin", names["output_triton"], exact, 1e-6


def grouped_gemm(names: Names) -> Iterator[Comparison]:
    shapes = ((128, 256, 192), (256, 128, 64), (384, 128, 320))  # whole tiles, as it assumes
    a = [normal(m, k, dtype=np.float16) for m, _, k in shapes]
    b = [normal(k, n, dtype=np.float16) for _, n, k in shapes]
    of_a, of_b = [cuda(one) for one in a], [cuda(one) for one in b]
    transposed = [one.T.contiguous() for one in of_b]
    found = names["group_gemm_fn"](of_a, of_b)
    by_tma = names["group_gemm_tma_fn"](of_a, transposed) if names["supports_tma"]() else found
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        exact = product(x, y)
        limit = HALF * np.abs(exact).max()
        yield f"product {k}", found[k], exact, limit
        yield f"product {k} by TMA", by_tma[k], exact, limit


def persistent_matmul(names: Names) -> Iterator[Comparison]:
    # cuBLAS is machine code.
    names["validate"].__globals__["device_blas"] = None
    for dtype in (torch.float16, torch.float8_e4m3fn):
        for shape in ((32, 32, 32), (512, 256, 192)):
            names["validate"](*shape, dtype)
    a, b = normal(300, 192, dtype=np.float16), normal(192, 264, dtype=np.float16)
    exact = product(a, b)
    limit = HALF * np.abs(exact).max()
    x, y, z = cuda(a), cuda(b), cuda(np.ascontiguousarray(b.T))
    yield "matmul", names["matmul"](x, y), exact, limit
    yield "matmul_persistent", names["matmul_persistent"](x, y), exact, limit
    if names["HAS_HOST_TENSOR_DESC"]:
        for name in ("matmul_tma", "matmul_tma_persistent"):
            yield name, names[name](x, z, False), exact, limit
    for special in (False, True) if names["HAS_WARP_SPECIALIZE"] else ():
        name = "matmul_descriptor_persistent"
        yield f"{name}, {special=}", names[name](x, z, special), exact, limit


def programmatic_launch(names: Names) -> Iterator[Comparison]:
    x, y = normal(5003), normal(5003)
    for overlaps in (False, True):
        yield f"add, {overlaps=}", names["add"](cuda(x), cuda(y), overlaps), x + y, 0


# The function that checks a tutorial, and whether its code below `__main__` runs.
TUTORIALS: dict[str, tuple[Callable[[Names], Iterator[Comparison]], bool]] = {
    "01-vector-add": (vector_add, True),
    "02-fused-softmax": (fused_softmax, True),
    "03-matrix-multiplication": (matrix_multiplication, True),
    "04-low-memory-dropout": (low_memory_dropout, True),
    "05-layer-norm": (layer_norm, True),
    "06-fused-attention": (fused_attention, False),
    "07-extern-functions": (extern_functions, True),
    "08-grouped-gemm": (grouped_gemm, True),
    "09-persistent-matmul": (persistent_matmul, False),
    "11-programmatic-dependent-launch": (programmatic_launch, True),
}


# ---- running ----


def patch() -> None:
    """No benchmarks, and no search among configurations: their times would be the emulator's."""
    autotune = triton.autotune
    triton.testing.Mark.run = lambda *_, **__: None
    triton.autotune = lambda configs, *args, **kw: autotune(configs[:1], *args, **kw)
    os.environ["PYTEST_VERSION"] = "0"  # 06 has one configuration for its tests


def compared(comparison: Comparison) -> dict[str, object]:
    what, found, exact, allowed = comparison
    values = found.detach().cpu().to(torch.float64).numpy()
    assert values.shape == exact.shape, (what, values.shape, exact.shape)
    error = float(np.abs(values - exact).max())
    row = {"what": what, "error": error, "allowed": float(allowed)}
    return row | {"right": bool(error <= allowed)}


def main() -> None:
    file, answer = sys.argv[1:]
    check, is_script = TUTORIALS[Path(file).stem]
    patch()
    sys.argv = [file]
    printed = io.StringIO()
    torch.manual_seed(0)
    with contextlib.redirect_stdout(printed):
        names = runpy.run_path(file, run_name="__main__" if is_script else "tutorial")
        rows = [compared(one) for one in check(names)]
    print(printed.getvalue())
    assert "❌" not in printed.getvalue(), "one of the tutorial's own checks fails"
    Path(answer).write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
