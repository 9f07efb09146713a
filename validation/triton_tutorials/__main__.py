"""Runs Triton's tutorials under `smemkern run`, by Triton's own launcher, against NumPy.

    python -m validation.triton_tutorials CHECKOUT [--only 05] [--gpu h100]

CHECKOUT is a folder of https://github.com/triton-lang/triton, or a copy of it. The packages triton
and torch (with CUDA) must be installed. inside.py says what runs; the record is
benchmarks/results/triton-tutorials.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "benchmarks" / "results" / "triton-tutorials.json"
INSIDE = Path(__file__).with_name("inside.py")
LEFT_OUT = {"10-block-scaled-matmul": "needs tcgen05 of sm_100, which the emulator does not have"}


def run(file: Path, gpu: str, limit: float) -> dict[str, object]:
    words = [sys.executable, "-m", "smemkern", "run", "--json", "--gpu", gpu]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch, "answer")
        try:
            # 07 has paths from where it is.
            done = subprocess.run(
                [*words, sys.executable, INSIDE, file.name, answer],
                cwd=file.parent,
                capture_output=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"result": "time out", "seconds": limit}
        rows = json.loads(answer.read_text()) if answer.exists() else []
    found = json.loads(done.stdout)
    kernels = found["kernels"]
    right = found["status"] == 0 and bool(rows) and all(row["right"] for row in rows)
    record = {
        "result": "passed" if right else "failed",
        "seconds": round(time.monotonic() - started, 1),
        "launches": sum(kernel["launches"] for kernel in kernels),
        "kernels": sorted({kernel["kernel"] for kernel in kernels}),
        "comparisons": rows,
        "hazards": [
            f"{row['kind']} in {kernel['kernel']}"
            for kernel in kernels
            for row in kernel["hazards"]
        ],
        "errors": [error for kernel in kernels for error in kernel["errors"]],
        "misuses": [one["message"][:200] for one in found["misuses"]],
        "unsupported": sorted({one["call"] for one in found["unsupported"]}),
    }
    if not right:
        record["why"] = done.stderr.decode(errors="replace")[-500:]
    return record


def commit(checkout: Path) -> str | None:
    words = ["git", "-C", checkout, "rev-parse", "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="tutorials whose name has this in it")
    parser.add_argument("--gpu", default="h100")
    parser.add_argument("--limit", type=float, default=300, help="seconds per tutorial")
    chosen = parser.parse_args()
    files = sorted(chosen.checkout.resolve().glob("python/tutorials/[0-9]*.py"))
    rows: dict[str, object] = {}
    for file in files:
        if chosen.only not in file.stem:
            continue
        why = LEFT_OUT.get(file.stem)
        row = {"result": "left out", "why": why} if why else run(file, chosen.gpu, chosen.limit)
        rows[file.stem] = row
        print(f"{file.stem}: {row}", flush=True)
    if not chosen.only:
        packages = {name: version(name) for name in ("triton", "torch", "numpy")}
        about = {"versions": packages, "commit": commit(chosen.checkout), "gpu": chosen.gpu}
        RECORD.write_text(json.dumps(about | {"tutorials": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
