"""Generates the tables of README.md and of pages below docs, and the README's picture.

    python benchmarks/tables.py            # rewrite the text between the markers
    python benchmarks/tables.py --check    # fail if that would change anything

Measurements come from benchmarks/results/*.json, the counts of docs/reliability.md from the tests,
and the lists of csrc/kernels/README.md from variants.toml. No number is written by hand: a result
that is in no file is not claimed.
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
import notebook_record
import programs_tables
import records
import referee_tables
import reliability_tables
import sources_tables
import suites_tables
from cells import Record, label, markdown, number, percent, size, times, where
from claims import compared
from drawn_tables import drawn_calls
from ladder import LARGE, LARGEST, ODD, SQUARE, find, value
from rows import ROOT, parameter_sets, table

README = ROOT / "README.md"
EXACTNESS = ROOT / "docs" / "exactness.md"
HAZARDS = ROOT / "docs" / "hazards.md"
HOST = ROOT / "docs" / "host-arrays.md"
PERFORMANCE = ROOT / "docs" / "performance.md"
PROGRAMS = ROOT / "docs" / "run.md"
RELIABILITY = ROOT / "docs" / "reliability.md"
SOURCES = ROOT / "docs" / "your-own-kernel.md"
SUITES = ROOT / "docs" / "public-suites.md"
KERNELS = ROOT / "csrc" / "kernels" / "README.md"


# ---- reading results


def read(of: str) -> list[Record]:
    """All records whose names begin with `of`, one per file."""
    return [record for name in records.names(f"{of}-") if (record := records.read(name))]


def gpus(step: str = "gemm") -> list[Any]:
    """The records of benchmarks/gpu.py, one per GPU on which that step ran; if on none, [None].
    The one with most steps is first."""
    ran = [record for record in read("nvidia") if step in record]
    return sorted(ran, key=len, reverse=True) or [None]


def is_clean(results: Record) -> bool:
    tests, tools = results.get("tests"), results.get("sanitizers")
    return (tests is None or tests["exit_status"] == 0) and (
        tools is None or all(t["clean"] for t in tools.values() if isinstance(t, dict))
    )


def rungs(results: Record | None, *, brief: bool = False) -> str:
    """GEMM: one row per measured set of parameters; if brief, one row per variant."""
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
        if own and dtype != "float64" and "float64" in steps[name].dtypes:
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
        "TFLOP/s, from the median time between CUDA events; operands on the device, N(0, 1) data. "
        f"{where(part)}. cuBLAS through PyTorch {part['torch']}, in the same process. × cuBLAS: "
        f"speed relative to cuBLAS of the same accuracy, at {size(LARGE)}. "
    )
    if brief:
        kept = ("variant", "what it is", "type", size(LARGE), size(ODD), "× cuBLAS")
        return f"{said.strip()}\n\n{markdown(kept, _columns(header, lines, kept), 3)}"
    return (
        f"{said}Ceiling: peak throughput of the units that a variant computes with, at the highest "
        f"clock. Error: relative Frobenius norm of the difference from a float64 product, at "
        f"{size(LARGE)}.\n\n" + markdown(header, lines, 3)
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
        *("variant", "compared with", *(size(shape) for shape in (LARGE, LARGEST, ODD))),
        *("goal", f"error, {size(LARGE)}", "error of cuBLAS"),
    )
    return (
        "Speed relative to cuBLAS of the same accuracy (✓: the goal is met). "
        f"{where(results['gemm'])}.\n\n" + markdown(header, ladder.goals(results), 2)
    )


def _sets(steps: dict[str, Any]) -> list[tuple[str, Record]]:
    return [(name, params) for name, row in steps.items() for params in parameter_sets(row)]


def _below(row: Any) -> str:
    return f"`{row.differs_from}`" if row.differs_from else ""


def transposes(results: Record | None, *, brief: bool = False) -> str:
    """One row per set of parameters, with the emulator's counts; if brief, without them."""
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
        "Four-byte elements. Bytes read and written per second, as a share of those of a device "
        "copy of the same size; runs are interleaved."
    )
    source = where(results["transpose"])
    if brief:
        return f"{said} {source}.\n\n{markdown(header, _columns(header, lines, header), 2)}"
    return (
        f"{said} The last columns are counted by the emulator: sectors and wavefronts, as "
        f"multiples of the minimum. {source}.\n\n" + markdown((*header, *counts), lines, 2)
    )


