"""`smemkern run` on a program of driver API calls, which needs a C compiler and no CUDA toolkit."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import smemkern
from smemkern import Kernel
from smemkern._device.emulated import MEMORY, emulated_device, names
from smemkern._device.published_ceilings import PUBLISHED

HERE = Path(__file__).resolve().parent
PTX = HERE / "kernels.ptx"
DRIVER = Path(smemkern.__file__).parent / "driver" / "libcuda.so.1"
CUDA_ERRORS = {
    0,
    1,
    2,
    3,
    100,
    101,
    200,
    201,
    209,
    215,
    218,
    301,
    400,
    500,
    600,
    700,
    712,
    713,
    716,
    719,
    720,
    800,
    801,
    217,  # peers, captures and graphs
    401,
    *range(900, 909),
    910,
}


@pytest.fixture
def calls(driver_calls, run_program):
    def run(words, *options):
        return run_program(*options, driver_calls, PTX, *words.split())

    return run


def document(calls, words, *options):
    status, out, _ = calls(words, "--json", *options)
    return status, json.loads(out)


def test_a_program_runs_and_its_status_is_kept(calls, driver_calls, run_program):
    status, out, err = calls("fill add back show free")
    assert status == 0 and not err
    assert "add 0\n1 100\nfree 0\n" in out  # 0 + 1 and 99 + 1
    assert "1 kernel, 1 launch: 0 hazards, 0 wrong calls, 0 unsupported calls, 0 leaks" in out
    status, out, _ = run_program(driver_calls, "/no/such/file.ptx")
    assert status == 3 and "cuModuleLoad: 301" in out  # CUDA_ERROR_FILE_NOT_FOUND


def test_a_report_begins_on_a_line_of_its_own(run_program):
    program = [sys.executable, "-c", "print('no end of line', end='')"]
    _, out, _ = run_program(*program)
    assert out.splitlines()[0] == "no end of line" and "nothing to report" in out
    _, out, _ = run_program("--json", *program)
    assert json.loads(out)["kernels"] == []


def test_counts_are_those_of_trace(calls):
    """Of one launch, and summed over three."""
    y = np.arange(100, dtype=np.int32)
    traced = smemkern.trace(Kernel(PTX.read_text(), name="add"), 1, 128, y, np.uint32(100))
    for times in (1, 3):
        _, found = document(calls, "fill " + "add " * times + "free")
        [kernel] = found["kernels"]
        assert (kernel["kernel"], kernel["launches"], kernel["hazards"]) == ("add", times, [])
        for row, one in zip(kernel["global"], traced.global_, strict=True):
            assert (row["line"], row["op"]) == (one.line, one.op)
            for field in ("requests", "sectors", "ideal", "bytes"):
                assert row[field] == times * getattr(one, field)
        assert kernel["warp_instructions"] == times * traced.warp_instructions
        moved = {name: times * bytes_ for name, bytes_ in traced.bytes_moved.items()}
        assert kernel["bytes_moved"] == moved


HAZARDS = [
    ("fill race", "WAW", 127),
    ("add", "uninitialised", 100),
    ("fill beyond", "out-of-bounds", 1),
    ("race add", "uninitialised", 99),  # race writes word 0; the others stay unwritten
]


@pytest.mark.parametrize(("words", "kind", "count"), HAZARDS)
def test_hazards(calls, words, kind, count):
    status, found = document(calls, words, "--error-exitcode", "9")
    hazards = [row for kernel in found["kernels"] for row in kernel["hazards"]]
    assert status == 9
    assert (kind, count) in [(row["kind"], row["count"]) for row in hazards]
    assert all("driver_calls.c:" in row["message"] for row in hazards)  # where it was allocated


def test_what_a_kernel_has_written_another_may_read(calls):
    _, found = document(calls, "add add free")
    [kernel] = found["kernels"]
    assert [row["count"] for row in kernel["hazards"]] == [100]  # of the first launch alone


MISUSE = [
    ("free free", "double-free", "free 0\nfree 1\n"),
    ("free fill", "use-after-free", "cuMemcpyHtoD: 1\n"),
    ("copy-out", "copy-out-of-bounds", "copy 1\n"),
    ("back", "unwritten-copy", ""),
]


@pytest.mark.parametrize(("words", "kind", "printed"), MISUSE)
def test_misuse_has_the_line_of_the_call(calls, words, kind, printed):
    status, out, _ = calls(words, "--error-exitcode", "9")
    assert status == 9 and printed in out
    _, found = document(calls, words)
    [misuse] = found["misuses"]
    line = (HERE / "driver_calls.c").read_text().splitlines()[misuse["line"] - 1]
    call = {"double-free": "cuMemFree", "use-after-free": "HtoD"}.get(kind, "cuMemcpyDtoH")
    assert misuse["kind"] == kind and misuse["file"].endswith("driver_calls.c") and call in line


def test_lines_of_programs_in_folders_of_any_name(driver_calls, run_program, tmp_path):
    program = tmp_path / "grüße\u2028者" / "program"
    program.parent.mkdir()
    shutil.copy(driver_calls, program)
    _, out, _ = run_program("--json", program, PTX, "free", "free")
    [misuse] = json.loads(out)["misuses"]
    assert misuse["file"].endswith("driver_calls.c") and misuse["line"]


def test_leaks_are_no_errors(calls):
    status, found = document(calls, "fill add", "--error-exitcode", "9")
    [leak] = found["leaks"]
    assert status == 0 and "400 bytes" in leak["message"]
    line = (HERE / "driver_calls.c").read_text().splitlines()[leak["line"] - 1]
    assert "cuMemAlloc_v2" in line
    assert document(calls, "fill add free")[1]["leaks"] == []


def test_errors_of_kernels_stay(calls):
    """A launch succeeds; what follows returns the kernel's error."""
    _, out, _ = calls("fill beyond sync back")
    assert "beyond 0\nsync 700\ncuMemcpyDtoH: 700\n" in out


