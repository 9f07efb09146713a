"""Writes the README's tables and picture, and those of pages below docs, out of
benchmarks/results/*.json; counts of docs/reliability.md out of the tests; the lists of
csrc/kernels/README.md out of variants.toml.

    python benchmarks/tables.py            # rewrite what stands between the markers
    python benchmarks/tables.py --check    # fail if that would change anything

No number is written by hand: what is not in a results file is not claimed.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import c_mutant_tables
import exactness_tables
import host_tables
import ladder
import movement
import records
import reliability_tables
from cells import Record, label, markdown, number, percent, size, times, where
from claims import compared
from ladder import LARGE, LARGEST, ODD, SQUARE, find, value
from rows import ROOT, parameter_sets, table

README = ROOT / "README.md"
EXACTNESS = ROOT / "docs" / "exactness.md"
HOST = ROOT / "docs" / "host-arrays.md"
PERFORMANCE = ROOT / "docs" / "performance.md"
RELIABILITY = ROOT / "docs" / "reliability.md"
KERNELS = ROOT / "csrc" / "kernels" / "README.md"


# ---- reading results


def read(of: str) -> list[Record]:
    """All results that begin so, a file each."""
    return [record for name in records.names(f"{of}-") if (record := records.read(name))]


def gpus() -> list[Record]:
    """What benchmarks/gpu.py wrote, a file a GPU."""
    return read("nvidia")


def is_clean(results: Record) -> bool:
    tests, tools = results.get("tests"), results.get("sanitizers")
    return (tests is None or tests["exit_status"] == 0) and (
        tools is None or all(t["clean"] for t in tools.values() if isinstance(t, dict))
    )


def rungs(results: Record | None, *, brief: bool = False) -> str:
    """GEMM: a row for each set of parameters that was measured; in brief, a row a variant."""
    names = [name for op, name in table() if op == "gemm"]
    steps = {name: table()["gemm", name] for name in names}
    if results is None or "gemm" not in results:
        lines = [(f"`{n}`", _below(steps[n]), steps[n].summary) for n in names]
        return markdown(("variant", "differs from", "what it is"), lines, 3)

    peers = [("cuBLAS", d) for d in ("float32", "float64", "float16", "bfloat16")]
    peers.append(("cuBLAS TF32", "float32"))
    lines = []
    for name, dtype, params in [
        *((name, dtype, {}) for name, dtype in peers),
        *(
            (name, ladder.own_dtype(name), params)
            for name, params in _sets(steps)
            if not (brief and params)
        ),
    ]:
        at = [
            find(results, "gemm", name, dtype=dtype, shape=shape, params=params)
            for shape in (SQUARE, LARGE, ODD)
        ]
        own = name in steps
        if not own and at[1] is None:
            continue
        double = None
        if own and dtype != "float64":
            double = find(results, "gemm", name, dtype="float64", shape=LARGE, params=params)
        top = ladder.ceiling(results, name, dtype)
        error = value(at[1], "error")
        lines.append(
            (
                label(name, params) if own else name,
                steps[name].summary if own and not params else "",
                dtype,
                *(number(value(line, "tflops")) for line in at),
                percent(value(at[1], "tflops") / top),
                times(ladder.ratio(results, at[1])) if own else "",
                number(value(double, "tflops")) if own and dtype != "float64" else "",
                f"{error:.1e}" if error > 0 else "–",
            )
        )
    header = (
        *("variant", "what it is", "type"),
        *(size(shape) for shape in (SQUARE, LARGE, ODD)),
        *("of ceiling", "× cuBLAS", f"float64 {size(LARGE)}", "error"),
    )
    part = results["gemm"]
    said = (
        "TFLOP/s, median of runs between CUDA events, operands on the device, N(0, 1) data. "
        f"{where(part)}. cuBLAS through PyTorch {part['torch']}, in the same process; × cuBLAS: of "
        f"the same accuracy, at {size(LARGE)}. "
    )
    if brief:
        kept = ("variant", "what it is", "type", size(LARGE), size(ODD), "× cuBLAS")
        return f"{said.strip()}\n\n{markdown(kept, _columns(header, lines, kept), 3)}"
    return (
        f"{said}Ceiling: what the units that a rung uses could do "
        "at the highest clock without a pause. Error: relative Frobenius norm of the product of "
        f"{size(LARGE)} against float64.\n\n" + markdown(header, lines, 3)
    )


def _columns(
    header: Sequence[str], lines: Sequence[Sequence[str]], kept: Sequence[str]
) -> list[list[str]]:
    places = [header.index(name) for name in kept]
    return [[line[at] for at in places] for line in lines]


def goals(results: Record | None) -> str:
    if results is None or "gemm" not in results:
        return "Not yet measured."
    header = (
        *("variant", "beside", *(size(shape) for shape in (LARGE, LARGEST, ODD))),
        *("wanted", f"error, {size(LARGE)}", "cuBLAS' error"),
    )
    return (
        "Times as fast as the cuBLAS of the same accuracy (✓: as wanted). "
        f"{where(results['gemm'])}.\n\n" + markdown(header, ladder.goals(results), 2)
    )


def _sets(steps: dict[str, Any]) -> list[tuple[str, Record]]:
    return [(name, params) for name, row in steps.items() for params in parameter_sets(row)]


def _below(row: Any) -> str:
    return f"`{row.differs_from}`" if row.differs_from else ""


def transposes(results: Record | None, *, brief: bool = False) -> str:
    """A row for each set of parameters, with what the emulator counts; in brief, without that."""
    names = [name for op, name in table() if op == "transpose"]
    steps = {name: table()["transpose", name] for name in names}
    if results is None or "transpose" not in results:
        lines = [(f"`{n}`", _below(steps[n]), steps[n].summary) for n in names]
        return markdown(("variant", "differs from", "what it is"), lines, 3)
    shapes = ([4096, 4096], [8192, 8192], [4097, 8191])
    copies = [
        find(results, "transpose", "device copy", dtype="b32", shape=shape) for shape in shapes
    ]
    none = ("",) * 6
    lines = [("device copy, TB/s", "", *(number(value(c, "gbps") / 1000) for c in copies), *none)]
    for name, params in [*((name, {}) for name in movement.PEERS), *_sets(steps)]:
        at = [
            find(results, "transpose", name, dtype="b32", shape=shape, params=params)
            for shape in shapes
        ]
        shares = [
            percent(value(x, "gbps") / value(copy, "gbps"))
            for x, copy in zip(at, copies, strict=True)
        ]
        own = name in steps
        first = label(name, params) if own else name
        what = steps[name].summary if own and not params else ""
        lines.append(
            (first, what, *shares, *(_counts(results, name) if own and not params else none))
        )
    header = ("variant", "what it is", *(size(shape) for shape in shapes))
    counts = [
        f"{what}, {size(shape)}"
        for shape in movement.COUNTED
        for what in ("sectors read", "written", "wavefronts")
    ]
    said = (
        "Four-byte elements; bytes read and written a second, as a share of a device copy of the "
        "same bytes, in turns."
    )
    source = where(results["transpose"])
    if brief:
        return f"{said} {source}.\n\n{markdown(header, _columns(header, lines, header), 2)}"
    return (
        f"{said} Behind that what the emulator counts: sectors and wavefronts, as multiples of the "
        f"fewest. {source}.\n\n" + markdown((*header, *counts), lines, 2)
    )


def _counts(results: Record, name: str) -> list[str]:
    """Sectors and wavefronts of a rung, as multiples of the fewest."""
    cells = []
    for shape in movement.COUNTED:
        found = [
            line
            for line in results["transpose"].get("counted", ())
            if line["variant"] == name and line["shape"] == list(shape)
        ]
        if not found:
            return [""] * 6
        [line] = found
        fewest = math.prod(shape) * 4 / 32
        cells += [times(line["sectors_read"] / fewest), times(line["sectors_written"] / fewest)]
        ideal = line["wavefronts_ideal"]
        cells.append(times(line["wavefronts"] / ideal) if ideal else "none")
    return cells


def transpose_goals(results: Record | None) -> str:
    """`auto` over all calls of benchmarks/movement.py."""
    calls = results.get("transpose", {}).get("sweep", ()) if results else ()
    if not calls:
        return "Not yet measured."
    lines = []
    for call in calls:
        batch = f"{call['batch']} × " if call["batch"] > 1 else ""
        wanted = movement.wanted(call["dtype"], call["batch"], tuple(call["shape"]))
        share = call["of_copy"]
        mark = " ✓" if wanted and share >= wanted else ""
        theirs = (
            times(call["copy_ms"] / call["peers_ms"][name]) if name in call["peers_ms"] else ""
            for name in movement.PEERS
        )
        lines.append(
            (
                *(batch + size(call["shape"]), call["dtype"], number(call["ms"] * 1000)),
                *(times(share) + mark, f"{wanted}" if wanted else "", *theirs),
            )
        )
    header = ("shape", "elements", "µs", "of a copy", "wanted", *movement.PEERS)
    behind = sum(call["ahead"] < 1 for call in calls)
    return (
        "`auto`, cublasSgeam, PyTorch and CuPy as shares of the speed of a device copy of the same "
        f"bytes, in turns. {len(calls)} calls, {behind} behind a peer. "
        f"{where(results['transpose'])}.\n\n" + markdown(header, lines, 2)
    )


def claims(results: Record | None) -> str:
    header = ("what", "claimed", "measured", "why they differ")
    return markdown(header, compared(results or {}, find), len(header))


def checked(results: Record | None) -> str:
    if results is None:
        return "Not yet run on a GPU."
    parts = []
    if tests := results.get("tests"):
        words = ("passed", "failed", "skipped")
        counts = [f"{tests[word]} {word}" for word in words if word in tests]
        parts.append(f"Tests: {', '.join(counts)} ({where(tests)}).")
    if tools := results.get("sanitizers"):
        said = [
            f"{tool} {'clean' if t['clean'] else 'NOT clean'} over {t['calls']} calls"
            for tool, t in tools.items()
            if isinstance(t, dict)
        ]
        parts.append(f"compute-sanitizer: {', '.join(said)} ({where(tools)}).")
    return "\n".join(parts) or "Not yet run on a GPU."


def emulator() -> str:
    record = records.read("emulator")
    if record is None:
        return "Not yet measured."
    modes = ("bare", "counts", "hazards")
    lines = [
        (
            f"{line['op']} `{line['variant']}`",
            *(number(line["warp_instructions"] / line["seconds"][m] / 1e6) for m in modes),
        )
        for line in record["lines"]
    ]
    header = ("M warp instructions/s", "bare", "counting", "and looking for hazards")
    parts = [
        f"{record['cpu']}, {record['threads']} threads, {record['date']}, "
        f"commit {record['commit'] or 'unknown'}; GEMM of 256³, transposes of 1024², fp32.",
        markdown(header, lines, 1),
    ]
    if peer := record.get("peer"):
        counting, hazards = (f"{peer['numba'] / peer[m]:.0f}" for m in modes[1:])
        parts.append(
            f"Numba's CUDA simulator takes {number(peer['numba'], 2)} s for `tiled` at "
            f"{peer['n']}³: {counting} times as long as counting, {hazards} times as long as that "
            "with hazards."
        )
    return "\n\n".join(parts)


def numbers(op: str) -> str:
    """All that was measured of an operation's rungs, without the column that says what each is."""
    by_op = {"gemm": rungs, "transpose": transposes}
    if op not in by_op:
        return ""
    parts = [by_op[op](results) for results in gpus() if op in results]
    return re.sub(r"^(\|[^|\n]*)\|[^|\n]*", r"\1", "\n\n".join(parts), flags=re.M)


