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

# (file, text of the line): the first that matches both.
REASONS = [
    (r"gemm_(tiled|conflicted|padded|swizzle)", r"for \(long long k0 = 0; k0 < g\.K;", ZEROS),
    (r"gemm_(vectorized|pipelined|double_buffer)", r"for \(long long k0 = 0; k0 < g\.K \+", ALWAYS),
    (r"gemm_(double_buffer|vectorized)", r"if \(fetch\)", LAST_ROUND),
    (r"gemm_pipelined", r"if \(k0 < g\.K\)", LAST_ROUND),
    (r"transpose_(naive|tiled|padded|swizzle)", r"for \(int r = threadIdx\.y", UNROLLED),
    (r"transpose_(naive|tiled|padded|swizzle)", r"if \(i < g\.rows && j < g\.cols\)", UNROLLED),
    (r"transpose_vectorized", r"if \(whole && rows_aligned", WIDE),
    (r"transpose_vectorized", r"for \(unsigned first = t; first < TILE \* TILE", ALWAYS),
    (r"transpose_vectorized", r"for \(unsigned e = t; e < TILE \* TILE", UNROLLED),
    (r"transpose_vectorized", r"if \(i0 \+ r < g\.rows && j0 \+ c < g\.cols\)", UNROLLED),
    (r"probe_stride_read", r"for \(int i = lane; i < WORDS|word\[i\] = i < g\.n_x", UNROLLED),
]


def text_of(source: str) -> str:
    """The line of csrc/kernels that "file:line" names."""
    file, line = source.split(":")
    return (ROOT / "csrc" / "kernels" / file).read_text().splitlines()[int(line) - 1].strip()


def reason(source: str) -> str:
    """Why what stands there can go; "" if nobody has said."""
    text = text_of(source)
    for file, pattern, why in REASONS:
        if re.match(file, source) and re.search(pattern, text):
            return why
    return ""
