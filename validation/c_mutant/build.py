"""A copy of the tree in which c_mutants.py changes a file of C, compiles it and links it.

Everything is compiled once for the baseline instruction set alone (CPU_VARIANTS=0), so that a
change to one of the emulator's vector files is not compiled three times. For a mutant only
sources that include the changed file are compiled again; the other objects are reused.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy

from c_mutant.sites import Site, mutate
from sanitized import KINDS, ROOT, copied

FLAGS = ["-std=gnu17", "-w", "-fPIC", "-ffp-contract=off", "-fvisibility=hidden"]
FLAGS += ["-DCPU_VARIANTS=0", '-DSMK_VERSION="0"', "-Icsrc", "-MMD"]
FLAGS += [f"-I{numpy.get_include()}", f"-I{sysconfig.get_path('include')}"]
FOLDERS = ("module", "pipeline", "core", "cuda", "emu")
QUICK = ["-O1"]  # for mutants, and for the originals they are compared with
SANITIZED = [*QUICK, "-g1", "-fno-omit-frame-pointer", *KINDS["address"].flags.split()]
# Equal returns are not merged, so that coverage shows which tests a guard rejects.
FLAGGED = ["-O1", "-g", "-mllvm", "-simplifycfg-sink-common=false"]
FLAGGED += ["-fsanitize-coverage=inline-bool-flag,pc-table,no-prune"]
LIBRARIES = ["-ldl", "-lpthread", "-lm"]
COMPILE_SECONDS = 120


class Equivalent(Exception):
    """The mutant's objects are identical to the original's."""


class DoesNotCompile(Exception):
    pass


class Tree:
    def __init__(self, folder: Path, sanitized: bool = False) -> None:
        self.folder, self.sanitized = folder.resolve(), sanitized
        self.path = self.folder / "tree"
        self.extension = self.path / "smemkern" / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
        self.ccache = ["ccache"] if shutil.which("ccache") else []

    # ---- the complete build

    def prepare(self, workers: int) -> None:
        """Copies the tree, and compiles each file."""
        copied(self.path)
        for kind in ("original", "original-sanitized"):
            shutil.rmtree(self.folder / kind, ignore_errors=True)
        rows = self.path / "build" / "registry_rows.c"
        rows.write_bytes((ROOT / "build" / "registry_rows.c").read_bytes())
        self.compile_all("reference", "gcc", ["-O2"], workers)
        self.write_compiler()

    def write_compiler(self) -> None:
        """A gcc for tests that compile C, with -Wno-error: warnings of a mutant are no failure."""
        wrapper = self.folder / "cc"
        wrapper.write_text(f'#!/bin/sh\nexec {" ".join(self.ccache)} gcc "$@" -Wno-error\n')
        wrapper.chmod(0o755)

    def sources(self) -> list[str]:
        """The sources in the tree that are compiled separately."""
        files = [
            str(path.relative_to(self.path))
            for name in FOLDERS
            for path in sorted((self.path / "csrc" / name).rglob("*.c"))
            if not path.name.startswith("cpu_v")
        ]
        return [*files, "build/registry_rows.c"]

    def object_of(self, kind: str, source: str) -> Path:
        return self.folder / kind / f"{source.replace('/', '.')}.o"

    def compile(self, source: str, target: Path, compiler: str, flags: list[str]) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [*self.ccache, compiler, *FLAGS, *flags, "-c", source, "-o", str(target)]
        environment = {**os.environ, "CCACHE_NOHASHDIR": "1"}
        for _ in range(3):
            done = subprocess.run(
                command,
                cwd=self.path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=COMPILE_SECONDS,
            )
            if done.returncode >= 0:  # else it was killed
                break
        if done.returncode:
            raise DoesNotCompile(f"{done.returncode}: {done.stderr}")

    def compile_all(self, kind: str, compiler: str, flags: list[str], workers: int) -> None:
        def one(source: str) -> None:
            self.compile(source, self.object_of(kind, source), compiler, flags)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(one, self.sources()))

    def link(self, objects: list[Path], *more: str) -> None:
        target = self.extension.with_suffix(".new")
        command = ["gcc", "-shared", *map(str, objects), *more, "-o", str(target), *LIBRARIES]
        subprocess.run(command, check=True, capture_output=True)
        target.replace(self.extension)  # processes that have mapped the old file keep it

    def link_reference(self) -> None:
        self.link([self.object_of("reference", source) for source in self.sources()])

    def link_flagged(self, workers: int) -> None:
        """Builds with a coverage flag per basic block."""
        self.compile_all("flagged", "clang", FLAGGED, workers)
        flags = self.folder / "flagged" / "flags.o"
        source = str(ROOT / "validation" / "c_mutant" / "flags.c")
        self.compile(source, flags, "clang", ["-O1"])
        self.link([self.object_of("flagged", s) for s in self.sources()], str(flags))

    # ---- one mutant

    def compiled_from(self, file: str) -> list[str]:
        """The sources that include the file."""
        if file in self.sources():
            return [file]
        found = []
        for source in self.sources():
            listing = self.object_of("reference", source).with_suffix(".d").read_text()
            if file in listing.replace("\\\n", " ").split():
                found.append(source)
        return found

    def build(self, site: Site) -> None:
        """Leaves the mutant in the tree, source and extension, until restore()."""
        changed = self.compiled_from(site.file)
        if not changed:
            raise DoesNotCompile("nothing is made of it")
        flags = SANITIZED if self.sanitized else QUICK
        originals = [self.original_of(source) for source in changed]
        for source, original in zip(changed, originals, strict=True):
            if not original.exists():
                self.compile(source, original, "gcc", flags)
        path = self.path / site.file
        path.write_text(mutate(path.read_text(), site))
        for source in changed:
            self.compile(source, self.object_of("mutant", source), "gcc", flags)
        mutants = [self.object_of("mutant", source) for source in changed]
        if [m.read_bytes() for m in mutants] == [o.read_bytes() for o in originals]:
            raise Equivalent
        self.link_mutant(site)

    def original_of(self, source: str) -> Path:
        """The original's objects, compiled with the flags of mutants."""
        return self.object_of("original-sanitized" if self.sanitized else "original", source)

    def link_mutant(self, site: Site) -> None:
        self.link_with(site, lambda source: self.object_of("mutant", source))

    def link_original(self, site: Site) -> None:
        self.link_with(site, self.original_of)

    def link_with(self, site: Site, changed: Callable[[str], Path]) -> None:
        own = self.compiled_from(site.file)
        self.link(
            [changed(s) if s in own else self.object_of("reference", s) for s in self.sources()]
        )

    def restore(self, site: Site) -> None:
        shutil.copyfile(ROOT / site.file, self.path / site.file)
