"""Our declarations of the driver's interface against the toolkit's cuda.h, if there is one."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from cuda_build import CSRC, build

DRIVER_H = (CSRC / "cuda" / "driver.h").read_text()
ERRORS_C = (CSRC / "cuda" / "errors.c").read_text()


def find_include() -> Path:
    roots = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    nvcc = shutil.which("nvcc")
    if nvcc:
        roots.append(str(Path(nvcc).resolve().parent.parent))
    for root in roots:
        if root and (Path(root) / "include" / "cudaTypedefs.h").is_file():
            return Path(root) / "include"
    pytest.skip("no cuda.h")


def launch_layout(fields: str) -> list[str]:
    """Where the structs of cuLaunchKernelEx have what; of these names."""
    wanted = {
        **{f"offsetof(CUlaunchConfig, {f})": 24 + 8 * i for i, f in enumerate(fields.split())},
        "sizeof(CUlaunchConfig)": 56,
        "offsetof(CUlaunchAttribute, value)": 8,
        "sizeof(CUlaunchAttribute)": 72,
    }
    return [f'_Static_assert({what} == {at}, "{what}");' for what, at in wanted.items()]


def texture_layout(theirs: bool) -> list[str]:
    """Where the structs of textures have what."""
    side = "XInBytes Y Z LOD MemoryType Host Device Array _ Pitch Height".split()
    ours = "x_bytes y z level kind host device array _ pitch height".split()
    offsets = [*range(0, 88, 8)]
    wanted = {
        "sizeof(CUDA_MEMCPY3D)": 200,
        "offsetof(CUDA_MEMCPY3D, WidthInBytes)": 176,
        "offsetof(CUDA_MEMCPY3D, Depth)": 192,
        "sizeof(CUDA_ARRAY3D_DESCRIPTOR)": 40,
        "offsetof(CUDA_ARRAY3D_DESCRIPTOR, Format)": 24,
        "offsetof(CUDA_ARRAY3D_DESCRIPTOR, Flags)": 32,
        "sizeof(CUDA_RESOURCE_DESC)": 144,
        "offsetof(CUDA_RESOURCE_DESC, res)": 8,
        "offsetof(CUDA_RESOURCE_DESC, flags)": 136,
        "sizeof(CUDA_TEXTURE_DESC)": 104,
        "offsetof(CUDA_TEXTURE_DESC, flags)": 16,
        "offsetof(CUDA_TEXTURE_DESC, borderColor)": 40,
    }
    linear = "devPtr format numChannels sizeInBytes" if theirs else "address format channels bytes"
    for field, offset in zip(linear.split(), (8, 16, 20, 24), strict=True):
        wanted[f"offsetof(CUDA_RESOURCE_DESC, res.linear.{field})"] = offset
    for name, field, offset in zip(side, ours, offsets, strict=True):
        if name != "_":
            for prefix, base in (("src", 0), ("dst", 88)):
                path = f"{prefix}{name}" if theirs else f"{prefix}.{field}"
                wanted[f"offsetof(CUDA_MEMCPY3D, {path})"] = base + offset
    return [f'_Static_assert({what} == {at}, "{what}");' for what, at in wanted.items()]


def test_declarations(tmp_path: Path) -> None:
    include = find_include()
    constants = re.findall(r"\b(CU(?:DA)?_[A-Z0-9_]+) = (\d+)", DRIVER_H)
    results = re.findall(r"\{(\d+), SMK_[^/]*/\* (\w+) \*/", ERRORS_C)
    functions = re.findall(r"^    X\((cu\w+), (\d+)", DRIVER_H, re.MULTILINE)
    assert len(constants) > 20 and len(results) > 40 and len(functions) > 30
    assert len(results) == ERRORS_C.count(", SMK_") - ERRORS_C.count("smk_code code, SMK_")

    lines = ["#include <cuda.h>", "#include <cudaTypedefs.h>", "#include <stddef.h>"]
    constants += [("CUDA_ERROR_" + name, value) for value, name in results]
    lines += [f'_Static_assert({name} == {value}, "{name}");' for name, value in constants]
    lines += [f"PFN_{name}_v{version} use_{name};" for name, version in functions]
    fields = re.findall(r"(\w+)(?:\[\d+\])?;", DRIVER_H.split("struct CUmemPoolProps {")[1])[:8]
    offsets = [0, 4, 8, 12, 16, 24, 32, 34]
    assert fields[0] == "alloc_type" and fields[-1] == "reserved"
    named = "allocType handleTypes location.type location.id win32SecurityAttributes maxSize"
    for field, offset in zip([*named.split(), "usage", "reserved"], offsets, strict=True):
        lines.append(f'_Static_assert(offsetof(CUmemPoolProps, {field}) == {offset}, "{field}");')
    lines.append('_Static_assert(sizeof(CUmemPoolProps) == 88, "CUmemPoolProps");')
    lines += launch_layout("sharedMemBytes hStream attrs numAttrs")
    lines += texture_layout(theirs=True)
    source = tmp_path / "declarations.c"
    source.write_text("\n".join(lines) + "\n")
    build(tmp_path / "declarations.o", [source], "-c", f"-I{include}")

    ours = tmp_path / "ours.c"
    lines = [f'#include "{CSRC}/cuda/driver.h"', "#include <stddef.h>"]
    for field, offset in zip(fields, offsets, strict=True):
        lines.append(f'_Static_assert(offsetof(CUmemPoolProps, {field}) == {offset}, "{field}");')
    lines.append('_Static_assert(sizeof(CUmemPoolProps) == 88, "CUmemPoolProps");')
    lines += launch_layout("shared_bytes stream attributes n_attributes")
    lines += texture_layout(theirs=False)
    ours.write_text("\n".join(lines) + "\n")
    build(tmp_path / "ours.o", [ours], "-c")