def kernel_files() -> dict[str, str]:
    """The tables of csrc/kernels/README.md: a line per row of variants.toml, in its order."""
    tables: dict[str, list[tuple[str, ...]]] = {}
    for row in table().values():
        ladder_of_op = "probes" if row.op == "probe" else f"{row.op} ladder"
        what = f"{row.op} {row.name}" if row.in_library else row.name
        lines = tables.setdefault("library" if row.in_library else ladder_of_op, [])
        lines.append((f"[{what}]({row.file})", row.summary, row.differs_from or ""))
    header = ("kernel", "what it is", "differs from")
    return {name: markdown(header, lines, len(header)) for name, lines in tables.items()}


def sections() -> dict[str, str]:
    measured = gpus() or [None]
    return {
        "ladder": "\n\n".join(rungs(g, brief=True) for g in measured),
        "transpose": "\n\n".join(transposes(g, brief=True) for g in measured),
        "host": each(host_tables.summary, measured),
        "checked": each(checked, measured),
    }


def report(results: Record) -> str:
    """What benchmarks/gpu.py prints at its end."""
    return "\n\n".join(
        [rungs(results), goals(results), transposes(results), claims(results), checked(results)]
    )


def each(table: Callable[[Any], str], results: Iterable[Record | None]) -> str:
    return "\n\n".join(map(table, results))


