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
