"""Indigo: irregular graph kernels with planted bugs, as the artifact of HiRace (SC24) has them.

The label is in the file name: a part that ends in Bug, other than boundsBug, makes it racy;
boundsBug alone makes it read out of bounds. All kernels have the same parameters: a graph in
compressed sparse rows, two arrays of numbers, and the number of vertices. The arrays are filled as
indigo_cuda.h does.

A kernel runs on each graph of input/ with two launches: one with a block of 256 threads per vertex,
and a small one, in which the threads of "persistent" kernels take several vertices. Each launch
runs with arrays of exact sizes, where an access out of bounds ends the run, and with arrays that
continue with zeros, where such an access does not hide a race.
"""

from __future__ import annotations

import ctypes
import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from labels.cases import Case, Run

FOLDER = "JohnJacobsonIII/HiRace-Artifact-SC24, folder indigo"
LAUNCHES = {"256x256": (256, 256), "3x64": (3, 64)}
SLACK = 256 * 256 + 1024  # elements: more than any thread's number
HEADER = "__global__ void test_kernel(int *, int *, data_t *, data_t *, int);\n"


def cases(folder: Path) -> list[Case]:
    files = sorted((folder / "indigo_sources").rglob("*.cu"))
    graphs = tuple(sorted((folder / "input").glob("*.egr")))
    include = f"-I{_header_folder()}"
    return [
        Case(
            file.stem,
            label(file.stem),
            _kernel(file.read_text()),
            "test_kernel",
            (include, "-std=c++17"),
            functools.partial(_runs, graphs),
        )
        for file in files
    ]


def label(name: str) -> str:
    bugs = {part for part in name.split("_") if part.endswith("Bug")}
    return "race" if bugs - {"boundsBug"} else "bounds" if bugs else "clean"


def _kernel(source: str) -> str:
    """The file without its host code."""
    lines = source.splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if line.strip().startswith("void serial_code"))
    return "".join(lines[:end])


@functools.cache
def _header_folder() -> str:
    """A folder with an indigo_cuda.h that declares the kernel and nothing for the host."""
    folder = tempfile.mkdtemp(prefix="referee-")
    Path(folder, "indigo_cuda.h").write_text(HEADER)
    return folder


@functools.cache
def _graph(file: Path) -> tuple[np.ndarray, ...]:
    """Row starts, neighbours, and the two arrays of numbers."""
    words = np.fromfile(file, dtype="<i4")
    n, edges = int(words[0]), int(words[1])
    starts, neighbours = words[2 : n + 3], words[n + 3 : n + 3 + edges]
    size = max(n, edges, 1)
    libc = ctypes.CDLL(None)
    libc.srand(1)  # what a program starts with
    numbers = [
        np.array([0, *(libc.rand() % m for _ in range(size - 1))], dtype=np.int32)
        for m in (n, max(edges, 1))
    ]
    return starts, neighbours if edges else np.zeros(1, np.int32), *numbers


def _runs(graphs: tuple[Path, ...]) -> Iterator[Run]:
    for slack in (0, SLACK):
        for file in graphs:
            for launch, (grid, block) in LAUNCHES.items():
                arrays = [np.pad(array, (0, slack)) for array in _graph(file)]
                n = np.int32(len(_graph(file)[0]) - 1)
                name = f"{file.stem} {launch}{' with slack' if slack else ''}"
                yield Run(name, (grid,), (block,), (*arrays, n))
