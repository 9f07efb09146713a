"""Makes docs/lab.html, the laboratory page, before Sphinx reads the pages.

Its WebAssembly module needs the package ziglang (the dependency group `lab`). Without it the site
has no laboratory page.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "lab.html"


def _write(app: Any) -> None:
    if find_spec("ziglang") is None:
        message = "no laboratory page: the package ziglang is missing (pip install --group lab)"
        logging.getLogger(__name__).info(message)
        return
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from buildtools import lab_page

    PAGE.write_text(lab_page.page(lab_page.made_module()), encoding="utf-8")
    app.config.html_extra_path.append("lab.html")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True}
