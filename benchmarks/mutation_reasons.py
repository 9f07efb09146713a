"""Why a removal that nobody reports changes no result: a reason for each source line it stands at.

mutation.py looks a line up here by its file and its text, and fails where it finds no reason.
"""

from __future__ import annotations

import re

from rows import ROOT

ZEROS = (
    "Only K = 0 takes this branch. Without it one round runs: its copies have tests of their own "
    "and write zeros, which add nothing."
)
LAST_ROUND = (
    "Skips the copy of a tile past K. Its loads have tests of their own and read nothing; what "
    "they store goes to a buffer that is not read again."
)
ALWAYS = "Passes a loop that every thread enters, whatever the arguments are: never taken."
UNROLLED = (
    "Of a loop that the compiler unrolled by four and whose rounds are a constant multiple of "
    "four: in the part for the rest, where no thread comes, or past the unrolled part, never taken."
)
WIDE = (
    "Chooses 16-byte accesses where all of a tile exists and is aligned. Without it the narrow "
    "form runs, which is right everywhere."
)
LAST_ROWS = "The warp stores nothing by way of shared memory after the last of its rows of C."
TWICE = (
    "One check decides how many bytes are copied and from where. Without it for one of the two, "
    "either 0 bytes are read or the array's first element, which exists: no thread uses it, or it "
    "is multiplied by 0 (wrong only for an infinity or a NaN). Without it for both is reported."
)
NEXT_ROW = (
    "Of a copy whose rows always have rows of the matrix below them: past K it reads the start of "
    "the next row, which exists and is multiplied by 0 (wrong only for an infinity or a NaN)."
)

# (what is removed, file, text of the line): the first that matches all.
REASONS = [
    (
        "bounds",
        r"gemm_(tiled|conflicted|padded|swizzle)",
        r"for \(long long k0 = 0; k0 < g\.K;",
        ZEROS,
    ),
    (
        "bounds",
        r"gemm_(vectorized|pipelined|double_buffer)",
        r"for \(long long k0 = 0; k0 < g\.K \+",
        ALWAYS,
    ),
    ("bounds", r"gemm_(double_buffer|vectorized)", r"if \(fetch\)", LAST_ROUND),
    ("bounds", r"gemm_pipelined", r"if \(k0 < g\.K\)", LAST_ROUND),
    ("bounds", r"transpose_(naive|tiled|padded|swizzle)", r"for \(int r = threadIdx\.y", UNROLLED),
    (
        "bounds|term",
        r"transpose_(naive|tiled|padded|swizzle)",
        r"if \(i < g\.rows && j < g\.cols\)",
        UNROLLED,
    ),
    ("bounds", r"transpose_vectorized", r"if \(whole && rows_aligned", WIDE),
    ("bounds", r"transpose_vectorized", r"for \(unsigned first = t; first < TILE \* TILE", ALWAYS),
    ("bounds", r"transpose_vectorized", r"for \(unsigned e = t; e < TILE \* TILE", UNROLLED),
    (
        "bounds|term",
        r"transpose_vectorized",
        r"if \(i0 \+ r < g\.rows && j0 \+ c < g\.cols\) \{",
        UNROLLED,
    ),
    (
        "bounds",
        r"probe_stride_read",
        r"for \(int i = lane; i < WORDS|word\[i\] = i < g\.n_x",
        UNROLLED,
    ),
    ("choice selp", r"gemm_pipelined|probe_(copy|pipeline)_async", r"COPY_ASYNC_", TWICE),
    ("barrier bar.warp.sync", r"sm_30_intrinsics", "", LAST_ROWS),
    ("term", r"gemm_pipelined", r"whole_k = k0 \+ BLOCK_K <= g\.K", NEXT_ROW),
]


def text_of(source: str) -> str:
    """The line of csrc/kernels that "file:line" names; "" of the toolkit's headers."""
    file, line = source.split(":")
    path = ROOT / "csrc" / "kernels" / file
    return path.read_text().splitlines()[int(line) - 1].strip() if path.exists() else ""


def reason(kind: str, removed: str, source: str) -> str:
    """Why that instruction, which stands there, can go; "" if nobody has said."""
    what, text = f"{kind} {removed}", text_of(source)
    for removals, file, pattern, why in REASONS:
        if re.match(removals, what) and re.match(file, source) and re.search(pattern, text):
            return why
    return ""
