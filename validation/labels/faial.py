"""Faial's examples: verdicts of races (examples/drf), and costs (examples/bc).

Faial proves: its verdict is about all sizes and all contents of arrays. Here each kernel runs with
a few sizes and random contents, so a race that needs others could be missed. Its checks are of one
block, or with --grid-level of different blocks; only findings of that level count. It does not
report equal writes. Files that test.ml lists as unsupported have their label in their name.

A cost in examples/bc is a number or a formula: the conflicts of a warp's accesses to shared memory,
or the sectors of its accesses to global memory.
"""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import smemkern
from labels import reasons
from labels.cases import Case, Run
from labels.formula import value_of

FOLDER = "elliotsayes/faial, folder examples"
ELEMENTS = 65536  # of each array
SIZES = (1, 2, 5, 64)  # of integer parameters that no option sets
DYNAMIC_BYTES = 16384
MAX_BLOCK = 1024
HEADER = """
#undef assert
typedef unsigned int uint;
#define __assume(condition) do { if (!(condition)) return; } while (0)
#define __requires(condition) __assume(condition)
#define assert(condition) __assume(condition)
#define __uniform_int(x) 1
"""
LABELS = {"0": "clean", "1": "race"}


# ---- races


def cases(folder: Path) -> list[Case]:
    drf = folder / "drf"
    text = (drf / "test.ml").read_text()
    tested, _, rest = text.partition("let unsupported")
    rows = [
        (name, tuple(re.findall(r'"([^"]*)"', options)), LABELS[code])
        for name, options, code in re.findall(r'^  "(\S+\.cu)", \[(.*?)\], (\d)', tested, re.M)
        if code in LABELS  # else a syntax error is expected
    ]
    for name in re.findall(r'^    "(\S+\.cu)";', rest, re.M):
        rows.append((name, (), "race" if name.startswith("racy-") else "clean"))
    return [_case(drf / name, options, label) for name, options, label in rows]


def _case(file: Path, options: tuple[str, ...], label: str) -> Case:
    source = file.read_text()
    joined = " ".join(options)
    entry, kinds = _signature(source)
    pinned = {name: int(n) for name, n in re.findall(r"\b(\w+)=(\d+)\b", joined)}
    grid_level = "--grid-level" in options
    return Case(
        name=f"{file.stem} {joined}".strip(),
        label=label,
        source=source,
        entry=entry,
        options=(*_header_options(), "-std=c++17", *(o for o in options if o.startswith("-D"))),
        runs=functools.partial(_runs, source, joined, kinds, pinned, grid_level),
        equal_writes=False,
        across_blocks=None if "--all-levels" in options else grid_level,
    )


@functools.cache
def _header_options() -> tuple[str, ...]:
    file = Path(tempfile.mkdtemp(prefix="referee-")) / "faial.h"
    file.write_text(HEADER)
    return f"-I{file.parent}", f"--pre-include={file.name}"


def _signature(source: str) -> tuple[str, list[tuple[str, str]]]:
    """The kernel's name, and (type, name) of its parameters; an array's type ends in *."""
    found = re.search(r"__global__\s+void\s+(\w+)\s*\(([^)]*)\)", source)
    assert found, "no kernel"
    template = "<float>" if re.search(r"template\s*<typename T>", source) else ""
    template = "<int>" if "IdxType" in source else template
    kinds = []
    for parameter in found[2].split(","):
        text = parameter.replace("const ", "").strip()
        name = re.findall(r"\w+", text.partition("[")[0])[-1]
        kind = re.sub(rf"\b{name}\b.*", "", text).strip()
        is_array = "*" in kind or "[" in text
        kinds.append((kind.replace("*", "").strip() + "*" * is_array, name))
    return found[1] + template, kinds


