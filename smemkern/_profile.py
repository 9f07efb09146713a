"""Measured beside predicted: Nsight Compute's counters and the emulator's, of one call.

ncu runs a child Python (_profile_child.py) that makes the call on the GPU. Of its counters those
are asked for that count single instructions; the ones named l1tex__data_... also count arbitration
between warps, which no model of a request can know.
"""

from __future__ import annotations

import csv
import html
import io
import os
import pickle
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from . import _core
from ._observe import Trace, trace
from ._table import table

_PLACES = (
    "/usr/local/cuda/bin",
    "/opt/nvidia/nsight-compute/*",
    "/usr/local/NVIDIA-Nsight-Compute*",
)
_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_"


class ProfileRow(NamedTuple):
    """A counter, as the emulator predicts it and as the GPU counted it."""

    metric: str  # as Nsight Compute names it
    meaning: str
    predicted: int | None  # None: the emulator counts no such thing
    measured: int | None  # None: this ncu or GPU has no such counter

    @property
    def equal(self) -> bool | None:
        if self.predicted is None or self.measured is None:
            return None
        return self.predicted == self.measured


def _shared(field: str, *ops: str) -> Callable[[Trace], int]:
    return lambda t: sum(getattr(row, field) for row in t.shared if not ops or row.op in ops)


def _global(field: str, *ops: str) -> Callable[[Trace], int]:
    return lambda t: sum(getattr(row, field) for row in t.global_ if row.op in ops)


METRICS: dict[str, tuple[str, Callable[[Trace], int]]] = {
    "smsp__sass_inst_executed_op_shared_ld.sum": (
        "shared load requests",
        _shared("requests", "load", "ldmatrix"),
    ),
    "smsp__sass_inst_executed_op_shared_st.sum": (
        "shared store requests",
        _shared("requests", "store", "stmatrix"),
    ),
    f"{_WAVEFRONTS}ld.sum": ("shared load wavefronts", _shared("wavefronts", "load")),
    f"{_WAVEFRONTS}st.sum": ("shared store wavefronts", _shared("wavefronts", "store")),
    f"{_WAVEFRONTS}ldsm.sum": ("ldmatrix wavefronts", _shared("wavefronts", "ldmatrix")),
    f"{_WAVEFRONTS}stsm.sum": ("stmatrix wavefronts", _shared("wavefronts", "stmatrix")),
    f"{_WAVEFRONTS}ldgsts.sum": ("cp.async wavefronts", _shared("wavefronts", "copy_async")),
    "memory_l1_wavefronts_shared": ("shared wavefronts", _shared("wavefronts")),
    "memory_l1_wavefronts_shared_ideal": ("the fewest possible", _shared("ideal")),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": (
        "global load requests",
        _global("requests", "load"),
    ),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": (
        "global load sectors",
        _global("sectors", "load"),
    ),
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": (
        "global store requests",
        _global("requests", "store"),
    ),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": (
        "global store sectors",
        _global("sectors", "store"),
    ),
    "smsp__inst_executed.sum": (
        "warp instructions (predicted: of PTX; measured: of machine code)",
        lambda t: t.warp_instructions,
    ),
}


class Profile:
    """What a call was predicted to do, and what it did on the GPU.

    Attributes
    ----------
    rows : tuple of ProfileRow
    trace : Trace
        The prediction.
    command : str
        The ncu command line.
    """

    def __init__(self, trace: Trace, rows: Iterable[ProfileRow], command: str) -> None:
        self.trace = trace
        self.rows = tuple(rows)
        self.command = command

    def to_pandas(self) -> Any:
        """A DataFrame of the rows. Needs pandas."""
        import pandas as pd  # type: ignore[import-untyped]

        frame = pd.DataFrame(self.rows, columns=ProfileRow._fields)
        return frame.astype({"predicted": "Int64", "measured": "Int64"})

    def _cells(self) -> list[tuple[str, str, str, str, str]]:
        def shown(count: int | None) -> str:
            return "-" if count is None else str(count)

        marks = {True: "=", False: "differs", None: ""}
        return [
            (row.meaning, shown(row.predicted), shown(row.measured), marks[row.equal], row.metric)
            for row in self.rows
        ]

    def __repr__(self) -> str:
        header = ("what", "predicted", "measured", "", "metric")
        parts = [self.trace.launch.kernel, table(header, self._cells())]
        return "\n\n".join([*parts, f"$ {self.command}"])

    def _repr_html_(self) -> str:
        head = "".join(
            f"<th>{name}</th>" for name in ("what", "predicted", "measured", "", "metric")
        )
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for cells in self._cells()
        )
        return (
            f"<table><caption>{html.escape(self.trace.launch.kernel)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<pre>$ {html.escape(self.command)}</pre>"
        )


