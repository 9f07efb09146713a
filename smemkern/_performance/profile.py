"""Compares the counters of one call: measured by Nsight Compute and predicted by the emulator.

ncu (ncu.py) runs a child Python (profile_child.py) that makes the call on the GPU. It collects
only counters that count single instructions. Those named l1tex__data_... also include arbitration
between warps, which cannot be predicted from single requests.
"""

from __future__ import annotations

import os
import pickle
import shlex
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .. import _core
from .._render.document import Listing, Node, Paragraph, Table, as_text, in_notebook
from .._render.progress import Meter
from .._render.table import Cell, Right
from .._trace.observe import Trace, trace
from . import ncu

_REQUESTS = "smsp__sass_inst_executed_op_"
_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_"
_GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_MODELLED = ", modelled"


class ProfileRow(NamedTuple):
    """A counter of the whole call, predicted by the emulator and measured on the GPU."""

    metric: str  # Nsight Compute's name
    meaning: str
    predicted: int | None  # None: the emulator does not count this
    measured: int | None  # None: this ncu or GPU does not have the counter
    written: int | None = None  # predicted for the PTX as written, before ptxas vectorizes accesses

    @property
    def equal(self) -> bool | None:
        if self.predicted is None or self.measured is None:
            return None
        return self.predicted == self.measured


class ProfileLine(NamedTuple):
    """A source line's operation on one memory. A count is None if that side lacks the line."""

    file: str | None
    line: int
    space: str  # "shared" or "global"
    op: str
    requests: int | None  # predicted
    measured_requests: int | None  # includes warps without an active lane
    cost: int | None  # predicted: wavefronts in shared memory, sectors in global memory
    measured_cost: int | None

    @property
    def equal(self) -> bool | None:
        if self.cost is None or self.measured_cost is None:
            return None
        return self.cost == self.measured_cost


def _shared(field: str, *ops: str) -> Callable[[Trace], int]:
    return lambda t: sum(getattr(row, field) for row in t.shared if row.op in ops)


def _global(field: str, *ops: str) -> Callable[[Trace], int]:
    return lambda t: sum(getattr(row, field) for row in t.global_ if row.op in ops)


def _ideal(t: Trace) -> int | None:
    """None if there is a cp.async, for which ncu counts less."""
    if any(row.op == "copy_async" for row in t.shared):
        return None
    return sum(row.machine_ideal for row in t.shared)


_COUNTED = ("load", "store", "ldmatrix", "stmatrix", "copy_async", "atomic")
_Predict = Callable[[Trace], "int | None"]

# ncu's name: (meaning, prediction, prediction for the PTX as written if that differs).
METRICS: dict[str, tuple[str, _Predict, _Predict | None]] = {
    f"{_REQUESTS}shared_ld.sum": (
        "shared load requests",
        _shared("machine_requests", "load"),
        _shared("requests", "load"),
    ),
    f"{_WAVEFRONTS}ld.sum": (
        "shared load wavefronts",
        _shared("machine_wavefronts", "load"),
        _shared("wavefronts", "load"),
    ),
    f"{_REQUESTS}shared_st.sum": (
        "shared store requests",
        _shared("machine_requests", "store"),
        _shared("requests", "store"),
    ),
    f"{_WAVEFRONTS}st.sum": (
        "shared store wavefronts",
        _shared("machine_wavefronts", "store"),
        _shared("wavefronts", "store"),
    ),
    f"{_REQUESTS}ldsm.sum": ("ldmatrix requests", _shared("requests", "ldmatrix"), None),
    f"{_WAVEFRONTS}ldsm.sum": ("ldmatrix wavefronts", _shared("wavefronts", "ldmatrix"), None),
    f"{_REQUESTS}shared_stsm.sum": ("stmatrix requests", _shared("requests", "stmatrix"), None),
    f"{_WAVEFRONTS}stsm.sum": ("stmatrix wavefronts", _shared("wavefronts", "stmatrix"), None),
    f"{_REQUESTS}ldgsts.sum": ("cp.async requests", _shared("requests", "copy_async"), None),
    f"{_WAVEFRONTS}ldgsts.sum": (
        f"cp.async wavefronts{_MODELLED}",
        _shared("wavefronts", "copy_async"),
        None,
    ),
    f"{_REQUESTS}shared_atom.sum": (
        f"shared atomic requests{_MODELLED}",
        _shared("requests", "atomic"),
        None,
    ),
    f"{_WAVEFRONTS}atom.sum": (
        f"shared atomic wavefronts{_MODELLED}",
        _shared("wavefronts", "atomic"),
        None,
    ),
    "memory_l1_wavefronts_shared": (
        "shared wavefronts",
        _shared("machine_wavefronts", *_COUNTED),
        _shared("wavefronts", *_COUNTED),
    ),
    "memory_l1_wavefronts_shared_ideal": ("the fewest possible", _ideal, None),
    _GLOBAL.format("requests", "ld"): (
        "global load requests",
        _global("requests", "load", "copy_async"),
        None,
    ),
    _GLOBAL.format("sectors", "ld"): (
        "global load sectors",
        _global("sectors", "load", "copy_async"),
        None,
    ),
    _GLOBAL.format("requests", "st"): ("global store requests", _global("requests", "store"), None),
    _GLOBAL.format("sectors", "st"): ("global store sectors", _global("sectors", "store"), None),
    "smsp__inst_executed.sum": (
        "warp instructions: PTX, machine code",
        lambda t: t.warp_instructions,
        None,
    ),
}
# Metrics per instruction, for the page "source".
_BY_LINE = (
    "inst_executed",
    "thread_inst_executed_true",
    "memory_l2_theoretical_sectors_global",
)


