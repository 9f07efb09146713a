"""Runs every variant on small shapes that are no multiple of its tiles, and checks each result.

benchmarks/gpu.py runs it under compute-sanitizer. It is also a quick manual check:

    python validation/each_variant.py --device cuda
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes  # noqa: F401 - makes "bfloat16" a dtype
import numpy as np

import smemkern

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
from rows import parameter_sets
from smemkern.reference import bound_keywords, gemm_bound

# Not a multiple of any tile, smaller than a tile, slightly larger, a single element, K = 0.
GEMM_SHAPES = [(67, 45, 31), (5, 129, 7), (64, 64, 64), (130, 66, 36), (1, 1, 1), (33, 17, 0)]
# Of tiles for few rows or columns, whose ranges of K are added by a cluster, or by a launch.
THIN_SHAPES = [(5, 129, 203), (130, 24, 264), (32, 72, 1288)]
THIN_SETS = [{"block_n": 8, "split": split} for split in (1, 2, 9)]  # alone, in a cluster, launch
TRANSPOSE_SHAPES = [(67, 45), (1, 129), (64, 64), (130, 33), (1, 1)]
PROBE_ELEMENTS = 5000

# False positives of compute-sanitizer; sanitizer_limits.py shows them in kernels of ten lines.
# racecheck: in `fp64` one lane arrives at an mbarrier for the whole warp after __syncwarp, and the
# tool misses that this orders the other lanes' reads. initcheck: it misses stores by
# cp.async.bulk, which these variants use for results with aligned rows; and in `sliced_k` and
# `small_k` it takes the bytes that cp.async fills with 0 for read. synccheck: the warps of
# `fp16x3_guarded` that copy meet those that multiply at a barrier of the whole block, each at a
# place of their own in the code, where a tile needs other products; the tool calls that divergent.
# racecheck also holds each warp at a cluster's barrier until all warps wait there. In clusters of
# thin tiles of `fp16` and `bf16` some first wait for others, so it never ends, and they do not run.
LEFT_OUT = {
    "synccheck": ("fp16x3_guarded",),
    "racecheck": ("fp64",),
    "initcheck": (
        "tf32",
        "tf32x3",
        "fp16x1",
        "fp16x3",
        "fp16x3_guarded",
        "fp16",
        "bf16",
        "ozaki2",
        "sliced_k",
        "small_k",
    ),
}

# (description of a call, its error relative to the rounding error bound).
Checked = Iterator[tuple[str, float]]


def gemm_calls(
    row: smemkern.Variant, rng: np.random.Generator, device: str | None, tool: str | None
) -> Checked:
    has_thin, has_forms = row.name in ("fp16", "bf16"), "swapped" in row.params
    thin_sets = [more for more in THIN_SETS if tool != "racecheck" or more["split"] != 2]
    for dtype in row.dtypes:
        for given in parameter_sets(row):
            thin = [({**given, **more}, s) for more in thin_sets for s in THIN_SHAPES if has_thin]
            forms = [given]
            if has_forms:
                shared = ({"multicast": 1, "multicast_a": 1}, {"multicast": 2, "multicast_a": 4})
                forms = [{**given, "swapped": n, **blocks} for n in (1, 2) for blocks in shared]
            for params, (m, n, k) in [*itertools.product(forms, GEMM_SHAPES), *thin]:
                a, b, c = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n), (m, n)))
                for beta in (0.0, 0.5):
                    out = c.copy()
                    smemkern.gemm(
                        a, b, variant=row.name, out=out, beta=beta, device=device, **params
                    )
                    wanted, allowed = gemm_bound(a, b, beta=beta, c=c, **bound_keywords(row))
                    off = np.abs(out.astype(wanted.dtype) - wanted)
                    error = float(np.max(off / np.maximum(allowed, np.finfo("f4").tiny)))
                    yield f"{dtype} {params} {m}x{n}x{k} beta={beta}", error


def transpose_calls(
    row: smemkern.Variant, rng: np.random.Generator, device: str | None, tool: str | None
) -> Checked:
    for dtype in row.dtypes:
        size = int(dtype.removeprefix("b")) // 8
        for params in parameter_sets(row):
            for shape in TRANSPOSE_SHAPES:
                bits = rng.integers(0, 256, (*shape, size), dtype="u1")
                x = bits.view("c16" if size == 16 else f"u{size}")[..., 0]
                y = smemkern.transpose(x, variant=row.name, device=device, **params)
                same = np.ascontiguousarray(x.T).tobytes() == np.ascontiguousarray(y).tobytes()
                yield f"{dtype} {params} {shape}", 0.0 if same else float("inf")


def probe_calls(
    row: smemkern.Variant, rng: np.random.Generator, device: str | None, tool: str | None
) -> Checked:
    x = rng.standard_normal(PROBE_ELEMENTS).astype("f4")
    for params in parameter_sets(row):
        y = smemkern.probe(x, variant=row.name, device=device, **params)
        yield str(params), 0.0 if np.isfinite(y).all() else float("inf")


CALLS = {"gemm": gemm_calls, "transpose": transpose_calls, "probe": probe_calls}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", help='"cuda", "emu"; default: a GPU if there is one')
    parser.add_argument("--tool", help="of compute-sanitizer, under which this runs")
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="of GEMM; default: all, of all")
    options = parser.parse_args()
    device, left_out = options.device, LEFT_OUT.get(options.tool, ())
    rng = np.random.default_rng(7)
    calls, wrong = 0, []
    rows = smemkern.variants("gemm" if options.rows else None)
    wanted = options.rows or [row.name for row in rows]
    for row in [row for row in rows if row.name in wanted and row.name not in left_out]:
        for what, error in CALLS[row.op](row, rng, device, options.tool):
            calls += 1
            if not error <= 1:
                wrong.append(f"{row.op} {row.name}: {what}: error {error}")
    print(f"CALLS {calls} WRONG {len(wrong)}")
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
