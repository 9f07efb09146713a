"""Each extra, installed with the wheel and nothing else, does what it is there for."""

from __future__ import annotations

from pathlib import Path

from steps import call, environment, surroundings
from wheels import BINARY

PROGRAMS = {
    "nvrtc": """
        import numpy as np, smemkern
        text = '''#include <cuda_fp16.h>
            extern "C" __global__ void twice(const half *x, half *y) {
                y[threadIdx.x] = __hadd(x[threadIdx.x], x[threadIdx.x]);
            }'''
        x, y = np.arange(32, dtype="f2"), np.zeros(32, "f2")
        smemkern.Kernel(text, "twice")(1, 32, x, y)
        assert (y == 2 * x).all()
    """,
    "plot": """
        import smemkern.plot
        counted = smemkern.trace("transpose", [[1.0, 2.0], [3.0, 4.0]], variant="tiled")
        counted.plot().savefig("trace.png")
        assert open("trace.png", "rb").read(4)[1:] == b"PNG"
    """,
    "cli": """
        import argcomplete, subprocess, tqdm
        run = lambda *words: subprocess.check_output(["smemkern", *words], text=True)
        assert "smemkern" in run("completion", "bash")
        assert "\\x1b[" in run("--color", "always", "banks", "--stride", "8")
    """,
    "notebook": """
        import nbclient, nbformat
        from nbformat.v4 import new_code_cell, new_notebook
        cells = "import smemkern, numpy as np, smemkern.widgets", \\
            "smemkern.trace('transpose', np.eye(8), variant='tiled').to_pandas()"
        book = new_notebook(cells=[new_code_cell(text) for text in cells])
        nbclient.NotebookClient(book, timeout=300).execute()
        assert "<table" in book.cells[1].outputs[0].data["text/html"]
    """,
    "dask": """
        import dask.array as da, distributed, numpy as np, smemkern.dask
        a = np.random.default_rng(0).standard_normal((50, 40))
        x = da.from_array(a, chunks=17)
        assert np.allclose(smemkern.dask.gemm(x, smemkern.dask.transpose(x)), a @ a.T)
    """,
}


def try_out(extra: str, python: Path, wheel: Path, work: Path) -> str:
    own = environment(python, work / "venv")
    place = work / "place"
    place.mkdir()
    env = surroundings(PATH=str(own.parent))
    call(own, "-m", "pip", "install", "-q", *BINARY, f"{wheel}[{extra}]", where=place, env=env)
    call(own, "-c", f"if True:{PROGRAMS[extra]}", where=place, env=env)
    packages = call(own, "-m", "pip", "list", "--format=freeze", where=place, env=env).split()
    return f"works, with {len(packages) - 1} packages"
