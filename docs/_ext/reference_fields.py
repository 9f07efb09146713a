"""Converts docstrings, which are plain text, for the API reference.

- Bars, asterisks and underscores are escaped, lines with aligned columns are kept, and attributes
  that share a line ("blocks, grid_blocks : int") are split.
- The name of a page's file (docs/models.md) becomes a link.
- Fields of named tuples and dataclasses are described by the comments next to them in the code
  (`width: int  # bytes per lane`), not by namedtuple's "Alias for field number 3".
- Modules in C are left out of the index of sources.
- The build fails when a public name of the package is on no page of the reference.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any

from sphinx.util import logging

import smemkern

_ROLES = ("ivar", "vartype")
_PRIVATE = {"__version__", "_measure"}


def fields(cls: type) -> list[tuple[str, str, str]]:
    """(name, type, comment) of each field that the class's own text annotates."""
    try:
        text = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return []
    lines = text.splitlines()
    found = []
    for node in ast.parse(text).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            _code, _, comment = lines[node.end_lineno - 1].partition("  # ")
            found.append((node.target.id, ast.unparse(node.annotation), comment.strip()))
    return found


_COLUMNS = re.compile(r"\S {3,}\S")
_MARKUP = re.compile(r"\||(?<=[\s(])\*(?=[*\w])|(?<=\w)_(?=[\s,.)\]]|$)")
_PAGE = re.compile(r"\bdocs/([\w-]+)\.md\b")
_SHARED = re.compile(r"(\w+(?:, \w+)+) : (.+)")


def _one_by_one(lines: list[str]) -> list[str]:
    """Splits attributes that share a line; each gets the text that follows."""
    text: list[str] = []
    at, inside = 0, False
    while at < len(lines):
        if set(lines[at].strip()) == {"-"}:
            inside = lines[at - 1].strip() == "Attributes"
        shared = _SHARED.fullmatch(lines[at].strip()) if inside else None
        end = at + 1
        if shared:
            while end < len(lines) and lines[end].startswith(" "):
                end += 1
        names = shared[1].split(", ") if shared else [""]
        for name in names:
            text += [f"{name} : {shared[2]}" if shared else lines[at], *lines[at + 1 : end]]
        at = end
    return text


def _plain(_app: Any, what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Escapes a docstring before napoleon parses it."""
    if what in ("property", "attribute") and lines:  # else text before a colon would be the type
        lines[0] = lines[0].replace(": ", " \u2013 ", 1)
    text: list[str] = []
    columns: int | None = None  # indentation of lines with columns
    for line in _one_by_one(lines):
        if line.startswith("Source: ") and text[-1:] == [""] and "Notes" not in text:
            text += ["Notes", "-----"]  # else it would belong to the previous section
        indent = len(line) - len(line.lstrip())
        example = line.lstrip().startswith((">>>", "..."))
        if columns is not None and indent < columns:
            columns = None
            text.append("")
        if columns is None and not example and _COLUMNS.search(line):
            columns = indent
            text += ["", f"{' ' * indent}::", ""]
        if columns is not None:
            text.append(f"    {line}")
        else:
            plain = line if example else _MARKUP.sub(r"\\\g<0>", line)
            text.append(_PAGE.sub(r":doc:`/\1`", plain))
    lines[:] = text


def _described(_app: Any, what: str, _name: str, cls: Any, _options: Any, lines: list[str]) -> None:
    if what != "class" or not (hasattr(cls, "_fields") or hasattr(cls, "__dataclass_fields__")):
        return
    if any(line.startswith((".. attribute::", ":ivar", ":var")) for line in lines):
        return  # the docstring has them
    lines.append("")
    for name, kind, comment in fields(cls):
        if not name.startswith("_"):
            plain = (_MARKUP.sub(r"\\\g<0>", text) for text in (comment, kind))
            lines += [f":{role} {name}: {text}" for role, text in zip(_ROLES, plain, strict=True)]
    lines.append("")


def _skip(_app: Any, _what: str, name: str, member: Any, skip: bool, _options: Any) -> bool | None:
    if type(member).__name__ == "_tuplegetter" or name in ("count", "index"):
        return True
    return None


def _sourceless(app: Any) -> list[Any]:
    """Removes modules in C from Sphinx's index of sources, which has no text of them."""
    modules = getattr(app.env, "_viewcode_modules", {})
    for name in [name for name, source in modules.items() if not source]:
        del modules[name]
    return []


def _complete(app: Any, environment: Any) -> None:
    known = set(environment.get_domain("py").objects)
    for name in sorted({f"smemkern.{name}" for name in smemkern.__all__ if name not in _PRIVATE}):
        if name not in known:
            logging.getLogger(__name__).warning(
                "%s is public and on no page of docs/reference/", name
            )


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _plain, priority=100)  # before napoleon
    app.connect("autodoc-process-docstring", _described, priority=900)  # after it
    app.connect("autodoc-skip-member", _skip)
    app.connect("env-check-consistency", _complete)
    app.connect("html-collect-pages", _sourceless, priority=100)  # before viewcode's
    return {"parallel_read_safe": True}
