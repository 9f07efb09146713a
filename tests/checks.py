"""What tests share: whether there is a GPU, and comparisons that a NaN cannot slip through, with
tolerances from K and the precision."""

import importlib
import os
import sys
from pathlib import Path

import ml_dtypes  # noqa: F401 - makes "bfloat16" a dtype
import numpy as np

import smemkern
from smemkern.reference import bound_keywords, gemm_bound

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "validation"))
from malloc_use import used  # noqa: E402

HAS_GPU = any(d.name.startswith("cuda") for d in smemkern.devices())
IMAGES = Path(smemkern._core.config()["images"])  # of the package's kernels
# Whether the kernels are nvcc's, as in wheels. A build on a machine without a GPU takes NVRTC's
# (docs/install.md).
NVCC_IMAGES = any(IMAGES.glob("*.fatbin"))


SKINNY = ("skinny", "skinny_mma", "gemv")  # rows for results of few rows or columns


def environment(*folders, **variables):
    """This process's environment for another one, that imports the package under test, and what is
    in these folders."""
    paths = [Path(smemkern.__file__).parent.parent, *folders, os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(str(p) for p in paths if p)
    return {**os.environ, **{k: str(v) for k, v in variables.items()}, "PYTHONPATH": path}


def benchmark(name):
    """A module of the folder benchmarks."""
    if (folder := str(ROOT / "benchmarks")) not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


def record(name):
    """What a long run or a GPU's run left in benchmarks/results; None where there is no record."""
    return benchmark("records").read(name)


def malloc_bytes():
    """What malloc has handed out in this process; 0 where there is no glibc to say so."""
    try:
        return used()
    except AttributeError:
        return 0


def assert_gemm(result, a, b, alpha=1.0, beta=0.0, c=None, row=None):
    """Every element of the result is within what rounding explains; `row` has made it."""
    of_row = bound_keywords(row) if row else {}
    exact, bound = gemm_bound(a, b, alpha=alpha, beta=beta, c=c, **of_row)
    assert result.dtype == np.result_type(a, b).newbyteorder("=")
    assert np.shape(result) == np.shape(exact)
    good = abs(result.astype(exact.dtype) - exact) <= bound  # False where anything is NaN
    assert np.all(good), f"{np.count_nonzero(~good)} of {good.size} elements are off"


def assert_gemm_into(out, a, b, alpha, beta, row, **keywords):
    """Runs the row into `out`, and compares."""
    old = out.copy()
    smemkern.gemm(a, b, out=out, alpha=alpha, beta=beta, variant=row.name, **keywords)
    assert_gemm(out, a, b, alpha, beta, old, row=row)


def launches(a, b, row, **params):
    """Those of the row's plan."""
    return smemkern._core.plan("gemm", (a, b), {"variant": row.name, **params})["launches"]


def assert_same_bits(result, expected):
    """Equal shape, dtype and bytes; NaNs with their payload."""
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    raw = f"V{result.itemsize}"  # a copy of a structured array may leave its padding out
    assert result.view(raw).tobytes() == expected.view(raw).tobytes()


def random_matrix(rng, shape, dtype):
    return rng.standard_normal(shape).astype(dtype)
