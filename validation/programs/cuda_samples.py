"""NVIDIA's cuda-samples. A sample's status says whether it passed.

Samples that need graphics, a library beside cudart, or code in other languages are left out.
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import partial
from pathlib import Path

from .running import Program, complaint

DRIVER = Path(__file__).resolve().parents[2] / "smemkern" / "driver" / "libcuda.so.1"
TARGET = "-gencode=arch=compute_90,code=compute_90"
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


def build(folder: Path, checkout: Path, out: Path) -> str:
    """Makes the program in a folder, beside links to the sample's files."""
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
    for one in folder.iterdir():
        (out / one.name).symlink_to(one)
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
        Program(
            str(folder.relative_to(checkout / "Samples")),
            None,
            ["{out}/sample"],
            partial(build, folder, checkout),
            left_out(folder),
            checks=True,
        )
        for folder in found
        if "add_executable" in cmake(folder)
    ]
