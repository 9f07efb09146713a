"""Requests to the shared memory of a cluster, beside Nsight Compute's counts of the same kernels.

A row of dsmem_h200.json: requests and wavefronts of the block's own shared memory, and wavefronts
of other blocks', all per executed instruction (validation/dsmem.py).
"""

import json
from pathlib import Path

import pytest
from dsmem_requests import REPEATS, Case, cases, ptx

import smemkern

MEASURED = json.loads((Path(__file__).parent / "dsmem_h200.json").read_text())["cases"]
CASES = {str(case): case for case in cases()}
REMOTE = ("remote_load", "remote_store", "remote_atomic")


def rows(case: Case) -> list[smemkern.SharedRow]:
    kernel = smemkern.Kernel(ptx(case.instruction, case.blocks), "k")
    arguments = case.arguments(REPEATS)
    return list(smemkern.trace(kernel, case.blocks, 32, *arguments, hazards=False).shared)


def is_exact(case: Case) -> bool:
    """Not: atomics, and loads and stores that access several other blocks."""
    return not case.is_atomic and (case.is_async or len({*case.ranks} - {0}) < 2)


def test_every_case_is_measured():
    assert list(MEASURED) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_own_shared_memory_is_counted_apart(name):
    own = [row for row in rows(CASES[name]) if row.op not in REMOTE]
    requests, wavefronts, _ = MEASURED[name]
    assert sum(row.machine_requests for row in own) == REPEATS * requests
    assert sum(row.machine_wavefronts for row in own) == REPEATS * wavefronts


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if is_exact(case)])
def test_wavefronts_of_other_blocks(name):
    remote = [row for row in rows(CASES[name]) if row.op in REMOTE]
    assert sum(row.wavefronts for row in remote) == REPEATS * MEASURED[name][2]
    assert not any(row.exact for row in remote)


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
