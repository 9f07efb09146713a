"""Which tests run which lines of C, for c_mutants.py.

Each test runs once on an extension in which clang counts basic blocks. The line table says which
blocks a line has instructions in. A test that starts processes has what those ran, too.
"""

from __future__ import annotations

import bisect
import ctypes
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import c_mutant_tests
from c_mutant_build import Tree

TEST_SECONDS = 40  # one that takes longer, counted, is left out
FILE_SECONDS = 900
MOST = 250  # tests of a file: of more, which are one test over many sizes, an even sample
# Which say nothing of the emulator, the planners or the module, or only by the clock, or by way
# of a browser or a kernel of Jupyter.
LEFT_OUT = (
    *("tests/building", "tests/test_explorer.py", "tests/test_notebooks.py"),
    *("tests/test_mutation.py", "tests/test_benchmark.py", "tests/test_docs.py"),
    *("tests/test_readme.py", "tests/test_dask.py", "tests/test_torch_ops.py"),
    *("tests/test_plot.py", "tests/test_page.py", "tests/test_widgets.py"),
    *("tests/test_c_mutants.py", "tests/test_completion.py"),
    "tests/test_api.py::test_import_is_cheap",
)
# They compile these files by themselves, which is not seen here.
COMPILED = {"tests/flows/test_flow_order.py::test_flows_of_every_row": "csrc/core/"}


class Counted:
    """The counters of the extension in this process."""

    def __init__(self, extension: Path, folder: Path) -> None:
        library = ctypes.CDLL(str(extension))
        first, last = (
            ctypes.c_void_p.in_dll(library, f"c_mutant_counters{end}").value for end in ("", "_end")
        )
        assert first and last
        self.counters = np.ctypeslib.as_array((ctypes.c_uint8 * (last - first)).from_address(first))
        self.folder = folder

    def reset(self) -> None:
        self.counters[:] = 0
        for path in self.folder.iterdir():
            path.unlink()

    def taken(self) -> np.ndarray:
        ran = self.counters > 0
        for path in self.folder.iterdir():
            theirs = np.fromfile(path, np.uint8)
            if theirs.size == ran.size:
                ran |= theirs > 0
        return np.packbits(ran)


