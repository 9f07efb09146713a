"""Runs a case of texture_cases.py."""

from __future__ import annotations

import numpy as np
from texture_inputs import BLOCK, Case

import smemkern


def texture_of(case: Case, texels: np.ndarray) -> smemkern.Texture | smemkern.Surface:
    t = case.texture
    array = texels if t.channels > 1 else texels.reshape(t.shape)
    shape = {"channels": t.channels, "layered": t.layered, "cubemap": t.cubemap}
    if case.surface:
        return smemkern.Surface(array, **shape)
    address = t.address if isinstance(t.address, str) else t.address[: len(t.shape) - t.layered]
    return smemkern.Texture(
        array,
        address=address,
        filter=t.filter,
        normalized=t.normalized,
        read=t.read,
        border=t.border[: t.channels],
        **shape,
    )


def run(case: Case, seed: int | None = None, device: str = "emu") -> dict[str, np.ndarray]:
    """As validation/textures.py: the threads' results, and of a surface its texels afterwards."""
    texels, words = case.arrays(seed)
    texels = np.ascontiguousarray(texels)
    out = np.full((len(words), 4), 0xFEFEFEFE, np.uint32)
    texture = texture_of(case, texels)
    smemkern.Kernel(case.ptx, "sample")(case.count, BLOCK, texture, words, out, device=device)
    return {case.name: out, **({case.name + "/texels": texels} if case.surface else {})}
