"""llm.c, dev/cuda: what the functions ..._cpu of its files compute, in float64."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from suites.reference import Array, Launch, Name, case

SUITE = "llm.c"
B, T, C, NH = 2, 32, 128, 4
HS = C // NH
N = B * T
EPS = 1e-5
Rng = np.random.Generator


def _floats(rng: Rng, *shape: int) -> Array:
    """Values that bfloat16 has too: many kernels are declared with it."""
    return rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)


def _element(name: Name) -> Any:
    """The type floatX of the file."""
    return ml_dtypes.bfloat16 if "bfloat16" in name.text else np.float32


def _up(n: int, by: int) -> int:
    return -(-n // by)


# ---- one input element per output element


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _gelu_slope(x: Array) -> Array:
    scale = math.sqrt(2 / math.pi)
    tanh = np.tanh(scale * (x + 0.044715 * x**3))
    return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2) * scale * (1 + 3 * 0.044715 * x**2)


def _per_thread(name: Name) -> int:
    """Elements per thread: kernels that load 16 bytes have the number 2 or 3."""
    return 4 if name.kernel[-1] in "23" else 1


@case(SUITE, "gelu_forward", "gelu_forward_kernel[12]")
def gelu(name: Name, rng: Rng) -> Launch:
    x = _floats(rng, N * C)
    grid = _up(N * C, 128 * _per_thread(name))
    return Launch(grid, 128, [np.zeros_like(x), x, x.size], {0: _gelu(x.astype(float))})


@case(SUITE, "gelu_backward", "gelu_backward[12]")
def gelu_backward(name: Name, rng: Rng) -> Launch:
    x, dout = _floats(rng, N * C), _floats(rng, N * C)
    expected = _gelu_slope(x.astype(float)) * dout
    grid = _up(N * C, 128 * _per_thread(name))
    return Launch(grid, 128, [np.zeros_like(x), x, dout, x.size], {0: expected}, 1e-4, 1e-5)


@case(SUITE, "residual_forward", "residual_forward_kernel[12]")
def residual(name: Name, rng: Rng) -> Launch:
    x, y = _floats(rng, N * C), _floats(rng, N * C)
    grid = _up(N * C, 128 * _per_thread(name))
    return Launch(grid, 128, [np.zeros_like(x), x, y, x.size], {0: x + y}, 0, 0)


@case(SUITE, "adamw", "adamw_kernel[12]")
def adamw(name: Name, rng: Rng) -> Launch:
    count, rate, beta1, beta2, eps, decay = 1000, 1e-3, 0.9, 0.999, 1e-8, 0.01
    one, two = 1 - beta1**5, 1 - beta2**5
    p, g, m = (_floats(rng, count) for _ in range(3))
    v = rng.random(count, np.float32)
    new_m = beta1 * m + (1 - beta1) * g.astype(float)
    new_v = beta2 * v + (1 - beta2) * g.astype(float) ** 2
    new_p = p - rate * (new_m / one / (np.sqrt(new_v / two) + eps) + decay * p)
    args = [p, g, m, v, count, rate, beta1, beta2, one, two, eps, decay]
    return Launch(_up(count, 128), 128, args, {0: new_p, 2: new_m, 3: new_v}, 1e-5, 1e-5)


@case(SUITE, "/permute", "permute_kernel")
def permute(name: Name, rng: Rng) -> Launch:
    shape = (5, 6, 7, 8)
    x = _floats(rng, *shape)
    expected = x.transpose(3, 2, 0, 1)
    grid = _up(x.size, 256)
    return Launch(grid, 256, [x, np.zeros(x.size, np.float32), *shape], {1: expected}, 0, 0)


# ---- embeddings and losses


@case(SUITE, "encoder_forward", "encoder_forward_kernel[123]")
def encoder(name: Name, rng: Rng) -> Launch:
    vocabulary = 50
    at = rng.integers(0, vocabulary, (B, T)).astype(np.int32)
    wte, wpe = _floats(rng, vocabulary, C), _floats(rng, T, C)
    threads = {"1": N, "2": N * C, "3": N * C // 4}[name.kernel[-1]]
    args = [np.zeros((B, T, C), np.float32), at, wte, wpe, B, T, C]
    return Launch(_up(threads, 128), 128, args, {0: wte[at] + wpe}, 0, 0)


@case(SUITE, "encoder_backward", "encoder_backward_kernel[12]")
def encoder_backward(name: Name, rng: Rng) -> Launch:
    vocabulary = 50
    at = rng.integers(0, vocabulary, (B, T)).astype(np.int32)
    dout = _floats(rng, B, T, C)
    dwte = np.zeros((vocabulary, C))
    np.add.at(dwte, at.ravel(), dout.reshape(-1, C).astype(float))
    threads = N * C if name.kernel.endswith("1") else C
    args = [np.zeros((vocabulary, C), np.float32), np.zeros((T, C), np.float32), dout, at, B, T, C]
    return Launch(_up(threads, 128), 128, args, {0: dwte, 1: dout.sum(0)}, 1e-4, 1e-5)


def _probabilities(logits: Array) -> Array:
    powers = np.exp(logits.astype(float) - logits.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


@case(SUITE, "crossentropy_forward", "crossentropy_forward_kernel1")
def crossentropy(name: Name, rng: Rng) -> Launch:
    v = 99
    p = _probabilities(_floats(rng, N, v)).astype(np.float32)
    at = rng.integers(0, v, N).astype(np.int32)
    expected = -np.log(p[np.arange(N), at].astype(float))
    args = [np.zeros(N, np.float32), p, at, B, T, v]
    return Launch(_up(N, 128), 128, args, {0: expected})


@case(SUITE, "crossentropy_softmax_backward", "crossentropy_softmax_backward_kernel1")
def crossentropy_backward(name: Name, rng: Rng) -> Launch:
    v = 99
    p = _probabilities(_floats(rng, N, v)).astype(np.float32)
    at = rng.integers(0, v, N).astype(np.int32)
    dlosses = _floats(rng, N)
    expected = (p - np.eye(v)[at]) * dlosses[:, None]
    args = [np.zeros((N, v), np.float32), dlosses, p, at, B, T, v]
    return Launch(_up(N * v, 128), 128, args, {0: expected})


@case(SUITE, "classifier_fused", "fused_classifier_kernel[12345]")
def classifier(name: Name, rng: Rng) -> Launch:
    """Only the first V columns of a row of P are specified."""
    v, padded = 99, 112
    logits, dlosses = _floats(rng, N, padded), _floats(rng, N)
    at = rng.integers(0, v, N).astype(np.int32)
    p = _probabilities(logits[:, :v])
    dlogits = np.full((N, padded), np.nan)
    dlogits[:, :v] = (p - np.eye(v)[at]) * dlosses[:, None]
    losses = -np.log(p[np.arange(N), at])
    args = [np.zeros((N, padded), np.float32), np.zeros(N, np.float32), None, logits, dlosses, at]
    grid = N
    if name.kernel.endswith("1"):
        del args[2]
        grid = N // (128 // 32)
    return Launch(grid, 128, [*args, B, T, v, padded], {0: dlogits, 1: losses}, 1e-4, 1e-5)


# ---- norms


def _normalized(x: Array) -> tuple[Array, Array, Array]:
    mean = x.astype(float).mean(-1)
    rstd = 1 / np.sqrt(x.astype(float).var(-1) + EPS)
    return (x - mean[:, None]) * rstd[:, None], mean, rstd


def _rows_of_warps(block: int) -> int:
    return _up(N * 32, block)


@case(SUITE, "layernorm_forward|fused_residual", "layernorm_forward_kernel[13456]")
def layernorm(name: Name, rng: Rng) -> Launch:
    x, weight, bias = _floats(rng, N, C) + 0.5, _floats(rng, C), _floats(rng, C)
    norm, mean, rstd = _normalized(x)
    out, m, r = np.zeros_like(x), *(np.zeros(N, np.float32) for _ in range(2))
    grid, block, shared = {
        "1": (_up(N, 32), 32, 0),
        "3": (_rows_of_warps(64), 64, 0),
        "4": (_rows_of_warps(64), 64, 0),
        "5": (N, 128, 0),
        "6": (_up(N, 4), (32, 4), (2 + 4) * C * 4),
    }[name.kernel[-1]]
    expected = {0: norm * weight + bias, 1: mean, 2: rstd}
    args = [out, m, r, x, weight, bias, N, C]
    return Launch(grid, block, args, expected, 1e-4, 1e-5, shared)


@case(SUITE, "layernorm_forward", "mean_kernel", "rstd_kernel", "normalization_kernel")
def layernorm_steps(name: Name, rng: Rng) -> Launch:
    x, weight, bias = _floats(rng, N, C) + 0.5, _floats(rng, C), _floats(rng, C)
    norm, mean, rstd = _normalized(x)
    m, r = mean.astype(np.float32), rstd.astype(np.float32)
    empty = np.zeros(N, np.float32)
    if name.kernel == "mean_kernel":
        return Launch(N, 64, [empty, x, N, C, 64], {0: mean}, shared_bytes=256)
    if name.kernel == "rstd_kernel":
        return Launch(N, 64, [empty, x, m, N, C, 64], {0: rstd}, shared_bytes=256)
    args = [np.zeros_like(x), x, m, r, weight, bias, B, T, C]
    return Launch(N * C // 256, 256, args, {0: norm * weight + bias}, 1e-4, 1e-5)


@case(SUITE, "fused_residual", "fused_residual_forward(2|3|_kernel[456])")
def fused_residual(name: Name, rng: Rng) -> Launch:
    x, y, weight, bias = (_floats(rng, *shape) for shape in ((N, C), (N, C), (C,), (C,)))
    norm, mean, rstd = _normalized(x + y)
    out, normed = np.zeros_like(x), np.zeros_like(x)
    m, r = np.zeros(N, np.float32), np.zeros(N, np.float32)
    grid, block, shared = {
        "2": (_up(N, 32), 32, 0),
        "3": (_up(N, 4), (32, 4), 0),
        "4": (_up(N, 4), (32, 4), 0),
        "5": (_up(N, 4), (32, 4), (2 + 4) * C * 4),
        "6": (2, (32, 1, 4), (2 + 4) * C * 4 + 64 * 4 * 4),
    }[name.kernel[-1]]
    expected = {0: x + y, 1: norm * weight + bias, 2: mean, 3: rstd}
    args = [out, normed, m, r, x, y, weight, bias, N, C]
    return Launch(grid, block, args, expected, 1e-4, 1e-5, shared)


@case(SUITE, "layernorm_backward", "layernorm_backward_kernel(10|[1-9])")
def layernorm_backward(name: Name, rng: Rng) -> Launch:
    c, block = 256, 128  # kernels 9 and 10 want 8 elements per lane of a warp
    x, dout, weight = _floats(rng, N, c) + 0.5, _floats(rng, N, c), _floats(rng, c)
    mean, rstd = (y.astype(ml_dtypes.bfloat16).astype(np.float32) for y in _normalized(x)[1:])
    norm = (x.astype(float) - mean[:, None]) * rstd[:, None]
    slope = weight * dout.astype(float)
    inner = slope - slope.mean(-1, keepdims=True)
    inner -= norm * (slope * norm).mean(-1, keepdims=True)
    dinp, dweight = inner * rstd[:, None], (norm * dout).sum(0)
    number = int(name.kernel.removeprefix("layernorm_backward_kernel"))
    grid = {1: _up(N, block), 2: _up(32 * N, block)}.get(number, 3)
    zeros = [np.zeros_like(x), np.zeros(c, np.float32), np.zeros(c, np.float32)]
    scratch = [np.zeros(grid * 4 * c + 64, np.float32)] if number >= 5 else []
    shared = {1: 0, 9: (2 * c + 2 * block + 1) * 4, 10: (2 * c + 8 * (block - 32)) * 4}
    args = [*zeros, *scratch, dout, x, weight, mean, rstd, B, T, c]
    expected = {0: dinp, 1: dweight, 2: dout.sum(0)}
    if number == 2:  # the sums are in two arrays of their own
        args += [np.zeros(c, np.float32), np.zeros(c, np.float32)]
        expected = {0: dinp, len(args) - 2: dweight, len(args) - 1: dout.sum(0)}
    return Launch(grid, block, args, expected, 1e-3, 1e-4, shared.get(number, (2 * c + 1) * 4))


@case(SUITE, "layernorm_backward", "copy_to_dweight_dbias")
def copy_both(name: Name, rng: Rng) -> Launch:
    x, y = _floats(rng, C), _floats(rng, C)
    return Launch(1, 64, [C, np.zeros_like(x), np.zeros_like(x), x, y], {1: x, 2: y}, 0, 0)


@case(SUITE, "global_norm", "norm_kernel[1234]")
def squares(name: Name, rng: Rng) -> Launch:
    grid, block = 4, 128
    x = _floats(rng, 3000).astype(_element(name))
    parts = np.zeros(grid)
    np.add.at(parts, np.arange(x.size) // block % grid, x.astype(float) ** 2)
    expected = parts if name.kernel.endswith("4") else parts.sum(keepdims=True)
    return Launch(grid, block, [np.zeros(grid, np.float32), x, x.size], {0: expected}, 1e-5)


@case(SUITE, "global_norm", "global_norm_aggregate_kernel")
def squares_total(name: Name, rng: Rng) -> Launch:
    parts = _floats(rng, 500)
    total = parts.astype(float).sum(keepdims=True)
    return Launch(1, 1024, [parts, parts.size], {0: total}, 1e-4, 1e-4)


# ---- products


@case(SUITE, "matmul_forward", "matmul_forward_kernel[14]")
def matmul(name: Name, rng: Rng) -> Launch:
    rows, columns, k = 128, 128, 64
    x, weight, bias = _floats(rng, rows, k), _floats(rng, columns, k), _floats(rng, columns)
    expected = x.astype(float) @ weight.T + bias
    out = np.zeros((rows, columns), np.float32)
    if name.kernel.endswith("1"):
        args = [out, x, weight, bias, rows, k, columns]
        return Launch((rows // 16, columns // 16), (16, 16), args, {0: expected}, 1e-5, 1e-5)
    args = [out, x, weight, bias, k, columns]
    return Launch((rows // 128, columns // 128), (16, 16), args, {0: expected}, 1e-5, 1e-5)


@case(SUITE, "matmul_forward", "add_bias")
def add_bias(name: Name, rng: Rng) -> Launch:
    out, bias = _floats(rng, N, C), _floats(rng, C)
    return Launch(4, 256, [out, bias, B, T, C], {0: out + bias}, 0, 0)


@case(SUITE, "matmul_backward", "matmul_backward_bias_kernel(_naive|_faster|[1-9])")
def bias_gradient(name: Name, rng: Rng) -> Launch:
    kind = name.kernel.removeprefix("matmul_backward_bias_kernel")
    columns, block = 256, 256
    dout = _floats(rng, N, columns)
    expected = dout.astype(float).sum(0)
    args: list[Any] = [np.zeros(columns, np.float32), dout, B, T, columns]
    grid: Any = columns
    shape: Any = block
    shared = 0
    if kind == "_naive":
        grid = 1
    elif kind in ("_faster", "1"):
        shared = 4 * block
    elif kind == "2":
        grid = columns * 32 // block
    elif kind == "4":
        grid, shared = columns // 32, 4 * block
    elif kind == "5":
        grid = (1, 2)
    elif kind == "7":
        grid, shape, shared = (1, 2), (32, block // 32), columns * 4
        args.append(block)
    elif kind in "89":
        grid, shape = (
            (columns // 64, 2 if kind == "8" and name.template[-1] == "true" else 1),
            (4, 8, 8),
        )
        args.append(bytes(1))
    return Launch(grid, shape, args, {0: expected}, 1e-4, 1e-4, shared)


@case(SUITE, "matmul_backward_bias", "cast_and_add_kernel", "reduce_add_sum_kernel")
def add_sums(name: Name, rng: Rng) -> Launch:
    many = name.kernel.startswith("reduce")
    out, rows = _floats(rng, 512), _floats(rng, 3 if many else 1, 512)
    expected = out + rows.astype(float).sum(0)
    args = [out, rows, 512, *([3] if many else [])]
    return Launch(2, 256, args, {0: expected}, 1e-5)


# ---- attention: q, k, v are (B, NH, T, HS), and (B, T, 3, NH, HS) before they are permuted


def _scores(qkv: Array) -> Array:
    q, k, _ = qkv.reshape(B, T, 3, NH, HS).transpose(2, 0, 3, 1, 4).astype(float)
    return np.asarray(q @ k.swapaxes(-1, -2) / math.sqrt(HS))


LATER = np.triu(np.ones((T, T), bool), 1)


def _causal(scores: Array) -> Array:
    return _probabilities(np.where(LATER, -np.inf, scores))


def _attended(qkv: Array) -> Array:
    """(B, NH, T, HS)"""
    v = qkv.reshape(B, T, 3, NH, HS)[:, :, 2].transpose(0, 2, 1, 3)
    return np.asarray(_causal(_scores(qkv)) @ v)


def _together(x: Array) -> Array:
    return x.transpose(0, 2, 1, 3)


@case(SUITE, "attention_forward", "attention_query_key_kernel1")
def query_key(name: Name, rng: Rng) -> Launch:
    qkv = _floats(rng, B, T, 3 * C)
    expected = np.where(LATER, -np.inf, _scores(qkv))
    out = np.zeros(expected.shape, np.float32)
    return Launch(_up(out.size, 256), 256, [out, qkv, B, T, C, NH], {0: expected}, 1e-4, 1e-5)


@case(SUITE, "attention_forward", "attention_softmax_kernel1")
def attention_softmax(name: Name, rng: Rng) -> Launch:
    scores = _floats(rng, B, NH, T, T)
    out = np.zeros_like(scores)
    return Launch(_up(N * NH, 64), 64, [out, scores, B, T, NH], {0: _causal(scores)}, 1e-5, 1e-6)


@case(SUITE, "attention_forward", "attention_value_kernel1")
def attention_value(name: Name, rng: Rng) -> Launch:
    qkv = _floats(rng, B, T, 3 * C)
    weights = _causal(_scores(qkv)).astype(np.float32)
    args = [np.zeros((B, T, C), np.float32), weights, qkv, B, T, C, NH]
    return Launch(_up(N * NH, 64), 64, args, {0: _together(_attended(qkv))}, 1e-4, 1e-5)


@case(SUITE, "attention_forward", "attention_forward_fused1")
def attention_fused(name: Name, rng: Rng) -> Launch:
    qkv = _floats(rng, B, T, 3 * C)
    args: list[Any] = [np.zeros((B, T, C), np.float32), np.zeros((B, NH, T, T), np.float32)]
    args += [np.zeros((B, NH, T, T), np.float32), qkv, B, T, C, NH]
    expected = {0: _together(_attended(qkv)), 2: _causal(_scores(qkv))}
    return Launch((T // 4, NH, B), 128, args, expected, 1e-4, 1e-5)


@case(SUITE, "attention_forward", "attention_forward_kernel2")
def flash(name: Name, rng: Rng) -> Launch:
    qkv = _floats(rng, B, T, 3 * C)
    q, k, v = np.ascontiguousarray(qkv.reshape(B, T, 3, NH, HS).transpose(2, 0, 3, 1, 4))
    tile = 16
    sums, top = np.zeros((B, NH, T), np.float32), np.full((B, NH, T), 0xF0F0F0F0, np.uint32)
    args = [q.copy(), k.copy(), v.copy(), T, HS, T // tile, T // tile, tile, tile]
    args += [1 / math.sqrt(HS), sums, top.view(np.float32), np.zeros_like(q)]
    shared = (3 * tile * HS + tile * tile) * 4
    return Launch((B, NH), tile, args, {12: _attended(qkv)}, 1e-4, 1e-5, shared)


@case(SUITE, "attention_(forward|backward)", "softmax_forward_kernel5(_lowp)?")
def causal_softmax(name: Name, rng: Rng) -> Launch:
    scores = (3 * _floats(rng, B, NH, T, T)).astype(_element(name))
    scale = 1 / math.sqrt(HS)
    expected = _causal(scale * scores.astype(np.float32))
    grid = _up(B * NH * T * 32, 128)
    loose = (1e-4, 1e-6) if scores.dtype == np.float32 else (1e-2, 1e-4)
    args = [np.zeros_like(scores), scale, scores, B * NH, T]
    return Launch(grid, 128, args, {0: expected}, *loose)


@case(SUITE, "attention_forward", "scale_kernel")
def scale_scores(name: Name, rng: Rng) -> Launch:
    scores = _floats(rng, B, NH, T, T)
    expected = np.where(LATER, -np.inf, scores * 0.25)
    return Launch(_up(scores.size, 256), 256, [scores, 0.25, B, NH, T], {0: expected}, 0, 0)


@case(SUITE, "attention|trimat", "permute_kernel(_lowp|_backward)?")
def split_heads(name: Name, rng: Rng) -> Launch:
    qkv = _floats(rng, B, T, 3, NH, HS)
    element = np.dtype(_element(name))
    parts = [np.ascontiguousarray(x) for x in qkv.transpose(2, 0, 3, 1, 4)]
    if name.kernel.endswith("backward"):
        args, expected = [np.zeros_like(qkv), *parts], {0: qkv}
    else:
        args = [*(np.zeros(parts[0].shape, element) for _ in parts), qkv]
        expected = {k: part.astype(element) for k, part in enumerate(parts)}
    return Launch(_up(N * C, 256), 256, [*args, B, T, NH, HS], expected, 0, 0)


@case(SUITE, "attention", "unpermute_kernel(_lowp|_backward)?")
def join_heads(name: Name, rng: Rng) -> Launch:
    apart = _floats(rng, B, NH, T, HS).astype(_element(name))
    together = np.ascontiguousarray(_together(apart).astype(np.float32))
    if name.kernel.endswith("backward"):
        args, expected = [np.zeros_like(apart), together], {0: apart}
    else:
        args, expected = [apart, np.zeros_like(together)], {1: together}
    return Launch(_up(N * C, 256), 256, [*args, B, T, NH, HS], expected, 0, 0)


@case(SUITE, "attention_forward", "fp32_to_lowp_kernel", "lowp_to_fp32_kernel")
def convert(name: Name, rng: Rng) -> Launch:
    wide = _floats(rng, 512)
    narrow = wide.astype(_element(name))
    if name.kernel.startswith("fp32"):
        return Launch(2, 256, [np.zeros_like(narrow), wide], {0: narrow}, 0, 0)
    exact = narrow.astype(np.float32)
    return Launch(2, 256, [narrow, np.zeros_like(exact)], {1: exact}, 0, 0)


@case(SUITE, "attention_backward", "softmax_autoregressive_backward_kernel[1-8]")
def causal_softmax_backward(name: Name, rng: Rng) -> Launch:
    number = int(name.kernel[-1])
    block = name.numbers()[0] if number >= 6 else 64
    heads, t = (1, block) if number == 6 else (NH, T)  # kernel 6 has no bounds check
    later = np.triu(np.ones((t, t), bool), 1)
    weights = _probabilities(np.where(later, -np.inf, _floats(rng, heads, t, t)))
    weights, dweights = weights.astype(np.float32), _floats(rng, heads, t, t)
    inner = (weights.astype(float) * dweights).sum(-1, keepdims=True)
    scale = 1 / math.sqrt(C // heads)
    expected = np.where(later, 0, scale * weights * (dweights - inner))
    threads = {1: t, 2: t, 3: 32 * t, 4: 4 * t, 5: 4 * t}.get(number, 0)
    grid = {6: t, 7: t, 8: t // 4}.get(number, _up(threads, block))
    last = scale if number >= 7 else heads
    args = [np.zeros_like(weights), dweights, weights, 1, t, C, last]
    return Launch((grid, heads), block, args, {0: expected}, 1e-4, 1e-5)


@case(SUITE, "trimat", "trimul_global")
def lower_product(name: Name, rng: Rng) -> Launch:
    """The lower triangle of Q K^T; what is above is not specified."""
    batch, t, c, heads = 1, 128, 64, 2
    size = c // heads
    qkv = _floats(rng, batch, t, 3, heads, size)
    q, k, _ = qkv.transpose(2, 0, 3, 1, 4).astype(float)
    expected = q @ k.swapaxes(-1, -2) / math.sqrt(size)
    out = np.zeros(expected.shape, np.float32)
    lower = np.where(np.tri(t, dtype=bool), expected, np.nan)
    return Launch((1, 1, heads * batch), (16, 16), [out, qkv, t, c, heads], {0: lower}, 1e-4, 1e-5)


# ---- softmax of rows


@case(SUITE, "attention_forward", "softmax_forward_kernel4")
def softmax_of_attention(name: Name, rng: Rng) -> Launch:
    launch = softmax(name, rng)
    launch.shared_bytes *= 2
    return launch


@case(SUITE, "softmax_forward", "softmax_forward_(online_)?kernel[123478]")
def softmax(name: Name, rng: Rng) -> Launch:
    x = 3 * _floats(rng, N, C)
    grid, block, shared = {
        "kernel1": (_up(N, 32), 32, 0),
        "kernel2": (N, 128, 128 * 4),
        "kernel3": (N, 32, 32 * 4),
        "kernel4": (N, 128, 128 // 32 * 4),
        "kernel7": (N, 128, 2 * 128 // 32 * 4),
        "online_kernel1": (_up(N, 32), 32, 0),
        "online_kernel2": (_rows_of_warps(64), 64, 0),
        "online_kernel8": (_rows_of_warps(64), 64, 0),
    }[name.kernel.removeprefix("softmax_forward_")]
    expected = _probabilities(x)
    return Launch(grid, block, [np.zeros_like(x), x, N, C], {0: expected}, 1e-4, 1e-6, shared)
