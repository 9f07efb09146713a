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

from .._replay.recording import LANES, NONE, Recording, Writer

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


class Access(NamedTuple):
    """One access of a step. Addresses are byte offsets in the memory, or of global memory."""

    op: str
    space: str
    memory: int | None
    width: int
    active: int
    addresses: NDArray[np.uint64]
    cost: int
    ideal: int
    waves: NDArray[np.uint8]  # wavefront by lane; 255: not active
    words: int | None  # index of its explanation

    @property
    def lanes(self) -> list[int]:
        return lanes_of(self.active)


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
        first = self.columns["first_access"]
        at = step - self.first
        return [self._access(row) for row in range(int(first[at]), int(first[at + 1]))]

    def _access(self, row: int) -> Access:
        c, header = self.columns, self.header
        space = header["spaces"][int(c["access_space"][row])]
        memory, active = int(c["access_memory"][row]), int(c["access_active"][row])
        at, words = int(c["access_waves"][row]), int(c["access_words"][row])
        if at == NONE:
            waves = np.where([active >> lane & 1 for lane in range(LANES)], 0, 255).astype(np.uint8)
        else:
            waves = c["waves"][at : at + LANES]
        return Access(
            header["operations"][int(c["access_operation"][row])],
            space,
            None if memory == NONE else memory,
            int(c["access_width"][row]),
            active,
            self._addresses(np.array([row]), space == "global")[0],
            int(c["access_cost"][row]),
            int(c["access_ideal"][row]),
            waves,
            None if words == NONE else words,
        )

    def _addresses(self, rows: NDArray[Any], is_wide: bool) -> NDArray[np.uint64]:
        """(rows, 32): the addresses of lanes; of inactive ones anything."""
        c = self.columns
        words, kind = c["words"], c["access_kind"][rows]
        at = c["access_at"][rows].astype(np.int64)
        size = 2 if is_wide else 1
        result = np.zeros((len(rows), LANES), np.uint64)
        lane = np.arange(LANES, dtype=np.uint64)
        affine, raw = np.flatnonzero(kind == 0), np.flatnonzero(kind == 1)
        base, stride = (_numbers(words, at[affine] + size * k, size) for k in (0, 1))
        result[affine] = base[:, None] + lane * stride[:, None]
        each = at[raw][:, None] + size * np.arange(LANES)
        result[raw] = _numbers(words, each, size)
        return result if is_wide else result & np.uint64(NONE)

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
        addresses = self._addresses(rows, is_array)
        active = c["access_active"][rows].astype(np.int64)[:, None] >> np.arange(LANES) & 1 == 1
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
        step = int(self._steps_of_rows("first_access", rows[active.any(-1)][:1])[0])
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
        return self._steps_of_rows("first_access", rows[touching & is_op])

    def arrivals(self, memory: int, low: int, high: int) -> NDArray[np.int64]:
        """The steps at which asynchronous copies write these bytes."""
        c = self.columns
        word = c["write_word"].astype(np.int64)
        rows = np.flatnonzero(
            (c["write_memory"] == memory) & (word >= low // 4) & (word <= (high - 1) // 4)
        )
        steps = self._steps_of_rows("first_write", rows, unique=False)
        issued = c["write_step"][rows]
        return np.unique(steps[issued != steps - self.first])

    def _steps_of_rows(
        self, column: str, rows: NDArray[Any], unique: bool = True
    ) -> NDArray[np.int64]:
        at = np.searchsorted(self.columns[column], rows, side="right") - 1 + self.first
        return np.unique(at) if unique else at

    def conflicts(self, ways: int) -> NDArray[np.int64]:
        """The steps with an access to shared memory that costs over `ways` times its ideal."""
        c = self.columns
        shared = self.header["spaces"].index("shared")
        over = (c["access_cost"] > ways * c["access_ideal"].astype(np.int64)) & (
            c["access_space"] == shared
        )
        return self._steps_of_rows("first_access", np.flatnonzero(over))

    def shared_requests(self, low: int, high: int, limit: int) -> list[Access]:
        """The distinct requests to these bytes of shared memory, up to a number."""
        c = self.columns
        shared = self.header["spaces"].index("shared")
        rows = np.flatnonzero((c["access_space"] == shared) & (c["access_cost"] > 0))
        found: dict[tuple[Any, ...], int] = {}
        addresses = self._addresses(rows, False)
        for row, at in zip(rows.tolist(), addresses, strict=True):
            if low <= int(at[int(c["access_active"][row]).bit_length() - 1]) < high:
                what = c["access_operation"][row], c["access_active"][row], c["access_width"][row]
                found.setdefault((*map(int, what), at.tobytes()), row)
                if len(found) == limit:
                    break
        return [self._access(row) for row in found.values()]

    # ---- events ----

    def events(self, kind: str) -> NDArray[np.int64]:
        """The steps with an event of that kind."""
        kinds = [name.startswith(kind) for name in self.header["event_kinds"]]
        rows = np.flatnonzero(np.array(kinds, bool)[self.columns["event_kind"]])
        return self._steps_of_rows("first_event", rows)

    # ---- values ----

    def words(self, memory: int, step: int) -> NDArray[np.uint32]:
        return self.recording.memory(memory, step)

    def writer(self, memory: int, offset: int, step: int) -> Writer | None:
        return self.recording.writer(memory, offset // 4, step)


def _numbers(words: NDArray[Any], at: NDArray[Any], size: int) -> NDArray[np.uint64]:
    low = words[at].astype(np.uint64)
    return low if size == 1 else low | words[at + 1].astype(np.uint64) << np.uint64(32)
