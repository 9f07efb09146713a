"""Pictures with sliders: that they show what the model says, with ipywidgets and without."""

import base64
import sys

import numpy as np
import pytest

import smemkern
from smemkern import banks, widgets

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

PNG = b"\x89PNG\r\n"


@pytest.fixture
def no_ipywidgets(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)


@pytest.mark.parametrize("values", [{}, {"stride": 0}, {"stride": 33}, {"width": 16, "stride": 3}])
@pytest.mark.parametrize("op", ["load", "store"])
def test_banks(values, op):
    shown = widgets.banks(**values, op=op)
    stride, width = shown.values["stride"], shown.values["width"]
    cost = banks.wavefronts(width * stride * np.arange(32), width, op)
    assert f"{op} of {width} bytes by 32 lanes: {cost} wavefronts" in repr(shown)


@pytest.mark.parametrize(
    "values",
    [
        {"rows": 8, "cols": 16},
        {"rows": 8, "pad": 1},
        {"rows": 16, "cols": 16, "pad": 2},
        {"rows": 8, "cols": 64, "itemsize": 2, "swizzle": "128B", "access": "ldmatrix"},
        {"swizzle": "xor:16B", "access": "column:16B", "rows": 8},
    ],
)
def test_layout(values):
    shown = widgets.layout(**values)
    v = shown.values
    tile = banks.Layout(v["rows"], v["cols"], v["itemsize"], v["pad"], v["swizzle"])
    cost = tile.cost(v["access"])
    assert repr(tile) in repr(shown)
    assert f"requests: {cost.requests}, wavefronts: {cost.wavefronts}" in repr(shown)
    assert ("free of conflicts" in repr(shown)) == cost.conflict_free


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"pad": 1, "access": "row:16B"}, "whole and aligned"),
        ({"cols": 8, "swizzle": "128B"}, "rows of 128 bytes"),
    ],
)
def test_what_does_not_go_together_says_why(values, why):
    png, text = widgets.layout(**values).picture()
    assert why in text and png.startswith(PNG)


def test_values():
    shown = widgets.banks()
    first = shown.picture()
    assert shown.picture() is first  # drawn once
    assert shown.set(stride=2) is shown and shown.picture() != first
    assert shown.set(stride=1).picture() == first
    with pytest.raises(ValueError, match=r"width=3: expected one of 4, 8, 16, 1, 2"):
        widgets.banks(width=3)
    with pytest.raises(ValueError, match="colour='red': expected one of 'stride', 'width', 'op'"):
        shown.set(colour="red")
    assert shown.values == {"stride": 1, "width": 4, "op": "load"}


@pytest.mark.usefixtures("no_ipywidgets")
def test_without_ipywidgets_there_is_the_picture():
    shown = smemkern.widgets.banks(stride=4)
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"image/png", "text/plain"}
    assert base64.b64decode(bundle["image/png"]) == shown.picture()[0]
    with pytest.raises(ImportError, match=r"pip install '\.\[notebook\]'"):
        shown.widget()


def test_controls():
    w = pytest.importorskip("ipywidgets")
    shown = widgets.banks()
    box, image, words = shown.widget().children
    stride, width, op = box.children
    assert (stride.description, width.description, op.description) == ("stride", "width", "op")
    stride.value, width.value, op.value = "5", "8", "store"
    assert shown.values == {"stride": 5, "width": 8, "op": "store"}
    expected = widgets.banks(**shown.values).picture()
    assert image.value == expected[0]
    assert expected[1].splitlines()[0] in words.value
    assert isinstance(image, w.Image)
    assert "application/vnd.jupyter.widget-view+json" in shown._repr_mimebundle_()


@pytest.mark.long(instead="the controls of the other widgets")
def test_controls_of_a_tile():
    """Each of them draws the picture anew, and says the tile's new cost."""
    pytest.importorskip("ipywidgets")
    shown = widgets.layout(rows=8, cols=8)
    box, image, words = shown.widget().children
    controls = {control.description: control for control in box.children}
    assert set(controls) == {"rows", "cols", "itemsize", "pad", "swizzle", "access"}
    assert controls["swizzle"].value == "none"
    before = bytes(image.value)
    steps = [("pad", "1"), ("pad", "0"), ("swizzle", "xor"), ("rows", "16"), ("access", "row")]
    for name, value in steps:
        controls[name].value = value
        assert bytes(image.value) != before, name
        before = bytes(image.value)
        expected = widgets.layout(**shown.values)
        assert image.value == expected.picture()[0], name
        assert repr(expected).splitlines()[1].split(";")[0] in words.value, name
