"""The requests in a recording."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .recording import LANES, NONE, Recording


class Access(NamedTuple):
    """One request of a step to one memory."""

    op: str  # "load", "store", "atomic", "bulk_write", ...
    space: str  # "shared", "global", "local", "const", "param"
    memory: int | None  # index in header["memories"]; None: global memory
    width: int  # bytes per lane
    active: NDArray[np.bool_]  # (32,)
    addresses: NDArray[np.uint64]  # (32,): offsets; in global memory the emulator's addresses
    wavefronts: int  # in global memory: 32-byte sectors
    ideal: int
    wavefront_index: NDArray[np.int64]  # (32,): in which wavefront a lane is served; -1: none
    explanation: str | None  # of a conflict

    @property
    def lanes(self) -> list[int]:
        """The active lanes."""
        found: list[int] = np.flatnonzero(self.active).tolist()
        return found

    @property
    def banks(self) -> NDArray[np.int64]:
        """The bank of each lane's first word, shape (32,); -1 for inactive lanes."""
        return np.where(self.active, self.addresses // 4 % 32, -1).astype(np.int64)


def bools(masks: NDArray[np.integer] | int) -> NDArray[np.bool_]:
    """Masks of lanes as bools, shape (..., 32)."""
    bits = np.asarray(masks).astype(np.int64)[..., None] >> np.arange(LANES) & 1
    return bits.astype(bool)


def steps_of(recording: Recording, first: str, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The step of each row of a table; `first` is the column of each step's first row."""
    at = np.searchsorted(recording.columns[first], rows, side="right") - 1
    return at + recording.first


def accesses_of(recording: Recording, step: int) -> list[Access]:
    """The requests of a step; none if the window does not have it."""
    index, first = step - recording.first, recording.columns["first_access"]
    if not 0 <= index < recording.count:
        return []
    return [access(recording, row) for row in range(int(first[index]), int(first[index + 1]))]


def access(recording: Recording, row: int) -> Access:
    columns, header = recording.columns, recording.header
    space = header["spaces"][columns["access_space"][row]]
    active = bools(columns["access_active"][row])
    found = addresses(recording, np.array([row]), space == "global")[0]
    waves, words = int(columns["access_waves"][row]), int(columns["access_words"][row])
    served = 0 if waves == NONE else columns["waves"][waves : waves + LANES].astype(np.int64)
    memory = int(columns["access_memory"][row])
    return Access(
        header["operations"][columns["access_operation"][row]],
        space,
        None if memory == NONE else memory,
        int(columns["access_width"][row]),
        active,
        np.where(active, found, np.uint64(0)),
        int(columns["access_cost"][row]),
        int(columns["access_ideal"][row]),
        np.where(active, served, -1),
        None if words == NONE else header["explanations"][words]["text"],
    )


def addresses(recording: Recording, rows: NDArray[np.int64], is_global: bool) -> NDArray[np.uint64]:
    """(rows, 32): the addresses of lanes; of inactive ones anything."""
    words, kind = recording.columns["words"], recording.columns["access_kind"][rows]
    at = recording.columns["access_at"][rows].astype(np.int64)
    size = 2 if is_global else 1  # words of an address
    result = np.zeros((len(rows), LANES), np.uint64)
    lane = np.arange(LANES, dtype=np.uint64)
    affine, raw = np.flatnonzero(kind == 0), np.flatnonzero(kind == 1)
    base, stride = (_numbers(words, at[affine] + size * k, size) for k in (0, 1))
    result[affine] = base[:, None] + lane * stride[:, None]
    result[raw] = _numbers(words, at[raw][:, None] + size * np.arange(LANES), size)
    return result if is_global else result & np.uint64(NONE)


def _numbers(words: NDArray[np.uint32], at: NDArray[np.int64], size: int) -> NDArray[np.uint64]:
    low = words[at].astype(np.uint64)
    return low if size == 1 else low | words[at + 1].astype(np.uint64) << np.uint64(32)


def shared_rows(recording: Recording) -> NDArray[np.int64]:
    """The rows of requests to shared memory."""
    shared = recording.header["spaces"].index("shared")
    return np.flatnonzero(recording.columns["access_space"] == shared)


def conflicting_rows(recording: Recording) -> NDArray[np.int64]:
    """Those that take more wavefronts than ideal."""
    cost, ideal = recording.columns["access_cost"], recording.columns["access_ideal"]
    rows = shared_rows(recording)
    return rows[cost[rows] > ideal[rows]]
