"""The listing, the page and the picture of a trace."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import smemkern
from smemkern._render import document
from smemkern._trace import listing
from smemkern._trace.launch import Launch
from test_trace_rows import PTX, run

VOID = {"meta", "rect", "line", "br"}


class Balance(HTMLParser):
    """Fails on tags that do not close."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            assert name not in ("src", "href")
            assert not name.startswith("on")
            assert "url(" not in (value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def check(page):
    parser = Balance()
    parser.feed(page)
    assert not parser.open
    assert "<script" not in page
    assert "http" not in page


@pytest.fixture(scope="module")
def conflicted():
    a = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    return smemkern.trace("gemm", a, a, variant="conflicted")


def test_annotate(conflicted):
    lines = conflicted.annotate().splitlines()
    [column] = [line for line in lines if "volatile REAL *" in line]
    assert column.split()[:4] == ["8192", "262144", "8192", "32.00"]
    with pytest.raises(ValueError, match="other.cu"):
        conflicted.annotate("other.cu")


def test_callers_are_charged():
    text = run()[0].annotate("main.cu")
    [inlined] = [line for line in text.splitlines() if line.endswith(" 10")]
    assert inlined.split()[:4] == ["4", "128", "4", "32.00"]
    assert "+" in inlined


def test_ptx_without_lines_is_its_own_source():
    plain = re.sub(r"\s*\.(loc|file) .*", "", PTX)
    kernel = smemkern.Kernel(plain, "k")
    text = smemkern.trace(kernel, 1, 32, np.zeros(32, np.int32)).annotate()
    assert "st.shared.u32 [%r3], %r1;" in text


@pytest.mark.parametrize("op", ["gemm", "transpose"])
def test_pages_of_all_variants(op):
    for row in smemkern.variants(op):
        if row.min_sm > 80:
            continue
        a = np.ones((32, 32), row.dtypes[0] if op == "gemm" else np.float32)
        t = smemkern.trace(op, *[a] * (2 if op == "gemm" else 1), variant=row.name)
        check(t.to_html())
        check(t._repr_html_())


def test_page_says_what_there_is(conflicted, tmp_path):
    page = conflicted.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    for word in ("gemm_conflicted", "conflict factor", "262\u2009144", "tile32", "<svg", "Warp"):
        assert word in page
    assert "traced 1 of 4 blocks" in run(1)[0].to_html()


def test_all_is_escaped():
    name = "<script>alert(1)&"  # of a path only what follows the last slash is shown
    t, _ = run()
    hostile = PTX.replace("main.cu", name).replace("deep.cuh", name)
    t = smemkern.trace(smemkern.Kernel(hostile, "k"), 1, 32, np.zeros(32, np.int32))
    check(t.to_html())
    assert "&lt;script&gt;" in t.to_html()


def test_hazards_are_shown():
    ptx = PTX.replace(
        "st.global.u32 [%rd2], %r2;", "ld.shared.u32 %r4, [tile+4]; add.u32 %r4, %r4, 1;"
    )
    t = smemkern.trace(smemkern.Kernel(ptx, "k"), 1, 32, np.zeros(32, np.int32))
    assert t.hazards
    check(t.to_html())
    assert "Hazards" in t.to_html()
    assert "!" in t.annotate()


def listed(trace, width):
    """The listing of a product's file at a width, as lines."""
    return document.text(listing.nodes(trace, width=width)[:2], width).splitlines()


@pytest.mark.parametrize("variant", ["conflicted", "vectorized", "pipelined"])
def test_annotate_beside_the_code(variant):
    """A narrow margin has all counts except the ideals, and nothing of the code is cut off."""
    a = np.ones((48, 48), np.float32)
    t = smemkern.trace("gemm", a, a, variant=variant)
    wide, narrow = listed(t, None), listed(t, 90)
    assert max(map(len, narrow)) <= 90

    def letters(lines, ideal):
        """Without blanks; `ideal`: the columns of it are there."""
        found = []
        for line in lines[3:]:
            margin, code = line[: lines[2].index("line") + 4], line[lines[2].index("line") + 4 :]
            counts = margin.split()
            if ideal and len(counts) > 8:
                counts = [count for i, count in enumerate(counts) if i not in (2, 6)]
            found += [*counts, code]
        return "".join("".join(found).split())

    joined = any(row.joined for row in t.shared)
    assert letters(narrow, False) == letters(wide, joined)


@pytest.mark.parametrize(
    ("variant", "width"), [("conflicted", 80), ("vectorized", 68), ("pipelined", 68)]
)
def test_annotate_below_the_code(variant, width):
    """Where a margin leaves less than 30 characters, all counts are in words below their line."""
    a = np.ones((48, 48), np.float32)
    t = smemkern.trace("gemm", a, a, variant=variant)
    lines = listed(t, width)
    assert max(map(len, lines)) <= width
    counts, number = {}, 0
    for line in lines[1:]:
        if re.match(r" +\| ", line):
            counts.setdefault(number, []).append(line.split("| ")[1])
        elif re.match(r"[ +] {0,3}\d+( |$)", line):
            number = int(line[1:].split()[0])
    rows = [row for row in t.shared if row.file == f"gemm_{variant}.cu" and not row.callers]
    assert rows
    for line in {row.line for row in rows}:
        here = [row for row in rows if row.line == line]
        requests, wavefronts, ideal = (
            sum(getattr(row, name) for row in here) for name in ("requests", "wavefronts", "ideal")
        )
        assert counts[line][0] == (
            f"shared: {requests} requests, {wavefronts} wavefronts, {ideal} ideal, "
            f"factor {wavefronts / ideal:.2f}"
        )
    shown = "".join("".join(lines).split())
    source = next(row.source for row in smemkern.variants("gemm") if row.name == variant)
    for line in source.splitlines():
        assert "".join(line.split()) in shown


def test_plot(conflicted):
    pytest.importorskip("matplotlib")
    bars, request = conflicted.plot()
    assert len(bars.patches) == 2 * len(conflicted.shared)
    assert "gemm_conflicted.cu:43 load: 32 wavefronts" in request.get_title()
    served = np.ma.filled(request.collections[0].get_array().astype(float), np.nan)
    assert np.nanmax(served) == 32
    a = np.ones((8, 8), np.float32)
    [empty] = smemkern.trace("gemm", a, a, variant="naive").plot()
    assert empty.texts[0].get_text() == "no access to shared memory"


def test_plots_are_registered_with_pyplot(conflicted):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")
    bars, _ = conflicted.plot()
    assert [bars.figure] == [plt.figure(n) for n in plt.get_fignums()]
    plt.close("all")


@pytest.mark.parametrize(
    ("entry", "title"),
    [
        ("gemm", "gemm"),
        ("_Z12mma_ldmatrixPK6__halfS1_Pfii", "mma_ldmatrix"),
        ("_ZN3foo3bar4gemmIfEEvPT_", "gemm"),
        ("_ZN12_GLOBAL__N_11kEv", "k"),
        ("_Z", "_Z"),
    ],
)
def test_titles(entry, title):
    assert Launch(entry, "Kernel", None, None, (), (1, 1, 1), {}).title == title
