"""The emulator's count of a pattern, from a trace of the measured kernel."""

from __future__ import annotations

import numpy as np

import smemkern

from .operations import OPERATIONS, WINDOW, Operation
from .play import KEY, compiled

# A matrix row costs as much as a store of 16 bytes per lane (csrc/emu/cost/banks.h).
ROW_STORE = OPERATIONS["st_v4_b32"]


def predicted(operation: Operation, pattern: np.ndarray) -> int:
    """Wavefronts per request to shared memory, or sectors per request to global memory."""
    table = np.ascontiguousarray(pattern[None])
    try:
        trace = _trace(operation, table)
    except smemkern.UnsupportedInstructionError:
        if operation.kind not in ("ldmatrix", "stmatrix"):
            raise
        table = table.copy()
        table[0, 0, operation.lanes :] = -1
        return sum(row.wavefronts for row in _trace(ROW_STORE, table).shared)
    if operation.space == "shared":
        return sum(row.wavefronts for row in trace.shared)
    # Loads of the table of offsets take 4 sectors each.
    sectors = sum(row.sectors for row in trace.global_)
    return sectors - 4


def _trace(operation: Operation, table: np.ndarray) -> smemkern.Trace:
    memory = np.zeros(WINDOW + 16, np.uint8)
    arguments = (table, memory, 0, KEY, 1)
    return smemkern.trace(compiled(operation.name, 1), 1, 32, *arguments, hazards=False)
