"""The notebooks run from top to bottom, and what they print is what is committed."""

import re
import sys
from pathlib import Path

import pytest

from checks import NVCC_IMAGES

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
for package in ("nbclient", "nbformat", "ipykernel", "matplotlib", "PIL"):
    pytest.importorskip(package)
sys.path.append(str(FOLDER))

import execute  # noqa: E402

FILES = execute.notebooks()
LARGEST = 600_000  # bytes of a file that a page on the web still shows
AGAIN = "python notebooks/execute.py, and look at what has changed"


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_seven():
    assert [file.name[:2] for file in FILES] == [f"0{n}" for n in range(1, 8)]
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    for file in FILES:
        assert f"(notebooks/{file.name})" in readme


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_committed(file):
    """Outputs of one run from the top, pictures among them, and nothing that every run changes."""
    notebook = execute.read(file)
    cells = code(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), AGAIN
    assert sum(bool(cell.outputs) for cell in cells) > len(cells) / 2
    text = file.read_text(encoding="utf-8")
    assert len(text) < LARGEST
    assert "widget-view" not in text and str(FOLDER.parent) not in text
    assert notebook.metadata == execute.METADATA
    assert cells[0].source.startswith(("import", "from"))
    assert notebook.cells[0].source.startswith("# ") and "What you will see" in text
    assert "## Exercises" in text


def comparable(said):
    """What a cell said. Numbers of instructions, and registers, are those of NVRTC's kernels, which
    a reader without a GPU has; with nvcc's only the words are compared."""
    if not NVCC_IMAGES:
        return said
    blanks = (r"\d[\d.]*|holds|does not hold|\*\*", r"%\w+", r"\s+")
    return [[re.sub("|".join(blanks), "", text) for text in texts] for texts in said]


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_runs_again(file):
    committed = execute.read(file)
    fresh = execute.executed(committed)
    for cell, before, after in zip(
        code(committed), *map(comparable, map(execute.said, (committed, fresh))), strict=True
    ):
        assert before == after, f"{AGAIN}\n{cell.source}"


def notebook_of(*sources):
    from nbformat import v4

    return v4.new_notebook(cells=[v4.new_code_cell(source) for source in sources])


def test_an_error_is_an_error():
    from nbclient.exceptions import CellExecutionError

    with pytest.raises(CellExecutionError, match="not here"):
        execute.executed(notebook_of("raise ValueError('not here')"))


def test_outputs_are_quiet():
    notebook = execute.executed(
        notebook_of(
            "import sys\nfor i in range(50):\n    print(i)\n    sys.stdout.flush()",
            "import smemkern\nsmemkern.widgets.banks(stride=2)",
        )
    )
    (printed,), (shown,) = (cell.outputs for cell in code(notebook))
    assert printed.text == "".join(f"{i}\n" for i in range(50))
    assert set(shown.data) == {"image/png", "text/plain"}
    assert execute.said(notebook)[1] == ["picture"]
