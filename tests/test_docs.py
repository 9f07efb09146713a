"""The pages of docs/ that show examples, run; and their links, which the repository needs right.

The site itself is built by .ci/run, with warnings as errors.
"""

import doctest
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import smemkern

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md"]
RUN = ("faq.md", "tour.md")  # models.md: test_models_cli.py
WITHOUT_GPU = ("choosing.md",)  # what is printed depends on the GPU
ANCHOR = re.compile(r"[^\w\- ]")


@pytest.mark.parametrize("name", RUN)
def test_examples(name, nvrtc):
    text = (DOCS / name).read_text(encoding="utf-8")
    fenced = re.findall(r"```(\w*)\n(.*?)```", text, re.S)
    assert all(kind == "python" and ">>> " in code for kind, code in fenced), "blocks that are run"
    result = doctest.testfile(str(DOCS / name), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 10


@pytest.mark.parametrize("name", WITHOUT_GPU)
def test_examples_that_speak_of_the_gpu(name):
    if smemkern.devices()[0].name != "emu":
        pytest.skip("shows the numbers of an H200")
    result = doctest.testfile(str(DOCS / name), module_relative=False)
    assert result.failed == 0 and result.attempted


def test_the_kernel_of_your_own(nvrtc):
    """Its page's first block, which shows no output."""
    page = (DOCS / "your-own-kernel.md").read_text(encoding="utf-8")
    names = {}
    exec(re.search(r"```python\n(.*?)```", page, re.S)[1], names)
    assert (names["x"] == 9 * np.arange(1000.0)).all()  # by the call, and by the trace
    assert names["t"].global_ and not names["t"].hazards


def write_sources(page, folder):
    """The sources that a page shows with their names: // name.cu in the first line."""
    text = page.read_text(encoding="utf-8")
    for name, source in re.findall(r"```cuda\n// (\w+\.cu)\n(.*?)```", text, re.S):
        (folder / name).write_text(source, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_understood(page, monkeypatch, tmp_path, command):
    """Those of blocks of shell that need no GPU and take no minutes; kernels in files are there."""
    shown = "\n".join(re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.S))
    lines = shown.replace("\\\n", " ").splitlines()
    found = [line.partition("-m smemkern ")[2] for line in lines if "-m smemkern " in line]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    flip = re.search(r'source = """\n(.*?)"""', readme, re.S)[1]
    (tmp_path / "flip.cu").write_text(flip, encoding="utf-8")
    write_sources(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    for line in found:
        words = line.split("#")[0]
        if words.split()[0] in ("demo", "bench", "profile") or "rotate" in words:
            continue
        assert command.run(words) in (0, 1), f"{line}: {command.err}"


def test_the_verdict_of_the_page(nvrtc, monkeypatch, tmp_path, command):
    page = DOCS / "judge.md"
    write_sources(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    line = re.search(r"```sh\npython -m smemkern (.*?)```", text, re.S)[1].replace("\\\n", " ")
    assert command.run(line) == 1
    shown = re.search(r"```text\n(.*?)```", text, re.S)[1]
    numbers = re.compile(r" *\d+(\.\d+)?")  # of other versions of NumPy and NVRTC
    assert numbers.sub("N", command.out).strip() == numbers.sub("N", shown).strip()
    assert command.run(line, "--values", "random,zeros") == 0
    names = {"smemkern": smemkern, "reference": Path("relu.cu").read_text()}
    names["candidate"] = Path("fast.cu").read_text()
    exec(re.search(r"```python\n(.*?)```", text, re.S)[1], names)
    assert names["found"].verdict == "wrong"


def anchors(page):
    """As GitHub and MyST make them of headings."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    heads = re.findall(r"^#+ (.+)$", text, re.M)
    return {ANCHOR.sub("", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_repository(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        if name == "lab.html":  # made by buildtools.lab_page
            continue
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), link


@pytest.fixture
def kernel_story(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(DOCS / "_ext")])
    import kernel_story

    return kernel_story


def test_no_word_of_a_kernels_comment_is_lost(kernel_story):
    for row in smemkern.variants():
        told = re.sub(r"^```\w*$", "", kernel_story.story(row.source), flags=re.M)
        comment = "\n".join(kernel_story.comment_of(row.source))
        assert re.findall(r"\w+", told) == re.findall(r"\w+", comment), row.name
        code = "\n".join(kernel_story.code_of(row.source))
        assert row.source.endswith(f"*/\n{code}\n"), row.name


def test_pictures_stay_as_they_are_and_prose_flows(kernel_story):
    source = """/* GEMM: first line,
 * second line.
 *
 *      lane 0   | a_b * c |
 *    [--]   [--]   no space before
 *
 * Banks (float): a_b of As[m][k], 2 * 3;
 * more.
 * - an item
 *   that goes on
 * Differs from x: by y.
 */
code();
"""
    assert kernel_story.story(source) == (
        "GEMM: first line, second line.\n\n"
        "```text\n  lane 0   | a_b * c |\n[--]   [--]   no space before\n```\n\n"
        "**Banks (float):** `a_b` of `As[m][k]`, 2 \\* 3; more.\n\n"
        "- an item that goes on\n\n"
        "Differs from x: by y."
    )
    assert kernel_story.code_of(source) == ["code();"]
