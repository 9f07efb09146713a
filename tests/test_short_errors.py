"""A mistake in a notebook is told in a few lines: no pages of internals, no causes that are noise.

IPython and pytest leave out frames that have __tracebackhide__, all but the last one.
"""

import re
import traceback

import numpy as np
import pytest

import smemkern
from smemkern import banks, coalescing, mistakes, widgets  # noqa: F401 - named by the cells

a = np.ones((8, 8), np.float32)
wrong = mistakes.rows()[0]

CELLS = """
smemkern.gemm(a, np.ones((3, 3)))
smemkern.gemm(a, a, variant="tild")
smemkern.transpose(a, variant="tiled", tile=3)
smemkern.trace("gemm", a, np.ones((3, 3), np.float32))
smemkern.trace("gem", a, a)
smemkern.trace("gemm", a, a, blocks=0)
smemkern.trace("gemm", a, a, blocks=(9, 9, 9))
smemkern.trace("gemm", a, a, device="cuda")
smemkern.trace("gemm", a, a).annotate("x.cu")
smemkern.variants("gem")
smemkern.bench([(8, 8, 8)], variants=["tild"], device="emu")
smemkern.bench(device="cuda:99")
smemkern.occupancy(0, 32)
smemkern.occupancy(256, 32, arch="sm_61")
smemkern.occupancy(256, 32, arch="Voodoo")
smemkern.occupancy(256.5, 32)
smemkern.occupancy(256, 32, carveout=-1)
banks.bank(-1.5)
banks.pattern("x", 8, 8)
banks.suggest(32, 32, 4, ["diagonal"])
banks.suggest(32, 32, 4, [])
banks.Layout(0, 32)
banks.Layout(32, 32, swizzle="xr")
banks.Layout(32, 32, swizzle=(1, 0, 0))
banks.Layout(32, 32).cost("rows")
banks.Layout(32, 32).wavefronts("rows")
banks.Layout(32, 32).address(40, 0)
banks.Layout(32, 33).request("row:16B")
banks.wavefronts([1, 2, 3], 3)
banks.wavefronts([2], 4)
banks.wavefronts([4], 4, "read")
banks.ideal(np.zeros(33, int))
banks.explain(np.zeros((2, 32), int))
banks.conflict_degree(2, 5)
banks.stride_table([1.5])
coalescing.sectors([0], 3)
coalescing.lines([1.5])
smemkern.roofline("gemm", (1, 2), "float32")
smemkern.roofline("gemm", (1, 2, 3), "float8")
smemkern.roofline("gemm", (1, 2, 3), "float32", "K80")
smemkern.ceilings("K80")
smemkern.ceilings(3)
smemkern.choices(1, 1, 1, accuracy="half")
smemkern.empty_cache("x")
smemkern.nothing
widgets.banks(stride=99)
widgets.layout(swizzle="xr")
smemkern.Kernel(wrong.ptx, wrong.name, check=True)(2, 64, *wrong.arguments())
""".strip().splitlines()


@pytest.mark.parametrize("cell", CELLS)
def test_frames(cell):
    with pytest.raises(Exception) as raised:
        eval(cell)
    error = raised.value
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    own = [
        frame
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if "smemkern" in frame.f_globals.get("__name__", "") and "test" not in frame.f_code.co_name
    ]
    shown = [f.f_code.co_qualname if hasattr(f.f_code, "co_qualname") else f for f in own[:-1]]
    hidden = ["__tracebackhide__" in frame.f_locals for frame in own[:-1]]
    assert all(hidden), [
        name for name, is_hidden in zip(shown, hidden, strict=True) if not is_hidden
    ]
    assert str(error).count("\n") <= 1


@pytest.mark.parametrize("cell", CELLS)
def test_in_ipython(cell):
    shell_module = pytest.importorskip("IPython.core.interactiveshell")
    shell = shell_module.InteractiveShell.instance()
    shell.push({"smemkern": smemkern, "banks": banks, "coalescing": coalescing, "a": a})
    shell.push({"np": np, "wrong": wrong, "widgets": widgets})
    said = []
    shell.showtraceback = lambda *_, **kw: said.append(shell.InteractiveTB.text(*kw["exc_tuple"]))
    shell._showtraceback = lambda kind, value, lines: said.append("\n".join(lines))
    del shell.showtraceback
    result = shell.run_cell(cell)
    assert not result.success
    text = re.sub(r"\x1b\[[0-9;]*m", "", said[0])
    assert len(text.splitlines()) <= 26
    assert text.count("smemkern/") <= 2  # the last frame, and perhaps the message


def test_a_fault_names_the_text_by_its_file_alone(nvrtc):
    source = 'extern "C" __global__ void past(float *x) { x[threadIdx.x + 1] = 1; }'
    past = smemkern.Kernel(source, "past")
    with pytest.raises(smemkern.LaunchError, match=r"^kernel past, kernel\.cu:1: out of bounds"):
        past(1, 32, np.zeros(32, np.float32), device="emu")
