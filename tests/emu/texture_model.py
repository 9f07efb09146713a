"""Textures in float64, as the CUDA C++ Programming Guide describes them ("Texture Fetching").

Weights are exact here and have 8 bits in hardware, so results come with the error that this
allows; None of a lane's error means that the guide does not say what it reads.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from texture_inputs import Texture

STEP = 1 / 256  # of coordinates in hardware


def values_of(t: Texture, texels: np.ndarray) -> np.ndarray:
    """As they are read: [..., channel] with four channels."""
    out = texels.astype(np.float64)
    if t.read == "normalized_float":
        info = np.iinfo(t.dtype)
        out = np.maximum(out / info.max, -1)
    missing = np.zeros((*out.shape[:-1], 4 - t.channels))
    return np.concatenate([out, missing], axis=-1)


def address(mode: str, index: np.ndarray, size: int) -> np.ndarray:
    """Indices inside, or -1."""
    if mode == "border":
        return np.where((index < 0) | (index >= size), -1, index)
    if mode == "wrap":
        return index % size
    if mode == "mirror":
        index = index % (2 * size)
        return np.where(index < size, index, 2 * size - 1 - index)
    return np.clip(index, 0, size - 1)


def mode_of(t: Texture, axis: int) -> str:
    mode = t.address if isinstance(t.address, str) else t.address[axis]
    return mode if t.normalized or mode == "border" else "clamp"


def look_up(t: Texture, values: np.ndarray, plane: np.ndarray, axes: list) -> np.ndarray:
    """values[plane, ..., y, x]; the border where an index is -1. axes: x first."""
    outside = np.any([a < 0 for a in axes], axis=0)
    at = (plane, *[np.maximum(a, 0) for a in axes[::-1]])
    border = np.array([*t.border[: t.channels], *[0.0] * (4 - t.channels)])
    if t.dtype == "float16":  # 11 bits, cut
        fraction, exponent = np.frexp(border)
        border = np.ldexp(np.trunc(fraction * 2**11), exponent - 11)
    return np.where(outside[:, None], border, values[at])


def cube(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Face, and the two coordinates from 0 to 1; and which directions are between faces."""
    magnitude = np.abs(x)
    major = magnitude.argmax(axis=1)
    rows = np.arange(len(x))
    negative = x[rows, major] < 0
    face = 2 * major + negative
    table = [((2, -1), (1, -1)), ((2, 1), (1, -1)), ((0, 1), (2, 1))]
    table += [((0, 1), (2, -1)), ((0, 1), (1, -1)), ((0, -1), (1, -1))]
    out = np.zeros((len(x), 2))
    for f, sides in enumerate(table):
        for k, (axis, sign) in enumerate(sides):
            here = face == f
            out[here, k] = (sign * x[here, axis] / magnitude[here, major[here]] + 1) / 2
    two = np.sort(magnitude, axis=1)
    return face, out, two[:, 2] - two[:, 1] < 1e-3 * two[:, 2]


