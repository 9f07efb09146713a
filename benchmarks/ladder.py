"""The GEMM ladder: throughput of each variant, its ceiling, and cuBLAS for comparison.

    entries(results)      one entry per variant, in groups that can be compared
    picture(results)      docs/images/ladder.svg; the bytes depend only on the figures
    goals(results)        goals of GEMM on Hopper, and the results

A ceiling is the peak throughput of the units that a variant computes with, on all multiprocessors
at the highest clock. Tensor cores cannot reach theirs: at full load they would exceed the GPU's
power limit, so clocks fall.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from rows import ROOT, table

Record = dict[str, Any]

PICTURE = ROOT / "docs" / "images" / "ladder.svg"
SQUARE, LARGE, ODD, LARGEST = [1024] * 3, [4096] * 3, [4095, 4097, 4093], [8192] * 3

# Operations per clock and multiprocessor of sm_90 (NVIDIA's H100 whitepaper): of FMA units and of
# tensor cores. Variants whose name ends in x3 compute three products for one.
FFMA, DMMA, TF32, HALVES = 256, 256, 2048, 4096
RATES = {
    **{"cuBLAS TF32": TF32, "tf32": TF32, "tf32x3": TF32 / 3},
    **{"mma_tf32": TF32, "mma_tf32x3": TF32 / 3},
    **{
        "fp16x3": HALVES / 3,
        "fp16x3_guarded": HALVES / 3,
        "fp16x1": HALVES,
        "fp16": HALVES,
        "bf16": HALVES,
        "mma_fp16": HALVES,
        "mma_bf16": HALVES,
        # Of int8 twice as many; a product for each of 14 moduli.
        "ozaki2": 2 * HALVES / 14,
        "mma_ozaki2": 2 * HALVES / 14,
    },
}
OF_TYPE = {"float32": FFMA, "float64": DMMA, "float16": HALVES, "bfloat16": HALVES}
BY_DMMA = ("cuBLAS", "fp64", "small_k", "direct")  # in float64; others by FMA units
OF_SM_90 = ("H100", "H200")

TF32_BITS = 10


# ---- reading results


def find(results: Record, step: str, variant: str, **what: Any) -> Record | None:
    """The line of a variant, with default parameters unless `what` has others; None: not found."""
    wanted = {"variant": variant, "params": {}, **what}
    for line in results.get(step, {}).get("lines", ()):
        if all(line[key] == value for key, value in wanted.items()):
            return line
    return None


def value(line: Record | None, key: str) -> float:
    return math.nan if line is None else line[key]


def own_dtype(name: str) -> str:
    """The type that the tables show for a variant: float32 if it supports that."""
    dtypes = table()["gemm", name].dtypes
    return "float32" if "float32" in dtypes else dtypes[0]


def peer_of(name: str) -> str:
    """The mode of cuBLAS with the same accuracy."""
    return "cuBLAS TF32" if table()["gemm", name].product_bits == TF32_BITS else "cuBLAS"


def ratio(results: Record, line: Record | None) -> float:
    """Speed relative to its peer, from interleaved runs where those were measured."""
    if line is None:
        return math.nan
    if "peer_ms" in line:
        return line["peer_ms"] / line["ms"]
    peer = find(results, "gemm", peer_of(line["variant"]), dtype=line["dtype"], shape=line["shape"])
    return value(peer, "ms") / line["ms"]


def ceiling(results: Record, name: str, dtype: str) -> float:
    """TFLOP/s; NaN on GPUs whose rates are not listed here."""
    part = results["gemm"]
    if not any(gpu in part["gpu"] for gpu in OF_SM_90):
        return math.nan
    rate = RATES.get(name, OF_TYPE[dtype])
    if dtype == "float64" and name not in (*BY_DMMA, *RATES):
        rate /= 2
    return rate * part["multiprocessors"] * float(part["sm_clock_mhz"]) * 1e-6


# ---- entries


@dataclass(frozen=True)
class Entry:
    """A bar of the picture, in TFLOP/s."""

    group: str
    name: str
    tflops: float
    ceiling: float
    of_peer: float  # speed relative to cuBLAS


def _group(name: str) -> str:
    row = table()["gemm", name]
    if "float32" in row.dtypes:
        if row.product_bits == TF32_BITS:
            return "TF32"
        return "fp32 of parts" if name in RATES else "fp32"
    return "fp64" if "float64" in row.dtypes else "16 bits"


def entries(results: Record) -> list[Entry]:
    """The variants measured at 4096^3, in the table's order; each group begins with cuBLAS."""
    # Not those for few rows or columns, or for tiny products.
    gemms = [row for (op, _), row in table().items() if op == "gemm"]
    names = [row.name for row in gemms if not row.skinny and row.name != "direct"]
    found: list[Entry] = []
    groups = {
        "fp32": ("cuBLAS", ["float32"]),
        "fp32 of parts": ("cuBLAS", ["float32"]),
        "TF32": ("cuBLAS TF32", ["float32"]),
        "16 bits": ("cuBLAS", ["float16", "bfloat16"]),
        "fp64": ("cuBLAS", ["float64"]),
    }
    for group, (peer, dtypes) in groups.items():
        rungs = [name for name in names if _group(name) == group]
        if group == "fp64":  # also the variant that each differs from, which uses FMA units
            both = (r for name in rungs for r in (table()["gemm", name].differs_from, name) if r)
            rungs = list(dict.fromkeys(both))
        for dtype in dtypes:
            own = [name for name in rungs if dtype in table()["gemm", name].dtypes]
            of_group = []
            for name in own:
                line = find(results, "gemm", name, dtype=dtype, shape=LARGE)
                if line is not None:
                    top = ceiling(results, name, dtype)
                    of_group.append(Entry(group, name, line["tflops"], top, ratio(results, line)))
            line = find(results, "gemm", peer, dtype=dtype, shape=LARGE)
            if line is not None and of_group:
                label = peer if len(dtypes) == 1 else f"{peer} {dtype}"
                of_group.insert(
                    0, Entry(group, label, line["tflops"], ceiling(results, peer, dtype), 1.0)
                )
            found += of_group
    return found


