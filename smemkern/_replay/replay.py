"""Replay: to and fro through a run on the emulator."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._render.document import Node, Paragraph, Table, as_text
from .._render.progress import Meter, Progress
from .._trace.launch import Blocks
from .record import MAX_BYTES, STEPS, Job, Window, call_of, job_of, record
from .recording import Recording
from .view import View

LARGEST_CELL = 8_000_000  # characters of a page in a notebook


class Replay(View):
    """A run on the emulator, instruction by instruction, forwards and backwards.

    A step is one PTX instruction of one warp. The steps of all recorded warps are counted from 0
    on. What the attributes show is the state before the current step executes. A recording holds a
    window of the run; steps outside it are recorded when they are needed, by running again.

    Attributes
    ----------
    step : int
        The current step. Assigning to it seeks.
    warp : int
        The warp that the attributes show, an index in header["warps"]. It follows the current step.
    header : dict
        What is known of the kernel: docs/replay.md.
    columns : dict of str to ndarray
        The recording's columns, as in docs/replay.md.
    first, count, total : int
        The window: steps first to first + count - 1; and the steps of the whole run.
    """

    def __init__(self, job: Job, window: Window, progress: bool | Progress = False) -> None:
        self._job, self._window = job, window
        self._progress = progress
        self._load(window.first)
        self._step = self.first
        self._warp: int | None = None

    def _load(self, first: int) -> None:
        window = self._window._replace(first=first)
        with Meter("replay", "blocks") as meter:
            progress = meter if self._progress is True else self._progress or None
            self._recording = Recording(record(self._job, window, progress))
        nothing = self.count == 0 and first < self.total
        if nothing or (self.header["omitted_blocks"] and not self.total):
            raise MemoryError(
                f"max_bytes={window.max_bytes} has no room for step {first}: choose fewer blocks "
                "or warps, or a larger max_bytes"
            )

    # ---- moving ----

    @property
    def step(self) -> int:
        return self._step

    @step.setter
    def step(self, step: int) -> None:
        self.seek(step)

    def seek(self, step: int) -> Replay:
        """Goes to a step of the run, 0 to total; `total` is the end of the run.

        Raises
        ------
        IndexError
            If the run has no such step.
        MemoryError
            If max_bytes has no room for the step.
        """
        __tracebackhide__ = True
        step = int(step)
        if not 0 <= step <= self.total:
            raise IndexError(f"there is no step {step}: the run has {self.total}")
        if not self._has(step):
            self._record_around(step)
        self._step, self._warp = step, None
        return self

    def _has(self, step: int) -> bool:
        """Whether the window has the step, or is up to the end of the run, which it names."""
        return step in self.steps or step == self.total == self.first + self.count

    def _record_around(self, step: int) -> None:
        """Records a window that has the step, with more steps in the direction of the move."""
        __tracebackhide__ = True
        span = max(min(self._window.steps, self.count), 1)
        before = span * 3 // 4 if step < self.first else span // 4
        self._load(max(0, step - before))
        if not self._has(step):  # the limit of bytes ended the window before
            self._load(step)

    def _record_before(self, end: int) -> None:
        """Records a window that ends at step `end` or later."""
        __tracebackhide__ = True
        span = max(min(self._window.steps, self.count), 1)
        self._load(max(0, end - span))
        while self.first + self.count < end:
            span = max(self.count * 3 // 4, 1)
            self._load(max(0, end - span))

    def forward(self, n: int = 1) -> Replay:
        """Goes n steps on, at most to the end of the run."""
        __tracebackhide__ = True
        return self.seek(min(max(self._step + n, 0), self.total))

    def back(self, n: int = 1) -> Replay:
        """Goes n steps back, at most to the start of the run."""
        __tracebackhide__ = True
        return self.forward(-n)

    def next_line(self, back: bool = False, warp: int | None = None) -> bool:
        """Goes to the warp's next step that is at another line of the source.

        Returns False, and stays, if there is none. warp: an index in header["warps"]; None: the
        current one.
        """
        __tracebackhide__ = True
        warp = self.warp if warp is None else warp
        here = self.position_of(warp, self._step)

        def differs(index: int, _step: int) -> bool:
            return self._line(int(self.columns["step_instruction"][index])) not in (here, None)

        return self._find(differs, back, warp)

    def run_to(
        self,
        line: int | None = None,
        file: str | None = None,
        conflict: float | None = None,
        hazard: int | None = None,
        barrier: bool = False,
        address: int | None = None,
        back: bool = False,
    ) -> bool:
        """Goes to the next step that fits, or with `back` to the one before.

        Exactly one of these is given; file goes with line.

        Parameters
        ----------
        line : int
            Of the source, or of the PTX where there is no line information.
        file : str, optional
            The line's file; None: any.
        conflict : number
            An access to shared memory that takes at least so many times its ideal wavefronts, and
            more than ideal.
        hazard : int
            A hazard's number in `hazards`: goes to one of its accesses.
        barrier : bool
            A step that completes a barrier.
        address : int
            An access to this byte of shared memory.

        Returns
        -------
        bool
            False, at the same step, if the run has no such step in that direction.
        """
        __tracebackhide__ = True
        given = [line, conflict, hazard, barrier or None, address]
        if sum(one is not None for one in given) != 1:
            raise TypeError("run_to takes one of line, conflict, hazard, barrier and address")
        if hazard is not None:
            return self._run_to_hazard(hazard, back)
        if line is not None:
            return self._find(lambda index, _: self._is_at(index, line, file), back)
        if conflict is not None:
            return self._find_step(lambda: self.conflicts(conflict), back)
        if barrier:
            return self._find_step(lambda: self._barrier_steps(), back)
        assert address is not None
        return self._find_step(lambda: self._touching(address), back)

    def _run_to_hazard(self, hazard: int, back: bool) -> bool:
        known = self.hazards
        if not 0 <= hazard < len(known):
            raise IndexError(f"there is no hazard {hazard}: the run has {len(known)}")
        at = self.header["hazards"][hazard]["found_at"]
        if not any(step is not None for step in known[hazard].steps) and at < self.total:
            start = self._step
            self._record_around(at)
            self._step = start
            known = self.hazards
        steps = sorted(step for step in known[hazard].steps if step is not None)
        ahead = [s for s in steps if (s < self._step if back else s > self._step)]
        if not ahead:
            self.seek(self._step)
            return False
        self.seek(ahead[-1] if back else ahead[0])
        return True

    def _find_step(self, steps: Any, back: bool) -> bool:
        """Goes to the next of the steps that a function lists of the current window."""
        start = self._step
        while True:
            ahead = [s for s in steps() if (s < self._step if back else s > self._step)]
            if ahead:
                self.seek(ahead[-1] if back else ahead[0])
                return True
            if not self._next_window(back):
                self.seek(start)
                return False

    def _find(self, fits: Any, back: bool, warp: int | None = None) -> bool:
        """Goes to the next step for which fits(index in columns, step) holds."""

        def steps() -> list[int]:
            of_warp = self.columns["step_warp"]
            order: Iterator[int] | range = range(self._step - self.first + 1, self.count)
            if back:
                order = range(min(self._step - self.first, self.count) - 1, -1, -1)
            for index in order:
                if (warp is None or of_warp[index] == warp) and fits(index, self.first + index):
                    return [self.first + index]
            return []

        return self._find_step(steps, back)

    def _next_window(self, back: bool) -> bool:
        """Records the steps before or after the window; False: there are none."""
        __tracebackhide__ = True
        begin, end = self.first, self.first + self.count
        if begin == 0 if back else end >= self.total:
            return False
        if back:
            self._record_before(begin)
            self._step = begin
        else:
            self._load(end)
            self._step = end - 1
        return True

    # ---- shown ----

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the window as a page of its own, which needs no network."""
        with open(file, "w", encoding="utf-8") as out:
            out.write(self._page())

    def debug(self) -> None:
        """Reads commands from the terminal, as `smemkern debug` does, from the current step on.

        Ends with the command quit, or the end of the input.
        """
        from .._debug.opening import session_of_job
        from .._debug.terminal import debug

        session = session_of_job(self._job, self._window.steps)
        if self.step and session.has_step(self.step):
            session.go(self.step)
        debug(session, str(self.header["title"]))

    def _page(self) -> str:
        from .._web import page

        made: str = page(self.recording, self.header["title"])
        return made

    def _repr_html_(self) -> str:
        from .._web import frame

        document = self._page()
        if len(document) > LARGEST_CELL:
            size = f"{len(document) / 1e6:.0f} MB"
            return f'<p>A page of {size}, too large for a cell: save("replay.html") writes it.</p>'
        made: str = frame(document)
        return made

    def _nodes(self) -> list[Node]:
        where = f"{self.header['title']}: step {self._step} of {self.total}"
        at = self.instruction
        block = self.header["warps"][self.warp] if self.header["warps"] else None
        nodes: list[Node] = [Paragraph(where)]
        if at is None or block is None:
            return nodes
        index = tuple(self.header["blocks"][block["block"]]["index"])
        file, line = self.position or ("", 0)
        nodes.append(Paragraph(f"block {index}, warp {block['warp']}, {file or 'PTX'}:{line}"))
        nodes.append(Paragraph(f"`{at['text']}`"))
        rows = [(a.op, a.space, a.width, a.wavefronts, a.ideal) for a in self.accesses]
        if rows:
            nodes.append(Table(("access", "memory", "bytes", "cost", "ideal"), rows))
        return nodes

    __repr__ = as_text


