"""The generated part of docs/run.md: which of NVIDIA's cuda-samples run on the emulator."""

from __future__ import annotations

import re
from collections import Counter

from cells import Record, markdown
from records import read

REASONS = {  # in what a sample's record says: the row of the table
    "not done after": "not done within the time",
    "hazard detector's record": "the hazard detector's record does not fit in memory",
    "cuGraphConditional": "graphs with conditions",
    "__cudaCDP2|cdp": "launches from kernels",
    "cuIpc": "memory shared between processes",
    "CUDA library|NVRTC|libNVVM|NvSci|MPI": "another library",
    "graphics": "graphics",
    "waives": "waives itself: needs several GPUs or other features",
    "nvcc": "does not compile by itself",
}


def reason(why: str) -> str:
    return next((text for known, text in REASONS.items() if re.search(known, why)), "other")


def samples() -> str:
    record = read("cuda-samples")
    if not record:
        return "Not recorded yet."
    return f"{sentence(record)}\n\n{rows(record)}"


def sentence(record: Record) -> str:
    counts, all_ = record["counts"], record["samples"].values()
    late = sum(1 for row in all_ if row["result"] == "pass" and row.get("examined") is False)
    return (
        f"Of {len(all_)} samples {counts['pass']} pass their own check, {late} of them only "
        "without observers in the time that they had (15 to 40 seconds on two shared cores). "
        f"{counts.get('fail', 0)} fail, and {counts['left out']} were left out:"
    )


def rows(record: Record) -> str:
    n = Counter(
        (row["result"], reason(str(row.get("why"))))
        for row in record["samples"].values()
        if row["result"] != "pass"
    )
    lines = [(result, why, str(number)) for (result, why), number in sorted(n.items())]
    return markdown(("result", "why", "samples"), lines, 2)


def parts() -> dict[str, str]:
    return {"samples": samples()}