# ---- the picture


def digest(results: Record) -> str:
    """A hash of all that the picture shows. The picture contains it, which reveals a stale one."""
    shown = [
        [f"{x:.4g}" if isinstance(x, float) else x for x in astuple(e)] for e in entries(results)
    ]
    return hashlib.sha256(json.dumps([shown, results["gemm"]["gpu"]]).encode()).hexdigest()[:16]


def is_fresh(results: Record, file: Path = PICTURE) -> bool:
    return file.exists() and f"figures {digest(results)}" in file.read_text(encoding="utf-8")


# Middle tones, visible on white and on black.
COLOURS = {
    "fp32": "#2f81d6",
    "fp32 of parts": "#2fa3c7",
    "TF32": "#1f9e77",
    "16 bits": "#c77d12",
    "fp64": "#a663b8",
}
TEXT, FAINT, PEER = "#7a828c", "#9aa2ab66", "#d9534f"
TITLES = {
    "fp32": "fp32: multiply-adds",
    "fp32 of parts": "fp32 accuracy out of tensor cores: three products for one",
    "TF32": "TF32: 11 bits of each fp32",
    "16 bits": "float16 and bfloat16, fp32 sums",
    "fp64": "float64",
}
LEAST = 0.25  # TFLOP/s at the left end of bars


def _places(rungs: Sequence[Entry]) -> Iterator[tuple[float, Entry]]:
    """From the top down, with room for a title above each group."""
    y, group = 0.0, ""
    for entry in rungs:
        y -= 2.1 if entry.group != group else 1.0
        group = entry.group
        yield y, entry


