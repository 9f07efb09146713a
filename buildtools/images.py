"""The kernel images: every row x dtype x parameter set, as PTX and as a fat binary made from it.

    <op>_<name>.cu -> nvcc -> .ptx -> ptxas -> machine code per chip -> fatbinary -> .fatbin

So the emulator runs the same PTX from which the GPU's machine code is made. The PTX also serves
GPUs newer than the machine code: the driver compiles it for them. targets.py says which are made.
For the emulator alone there is only the .ptx file, by NVRTC.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import machine_code, nvrtc
from .registry import INCLUDE, Row, Values, defines, image_name, included
from .targets import Targets, number
from .toolkit import Toolkit

OVERLAP = 90  # first architecture with griddepcontrol

OPTIONS = ("-std=c++17", "-lineinfo")
# Only device code is compiled; the host compiler is used only as a preprocessor.
NVCC_OPTIONS = ("-Werror", "all-warnings", "-allow-unsupported-compiler")
PTXAS_OPTIONS = ("-lineinfo", "-Werror")
# ptxas lets each wgmma wait for the one before, and calls that information. It is an error.
SERIALIZED = "Potential Performance Loss"


class ImageError(RuntimeError):
    """A kernel does not compile."""


@dataclass(frozen=True)
class Image:
    row: Row
    dtype: str
    values: Values

    @property
    def name(self) -> str:
        return image_name(self.row, self.dtype, self.values)

    @property
    def virtual(self) -> tuple[str, ...]:
        """Architectures of the PTX. Rows that are not portable use instructions of one chip ("a"),
        which run on no other. Rows with overlapping launches also have PTX for sm_90, the first
        architecture with the instructions for it."""
        if not self.row.portable:
            return (f"{self.row.min_sm}a",)
        both = self.row.overlaps and self.row.min_sm < OVERLAP
        return (str(self.row.min_sm), *([str(OVERLAP)] if both else []))

    def real(self, architectures: Sequence[str]) -> dict[str, str]:
        """The architectures for which machine code can be made -> the PTX it is made from."""
        if not self.row.portable:
            return {arch: arch for arch in architectures if arch in self.virtual}
        return {
            arch: max((v for v in self.virtual if int(v) <= number(arch)), key=int)
            for arch in architectures
            if number(arch) >= self.row.min_sm
        }

    def made_of(self, targets: Targets) -> tuple[str, ...]:
        """The virtual architectures whose PTX is made: on one machine only what runs there. The
        last one's is the .ptx file."""
        if not targets.native:
            return self.virtual
        used = {*self.real(targets.architectures).values(), self.virtual[-1]}
        return tuple(virtual for virtual in self.virtual if virtual in used)

    def has_fatbin(self, targets: Targets) -> bool:
        """Without machine code the .ptx file is enough on the machine that it is made for."""
        return not targets.native or bool(self.real(targets.architectures))

    def carries_ptx(self, targets: Targets) -> bool:
        """Whether its fat binary needs PTX. The .ptx file beside it, for the last virtual
        architecture, serves later GPUs, but not earlier ones that have no machine code."""
        used = set(self.real(targets.architectures).values())
        return not used or not set(self.made_of(targets)[:-1]) <= used


def images_of(rows: Sequence[Row], targets: Targets) -> list[Image]:
    return [
        Image(row, dtype, values)
        for row in rows
        for dtype in row.dtypes
        for values in row.prebuilt
        if not (targets.emulator_only and values in row.tuned)
    ]


def _files(image: Image, targets: Targets) -> list[str]:
    kinds = ["ptx", "fatbin"] if image.has_fatbin(targets) else ["ptx"]
    return [f"{image.name}.{kind}" for kind in kinds]


def build(
    rows: Sequence[Row], sources: Path, out: Path, stamps: Path, targets: Targets, kit: Toolkit
) -> str:
    """Brings the images in `out` up to date and returns a summary in one sentence.

    The file `stamps` holds a digest of each image's inputs. Other files in `out` are removed.
    """
    started = time.perf_counter()
    images = images_of(rows, targets)
    out.mkdir(parents=True, exist_ok=True)
    wanted = {file for image in images for file in _files(image, targets)}
    for file in out.iterdir():
        if file.name not in wanted:
            file.unlink()

    digests = {image.name: _digest(image, sources, targets, kit) for image in images}
    known = json.loads(stamps.read_text()) if stamps.exists() else {}
    stale = [
        image
        for image in images
        if known.get(image.name) != digests[image.name]
        or not all((out / file).exists() for file in _files(image, targets))
    ]
    known = {name: digest for name, digest in digests.items() if known.get(name) == digest}
    try:
        for image in _compile_all(stale, sources, out, targets, kit):
            known[image.name] = digests[image.name]
    finally:
        stamps.parent.mkdir(parents=True, exist_ok=True)
        stamps.write_text(json.dumps(known, indent=1))
    return (
        f"{len(images)} kernel images ({targets}), {len(stale)} of them compiled in "
        f"{time.perf_counter() - started:.1f} s by {kit.compiler} "
        f"(CUDA {kit.version[0]}.{kit.version[1]})"
    )