def replay(
    what: Any,
    *args: ArrayLike,
    blocks: Blocks | None = None,
    warps: int | Sequence[int] | None = None,
    first: int = 0,
    steps: int = STEPS,
    max_bytes: int = MAX_BYTES,
    equal_writes: bool = False,
    progress: bool | Progress = False,
    **kw: Any,
) -> Replay:
    """Run an operation or a kernel on the emulator, and step to and fro through what it did.

    Parameters
    ----------
    what, *args, **kw
        What trace accepts. Arrays are copied, and not changed. What kernels print is not shown.
    blocks : int, slice, range, list of int, or tuple (x, y, z), optional
        The blocks that run, as for trace. None: the first one. Of a cluster all blocks run. Of a
        cooperative launch all blocks run, and these are recorded.
    warps : int or list of int, optional
        The warps of each block that are recorded. None: all. Only their instructions are steps.
    first, steps : int
        The window that is recorded at once; Replay records others as they are needed.
    max_bytes : int
        The limit of a recording: the window ends before a step that exceeds it, and the header says
        so ("truncated"). While a recording is made, memory holds it up to four times.
    equal_writes, progress
        As for trace.

    Returns
    -------
    Replay

    Raises
    ------
    ValueError
        If a block, warp or step does not exist, or the device is a GPU.

    Examples
    --------
    >>> import numpy as np, smemkern
    >>> source = '''
    ... __global__ void reverse(int *x) {
    ...     __shared__ int tile[64];
    ...     tile[threadIdx.x] = x[threadIdx.x];
    ...     x[threadIdx.x] = tile[63 - threadIdx.x];
    ... }'''
    >>> r = smemkern.replay(source, 1, 64, np.arange(64, dtype="i4"))
    >>> r.hazards[0].kind, r.run_to(hazard=0), r.position[1]
    ('RAW', True, 5)
    """
    __tracebackhide__ = True
    window = window_of(first, steps, max_bytes)
    job = job_of(call_of(what, args, kw, equal_writes), blocks, warps)
    return started(job, window, progress)


def window_of(first: int, steps: int, max_bytes: int) -> Window:
    """The window, checked."""
    __tracebackhide__ = True
    given = {"first": (first, 0), "steps": (steps, 1), "max_bytes": (max_bytes, 1)}
    for name, (value, least) in given.items():
        if not isinstance(value, (int, np.integer)) or not least <= value < 1 << 62:
            raise ValueError(f"{name} should be an int of at least {least}, not {value!r}")
    return Window(int(first), int(steps), int(max_bytes))


def started(job: Job, window: Window, progress: bool | Progress = False) -> Replay:
    """A Replay at the window's start."""
    __tracebackhide__ = True
    made = Replay(job, window, progress)
    if made.first > made.total:
        raise ValueError(f"first={window.first}: the run has {made.total} steps")
    return made
