"""NVIDIA's cuda-samples. A sample's status says whether it passed.

Samples that need graphics, a library beside cudart, or code in other languages are left out.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Container
from functools import partial
from pathlib import Path

from . import sizes
from .running import Program, complaint

DRIVER = Path(__file__).resolve().parents[2] / "smemkern" / "driver" / "libcuda.so.1"
TARGET = "-gencode=arch=compute_90,code=compute_90"
ARGUMENTS = {  # smaller sizes
    "2_Concepts_and_Techniques/radixSortThrust": "-n=4099 -iterations=1",
    # Its first kernel finds B's tiles by A's indices, so only squares of one size work.
    "3_CUDA_Features/globalToShmemAsyncCopy": "-wA=128 -hA=128 -wB=128 -hB=128",
}
OPTIONS = {  # of smemkern run
    # A kernel waits for the host, which first queues what comes after it.
    "6_Performance/UnifiedMemoryPerf": ["--shuffle", "1"],
}
LIBRARIES = {  # in CMakeLists.txt: why the sample is left out
    "OpenGL|GLUT|GLEW|freeglut|glfw|Vulkan|EGL|D3D|DirectX|X11": "graphics",
    "MPI": "MPI",
    "cublas|cufft|cusolver|cusparse|curand|npp|nvjpeg|cudla|nvgraph": "a CUDA library",
    "NvSci": "NvSci",
    "nvvm": "libNVVM",
    "nvrtc": "NVRTC at run time",
}


def cmake(folder: Path) -> str:
    return (folder / "CMakeLists.txt").read_text(encoding="utf-8", errors="replace")


def left_out(folder: Path) -> str:
    text = cmake(folder)
    for pattern, why in LIBRARIES.items():
        if re.search(
            rf"find_package\([^)]*({pattern})|target_link_libraries\([^)]*({pattern})", text, re.I
        ):
            return why
    return ""


def nvcc(*options: str | Path) -> str:
    return complaint(["nvcc", "-w", *map(str, options)], Path.cwd())


def device_code(folder: Path, out: Path) -> str:
    """The fat binaries and PTX that the sample's build makes beside its program."""
    text = cmake(folder)
    named = re.findall(r'"\$\{CMAKE_CURRENT_BINARY_DIR\}/([\w.]+)\.(fatbin|ptx)"', text)
    sources = re.findall(r'KERNEL_SOURCE\w* "\$\{CMAKE_CURRENT_SOURCE_DIR\}/([\w.]+)"', text)
    for (stem, kind), source in zip(named, sources, strict=False):
        if told := nvcc(f"-{kind}", TARGET, folder / source, "-o", out / f"{stem}.{kind}"):
            return told
    return ""


def build(folder: Path, checkout: Path, edits: list[str], out: Path) -> str:
    """Makes the program in a folder, beside links to the sample's files, or an edited copy."""
    if edits:
        shutil.copytree(folder, out, dirs_exist_ok=True)
        sizes.make(edits, out)
        folder = out
    else:
        for one in folder.iterdir():
            (out / one.name).symlink_to(one)
    listed = re.search(r"add_executable\(\s*\S+\s+([^)]*)\)", cmake(folder))
    names = re.findall(r"[\w./-]+\.(?:cu|cpp|c)\b", listed[1] if listed else "")
    options = ["-O1", "-g", "-lineinfo", "-std=c++17", TARGET, f"-I{checkout / 'Common'}"]
    options += [f"-I{one}" for one in (folder / "inc", folder / "include") if one.is_dir()]
    if "OpenMP" in cmake(folder):
        options += ["-Xcompiler", "-fopenmp"]
    if "extended-lambda" in cmake(folder):
        options.append("--extended-lambda")
    if "no-pie" in cmake(folder):
        options += ["-Xcompiler", "-fno-pie", "-Xlinker", "-no-pie"]
    (out / "libcuda.so").symlink_to(DRIVER)
    files = [str(folder / one) for one in names]
    options += [f"-I{folder}", *files, "-o", str(out / "sample"), "-lcuda", f"-L{out}"]
    told = nvcc(*options)
    if "requires separate compilation" in told:
        told = nvcc("-rdc=true", *options)
    return told or device_code(folder, out)


def programs(checkout: Path, only: Container[str] | None = None) -> list[Program]:
    found = sorted(file.parent for file in (checkout / "Samples").rglob("CMakeLists.txt"))
    if only is not None:
        found = [one for one in found if str(one.relative_to(checkout / "Samples")) in only]
    return [
        read(str(folder.relative_to(checkout / "Samples")), folder, checkout)
        for folder in found
        if "add_executable" in cmake(folder)
    ]


def read(name: str, folder: Path, checkout: Path) -> Program:
    edits = sizes.CUDA_SAMPLES.get(name, [])
    return Program(
        name,
        None,
        ["{out}/sample", *ARGUMENTS.get(name, "").split()],
        partial(build, folder, checkout, edits),
        left_out(folder),
        checks=True,
        options=OPTIONS.get(name, []),
        edits=edits,
    )