def picture(results: Record, file: Path = PICTURE) -> None:
    """Needs matplotlib."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    rungs = entries(results)
    places = list(_places(rungs))
    style = {"svg.hashsalt": "ladder", "font.family": "DejaVu Sans", "font.size": 9.0}
    with matplotlib.rc_context({**style, "text.color": TEXT}):
        height = 0.21 * -places[-1][0] + 0.9
        figure, ax = plt.subplots(figsize=(9.4, height))
        figure.subplots_adjust(left=0.155, right=0.73, top=1 - 0.15 / height, bottom=0.55 / height)
        previous, reach, columns = "", math.nan, (1.1, 1.25, 1.41)
        for y, e in places:
            peer = e.name.startswith("cuBLAS")
            reach = e.tflops if peer else reach
            if e.group != previous:
                title = {"weight": "bold", "color": COLOURS[e.group]}
                ax.text(LEAST, y + 1, TITLES[e.group], va="center", **title)
                previous = e.group
            colour = PEER if peer else COLOURS[e.group]
            ax.barh(y, e.tflops - LEAST, left=LEAST, height=0.66, lw=0, color=colour)
            ax.plot([e.ceiling] * 2, [y - 0.42, y + 0.42], color=TEXT, lw=1.4)
            ax.plot([reach] * 2, [y - 0.5, y + (0.33 if peer else 0.5)], color=PEER, lw=1)
            ax.text(LEAST / 1.09, y, e.name, ha="right", va="center", color=PEER if peer else TEXT)
            said = [f"{e.tflops:.3g}" if e.tflops < 100 else f"{e.tflops:.0f}"]
            said += [f"{100 * e.tflops / e.ceiling:.2g} %" if e.ceiling == e.ceiling else ""]
            said += ["" if peer else f"{e.of_peer:.2f} ×"]
            for x, text in zip(columns, said, strict=True):
                ax.text(x, y, text, ha="right", va="center", transform=ax.get_yaxis_transform())
        for x, text in zip(columns, ("TFLOP/s", "of ceiling", "× cuBLAS"), strict=True):
            ax.text(x, -0.9, text, ha="right", va="center", transform=ax.get_yaxis_transform())
        ax.set(xscale="log", xlim=(LEAST, 1500), ylim=(places[-1][0] - 0.8, -0.5), yticks=[])
        ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
        ax.set_xlabel(
            f"TFLOP/s of a GEMM of 4096³ on an {results['gemm']['gpu']}; red: cuBLAS; "
            "the tick right of a bar: its units' ceiling",
            color=TEXT,
        )
        ax.tick_params(axis="x", which="both", colors=TEXT)
        ax.grid(axis="x", which="major", color=FAINT, lw=0.8)
        ax.set_axisbelow(True)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        ax.spines["bottom"].set_color(TEXT)
        file.parent.mkdir(parents=True, exist_ok=True)
        about = {"Date": None, "Creator": None, "Description": f"figures {digest(results)}"}
        figure.savefig(file, transparent=True, metadata=about)
        plt.close(figure)


# ---- the goals

# Speed relative to cuBLAS of the same accuracy: goal at squares, and at the odd shape.
GOALS = {
    "simt": (1.10, 1.15),
    "tf32x3": (2.2, 2.0),
    "fp16x3": (3.5, 3.0),
    "tf32": (1.0, 2.0),
    "fp16": (1.0, 3.0),
    "bf16": (1.0, 3.0),
    "fp64": (1.0, 1.2),
    "ozaki2": (1.35, 1.6),
}


def goals(results: Record) -> list[tuple[str, ...]]:
    """One line per variant: peer, ratios at 4096, 8192 and the odd shape, goal, errors."""
    lines = []
    for name, (square, odd) in GOALS.items():
        dtype = own_dtype(name)
        cells = [f"`{name}`", f"{peer_of(name)}, {dtype}"]
        for shape, goal in ((LARGE, square), (LARGEST, square), (ODD, odd)):
            got = ratio(results, find(results, "gemm", name, dtype=dtype, shape=shape))
            cells.append(f"{got:.2f}{' ✓' if got >= goal else ''}" if math.isfinite(got) else "–")
        cells.append(f"{square:g}, odd {odd:g}")
        errors = [
            value(find(results, "gemm", who, dtype=dtype, shape=LARGE), "error")
            for who in (name, peer_of(name))
        ]
        # cuBLAS in float64 has no error here: it is the reference.
        cells += [f"{x:.2e}" if math.isfinite(x) and x > 0 else "–" for x in errors]
        lines.append(tuple(cells))
    return lines
