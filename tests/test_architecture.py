"""The folders of csrc include each other as docs/design.md draws it, and in no other way."""

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


def drawn():
    """{folder: folders that it may include}, from the page's block of lines `a -> b, c`."""
    text = (ROOT / "docs" / "design.md").read_text()
    block = re.search(r"```text arrows\n(.*?)```", text, re.DOTALL)[1]
    rows = (line.split("->") for line in block.splitlines())
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


def test_arrows_go_one_way():
    graph = drawn()
    above: list[str] = []
    while graph:
        lowest = [folder for folder, below in graph.items() if not below & set(graph)]
        assert lowest, f"a circle among {sorted(graph)}"
        above += lowest
        graph = {folder: below for folder, below in graph.items() if folder not in lowest}
    assert len(above) == len(FOLDERS)


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
