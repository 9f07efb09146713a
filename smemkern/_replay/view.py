"""The state of a recorded run at a step, as one warp sees it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import accesses
from .accesses import Access, bools
from .recording import LANES, NONE, Recording, Writer

_WAITS_AT_BARRIER = "barrier"
_LANE = np.dtype(
    [
        ("active", bool),
        ("executes", bool),
        ("exited", bool),
        ("waits", "U20"),
        ("instruction", np.int64),
    ]
)


class Event(NamedTuple):
    """Something that orders steps: a barrier, the end of a copy, an exit."""

    kind: str  # as in header["event_kinds"]
    warp: int | None  # index in header["warps"]
    lanes: int  # as a mask
    object: int  # barrier number, or the mbarrier's offset in shared memory


class HazardSteps(NamedTuple):
    """A hazard, and the steps of its accesses where the window has them."""

    kind: str
    message: str
    steps: tuple[int | None, ...]  # of the access that is later in the program, and of the other
    benign: bool


class View:
    """What a recording says of a step: Replay without the moves."""

    _recording: Recording
    _step: int
    _warp: int | None

    # ---- what there is ----

    @property
    def recording(self) -> bytes:
        """The recording's bytes: docs/replay.md."""
        return self._recording.data

    @property
    def decoded(self) -> Recording:
        """The same, as columns."""
        return self._recording

    @property
    def header(self) -> dict[str, Any]:
        return self._recording.header

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        return self._recording.columns

    @property
    def first(self) -> int:
        return self._recording.first

    @property
    def count(self) -> int:
        return self._recording.count

    @property
    def total(self) -> int:
        return self._recording.total

    @property
    def steps(self) -> range:
        """The steps of the window."""
        return range(self.first, self.first + self.count)

    def __len__(self) -> int:
        return self.total

    # ---- steps, lines, instructions ----

    def _index(self) -> int | None:
        """The current step's place in the columns; None at the end of the window."""
        index = self._step - self.first
        return index if index < self.count else None

    def conflicts(self, ways: float = 2) -> list[int]:
        """The steps of the window with an access of at least `ways` times its ideal wavefronts."""
        rows = accesses.conflicting_rows(self._recording)
        cost, ideal = self.columns["access_cost"][rows], self.columns["access_ideal"][rows]
        return self._steps_of("first_access", rows[cost >= ways * ideal.astype(float)])

    def _barrier_steps(self) -> list[int]:
        kind = self.header["event_kinds"].index("barrier_complete")
        return self._steps_of("first_event", np.flatnonzero(self.columns["event_kind"] == kind))

    def _steps_of(self, first: str, rows: NDArray[np.int64]) -> list[int]:
        found: list[int] = np.unique(accesses.steps_of(self._recording, first, rows)).tolist()
        return found

    def _touching(self, address: int) -> list[int]:
        """The steps with an access to a byte of shared memory."""
        rows = accesses.shared_rows(self._recording)
        first = accesses.addresses(self._recording, rows, False).astype(np.int64)
        width = self.columns["access_width"][rows].astype(np.int64)[:, None]
        active = accesses.bools(self.columns["access_active"][rows])
        hit = active & (first <= address) & (address < first + width)
        return self._steps_of("first_access", rows[hit.any(-1)])

    def _line(self, instruction: int) -> tuple[str, int] | None:
        """(file, line): of the user's code that the instruction is of, or was inlined in."""
        of = self.header["instructions"][instruction]
        files = self.header["files"]
        places = [(of["file"], of["line"]), *map(tuple, of["callers"])]
        for file, line in places:
            if file is not None and files[file]["text"] is not None:
                return (files[file]["name"], line)
        if of["file"] is not None:
            return (files[of["file"]]["name"], of["line"])
        return ("", of["ptx_line"])

    def _is_at(self, index: int, line: int, file: str | None) -> bool:
        of = self.header["instructions"][int(self.columns["step_instruction"][index])]
        files = self.header["files"]
        places = [(of["file"], of["line"]), *map(tuple, of["callers"])]
        named = [(files[at]["name"], number) for at, number in places if at is not None]
        named = named or [("", of["ptx_line"])]
        return any(number == line and file in (None, name) for name, number in named)

    @property
    def warp(self) -> int:
        if self._warp is not None:
            return self._warp
        index = self._index()
        if index is None:
            return int(self.columns["step_warp"][-1]) if self.count else 0
        return int(self.columns["step_warp"][index])

    @warp.setter
    def warp(self, warp: int) -> None:
        if not 0 <= warp < len(self.header["warps"]):
            raise IndexError(f"there is no warp {warp}: the recording has those of header['warps']")
        self._warp = warp

    def _next_of(self, warp: int, step: int) -> int | None:
        """The place of the warp's next step, from this one on."""
        begin = step - self.first
        ahead = np.flatnonzero(self.columns["step_warp"][begin:] == warp)
        return begin + int(ahead[0]) if ahead.size else None

    def position_of(self, warp: int, step: int) -> tuple[str, int] | None:
        """(file, line) at which the warp's next step is; None: it has none in the window."""
        at = self._next_of(warp, step)
        return None if at is None else self._line(int(self.columns["step_instruction"][at]))

    @property
    def instruction(self) -> dict[str, Any] | None:
        """The instruction that the warp runs next, of header["instructions"]; None: none."""
        at = self._next_of(self.warp, self._step)
        if at is None:
            return None
        found: dict[str, Any] = self.header["instructions"][self.columns["step_instruction"][at]]
        return found

    @property
    def position(self) -> tuple[str, int] | None:
        """(file, line) of that instruction; the file is "" for a line of PTX."""
        return self.position_of(self.warp, self._step)

    # ---- the state ----

    @property
    def lanes(self) -> NDArray[Any]:
        """The lanes of the warp, a structured array (32,).

        active: runs with the warp's next step. executes: and its guard holds. exited. waits: ""
        or for what: "barrier 0", "lanes". instruction: the one that it runs next, an index in
        header["instructions"]; -1: none in the window.
        """
        found = np.zeros(LANES, _LANE)
        found["instruction"] = -1
        begin = self._step - self.first
        mine = begin + np.flatnonzero(self.columns["step_warp"][begin:] == self.warp)
        missing = np.ones(LANES, bool)
        for at in mine:
            here = bools(self.columns["step_active"][at]) & missing
            found["instruction"][here] = self.columns["step_instruction"][at]
            missing &= ~here
            if not missing.any():
                break
        if mine.size:
            found["active"] = bools(self.columns["step_active"][mine[0]])
            found["executes"] = bools(self.columns["step_executed"][mine[0]])
        threads = bools(self.header["warps"][self.warp]["lanes"])
        found["exited"] = ~threads | self._exited()
        barrier = self._at_barrier()
        waits = ~found["active"] & ~found["exited"]
        found["waits"] = np.where(waits, "lanes", "")
        for lane, number in barrier.items():
            found["waits"][lane] = f"{_WAITS_AT_BARRIER} {number}"
        return found

    def _events_before(self, kinds: Sequence[str]) -> NDArray[Any]:
        end = int(self.columns["first_event"][self._step - self.first])
        wanted = [self.header["event_kinds"].index(kind) for kind in kinds]
        return np.flatnonzero(np.isin(self.columns["event_kind"][:end], wanted))

    def _exited(self) -> NDArray[np.bool_]:
        gone = np.zeros(LANES, bool)
        for at in self._events_before(["exit"]):
            if self.columns["event_warp"][at] == self.warp:
                gone |= bools(self.columns["event_lanes"][at])
        return gone

    def _at_barrier(self) -> dict[int, int]:
        """The barrier at which each waiting lane is."""
        waits: dict[int, int] = {}
        block = self.header["warps"][self.warp]["block"]
        complete = self.header["event_kinds"].index("barrier_complete")
        for at in self._events_before(["barrier_arrive", "barrier_complete"]):
            warp = int(self.columns["event_warp"][at])
            number = int(self.columns["event_object"][at])
            if warp == NONE or self.header["warps"][warp]["block"] != block:
                continue
            if self.columns["event_kind"][at] == complete:
                waits = {lane: other for lane, other in waits.items() if other != number}
            elif warp == self.warp and not self.columns["event_flags"][at] & 1:
                lanes = np.flatnonzero(bools(self.columns["event_lanes"][at]))
                waits |= dict.fromkeys(map(int, lanes), number)
        return waits

    def register(
        self, register: int | str, warp: int | None = None, step: int | None = None
    ) -> NDArray[Any] | None:
        """A register by lane, shape (32,); None if it has not been written.

        Parameters
        ----------
        register : int or str
            An index in header["registers"], or a name: of the function that the warp runs.
        warp, step : int, optional
            None: the current ones. A step of the window.
        """
        warp = self.warp if warp is None else warp
        step = self._step if step is None else step
        number = register if isinstance(register, int) else self._register_number(register)
        return self._recording.register(number, warp, step)

    def _function(self) -> dict[str, Any]:
        """The function that the warp runs."""
        of = self.instruction
        found: dict[str, Any] = self.header["functions"][of["function"] if of else 0]
        return found

    def _own_registers(self) -> range:
        of = self._function()
        return range(of["first_register"], of["first_register"] + of["registers"])

    def _register_number(self, name: str) -> int:
        for number in self._own_registers():
            if self.header["registers"][number]["name"] == name:
                return number
        raise KeyError(f"{self._function()['name']} has no register {name}")

    @property
    def registers(self) -> dict[str, NDArray[Any]]:
        """The registers of the warp's function that have been written, by name, each (32,).

        Predicates are bools. Registers that the PTX declares as bits have the type with which
        instructions use them. Lanes that have never written hold 0x7ff7 in each 16 bits.
        """
        found = {}
        for number in self._own_registers():
            value = self._recording.register(number, self.warp, self._step)
            if value is not None:
                found[self.header["registers"][number]["name"]] = value
        return found

    @property
    def locals(self) -> dict[str, NDArray[Any]]:
        """The variables of the source that the warp's next instruction has, by name.

        Kernels that were compiled with debug information (nvcc -G) have them. Scalars have the
        shape (32,), arrays (32, *shape); an array in shared memory has its own shape, and a struct
        is its bytes. A variable that is not yet written is missing.
        """
        at = self.instruction
        found: dict[str, NDArray[Any]] = {}
        for of in self.header["locals"] if at else []:
            assert at is not None
            for place in of["places"]:
                here = place["from"] < at["ptx_line"] < place["to"]
                value = (
                    self._local(of, place) if here and of["function"] == at["function"] else None
                )
                if value is not None:
                    found[of["name"]] = value
        return found

    def _local(self, of: dict[str, Any], place: dict[str, Any]) -> NDArray[Any] | None:
        """The value of a variable at a place; None: not known."""
        dtype = np.dtype(of["dtype"] or "u1")
        if place["register"] is not None:
            value = self._recording.register(place["register"], self.warp, self._step)
            if value is None or value.dtype == bool or value.ndim > 1:
                return value
            return value.view(dtype) if value.itemsize == dtype.itemsize else value.astype(dtype)
        for shared in self.header["shared"]:
            if shared["name"] == place["symbol"]:
                shape = tuple(of["shape"]) or (1,)
                fits = 0 < math.prod(shape) * dtype.itemsize <= shared["bytes"]
                return self.shared(name=shared["name"], dtype=dtype, shape=shape) if fits else None
        return self._in_local_memory(of, place, dtype)

    def _in_local_memory(
        self, of: dict[str, Any], place: dict[str, Any], dtype: np.dtype[Any]
    ) -> NDArray[Any] | None:
        """A variable in the stack frame, which register %SPL points to."""
        memories = self.header["memories"]
        number = next((k for k, m in enumerate(memories) if m.get("warp") == self.warp), None)
        names = {self.header["registers"][k]["name"]: k for k in self._own_registers()}
        frame = self.register(names["%SPL"]) if "%SPL" in names else None
        if number is None or frame is None or "depot" not in (place["symbol"] or ""):
            return None
        begin = int(frame[0]) % (1 << 40) + place["offset"]
        lanes = self.memory(number).reshape(-1, LANES).T
        data = np.ascontiguousarray(lanes).view(np.uint8)[:, begin : begin + of["size"]]
        if data.shape[1] < of["size"] or of["size"] % dtype.itemsize:
            return None
        bytes_of_struct = () if of["dtype"] else (-1,)
        values = np.ascontiguousarray(data).view(dtype)
        return values.reshape(LANES, *of["shape"], *bytes_of_struct)

    def vector(self, kind: int, at: int, size: int) -> NDArray[Any]:
        """A vector of section `words`: docs/replay.md."""
        return self._recording.vector(kind, at, size)

    def has_contents(self, number: int) -> bool:
        """Whether all words of a memory are known, and not only those that the window writes."""
        return self._recording.has_contents(number)

    def memory(self, number: int, step: int | None = None) -> NDArray[np.uint32]:
        """The words of a memory of header["memories"] before a step of the window."""
        return self._recording.memory(number, self._step if step is None else step)

    def writer(self, number: int, word: int, step: int | None = None) -> Writer | None:
        """Who wrote a word of a memory last before a step of the window; None: not known."""
        return self._recording.writer(number, word, self._step if step is None else step)

    def _shared_memory(self, block: int | None) -> int:
        blocks = self.header["blocks"]
        if not blocks:
            raise ValueError("the window has no step")
        if block is None:
            block = self.header["warps"][self.warp]["block"]
        if not 0 <= block < len(blocks):
            raise IndexError(f"there is no block {block}: the recording has those in the header")
        number: int = blocks[block]["shared"]
        return number

    def shared(
        self,
        block: int | None = None,
        dtype: Any = None,
        shape: tuple[int, ...] | None = None,
        name: str | None = None,
    ) -> NDArray[Any]:
        """A block's shared memory.

        Parameters
        ----------
        block : int, optional
            An index in header["blocks"]; None: that of the warp.
        dtype, shape : optional
            Of the elements: from the start, as many as the shape has. None: uint32, all of it.
        name : str, optional
            Of an array in header["shared"], as the source has it: only that array, by default with
            its own type and rows.
        """
        number = self._shared_memory(block)
        data = self.memory(number).view(np.uint8)[: self.header["memories"][number]["bytes"]]
        if name is not None:
            of = self._shared_array(name)
            data = data[of["offset"] : of["offset"] + of["bytes"]]
            dtype = dtype or _element_type(of)
            if shape is None and of["cols"]:
                shape = (-1, of["cols"])
        dtype = np.dtype(dtype or np.uint32)
        whole = data[: data.size // dtype.itemsize * dtype.itemsize].view(dtype)
        if shape is None:
            return whole
        if -1 in shape:
            return whole.reshape(shape)
        return whole[: int(np.prod(shape))].reshape(shape)

    def _shared_array(self, name: str) -> dict[str, Any]:
        for of in self.header["shared"]:
            if name in (of["label"], of["name"], of["label"].rpartition("::")[2]):
                found: dict[str, Any] = of
                return found
        known = ", ".join(of["label"] for of in self.header["shared"]) or "none"
        raise KeyError(f"no array {name} in shared memory; there are: {known}")

    def writers(self, block: int | None = None) -> list[Writer | None]:
        """Who wrote each word of a block's shared memory last: (warp, lane, step, instruction)."""
        return self._recording.writers(self._shared_memory(block), self._step)

    # ---- the current step ----

    @property
    def accesses(self) -> list[Access]:
        """The requests that the current step makes."""
        return self.accesses_of(self._step)

    def accesses_of(self, step: int) -> list[Access]:
        """The requests that a step of the window makes."""
        return accesses.accesses_of(self._recording, step)

    @property
    def events(self) -> list[Event]:
        """The events of the current step."""
        index = self._index()
        if index is None:
            return []
        first = self.columns["first_event"]
        found = []
        for at in range(int(first[index]), int(first[index + 1])):
            warp = int(self.columns["event_warp"][at])
            found.append(
                Event(
                    self.header["event_kinds"][self.columns["event_kind"][at]],
                    None if warp == NONE else warp,
                    int(self.columns["event_lanes"][at]),
                    int(self.columns["event_object"][at]),
                )
            )
        return found

    @property
    def hazards(self) -> list[HazardSteps]:
        """The hazards of the whole run; benign findings too."""
        return [
            HazardSteps(
                one["kind"],
                one["message"],
                tuple(party["step"] for party in one["parties"]),
                one["benign"],
            )
            for one in self.header["hazards"]
        ]


def _element_type(of: dict[str, Any]) -> Any:
    """The type of an array's elements, by its accesses."""
    kind = of["accessed"] or of["type"]
    by_kind = {"f": "f", "s": "i"}.get(kind[:1], "u")
    size = of["element"] or 4
    known = size in (1, 2, 4, 8) and kind[1:].isdigit() and int(kind[1:]) == 8 * size
    if not known or (by_kind == "f" and size == 1):
        return np.dtype(f"u{size if size in (1, 2, 4, 8) else 4}")
    return np.dtype(f"{by_kind}{size}")
