"""Reads a recording: its columns, and the state at any of its steps. docs/replay.md has the format.

Nothing is replayed: all changes are in the columns, in the order of steps. The changes of one
register, or of one word of memory, are found by a binary search.
"""

from __future__ import annotations

import json
import struct
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC = b"SMKREC1\n"
NONE = 0xFFFFFFFF
LANES = 32
UNINITIALIZED = 0x7FF77FF7  # a word of shared memory that nobody has written

_SECTION_TYPES: dict[str, np.dtype[Any]] = {
    "u8": np.dtype("u1"),
    "u16": np.dtype("<u2"),
    "u32": np.dtype("<u4"),
}
_TYPES = {
    **{f"{kind}{bits}": f"<{kind}{bits // 8}" for kind in "u" for bits in (16, 32, 64)},
    **{f"s{bits}": f"<i{bits // 8}" for bits in (16, 32, 64)},
    **{f"b{bits}": f"<u{bits // 8}" for bits in (16, 32, 64)},
    **{f"f{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
}


class Writer(NamedTuple):
    """Who wrote a word last."""

    warp: int | None  # index in header["warps"]; None: a warp that is not recorded
    lane: int
    step: int | None  # that wrote it or issued the copy; None: before the window
    instruction: int | None  # index in header["instructions"]


def split(data: bytes) -> tuple[dict[str, Any], memoryview]:
    """(header, the bytes of the sections) of a recording.

    Raises
    ------
    ValueError
        If it is no recording.
    """
    if len(data) < 12 or data[:8] != MAGIC:
        raise ValueError("these bytes are not a recording: they do not begin with SMKREC1")
    (length,) = struct.unpack_from("<I", data, 8)
    if 12 + length > len(data):
        raise ValueError("the recording is cut: its header is not complete")
    return json.loads(data[12 : 12 + length]), memoryview(data)[12 + length :]


def joined(header: dict[str, Any], sections: memoryview) -> bytes:
    """The recording with another header."""
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(12 + len(text)) % 8)
    return b"".join((MAGIC, struct.pack("<I", len(text)), text, sections))


def _columns(header: dict[str, Any], data: memoryview) -> dict[str, NDArray[Any]]:
    found = {}
    for name, at in header["sections"].items():
        dtype = _SECTION_TYPES[at["type"]]
        if at["at"] + at["count"] * dtype.itemsize > len(data):
            raise ValueError(f"the recording is cut: section {name} is not complete")
        found[name] = np.frombuffer(data, dtype, at["count"], at["at"])
    return found


class Changes:
    """Entries of a column by key, in the order of time."""

    def __init__(self, keys: NDArray[Any]) -> None:
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def last(self, key: int, end: int) -> int | None:
        """The last entry of the key before entry `end`; None: there is none."""
        low, high = np.searchsorted(self._keys, [key, key + 1])
        at = low + int(np.searchsorted(self._order[low:high], end))
        return int(self._order[at - 1]) if at > low else None


