"""Copies the docstrings of smemkern._core into its stub, for editors, which read the stub alone.

    python -m buildtools.stub_docs

The texts are those of the C files, csrc/module/docs.h first. tests/building/test_stub_docs.py
compares them. Of a function with overloads the first one has the docstring.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

STUB = Path(__file__).parents[1] / "smemkern" / "_core.pyi"
Definition = ast.FunctionDef | ast.ClassDef


def documented(stub: str, module: ModuleType) -> Iterator[tuple[Definition, str]]:
    """Each function and class of the stub, and what is in a class, with its docstring."""

    def of(body: list[ast.stmt], owner: object) -> Iterator[tuple[Definition, str]]:
        seen = set()
        for node in body:
            if not isinstance(node, Definition) or node.name in seen:
                continue
            seen.add(node.name)
            item = getattr(owner, node.name, None)
            is_special = node.name.startswith("__")  # its text is Python's
            text = None if is_special else inspect.getdoc(item)
            if text:
                yield node, text
            if isinstance(node, ast.ClassDef):
                yield from of(node.body, item)

    return of(ast.parse(stub).body, module)


def with_docs(stub: str, module: ModuleType) -> str:
    """The stub with the docstrings of the module."""
    lines = stub.splitlines()
    found = sorted(documented(stub, module), key=lambda each: each[0].lineno, reverse=True)
    for node, text in found:  # from the end, so that numbers of lines stay right
        _put(lines, node, text)
    return "\n".join(lines) + "\n"


def _put(lines: list[str], node: Definition, text: str) -> None:
    """The docstring in place of the node's own one, or of its "..."."""
    quoted = _quoted(text, " " * (node.col_offset + 4))
    first = node.body[0]
    is_text = ast.get_docstring(node) is not None
    is_dots = ast.unparse(first) == "..."
    end = first.end_lineno or first.lineno
    if is_text or (is_dots and lines[first.lineno - 1].strip() == "..."):
        lines[first.lineno - 1 : end] = quoted
    elif is_dots:  # at the end of the line of the head
        lines[end - 1] = lines[end - 1].removesuffix(" ...")
        lines[end:end] = quoted
    else:
        lines[first.lineno - 1 : first.lineno - 1] = [*quoted, ""]


def _quoted(text: str, indent: str) -> list[str]:
    mark = 'r"""' if "\\" in text else '"""'
    first, *rest = text.splitlines()
    if not rest:
        return [f'{indent}{mark}{first}"""']
    return [f"{indent}{mark}{first}", *(f"{indent}{x}".rstrip() for x in rest), f'{indent}"""']


def main() -> None:
    from smemkern import _core

    STUB.write_text(with_docs(STUB.read_text(encoding="utf-8"), _core), encoding="utf-8")


if __name__ == "__main__":
    main()
