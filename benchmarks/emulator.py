"""Speed of the emulator in warp instructions per second, and Numba's simulator for comparison.

    python benchmarks/emulator.py --numba path/to/a/python/with/numba

Modes: execution only, with counts, with counts and hazard detection. GEMM at 256^3 and transposes
of 1024^2, fp32, on all CPU threads. Runs of the modes are interleaved, and the fastest of each
counts: other load on the machine only makes runs slower. Writes benchmarks/results/emulator.json.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import time
from pathlib import Path

import numpy as np

import records
import smemkern

ROOT = Path(__file__).resolve().parent.parent
SHAPES = {"gemm": (256, 256), "transpose": (1024, 1024)}
VARIANTS = {
    "gemm": (
        "tiled",
        "padded",
        "swizzle",
        "double_buffer",
        "register_tiled",
        "vectorized",
        "pipelined",
        "conflicted",
    ),
    "transpose": ("tiled", "padded", "swizzle", "vectorized"),
}
MODES = ("bare", "counts", "hazards")  # hazards: counts too
PEER = dict(variant="tiled", tile=16)  # the kernel of numba_simulator.py
PEER_N = 64


def operands(op: str, shape: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal(shape, dtype="f4") for _ in range(2 if op == "gemm" else 1)]


def seconds(mode: str, op: str, arrays: list[np.ndarray], params: dict[str, object]) -> float:
    """Seconds of one run: of the launches if bare, else of the whole call."""
    if mode == "bare":
        return smemkern._measure(op, *arrays, repeat=1, device="emu", **params)[1][0] / 1e3
    started = time.perf_counter()
    smemkern.trace(op, *arrays, hazards=mode == "hazards", **params)
    return time.perf_counter() - started


def fastest(
    op: str, arrays: list[np.ndarray], params: dict[str, object], repeat: int
) -> dict[str, float]:
    best = dict.fromkeys(MODES, float("inf"))
    for _ in range(repeat):
        for mode in MODES:
            best[mode] = min(best[mode], seconds(mode, op, arrays, params))
    return best


def measure(op: str, variant: str, repeat: int) -> dict[str, object]:
    arrays = operands(op, SHAPES[op])
    t = smemkern.trace(op, *arrays, variant=variant)
    best = fastest(op, arrays, {"variant": variant}, repeat)
    return {
        "op": op,
        "variant": variant,
        "shape": SHAPES[op],
        "warp_instructions": t.warp_instructions,
        "flops": t.flops,
        "seconds": best,
    }


def peer(python: str, repeat: int) -> dict[str, object]:
    """Seconds of the same product on Numba's simulator and on the emulator."""
    done = subprocess.run(
        [python, str(ROOT / "benchmarks" / "numba_simulator.py"), str(PEER_N)],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    arrays = operands("gemm", (PEER_N, PEER_N))
    return {"n": PEER_N, "numba": float(done.stdout)} | fastest("gemm", arrays, PEER, repeat)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--numba", help="a Python that has Numba")
    parser.add_argument("--commit", default=records.commit())
    parser.add_argument("--results", type=Path, default=records.RESULTS / "emulator.json")
    options = parser.parse_args()
    record = {
        "cpu": records.cpu_name(),
        "threads": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "date": datetime.date.today().isoformat(),
        "commit": options.commit,
        "lines": [measure(op, v, options.repeat) for op, names in VARIANTS.items() for v in names],
    }
    if options.numba:
        record["peer"] = peer(options.numba, options.repeat)
    records.write(options.results, record)
    print("M warp instructions/s" + "".join(f"{mode:>10}" for mode in MODES))
    for line in record["lines"]:
        rates = [line["warp_instructions"] / line["seconds"][mode] * 1e-6 for mode in MODES]
        print(f"{line['op'] + ' ' + line['variant']:21}" + "".join(f"{r:10.1f}" for r in rates))
    if options.numba:
        ours = record["peer"]
        times = {mode: ours["numba"] / ours[mode] for mode in MODES}
        print(
            f"Numba's simulator, tiled, {PEER_N}^3: {ours['numba']:.2f} s; here "
            + ", ".join(f"{mode} {t:.0f} times as fast" for mode, t in times.items())
        )


if __name__ == "__main__":
    main()
