"""Random PTX programs on the emulator and on a GPU: all registers and memory, bit for bit.

    python validation/random_programs.py --count 20000     # writes results/random-programs.json
    python validation/random_programs.py --show 17         # one program, without a GPU

tests/emu/program_writer.py generates the programs. If a program differs, statements are removed as
long as it still differs. If emulator and GPU agree on code of ptxas -O0, the optimiser of ptxas
causes the difference. The record has digests of the first programs and of their results, so that
tests can compare without a GPU. Needs ptxas and CuPy.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests" / "emu"
sys.path += [
    str(HERE),
    str(HERE.parent / "benchmarks"),
    str(TESTS),
    str(TESTS.parent),
    str(HERE.parent),
]

import program_writer as programs  # noqa: E402

import records  # noqa: E402
import seeds  # noqa: E402

Record = dict[str, Any]
KEPT = 2000  # programs whose digests the record keeps
TAKEN_APART = 8  # differences that a process minimises by default
TOGETHER = 50  # programs per process at a time


def digest(seed: int, ptx: str, left: bytes) -> str:
    """A digest of a program's text, and of its results."""
    return f"{zlib.crc32(ptx.encode()):08x}{hashlib.sha256(left).hexdigest()[:8]}"


def smaller(body: list[Any], differs: Callable[[], bool]) -> None:
    """Removes statements from body, in place, as long as the program still differs."""
    for k in reversed(range(len(body))):
        taken = body.pop(k)
        if not differs():
            body.insert(k, taken)
            for part in taken.parts:
                if isinstance(part, list):
                    smaller(part, differs)


def compiled_unoptimised(ptx: str, entry: str) -> Any:
    """The entry as ptxas -O0 compiles it, for CuPy."""
    import cupy

    major_minor = cupy.cuda.Device().compute_capability
    with tempfile.TemporaryDirectory() as folder:
        source, image = Path(folder, "program.ptx"), Path(folder, "program.cubin")
        source.write_text(ptx)
        target = f"sm_{major_minor}a" if major_minor == "90" else f"sm_{major_minor}"
        subprocess.run(["ptxas", "-O0", f"-arch={target}", source, "-o", image], check=True)
        return cupy.RawModule(path=str(image)).get_function(entry)


def unoptimised(ptx: str, seed: int) -> np.ndarray:
    """The program's results on the GPU, compiled with ptxas -O0."""
    import cupy

    values, sums = programs.inputs(seed), np.zeros(2 * programs.TOTALS, np.uint32)
    kernel = compiled_unoptimised(ptx, "program")
    on_gpu = cupy.asarray(values), cupy.asarray(sums)
    kernel((1,), (programs.THREADS,), on_gpu)
    values, sums = (x.get() for x in on_gpu)
    return np.concatenate([values.view(np.uint8).ravel(), sums.view(np.uint8)])


def ran(seed: int, body: list[Any]) -> tuple[str, np.ndarray, np.ndarray]:
    """The program's text, and its results on the emulator and on the GPU."""
    ptx = programs.module({"program": body})
    emu, gpu = (programs.run(ptx, "program", seed, device) for device in ("emu", "cuda"))
    return ptx, emu, gpu


def difference(seed: int, apart: bool) -> tuple[str, Record | None]:
    """The digest of the emulator's results, and the difference from the GPU's."""
    body = programs.statements(seed)
    ptx, emu, gpu = ran(seed, body)
    kept, registers = digest(seed, ptx, emu.tobytes()), programs.differences(emu, gpu)
    if not registers:
        return kept, None
    optimiser = not programs.differences(emu, unoptimised(ptx, seed))
    if apart:
        smaller(body, lambda: bool(programs.differences(*ran(seed, body)[1:])))
    left = [line for statement in body for line in statement.lines()] if apart else None
    return kept, {"seed": seed, "registers": registers, "optimiser": optimiser, "left": left}


def part(some: range, apart: int) -> Record:
    found: Record = {"differ": [], "errors": [], "digests": []}
    for seed in some:
        try:
            kept, differs = difference(seed, len(found["differ"]) < apart)
            found["digests"].append(kept)
            found["differ"] += [differs] if differs else []
        except Exception as error:  # the other programs must still run
            found["digests"].append("")
            found["errors"].append({"seed": seed, "error": str(error)[:300]})
    return found


def recorded(found: list[Record], options: argparse.Namespace) -> Record:
    """The record that merges all parts."""
    from gpu import facts

    return {
        **facts(options.commit),
        "seed": options.seed,
        "count": options.count,
        "differ": [one for f in found for one in f["differ"]],
        "errors": [one for f in found for one in f["errors"]],
        "digests": [one for f in found for one in f["digests"]][:KEPT],
    }


def summary(record: Record, path: Path, what: str) -> bool:
    """Writes the record, prints unexplained differences, and returns whether there are any."""
    records.write(path, record)
    unexplained, failed = (
        [one for one in record[which] if not one.get("optimiser")] for which in ("differ", "errors")
    )
    for one in (*unexplained, *failed, *record["differ"])[:40]:
        print(one)
    print(
        f"{record['count']} {what}, {len(record['differ'])} differ, {len(unexplained)} of them "
        f"without ptxas's optimiser too, {len(record['errors'])} not run"
    )
    return bool(unexplained or failed)


def add_apart(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--apart", type=int, default=TAKEN_APART, help="differences that a process takes apart"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    seeds.add_arguments(parser, 20000)
    add_apart(parser)
    parser.add_argument("--show", type=int, metavar="SEED")
    options = parser.parse_args()
    if options.show is not None:
        print(programs.module({"program": programs.statements(options.show)}))
        return 0

    os.environ["CUDA_CACHE_DISABLE"] = "1"  # each program runs once
    record = recorded(seeds.in_parts(part, options, TOGETHER, options.apart), options)
    return summary(record, options.results / "random-programs.json", "programs")


if __name__ == "__main__":
    sys.exit(main())
