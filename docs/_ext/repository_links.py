"""Adapts links of the repository, and the ends of examples, to the site.

lab.html is not a Sphinx page; lab_page.py makes it. CHANGELOG.md, CONTRIBUTING.md and
the kernels have pages that are generated at build time. A link whose text is a file name shows the
page's title instead. Examples end with a blank line, which doctest needs. Other linked files of the
repository become downloads, but folders do not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LAB = re.compile(r"\[([^\]\[]+)\]\((?:\.\./)*lab\.html(#[^)\s]*)?\)")
_ABOVE = re.compile(r"\]\((?:\.\./)+(CHANGELOG|CONTRIBUTING)\.md\)")
_KERNEL = re.compile(
    r"\]\((?:\.\./)+csrc/kernels(?:/(?:library/)?(\w+?)_(\w+)\.cu|/README\.md)?/?\)"
)
_NOTEBOOKS = r"\]\((?:\.\./)+README\.md#notebooks\)"
_BY_NAME = re.compile(r"\[([\w-]+\.md)\]\(((?:[\w.]+/)*\1(?:#[\w-]+)?)\)")
_UPWARDS = re.compile(r"\[([^\]\[]+)\]\(((?:\.\./)+[^)\s#]+)\)")


def _rewrite(app: Any, name: str, source: list[str]) -> None:
    up = "../" * name.count("/")
    here = Path(app.srcdir, name).parent

    def lab(link: re.Match[str]) -> str:
        return f'<a href="{up}lab.html{link[2] or ""}">{link[1]}</a>'

    source[0] = re.sub(r"(```python\n.*?)\n+```", r"\1\n```", source[0], flags=re.S)
    source[0] = _LAB.sub(lab, source[0])

    def kernel(link: re.Match[str]) -> str:
        page = f"{link[1]}-{link[2]}" if link[1] else "index"
        return f"](/generated/techniques/{page}.md)"

    source[0] = _KERNEL.sub(kernel, source[0])

    def folder(link: re.Match[str]) -> str:
        return link[1] if (here / link[2]).is_dir() else link[0]

    source[0] = _UPWARDS.sub(folder, source[0])
    source[0] = re.sub(_NOTEBOOKS, "](/generated/notebooks.md)", source[0])
    source[0] = _BY_NAME.sub(r"[](\2)", source[0])
    source[0] = _ABOVE.sub(lambda link: f"](/generated/{link[1].lower()}.md)", source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True}
