"""Writes docs/generated/ before Sphinx reads it: one page per technique, and the notebooks' pages.

A page has the registry's row, the kernel's first comment, the difference of the code from the
variant that it builds on, a trace on the emulator, and results of benchmarks/results/. The complete
trace is a separate page (Trace.to_html). notebook_pages.py writes the pages of the notebooks.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import notebook_pages
import numpy as np
from kernel_story import code_of, story
from measured import measured
from sphinx.util import logging

import smemkern
import tables
from rows import table as variants_table
from smemkern import Trace, Variant, demo
from smemkern.__main__ import COMMANDS
from smemkern._trace.listing import listing

DOCS = Path(__file__).resolve().parents[1]
GENERATED = DOCS / "generated"
TRACES = GENERATED / "extra" / "traces"
TITLES = {"gemm": "Matrix products", "transpose": "Transposes", "probe": "Probes"}
ABOUT = {
    "gemm": "C = alpha A B + beta C, from the worst way up. Each rung differs from an earlier one "
    "by one idea, and its page says which.",
    "transpose": "Every byte is read once and written once, so a copy is the ceiling.",
    "probe": "Kernels that show one thing about memory each.",
}
MOST_CHANGED = 60  # lines; a longer difference is not shown


def table(header: Sequence[str], rows: Iterable[Sequence[object]], text_columns: int = 1) -> str:
    """A table; the first columns and the one named "source" are text, the others numbers."""
    rule = [
        "---" if at < text_columns or name == "source" else "--:" for at, name in enumerate(header)
    ]
    lines = [header, rule, *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def code(text: str) -> str:
    """Text as inline code in a table cell."""
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text.replace('|', chr(92) + '|')}{fence}"


def page_of(op: str, name: str) -> str:
    return f"{op}-{name}"


# ---- the trace


def is_skinny(row: Variant) -> bool:
    """Whether it is for results of few rows or columns."""
    return variants_table()[row.op, row.name].skinny is not None


def operands(row: Variant) -> tuple[tuple[Any, ...], str]:
    """Arrays for a small call, and its description."""
    rng = np.random.default_rng(0)
    if row.op == "transpose":
        return (rng.standard_normal((256, 256), dtype=np.float32),), "256 x 256 float32"
    if row.op == "probe":
        return (rng.standard_normal(4096, dtype=np.float32),), "4096 float32"
    m, n, k = (8, 256, 256) if is_skinny(row) else (128, 128, 64)
    both = demo.product(m, n, k, row.dtypes[0], row)
    return (both.a, both.b), f"{m} x {k} by {k} x {n}, {row.dtypes[0]}"


def counted_lines(trace: Trace) -> str:
    """Source lines that move data, with their costs."""
    rows = []
    for file, lines in listing(trace).items():
        for line in lines:
            if not line.counts:
                continue
            shared = ["", "", ""]
            if line.shared:
                factor = f"{line.factor:.2f}" if line.factor == 1 else f"**{line.factor:.2f}**"
                shared = [line.shared_requests, line.wavefronts, factor]
            sectors = [line.global_requests, line.sectors] if line.global_ else ["", ""]
            where = (
                f"{line.number}" if file == f"{trace.launch.kernel}.cu" else f"{file}:{line.number}"
            )
            more = " +" if line.inlined else ""
            rows.append((where + more, *shared, *sectors, code(line.text.strip())))
    header = ("line", "requests", "wavefronts", "factor", "global requests", "sectors", "source")
    return table(header, rows)


def traced(row: Variant) -> str:
    given, words = operands(row)
    trace = smemkern.trace(row.op, *given, variant=row.name)
    name = page_of(row.op, row.name)
    trace.to_html(TRACES / f"{name}.html")
    if trace.hazards:
        logging.getLogger(__name__).warning("%s: %s", name, trace.hazards[0].message)
    shared = (
        f"{trace.shared_wavefronts} wavefronts in shared memory for {trace.shared_requests} "
        f"requests, {trace.conflict_factor:.2f} times the fewest"
        if trace.shared
        else "no shared memory"
    )
    moved = trace.bytes_moved
    return (
        f"On the emulator, {words}: {shared}; {moved['global_read'] // 32} sectors read from "
        f"global memory and {moved['global_written'] // 32} written; {trace.warp_instructions} "
        f"warp instructions.\n\n{counted_lines(trace)}\n\n"
        "A factor is wavefronts over the fewest that the bytes could take. "
        "**+**: code that was inlined there from other lines, which stand for themselves as well. "
        f'<a href="../../traces/{name}.html">The whole trace</a>, with the source and the worst '
        "requests as pictures. The same from Python, or from a shell:\n\n"
        f"```python\n{call(row)}\n```\n\n{shell(row)}"
    )


def call(row: Variant) -> str:
    if row.op == "gemm":
        return f't = smemkern.trace("gemm", a, b, variant="{row.name}")\nprint(t.annotate())'
    return f't = smemkern.trace("{row.op}", x, variant="{row.name}")\nprint(t.annotate())'


def shell(row: Variant) -> str:
    shape = {"gemm": "128 128 64", "transpose": "256 256", "probe": "4096"}[row.op]
    if is_skinny(row):
        shape = "8 256 256"
    command = f"python -m smemkern trace {row.op} --variant {row.name} --shape {shape}"
    return f"```sh\n{command} --html page.html\n```"


# ---- a page


def facts(row: Variant) -> str:
    major, minor = divmod(row.min_sm, 10)
    operand = "a, b" if row.op == "gemm" else "x"
    said = [f'`smemkern.{row.op}({operand}, variant="{row.name}")`', ", ".join(row.dtypes)]
    said.append(f"from compute capability {major}.{minor} on")
    if row.accuracy != "float32":
        said.append(f"[accuracy](../../choosing.md#which-variants-are-considered) `{row.accuracy}`")
    if row.product_bits is not None:
        said.append(f"products right to {row.product_bits} bits")
    if row.differs_from:
        said.append(f"differs from [{row.differs_from}]({page_of(row.op, row.differs_from)}.md)")
    return " · ".join(said)


def parameters(row: Variant) -> str:
    if not row.params:
        return ""
    lines = []
    for name, param in row.params.items():
        legal = param.legal
        if isinstance(legal, range):
            values = f"{legal.start} to {legal.stop - 1}"
        else:
            values = ", ".join(map(str, legal))
        lines.append((f"`{name}`", param.default, values, param.doc))
    header = ("parameter", "default", "values", "what it is")
    return f"## Parameters\n\n{table(header, lines, 4)}\n\n"


def difference(row: Variant, rows: dict[str, Variant]) -> str:
    """The difference from the code of the variant below, if it is small enough to be useful."""
    if row.differs_from is None:
        return ""
    below = rows[row.differs_from]
    old, new = (code_of(r.source) for r in (below, row))
    lines = list(difflib.unified_diff(old, new, n=1, lineterm=""))[2:]
    changed = [line for line in lines if line[0] in "+-"]
    if not lines or len(changed) > min(MOST_CHANGED, len(old)):
        return ""
    body = "\n".join("…" if line.startswith("@@") else line for line in lines[1:])
    return f"## What changed since {below.name}\n\n```diff\n{body}\n```\n\n"


def technique(row: Variant, rows: dict[str, Variant]) -> str:
    numbers = measured(row, row.differs_from)
    return (
        f"# {row.name}\n\n"
        f"{{.facts}}\n{facts(row)}\n\n"
        f"{story(row.source)}\n\n{parameters(row)}{difference(row, rows)}"
        f"## What it does to memory\n\n{traced(row)}\n\n"
        + (f"## Measured\n\n{numbers}\n\n" if numbers else "")
        + kernel(row)
    )


def kernel(row: Variant) -> str:
    """The source without the first comment, which the page has above."""
    lines = code_of(row.source)
    first = len(row.source.splitlines()) - len(lines) + 1
    return (
        f"## The kernel\n\n`csrc/kernels/{variants_table()[row.op, row.name].file}`:\n\n"
        f"```{{code-block}} cuda\n:lineno-start: {first}\n\n{chr(10).join(lines)}\n```\n"
    )


# ---- the pages around them


def ladder_of(op: str, of_op: dict[str, Variant]) -> str:
    """The page of an operation: its techniques and their results."""
    lines = [
        (f"[{row.name}]({page_of(op, row.name)}.md)", row.summary, ", ".join(row.dtypes))
        for row in of_op.values()
    ]
    tree = "\n".join(page_of(op, name) for name in of_op)
    text = (
        f"# {TITLES[op]}\n\n{ABOUT[op]}\n\n{table(('technique', 'what it is', 'types'), lines, 3)}"
        f"\n\n```{{toctree}}\n:hidden:\n:titlesonly:\n\n{tree}\n```\n\n"
    )
    numbers = tables.numbers(op)
    if not numbers:
        return text
    picture = "![TFLOP/s of each rung, cuBLAS, the ceiling](../../images/ladder.svg)\n\n"
    return f"{text}## Measured\n\n{picture if op == 'gemm' else ''}{numbers}\n"


def overview(rows: dict[str, dict[str, Variant]]) -> str:
    parts = [
        "# Techniques\n\nEach is one file of CUDA C and one row of a table; each page here was "
        "made from the two when this site was built, with a trace that ran then, and measurements "
        "from `benchmarks/results/`.\n"
    ]
    parts += [f"- [{TITLES[op]}]({op}.md): {', '.join(of_op)}" for op, of_op in rows.items()]
    tree = "\n".join(rows)
    parts.append(f"\n```{{toctree}}\n:hidden:\n:titlesonly:\n\n{tree}\n```\n")
    return "\n".join(parts)


def command_line() -> str:
    """The page with the output of --help."""
    parts = ["# Every command\n\nWhat `--help` says.\n"]
    for name in ("", *COMMANDS):
        command = [sys.executable, "-m", "smemkern", *([name] if name else []), "--help"]
        environment = os.environ | {"COLUMNS": "88", "NO_COLOR": "1", "TERM": "dumb"}
        shown = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment, cwd="/"
        ).stdout
        title = f"## {name}\n\n" if name else ""
        parts.append(f"{title}```text\n{shown.strip()}\n```\n")
    return "\n".join(parts)


def from_above(text: str) -> str:
    """Text of a file next to docs/, with links relative to docs/generated/."""
    text = re.sub(r"\]\((?!https?:|#)", "](../../", text)
    return text.replace("](../../docs/", "](../")


def notebooks() -> str:
    """The index page of the notebooks, with the README's section."""
    names = notebook_pages.write(DOCS.parent / "notebooks", GENERATED / "notebooks")
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## (Notebooks\n.*?)(?=^## )", readme, re.M | re.S)
    text = re.sub(r"\((notebooks/\w+)\.ipynb\)", r"(\1.md)", section[1] if section else "")
    tree = "\n".join(f"notebooks/{name}" for name in names)
    return f"# {text}\n\n```{{toctree}}\n:hidden:\n:titlesonly:\n\n{tree}\n```\n"


def write(_app: Any, _config: Any) -> None:
    shutil.rmtree(GENERATED, ignore_errors=True)
    TRACES.mkdir(parents=True)
    techniques = GENERATED / "techniques"
    techniques.mkdir()
    rows: dict[str, dict[str, Variant]] = {}
    for row in smemkern.variants():
        rows.setdefault(row.op, {})[row.name] = row
    for op, of_op in rows.items():
        (techniques / f"{op}.md").write_text(ladder_of(op, of_op), encoding="utf-8")
        for row in of_op.values():
            file = techniques / f"{page_of(row.op, row.name)}.md"
            file.write_text(technique(row, of_op), encoding="utf-8")
    (techniques / "index.md").write_text(overview(rows), encoding="utf-8")
    (GENERATED / "commands.md").write_text(command_line(), encoding="utf-8")
    (GENERATED / "notebooks.md").write_text(notebooks(), encoding="utf-8")
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        text = (DOCS.parent / name).read_text(encoding="utf-8")
        (GENERATED / name.lower()).write_text(from_above(text), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", write)  # before Sphinx looks for html_extra_path
    return {"parallel_read_safe": True}
