"""Which public .cu files compile as they are: with NVRTC alone, and where nvcc is found.

    git clone https://github.com/karpathy/llm.c FOLDER/llm.c     # and the others of SUITES
    python validation/raw_sources.py FOLDER [--only llm.c] [--compiler nvrtc] [--more N]

The list is drawn from the repositories: all files of some, a sample with SEED of others. No file
gets an option. The rows go to RESULTS/raw-sources.json, which docs/your-own-kernel.md shows
(benchmarks/tables.py). --more N: N files of any other repository in FOLDER, by a fresh seed, which
is printed; they are not recorded.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import re
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import records
from smemkern import CompileError
from smemkern._compiler import compile as compiling

RECORD = "raw-sources.json"
SEED = 24
COMPILERS = ("nvrtc", "nvcc")


@dataclasses.dataclass(frozen=True)
class Suite:
    repository: str
    files: tuple[str, ...]
    sample: int = 0  # 0: all

    @property
    def name(self) -> str:
        return self.repository.partition("/")[2]


SUITES = (
    Suite("siboehm/SGEMM_CUDA", ("**/*.cu",)),
    Suite("karpathy/llm.c", ("dev/cuda/*.cu", "train_gpt2*.cu")),
    Suite("xlite-dev/LeetCUDA", ("kernels/**/*.cu",)),
    Suite("NVIDIA/cuda-samples", ("**/*.cu",), 13),
    Suite("ggml-org/ggml", ("src/ggml-cuda/**/*.cu",), 13),
)


def drawn(suite: Suite, folder: Path) -> list[Path]:
    root = folder / suite.name
    found = sorted({path for pattern in suite.files for path in root.glob(pattern)})
    return random.Random(SEED).sample(found, suite.sample) if suite.sample else found


def reason(error: Exception) -> str:
    """The first error of a log, without folders and positions."""
    lines = [line for line in str(error).splitlines() if "error" in line]
    text = re.sub(r"^.*?\d+\)?: ", "", lines[0] if lines else str(error).strip())
    return re.sub(r"\s+", " ", re.sub(r"(/[^\s/]+)+/", "", text))[:160]


def compiled(path: Path, compiler: str) -> dict[str, Any]:
    """How one file compiles: its kernels, or why there are none."""
    os.environ["SMEMKERN_COMPILER"] = compiler if compiler == "nvrtc" else ""
    begun = time.monotonic()
    try:
        found = compiling.unit(path).compiled()
        row = {"kernels": len(compiling.entries(found.ptx)), "by": found.compiler}
    except (CompileError, ValueError) as error:
        row = {"kernels": None, "by": None, "reason": reason(error)}
    return {**row, "seconds": round(time.monotonic() - begun, 1)}


def rows(suite: str, paths: list[Path], root: Path, compilers: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"suite": suite, "file": str(path.relative_to(root))} for path in paths
    ]
    for compiler in compilers:
        for row in found:
            row[compiler] = one = compiled(root / row["file"], compiler)
            told = "ok" if one["kernels"] is not None else one["reason"]
            print(f"{suite} {row['file']} {compiler}: {told} {one['seconds']} s", flush=True)
    return found


def fresh(folder: Path, many: int) -> list[Path]:
    """Files of repositories that are not in SUITES, by a new seed."""
    seed = secrets.randbelow(2**32)
    print(f"seed {seed}")
    own = {suite.name for suite in SUITES}
    roots = [path for path in sorted(folder.iterdir()) if path.is_dir() and path.name not in own]
    paths = sorted(path for root in roots for path in root.rglob("*.cu"))
    return random.Random(seed).sample(paths, min(many, len(paths)))


def record(found: list[dict[str, Any]]) -> None:
    """Writes the rows, beside what an earlier run has recorded of the same files."""
    known = records.read(Path(RECORD).stem) or {"rows": []}
    before = {(row["suite"], row["file"]): row for row in known["rows"]}
    now = {(row["suite"], row["file"]): row for row in found}
    merged = {key: before.get(key, {}) | now.get(key, {}) for key in {**before, **now}}
    records.write(records.RESULTS / RECORD, {**records.facts(), "rows": [*merged.values()]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="one repository's name")
    parser.add_argument("--compiler", choices=COMPILERS, help="one of them (both)")
    parser.add_argument("--more", type=int, default=0, metavar="N")
    given = parser.parse_args()
    compilers = [given.compiler] if given.compiler else list(COMPILERS)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["SMEMKERN_CACHE_DIR"] = cache
        if given.more:
            found = rows("more", fresh(given.folder, given.more), given.folder, compilers)
        else:
            chosen = [suite for suite in SUITES if given.only in (None, suite.name)]
            found = []
            for suite in chosen:
                paths = drawn(suite, given.folder)
                found += rows(suite.name, paths, given.folder / suite.name, compilers)
    for compiler in compilers:
        good = sum(row[compiler]["kernels"] is not None for row in found)
        print(f"{compiler}: {good} of {len(found)} files compile")
    if not given.more:
        record(found)


if __name__ == "__main__":
    main()
