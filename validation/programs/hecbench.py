"""HeCBench: each program's own Makefile compiles it, and smaller numbers than it gives run it."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Container
from functools import partial
from pathlib import Path

from . import sizes
from .running import Program, complaint

SEED = 566898
MAKE = ("make", "-B", "ARCH=compute_80")
FLAGS = "-w -g -lineinfo"
NEEDS = r"cublas|cusparse|cufft|cusolver|cudnn|mpi\.h|nccl|curand\.h|omp\.h"

# Races that an issue of the repository describes: the kernel, and arguments with which they show.
KNOWN = {
    "dxtc2-cuda": ("compress", "../dxtc2-sycl/data/lena_std.ppm ../dxtc2-sycl/data/lena_ref.dds 1"),
    "surfel-cuda": ("surfel_render", "1024 64 64 1"),
    "marchingCubes-cuda": ("generatingTriangles", "1"),
    "morphology-cuda": ("vhgw_", "64 64 128 128 1"),
    "sosfil-cuda": ("sosfilt", "1"),
}
MAKING = {  # arguments of make, most of which turn on a check
    "ace-cuda": "VERIFY=yes",
    "bsearch-cuda": "VERIFY=yes",
    "jaccard-cuda": "EXTRA_CFLAGS=-DDEBUG",  # a small matrix, whose weights it knows
    "simplemoc-cuda": "VERIFY=yes",
    "sosfil-cuda": "DEBUG=yes",  # smaller
}
# Programs that compare their results and speak only if one is wrong: a pattern of what they say.
WRONG = {
    "bsearch-cuda": "incorrect result",
    "channelShuffle-cuda": "Failed to pass",
    "collision-cuda": "Assertion|Error: numDups",
    "dslash-cuda": "Assertion",
    "extend2-cuda": "Error: ",
    "extrema-cuda": "FAILED",
    "idivide-cuda": "wrong results",
    "interleave-cuda": "Assertion",
    "memtest-cuda": r"test\d: \.*x",
    "mis-cuda": "ERROR: ",
    "sampling-cuda": "counter failed",
    "segment-reduce-cuda": "does not agree",
}
ARGUMENTS = {  # where smaller() gives a program too little to do
    "affine-cuda": "data/CT-MONO2-16-brain.raw result.raw 1",
    "asta-cuda": "-w 1 -r 1 -m 97 -n 1000",
    "atomicCost-cuda": "16 1",
    "atomicIntrinsics-cuda": "10 1",
    "atomicPerf-cuda": "1",
    "babelstream-cuda": "-s 65536 -n 2",
    "bilateral-cuda": "64 64 0.5 0.5 1",
    "bitonic-sort-cuda": "12 2",
    "blockScan-cuda": "256 1",
    "btree-cuda": "4096 4096",
    "channelShuffle-cuda": "2 32 32 1",
    "channelSum-cuda": "32 32 1",
    "compute-score-cuda": "-p=1 -n=256",
    "contract-cuda": "16 2",
    "d3q19-bgk-cuda": "16",
    "dwconv-cuda": "4 8 32 32 1",
    "ert-cuda": "1 64",
    "fresnel-cuda": "1",
    "fsm-cuda": "16",
    "gamma-correction-cuda": "64 64 256 1",
    "goulash-cuda": "1 0.001",
    "gpp-cuda": "test",
    "linearprobing-cuda": "4 2",
    "matern-cuda": "16 1",
    "matrix-rotate-cuda": "64 1",
    "md-cuda": "1 1",
    "moe-align-cuda": "16",
    "nqueen-cuda": "10 4 1",
    "overlay-cuda": "80 70",
    "pad-cuda": "-m 100 -n 100 -w 0 -r 1 -a 0.1",
    "pathfinder-cuda": "1000 20 5",
    "pool-cuda": "1 4 224 224 54 54 1",
    "qrg-cuda": "16",
    "radixsort2-cuda": "-n=16384 -iterations=1",
    "rle-cuda": "--i=1 --n=100000",
    "rsc-cuda": "-f input/vectors.csv -g 8 -w 0 -r 1",
    "sc-cuda": "-a 0.1 -n 65536 -w 0 -r 1",
    "shuffle-cuda": "2 1",
    "sort-cuda": "1 1",
    "tissue-cuda": "8 1",
    "tsne-cuda": "-k 100 -n 1",
    "tsp-cuda": "d493.tsp 1 1",
}


def smaller(arguments: list[str]) -> list[str]:
    """Multiples of ten up to 10000 are repetitions and become 1; sizes a sixteenth or less."""

    def small(value: int) -> int:
        if value and value % 10 == 0 and value <= 10000:
            return 1
        if value >= 100000:
            return max(1024, 1 << (value.bit_length() - 9))
        return max(64, value // 16) if value >= 512 else value

    numbers = r"(?:^|(?<==))\d+$"
    return [re.sub(numbers, lambda found: str(small(int(found[0]))), one) for one in arguments]


def command(folder: Path) -> list[str]:
    """The words of `make run`'s first program."""
    told = subprocess.run(
        [*MAKE, "-n", "run"], cwd=folder, capture_output=True, text=True, check=False
    ).stdout
    for line in told.replace("\\\n", " ").splitlines():
        if found := re.match(r"\s*(?:time\s+)?(\./[^\s/]+(?:\s[^|>;&]*)?)", line):
            return found[1].split()
    return []


def read(folder: Path) -> Program:
    name = folder.name
    kernel, arguments = KNOWN.get(name, ("", ARGUMENTS.get(name)))
    needed = re.search(NEEDS, (folder / "main.cu").read_text(errors="replace"))
    words = [] if needed else command(folder)
    if words:
        given = smaller(words[1:]) if arguments is None else arguments.split()
        words = [words[0], *given]
    edits = sizes.HECBENCH.get(name, [])
    # Programs open files of other programs' folders, so an edited copy is beside the original.
    place = folder.with_name(f"{name}-smaller") if edits else folder
    return Program(
        name,
        place,
        words,
        partial(build, folder, place, edits),
        f"needs {needed[0]}" if needed else "" if words else "its Makefile runs nothing",
        wrong=WRONG.get(name, ""),
        kernel=kernel,
        edits=edits,
    )


def build(folder: Path, place: Path, edits: list[str], _: Path) -> str:
    if edits:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folder, place)
        sizes.make(edits, place)
    for packed in place.glob("*.tar.gz"):
        shutil.unpack_archive(packed, place, filter="data")
    words = [*MAKE, *MAKING.get(folder.name, "").split()]
    return complaint(words, place, NVCC_APPEND_FLAGS=FLAGS)


def programs(checkout: Path, only: Container[str] | None = None) -> list[Program]:
    """Those with known races, and then all others in an order that is drawn."""
    folders = sorted(file.parent for file in checkout.glob("src/*-cuda/main.cu"))
    if only is not None:
        folders = [folder for folder in folders if folder.name in only]
    random.Random(SEED).shuffle(folders)
    folders.sort(key=lambda folder: folder.name not in KNOWN)
    return [read(folder) for folder in folders]
