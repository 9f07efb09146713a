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

WARP_READS = (
    "What the warp has read there is wgmma's, which is the whole warp's, and lane 0 arrives when "
    "that is done."
)
SUMS = (
    "Orders wgmma's registers: the emulator has the sums at once (above). What wgmma reads in "
    "shared memory is waited for elsewhere, too."
)
NOT_REACHED = (
    "Of a stage of the ring, or of a block's next tile, that no shape comes to which launches this "
    "kernel: 132 blocks take 132 tiles before one has a second, and of a second one the last steps "
    "have free stages."
)

NUMBERS = (
    "No hazard: it says which numbers are added up, which part of K or whether C has been added. "
    "The result is another, and no access is out of order or out of bounds."
)
LARGE = (
    "Where a part of K ends, or keeps a number within 32 bits, which no shape here needs: at most "
    "other numbers are added up."
)
TWICE_MADE = (
    "Of a block that moved inwards at an edge: it makes elements of its neighbour's once more, "
    "from the same numbers."
)
PAST_K = (
    "Loads for the tile past the last one, which nobody uses: past the end of its row A goes on "
    "with the next one."
)
OWN_ONLY = (
    "Of one row along K (`gemm_skinny_1_along`): a thread reads only what it has put there itself."
)
TWICE_STORED = (
    "The first of a thread's columns always exists; and where all do, they would only be read and "
    "stored one by one, and then as a vector once more."
)
NOT_TALL = "Cuts the last band of tiles; no shape has as many tiles in a column as a band."
NEVER_PART = (
    "Where rows of C are aligned and end on 16 bytes, a vector of it is all in or all out: never "
    "taken."
)
NEVER_NAN = (
    "Only a sum that is NaN is computed again; past the matrix sums are of zeros, and never NaN."
)
FIRST_TILE = (
    "The first tile of K takes what is left of K by its length, so one end of it is checked for "
    "nothing."
)
WGMMA = r"tf32|tf32x3|fp16x3|fp16|bf16"
# (what is removed, file, text of the line, why, and if need be which rows): the first that matches.
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
    ("barrier bar.warp.sync", r"sm_30_intrinsics", "", WARP_READS, WGMMA),
    ("barrier bar.warp.sync", r"sm_30_intrinsics", "", LAST_ROWS),
    ("bounds", r"gemm_simt", r"for \(long long left", ZEROS),
    ("bounds", r"simt_tiles", r"LOAD_(VECTOR|WORDS)_IF", PAST_K),
    ("term", r"common", r"aligned && valid|i >= first && i < valid", TWICE_MADE, "simt"),
    ("term", r"gemm_simt", r"row < own\.row", TWICE_MADE),
    ("term", r"simt_tiles", r"at_k >= 0|exists \?", FIRST_TILE),
    ("choice", r"gemm_simt", r"filled \? filled", NUMBERS),
    ("choice", r"split_k", r"min\(part, more\)|part < more", NUMBERS),
    ("choice min", r"math_functions", "", LARGE),
    ("bounds", r"mma_gemm", r"is_chunks", WIDE),
    ("choice", r"mma_gemm", r"exists \? 16", NEXT_ROW),
    ("choice", r"mma_halves", r"odd \?", NUMBERS),
    ("choice", r"split_k", r"int y = 1; y < blockDim\.y|if \(beta != 0 && whole\)", NUMBERS),
    ("bounds|choice setp.eq", r"split_k", r"half = blockDim\.y / 2", ALWAYS),
    ("choice setp.ne", r"split_k", r"half = blockDim\.y / 2", NUMBERS),
    ("choice", r"split_k", r"PART_WIDE <= g\.N &&", WIDE),
    ("bounds|choice|term", r"split_k", r"!whole && column \+ k < g\.N", TWICE_STORED),
    ("choice", r"tile_order", r"min\(GROUP", NOT_TALL),
    ("value", r"common", r"return beta == 0", NEVER_PART, r"mma_.*"),
    ("barrier", r"skinny_parts", r"__syncthreads", OWN_ONLY),
    ("bounds|choice", r"mma_loop", r"for \(int tile = 0; tile < tiles", ZEROS),
    ("bounds", r"mma_words", r"else if \(aligned\)", NUMBERS),
    ("term", r"gemm_mma_tf32x3", r"sum != sum", NEVER_NAN),
    ("choice|term", r"mma_gemm", r"there\(i, k_left\)|row_exists", TWICE),
    ("term", r"mma_words", r"if \(along\)", NUMBERS),
    (r"proxy wgmma\.", r"hopper", "", SUMS),
    ("arrival|phase|init|proxy cp|barrier", r"hopper", "", NOT_REACHED, WGMMA),
    ("init|expect|barrier", r"hopper|transpose_tma", "", NOT_REACHED, "tma"),
    ("term", r"gemm_pipelined", r"whole_k = k0 \+ BLOCK_K <= g\.K", NEXT_ROW),
]


# What the emulator cannot show, and what is no hazard.
UNSEEN = (SUMS, NUMBERS, LARGE)


def text_of(source: str) -> str:
    """The line of csrc/kernels that "file:line" names; "" of the toolkit's headers, and of lines
    that a file of today has no longer."""
    file, line = source.split(":")
    paths = [ROOT / "csrc" / "kernels" / folder / file for folder in ("", "library", "include")]
    path = next((path for path in paths if path.exists()), None)
    lines = path.read_text().splitlines() if path else []
    return lines[int(line) - 1].strip() if int(line) <= len(lines) else ""


def reason(row: str, kind: str, removed: str, source: str) -> str:
    """Why that instruction of a row, which stands there, can go; "" if nobody has said."""
    what, text = f"{kind} {removed}", text_of(source)
    for removals, file, pattern, why, *rows in REASONS:
        here = re.match(file, source) and re.search(pattern, text)
        if here and re.match(removals, what) and (not rows or re.fullmatch(rows[0], row)):
            return why
    return ""