class Model:
    def __init__(self, t: Texture, texels: np.ndarray, words: np.ndarray) -> None:
        self.t = t
        faces = 6 if t.cubemap else 1
        layers = t.shape[0] if t.layered else 1
        self.shape = t.shape[t.layered + t.cubemap :]
        values = values_of(t, texels)
        self.values = values.reshape(layers * faces, *self.shape, 4)
        self.rank = len(self.shape)
        layer = np.minimum(words[:, 4], layers - 1).astype(np.int64)
        self.layer_inside = words[:, 4] < layers
        self.sizes = self.shape[::-1]
        x = words[:, :3].view(np.float32).astype(np.float64)
        self.integer = words[:, :3].view(np.int32).astype(np.int64)
        self.unclear = ~np.isfinite(x).all(axis=1) | (np.abs(x) > 2**20).any(axis=1)
        x[self.unclear] = 0.7
        self.plane = layer
        if t.cubemap:
            small = np.abs(x).max(axis=1) < 1e-30
            x[small] = 0.7
            face, x, between = cube(x)
            self.plane = layer * 6 + face
            self.unclear = self.unclear | between | small
        self.x = x[:, : self.rank]
        if t.normalized:
            self.x = self.x * np.array(self.sizes)

    def indices(self, shift: float, offset=None) -> list[np.ndarray]:
        """Of the texels at `shift` texels from the coordinates, before the address mode."""
        out = np.floor(self.x + shift).astype(np.int64)
        return list((out if offset is None else out + offset[:, : self.rank]).T)

    def addressed(self, indices: list) -> list[np.ndarray]:
        return [
            address(mode_of(self.t, k), a, size)
            for k, (a, size) in enumerate(zip(indices, self.sizes, strict=True))
        ]

    def near_edge(self, shift: float) -> np.ndarray:
        """Whether a coordinate is so near to a texel's edge that rounding decides."""
        x = self.x + shift
        error = STEP + np.abs(x) * 2.0**-20
        return (np.abs(x - np.round(x)) <= error).any(axis=1)

    def point(self, offset=None) -> tuple[np.ndarray, np.ndarray]:
        found = look_up(self.t, self.values, self.plane, self.addressed(self.indices(0, offset)))
        return found, np.where(self.unclear | self.near_edge(0), np.nan, 0.0)

    def linear(self, offset=None) -> tuple[np.ndarray, np.ndarray]:
        first = self.indices(-0.5, offset)
        fraction = (self.x - 0.5) - np.floor(self.x - 0.5)
        total = np.zeros((len(self.x), 4))
        highest = np.zeros(len(self.x))
        for corner in product((0, 1), repeat=self.rank):
            axes = self.addressed([a + high for a, high in zip(first, corner, strict=True)])
            found = look_up(self.t, self.values, self.plane, axes)
            weight = np.prod(np.where(corner, fraction, 1 - fraction), axis=1)
            total += weight[:, None] * found
            highest = np.maximum(highest, np.abs(found).max(axis=1))
        step = STEP + np.abs(self.x).max(axis=1) * 2.0**-22
        # one step of an axis changes the result by at most the step times the texels' difference;
        # at an edge of rounding the next texels come in, which the first ones bound only roughly
        bound = np.abs(self.values).max() if self.values.size else 0.0
        bound = max(bound, np.abs(self.t.border).max() if "border" in str(self.t.address) else 0)
        error = self.rank * step * 2 * np.maximum(highest, np.where(self.near_edge(-0.5), bound, 0))
        error = error + 1e-6 * highest
        if self.t.read == "normalized_float":  # the lowest integer counts as such in a sum
            error = error + 2 / np.iinfo(self.t.dtype).max
        return total, np.where(self.unclear, np.nan, error)

    def fetch(self, offset=None) -> tuple[np.ndarray, np.ndarray]:
        """Integer coordinates: no address modes, and outside reads 0."""
        at = self.integer[:, : self.rank]
        at = at if offset is None else at + offset[:, : self.rank]
        inside = ((at >= 0) & (at < np.array(self.sizes))).all(axis=1) & self.layer_inside
        axes = list(np.where(inside[:, None], at, 0).T)
        found = look_up(self.t, self.values, self.plane, axes)
        return np.where(inside[:, None], found, 0.0), np.zeros(len(at))

    def gather(self, channel: int, offset=None) -> tuple[np.ndarray, np.ndarray]:
        first = self.indices(-0.5, offset)
        out = np.zeros((len(self.x), 4))
        for k, (right, down) in enumerate(((0, 1), (1, 1), (1, 0), (0, 0))):
            axes = self.addressed([first[0] + right, first[1] + down])
            out[:, k] = look_up(self.t, self.values, self.plane, axes)[:, channel]
        return out, np.where(self.unclear | self.near_edge(-0.5), np.nan, 0.0)
