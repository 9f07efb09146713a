"""Random PTX programs on the emulator and on a GPU: all registers and memory, bit for bit.

    python benchmarks/random_programs.py --count 20000     # writes results/random-programs.json
    python benchmarks/random_programs.py --show 17         # one program, without a GPU

tests/emu/random_programs.py says what a program is. One that differs is taken apart, statement by
statement, until what is left is needed to show the difference. The record keeps a digest of the
first programs and of what they leave, so that tests can compare where there is no GPU.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests" / "emu"
sys.path += [str(HERE), str(TESTS), str(TESTS.parent), str(HERE.parent)]

import program_writer as programs  # noqa: E402

Record = dict[str, Any]
KEPT = 2000  # programs whose digests the record keeps
TAKEN_APART = 8  # differences that a process takes apart
TOGETHER = 50  # programs a process takes at a time


def digest(seed: int, ptx: str, left: bytes) -> str:
    """Of a program's text, and of what it leaves."""
    return f"{zlib.crc32(ptx.encode()):08x}{hashlib.sha256(left).hexdigest()[:8]}"


def smaller(body: list[Any], differs: Callable[[], bool]) -> None:
    """Takes statements out of body, in place, as long as the program still differs."""
    for k in reversed(range(len(body))):
        taken = body.pop(k)
        if not differs():
            body.insert(k, taken)
            for part in taken.parts:
                if isinstance(part, list):
                    smaller(part, differs)


def compared(seed: int) -> tuple[list[str], str, list[Any]]:
    """The registers that differ, the digest on the emulator, and the statements."""
    body = programs.statements(seed)
    ptx = programs.module({"program": body})
    emu, gpu = (programs.run(ptx, "program", seed, device) for device in ("emu", "cuda"))
    return programs.differences(emu, gpu), digest(seed, ptx, emu.tobytes()), body


def taken_apart(seed: int, body: list[Any]) -> list[str]:
    def differs() -> bool:
        ptx = programs.module({"program": body})
        results = (programs.run(ptx, "program", seed, device) for device in ("emu", "cuda"))
        return bool(programs.differences(*results))

    smaller(body, differs)
    return [line for statement in body for line in statement.lines()]


def part(seeds: range) -> Record:
    found: Record = {"differ": [], "errors": [], "digests": []}
    for seed in seeds:
        try:
            registers, kept, body = compared(seed)
            found["digests"].append(kept)
            if registers:
                apart = taken_apart(seed, body) if len(found["differ"]) < TAKEN_APART else None
                found["differ"].append({"seed": seed, "registers": registers, "left": apart})
        except Exception as error:  # one program's must not end the others
            found["digests"].append("")
            found["errors"].append({"seed": seed, "error": str(error)[:300]})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--commit", default=os.environ.get("SMEMKERN_COMMIT"))
    parser.add_argument("--show", type=int, metavar="SEED")
    options = parser.parse_args()
    if options.show is not None:
        print(programs.module({"program": programs.statements(options.show)}))
        return 0

    from gpu import facts

    os.environ["CUDA_CACHE_DISABLE"] = "1"  # each program runs once
    end = options.seed + options.count
    parts = [
        range(first, min(first + TOGETHER, end)) for first in range(options.seed, end, TOGETHER)
    ]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        found = pool.map(part, parts, chunksize=1)
    record: Record = {
        **facts(options.commit),
        "seed": options.seed,
        "count": options.count,
        "differ": [one for f in found for one in f["differ"]],
        "errors": [one for f in found for one in f["errors"]],
        "digests": [one for f in found for one in f["digests"]][:KEPT],
    }
    path = options.results / "random-programs.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    for one in (*record["differ"], *record["errors"])[:20]:
        print(one)
    print(
        f"{options.count} programs, {len(record['differ'])} differ, {len(record['errors'])} not run"
    )
    return bool(record["differ"] or record["errors"])


if __name__ == "__main__":
    sys.exit(main())
