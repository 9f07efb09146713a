"""Rodinia, as far as its inputs can be drawn at random: its own are not in the repository.

Its Makefiles name architectures that nvcc no longer knows, so the sources are compiled by one
command each. Most programs check nothing: then a run that ends with status 0 is what is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

from .running import Program, complaint

OPTIONS = ["-w", "-O2", "-g", "-lineinfo", "-arch=compute_80", "-Xcompiler", "-fpermissive"]
OPTIONS += ["-DcudaThreadSynchronize=cudaDeviceSynchronize", "-DRD_WG_SIZE=16"]
TEXTURES = "texture references, which CUDA 12 removed"
DATA = "needs data that is not in the repository"
LEFT_OUT = {
    "cfd": DATA,
    "heartwall": DATA,
    "hybridsort": TEXTURES,
    "kmeans": TEXTURES,
    "leukocyte": TEXTURES,
    "mummergpu": TEXTURES,
    "myocyte": DATA,
    "srad/srad_v1": DATA,
}
# Sources and arguments. What write_inputs writes is in the folder in which a program runs.
PROGRAMS = {
    "b+tree": (
        "main.c kernel/kernel_gpu_cuda_wrapper.cu kernel/kernel_gpu_cuda_wrapper_2.cu"
        " util/timer/timer.c util/num/num.c util/cuda/cuda.cu",
        "file numbers command commands",
    ),
    "backprop": ("backprop.c facetrain.c imagenet.c backprop_cuda.cu", "1024"),
    "bfs": ("bfs.cu", "graph"),
    "dwt2d": (
        "main.cu dwt.cu components.cu dwt_cuda/fdwt53.cu dwt_cuda/fdwt97.cu dwt_cuda/rdwt53.cu"
        " dwt_cuda/rdwt97.cu dwt_cuda/common.cu",
        "image -d 64x64 -f -5 -l 3",
    ),
    "gaussian": ("gaussian.cu", "-s 16"),
    "hotspot": ("hotspot.cu", "64 2 2 grid grid output"),
    "hotspot3D": ("3D.cu", "64 8 4 grid grid output"),
    "huffman": (
        "main_test_cu.cu scan.cu pack_kernels.cu vlc_kernel_sm64huff.cu stats_logger.cpp"
        " cpuencode.cpp hist.cu",
        "image",
    ),
    "lavaMD": (
        "main.c kernel/kernel_gpu_cuda_wrapper.cu util/num/num.c util/timer/timer.c"
        " util/device/device.cu",
        "-boxes1d 2",
    ),
    "lud/cuda": ("lud.cu lud_kernel.cu ../common/common.c", "-s 64 -v"),
    "nn": ("nn_cuda.cu", "list -r 5 -lat 30 -lng 90"),
    "nw": ("needle.cu", "64 10"),
    "particlefilter naive": ("ex_particle_CUDA_naive_seq.cu", "-x 32 -y 32 -z 3 -np 64"),
    "particlefilter float": ("ex_particle_CUDA_float_seq.cu", "-x 32 -y 32 -z 3 -np 64"),
    "pathfinder": ("pathfinder.cu", "500 10 2"),
    "srad/srad_v2": ("srad.cu", "64 64 0 31 0 31 0.5 2"),
    "streamcluster": (
        "streamcluster_cuda_cpu.cpp streamcluster_cuda.cu",
        "2 5 16 256 256 50 none output 1",
    ),
}


def write_inputs(folder: Path) -> None:
    random = np.random.default_rng(27)
    nodes, degree = 500, 4
    graph = [f"{nodes}"]
    graph += [f"{degree * i} {degree}" for i in range(nodes)]
    graph += ["0", f"{nodes * degree}"]
    graph += [f"{i} 1" for i in random.integers(0, nodes, nodes * degree)]
    numbers = random.permutation(1000)
    records = [
        f"1999  8 17  6 6 {'storm':>11}   {lat:5.1f} {lng:5.1f}  70  900"
        for lat, lng in random.uniform(0, 90, (200, 2))
    ]
    texts: dict[str, Iterable[object]] = {
        "graph": graph,
        "numbers": [len(numbers), *numbers],
        "commands": ["k 100", "j 10 20"],
        "grid": random.uniform(300, 340, 64 * 64 * 8),
        "storms": records,
        "list": ["storms"],
    }
    for name, lines in texts.items():
        (folder / name).write_text("\n".join(map(str, lines)) + "\n")
    (folder / "image").write_bytes(random.integers(0, 16, 64 * 64 * 3, np.uint8).tobytes())


def build(folder: Path, sources: str, out: Path) -> str:
    write_inputs(out)
    files = [str(folder / one) for one in sources.split()]
    folders = [f"-I{folder}", f"-I{folder.parent / 'common'}"]
    command = ["nvcc", *OPTIONS, *folders, *files, "-lm", "-o", str(out / "program")]
    return complaint(command, out)


def programs(checkout: Path) -> list[Program]:
    found = [Program(name, None, [], left_out=why) for name, why in LEFT_OUT.items()]
    for name, (sources, arguments) in PROGRAMS.items():
        make: Callable[[Path], str] = partial(build, checkout / "cuda" / name.split()[0], sources)
        found.append(Program(name, None, ["{out}/program", *arguments.split()], make))
    return found
