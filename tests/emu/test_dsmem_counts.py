"""Requests to the shared memory of a cluster, beside Nsight Compute's counts of the same kernels.

A row of dsmem_h200.json: requests and wavefronts of the block's own shared memory, wavefronts of
other blocks', and the sectors that went through the network, all per executed instruction
(validation/dsmem.py).
"""

import json
from functools import cache
from pathlib import Path

import pytest
from dsmem_requests import REPEATS, Case, cases, ptx

import smemkern

MEASURED = json.loads((Path(__file__).parent / "dsmem_h200.json").read_text())["cases"]
CASES = {str(case): case for case in cases() if str(case) in MEASURED}
REMOTE = ("remote_load", "remote_store", "remote_atomic")
# Own lanes of these go through a loop that the rule for the block's own memory does not have.
OTHER_LOOPS = ("red_add_f32",)
# The instrumented counter merges groups of these, or does not, against the hardware's counter.
INSTRUMENTED = ("ld128_c2 4 pairs/random/all", "ld128_c2 5 few/random/all")
ADDS = ("atom_add32", "atom_min32", "atom_exch32", "atom_add64", "red_add32")


@cache
def kernel(instruction: str, blocks: int) -> smemkern.Kernel:
    return smemkern.Kernel(ptx(instruction, blocks), "k")


def rows(case: Case) -> list[smemkern.SharedRow]:
    k = kernel(case.instruction, case.blocks)
    arguments = case.arguments(REPEATS)
    return list(smemkern.trace(k, case.blocks, 32, *arguments, hazards=False).shared)


def wavefronts(case: Case) -> int:
    return sum(row.wavefronts for row in rows(case) if row.op in REMOTE)


def lines(case: Case) -> int:
    """Of 128 bytes in other blocks."""
    pairs = zip(case.offsets, case.ranks, strict=True)
    return len({(offset // 128, rank) for offset, rank in pairs if rank > 0})


def is_exact(case: Case) -> bool:
    """Loads; stores within a line; atomics of integers within a line; st.async as first recorded.
    Others overlap with those before and after them, so their counts are not of one request."""
    if case.is_async:
        return len(str(case).split()) == 2  # unit, column, broadcast, ...
    return case.instruction.startswith("ld") or (
        lines(case) < 2 and (case.instruction in ADDS or not case.is_atomic)
    )


def test_measured_cases():
    assert set(MEASURED) == set(CASES)
    assert len(MEASURED) > 600 and sum(map(is_exact, CASES.values())) > 300


@pytest.mark.parametrize(
    "name",
    [n for n, c in CASES.items() if c.instruction not in OTHER_LOOPS and n not in INSTRUMENTED],
)
def test_own_shared_memory_is_counted_apart(name):
    own = [row for row in rows(CASES[name]) if row.op not in REMOTE]
    requests, wavefronts, _, _ = MEASURED[name]
    assert sum(row.machine_requests for row in own) == REPEATS * requests
    assert sum(row.machine_wavefronts for row in own) == REPEATS * wavefronts


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if is_exact(case)])
def test_wavefronts_of_other_blocks(name):
    assert wavefronts(CASES[name]) == REPEATS * MEASURED[name][2]
    assert not any(row.exact for row in rows(CASES[name]) if row.op in REMOTE)


@pytest.mark.parametrize(
    ("instructions", "equal"),
    [
        (("st32", "st64", "st128"), 0.85),
        (ADDS, 0.9),
        (("atom_cas32", "atom_cas64", "atom_exch64"), 0.65),
        (("st_async32", "st_async64", "st_async128", "red_async32"), 0.75),
    ],
)
def test_share_of_modelled_counts_that_are_equal(instructions, equal):
    """What docs/exactness.md states of them."""
    chosen = [name for name, case in CASES.items() if case.instruction in instructions]
    same = [wavefronts(CASES[name]) == REPEATS * MEASURED[name][2] for name in chosen]
    assert sum(same) >= equal * len(chosen)


def test_blocks_are_one_request():
    case = CASES["ld32_c4 alternate"]
    [remote] = [row for row in rows(case) if row.op == "remote_load"]
    assert (remote.requests, remote.wavefronts) == (REPEATS, REPEATS)
    assert remote.bytes == REPEATS * 24 * 4
    assert list(remote.worst_request.active) == [rank > 0 for rank in case.ranks]


@pytest.mark.parametrize(
    ("instruction", "op", "direction"),
    [
        ("ld64", "remote_load", "read"),
        ("st64", "remote_store", "write"),
        ("atom_cas32", "remote_atomic", "both"),
        ("st_async64", "remote_store", "write"),
        ("red_async32", "remote_store", "write"),
    ],
)
def test_rows_of_other_blocks(instruction, op, direction):
    [row] = rows(CASES[f"{instruction}_c2 unit"])
    assert (row.op, row.direction, row.requests) == (op, direction, REPEATS)
    assert row.bytes == REPEATS * 32 * row.width
    assert row.factor == 1
    assert row.worst_request.active.all()
