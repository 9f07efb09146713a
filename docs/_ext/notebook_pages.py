"""Converts the committed notebooks, with their stored outputs, to pages; executes nothing.

Code, output and pictures become Markdown pages, which the site's search finds and any browser
shows. Each page begins with a link to the notebook.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

SHOWN = ("text/html", "text/markdown", "image/png", "text/plain")  # in order of preference


def write(notebooks: Path, folder: Path) -> list[str]:
    """Writes one page per notebook into the folder, three levels deep; returns their names."""
    (folder / "images").mkdir(parents=True)
    files = sorted(notebooks.glob("[0-9]*.ipynb"))
    for file in files:
        text = page(json.loads(file.read_text(encoding="utf-8")), file.stem, folder)
        (folder / f"{file.stem}.md").write_text(text, encoding="utf-8")
    return [file.stem for file in files]


def page(notebook: dict[str, Any], name: str, folder: Path) -> str:
    parts = []
    for at, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(linked(source))
            if at == 0:
                file = f"../../../notebooks/{name}.ipynb"
                parts.append(f"To run it, and to change it: [{name}.ipynb]({file}).")
            continue
        runs_shell = any(line.startswith("!") for line in source.splitlines())
        parts.append(f"```{'text' if runs_shell else 'python'}\n{source}\n```")
        parts += [
            shown(output, f"{name}-{at}-{number}", folder)
            for number, output in enumerate(cell["outputs"])
        ]
    return "\n\n".join(parts) + "\n"


def linked(text: str) -> str:
    """The text with links that are relative to notebooks/ made relative to the page."""
    text = re.sub(r"\]\((\d\d_\w+)\.ipynb\)", r"](\1.md)", text)
    return text.replace("](../docs/", "](../../")


def shown(output: dict[str, Any], name: str, folder: Path) -> str:
    if output["output_type"] == "stream":
        return printed("".join(output["text"]))
    kind = next(kind for kind in SHOWN if kind in output["data"])
    content = "".join(output["data"][kind])
    if kind == "image/png":
        (folder / "images" / f"{name}.png").write_bytes(base64.b64decode(content))
        words = " ".join("".join(output["data"].get("text/plain", "")).split())
        alt = re.sub(r"[\[\]<>]", "", words)
        return f"![{alt}](images/{name}.png)"
    if kind == "text/markdown":
        return content
    if kind == "text/html":
        return f"````{{raw}} html\n{content}\n````"
    return printed(content)


def printed(text: str) -> str:
    return f"{{.printed}}\n````text\n{text.rstrip()}\n````"