def _compile_all(
    images: Sequence[Image], sources: Path, out: Path, targets: Targets, kit: Toolkit
) -> Iterator[Image]:
    """Compiles on all cores, in processes, because NVRTC compiles one source at a time in each."""
    if not images:
        return
    workers = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        jobs = [(i, pool.submit(_compile, i, sources, out, targets, kit)) for i in images]
        try:
            for image, job in jobs:
                job.result()
                yield image
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _digest(image: Image, sources: Path, targets: Targets, kit: Toolkit) -> str:
    recipe = [
        *(kit.identity, *OPTIONS, *NVCC_OPTIONS, *PTXAS_OPTIONS, *image.made_of(targets)),
        *(image.real(targets.architectures) if image.has_fatbin(targets) else ["no fatbin"]),
        *(["with PTX"] if image.carries_ptx(targets) else []),
        *defines(image.row, image.dtype, image.values),
    ]
    digest = hashlib.sha256("\0".join(recipe).encode())
    for file in included(sources / image.row.file, sources):
        digest.update(b"\0" + file.name.encode() + b"\0" + file.read_bytes())
    # The build steps are inputs too.
    for module in (__file__, machine_code.__file__, nvrtc.__file__):
        digest.update(Path(module).read_bytes())
    return digest.hexdigest()


def _compile(image: Image, sources: Path, out: Path, targets: Targets, kit: Toolkit) -> None:
    texts = {virtual: _ptx(image, virtual, sources, kit) for virtual in image.made_of(targets)}
    if image.has_fatbin(targets):
        (out / f"{image.name}.fatbin").write_bytes(_fatbin(image, texts, targets, kit))
    (out / f"{image.name}.ptx").write_text(texts[image.virtual[-1]])


def _ptx(image: Image, virtual: str, sources: Path, kit: Toolkit) -> str:
    macros = [f"-D{macro}" for macro in defines(image.row, image.dtype, image.values)]
    options = [f"-arch=compute_{virtual}", *OPTIONS, f"-I{INCLUDE}", *macros]
    return ptx_of(image.row.file, image.name, sources, options, kit)


def ptx_of(file: str, name: str, folder: Path, options: Sequence[str], kit: Toolkit) -> str:
    """The PTX of a file in a folder, without the folders of the build machine, and without the
    comments around each asm statement: of wgmma kernels they are a third of the text."""
    if kit.is_nvrtc:
        try:
            text = nvrtc.compile_to_ptx(kit.compiler, folder, file, options)
        except nvrtc.NvrtcError as error:
            raise ImageError(f"{name} does not compile:\n{error}") from None
    else:
        with tempfile.TemporaryDirectory() as made:
            ptx = Path(made, "kernel.ptx")
            command = [kit.compiler, "-ptx", *options, *NVCC_OPTIONS, "-I.", file, "-o", ptx]
            _run(command, name, cwd=folder)
            text = ptx.read_text()
    text = re.sub(r"(?m)^\t// (?:begin|end) inline asm\n", "", text)
    # .file directives have paths; keep only the file name.
    return re.sub(r'(?m)^(\s*\.file\s+\d+\s+")[^"\n]*/', r"\1", text)


def _fatbin(image: Image, texts: dict[str, str], targets: Targets, kit: Toolkit) -> bytes:
    if kit.assembler is None:
        raise ImageError(f"{image.name}: a fat binary needs ptxas and fatbinary")
    with tempfile.TemporaryDirectory() as folder:
        ptx, parts = {}, []
        for virtual, text in texts.items():
            ptx[virtual] = Path(folder, f"{virtual}.ptx")
            ptx[virtual].write_text(text)
            if image.carries_ptx(targets):
                parts.append(f"--image3=kind=ptx,sm={virtual},file={ptx[virtual]}")
        for arch, virtual in image.real(targets.architectures).items():
            cubin = Path(folder, f"{arch}.cubin")
            options = [f"-arch=sm_{arch}", *PTXAS_OPTIONS]
            _run([kit.assembler.ptxas, *options, ptx[virtual], "-o", cubin], image.name)
            cubin.write_bytes(machine_code.blanked(cubin.read_bytes()))
            parts.append(f"--image3=kind=elf,sm={arch},file={cubin}")
        fatbin = Path(folder, "kernel.fatbin")
        options = ["-64", *machine_code.compression(kit.version)]
        _run([kit.assembler.fatbinary, f"--create={fatbin}", *options, *parts], image.name)
        return fatbin.read_bytes()


def _run(command: Sequence[str | Path], name: str, cwd: Path | None = None) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0 or SERIALIZED in done.stdout:
        raise ImageError(f"{name} does not compile:\n{shlex.join(words)}\n{done.stdout}")
