"""What the literature claims, beside the same thing among our measurements, and why they differ.

Most claims are for an A100 at 4096^3 in fp32, and are printed with their share of that GPU's peak;
so another GPU is compared by shares of its own peak, and rungs by their ratio.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

LARGE, SMALL = [4096] * 3, [1024] * 3

FFMA_LANES = 128  # fp32 multiply-adds of a multiprocessor in a clock, on 8.0, 8.6 and later

Find = Callable[..., "dict[str, Any] | None"]


def compared(results: dict[str, Any], find: Find) -> list[tuple[str, str, str, str]]:
    """Rows: what, claimed, measured, why they differ."""
    part = results.get("gemm", {})
    clock = float(part.get("sm_clock_mhz", math.nan)) * 1e6
    peak = part.get("multiprocessors", math.nan) * FFMA_LANES * 2 * clock * 1e-12

    def tflops(variant: str, shape: list[int] = LARGE, **params: int) -> float:
        line = find(results, "gemm", variant, dtype="float32", shape=shape, params=params)
        return math.nan if line is None else line["tflops"]

    def gbps(variant: str) -> float:
        line = find(results, "transpose", variant, dtype="b32", shape=[4096, 4096])
        return math.nan if line is None else line["gbps"]

    def row(what: str, claimed: str, measured: str, why: str) -> tuple[str, str, str, str]:
        if re.search(r"\bnan\b", measured + " " + why):  # something was not measured
            return (what, claimed, "–", "")
        return (what, claimed, measured, why)

    def rung(what: str, claimed: str, variant: str, why: str) -> tuple[str, str, str, str]:
        mine = tflops(variant)
        return row(what, claimed, f"{mine:.2g} TFLOP/s, {100 * mine / peak:.2g} % of peak", why)

    naive, coalesced, tiled, padded = map(tflops, ("naive", "coalesced", "tiled", "padded"))
    return [
        rung(
            "naive",
            "0.31 TFLOP/s, 1.6 % of peak",
            "naive",
            "Lanes that walk rows ask for 32 sectors a request, and arithmetic has grown more than "
            f"the caches have. With the lanes along columns the same loop makes {coalesced:.1f} "
            f"TFLOP/s, {coalesced / naive:.0f} times as much.",
        ),
        rung(
            "tiled 32×32",
            "2.8 TFLOP/s, 14.4 % of peak",
            "tiled",
            "They agree: reads of shared memory bind it, and their share of the peak is alike.",
        ),
        rung(
            "64×64 block, 4×4 registers",
            "6.2 TFLOP/s, 31.8 % of peak",
            "register_tiled",
            "The same tile. How far it goes depends on which operand reads conflict: without the "
            f"padding word it makes {tflops('register_tiled', pad=0):.1f} TFLOP/s.",
        ),
        rung(
            "with a cp.async pipeline",
            "7.1 TFLOP/s, 36.4 % of peak",
            "pipelined",
            "Most of it is not the pipeline: ours also reads 128 bits at a time from swizzled "
            f"tiles, which alone makes {tflops('vectorized'):.1f} TFLOP/s.",
        ),
        rung(
            "cuBLAS",
            "18.5 TFLOP/s, 94.9 % of peak",
            "cuBLAS",
            "The library is further from this GPU's peak than the claim is from that one's; a "
            "share of cuBLAS and a share of the peak are different yardsticks.",
        ),
        row(
            "a padding column in `tiled`, 1024³",
            "753 to 673 GFLOP/s: 0.89×",
            f"{tflops('tiled', SMALL, pad=1) / tflops('tiled', SMALL):.2f}×",
            "They agree: the tile's reads are a broadcast and a row, which never conflict. The "
            "column only breaks the alignment by which the compiler merges four reads into one.",
        ),
        row(
            "padding where there are conflicts",
            "3×",
            f"{padded / tflops('conflicted'):.1f}×",
            "Every inner step of `conflicted` has a 32-way read beside a free one, and nothing "
            "else to wait for. Where memory is waited for as well, the gain is small: "
            f"{gbps('padded') / gbps('tiled'):.1f}× for the transpose of 4096².",
        ),
    ]