def documents() -> dict[Path, dict[str, str]]:
    """The files with marked parts, and what belongs into those."""
    measured, counted = gpus() or [None], read("exactness")
    return {
        README: sections(),
        KERNELS: kernel_files(),
        PERFORMANCE: {
            "every set": numbers("gemm"),
            "every transpose": numbers("transpose"),
            "claims": each(claims, measured),
            "emulator": emulator(),
            "goals": each(goals, measured),
            "transposes": each(transpose_goals, measured),
        },
        HOST: {
            "products": each(host_tables.products, measured),
            "host transposes": each(host_tables.transposes, measured),
            "limited": each(host_tables.limited, measured),
            "several": each(host_tables.several, read("several")) or host_tables.NOT_YET,
        },
        EXACTNESS: {
            "exactness": each(exactness_tables.patterns, counted),
            "variants": each(exactness_tables.variant_counts, counted),
            "corpus": each(exactness_tables.corpus_counts, counted),
            "engine": each(exactness_tables.engine_counts, counted),
        },
        RELIABILITY: {
            **reliability_tables.parts(),
            "C mutants": c_mutant_tables.summary(records.RESULTS / "c-mutants.json"),
        },
    }


def rewritten(text: str, parts: dict[str, str] | None = None) -> str:
    """A document with every part between <!-- begin: X --> and <!-- end: X --> made anew."""
    for name, part in (sections() if parts is None else parts).items():
        pattern = re.compile(rf"(<!-- begin: {name} -->\n).*?(<!-- end: {name} -->)", re.S)
        text, count = pattern.subn(lambda m, part=part: f"{m[1]}\n{part}\n\n{m[2]}", text)
        if count != 1:
            raise SystemExit(f"there are {count} parts marked {name!r}; there should be one")
    return text


def pictured() -> Record | None:
    """Whose ladder is drawn: of several GPUs the first."""
    return next((results for results in gpus() if "gemm" in results), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if it is stale")
    check = parser.parse_args().check
    for file, parts in documents().items():
        text = file.read_text(encoding="utf-8")
        new = rewritten(text, parts)
        if check and new != text:
            print(f"{file.name} is stale: run python benchmarks/tables.py")
            return 1
        if not check:
            file.write_text(new, encoding="utf-8")
    if (results := pictured()) and not ladder.is_fresh(results):
        if check:
            print(f"{ladder.PICTURE.name} is stale: run python benchmarks/tables.py")
            return 1
        ladder.picture(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
