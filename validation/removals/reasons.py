"""Why a removal that is not reported changes no result: one reason per source line.

mutation.py looks up each such removal by the file and the text of its source line. It fails if
there is no reason.
"""

from __future__ import annotations

import re

from rows import ROOT

ZEROS = (
    "Only K = 0 takes this branch. Without it the loop runs once; its copies have their own bounds "
    "checks and write zeros, which add nothing."
)
LAST_ROUND = (
    "Skips the copy of a tile past K. Its loads have their own bounds checks and read nothing; "
    "what they store goes to a buffer that is not read again."
)
ALWAYS = "Skips a loop that every thread enters, whatever the arguments are: never taken."
UNROLLED = (
    "In a loop that the compiler unrolled by four and whose constant trip count is a multiple of "
    "four: either in the remainder loop, which no thread enters, or after the unrolled part, where "
    "it is never taken."
)
WIDE = (
    "Selects 16-byte accesses if the whole tile exists and is aligned. Without it the narrow path "
    "runs, which is right for every tile."
)
LAST_ROWS = "After its last rows of C the warp stores nothing more through shared memory."
TWICE = (
    "One check decides both how many bytes are copied and from which address. Without it for one "
    "of the two, the copy reads either 0 bytes or the array's first element, which exists: that "
    "value is not used, or it is multiplied by 0 (wrong only for an infinity or a NaN). Removing "
    "the check for both is reported."
)
NEXT_ROW = (
    "In a copy of rows that always have another row of the matrix below them: past K it reads the "
    "start of the next row, which exists and is multiplied by 0 (wrong only for an infinity or a "
    "NaN)."
)

WARP_READS = (
    "Only wgmma has read this stage, as an operation of the whole warp; lane 0 arrives after it "
    "has completed."
)
REUNITES = (
    "The lanes of a warp come together here after one has issued a copy. The barrier that follows "
    "counts threads, and does not need them together."
)
OWN_PLACES = (
    "A thread copies 16 bytes to where it alone has read; where rows begin elsewhere, it copies "
    "to what others have read."
)
SUMS = (
    "Orders wgmma's accumulator registers; the emulator computes the sums immediately (see above). "
    "Other instructions also wait for wgmma's reads of shared memory."
)
NOT_REACHED = (
    "For a stage of the ring, or a block's next tile, that no tested shape of this kernel reaches. "
    "There are 132 blocks, so a block gets a second tile only if there are more than 132 tiles; "
    "the last steps of a second tile find free stages."
)

