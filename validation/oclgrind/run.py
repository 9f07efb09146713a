"""What Oclgrind says about OpenCL twins of some kernels and mistakes, and of their mutants.

    python validation/oclgrind/run.py       # writes results/mutation-oclgrind.json

Each barrier and each guard of an access is removed in turn. The kernels run through
oclgrind-kernel, which needs no host program, with its checks of data races and of uninitialised
values switched on.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent.parent / "benchmarks"))
import records  # noqa: E402

M, N, K = 11, 13, 21  # no multiple of a tile

# kernel: global and local size, and arguments: (floats) is a buffer, n an int
GEMM = ((16, 16), (8, 8), [(M * K,), (K * N,), None, M, N, K], M * N)
LAUNCHES: dict[str, tuple[tuple[int, int], tuple[int, int], list[Any], int]] = {
    "gemm_tiled": GEMM,
    "gemm_conflicted": GEMM,
    "gemm_double_buffer": GEMM,
    "transpose_padded": ((16, 8), (8, 4), [(M * N,), None, M, N], M * N),
    "missing_barrier": ((128, 1), (64, 1), [(128,), None], 128),
    "divergent_barrier": ((64, 1), (64, 1), [(40,), None, 40], 40),
    "uninitialised": ((128, 1), (64, 1), [(128,), None], 128),
    "out_of_bounds": ((128, 1), (64, 1), [(100,), None, 100], 100),
    "missing_wait": ((128, 1), (64, 1), [(128,), None], 128),
}
GUARDS = (r"(?<== )[^=?]+(?= \? [AB]\[)", r"(?<=if \()(row|i) < [^)]*(?=\) (C|to|cell)\[)")


def mutants(source: str) -> list[tuple[str, int, str]]:
    """(kind, line, source without it), the kernel as it is first."""
    lines = source.splitlines()
    found = [("none", 0, source)]
    for n, line in enumerate(lines):
        kinds = [("barrier", "") for _ in re.findall(r"^\s*barrier\(", line)]
        kinds += [("bounds", re.sub(g, "1", line)) for g in GUARDS if re.search(g, line)]
        for kind, left in kinds:
            found.append((kind, n + 1, "\n".join([*lines[:n], left, *lines[n + 1 :]]) + "\n"))
    return found


def simulation(name: str) -> str:
    (gx, gy), (lx, ly), arguments, result = LAUNCHES[name]
    rows = [f"{name}.cl", name, f"{gx} {gy} 1", f"{lx} {ly} 1", ""]
    for argument in arguments:
        if argument is None:
            rows.append(f"<size={4 * result} float noinit>")
        elif isinstance(argument, tuple):
            rows.append(f"<size={4 * argument[0]} float range=1:1:{argument[0]}>")
        else:
            rows.append(f"<size=4 int> {argument}")
    return "\n".join(rows) + "\n"


def run(name: str, source: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"{name}.cl").write_text(source)
        Path(folder, f"{name}.sim").write_text(simulation(name))
        command = ["oclgrind-kernel", "--data-races", "--uninitialized", f"{name}.sim"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    said = done.stdout + done.stderr
    kinds = {
        "data race": r"data race",
        "divergence": r"divergence",
        "invalid access": r"Invalid (read|write)",
        "uninitialised": r"[Uu]ninitialized",
        "other": r"rror:",
    }
    found = [kind for kind, pattern in kinds.items() if re.search(pattern, said)]
    return {"reported": bool(found), "kinds": found}


def main() -> None:
    said = subprocess.run(["oclgrind-kernel", "--version"], capture_output=True, text=True).stdout
    version = re.search(r"Oclgrind ([\d.]+)", said)
    rows = []
    for name in LAUNCHES:
        for kind, line, source in mutants((HERE / f"{name}.cl").read_text()):
            rows.append({"kernel": name, "removed": kind, "line": line, **run(name, source)})
            print(*rows[-1].values())
    record = {"version": version[1] if version else "", "runs": rows}
    records.write(records.RESULTS / "mutation-oclgrind.json", record)


if __name__ == "__main__":
    main()
