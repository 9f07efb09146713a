"""Kernels and calls whose counts are not compared, or differ from a GPU's, and the reasons."""

from __future__ import annotations

import re

# Not compared: the order in which threads run decides how often these retry, or where they write.
BY_SCHEDULE = {
    "spin_lock": "threads retry until they hold the lock",
    "scan_look_back": "blocks poll until their predecessors have published",
    "union_find": "trees are merged in the order in which threads arrive",
    "bfs": "the first thread that reaches a node claims it",
    "compact_ballot-many": "each warp writes where the previous one stopped",
    "string_search": "matches are written in the order in which threads find them",
    "atomics_double": "a compare-and-swap loop",
}

# Compared, and different.
EXPLAINED = {
    "k_means": "float atomics are a retry loop, which repeats if warps collide: modelled",
    "argmax": "64-bit `atomicMax` is a loop, which ends early if nothing changes: modelled",
    "spmv_scalar": "ptxas unrolls the loop; lanes whose rows differ in length leave it at "
    "different places, and their loads become separate requests",
    "histogram_match": "the source loads `x[i]` twice, ptxas once",
    "global_state": "a module variable is aligned to a sector on the GPU, but not in the emulator",
    "recursion": "the hardware counts 20 requests more than the two stores of the machine code",
}

# The same for variants: (pattern of the row, counts, reason).
COPIES = ("cp.async wavefronts", "global load sectors")
LOADS = ("shared load wavefronts", "shared load requests")
OF_VARIANTS = [
    (
        r"pipelined|mma_\w+|fp64|sliced_k|small_k",
        COPIES,
        "`cp.async` copies in which some lanes read nothing, or half a sector: modelled",
    ),
    (
        r"mma_tf32x3|mma_tf32|fp64|tf32|tf32x3|fp16x3|fp16x1|fp16|bf16",
        LOADS,
        "if rows of C have an odd length, C is staged in shared memory; the PTX also loads columns "
        "past the edge, ptxas loads only what is stored",
    ),
    (
        r"fp16x3_guarded",
        LOADS,
        "the search of B's columns: all warps of the PTX load what they have found together, but "
        "only the first stores it; ptxas loads some of it there alone",
    ),
    (
        r"tf32",
        ("bulk load sectors",),
        "a multicast of boxes that TMA rounds to tf32 and in which K ends: the GPU counts up to "
        "two sectors more per row; the cause is not known",
    ),
    (
        r"ozaki2|mma_ozaki2",
        ("global load requests",),
        "the passes before the product, of operands with an odd pitch: the GPU counts fewer "
        "requests than the PTX has; the cause is not known",
    ),
]

# Rows whose accesses NVRTC joins otherwise than nvcc, which compiled what was measured.
OF_NVCC = ("skinny", "skinny_mma", "mma_fp16", "mma_bf16")


def not_measured(what: str, only: str) -> str:
    """The message for an operation, a variant or a kernel that the record lacks."""
    return (
        f"not measured yet: {what}. On a machine with a GPU and Nsight Compute, "
        f"`python validation/exact.py --only {only}` adds it to the GPU's record"
    )


def why(call: str, count: str) -> str:
    """Why a count differs for this call of a variant; "" if unexplained."""
    row = call.split()[1]
    for rows, counts, reason in OF_VARIANTS:
        if re.fullmatch(rows, row) and count in counts:
            return reason
    return ""
