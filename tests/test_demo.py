"""The demonstration: complete, quick, and honest when a result is wrong."""

import re
import subprocess
import sys
import time

import numpy as np
import pytest

import smemkern
from command import is_like
from smemkern import demo
from smemkern._cli.demo import EXAMPLES


def test_demo(command):
    """The table, which is also the example of its help; its data are test_cli_json.py's."""
    start = time.perf_counter()
    assert command.run("demo --device emu") == 0
    assert time.perf_counter() - start < 60
    shown = command.out
    [(_, example)] = EXAMPLES
    assert is_like(shown, example)
    assert "WRONG" not in shown
    for row in smemkern.variants():
        table = shown[re.search(rf"^{row.op} +ms", shown, re.M).start() :].split("\n\n")[0]
        assert re.search(rf"^{row.name} +\d", table, re.M)
    said = shown.split("What the counts show\n")[1].split("\n\n")[0]
    assert "up to 32 wavefronts" in said
    assert "Look closer\npython -m smemkern trace gemm" in shown
    assert "nan" not in shown


@pytest.mark.parametrize("wrong", [1.0, np.nan, np.inf])
def test_a_wrong_result_is_an_error(command, short_demo, monkeypatch, wrong):
    def spoilt(op, *args, **kwargs):
        result, times = smemkern._measure(op, *args, **kwargs)
        if kwargs["variant"] == "swizzle" and result.dtype == np.float64:
            result[3, 4] += wrong
        return result, times

    named = "naive coalesced tiled conflicted padded swizzle register_tiled".split()
    few = [row for row in smemkern.variants() if row.name in named]  # what the last words are on
    monkeypatch.setattr(demo, "variants", lambda: few)
    monkeypatch.setattr(demo, "_measure", spoilt)
    assert command.run("demo --device emu") == 1
    assert "WRONG: gemm swizzle, transpose swizzle\n" in command.out
    data = command.json("demo --device emu")
    assert command.status == 1 and not data["correct"]
    wrong_ones = [(line["op"], line["variant"]) for line in data["lines"] if not line["correct"]]
    assert wrong_ones == [("gemm", "swizzle"), ("transpose", "swizzle")]


@pytest.mark.parametrize("columns", ["", "80", "30"])
def test_it_prints_as_it_goes(command, short_demo, monkeypatch, columns):
    """What ran before an interruption is there, and in a narrow terminal so are the notes."""

    def interrupted(row, device):
        raise KeyboardInterrupt

    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setitem(demo.RUN, "transpose", interrupted)
    assert command.run("demo --device emu") == 130
    rows = [row for row in demo.variants() if row.op == "gemm"]
    for row in rows:
        assert re.search(rf"^{row.name} +\d", command.out, re.M)
        assert row.summary in " ".join(command.out.split())


def test_without_ml_dtypes():
    """As after `pip install smemkern` alone: rows of bfloat16 are left out, the others run."""
    code = """if True:
        import sys
        sys.modules["ml_dtypes"] = None
        import smemkern.demo
        from smemkern.__main__ import main
        spoken = "naive coalesced tiled conflicted padded swizzle register_tiled".split()
        few = [*spoken, "mma_bf16", "skinny_mma"]
        rows = [row for row in smemkern.variants() if row.name in few]
        smemkern.demo.variants, smemkern.demo.COUNTED = (lambda: rows), 64
        sys.exit(main(["demo", "--device", "emu"]))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nskinny_mma " in done.stdout and "gemm mma_bf16 was left out" in done.stdout
