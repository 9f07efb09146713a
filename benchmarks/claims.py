"""What the literature claims, where the same thing is among our measurements, and why they differ.

The claims are for an A100 (fp32 peak 19.5 TFLOP/s) at 4096^3 unless they say otherwise. Another GPU
is compared by ratios: a rung over another rung, or over cuBLAS on the same machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Find = Callable[..., "dict[str, Any] | None"]

LARGE, SMALL = [4096] * 3, [1024] * 3


@dataclass(frozen=True)
class Claim:
    what: str
    claimed: str
    measured: Callable[[Find], tuple[float, ...]]
    shown: Callable[[tuple[float, ...]], str]
    reason: str

    def why(self, measured: tuple[float, ...]) -> str:
        return self.reason if all(map(math.isfinite, measured)) else ""


def _tflops(find: Find, variant: str, shape: list[int], **params: int) -> float:
    line = find("gemm", variant, dtype="float32", shape=shape, params=params)
    return math.nan if line is None else line["tflops"]


def _of_cublas(variant: str, shape: list[int] = LARGE, **params: int):
    """TFLOP/s, and its ratio to cuBLAS."""

    def measured(find: Find) -> tuple[float, ...]:
        mine, peer = _tflops(find, variant, shape, **params), _tflops(find, "cuBLAS", shape)
        return mine, mine / peer

    return measured


def _show_of_cublas(m: tuple[float, ...]) -> str:
    return f"{m[0]:.1f} TFLOP/s, {100 * m[1]:.0f} % of cuBLAS" if math.isfinite(m[0]) else "–"


def _ratio(above: str, below: str, shape: list[int], above_params: dict[str, int] | None = None):
    def measured(find: Find) -> tuple[float, ...]:
        return (_tflops(find, above, shape, **(above_params or {})) / _tflops(find, below, shape),)

    return measured


def _show_ratio(m: tuple[float, ...]) -> str:
    return f"{m[0]:.2f}×" if math.isfinite(m[0]) else "–"


CLAIMS = [
    Claim(
        "naive",
        "0.31 TFLOP/s, 1.7 % of cuBLAS",
        _of_cublas("naive"),
        _show_of_cublas,
        "The claim fits a kernel whose every read goes to memory; a cache serves most of the "
        "repeats.",
    ),
    Claim(
        "tiled 32×32",
        "2.8 TFLOP/s, 15 % of cuBLAS",
        _of_cublas("tiled"),
        _show_of_cublas,
        "Two shared reads for each multiply-add bound it: the ratio to cuBLAS is that of shared "
        "bandwidth to arithmetic, which is much the same on both.",
    ),
    Claim(
        "64×64 block, 4×4 registers",
        "6.2 TFLOP/s, 34 % of cuBLAS",
        _of_cublas("register_tiled"),
        _show_of_cublas,
        "Eight shared reads feed sixteen multiply-adds; how far that goes depends on the reads "
        "that conflict and on those that the compiler merges into wider ones.",
    ),
    Claim(
        "with a cp.async pipeline",
        "7.1 TFLOP/s, 38 % of cuBLAS",
        _of_cublas("pipelined"),
        _show_of_cublas,
        "Ours also reads 128 bits at a time from swizzled tiles, so it starts from a faster rung.",
    ),
    Claim(
        "cuBLAS",
        "18.5 TFLOP/s, 95 % of peak",
        lambda find: (_tflops(find, "cuBLAS", LARGE),),
        lambda m: f"{m[0]:.1f} TFLOP/s" if math.isfinite(m[0]) else "–",
        "Another GPU.",
    ),
    Claim(
        "a padding column in `tiled`, 1024³",
        "0.89× (753 to 673 GFLOP/s)",
        _ratio("tiled", "tiled", SMALL, {"pad": 1}),
        _show_ratio,
        "Its reads are one broadcast and one row, which never conflict; the column only breaks the "
        "alignment that lets the compiler merge four reads into one.",
    ),
    Claim(
        "padding against conflicts",
        "3×",
        _ratio("padded", "conflicted", LARGE),
        _show_ratio,
        "Every inner step of `conflicted` has one 32-way read beside a free one; what that costs "
        "depends on how much else the kernel waits for.",
    ),
]