class Recording:
    """The columns of a recording, and the state before each of its steps.

    Attributes
    ----------
    data : bytes
    header : dict
    columns : dict of str to ndarray
    first, count, total : int
        Steps first to first + count - 1 are in the recording; the run has `total`.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.header, sections = split(data)
        self.columns = _columns(self.header, sections)
        self.first: int = self.header["first"]
        self.count: int = self.header["count"]
        self.total: int = self.header["total"]

    def index(self, step: int) -> int:
        """A step's place in the columns; the end of the window is one more."""
        if not self.first <= step <= self.first + self.count:
            raise IndexError(
                f"step {step} is not in the window: {self.first} to {self.first + self.count}"
            )
        return step - self.first

    # ---- registers ----

    def vector(self, kind: int, at: int, size: int) -> NDArray[Any]:
        """32 values of `size` bytes as unsigned integers; size 0: a predicate, as bools.

        Values of 16 bytes are pairs of 64-bit integers, shape (32, 2).
        """
        words = self.columns["words"]
        lanes = np.arange(LANES, dtype=np.uint64)
        if kind == 2:
            bits = np.uint64(words[at])
            return (bits >> lanes & np.uint64(1)).astype(bool)
        per_lane = max(1, size // 4)
        if kind == 1:
            raw = words[at : at + LANES * per_lane].reshape(LANES, per_lane)
            return _joined_words(raw, size)
        pair = _joined_words(words[at : at + 2 * per_lane].reshape(2, per_lane), size)
        if size == 16:
            return np.repeat(pair[:1], LANES, axis=0)
        with np.errstate(over="ignore"):
            values = pair[0].astype(np.uint64) + lanes * pair[1].astype(np.uint64)
        return values.astype(pair.dtype)

    @cached_property
    def _register_changes(self) -> Changes:
        registers = self.columns["delta_register"].astype(np.int64)
        return Changes(self.columns["delta_warp"].astype(np.int64) << 32 | registers)

    @cached_property
    def _initial_registers(self) -> dict[tuple[int, int], int]:
        pairs = zip(
            self.columns["initial_warp"].tolist(),
            self.columns["initial_register"].tolist(),
            strict=True,
        )
        return {pair: at for at, pair in enumerate(pairs)}

    def register(self, number: int, warp: int, step: int) -> NDArray[Any] | None:
        """A register of a warp before a step, by lane and of its type; None: never written."""
        end = int(self.columns["first_delta"][self.index(step)])
        of = self.header["registers"][number]
        at = self._register_changes.last(warp << 32 | number, end)
        prefix = "delta"
        if at is None:
            at, prefix = self._initial_registers.get((warp, number)), "initial"
        if at is None:
            return None
        kind, place = self.columns[f"{prefix}_kind"][at], self.columns[f"{prefix}_at"][at]
        return _typed(self.vector(int(kind), int(place), of["size"]), of.get("as") or of["type"])

    # ---- memory ----

    @cached_property
    def _memory_changes(self) -> Changes:
        memory = self.columns["write_memory"].astype(np.int64)
        return Changes(memory << 32 | self.columns["write_word"].astype(np.int64))

    def _writes(self, number: int, step: int) -> NDArray[Any]:
        """The entries of columns write_* of a memory, before a step."""
        end = int(self.columns["first_write"][self.index(step)])
        return np.flatnonzero(self.columns["write_memory"][:end] == number)

    def words_of(self, number: int) -> int:
        """The number of words of a memory: for a local one those of all lanes."""
        of = self.header["memories"][number]
        lanes = LANES if of["kind"] == "local" else 1
        return max((of["bytes"] * lanes + 3) // 4, of["words"])

    def has_contents(self, number: int) -> bool:
        """Whether the contents of a memory at the window's start are known."""
        of = self.header["memories"][number]
        return of["at"] is not None or of["kind"] == "shared"

    def memory(self, number: int, step: int) -> NDArray[np.uint32]:
        """The words of a memory before a step.

        Words of unknown contents (has_contents) that the window does not write are 0.
        """
        of = self.header["memories"][number]
        shared = of["kind"] == "shared"
        words = np.full(self.words_of(number), UNINITIALIZED if shared else 0, np.uint32)
        if of["at"] is not None:
            words[: of["words"]] = self.columns["memory_words"][of["at"] :][: of["words"]]
        entries = self._writes(number, step)
        words[self.columns["write_word"][entries]] = self.columns["write_value"][entries]
        return words

    def writer(self, number: int, word: int, step: int) -> Writer | None:
        """Who wrote a word last before a step; None: nobody, or that is not known."""
        end = int(self.columns["first_write"][self.index(step)])
        at = self._memory_changes.last(number << 32 | word, end)
        if at is not None:
            return self._writer_at(at)
        of = self.header["memories"][number]
        if of["at"] is None or word >= of["words"]:
            return None
        at = of["at"] + word
        instruction = _known(self.columns["memory_instruction"][at])
        warp = _known(self.columns["memory_warp"][at])
        if instruction is None and warp is None:
            return None
        return Writer(warp, int(self.columns["memory_lane"][at]), None, instruction)

    def _writer_at(self, at: int) -> Writer:
        place = _known(self.columns["write_step"][at])
        instruction = None if place is None else int(self.columns["step_instruction"][place])
        return Writer(
            _known(self.columns["write_warp"][at]),
            int(self.columns["write_lane"][at]),
            None if place is None else self.first + place,
            instruction,
        )

    def writers(self, number: int, step: int) -> list[Writer | None]:
        """The writer of each word of a memory."""
        entries = self._writes(number, step)
        last = np.full(self.words_of(number), -1)
        last[self.columns["write_word"][entries]] = entries
        return [
            self._writer_at(int(at)) if at >= 0 else self.writer(number, word, self.first)
            for word, at in enumerate(last)
        ]


def _known(value: Any) -> int | None:
    return None if int(value) == NONE else int(value)


def _joined_words(words: NDArray[Any], size: int) -> NDArray[Any]:
    """Rows of words, low word first, as one integer each."""
    if size == 2:
        return words[:, 0].astype(np.uint16)
    if size <= 4:
        return words[:, 0].astype(np.uint32)
    joined = np.ascontiguousarray(words, "<u4").view("<u8")
    return joined[:, 0].astype(np.uint64) if size == 8 else joined


def _typed(values: NDArray[Any], kind: str) -> NDArray[Any]:
    """Values as the PTX type has them; packed and 8-bit floats stay integers."""
    if kind in ("u8", "b8"):
        return values.astype(np.uint8)
    if kind == "s8":
        return values.astype(np.uint8).view(np.int8)
    dtype = _TYPES.get(kind)
    return values if dtype is None or values.dtype == bool else values.view(dtype)
