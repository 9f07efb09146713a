"""The registry: one file and one row make a variant, and everything else enumerates them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import smemkern
from checks import IMAGES
from smemkern import reference

KERNELS = Path(smemkern._core.config()["kernels"])
ROWS = [pytest.param(row, id=f"{row.op}-{row.name}") for row in smemkern.variants()]


def sources():
    """The files of all variants."""
    return [*KERNELS.glob("*.cu"), *KERNELS.glob("library/*.cu")]


def test_files_are_rows():
    files = {path.stem for path in sources()}
    assert files == {f"{row.op}_{row.name}" for row in smemkern.variants()}


def test_the_ladder_is_whole():
    names = {
        op: [row.name for row in smemkern.variants(op)] for op in ("gemm", "transpose", "probe")
    }
    assert set(names["gemm"]) >= {
        *("naive", "coalesced", "tiled", "conflicted", "padded", "swizzle", "double_buffer"),
        *("register_tiled", "vectorized", "pipelined", "simt"),
    }
    assert set(names["transpose"]) >= {"naive", "tiled", "padded", "swizzle", "vectorized"}
    assert len(names["probe"]) >= 6
    assert smemkern.variants() == tuple(row for op in names for row in smemkern.variants(op)), (
        "the rows of an operation stand together"
    )


@pytest.mark.parametrize("row", ROWS)
def test_row(row):
    assert row.summary
    assert row.min_sm >= 80
    assert re.search(rf"\b{row.op}_{row.name}\b", row.source)
    above = [other.name for other in smemkern.variants(row.op)]
    assert row.differs_from is None or row.differs_from in above[: above.index(row.name)]
    for param in row.params.values():
        assert param.default in param.legal
        assert param.doc
    with pytest.raises(TypeError, match="does not support item assignment"):
        row.params["new"] = None


@pytest.mark.parametrize("row", ROWS)
def test_default_image_is_compiled_ahead(row):
    for dtype in row.dtypes:
        stem = f"{row.op}_{row.name}-{dtype}"
        assert list(IMAGES.glob(f"{stem}.ptx")) + list(IMAGES.glob(f"{stem}-*.ptx"))


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_a_twin(row):
    assert callable(reference.twin(row.op, row.name))


def test_sources_open_with_their_story():
    """Purpose first, as a comment; and short enough to read at a sitting."""
    for path in sources():
        text = path.read_text()
        assert text.startswith("/*"), path
        assert len(text.splitlines()) <= 150, path


def test_parameters_that_do_not_compile_name_those_that_need_no_compiler(tmp_path, nvrtc):
    """A copy of the sources, spoilt, in a process of its own."""
    shutil.copytree(KERNELS, tmp_path / "kernels")
    (tmp_path / "kernels" / "gemm_tiled.cu").write_text("this is no CUDA")
    code = (
        "import sys, numpy as np, smemkern\n"
        "images = smemkern._core.config()['images']\n"
        "smemkern._core.configure(images=images, kernels=sys.argv[1])\n"
        "a = np.eye(4, dtype=np.float32)\n"
        "smemkern.gemm(a, a, variant='tiled', tile=16, device='emu')\n"
        "try: smemkern.gemm(a, a, variant='tiled', tile=13, device='emu')\n"
        "except smemkern.CompileError as error: print(error)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "kernels"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"SMEMKERN_CACHE_DIR": str(tmp_path / "cache")},
    ).stdout
    assert "this is no CUDA" in shown or "gemm_tiled.cu(1)" in shown
    assert "gemm_tiled-float32-tile16-pad0" in shown


def test_unknown_operation():
    with pytest.raises(ValueError, match=r"no operation 'gem'; there are: gemm, transpose, probe"):
        smemkern.variants("gem")
