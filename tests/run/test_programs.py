"""`smemkern run` on programs that nvcc compiles: their own checks pass, and the report is right."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs"


@pytest.fixture(scope="session")
def compiled(nvcc_compiler, tmp_path_factory):
    """compiled(name, *options): a program of programs/, compiled once with these options."""
    made = {}

    def compile_one(name, *options):
        if (name, options) not in made:
            folder = tmp_path_factory.mktemp(name)
            source = shutil.copy(PROGRAMS / f"{name}.cu", folder)
            command = [nvcc_compiler, "-g", "-lineinfo", *options, source, "-o", folder / name]
            subprocess.run(command, check=True)
            made[name, options] = folder / name
        return made[name, options]

    return compile_one


def document(run_program, *words):
    status, out, _ = run_program("--json", *words)
    return status, json.loads(out)


LINKED = [
    ("-arch=sm_75",),
    ("-arch=sm_80", "-cudart", "shared"),
    ("-arch=sm_90", "-no-compress"),
    ("-arch=sm_75", "-compress-mode=size"),
    ("-arch=sm_75", "-compress-mode=speed"),
    ("-gencode", "arch=compute_70,code=compute_70"),
    ("-rdc=true", "-arch=sm_80"),
]


@pytest.mark.parametrize("options", LINKED, ids=" ".join)
def test_saxpy(compiled, run_program, options):
    if "compute_70" in str(options) and "release 13" in version():
        pytest.skip("this nvcc has no compute_70")
    program, n = compiled("saxpy", *options), random.randrange(1, 5000)
    status, out, err = run_program(program, n)
    assert (status, err) == (0, "") and out.startswith("PASS\n"), n
    assert "1 kernel, 1 launch: 0 hazards, 0 wrong calls, 0 unsupported calls, 0 leaks" in out
    _, found = document(run_program, program, n)
    [kernel] = found["kernels"]
    assert kernel["grids"] == [[(n + 255) // 256, 1, 1]] and kernel["block"] == [256, 1, 1]
    assert kernel["flops"] == 2 * n
    assert sum(row["bytes"] for row in kernel["global"]) == 3 * 4 * n


def version():
    return subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout


def test_many_calls(compiled, run_program):
    status, out, _ = run_program(compiled("many", "-arch=sm_80"))
    assert status == 0 and "PASS\n" in out
    assert "before\nhello from 0\nhello from 1\n" in out  # printf shows when the host waits
    assert "0 hazards, 0 wrong calls, 0 unsupported calls, 0 leaks" in out
    status, found = document(run_program, "--gpu", "a100", compiled("many", "-arch=sm_80"))
    assert found["gpu"] == "NVIDIA A100" and status == 0


def test_a_race_has_its_lines(compiled, run_program):
    program = compiled("sum", "-arch=sm_75")
    status, found = document(run_program, "--error-exitcode", "3", program)
    [kernel] = found["kernels"]
    text = (PROGRAMS / "sum.cu").read_text().splitlines()
    kinds = {row["kind"] for row in kernel["hazards"]}
    assert status == 3 and kinds and kinds <= {"RAW", "WAR"}
    for row in kernel["hazards"]:
        assert "part[threadIdx.x] +=" in text[row["line"] - 1]
        assert "part[threadIdx.x] +=" in text[row["other_line"] - 1]
    [leak] = found["leaks"]
    assert "cudaMalloc(&y" in text[leak["line"] - 1]
    status, out, _ = run_program(program)
    assert status == 0 and "at sum.cu:" in out  # where it is launched


def test_machine_code_only(compiled, run_program):
    program = compiled("saxpy", "-gencode", "arch=compute_80,code=sm_80")
    status, out, _ = run_program("--error-exitcode", "5", program)
    assert status == 5 and out.startswith("FAIL")
    assert "machine code of sm_80 and no PTX" in out
    assert "-gencode arch=compute_80,code=compute_80" in out


def test_ptx_for_a_newer_gpu(compiled, run_program):
    _, out, _ = run_program("--gpu", "a100", compiled("saxpy", "-arch=sm_90", "-no-compress"))
    assert "compute_90, newer than this GPU" in out