# ---- running ncu ----


def find_ncu() -> str:
    """Path of ncu: on PATH, or where NVIDIA's installers put it."""
    found = shutil.which("ncu")
    if found:
        return found
    folders = [folder for place in _PLACES for folder in sorted(Path("/").glob(place[1:]))]
    for folder in reversed(folders):
        if os.access(folder / "ncu", os.X_OK):
            return str(folder / "ncu")
    raise _core.Error(
        "Nsight Compute's ncu is neither on PATH nor in " + ", ".join(_PLACES) + "; it comes with "
        "the CUDA Toolkit. smemkern.trace needs none, and predicts the same counters"
    )


def _has_gpu() -> bool:
    return bool(_core.devices())


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if "ERR_NVGPUCTRPERM" in done.stdout:
        raise _core.Error(
            "the driver lets only administrators read the GPU's counters (ERR_NVGPUCTRPERM): run "
            "as root, or load the kernel module with NVreg_RestrictProfilingToAdminUsers=0; in a "
            "container, start it with --cap-add=SYS_ADMIN"
        )
    if done.returncode != 0:
        raise _core.Error(
            f"ncu failed with status {done.returncode}:\n{shlex.join(command)}"
            f"\n{done.stdout[-4000:]}"
        )
    return done.stdout


def _table_of(text: str) -> list[dict[str, str]]:
    """The CSV among what ncu prints."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"')), len(lines))
    kept = [line for line in lines[begin:] if not line.startswith("==")]
    return list(csv.DictReader(io.StringIO("\n".join(kept))))


def _count(cell: str | None) -> int | None:
    """ "1,024" or "1024.00"; instanced metrics as "10 (1; 4; 5)"; "n/a"."""
    try:
        return round(float((cell or "").split("(")[0].replace(",", "")))
    except ValueError:
        return None


def _measured(text: str) -> dict[str, int | None]:
    """Sums over the launches; the row below the head has the units."""
    launches = [row for row in _table_of(text) if (row.get("ID") or "").strip().isdigit()]
    if not launches:
        raise _core.Error(f"ncu saw no launch of the kernel; it said:\n{text[-4000:]}")
    totals: dict[str, int | None] = {}
    for metric in METRICS:
        counts = [_count(row.get(metric)) for row in launches]
        known = [count for count in counts if count is not None]
        totals[metric] = sum(known) if known else None
    return totals


def profile(what: str | _core.Kernel, *args: Any, **kw: Any) -> Profile:
    """Run a call on the GPU under Nsight Compute and on the emulator, and compare the counts.

    Parameters
    ----------
    what : "gemm", "transpose", "probe" or Kernel
    *args, **kw
        As for the operation, or for calling the Kernel. `device` may be "cuda" or "cuda:N". Arrays
        are not changed. A variant "auto" is what the emulator takes for it, on both.

    Returns
    -------
    Profile

    Raises
    ------
    Error
        If there is no ncu, if it fails, or if the driver forbids the counters.
    NoDeviceError
        If there is no GPU.

    Examples
    --------
    >>> smemkern.profile("transpose", a, variant="padded")  # doctest: +SKIP
    """
    ncu = find_ncu()
    if not _has_gpu():
        raise _core.NoDeviceError(
            "a profile needs a GPU, and there is none; smemkern.trace does not"
        )
    device = kw.pop("device", None) or "cuda"
    call = (what if isinstance(what, str) else (what.ptx, what.name), args, dict(kw, device=device))
    data = pickle.dumps(call)  # before the trace, which writes a Kernel's arrays
    predicted = trace(what, *pickle.loads(data)[1], hazards=False, **kw)
    if isinstance(what, str):
        data = pickle.dumps((what, args, dict(call[2], variant=predicted.launch.variant)))
    package = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    environment = dict(os.environ, PYTHONPATH=path)
    with tempfile.TemporaryDirectory() as folder:
        request, report = Path(folder, "call.pickle"), Path(folder, "report.ncu-rep")
        request.write_bytes(data)
        command = [ncu, "--clock-control", "none", "--kernel-name", predicted.launch.kernel]
        command += ["--metrics", ",".join(METRICS), "--force-overwrite", "--export", str(report)]
        command += [sys.executable, "-m", "smemkern._profile_child", str(request)]
        said = _run(command, environment)
        if not report.exists():
            raise _core.Error(f"ncu saw no launch of the kernel; it said:\n{said[-4000:]}")
        view = [ncu, "--import", str(report), "--csv", "--page"]
        counts = _measured(_run([*view, "raw", "--print-units", "base"], environment))
    rows = [
        ProfileRow(metric, meaning, predict(predicted), counts[metric])
        for metric, (meaning, predict) in METRICS.items()
    ]
    return Profile(predicted, rows, shlex.join(command))