class Recorder:
    """A plugin: what each test that passes has run, and in how many seconds."""

    def __init__(self, tree: Tree, folder: Path) -> None:
        self.tree, self.folder = tree, folder
        self.counted: Counted | None = None
        self.names: list[str] = []
        self.seconds: list[float] = []
        self.blocks: list[np.ndarray] = []
        self.bad: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if not item.nodeid.startswith(LEFT_OUT)]
        if items and not items[0].nodeid.startswith("tests/emu/"):
            here = [item for item in items if "[cuda" not in item.nodeid] or items
            items[:] = here[:: -(-len(here) // MOST)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        def too_long(*_: object) -> None:
            raise TimeoutError("too long to be of use here")

        if self.counted is None:
            self.counted = Counted(self.tree.extension, self.folder)
        self.counted.reset()
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(TEST_SECONDS)
        began = time.monotonic()
        result = yield
        signal.alarm(0)
        if item.nodeid not in self.bad:
            self.names.append(item.nodeid)
            self.seconds.append(time.monotonic() - began)
            self.blocks.append(self.counted.taken())
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.bad[report.nodeid] = report.outcome


def test_files(tree: Path) -> list[str]:
    found = (str(path.relative_to(tree)) for path in tree.glob("tests/**/test_*.py"))
    return sorted(name for name in found if not name.startswith(LEFT_OUT))


def measure(tree: Tree, workers: int) -> None:
    """A file in folder/reach for each test file; those that are there stay."""
    out, left = tree.folder / "reach", tree.folder / "left"
    out.mkdir(exist_ok=True)
    left.mkdir(exist_ok=True)
    tree.link_counted(workers)
    np.savez_compressed(out / "lines.npz", **lines_of(tree))
    os.environ["C_MUTANT_COUNTERS"] = str(left)
    for file in test_files(tree.path):
        target = out / f"{file.replace('/', '.')}.npz"
        if target.exists():
            continue
        recorder = Recorder(tree, left)

        def work(log: int, file: str = file, target: Path = target, r: Recorder = recorder) -> int:
            options = [*c_mutant_tests.OPTIONS, f"--basetemp={tree.folder / 'scratch'}", file]
            pytest.main(options, [r])
            blocks = np.array(r.blocks) if r.blocks else np.zeros((0, 0), np.uint8)
            failed = [name for name, how in r.bad.items() if how == "failed"]
            np.savez_compressed(
                target,
                names=np.array(r.names, str),
                seconds=np.array(r.seconds),
                blocks=blocks,
                failed=np.array(failed, str),
            )
            return 0

        status, _, took = c_mutant_tests.forked(
            tree.path, work, tree.folder / "output", lambda _: FILE_SECONDS
        )
        said = "ended early" if status else f"{len(np.load(target)['names'])} tests"
        print(f"{file}: {said} in {took:.0f} s", flush=True)
    del os.environ["C_MUTANT_COUNTERS"]
    tree.link_reference()


def lines_of(tree: Tree) -> dict[str, np.ndarray]:
    """files, and (file, line, block) of each place in the line table."""
    library = ctypes.CDLL(str(tree.extension))
    bounds = [
        ctypes.c_void_p.in_dll(library, f"c_mutant_blocks{end}").value for end in ("", "_end")
    ]
    first, last = bounds
    assert first and last
    table = np.ctypeslib.as_array((ctypes.c_uint64 * ((last - first) // 8)).from_address(first))
    maps = Path("/proc/self/maps").read_text().splitlines()
    mapped = next(line for line in maps if line.endswith(str(tree.extension)))
    base = int(mapped.partition("-")[0], 16)
    addresses = [int(a) - base for a in table[::2]]
    order = sorted(range(len(addresses)), key=addresses.__getitem__)
    starts = [addresses[k] for k in order]
    command = ["objdump", "--dwarf=decodedline", "--wide", str(tree.extension)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    files: dict[str, int] = {}
    rows = set()
    name = ""
    for text in listed.splitlines():
        if text.endswith(":"):
            found = re.search(r"(csrc/\w+/[\w.]+):$", text)
            name = found[1] if found else ""
        elif name and (row := re.match(r"\S+\s+(\d+)\s+(0x[\da-f]+)", text)):
            place = bisect.bisect_right(starts, int(row[2], 16)) - 1
            if place >= 0:
                rows.add((files.setdefault(name, len(files)), int(row[1]), order[place]))
    return {"files": np.array(list(files), str), "rows": np.array(sorted(rows), np.int32)}


class Reach:
    """What measure() has found."""

    def __init__(self, folder: Path) -> None:
        lines = np.load(folder / "reach" / "lines.npz")
        self.files = [str(name) for name in lines["files"]]
        self.rows: dict[tuple[str, int], list[int]] = {}
        for file, line, block in lines["rows"].tolist():
            self.rows.setdefault((self.files[file], line), []).append(block)
        names, seconds, blocks = [], [], []
        for path in sorted((folder / "reach").glob("tests.*.npz")):
            one = np.load(path)
            if len(one["names"]):
                names += [str(name) for name in one["names"]]
                seconds += one["seconds"].tolist()
                blocks.append(one["blocks"])
        self.seconds = dict(zip(names, seconds, strict=True))
        self.names = names
        self.blocks = np.concatenate(blocks)  # of each test, packed

    def tests(self, file: str, line: int) -> list[str]:
        """Those that run the line, or the nearest line above it that has instructions."""
        names = [name for name, folder in COMPILED.items() if file.startswith(folder)]
        for above in range(line, max(0, line - 12), -1):
            if blocks := self.rows.get((file, above)):
                ran = np.zeros(len(self.names), bool)
                for block in blocks:
                    ran |= self.blocks[:, block // 8] >> (7 - block % 8) & 1 > 0
                return [name for name, did in zip(self.names, ran, strict=True) if did] + names
        return names
