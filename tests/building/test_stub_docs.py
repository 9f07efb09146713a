"""An editor shows what help() shows: the docstrings of the stub are those of the C code."""

import ast
import inspect
import random

import smemkern
from buildtools.stub_docs import STUB, with_docs

AGAIN = "run: python -m buildtools.stub_docs"


def docstrings(body, owner, prefix=""):
    """(the stub's docstring or None, the object) of each name; overloads count as one."""
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            name, item = prefix + node.name, getattr(owner, node.name)
            found.setdefault(name, (ast.get_docstring(node), item))
            if isinstance(node, ast.ClassDef):
                found |= docstrings(node.body, item, f"{name}.")
    return found


def test_every_docstring_is_the_runtimes():
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    public = [node for node in tree.body if getattr(node, "name", "") != "_Config"]
    found = docstrings(public, smemkern._core)
    expected = "gemm transpose probe Kernel Kernel.ptx TensorMap Texture.handle HazardError"
    assert {*expected.split()} <= {*found}
    for name, (text, item) in found.items():
        if name.partition(".")[2].startswith("__"):
            assert text is None, name
        else:
            assert text and text == inspect.getdoc(item), f"{name}: {AGAIN}"


def test_writing_again_changes_nothing():
    stub = STUB.read_text(encoding="utf-8")
    assert with_docs(stub, smemkern._core) == stub, AGAIN


def test_a_changed_docstring_is_replaced():
    """In any definition of the stub, a text of one line or of many."""
    stub = STUB.read_text(encoding="utf-8")
    nodes = [n for n in ast.walk(ast.parse(stub)) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    node = random.choice([node for node in nodes if ast.get_docstring(node)])
    text, lines = node.body[0], stub.splitlines()
    indent = " " * (node.col_offset + 4)
    for other in (f'{indent}"""Old."""', f'{indent}"""Old\n\n{indent}in lines.\n{indent}"""'):
        changed = lines[: text.lineno - 1] + [other] + lines[text.end_lineno :]
        assert with_docs("\n".join(changed) + "\n", smemkern._core) == stub, node.name
