"""The kernel images: every row x dtype x parameter set, as PTX and as a fat binary made from it.

    <op>_<name>.cu -> nvcc -> .ptx -> ptxas -> machine code per chip -> fatbinary -> .fatbin

So the emulator runs the same PTX from which the GPU's machine code is made. The PTX also serves
GPUs newer than the machine code: the driver compiles it for them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import machine_code
from .registry import INCLUDE, Row, Values, defines, headers, image_name
from .toolkit import Toolkit

# By binary compatibility these run on every GPU of compute capability 8.x, 9.0, 10.x and 12.x.
ARCHITECTURES = ("80", "90a", "100", "120")
VARIABLE = "SMEMKERN_CUDA_ARCHS"
OVERLAP = 90  # first architecture with griddepcontrol

NVCC_OPTIONS = (
    *("-std=c++17", "-lineinfo", "-Werror", "all-warnings"),
    # Only device code is compiled; the host compiler is used only as a preprocessor.
    *("-allow-unsupported-compiler", "-I.", f"-I{INCLUDE}"),
)
PTXAS_OPTIONS = ("-lineinfo", "-Werror")


class ImageError(RuntimeError):
    """A kernel does not compile, or the list of architectures cannot be satisfied."""


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
            arch: max((v for v in self.virtual if int(v) <= _number(arch)), key=int)
            for arch in architectures
            if _number(arch) >= self.row.min_sm
        }

    def carries_ptx(self, architectures: Sequence[str]) -> bool:
        """Whether its fat binary needs PTX. The .ptx file beside it, for the last virtual
        architecture, serves later GPUs, but not earlier ones that have no machine code."""
        made_of = set(self.real(architectures).values())
        return not made_of or not set(self.virtual[:-1]) <= made_of


def _number(architecture: str) -> int:
    return int(architecture.rstrip("af"))


def images_of(rows: Sequence[Row]) -> list[Image]:
    return [Image(row, d, values) for row in rows for d in row.dtypes for values in row.prebuilt]


def architectures(toolkit: Toolkit) -> list[str]:
    """The list in $SMEMKERN_CUDA_ARCHS, or those of ARCHITECTURES that the toolkit supports."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return [arch for arch in ARCHITECTURES if arch in toolkit.architectures]
    if text.strip().lower() == "none":
        return []
    wanted = list(dict.fromkeys(re.sub(r"sm_?|\.", "", w) for w in re.split(r"[;,\s]+", text) if w))
    if not wanted:
        raise ImageError(f'{VARIABLE} is empty; give a list ("90a", "80;90a;120") or "none"')
    for arch in wanted:
        if arch not in toolkit.architectures:
            known = ", ".join(sorted(toolkit.architectures, key=lambda a: (_number(a), a)))
            raise ImageError(
                f"{VARIABLE}={text}: {toolkit.ptxas} does not support {arch!r}; it supports {known}"
            )
        if _number(arch) < 80:
            raise ImageError(f"{VARIABLE}={text}: {arch} is too old; the kernels need 80 or newer")
    return wanted


def build(rows: Sequence[Row], sources: Path, out: Path, stamps: Path, toolkit: Toolkit) -> str:
    """Brings the images in `out` up to date and returns a summary in one sentence.

    The file `stamps` holds a digest of each image's inputs. Other files in `out` are removed.
    """
    started = time.perf_counter()
    archs = architectures(toolkit)
    images = images_of(rows)
    out.mkdir(parents=True, exist_ok=True)
    wanted = {f"{image.name}.{kind}" for image in images for kind in ("ptx", "fatbin")}
    for file in out.iterdir():
        if file.name not in wanted:
            file.unlink()

    digests = {image.name: _digest(image, sources, archs, toolkit) for image in images}
    known = json.loads(stamps.read_text()) if stamps.exists() else {}
    stale = [
        image
        for image in images
        if known.get(image.name) != digests[image.name]
        or not all((out / f"{image.name}.{kind}").exists() for kind in ("ptx", "fatbin"))
    ]
    known = {name: digest for name, digest in digests.items() if known.get(name) == digest}
    try:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            jobs = [(i, pool.submit(_compile, i, sources, out, archs, toolkit)) for i in stale]
            try:
                for image, job in jobs:
                    job.result()
                    known[image.name] = digests[image.name]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    finally:
        stamps.parent.mkdir(parents=True, exist_ok=True)
        stamps.write_text(json.dumps(known, indent=1))
    targets = ", ".join(f"sm_{arch}" for arch in archs) or "PTX only"
    return (
        f"{len(images)} kernel images ({targets}), {len(stale)} of them compiled in "
        f"{time.perf_counter() - started:.1f} s by {toolkit.nvcc} "
        f"(CUDA {toolkit.version[0]}.{toolkit.version[1]})"
    )


def _digest(image: Image, sources: Path, archs: Sequence[str], toolkit: Toolkit) -> str:
    recipe = [
        *(toolkit.identity, *NVCC_OPTIONS, *PTXAS_OPTIONS, *image.virtual, *image.real(archs)),
        *(["with PTX"] if image.carries_ptx(archs) else []),
        *defines(image.row, image.dtype, image.values),
    ]
    digest = hashlib.sha256("\0".join(recipe).encode())
    for file in [sources / image.row.file, *headers(sources)]:
        digest.update(b"\0" + file.name.encode() + b"\0" + file.read_bytes())
    # The build steps are inputs too.
    for module in (__file__, machine_code.__file__):
        digest.update(Path(module).read_bytes())
    return digest.hexdigest()


def _compile(image: Image, sources: Path, out: Path, archs: Sequence[str], kit: Toolkit) -> None:
    with tempfile.TemporaryDirectory() as folder:
        macros = [f"-D{macro}" for macro in defines(image.row, image.dtype, image.values)]
        parts, ptx, text = [], {}, ""
        for virtual in image.virtual:
            ptx[virtual] = Path(folder, f"{virtual}.ptx")
            _run(
                [kit.nvcc, "-ptx", f"-arch=compute_{virtual}", *NVCC_OPTIONS, *macros]
                + [image.row.file, "-o", ptx[virtual]],
                image,
                cwd=sources,
            )
            # .file directives hold paths of the build machine; keep only the file name.
            text = ptx[virtual].read_text()
            text = re.sub(r'(?m)^(\s*\.file\s+\d+\s+")[^"\n]*/', r"\1", text)
            ptx[virtual].write_text(text)
            if image.carries_ptx(archs):
                parts.append(f"--image3=kind=ptx,sm={virtual},file={ptx[virtual]}")
        for arch, virtual in image.real(archs).items():
            cubin = Path(folder, f"{arch}.cubin")
            options = [f"-arch=sm_{arch}", *PTXAS_OPTIONS]
            _run([kit.ptxas, *options, ptx[virtual], "-o", cubin], image)
            cubin.write_bytes(machine_code.blanked(cubin.read_bytes()))
            parts.append(f"--image3=kind=elf,sm={arch},file={cubin}")
        fatbin = Path(folder, "kernel.fatbin")
        options = ["-64", *machine_code.compression(kit.version)]
        _run([kit.fatbinary, f"--create={fatbin}", *options, *parts], image)

        (out / f"{image.name}.ptx").write_text(text)
        (out / f"{image.name}.fatbin").write_bytes(fatbin.read_bytes())


def _run(command: Sequence[str | Path], image: Image, cwd: Path | None = None) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace"
    )
    if done.returncode != 0:
        raise ImageError(f"{image.name} does not compile:\n{shlex.join(words)}\n{done.stdout}")