def _lines(t: Trace, measured: list[ncu.Instruction]) -> list[ProfileLine]:
    """The trace's rows by source line, each with the machine instructions compiled from it.

    Rows of one line that differ only in width or callers are merged.
    """
    predicted: dict[tuple[str, int, str, str], list[int]] = defaultdict(lambda: [0, 0])
    names: dict[str, str | None] = {}
    for shared in t.shared:
        name = Path(shared.file or "").name
        names[name] = shared.file
        counts = predicted[name, shared.line, "shared", shared.op]
        counts[0] += shared.machine_requests
        counts[1] += shared.machine_wavefronts
    for row in t.global_:
        name = Path(row.file or "").name
        names[name] = row.file
        counts = predicted[name, row.line, "global", row.op]
        counts[0] += row.requests
        counts[1] += row.sectors
    found: dict[tuple[str, int, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for one in measured:
        for space in one.spaces:
            keys = [(*line, space, one.op) for line in one.lines]
            key = next((key for key in keys if key in predicted), keys[0])
            found[key][0] += one.requests
            found[key][1] += one.wavefronts if space == "shared" else one.sectors
    nothing = (None, None)
    merged = []
    for key in sorted({*predicted, *found}):
        (name, line, space, op), (a, b) = key, predicted.get(key, nothing)
        c, d = found.get(key, nothing)
        merged.append(ProfileLine(names.get(name, name), line, space, op, a, c, b, d))
    return merged


def _shown(count: int | None) -> Right:
    return Right("-" if count is None else str(count))


_MARKS = {True: Cell("=", "good"), False: Cell("differs", "bad"), None: Cell("")}


class Profile:
    """The predicted and the measured counters of a call.

    Attributes
    ----------
    rows : tuple of ProfileRow
        Counters of the whole call.
    lines : tuple of ProfileLine
        Counters by source line; empty if the machine code has no line information.
    trace : Trace
        The prediction.
    command : str
        The ncu command line.
    """

    def __init__(
        self,
        trace: Trace,
        rows: Iterable[ProfileRow],
        lines: Iterable[ProfileLine],
        command: str,
    ) -> None:
        self.trace = trace
        self.rows = tuple(rows)
        self.lines = tuple(lines)
        self.command = command

    def to_pandas(self) -> Any:
        """A DataFrame of the rows. Needs pandas."""
        import pandas as pd  # type: ignore[import-untyped]

        frame = pd.DataFrame(self.rows, columns=ProfileRow._fields)
        return frame.astype({"written": "Int64", "predicted": "Int64", "measured": "Int64"})

    def _nodes(self) -> list[Node]:
        """Two tables, without counters that are 0 on both sides."""
        rows = [
            (
                row.meaning,
                Right("") if row.written in (None, row.predicted) else _shown(row.written),
                _shown(row.predicted),
                _shown(row.measured),
                _MARKS[row.equal],
                row.metric,
            )
            for row in self.rows
            if row.predicted or row.measured
        ]
        lines = [
            (
                f"{Path(line.file or 'PTX').name}:{line.line}",
                f"{line.space} {line.op}",
                _shown(line.requests),
                _shown(line.measured_requests),
                _shown(line.cost),
                _shown(line.measured_cost),
                _MARKS[line.equal],
            )
            for line in self.lines
        ]
        head = "what", "as written", "predicted", "measured", "", "metric"
        nodes: list[Node] = [Paragraph(self.trace.launch.title, "strong"), Table(head, rows)]
        if lines:
            cost = "wavefronts or sectors"
            names = "line", "operation", "requests", "measured", cost, "measured", ""
            nodes.append(Table(names, lines))
        return [*nodes, Listing([Cell(f"$ {self.command}", "dim")])]

    __repr__ = as_text
    _repr_html_ = in_notebook


def _has_gpu() -> bool:
    return bool(_core.devices())


def profile(what: str | _core.Kernel, *args: Any, **kw: Any) -> Profile:
    """Run a call on the GPU under Nsight Compute and on the emulator, and compare the counts.

    Parameters
    ----------
    what : "gemm", "transpose", "probe" or Kernel
    *args, **kw
        The arguments of the operation, or of a call of the Kernel. `device` may be "cuda" or
        "cuda:N". Arrays are not changed. For variant "auto" both runs use the variant that it
        selects on the emulator.

    Returns
    -------
    Profile

    Raises
    ------
    Error
        If ncu is not found or fails, or if the driver does not allow reading the counters.
    NoDeviceError
        If there is no GPU.

    Examples
    --------
    >>> smemkern.profile("transpose", a, variant="padded")  # doctest: +SKIP
    """
    __tracebackhide__ = True
    tool = ncu.find_ncu()
    if not _has_gpu():
        raise _core.NoDeviceError(
            "a profile needs a GPU, and there is none; smemkern.trace needs no GPU"
        )
    device = kw.pop("device", None) or "cuda"
    call = (what if isinstance(what, str) else (what.ptx, what.name), args, dict(kw, device=device))
    data = pickle.dumps(call)  # before the trace, which writes a Kernel's arrays
    meter = Meter("profile", "steps")
    predicted = trace(
        what, *pickle.loads(data)[1], hazards=False, progress=lambda *_: meter(0, 4), **kw
    )
    if isinstance(what, str):
        data = pickle.dumps((what, args, dict(call[2], variant=predicted.launch.variant)))
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    environment = dict(os.environ, PYTHONPATH=path)
    with meter, tempfile.TemporaryDirectory() as folder:
        request, report = Path(folder, "call.pickle"), Path(folder, "report.ncu-rep")
        request.write_bytes(data)
        command = [tool, "--clock-control", "none"]
        command += ["--kernel-name-base", "mangled", "--kernel-name", predicted.launch.kernel]
        command += [
            "--metrics",
            ",".join([*METRICS, *_BY_LINE]),
            "--force-overwrite",
            "--export",
            str(report),
        ]
        command += [sys.executable, "-m", "smemkern._performance.profile_child", str(request)]
        output = ncu.run(command, environment, lambda: meter(1, 4))
        if not report.exists():
            raise _core.Error(f"ncu saw no launch of the kernel; its output:\n{output[-4000:]}")
        view = [tool, "--import", str(report), "--csv", "--page"]
        raw = ncu.run([*view, "raw", "--print-units", "base"], environment, lambda: meter(2, 4))
        counts = ncu.totals(raw, METRICS)
        source = ncu.run(
            [*view, "source", "--print-source", "cuda,sass"], environment, lambda: meter(3, 4)
        )
    rows = [
        ProfileRow(
            metric, meaning, predict(predicted), counts[metric], written and written(predicted)
        )
        for metric, (meaning, predict, written) in METRICS.items()
    ]
    lines = _lines(predicted, ncu.instructions(source))
    return Profile(predicted, rows, lines, shlex.join(command))
