"""python -m smemkern: its commands."""

import pytest

from smemkern.__main__ import COMMANDS, main
from test_trace_rows import PTX


def test_every_command_has_help(capsys):
    for command in COMMANDS:
        with pytest.raises(SystemExit) as end:
            main([command, "--help"])
        assert end.value.code == 0
        assert command in capsys.readouterr().out


def test_trace_of_a_variant(capsys, tmp_path):
    page = tmp_path / "out.html"
    words = ["trace", "gemm", "--variant", "conflicted", "--shape", "64", "64", "64"]
    assert main([*words, "--param", "tile=16", "--blocks", "2", "--html", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "traced 2 of 16 blocks" in shown
    assert "gemm_conflicted.cu:" in shown
    assert "tile16" in page.read_text(encoding="utf-8")
    assert main([*words, "--annotate", "--dtype", "float64"]) == 0
    assert "wavefronts" in capsys.readouterr().out
    assert main(["trace", "transpose", "--shape", "33", "65"]) == 0


def test_trace_of_a_file(capsys, tmp_path):
    file = tmp_path / "k.ptx"
    file.write_text(PTX)
    words = ["trace", str(file), "--kernel", "k", "--grid", "2", "--block", "32"]
    assert main([*words, "--arg", "i32[64]"]) == 0
    assert "deep.cuh:30" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["gem"], "none of gemm"),
        (["missing.cu", "--grid", "1", "--block", "32"], "missing.cu"),
        (["k.ptx"], "needs --grid"),
        (["gemm", "--shape", "3"], "3 lengths"),
        (["gemm", "--param", "tile"], "NAME=INT"),
        (["gemm", "--variant", "tiled", "--param", "tile=5000"], "tile"),
        (["gemm", "--dtype", "int8"], "int8"),
        (["gemm", "--blocks", "0"], "blocks"),
    ],
)
def test_mistakes_are_told_without_a_traceback(words, why, capsys):
    assert main(["trace", *words]) == 2
    assert why in capsys.readouterr().err
