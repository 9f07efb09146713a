"""Which tests run which lines of C, for c_mutants.py.

Each test runs once on an extension in which clang flags basic blocks. The line table says which
blocks a line has instructions in. A test that starts processes has what those ran, too.
"""

from __future__ import annotations

import bisect
import ctypes
import difflib
import hashlib
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c_mutant import runner
from c_mutant.build import Tree
from sanitized import ROOT

TEST_SECONDS = 40  # a test that takes longer with coverage flags is left out
FILE_SECONDS = 900
MOST = 250  # tests per file; larger files repeat one test over many sizes, and are sampled evenly
# Tests that do not check the emulator, the planners or the module, or do so only by timing, in a
# browser or in a Jupyter kernel.
LEFT_OUT = (
    *("tests/building", "tests/test_explorer.py", "tests/test_notebooks.py"),
    *("tests/test_lab_page.py", "tests/test_share.py"),
    *("tests/test_mutation.py", "tests/test_benchmark.py", "tests/test_docs.py"),
    *("tests/test_readme.py", "tests/test_dask.py", "tests/test_torch_ops.py"),
    *("tests/test_plot.py", "tests/test_page.py", "tests/test_widgets.py"),
    *("tests/test_c_mutants.py", "tests/test_completion.py"),
    "tests/test_api.py::test_import_is_cheap",
)
# These tests compile these files themselves, which coverage does not show.
COMPILED = {
    "tests/pipeline/test_task_order": "csrc/pipeline/plan/",
    "tests/emu/test_guarded": "csrc/emu/base/guarded",
}


class Flags:
    """The coverage flags of the extension in this process."""

    def __init__(self, extension: Path, folder: Path) -> None:
        library = ctypes.CDLL(str(extension))
        first, last = (
            ctypes.c_void_p.in_dll(library, f"c_mutant_flags{end}").value for end in ("", "_end")
        )
        assert first and last
        self.flags = np.ctypeslib.as_array((ctypes.c_uint8 * (last - first)).from_address(first))
        self.folder = folder

    def reset(self) -> None:
        self.flags[:] = 0
        for path in self.folder.iterdir():
            path.unlink()

    def taken(self) -> np.ndarray:
        ran = self.flags > 0
        for path in self.folder.iterdir():
            theirs = np.fromfile(path, np.uint8)
            if theirs.size == ran.size:
                ran |= theirs > 0
        return np.packbits(ran)


class Recorder:
    """A pytest plugin that records the blocks and the seconds of each passing test."""

    def __init__(self, tree: Tree, folder: Path) -> None:
        self.tree, self.folder = tree, folder
        self.flags_here: Flags | None = None
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

        if self.flags_here is None:
            self.flags_here = Flags(self.tree.extension, self.folder)
        self.flags_here.reset()
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(TEST_SECONDS)
        began = time.monotonic()
        result = yield
        signal.alarm(0)
        if item.nodeid not in self.bad:
            self.names.append(item.nodeid)
            self.seconds.append(time.monotonic() - began)
            self.blocks.append(self.flags_here.taken())
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.bad[report.nodeid] = report.outcome


def test_files(tree: Path) -> list[str]:
    found = (str(path.relative_to(tree)) for path in tree.glob("tests/**/test_*.py"))
    return sorted(name for name in found if not name.startswith(LEFT_OUT))


