"""Links that are right in the repository become right in the site.

Pages link to bank-explorer.html, which is no page of Sphinx but a file that is copied beside them,
and to CHANGELOG.md above docs/, whose page is made at build time.
"""

from __future__ import annotations

import re
from typing import Any

_EXPLORER = re.compile(r"\[([^\]\[]+)\]\((?:\.\./)*bank-explorer\.html(#[^)\s]*)?\)")
_ABOVE = re.compile(r"\]\((?:\.\./)+(CHANGELOG|CONTRIBUTING)\.md\)")


def _rewrite(_app: Any, name: str, source: list[str]) -> None:
    up = "../" * name.count("/")

    def explorer(link: re.Match[str]) -> str:
        return f'<a href="{up}bank-explorer.html{link[2] or ""}">{link[1]}</a>'

    source[0] = _EXPLORER.sub(explorer, source[0])
    source[0] = _ABOVE.sub(lambda link: f"](/generated/{link[1].lower()}.md)", source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True}
