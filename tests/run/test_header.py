"""csrc/driver against the toolkit's cuda.h: types, result codes, and names of calls."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import smemkern
from run_programs import ROOT

SOURCES = ROOT / "csrc" / "driver"
DRIVER = Path(smemkern.__file__).parent / "driver" / "libcuda.so.1"
STRUCTS = (
    "CUuuid CUDA_MEMCPY2D CUDA_MEMCPY3D CUlaunchConfig CUlaunchAttribute CUipcMemHandle "
    "CUipcEventHandle"
).split()


@pytest.fixture(scope="module")
def header():
    nvcc = shutil.which("nvcc")
    found = Path(nvcc).resolve().parent.parent / "include" / "cuda.h" if nvcc else None
    if not found or not found.is_file():
        pytest.skip("needs a toolkit with cuda.h")
    return found


def table(name, macro):
    text = (SOURCES / name).read_text()
    return [row.split(", ", 2) for row in re.findall(rf"^{macro}\((.*)\)$", text, re.M)]


def members(struct):
    text = (SOURCES / "cuda_types.h").read_text()
    body = re.search(rf"typedef struct {struct} \{{\n(.*?)\n\}} {struct};", text, re.S)[1]
    body = re.sub(r"union \{.*\} value", "int value", body, flags=re.S)
    return [m for m in re.findall(r"(\w+)(?:\[\d+\])?[,;]", body) if m != "pad"]


def test_types_have_the_layout_of_the_header(header, host_compiler, tmp_path):
    """Sizes and offsets of all members, as the compiler sees both."""
    told = []
    for include in (header, SOURCES / "cuda_types.h"):
        lines = [
            "#include <stddef.h>",
            "#include <stdio.h>",
            f'#include "{include}"',
            "int main(){",
        ]
        for struct in STRUCTS:
            lines.append(f'printf("{struct} %zu\\n", sizeof({struct}));')
            for one in members(struct):
                lines.append(f'printf("{one} %zu\\n", offsetof({struct}, {one}));')
        source = tmp_path / "layout.c"
        source.write_text("\n".join([*lines, "}"]))
        command = [host_compiler, f"-I{SOURCES}", source, "-o", tmp_path / "layout"]
        subprocess.run(command, check=True)
        told.append(subprocess.run([tmp_path / "layout"], capture_output=True, text=True).stdout)
    assert told[0] == told[1] and len(told[0].splitlines()) > 50


def test_result_codes(header):
    named = dict(
        re.findall(r"^\s*(CUDA_(?:SUCCESS|ERROR_\w+))\s*=\s*(\d+)", header.read_text(), re.M)
    )
    ours = {name: number for number, name, _ in table("results.def", "X")}
    assert ours == named


def test_every_call_of_the_header_is_there_or_named_as_missing(header):
    declared = set(re.findall(r"CUresult\s+CUDAAPI\s+(cu[A-Z]\w+)\s*\(", header.read_text()))
    present = {symbol for _, _, symbol in table("calls.def", "CALL")}
    missing = {name for [name] in table("missing.def", "MISSING")}
    bases = {base for base, _, _ in table("calls.def", "CALL")}
    assert not present & missing
    plain = {re.sub(r"_pt[sd][sz]$", "", name) for name in declared}
    unknown = plain - present - missing
    assert {re.sub(r"_v\d+$", "", name) for name in unknown} <= bases  # older versions of a call


def test_every_name_of_the_tables_is_exported():
    driver = ctypes.CDLL(str(DRIVER))
    for _, _, symbol in table("calls.def", "CALL"):
        assert getattr(driver, symbol)
    for [name] in table("missing.def", "MISSING"):
        assert getattr(driver, name)


def test_versions_choose_the_function():
    """cuGetProcAddress: the newest that is no newer than what was asked for."""
    driver = ctypes.CDLL(str(DRIVER))
    rows = table("calls.def", "CALL")
    for base, version, _ in rows:
        found, status = ctypes.c_void_p(), ctypes.c_int(-1)
        flags = ctypes.c_uint64(0)
        args = (base.encode(), ctypes.byref(found), int(version), flags, ctypes.byref(status))
        assert driver.cuGetProcAddress_v2(*args) == 0 and status.value == 0
        same = [s for b, v, s in rows if (b, v) == (base, version)]
        wanted = [ctypes.cast(getattr(driver, s), ctypes.c_void_p).value for s in same]
        assert found.value in wanted
        args = (base.encode(), ctypes.byref(found), 1, flags, ctypes.byref(status))
        assert driver.cuGetProcAddress_v2(*args) == 0 and status.value == 2 and not found.value
    args = (b"cuNothing", ctypes.byref(found), 13000, flags, ctypes.byref(status))
    assert driver.cuGetProcAddress_v2(*args) == 0 and status.value == 1
    assert driver.cuGetProcAddress(*args[:4]) == 500
