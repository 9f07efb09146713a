"""What tests expect to fail is one thing, and fails as they expect: a `pytest.raises` around more
than that passes as well where something before it fails."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SPEAKS = {  # for itself: nothing else raises it
    "KeyboardInterrupt",
    "ZeroDivisionError",
    "smemkern.NoDeviceError",
    "(KeyboardInterrupt, Alarm)",
}


def expectations(tree: ast.Module) -> Iterator[tuple[ast.With, ast.withitem]]:
    for block in ast.walk(tree):
        for item in block.items if isinstance(block, ast.With) else ():
            call = item.context_expr
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.raises":
                yield block, item


def faults(text: str) -> list[str]:
    """What may pass for a wrong reason, by line."""
    found = []
    for block, item in expectations(ast.parse(text)):
        given = ast.unparse(item.context_expr.args[0])
        says = item.optional_vars or any(k.arg == "match" for k in item.context_expr.keywords)
        if len(block.body) > 1:
            found.append(f"{block.lineno}: more than one statement may raise")
        if not says and given not in SPEAKS:
            found.append(f"{block.lineno}: which {given}? match=")
        for call in ast.walk(block):
            made = call.func if isinstance(call, ast.Call) else None
            if isinstance(made, ast.Call) and ast.unparse(made.func) != "getattr":
                found.append(f"{call.lineno}: what is called should be made before")
    return found


@pytest.mark.parametrize("path", sorted(HERE.rglob("test_*.py")), ids=lambda path: path.stem)
def test_one_thing_is_expected_to_fail(path) -> None:
    assert not faults(path.read_text())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("with pytest.raises(ValueError):\n    f()", "which ValueError"),
        ("with pytest.raises((LaunchError, Error)):\n    f()", "which (LaunchError, Error)"),
        ("with pytest.raises(Error, match='x'):\n    k = f()\n    k()", "more than one"),
        ("with open(x), pytest.raises(Error, match='x'):\n    f(1)(2)", "made before"),
    ],
)
def test_such_are_found(body, words) -> None:
    [fault] = faults(body)
    assert words in fault
