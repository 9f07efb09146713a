"""python -m smemkern check: its arguments, what it prints, its exit status."""

import pytest

from smemkern.__main__ import main

REVERSE = """extern "C" __global__ void rev(const float *x, float *y, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
    %s
    y[t] = tile[63 - t] * n;
}
"""
ARGS = ["--kernel=rev", "--grid=1", "--block=64", "--arg=f32[64]=random", "--arg=f32[64]"]


@pytest.fixture
def check(tmp_path, nvrtc, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(middle, *more):
        file = tmp_path / "reverse.cu"
        file.write_text(REVERSE % middle)
        return main(["check", str(file), *ARGS, *more])

    return run


def test_clean(check, capsys):
    assert check("__syncthreads();", "--arg=i32=2") == 0
    assert "no hazards" in capsys.readouterr().out


def test_found(check, capsys):
    assert check("", "--arg=i32=2") == 1
    out = capsys.readouterr().out
    assert "RAW race" in out
    assert "tile[t] = x[t];" in out and "y[t] = tile[63 - t] * n;" in out


@pytest.mark.parametrize("bad", ["--arg=i3=5", "--arg=i32", "--arg=f32[4]=many", "--arg=none.npy"])
def test_bad_argument(check, capsys, bad):
    assert check("", bad) == 2
    assert bad.split("=", 1)[1] in capsys.readouterr().err


def test_wrong_number_of_arguments(check, capsys):
    assert check("") == 2
    assert "takes 3 arguments" in capsys.readouterr().err


DEAD_STORE = """extern "C" __global__ void rev(const float *x, float *y, int n) {
    __shared__ int last;
    last = threadIdx.x;
    y[threadIdx.x] = x[threadIdx.x] * n;
}
"""


@pytest.mark.parametrize("optimised", [True, False])
def test_a_store_that_the_optimiser_removes(tmp_path, nvrtc, capsys, optimised):
    file = tmp_path / "dead.cu"
    file.write_text(DEAD_STORE)
    more = [] if optimised else ["--no-optimise"]
    assert main(["check", str(file), *ARGS, "--arg=i32=2", *more]) == (0 if optimised else 1)
    out = capsys.readouterr().out
    assert ("WAW race, shared last[0]: dead.cu:3" in out) != optimised


def test_ptx_cannot_be_unoptimised(tmp_path, capsys):
    file = tmp_path / "k.ptx"
    file.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.entry rev() { ret; }")
    status = main(["check", str(file), "--grid=1", "--block=1", "--no-optimise"])
    assert status == 2
    assert "--no-optimise needs CUDA C++" in capsys.readouterr().err


CAS_LOOP = """extern "C" __global__ void add(int *p) {
    int old = *p, assumed;
    do {
        assumed = old;
        old = atomicCAS(p, assumed, assumed + 1);
    } while (assumed != old);
}
"""


def test_a_benign_race_is_a_note(tmp_path, nvrtc, capsys):
    file = tmp_path / "add.cu"
    file.write_text(CAS_LOOP)
    assert main(["check", str(file), "--grid=2", "--block=64", "--arg=i32[1]"]) == 0
    out = capsys.readouterr().out
    assert "note: add.cu:2 reads argument 0, element 0" in out
    assert "no hazards" in out


def test_a_number_for_a_pointer(nvrtc, command, tmp_path):
    """An array was forgotten: a command has no addresses to pass."""
    file = tmp_path / "k.cu"
    file.write_text("__global__ void k(const float *x, int n) {}")
    given = f"check {file} --grid 1 --block 1 --arg"
    assert command.run(f"{given} 1024 --arg 32") == 2
    assert "argument 0 is the number 1024, but the kernel's parameter is const float *x" in (
        " ".join(command.err.split())
    )
    assert command.run(f"{given} 'f32[4]' --arg 32") == 0