def _counts(results: Record, name: str) -> list[str]:
    """Sectors and wavefronts of a variant, as multiples of the minimum."""
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
    """`auto` and its peers, over all calls of benchmarks/movement.py."""
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
    header = ("shape", "elements", "µs", "share of a copy", "goal", *movement.PEERS)
    behind = sum(call["ahead"] < 1 for call in calls)
    return (
        "Speed of `auto`, cublasSgeam, PyTorch and CuPy as a share of that of a device copy of the "
        f"same size, interleaved. {len(calls)} calls, of which {behind} are slower than a peer. "
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
    header = ("M warp instructions/s", "execution only", "with counts", "with counts and hazards")
    parts = [
        f"{record['cpu']}, {record['threads']} threads, {record['date']}, "
        f"commit {record['commit'] or 'unknown'}; GEMM of 256³, transposes of 1024², fp32.",
        markdown(header, lines, 1),
    ]
    if peer := record.get("peer"):
        counting, hazards = (f"{peer['numba'] / peer[m]:.0f}" for m in modes[1:])
        parts.append(
            f"Numba's CUDA simulator takes {number(peer['numba'], 2)} s for `tiled` at "
            f"{peer['n']}³: {counting} times as long as the emulator with counts, {hazards} times "
            "as long as with counts and hazards."
        )
    return "\n\n".join(parts)


def numbers(op: str) -> str:
    """All measurements of an operation's variants, without the column of descriptions."""
    by_op = {"gemm": rungs, "transpose": transposes}
    if op not in by_op:
        return ""
    parts = [by_op[op](results) for results in gpus(op) if results]
    return re.sub(r"^(\|[^|\n]*)\|[^|\n]*", r"\1", "\n\n".join(parts), flags=re.M)


def kernel_files() -> dict[str, str]:
    """The tables of csrc/kernels/README.md: one line per row of variants.toml, in its order."""
    tables: dict[str, list[tuple[str, ...]]] = {}
    for row in table().values():
        ladder_of_op = "probes" if row.op == "probe" else f"{row.op} ladder"
        what = f"{row.op} {row.name}" if row.in_library else row.name
        lines = tables.setdefault("library" if row.in_library else ladder_of_op, [])
        lines.append((f"[{what}]({row.file})", row.summary, row.differs_from or ""))
    header = ("kernel", "what it is", "differs from")
    return {name: markdown(header, lines, len(header)) for name, lines in tables.items()}


def sections() -> dict[str, str]:
    measured = gpus()
    return {
        "ladder": "\n\n".join(rungs(g, brief=True) for g in measured),
        "transpose": "\n\n".join(transposes(g, brief=True) for g in measured),
        "host": each(host_tables.summary, gpus("host")),
        "checked": each(checked, gpus("sanitizers")),
        "labels": referee_tables.summary(),
    }


def report(results: Record) -> str:
    """The report that benchmarks/gpu.py prints at its end."""
    return "\n\n".join(
        [rungs(results), goals(results), transposes(results), claims(results), checked(results)]
    )


def each(table: Callable[[Any], str], results: Iterable[Record | None]) -> str:
    return "\n\n".join(map(table, results))


def documents() -> dict[Path, dict[str, str]]:
    """The files with marked parts, and the text of each part by its name."""
    measured, counted = gpus(), read("exactness")
    return {
        README: sections(),
        KERNELS: kernel_files(),
        PERFORMANCE: {
            "every set": numbers("gemm"),
            "every transpose": numbers("transpose"),
            "claims": each(claims, measured),
            "emulator": emulator(),
            "drawn": each(drawn_calls, gpus("sweep")),
            "goals": each(goals, measured),
            "transposes": each(transpose_goals, measured),
        },
        HAZARDS: referee_tables.parts(),
        HOST: {
            "products": each(host_tables.products, gpus("host")),
            "host transposes": each(host_tables.transposes, gpus("host")),
            "limited": each(host_tables.limited, gpus("host")),
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
        SUITES: suites_tables.parts(),
        SOURCES: sources_tables.parts(),
        PROGRAMS: programs_tables.parts(),
    }


def rewritten(text: str, parts: dict[str, str] | None = None) -> str:
    """The document with the text between each <!-- begin: X --> and <!-- end: X --> replaced."""
    for name, part in (sections() if parts is None else parts).items():
        pattern = re.compile(rf"(<!-- begin: {name} -->\n).*?(<!-- end: {name} -->)", re.S)
        text, count = pattern.subn(lambda m, part=part: f"{m[1]}\n{part}\n\n{m[2]}", text)
        if count != 1:
            raise SystemExit(f"expected one part marked {name!r}, found {count}")
    return text


def pictured() -> Record | None:
    """The record that the picture shows: that of the first GPU with GEMM results."""
    return gpus()[0]


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
    if notebook_record.FILE.read_text(encoding="utf-8") != notebook_record.text():
        if check:
            print(f"{notebook_record.FILE.name} is stale: run python benchmarks/tables.py")
            return 1
        notebook_record.FILE.write_text(notebook_record.text(), encoding="utf-8")
    if (results := pictured()) and not ladder.is_fresh(results):
        if check:
            print(f"{ladder.PICTURE.name} is stale: run python benchmarks/tables.py")
            return 1
        ladder.picture(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
