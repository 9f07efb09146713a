"""Pictures: that they draw what the models say, headless. How they look was judged by eye."""

import json
import subprocess
import sys

import numpy as np
import pytest

import smemkern
from smemkern import banks, coalescing

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

H200 = smemkern.ceilings("H200")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def roof():
    return smemkern.roofline("gemm", (512, 512, 512), "float32", H200)


def texts(ax):
    return [t.get_text() for t in ax.texts]


@pytest.mark.parametrize("width", [1, 4, 8, 16])
def test_request(width, rng):
    for _ in range(8):
        addresses = width * rng.integers(0, 200, 32)
        active = rng.random(32) < 0.7
        ax = smemkern.plot.request(addresses, width, active=active)
        cells = ax.collections[0].get_array().reshape(32, 32)
        cost = banks.wavefronts(addresses, width, active=active)
        for lane in range(32):
            filled = np.flatnonzero(~np.ma.getmaskarray(np.ma.masked_invalid(cells[lane])))
            first = addresses[lane] // 4 % 32
            expected = (
                {(first + i) % 32 for i in range(max(width // 4, 1))} if active[lane] else set()
            )
            assert set(filled.tolist()) == expected
        assert np.nanmax(np.ma.filled(cells, np.nan)) == cost  # the last wavefront serves somebody
        assert f"{cost} wavefront" in ax.get_title()
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("bank", "lane")
        plt.close("all")


def test_request_draws_into_given_axes():
    figure, axes = plt.subplots(1, 2)
    assert smemkern.plot.request(4 * np.arange(32), ax=axes[1]) is axes[1]
    assert not axes[0].has_data()


@pytest.mark.parametrize("width", [1, 4, 16, 32])
def test_sectors(width, rng):
    for _ in range(3):
        addresses = width * rng.integers(0, 400, 32)
        active = rng.random(32) < 0.7
        ax = smemkern.plot.sectors(addresses, width, active)
        cells = ax.collections[0].get_array().reshape(32, -1)
        lines = np.unique(addresses[active] // 128)
        assert cells.shape[1] == 4 * len(lines)
        for lane in range(32):
            asked = np.flatnonzero(np.ma.filled(cells[lane], np.nan) == 1)
            where = [lines[c // 4] * 4 + c % 4 for c in asked]
            assert where == ([addresses[lane] // 32] if active[lane] else [])
        count = coalescing.sectors(addresses, width, active)
        touched = np.isfinite(np.ma.filled(cells, np.nan)).any(0).sum()
        assert touched == count and f"{count} sector" in ax.get_title()
        plt.close("all")
    with pytest.raises(ValueError, match="one request"):
        smemkern.plot.sectors(np.zeros((2, 32), int))


def test_a_request_that_is_known():
    asked = banks.explain(4 * 8 * np.arange(32))
    ax = smemkern.plot.request(asked)
    assert ax.get_title() == smemkern.plot.request(4 * 8 * np.arange(32)).get_title()
    assert "8 wavefronts, ideal 1" in ax.get_title()


def test_layout():
    tile = banks.Layout(16, 32, swizzle="xor")
    ax = tile.plot(access="column", request=1)
    r, c = np.indices((16, 32))
    np.testing.assert_array_equal(ax.images[0].get_array(), tile.bank(r, c))
    assert texts(ax) == [str(b) for b in tile.bank(r, c).ravel()]
    outlined = {(round(p.get_y() + 0.5), round(p.get_x() + 0.5)) for p in ax.patches}
    walk = banks.pattern("column", 16, 32)
    assert outlined == set(zip(walk.r[1].tolist(), walk.c[1].tolist(), strict=True))
    assert "column, request outlined: 2 wavefronts" in ax.get_title()
    halves = banks.Layout(8, 16, itemsize=2)
    assert texts(halves.plot()) == [str(b) for b in halves.bank(r[:8, :16:2], c[:8, :16:2]).ravel()]
    large = banks.Layout(256, 32, pad=1).plot()
    assert not texts(large) and "numbers" not in large.get_title()
    assert [a.get_ylabel() for a in large.figure.axes] == ["row", "bank"]


def test_stride_table():
    ax = smemkern.plot.stride_table(range(1, 9))
    assert [bar.get_height() for bar in ax.patches] == [1, 2, 1, 4, 1, 2, 1, 8]
    assert texts(ax) == ["50", "25", "50", "12.5"]
    assert "4 bytes" in ax.get_xlabel() and ax.get_ylabel() == "wavefronts per request"


def test_occupancy():
    ax = smemkern.plot.occupancy(64, 49152, threads=256)
    drawn = np.concatenate([dots.get_offsets() for dots in ax.collections])
    curve = smemkern.occupancy(np.arange(32, 1025, 32), 64, 49152)
    expected = np.stack([np.arange(32, 1025, 32), 100 * curve.fraction], -1)
    np.testing.assert_allclose(drawn[drawn[:, 0].argsort()], expected)
    named = {t.get_text() for t in ax.get_legend().get_texts()}
    assert named == set(curve.limiter.tolist())
    assert texts(ax) == ["256 threads: 4 blocks, 50%"]


def test_roofline(roof, tmp_path):
    measured = {"naive": 0.3, "tiled": 5.0}
    ax = smemkern.plot.roofline(roof, measured=measured)
    words = " ".join(texts(ax))
    for row in roof.variants:
        assert row.variant in words
    assert "naive 0.3" in words and "tiled 5" in words
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert ax.get_ylabel() == "TFLOP/s"
    results = tmp_path / "results.json"
    line = {"dtype": "float32", "params": {}}
    lines = [
        {**line, "variant": "naive", "shape": [512, 512, 512], "tflops": 0.25},
        {**line, "variant": "tiled", "shape": [512, 512, 513], "tflops": 7.0},
    ]
    results.write_text(json.dumps({"gemm": {"lines": lines}}))
    words = " ".join(texts(smemkern.plot.roofline(roof, measured=results)))
    assert "naive 0.25" in words and "tiled 7" not in words
    with pytest.raises(ValueError, match="no FLOPs"):
        smemkern.plot.roofline(smemkern.roofline("transpose", (64, 64), "float32", H200))


def test_without_matplotlib():
    """The models import and work; a picture says what to install."""
    code = """
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
import smemkern
assert smemkern.banks.wavefronts(range(0, 128, 4)) == 1
try:
    smemkern.plot.stride_table()
except ImportError as missing:
    assert "pip install '.[plot]'" in str(missing)
else:
    sys.exit("drew without matplotlib")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_is_lazy():
    code = """
import sys, smemkern
for name in ("matplotlib", "smemkern.banks", "smemkern.plot", "smemkern._device.occupancy"):
    assert name not in sys.modules, name
assert "occupancy" in dir(smemkern) and callable(smemkern.occupancy)
assert smemkern.banks is sys.modules["smemkern.banks"]
assert callable(smemkern.occupancy), "the function, not a module"
"""
    subprocess.run([sys.executable, "-c", code], check=True)
