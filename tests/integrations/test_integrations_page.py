"""The examples of docs/integrations.md print what their comments say."""

import re
import runpy
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"
BLOCKS = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.S | re.M)
EXAMPLES = {
    title: code for title, text in BLOCKS for code in re.findall(r"```python\n(.*?)```", text, re.S)
}
NEEDS = {
    "Triton": "triton",
    "Numba": "numba.cuda",
    "CuPy": "cupy",
    "cuda.core": "cuda.core",
    "PyTorch": "torch",
    "CuTe layouts": "smemkern.banks",
    "PyTorch extensions": "smemkern",
    "Text": "smemkern",
}


@pytest.mark.parametrize("title", NEEDS)
def test_example_of_the_page(title, nvrtc, tmp_path, capsys):
    """Each prints what its comments say."""
    pytest.importorskip(NEEDS[title])
    file = tmp_path / "example.py"
    file.write_text(EXAMPLES[title], encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(file))
    said = re.findall(r"^print\(.+\)  # (.*)$", EXAMPLES[title], re.M)
    assert said, "an example shows what it prints"
    assert capsys.readouterr().out.splitlines()[-len(said) :] == said


def test_every_section_has_an_example():
    assert set(NEEDS) == set(EXAMPLES)
