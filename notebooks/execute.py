"""Executes the notebooks in place, with reproducible files.

    python notebooks/execute.py                 all notebooks
    python notebooks/execute.py 01 04           those whose names begin with these

Outputs do not contain anything that varies between runs: no times, no widget ids, no Python
version; pieces of printed text are joined. Pictures are reduced to 256 colours, which takes a third
of the bytes without a visible difference. Needs pip install ".[notebook,nvrtc]", on a machine with
no GPU: its kernels are NVRTC's (docs/install.md), as a reader has them there.
"""

from __future__ import annotations

import base64
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
COLOURS = 256
TIMEOUT = 600  # seconds per cell
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("[0-9]*.ipynb"))


def read(file: Path) -> Any:
    return nbformat.read(file, as_version=4)


def executed(notebook: Any) -> Any:
    """The notebook with the outputs of a new run, in an empty folder: it needs no other file.

    Raises nbclient's CellExecutionError if a cell fails.
    """
    fresh = nbformat.from_dict(notebook)
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            fresh, timeout=TIMEOUT, kernel_name="python3", resources=resources, record_timing=False
        ).execute()
    return quiet(fresh)


def quiet(notebook: Any) -> Any:
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
            for output in cell.outputs:
                if "data" in output:
                    output.metadata = {}
                    output.data = {
                        kind: _kept(kind, of)
                        for kind, of in sorted(output.data.items())
                        if "widget" not in kind
                    }
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """Joins consecutive pieces of printed text to one output."""
    found: list[Any] = []
    for output in outputs:
        last = found[-1] if found else None
        if last and output.output_type == last.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            found.append(output)
    return found


def _kept(kind: str, content: Any) -> Any:
    if kind != "image/png":
        return content
    from PIL import Image

    picture = Image.open(BytesIO(base64.b64decode(content))).convert("RGB")
    few = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    png = BytesIO()
    few.save(png, "png", optimize=True)
    return base64.b64encode(png.getvalue()).decode()


def said(notebook: Any) -> list[list[str]]:
    """The text output of each code cell, without pictures; it is the same in every run."""
    return [
        [_words(output) for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _words(output: Any) -> str:
    if output.output_type == "stream":
        return output.text
    data = output.get("data", {})
    if "image/png" in data:
        return "picture"
    return data.get("text/markdown") or data.get("text/plain") or ""


def main(names: list[str]) -> None:
    for file in notebooks():
        if not names or file.name.startswith(tuple(names)):
            print(file.name, flush=True)
            nbformat.write(executed(read(file)), file)


if __name__ == "__main__":
    main(sys.argv[1:])