def test_unsupported_calls_are_named_once(calls):
    words = "texref table texref table free"
    status, found = document(calls, words, "--error-exitcode", "9")
    assert status == 9 and [one["call"] for one in found["unsupported"]] == [
        "cuTexRefDestroy",
        "a function of an export table",
    ]


def test_a_crash_leaves_the_report(calls):
    status, found = document(calls, "fill add crash")
    assert status == 128 + signal.SIGABRT and not found["ended"]
    assert [kernel["launches"] for kernel in found["kernels"]] == [1]


def test_choices(calls):
    kernels = document(calls, "fill add race add free", "--kernel", "^r.c")[1]["kernels"]
    assert [(one["kernel"], one["examined"]) for one in kernels] == [("add", 0), ("race", 1)]
    kernels = document(calls, "fill add add add free", "--launches", "2")[1]["kernels"]
    assert [(one["launches"], one["examined"]) for one in kernels] == [(3, 2)]
    [kernel] = document(calls, "fill race free", "--counts-only")[1]["kernels"]
    assert kernel["hazards"] == [] and kernel["global"][0]["requests"] == 4


def test_reports(calls, tmp_path):
    page, sarif = tmp_path / "r.html", tmp_path / "r.sarif"
    calls("fill race", "--html", page, "--sarif", sarif)
    rules = [one["ruleId"] for one in json.loads(sarif.read_text())["runs"][0]["results"]]
    assert rules == ["WAW", "leak"]
    assert "WAW race" in page.read_text() and "1 hazard" in page.read_text()


WRONG = [
    (["./no-such-program"], "is no program"),
    (["--gpu", "gtx", "ls"], "there are: v100"),
    (["--launches", "0", "ls"], "at least 1"),
    ([], "required: program"),
]


@pytest.mark.parametrize(("words", "why"), WRONG)
def test_usage(run_program, words, why):
    status, out, err = run_program(*words)
    assert status == 2 and why in err and not out


def test_a_program_without_cuda(run_program):
    status, out, _ = run_program("sh", "-c", "echo $0 $1; exit 7", "a", "b")
    assert status == 7 and out.startswith("a b\n") and "did not call CUDA" in out


def test_interrupt(driver_calls):
    """Ctrl-C ends the program, and the report follows."""
    script = f"{driver_calls} {PTX} fill add free; echo ready; sleep 60"
    command = [sys.executable, "-m", "smemkern", "run", "sh", "-c", script]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    lines = list(iter(started.stdout.readline, "ready\n"))
    time.sleep(0.2)
    os.killpg(started.pid, signal.SIGINT)
    rest, _ = started.communicate(timeout=60)
    assert "add 0\n" in lines and "1 kernel, 1 launch" in rest
    assert started.returncode == 128 + signal.SIGINT


def test_devices():
    assert set(MEMORY) == {row.name for row in PUBLISHED} and len(set(names())) == len(PUBLISHED)
    for name, sm, shared in (
        ("a100", (8, 0), 163),
        ("RTX 4090", (8, 9), 99),
        ("sm_90", (9, 0), 227),
    ):
        device = emulated_device(name)
        assert (device.attributes[75], device.attributes[76]) == sm
        assert device.attributes[97] == shared * 1024
    with pytest.raises(ValueError, match="there are: v100"):
        emulated_device("gtx")


@pytest.mark.parametrize("shuffle", ["", "", "1", "2"])
def test_random_calls_return_errors(shuffle):
    """No call crashes, whatever its handles, addresses and sizes; results are documented ones."""
    seed = random.randrange(2**31)
    device = emulated_device("h100")._replace(memory=1 << 30).described()
    done = subprocess.run(
        [sys.executable, HERE / "fuzz_calls.py", DRIVER, str(seed), PTX],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "SMEMKERN_RUN_DEVICE": device, "SMEMKERN_RUN_SHUFFLE": shuffle},
    )
    assert done.returncode == 0, (seed, done.stderr)
    found = json.loads(done.stdout)
    assert not found["wrong"]
    results = {result for all_ in found["seen"].values() for result in all_}
    assert results <= CUDA_ERRORS, seed
    assert len(found["seen"]) > 60 and len(results) > 5


def test_without_a_device_there_is_none():
    code = f"import ctypes; print(ctypes.CDLL({str(DRIVER)!r}).cuInit(0))"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SMEMKERN_RUN")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout == "100\n"  # CUDA_ERROR_NO_DEVICE
