"""What a notebook shows of every result: whole, escaped, no scripts, the words of the text."""

import html
import re

import numpy as np
import pytest

import smemkern
from smemkern import banks, coalescing, mistakes
from smemkern._device.transfer import Transfer
from smemkern._performance.profile import Profile, ProfileLine, ProfileRow
from smemkern._render.document import Facts, Heading, Listing, Paragraph, Picture, Table, text
from smemkern._render.html import STYLE, markup
from smemkern._render.table import Bar, Cell, Right
from smemkern._trace.page import page
from test_page import check

HOSTILE = "<script>alert('&\"')</script>"


def traced(variant="conflicted"):
    a = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    return smemkern.trace("gemm", a, a, variant=variant)


def profiled():
    row = ProfileRow("smsp__x.sum", "shared load requests", 4, 4, 8)
    line = ProfileLine("gemm_tiled.cu", 3, "shared", "load", 1, 1, 2, 3)
    return Profile(traced(), [row], [line], f"ncu {HOSTILE}")


def benched(*shapes):
    return smemkern.bench(shapes, variants=["tiled", ("padded", {"tile": 16})], device="emu")


RESULTS = {
    "trace": traced,
    "trace.shared": lambda: traced().shared,
    "trace.global_": lambda: traced().global_,
    "trace.hazards": lambda: mistakes.rows()[0].trace().hazards,
    "no hazards": lambda: traced().hazards,
    "request": lambda: traced().shared[1].worst_request,
    "request, global": lambda: traced().global_[0].worst_request,
    "explain": lambda: banks.explain(16 * np.arange(32)),
    "bench": lambda: benched((16, 16, 16), (8, 8, 8)),
    "no bench": benched,
    "variants": smemkern.variants,
    "variant": lambda: smemkern.variants("gemm")[2],
    "variant without parameters": lambda: smemkern.variants("transpose")[0],
    "devices": smemkern.devices,
    "device": lambda: smemkern.devices()[-1],
    "occupancy": lambda: smemkern.occupancy(256, 64, 49152),
    "occupancy, curve": lambda: smemkern.occupancy(np.arange(32, 1025, 32), 64),
    "occupancy, plane": lambda: smemkern.occupancy(np.arange(32, 1025, 32), [[32], [64]]),
    "layout": lambda: banks.Layout(32, 32, pad=1),
    "layout, swizzled": lambda: banks.Layout(100, 64, 2, swizzle="128B"),
    "layout, small": lambda: banks.Layout(1, 1, 16),
    "suggestion": lambda: banks.suggest(32, 32, 4, ["row", "column"]),
    "stride table": banks.stride_table,
    "sectors": coalescing.stride_table,
    "choices": lambda: smemkern.choices(512, 512, 512),
    "transfer": lambda: Transfer(10**8, 10**7, 10**6, 10**8, 0, 0.01, 8, 20),
    "transfer between GPUs": lambda: Transfer(10**8, 10**7, 0, 10**8, 3 * 10**7, 0.01, 8, 20),
    "no transfer": lambda: Transfer(0, 0, 0, 0, 0, 0.0, 0, 0),
    "roofline": lambda: smemkern.roofline("gemm", (64, 64, 64), "float32", "H200"),
    "roofline, transpose": lambda: smemkern.roofline("transpose", (64, 64), "float32", "H200"),
    "roofs": lambda: smemkern.roofline("transpose", (64, 64), "float32", "H200").variants,
    "ceilings": lambda: smemkern.ceilings("H200"),
    "architectures": smemkern.architectures,
    "profile": profiled,
}


@pytest.mark.parametrize("name", RESULTS)
def test_whole_and_escaped(name):
    result = RESULTS[name]()
    shown = result._repr_html_()
    check(shown)
    assert "alert('" not in shown
    assert 'class="smk' in shown
    assert len(shown) < 100_000
    assert " object at 0x" not in repr(result)
    assert result._repr_html_() == shown


@pytest.mark.parametrize("name", RESULTS)
def test_the_same_words_as_text(name):
    result = RESULTS[name]()
    if name == "trace":
        return  # whose page has more
    body = re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", result._repr_html_(), flags=re.S)
    in_html = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())
    plain = re.sub("#+", " ", text(result._nodes()))
    assert in_html.split() == plain.split()


NODES = [
    Heading(HOSTILE),
    Paragraph(HOSTILE, "bad"),
    Listing([HOSTILE, Cell(HOSTILE, "dim")]),
    Facts([(HOSTILE, HOSTILE)]),
    Table((HOSTILE, "b"), [(HOSTILE, Right(HOSTILE)), (Cell(HOSTILE, "good"), Bar(0.3))]),
    Picture("<svg></svg>"),
]


def test_everything_is_escaped():
    shown = markup(NODES)
    check(shown)
    assert shown.count("&lt;script&gt;") == 10


def test_both_themes_have_every_colour():
    themes = re.findall(r"\{(color-scheme:[^}]*)\}", STYLE.replace("\n", ""))
    names = [sorted(re.findall(r"(--\w+):", theme)) for theme in themes]
    assert len(themes) >= 3 and all(each == names[0] for each in names)
    used = {*re.findall(r"var\((--\w+)\)", STYLE + page(traced()))}
    assert used <= {*names[0]}


def test_rows_are_still_tuples():
    rows = smemkern.variants("gemm")
    assert isinstance(rows, tuple) and rows == tuple(rows) and smemkern.devices()[-1].name == "emu"
    assert not traced().hazards and traced().hazards == ()


def test_pictures_are_of_what_is_asked(rng):
    layout = banks.Layout(8, 6, pad=1)
    shown = layout._repr_html_()
    numbers = [int(n) for n in re.findall(r"<tspan[^>]*>(\d+)</tspan>", shown)]
    assert numbers == [int(layout.bank(r, c)) for r in range(8) for c in range(6)]


def test_formatters_of_ipython():
    formatters = pytest.importorskip("IPython.core.formatters").DisplayFormatter()
    for name, make in RESULTS.items():
        data, _ = formatters.format(make(), include=["text/plain", "text/html"])
        assert data["text/html"].startswith("<div") and data["text/plain"], name
        assert "namedtuple" not in data["text/plain"]
