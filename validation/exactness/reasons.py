"""Which kernels and calls are not compared yet or at all, which differ, and why."""

from __future__ import annotations

import re

# Not compared: how often these try, or where they write, is decided by who comes first.
BY_SCHEDULE = {
    "spin_lock": "threads try until they have the lock",
    "scan_look_back": "blocks read until their predecessors have published",
    "union_find": "trees are united in the order of arrival",
    "bfs": "who claims a node is who comes first",
    "compact_ballot-many": "warps write where the one before has left off",
    "string_search": "matches are written in the order of arrival",
    "atomics_double": "a loop of compare-and-swap",
}

# Compared, and different.
EXPLAINED = {
    "k_means": "float atomics are a loop, which goes round again where warps meet: modelled",
    "argmax": "64-bit `atomicMax` is a loop, which ends early where nothing changes: modelled",
    "spmv_scalar": "ptxas unrolls the loop; lanes whose rows differ in length leave it at "
    "different places, and their loads become requests of their own",
    "histogram_match": "the source loads `x[i]` twice, ptxas once",
    "global_state": "a variable of the module begins on a sector there, and not here",
    "recursion": "the counter has 20 requests more than the two stores that the machine code makes",
}

# The same of the variants: row, counts.
COPIES = ("cp.async wavefronts", "global load sectors")
LOADS = ("shared load wavefronts", "shared load requests")
OF_VARIANTS = [
    (
        r"pipelined|mma_\w+|fp64|sliced_k|small_k",
        COPIES,
        "copies through `cp.async` of which some lanes read nothing, or half a sector: modelled",
    ),
    (
        r"mma_tf32x3|fp64|tf32|tf32x3|fp16x3",
        LOADS,
        "where rows of C are odd it is stored from shared memory; the PTX loads for columns past "
        "the edge too, ptxas only what is stored",
    ),
]


def not_measured(what: str, only: str) -> str:
    """What is said of an operation, a variant or a kernel that the record does not have."""
    return (
        f"not measured yet: {what}. On a machine with a GPU and Nsight Compute, "
        f"`python validation/exact.py --only {only}` adds it to the GPU's record"
    )


def why(call: str, count: str) -> str:
    """Why a count of a call of a variant differs; "" if nobody has said."""
    row = call.split()[1]
    for rows, counts, reason in OF_VARIANTS:
        if re.fullmatch(rows, row) and count in counts:
            return reason
    return ""
