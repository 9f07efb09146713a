"""The pages of docs/ that show examples, run; and their links, which the repository needs right.

The site itself is built by .ci/run, with warnings as errors.
"""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md"]
RUN = ("faq.md", "tour.md")  # models.md: test_models_cli.py
ANCHOR = re.compile(r"[^\w\- ]")


@pytest.mark.parametrize("name", RUN)
def test_examples(name, nvrtc):
    text = (DOCS / name).read_text(encoding="utf-8")
    fenced = re.findall(r"```(\w*)\n(.*?)```", text, re.S)
    assert all(kind == "python" and ">>> " in code for kind, code in fenced), "blocks that are run"
    result = doctest.testfile(str(DOCS / name), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 10


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
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), link
