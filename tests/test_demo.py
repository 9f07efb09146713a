"""The demonstration: complete, quick, and honest when a result is wrong."""

import time

import numpy as np
import pytest

import smemkern
from smemkern import __main__, demo


def test_demo(capsys):
    start = time.perf_counter()
    assert __main__.main(["demo", "--device", "emu"]) == 0
    assert time.perf_counter() - start < 60
    shown = capsys.readouterr().out
    assert "WRONG" not in shown
    for row in smemkern.variants():
        assert f"{row.op} {row.name} " in shown
    paragraph = shown.rsplit("\n\n", 1)[1]
    assert "up to 32 wavefronts" in paragraph
    assert "nan" not in shown


@pytest.mark.parametrize("wrong", [1.0, np.nan, np.inf])
def test_a_wrong_result_is_an_error(capsys, monkeypatch, wrong):
    def spoilt(op, *args, **kwargs):
        result, times = smemkern._measure(op, *args, **kwargs)
        if kwargs["variant"] == "swizzle" and result.dtype == np.float64:
            result[3, 4] += wrong
        return result, times

    named = "naive coalesced tiled conflicted padded swizzle register_tiled".split()
    few = [row for row in smemkern.variants() if row.name in named]  # what the last words are on
    monkeypatch.setattr(demo, "variants", lambda: few)
    monkeypatch.setattr(demo, "_measure", spoilt)
    assert __main__.main(["demo", "--device", "emu"]) == 1
    assert "WRONG: gemm swizzle, transpose swizzle\n" in capsys.readouterr().out


def test_no_such_device(capsys):
    with pytest.raises(SystemExit) as stopped:
        __main__.main(["demo", "--device", "gpu"])
    assert stopped.value.code == 2
    assert "device must be" in capsys.readouterr().err


def test_command_is_required(capsys):
    with pytest.raises(SystemExit):
        __main__.main([])
    assert "command" in capsys.readouterr().err
