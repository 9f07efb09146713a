"""The folders of csrc, and those of the Python package, use each other as docs/design.md draws it,
and in no other way."""

import ast
import importlib.util
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "csrc"
INCLUDE = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)
# What a folder offers to others, if that is not all of its headers.
HEADERS = {
    "emu": {"emu.h"},
    "emu/ptx": {"ptx.h", "opcodes.def"},
    "emu/observe": {"observer.h"},
    "emu/machine": {"machine.h"},
    "emu/isa": {"isa.h"},
    "emu/hazards": {"hazards.h"},
}


def drawn(block="text arrows", arrow="->"):
    """{folder: folders that it may use}, from the page's block of lines `a -> b, c`."""
    text = (ROOT / "docs" / "design.md").read_text()
    found = re.search(rf"```{block}\n(.*?)```", text, re.DOTALL)[1]
    rows = (line.split(arrow) for line in found.splitlines() if f" {arrow}" in line)
    return {left.strip(): set(re.findall(r"[\w/]+", right)) for left, right in rows}


def sources():
    return [p for p in CSRC.rglob("*") if p.suffix in {".c", ".h", ".def", ".cu", ".cuh"}]


def includes():
    """(file, included file), both from csrc."""
    for path in sources():
        for name in INCLUDE.findall(path.read_text()):
            # -Icsrc for C; -I. -Iinclude, from csrc/kernels, for CUDA
            folders = (path.parent, CSRC, CSRC / "kernels", CSRC / "kernels" / "include")
            targets = (Path(os.path.normpath(folder / name)) for folder in folders)
            target = next(target for target in targets if target.exists())
            yield path.relative_to(CSRC), target.relative_to(CSRC)


def folder_of(path):
    """The node of a file in the drawing. csrc/kernels has two: its headers, which the host also
    includes, and its kernels."""
    return "kernels/*.cu" if path.match("kernels/*.cu") else str(path.parent)


FOLDERS = sorted({folder_of(path.relative_to(CSRC)) for path in sources()})


def test_every_folder_is_drawn():
    assert set(drawn()) == set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_arrows(folder):
    found = {folder_of(b) for a, b in includes() if folder_of(a) == folder} - {folder}
    assert found <= drawn()[folder]


@pytest.mark.parametrize("block", ["text arrows", "text python arrows"])
def test_arrows_go_one_way(block):
    graph = drawn(block)
    while graph:
        lowest = [folder for folder, below in graph.items() if not below & set(graph)]
        assert lowest, f"a circle among {sorted(graph)}"
        graph = {folder: below for folder, below in graph.items() if folder not in lowest}


@pytest.mark.parametrize("folder", HEADERS)
def test_folders_offer_one_header(folder):
    inside = folder + "/"
    used = {
        b.name
        for a, b in includes()
        if str(b.parent) == folder
        and not f"{a.parent}/".startswith(inside)
        # emu/ itself puts its folders together
        and not (str(a.parent) == "emu" and folder.startswith("emu/"))
    }
    assert used <= HEADERS[folder]


# ---- the Python package ----

PACKAGE = ROOT / "smemkern"
PARTS = sorted(
    {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}
)


def imports(part):
    """(imported part, whether within a function) of a folder or module of the package."""
    folder = PACKAGE / part
    for path in folder.rglob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]:
        tree = ast.parse(path.read_text())
        functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
        inside = {id(n) for function in functions for n in ast.walk(function)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.level or "smemkern" in node.module):
                for name in targets(node, path):
                    yield name, id(node) in inside


def targets(node, path):
    """The parts of the package that a `from ... import ...` names."""
    module = (node.module or "").split(".") if node.module else []
    if node.level:
        here = path.relative_to(PACKAGE.parent).parent.parts
        module = [*here[: len(here) - node.level + 1], *module]
    below = module[1:2] or [alias.name for alias in node.names]
    return {name if name in {*PARTS, "_core"} else "__init__" for name in below}


def test_every_part_of_the_package_is_drawn():
    assert set(drawn("text python arrows")) == set(PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_arrows_of_python(part):
    found = {pair for pair in imports(part) if pair[0] not in (part, "_core")}
    solid = drawn("text python arrows")[part]
    dotted = drawn("text python arrows", "..>").get(part, set())
    assert {name for name, inside in found if not inside} <= solid
    assert {name for name, _ in found} == solid | dotted


def test_python_modules_that_c_imports_exist():
    text = "".join(path.read_text() for path in CSRC.rglob("*.c"))
    names = set(re.findall(r'PyImport_ImportModule\("(smemkern[\w.]*)"\)', text))
    assert len(names) > 5
    assert not [name for name in names if importlib.util.find_spec(name) is None]