def _dims(text: str, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    found = re.search(rf"--{name}=\[?([\d,]+)", text)
    return tuple(int(n) for n in found[1].strip(",").split(",")) if found else default


def _argument(kind: str, name: str, size: int, pinned: dict[str, int]) -> Any:
    if kind.endswith("*"):
        dtype = np.float32 if kind in ("float*", "T*", "float2*") else np.int32
        return np.random.default_rng(len(name)).integers(0, 64, ELEMENTS).astype(dtype)
    if kind in ("float", "T"):
        return np.float32(1.5)
    if kind == "foo":  # struct foo {int x; int z; int *data; }
        return np.array([(size, 0, 0)], "i4, i4, u8")[0]
    return np.int32(pinned.get(name, size))


def _runs(
    source: str,
    options: str,
    kinds: list[tuple[str, str]],
    pinned: dict[str, int],
    grid_level: bool,
) -> Iterator[Run]:
    first_lines = "\n".join(source.splitlines()[:2])
    grid = _dims(f"{options} {first_lines}", "gridDim", (4 if grid_level else 1,))
    # Kernels with __syncwarp and no barrier of the block are for one warp.
    one_warp = "__syncwarp" in source
    block = _dims(f"{options} {first_lines}", "blockDim", (32 if one_warp else 64,))
    block = tuple(min(n, MAX_BLOCK) for n in block)  # one file says 2024
    for size in SIZES:
        arguments = tuple(_argument(kind, name, size, pinned) for kind, name in kinds)
        yield Run(f"n={size}", grid, block, arguments, DYNAMIC_BYTES)


# ---- costs

COSTS = re.compile(r'^  "(\S+\.cu)", \[(.*?)\], "(.*)";', re.M)
NUMBERS = {"n": 5, "m": 7, "lb": 2, "ub": 9, "step": 2, "step1": 2, "step2": 3, "wA": 1}


def extra(folder: Path) -> dict[str, Any]:
    """Costs of examples/bc: what test.ml says, and what a trace counts."""
    text = (folder / "bc" / "test.ml").read_text().partition("let unsupported")[0]
    shared, _, sectors = text.partition("let ua_tests")
    rows = []
    for part, kind in ((shared, "conflicts"), (sectors, "sectors")):
        for name, options, cost in COSTS.findall(part):
            joined = options.replace('"', "").replace(";", " ")
            row = _cost(folder / "bc" / name, joined, cost, kind)
            if row["counted"] != row["expected"]:
                row["reason"] = reasons.of_cost(name, row["expected"], row["counted"])
            rows.append(row)
    return {"costs": rows}


def _cost(file: Path, options: str, cost: str, kind: str) -> dict[str, Any]:
    row: dict[str, Any] = {"file": file.name, "options": options.strip(), "kind": kind}
    assumed = "".join(re.findall(r"__assume\(.*\)", file.read_text())).replace(" == ", "=")
    pinned = {name: int(n) for name, n in re.findall(r"\b(\w+)=(\d+)\b", f"{options} {assumed}")}
    numbers = {**NUMBERS, **pinned}
    row["formula"], row["expected"] = cost, value_of(cost, numbers)
    source = file.read_text()
    entry, kinds = _signature(source)
    block = _dims(re.sub("--block-dim +", "--blockDim=", options), "blockDim", (32,))
    # One warp: the sources' shared arrays are too short for the blocks that the options name.
    is_long = block == (512,)
    launch = block if is_long else (block[0], 32 // block[0]) if len(block) == 2 else (32,)
    arguments = [_argument(k, name, numbers.get(name, 1), pinned) for k, name in kinds]
    try:
        kernel = smemkern.Kernel(source, entry, (*_header_options(), "-std=c++17", "-G"))
        trace = smemkern.trace(kernel, 2, launch, *arguments, blocks=1, hazards=False)
    except smemkern.Error as error:
        return {**row, "counted": None, "error": str(error)[:200]}
    warps = max(1, launch[0] // 32)
    if kind == "sectors":
        return {**row, "counted": sum(r.sectors for r in trace.global_)}
    operations = {"--only-reads": "read", "--only-writes": "write"}
    wanted = operations.get(options.strip())
    counted = [r for r in trace.shared if wanted in (None, r.direction)]
    if wanted:  # a number of wavefronts per request
        return {**row, "counted": counted[0].wavefronts // counted[0].requests}
    return {**row, "counted": sum(r.wavefronts - r.requests for r in counted) // warps}
