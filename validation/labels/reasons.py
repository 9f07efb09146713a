"""Why a verdict of referee.py differs from a label, and why a cost differs from a formula."""

from __future__ import annotations

NOT_CALLED = "the file calls a function that it declares and does not define, so it cannot run"
CASES = {
    "racy-2d": "needs 4 MiB of shared memory: no GPU can launch it",
    "racy-atomics": "not valid CUDA C++: atomicInc on an int",
    "racy-device": "its array is a pointer variable that no host code sets: a null pointer",
    "racy-funcion-call-unknowns": NOT_CALLED,
    "drf-local-array": NOT_CALLED,
    "racy-loop-comma-in-cond": "the racing read is `x[0], j < n`; its value is not used, and no "
    "compiler loads it, optimised or not",
    "racy-shared-scalar": "nothing reads the variable, so the optimiser removes the racing store",
    "drf-shared-mem": "no race: it reads shared memory that was never written",
}
UNWRITTEN = "reads shared memory that it has never written, which this test does not ask about"
CONSAN = {  # by test
    "tma_wait_does_not_publish_overwritten_row": "a race: nothing orders two bulk loads into one "
    "buffer, which is read after a wait for the second one only; ConSan keeps the last one",
    "warpgroup_mma": UNWRITTEN,
    "warpgroup_mma2": UNWRITTEN,
    "ws_load_wait_store": UNWRITTEN,
    "ws_two_loads_two_bars": UNWRITTEN,
    "ws_two_loads_one_bar": UNWRITTEN,
    "ws_two_loads_two_bars_loop": UNWRITTEN,
    "ws_different_warp_sizes": UNWRITTEN,
    "ws_wgmma_wait_visibility": UNWRITTEN,
    "aliasing_shared_visibility_outstanding_write": UNWRITTEN,
}
POWERS = "Faial's sum leaves out the last step of a loop that doubles or halves its counter"
COSTS = {
    "loops-1-div.cu": POWERS,
    "loops-1-pow.cu": POWERS,
    "loops-1-pow-2.cu": POWERS,
    "loops-1-pow-unknown-bound.cu": POWERS,
    "loops-1-rsh.cu": POWERS,
    "loops-nested-2-pow.cu": POWERS,
    "unkn-tid.cu": NOT_CALLED,
}
BOUND = "the formula is an upper bound; a trace counts what a warp does"


def of_case(name: str) -> str | None:
    return CASES.get(name.partition(" ")[0]) or CONSAN.get(name.partition("[")[0])


def of_cost(file: str, expected: int, counted: int | None) -> str | None:
    if file in COSTS:
        return COSTS[file]
    return BOUND if counted is not None and counted < expected else None
