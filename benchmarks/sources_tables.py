"""The generated part of docs/your-own-kernel.md, from the record of validation/raw_sources.py."""

from __future__ import annotations

from collections.abc import Sequence

from cells import Record, markdown
from records import read

NOT_YET = "Not recorded yet."
RECORD = "raw-sources"
COMPILERS = ("nvrtc", "nvcc")


def _cells(rows: Sequence[Record]) -> tuple[str, ...]:
    good = (sum(row[name]["kernels"] is not None for row in rows) for name in COMPILERS)
    return (str(len(rows)), *map(str, good))


def compiled() -> str:
    """One row per suite, their sum, and the files that do not compile."""
    record = read(RECORD)
    if not record:
        return NOT_YET
    rows = record["rows"]
    suites = dict.fromkeys(row["suite"] for row in rows)
    lines = [(name, *_cells([row for row in rows if row["suite"] == name])) for name in suites]
    lines.append(("sum", *_cells(rows)))
    table = markdown(("suite", "files", "compile with NVRTC alone", "with nvcc"), lines, 1)
    failed = [
        (row["file"].rpartition("/")[2], name, row[name]["reason"].replace("|", "\\|"))
        for row in rows
        for name in COMPILERS
        if row[name]["kernels"] is None
    ]
    why = markdown(("file", "with", "why not"), failed, 3) if failed else ""
    own = sum((row["nvcc"]["by"] or "").startswith("nvcc") for row in rows)
    bare = sum(row["nvrtc"]["kernels"] == 0 for row in rows)
    head = (
        f"{record['date']}, commit {record['commit']}, no options given. Where nvcc is found, "
        f"it compiles {own} of the {len(rows)} files itself; the others lack a header of the host, "
        f"such as PyTorch's, or are plain kernels. With NVRTC alone {bare} files have no kernel "
        "in their PTX: only host code, or templates that nothing instantiates."
    )
    return "\n\n".join(part for part in (head, table, why) if part)


def parts() -> dict[str, str]:
    """The generated parts by name."""
    return {"raw sources": compiled()}
