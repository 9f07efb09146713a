"""python -m smemkern banks and occupancy, and the examples in docs and docstrings."""

import doctest
import importlib
from pathlib import Path

import pytest

from smemkern.__main__ import main

MODELS = Path(__file__).parent.parent / "docs" / "models.md"
MODULES = """banks coalescing _banks.access _banks.layout _banks.request _banks.suggest
_banks.wavefronts _device.architectures _device.ceilings _device.occupancy _performance.roofline"""


def test_banks(capsys):
    assert main(["banks"]) == 0
    assert "3.125" in capsys.readouterr().out
    assert main(["banks", "--stride", "4"]) == 0
    out = capsys.readouterr().out
    assert "stride 4 on sm_90: 4 wavefronts" in out and "bank 28, 4 ways" in out
    assert main(["banks", "--stride", "2", "--width", "16", "--op", "store"]) == 0
    assert "8 wavefronts, ideal 4" in capsys.readouterr().out
    assert main(["banks", "--stride", "32", "--arch", "sm_13"]) == 0
    assert capsys.readouterr().out == "stride 32 on sm_13: 32 wavefronts\n"
    assert main(["banks", "--tile", "32x32", "--access", "column"]) == 0
    assert "Layout(32, 32, swizzle='xor') is free of conflicts" in capsys.readouterr().out


def test_occupancy(capsys):
    command = "occupancy --threads 256 --registers 64 --shared 49152 --arch sm_90"
    assert main(command.split()) == 0
    out = capsys.readouterr().out
    assert "4 blocks of 256 threads" in out and "limited by registers and shared memory" in out
    assert main([*command.split(), "--curve"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "%" in line]) == 33


@pytest.mark.parametrize("name", MODULES.split())
def test_docstrings(name):
    module = importlib.import_module(f"smemkern.{name}")
    result = doctest.testmod(module)
    assert result.failed == 0 and result.attempted > 0


def test_docs():
    result = doctest.testfile(str(MODELS), module_relative=False)
    assert result.failed == 0 and result.attempted > 20
