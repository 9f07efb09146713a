"""GPT-2 in NumPy and float64: logits, loss and gradients, and the losses of training by AdamW."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Weights = dict[str, np.ndarray]


@dataclass(frozen=True)
class Size:
    """Products have whole tiles of 128 rows and columns: their kernel checks no bounds."""

    batch: int = 2
    length: int = 64
    longest: int = 64  # positions
    vocabulary: int = 100
    padded: int = 128
    layers: int = 2
    heads: int = 2
    channels: int = 128


def shapes(size: Size) -> dict[str, tuple[int, ...]]:
    """In the order of the file."""
    layers, c = size.layers, size.channels
    return {
        "wte": (size.padded, c),
        "wpe": (size.longest, c),
        "ln1w": (layers, c),
        "ln1b": (layers, c),
        "qkvw": (layers, 3 * c, c),
        "qkvb": (layers, 3 * c),
        "attprojw": (layers, c, c),
        "attprojb": (layers, c),
        "ln2w": (layers, c),
        "ln2b": (layers, c),
        "fcw": (layers, 4 * c, c),
        "fcb": (layers, 4 * c),
        "fcprojw": (layers, c, 4 * c),
        "fcprojb": (layers, c),
        "lnfw": (c,),
        "lnfb": (c,),
    }


def initial(size: Size, random: np.random.Generator) -> Weights:
    """Values of float32. Rows of the vocabulary's padding are zeros."""
    found = {}
    for name, shape in shapes(size).items():
        values = 0.2 * random.standard_normal(shape) + (name in ("ln1w", "ln2w", "lnfw"))
        found[name] = values.astype(np.float32).astype(float)
    found["wte"][size.vocabulary :] = 0
    return found


def flat(weights: Weights) -> np.ndarray:
    return np.concatenate([one.ravel() for one in weights.values()]).astype(np.float32)


def norm(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, tuple]:
    scale = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    y = (x - x.mean(-1, keepdims=True)) * scale
    return y * w + b, (y, scale, w)


def norm_back(kept: tuple, d: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y, scale, w = kept
    dy = d * w
    dx = scale * (dy - dy.mean(-1, keepdims=True) - y * (dy * y).mean(-1, keepdims=True))
    return dx, (d * y).sum((0, 1)), d.sum((0, 1))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def linear_back(d: np.ndarray, x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    return d @ w, np.einsum("bto,btc->oc", d, x), d.sum((0, 1))


def attend(qkv: np.ndarray, heads: int) -> tuple[np.ndarray, tuple]:
    batch, length, wide = qkv.shape
    parts = qkv.reshape(batch, length, 3, heads, wide // 3 // heads)
    q, k, v = parts.transpose(2, 0, 3, 1, 4)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores[..., np.triu(np.ones((length, length), bool), 1)] = -np.inf
    shares = softmax(scores)
    return (shares @ v).swapaxes(1, 2).reshape(batch, length, -1), (q, k, v, shares)


def attend_back(kept: tuple, d: np.ndarray) -> np.ndarray:
    q, k, v, shares = kept
    batch, heads, length, wide = q.shape
    d = d.reshape(batch, length, heads, wide).swapaxes(1, 2)
    dshares = d @ v.swapaxes(-1, -2)
    dscores = shares * (dshares - (dshares * shares).sum(-1, keepdims=True)) / np.sqrt(wide)
    parts = np.stack([dscores @ k, dscores.swapaxes(-1, -2) @ q, shares.swapaxes(-1, -2) @ d])
    return parts.transpose(1, 3, 0, 2, 4).reshape(batch, length, -1)


SLOPE = np.sqrt(2 / np.pi)


def gelu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Its value and its derivative."""
    t = np.tanh(SLOPE * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * SLOPE * (
        1 + 3 * 0.044715 * x * x
    )


def step(
    size: Size, w: Weights, inputs: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, float, Weights]:
    """Logits, the mean loss, and the gradient of the loss."""
    x = w["wte"][inputs] + w["wpe"][: size.length]
    kept = []
    for i in range(size.layers):
        a, norm1 = norm(x, w["ln1w"][i], w["ln1b"][i])
        mixed, attention = attend(a @ w["qkvw"][i].T + w["qkvb"][i], size.heads)
        x = x + mixed @ w["attprojw"][i].T + w["attprojb"][i]
        b, norm2 = norm(x, w["ln2w"][i], w["ln2b"][i])
        h, slope = gelu(b @ w["fcw"][i].T + w["fcb"][i])
        x = x + h @ w["fcprojw"][i].T + w["fcprojb"][i]
        kept.append((a, norm1, mixed, attention, b, norm2, h, slope))
    last, normf = norm(x, w["lnfw"], w["lnfb"])
    logits = last @ w["wte"][: size.vocabulary].T
    shares = softmax(logits)
    chosen = np.eye(size.vocabulary)[targets]
    loss = -np.log((shares * chosen).sum(-1)).mean()

    g = {name: np.zeros(shape) for name, shape in shapes(size).items()}
    d = (shares - chosen) / targets.size
    g["wte"][: size.vocabulary] = np.einsum("btv,btc->vc", d, last)
    d, g["lnfw"], g["lnfb"] = norm_back(normf, d @ w["wte"][: size.vocabulary])
    for i in reversed(range(size.layers)):
        a, norm1, mixed, attention, b, norm2, h, slope = kept[i]
        dh, g["fcprojw"][i], g["fcprojb"][i] = linear_back(d, h, w["fcprojw"][i])
        db, g["fcw"][i], g["fcb"][i] = linear_back(dh * slope, b, w["fcw"][i])
        dx, g["ln2w"][i], g["ln2b"][i] = norm_back(norm2, db)
        d = d + dx
        dm, g["attprojw"][i], g["attprojb"][i] = linear_back(d, mixed, w["attprojw"][i])
        dq = attend_back(attention, dm)
        da, g["qkvw"][i], g["qkvb"][i] = linear_back(dq, a, w["qkvw"][i])
        dx, g["ln1w"][i], g["ln1b"][i] = norm_back(norm1, da)
        d = d + dx
    np.add.at(g["wte"], inputs, d)
    g["wpe"][: size.length] = d.sum(0)
    return logits, loss, g


def train(
    size: Size, weights: Weights, inputs: np.ndarray, targets: np.ndarray, steps: int
) -> list[float]:
    """AdamW with the test's rate 1e-4, betas 0.9 and 0.999, eps 1e-8 and decay 0.01."""
    w = {name: value.copy() for name, value in weights.items()}
    m = {name: np.zeros_like(value) for name, value in w.items()}
    v = {name: np.zeros_like(value) for name, value in w.items()}
    losses = []
    for t in range(1, steps + 1):
        _, loss, gradient = step(size, w, inputs, targets)
        losses.append(float(loss))
        for name, g in gradient.items():
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g * g
            mean, spread = m[name] / (1 - 0.9**t), v[name] / (1 - 0.999**t)
            w[name] -= 1e-4 * (mean / (np.sqrt(spread) + 1e-8) + 0.01 * w[name])
    return losses
