"""Device "cuda" on a fake driver that counts and fails on demand, and on a real one if there is."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from cuda_build import build

ROOT = Path(__file__).parent.parent.parent
DRIVER_H = (ROOT / "csrc" / "cuda" / "driver.h").read_text()
STATUS_H = (ROOT / "csrc" / "core" / "status.h").read_text()
FUNCTIONS = re.findall(r"^    X\((cu\w+),", DRIVER_H, re.MULTILINE)
CODES = re.findall(r"X\((\w+), \w+\) +\\?", STATUS_H)
SKIPPED = 77

ANYWHERE = "describe add reuse timing bad_image shared refused memory crash interrupt threads fork"
ANYWHERE += " pipeline pipeline_interrupt"
FAKE_ONLY = "no_pools modules capture other_gpu"

# Called only after another call failed, by a kernel that is interrupted, without pools, for
# arrays of other libraries, for textures, or between GPUs.
RARE = {
    "cuGetErrorName",
    "cuGetErrorString",
    "cuMemGetInfo",
    "cuMemPoolDestroy",
    "cuMemPoolGetAttribute",
    "cuMemPoolTrimTo",
    "cuStreamDestroy",
    "cuStreamWaitEvent",
    "cuPointerGetAttribute",
    "cuTensorMapEncodeTiled",
    "cuEventQuery",
    "cuMemFreeHost",
    "cuMemHostRegister",
    "cuMemHostUnregister",
    "cuMemcpy2DAsync",
    "cuMemcpyDtoDAsync",
    "cuMemPoolSetAccess",
    "cuStreamWaitValue32",
    "cuMemcpy3DAsync",
    "cuArray3DCreate",
    "cuArrayDestroy",
    "cuTexObjectCreate",
    "cuTexObjectDestroy",
    "cuSurfObjectCreate",
    "cuSurfObjectDestroy",
    "cuModuleGetTexRef",
    "cuModuleGetSurfRef",
    "cuTexRefSetArray",
    "cuTexRefSetAddress",
    "cuTexRefSetFormat",
    "cuTexRefSetAddressMode",
    "cuTexRefSetFilterMode",
    "cuTexRefSetFlags",
    "cuTexRefSetBorderColor",
    "cuSurfRefSetArray",
}
WITHOUT_POOLS = {"cuMemAlloc", "cuMemFree"}


def run(program: Path, driver: Path | None, *arguments: str) -> str:
    environment = dict(os.environ)
    if driver:
        environment["LD_LIBRARY_PATH"] = str(driver)
    done = subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, timeout=60
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_table_was_read() -> None:
    assert len(FUNCTIONS) > 30 and len(set(FUNCTIONS)) == len(FUNCTIONS)
    assert CODES[0] == "OK" and "DRIVER_TOO_OLD" in CODES


@pytest.mark.parametrize("case", (ANYWHERE + " " + FAKE_ONLY).split())
def test_fake(gpu_cases: Path, fake_driver: Path, case: str) -> None:
    run(gpu_cases, fake_driver, case)


def test_capture_without_pools(gpu_cases: Path, fake_driver: Path) -> None:
    run(gpu_cases, fake_driver, "capture", "no_pools")


@pytest.mark.parametrize(
    ("virtual_sm", "version", "wanted"),
    [(90, 13000, 2), (90, 12030, 2), (80, 13000, 0), (90, 12020, 0)],
)
def test_overlap(
    gpu_cases: Path, fake_driver: Path, virtual_sm: int, version: int, wanted: int
) -> None:
    """Where the kernels can wait, and the driver captures such launches."""
    run(gpu_cases, fake_driver, "overlap", str(virtual_sm), str(version), str(wanted))


@pytest.mark.parametrize("case", ANYWHERE.split())
def test_real(gpu_cases: Path, case: str) -> None:
    absent = subprocess.run([gpu_cases, "absent"], capture_output=True, text=True, timeout=120)
    if absent.returncode == 0:
        pytest.skip(absent.stdout.strip())
    run(gpu_cases, None, case)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_call_failing(gpu_cases: Path, fake_driver: Path, function: str) -> None:
    mode = ["no_pools"] if function in WITHOUT_POOLS else []
    failures = int(run(gpu_cases, fake_driver, "fail", function, *mode))
    assert (failures == 0) == (function in RARE)


@pytest.mark.parametrize(
    ("call", "result", "code", "words"),
    [
        ("cuGetProcAddress", 34, "NO_DEVICE", "stub"),
        ("cuInit", 100, "NO_DEVICE", "CUDA_VISIBLE_DEVICES"),
        ("cuInit", 803, "DRIVER_TOO_OLD", "reboot"),
        ("cuDevicePrimaryCtxRetain", 46, "NO_DEVICE", "exclusive"),
        ("cuModuleLoadDataEx", 209, "KERNEL_IMAGE", "sm_90"),
        ("cuModuleLoadDataEx", 222, "DRIVER_TOO_OLD", "newer NVIDIA driver"),
        ("cuLaunchKernelEx", 1, "LAUNCH", "block (256, 1, 1)"),
        ("cuLaunchKernelEx", 701, "LAUNCH", "registers"),
        ("cuStreamQuery", 719, "LAUNCH", "is lost"),
        ("cuStreamQuery", 900, "VALUE", "graph"),
        ("cuMemcpyHtoDAsync", 700, "LAUNCH", "is lost"),
    ],
)
def test_meaning(
    gpu_cases: Path, fake_driver: Path, call: str, result: int, code: str, words: str
) -> None:
    given, message = run(gpu_cases, fake_driver, "fails", call, "1", str(result)).split(" ", 1)
    assert CODES[int(given)] == code
    assert call in message or '"add"' in message
    assert str(result) in message and words in message


def test_out_of_memory_is_tried_again(gpu_cases: Path, fake_driver: Path) -> None:
    assert run(gpu_cases, fake_driver, "fails", "cuMemAllocFromPoolAsync", "1", "2") == "0 \n"


def test_driver_too_old(gpu_cases: Path, tmp_path: Path) -> None:
    source = tmp_path / "old.c"
    source.write_text("int cuDriverGetVersion(int *v) { *v = 11040; return 0; }")
    build(tmp_path / "libcuda.so.1", [source], "-shared", "-fPIC")
    code, message = run(gpu_cases, tmp_path, "absent").split(" ", 1)
    assert CODES[int(code)] == "DRIVER_TOO_OLD"
    assert "CUDA 11.4" in message and "CUDA 12.0" in message


def test_no_driver(gpu_cases: Path, tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("not a library")
    code, message = run(gpu_cases, tmp_path, "absent").split(" ", 1)
    assert CODES[int(code)] == "NO_DEVICE" and "libcuda.so.1" in message