NUMBERS = (
    "Not a hazard: it selects which numbers are added, which part of K, or whether C is added. The "
    "result differs, but no access is out of order or out of bounds."
)
LARGE = (
    "Limits a part of K to the end of K, or a number to 32 bits, which no shape here needs. At "
    "most, other numbers are added."
)
TWICE_MADE = (
    "For a block that was moved inwards at an edge: it computes elements of its neighbour a second "
    "time, from the same numbers."
)
PAST_K = (
    "Loads for the tile past the last one, which is not used: past the end of a row of A they read "
    "the next row."
)
COPIED_BEFORE = (
    "Between the last tiles, which threads copied through registers: they did so before the "
    "barrier before this one, and nothing is copied any more."
)
FIRST_ROWS = (
    "Before the first rows of C that a warp turns: since the barrier of the block it has read "
    "nothing there."
)
ROWS_OF_TILE = "The caller has limited it to the rows of a tile."
NOT_STORED = "Reads an element of the warp's own rows that is not stored."
SAME_AGAIN = "Stores the first element of a row that begins at an even address again."
EITHER = "Chooses between two codes that store the same."
GPU_ALONE = (
    "Only in a GPU's memory C has rows that begin on 16-byte boundaries and do not end there: "
    "results of traces are contiguous."
)
IN_FLIGHT = (
    "Copies past the end of K are in flight here if A and B are aligned and C is not. Results of "
    "traces are contiguous, so only kernels for K-major B get there."
)
COPIED = (
    "For K-major operands with other elements between those of a row: those of traces are copied "
    "first, so only a GPU's memory has such."
)
HAS_ROW = "Threads without a row of C have returned, and a vector of sums has a column of it."
EXITS = (
    "For warps that only copy tiles. Other warps of the block wait for the cluster, so the "
    "emulator shows no hazard; on a GPU launches without it ended with an illegal address."
)
TWICE_STORED = (
    "A thread's first column always exists. If all its columns exist, they would only be read and "
    "stored one by one, and then again as a vector."
)
NOT_TALL = (
    "Shortens the last band of tiles; no tested shape has as many tiles per column as a band."
)
NEVER_PART = (
    "If the rows of C are aligned and end on 16 bytes, a vector lies entirely inside or entirely "
    "outside: never taken."
)
NEVER_NAN = (
    "Only a sum that is NaN is computed again; sums outside the matrix add zeros and are never NaN."
)
FIRST_TILE = (
    "The first tile of K is as long as the remainder of K, so the check at one of its ends is "
    "redundant."
)
WGMMA = r"tf32|tf32x3|fp16x3|fp16x3_guarded|fp16x1|fp16|bf16|ozaki2"
# (kind of removal, file, text of the source line, reason, optionally the variants), all but the
# reason as regular expressions. The first match counts.
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
    # __syncwarp, which is in that header of nvcc's and has its own line in NVRTC's PTX.
    ("barrier bar.warp.sync", r"sm_30_intrinsics|wgmma_ring", "", WARP_READS, WGMMA),
    ("barrier bar.warp.sync", r"sm_30_intrinsics|mma_words", "", LAST_ROWS),
    ("barrier bar.warp.sync", r"wgmma_guard", r"__syncwarp", REUNITES),
    ("barrier bar.sync", r"wgmma_pack", r"__syncthreads", OWN_PLACES),
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
    (
        "choice",
        r"split_k",
        r"left >= COUNT|blockDim\.y > 1|threadIdx\.y < half|row [<>]=? g\.M|by\.beta \* widen",
        NUMBERS,
    ),
    ("bounds", r"split_k", r"half = blockDim\.y / 2", ALWAYS),
    ("choice", r"split_k", r"half = blockDim\.y / 2", NUMBERS),
    ("choice", r"split_k", r"PART_WIDE <= g\.N &&", WIDE),
    ("bounds|choice|term", r"split_k", r"!whole && k < exist", TWICE_STORED),
    ("choice", r"split_k", r"min\(g\.N - column", LARGE),
    ("term|choice|bounds", r"split_k", r"threadIdx\.y > 0|own\.first|min\(g\.M|exist <=", HAS_ROW),
    ("choice", r"tile_order", r"min\(GROUP", NOT_TALL),
    ("value", r"common", r"return beta == 0", NEVER_PART, r"mma_.*"),
    ("choice", r"tile_order", r"min\(list\.band", NOT_TALL),
    ("choice", r"tile_order", r"list\.longer", NUMBERS),
    ("choice", r"mma_gemm", r"cluster", NUMBERS),
    ("choice", r"mma_gemm", r"range\.end \* BLOCK_K, g\.K|0x7fffffff|k_left = ", LARGE),
    ("bounds", r"mma_loop", r"copies\.left > 0", LAST_ROUND),
    ("bounds", r"mma_loop", r"if \(K == 0\)", ZEROS),
    ("barrier", r"mma_loop", r"__syncthreads", COPIED_BEFORE),
    ("barrier", r"mma_halves", r"__syncwarp", FIRST_ROWS),
    ("wait", r"mma_gemm", r"cp\.async\.wait_all", IN_FLIGHT, r"mma_fp16|mma_bf16"),
    ("choice", r"mma_halves|mma_words", r"min\((g\.[MN]|columns) - ", LARGE),
    ("bounds", r"mma_words", r"is_chunks\(C", WIDE),
    ("choice", r"row_stores", r"min\(to\.rows, 16\)", ROWS_OF_TILE),
    ("bounds", r"row_stores", r"% 16 == 0", WIDE),
    ("bounds", r"row_stores", r"exist >= 1", NOT_STORED),
    ("term", r"row_stores", r"if \(odd &&", SAME_AGAIN),
    ("bounds", r"row_stores", r"j < exist|row \+= lanes\.DOWN", GPU_ALONE),
    ("term", r"mma_halves", r"!turned", EITHER),
    ("barrier", r"cluster", r"barrier\.cluster\.wait", EXITS, r"fp16|bf16"),
    ("barrier", r"skinny_parts", r"__syncthreads", COPIED, "skinny_mma"),
    ("choice setp.lt", r"mma_loop", r"for \(; tile < ", NUMBERS),
    ("bounds|choice", r"mma_loop", r"for \(; tile < ", ZEROS),
    ("bounds", r"mma_words", r"else if \(aligned\)", NUMBERS),
    ("term", r"gemm_mma_tf32x3", r"sum != sum", NEVER_NAN),
    ("choice|term", r"mma_gemm", r"there\(i, k_left\)|row_exists", TWICE),
    ("term", r"mma_words", r"if \(along\)", NUMBERS),
    (r"proxy wgmma\.", r"hopper|mbarrier", "", SUMS),
    ("arrival|phase|init|proxy cp|barrier", r"hopper|mbarrier", "", NOT_REACHED, WGMMA),
    ("init|expect|barrier", r"hopper|mbarrier|transpose_tma", "", NOT_REACHED, "tma"),
    ("term", r"gemm_pipelined", r"whole_k = k0 \+ BLOCK_K <= g\.K", NEXT_ROW),
]


# Removals whose effect the emulator cannot show, or that are not hazards.
UNSEEN = (SUMS, NUMBERS, LARGE)


def text_of(source: str) -> str:
    """The text of line "file:line" below csrc/kernels.

    "" for headers of the toolkit, and for lines past the end of the current file.
    """
    file, line = source.split(":")
    paths = [ROOT / "csrc" / "kernels" / folder / file for folder in ("", "library", "include")]
    path = next((path for path in paths if path.exists()), None)
    lines = path.read_text().splitlines() if path else []
    return lines[int(line) - 1].strip() if int(line) <= len(lines) else ""


def reason(row: str, kind: str, removed: str, source: str) -> str:
    """Why this instruction of the variant `row`, from line `source`, can go; "" if unexplained."""
    what, text = f"{kind} {removed}", text_of(source)
    for removals, file, pattern, why, *rows in REASONS:
        here = re.match(file, source) and re.search(pattern, text)
        if here and re.match(removals, what) and (not rows or re.fullmatch(rows[0], row)):
            return why
    return ""
