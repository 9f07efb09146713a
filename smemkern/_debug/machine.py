"""What a recording says of a step: instructions, places, accesses, and who touches a byte.

A step is one instruction of one warp. State at a step is before the instruction executes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from os.path import basename
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._replay import accesses
from .._replay.accesses import Access
from .._replay.recording import LANES, Recording, Writer

READS = frozenset("load ldmatrix copy_async_read bulk_read matrix_read texture atomic".split())
WRITES = frozenset("store stmatrix copy_async_write bulk_write store_async atomic".split())
_ARRAY_MASK = (1 << 40) - 1


class Place(NamedTuple):
    """A line of a source file, or of the PTX (file None), and the calls that were inlined there."""

    file: str | None
    line: int
    callers: tuple[tuple[str | None, int], ...] = ()

    @property
    def depth(self) -> int:
        return len(self.callers)

    def __str__(self) -> str:
        return f"{basename(self.file)}:{self.line}" if self.file else f"PTX line {self.line}"


def lanes_of(mask: int) -> list[int]:
    return [lane for lane in range(LANES) if mask >> lane & 1]


class Machine:
    """The questions that the debugger asks of one window of a run."""

    def __init__(
        self,
        recording: Recording,
        variables: Callable[[int, int], dict[str, NDArray[Any]]] | None = None,
    ) -> None:
        self._variables = variables
        self.recording = recording
        self.header: dict[str, Any] = recording.header
        self.columns: dict[str, NDArray[Any]] = recording.columns
        self.first, self.count = int(self.header["first"]), int(self.header["count"])
        self.end = self.first + self.count
        self._cached_steps = lru_cache(None)(self._steps_of)

    # ---- steps ----

    def warp(self, step: int) -> int:
        return int(self.columns["step_warp"][step - self.first])

    def instruction(self, step: int) -> dict[str, Any]:
        at = int(self.columns["step_instruction"][step - self.first])
        return self.header["instructions"][at]

    def active(self, step: int) -> int:
        return int(self.columns["step_active"][step - self.first])

    def executed(self, step: int) -> int:
        return int(self.columns["step_executed"][step - self.first])

    def _steps_of(self, warp: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.columns["step_warp"] == warp) + self.first

    def steps_of(self, warp: int) -> NDArray[np.int64]:
        """All steps of a warp in the window."""
        return self._cached_steps(warp)

    def next_of(self, warp: int, step: int) -> int | None:
        """The first step of the warp from this one on."""
        steps = self.steps_of(warp)
        at = int(np.searchsorted(steps, step))
        return int(steps[at]) if at < len(steps) else None

    def before(self, warp: int, step: int) -> int | None:
        """The last step of the warp before this one."""
        steps = self.steps_of(warp)
        at = int(np.searchsorted(steps, step))
        return int(steps[at - 1]) if at else None

    # ---- places ----

    @cached_property
    def places(self) -> list[Place]:
        """By instruction."""
        return [self._place(one) for one in self.header["instructions"]]

    def _place(self, one: dict[str, Any]) -> Place:
        files = self.header["files"]
        if one["file"] is None:
            return Place(None, one["ptx_line"])
        callers = tuple(
            (None if file is None else files[file]["name"], line) for file, line in one["callers"]
        )
        return Place(files[one["file"]]["name"], one["line"], callers)

    def place(self, step: int) -> Place:
        return self.places[int(self.columns["step_instruction"][step - self.first])]

    @cached_property
    def line_starts(self) -> NDArray[np.bool_]:
        """By step: whether its warp comes to another line there, or back to the same one."""
        numbers: dict[Place, int] = {}
        of = np.array([numbers.setdefault(place, len(numbers)) for place in self.places] or [0])
        instruction = self.columns["step_instruction"].astype(np.int64)
        starts = np.ones(self.count, bool)
        for warp in range(len(self.header["warps"])):
            steps = self.steps_of(warp) - self.first
            ran = instruction[steps]
            starts[steps[1:]] = (of[ran[1:]] != of[ran[:-1]]) | (ran[1:] <= ran[:-1])
        return starts

    def text_of(self, file: str | None) -> list[str]:
        """The lines of a source, or of the PTX; none if they are not known."""
        if file is None:
            return str(self.header.get("ptx") or "").splitlines()
        for one in self.header["files"]:
            if one["name"] == file:
                return str(one.get("text") or "").splitlines()
        return []

    def files_named(self, name: str) -> list[str]:
        """The files of that name, with or without folders."""
        return [
            one["name"]
            for one in self.header["files"]
            if one["name"] == name or basename(one["name"]) == basename(name)
        ]

    def variables(self, warp: int, step: int) -> dict[str, NDArray[Any]]:
        """The source's variables by name, if the kernel was compiled with -G."""
        return self._variables(warp, step) if self._variables else {}

    # ---- warps and blocks ----

    def block_of(self, warp: int) -> dict[str, Any]:
        return self.header["blocks"][self.header["warps"][warp]["block"]]

    def launch_of(self, warp: int) -> dict[str, Any]:
        return self.header["launches"][self.block_of(warp)["launch"]]

    def thread(self, warp: int, lane: int) -> tuple[int, int, int]:
        number = self.header["warps"][warp]["warp"] * LANES + lane
        x, y, _ = self.launch_of(warp)["block"]
        return number % x, number // x % y, number // x // y

    def warp_of_thread(self, block: Sequence[int], thread: Sequence[int]) -> tuple[int, int] | None:
        """(warp, lane) of a thread; the first launch that has it in the recording."""
        for index, warp in enumerate(self.header["warps"]):
            of = self.block_of(index)
            x, y, _ = self.header["launches"][of["launch"]]["block"]
            number = thread[0] + x * (thread[1] + y * thread[2])
            if list(of["index"]) == list(block) and warp["warp"] == number // LANES:
                return index, number % LANES
        return None

    # ---- accesses ----

    def accesses(self, step: int) -> list[Access]:
        return accesses.accesses_of(self.recording, step)

    def memory_of(self, address: int) -> tuple[int, int] | None:
        """(memory, byte offset) of an address of global memory; None: no array of the call."""
        array = (address >> 40) - self.header["first_array"]
        for index, memory in enumerate(self.header["memories"]):
            if memory["kind"] == "array" and memory["array"] == array:
                return index, address & _ARRAY_MASK
        return None

    @lru_cache(maxsize=64)  # noqa: B019   # one machine per window
    def _rows_of(self, memory: int) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[Any]]:
        """The accesses to a memory: rows, offsets by lane, and whether the lane accesses it."""
        c, m = self.columns, self.header["memories"][memory]
        is_array = m["kind"] == "array"
        if is_array:
            space = self.header["spaces"].index("global")
            rows = np.flatnonzero(c["access_space"] == space)
        else:
            rows = np.flatnonzero(c["access_memory"] == memory)
        addresses = accesses.addresses(self.recording, rows, is_array)
        active = accesses.bools(c["access_active"][rows])
        if is_array:
            region = np.uint64(m["array"] + self.header["first_array"])
            active &= addresses >> np.uint64(40) == region
            addresses = addresses & np.uint64(_ARRAY_MASK)
        return rows, addresses, active

    def accessed_type(self, memory: int) -> str | None:
        """The type in the first instruction that accesses a memory: "f32"."""
        rows, _, active = self._rows_of(memory)
        if not active.any():
            return None
        [step] = self._steps_of_accesses(rows[active.any(-1)][:1]).tolist()
        found = re.search(r"\.([fusb](?:8|16|32|64))\b", self.instruction(step)["text"])
        return found[1] if found else None

    def touches(
        self, memory: int, low: int, high: int, ops: frozenset[str], lane: int | None = None
    ) -> NDArray[np.int64]:
        """The steps with an access of these operations to a byte from `low` to before `high`."""
        rows, addresses, active = self._rows_of(memory)
        wanted = [name in ops for name in self.header["operations"]]
        is_op = np.array(wanted)[self.columns["access_operation"][rows]]
        width = self.columns["access_width"][rows].astype(np.uint64)[:, None]
        hit = active & (addresses < np.uint64(high)) & (addresses + width > np.uint64(low))
        if lane is not None:  # of a bulk copy a lane is not a thread
            is_chunk = [name.startswith(("bulk", "matrix")) for name in self.header["operations"]]
            by_chunk = np.array(is_chunk)[self.columns["access_operation"][rows]]
            hit &= by_chunk[:, None] | (np.arange(LANES) == lane)
        touching = hit.any(-1)
        return self._steps_of_accesses(rows[touching & is_op])

    def arrivals(self, memory: int, low: int, high: int) -> NDArray[np.int64]:
        """The steps at which asynchronous copies write these bytes."""
        c = self.columns
        word = c["write_word"].astype(np.int64)
        rows = np.flatnonzero(
            (c["write_memory"] == memory) & (word >= low // 4) & (word <= (high - 1) // 4)
        )
        steps = accesses.steps_of(self.recording, "first_write", rows)
        issued = c["write_step"][rows]
        return np.unique(steps[issued != steps - self.first])

    def _steps_of_accesses(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.unique(accesses.steps_of(self.recording, "first_access", rows))

    def conflicts(self, ways: int) -> NDArray[np.int64]:
        """The steps with an access to shared memory that costs over `ways` times its ideal."""
        rows = accesses.conflicting_rows(self.recording)
        cost, ideal = self.columns["access_cost"][rows], self.columns["access_ideal"][rows]
        return self._steps_of_accesses(rows[cost > ways * ideal.astype(np.int64)])

    def shared_requests(self, low: int, high: int, limit: int) -> list[Access]:
        """The distinct requests to these bytes of shared memory, up to a number."""
        c = self.columns
        rows = accesses.shared_rows(self.recording)
        rows = rows[c["access_cost"][rows] > 0]
        found: dict[tuple[Any, ...], int] = {}
        addresses = accesses.addresses(self.recording, rows, False)
        for row, at in zip(rows.tolist(), addresses, strict=True):
            if low <= int(at[int(c["access_active"][row]).bit_length() - 1]) < high:
                what = c["access_operation"][row], c["access_active"][row], c["access_width"][row]
                found.setdefault((*map(int, what), at.tobytes()), row)
                if len(found) == limit:
                    break
        return [accesses.access(self.recording, row) for row in found.values()]

    # ---- events ----

    def events(self, kind: str) -> NDArray[np.int64]:
        """The steps with an event of that kind."""
        kinds = [name.startswith(kind) for name in self.header["event_kinds"]]
        rows = np.flatnonzero(np.array(kinds, bool)[self.columns["event_kind"]])
        return np.unique(accesses.steps_of(self.recording, "first_event", rows))

    # ---- values ----

    def words(self, memory: int, step: int) -> NDArray[np.uint32]:
        return self.recording.memory(memory, step)

    def writer(self, memory: int, offset: int, step: int) -> Writer | None:
        return self.recording.writer(memory, offset // 4, step)