def digest(paths: Iterable[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def versions(folder: Path) -> list[Path]:
    """Folders of measurements, one per state of the C code, the newest first."""
    found = folder.glob("reach/*/lines.npz")
    return [path.parent for path in sorted(found, key=lambda p: p.stat().st_mtime, reverse=True)]


def known(folder: Path, tree: Path) -> dict[str, Path]:
    """The last measurement of each test file that has not changed since."""
    found: dict[str, Path] = {}
    for version in versions(folder):
        for path in version.glob("tests.*.npz"):
            one = np.load(path)
            file = tree / str(one["of"])
            if file.exists() and str(one["digest"]) == digest([file]):
                found.setdefault(str(one["of"]), path)
    return found


def measure(tree: Tree, workers: int) -> None:
    """Measures new and changed tests; keeps the measurements of the others."""
    todo = [file for file in test_files(tree.path) if file not in known(tree.folder, tree.path)]
    if not todo:
        return
    csrc, left = tree.path / "csrc", tree.folder / "left"
    out = tree.folder / "reach" / digest(sorted(csrc.rglob("*.[ch]")))
    shutil.copytree(csrc, out / "csrc", dirs_exist_ok=True)
    left.mkdir(exist_ok=True)
    tree.link_flagged(workers)
    with multiprocessing.get_context("fork").Pool(1) as pool:  # or each child had this extension
        np.savez_compressed(out / "lines.npz", **pool.apply(lines_of, (tree,)))
    os.environ["C_MUTANT_FLAGS"] = str(left)
    for file in todo:
        target = out / f"{file.replace('/', '.')}.npz"
        recorder = Recorder(tree, left)

        def work(log: int, file: str = file, target: Path = target, r: Recorder = recorder) -> int:
            options = [*runner.OPTIONS, f"--basetemp={tree.folder / 'scratch'}", file]
            pytest.main(options, [r])
            np.savez_compressed(
                target,
                of=np.array(file),
                digest=np.array(digest([tree.path / file])),
                names=np.array(r.names, str),
                seconds=np.array(r.seconds),
                blocks=np.array(r.blocks) if r.blocks else np.zeros((0, 0), np.uint8),
            )
            return 0

        status, _, took = runner.forked(
            tree.path, work, tree.folder / "output", lambda _: FILE_SECONDS
        )
        said = "ended early" if status else f"{len(np.load(target)['names'])} tests"
        print(f"{file}: {said} in {took:.0f} s", flush=True)
    del os.environ["C_MUTANT_FLAGS"]
    tree.link_reference()


def lines_of(tree: Tree) -> dict[str, np.ndarray]:
    """The files, and (file, line, block) of each entry of the line table."""
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
            found = re.search(r"(csrc/[\w./]+):$", text)
            name = os.path.normpath(found[1]) if found else ""
        elif name and (row := re.match(r"\S+\s+(\d+)\s+(0x[\da-f]+)", text)):
            place = bisect.bisect_right(starts, int(row[2], 16)) - 1
            if place >= 0:
                rows.add((files.setdefault(name, len(files)), int(row[1]), order[place]))
    return {"files": np.array(list(files), str), "rows": np.array(sorted(rows), np.int32)}


class Version:
    """The measurements with one state of the C code."""

    def __init__(self, folder: Path, paths: list[Path]) -> None:
        self.folder = folder
        lines = np.load(folder / "lines.npz")
        files = [str(name) for name in lines["files"]]
        self.rows: dict[tuple[str, int], list[int]] = {}
        for file, line, block in lines["rows"].tolist():
            self.rows.setdefault((files[file], line), []).append(block)
        measured = [one for path in paths if len((one := np.load(path))["names"])]
        self.names = [str(name) for one in measured for name in one["names"]]
        self.seconds = [float(x) for one in measured for x in one["seconds"]]
        self.blocks = np.concatenate([one["blocks"] for one in measured])  # of each test, packed
        self.moved: dict[str, dict[int, int]] = {}

    def lines(self, file: str, now: Path) -> dict[int, int]:
        """The former numbers of the file's unchanged lines."""
        if file not in self.moved:
            then = self.folder / file
            texts = [p.read_text().splitlines() if p.exists() else [] for p in (now / file, then)]
            match = difflib.SequenceMatcher(None, *texts, autojunk=False)
            self.moved[file] = {
                block.a + k + 1: block.b + k + 1
                for block in match.get_matching_blocks()
                for k in range(block.size)
            }
        return self.moved[file]

    def tests(self, file: str, line: int, now: Path) -> dict[str, int]:
        """By test that runs the line: how many tests run the rarest block that it runs there."""
        lines = self.lines(file, now)
        for above in range(line, max(0, line - 12), -1):
            if blocks := self.rows.get((file, lines.get(above, 0))):
                ran = np.array([self.blocks[:, b // 8] >> (7 - b % 8) & 1 > 0 for b in blocks])
                fewest = np.where(ran, ran.sum(1)[:, None], len(self.names) + 1).min(0)
                found = zip(self.names, fewest.tolist(), strict=True)
                return {name: n for name, n in found if n <= len(self.names)}
        return {}


class Reach:
    """The results of measure()."""

    def __init__(self, tree: Tree) -> None:
        self.sanitized = tree.sanitized
        paths = known(tree.folder, tree.path).values()
        used = {path.parent: [p for p in paths if p.parent == path.parent] for path in paths}
        self.versions = [Version(*item) for item in used.items()]
        self.seconds = {
            name: seconds
            for v in self.versions
            for name, seconds in zip(v.names, v.seconds, strict=True)
        }

    def tests(self, file: str, line: int) -> dict[str, int]:
        """The tests that run the line, or the nearest line above it that has instructions.

        For each: the number of tests of the rarest block that it runs there. The tree has a mutant
        at the line, so line numbers are those of the original files.
        """
        found = {name: n for v in self.versions for name, n in v.tests(file, line, ROOT).items()}
        compile_it = tuple(test for test, files in COMPILED.items() if file.startswith(files))
        return found | {
            name: 1 for name in self.seconds if compile_it and name.startswith(compile_it)
        }
