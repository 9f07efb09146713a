"""Converts a kernel's first comment to Markdown: pictures are kept, lines of prose are joined.

A line that begins with two spaces, or contains three in a row, belongs to a picture, unless it
continues a "- " item. A paragraph may begin with a word and a colon ("Banks:"), its heading.
"""

from __future__ import annotations

import re

_HEAD = re.compile(r"(?!Differs from)([A-Z][^.:;`]{0,44}):(?=\s|$)")
_NAME = re.compile(
    r"""(?<![\w`])(
        [A-Za-z_]\w*(?:\[[^\]]*\])+      # As[m][k]
      | \w+\.(?:cuh|cu|sync|async)\b     # common.cuh
      | __\w+                            # __syncthreads
      | [A-Za-z]\w*_\w+                  # double_buffer
    )""",
    re.X,
)


def comment_of(source: str) -> list[str]:
    """The lines of the first comment, without the asterisks."""
    text = source[source.index("/*") + 2 : source.index("*/")]
    lines = [re.sub(r"^ \*( |$)", "", line.rstrip()) for line in text.split("\n")]
    return [lines[0].removeprefix(" "), *lines[1:]]


def code_of(source: str) -> list[str]:
    """The lines after the first comment."""
    return source[source.index("*/") + 2 :].strip("\n").splitlines()


def _prose(text: str) -> str:
    """Prose with Markdown escaped and code marked as code."""
    parts = _NAME.split(text)
    return "".join(
        f"`{part}`" if at % 2 else re.sub(r"([\\`*_\[\]<>|#~$])", r"\\\1", part)
        for at, part in enumerate(parts)
    )


def _paragraph(lines: list[str], first: bool = False) -> str:
    text = " ".join(line.strip() for line in lines)
    head = _HEAD.match(text)
    if head and not first:
        return f"**{_prose(head[1])}:**{_prose(text[head.end() :])}"
    return _prose(text)


def story(source: str) -> str:
    """Markdown of a kernel's first comment."""
    blocks: list[tuple[str, list[str]]] = []
    kind = ""
    for line in comment_of(source):
        if not line:
            kind = ""
        elif (line.startswith("  ") and kind != "item") or "   " in line.strip():
            if kind != "picture":
                blocks.append(("picture", []))
            kind = "picture"
            blocks[-1][1].append(line)
        else:
            starts = (
                line.startswith("- "),
                bool(_HEAD.match(line) or line.startswith("Differs from")),
            )
            goes_on = kind == ("item" if line.startswith("  ") else "prose")
            if any(starts) or not goes_on:
                kind = "item" if starts[0] else "prose"
                blocks.append((kind, []))
            blocks[-1][1].append(line)
    return "\n\n".join(_block(kind, lines, at == 0) for at, (kind, lines) in enumerate(blocks))


def _block(kind: str, lines: list[str], first: bool) -> str:
    if kind == "picture":
        indent = min(len(line) - len(line.lstrip()) for line in lines)
        return "\n".join(["```text", *(line[indent:] for line in lines), "```"])
    if kind == "item":
        return f"- {_paragraph([lines[0].removeprefix('- '), *lines[1:]])}"
    return _paragraph(lines, first)
