"""The mistakes are found out, each as what it is; and docs/hazards.md says what they really say."""

import re
from pathlib import Path

import pytest

import smemkern
from smemkern import mistakes

ROWS = [pytest.param(row, id=row.name) for row in mistakes.rows()]
KINDS = {
    "missing_barrier": "RAW",
    "divergent_barrier": "barrier",
    "padded_over_limit": "shared-limit",
    "uninitialised": "uninitialised",
    "out_of_bounds": "out-of-bounds",
    "missing_wait": "async-read",
    "early_release": "WAR",
    "unawaited_refill": "deadlock",
    "wrong_bytes": "deadlock",
}
PAGE = Path(__file__).resolve().parent.parent / "docs" / "hazards.md"


def test_files_are_rows():
    folder = Path(smemkern._core.config()["kernels"], "mistakes")
    assert {file.stem for file in folder.glob("*.cu")} == {row.name for row in mistakes.rows()}
    assert set(KINDS) == {row.name for row in mistakes.rows()}


@pytest.mark.parametrize("row", ROWS)
def test_is_found(row):
    assert {hazard.kind for hazard in row.trace().hazards} == {KINDS[row.name]}
    with pytest.raises(smemkern.HazardError) as caught:
        row.run()
    assert {hazard.kind for hazard in caught.value.hazards} == {KINDS[row.name]}
    assert row.source.startswith("// Mistake: ")
    if PAGE.exists():  # not in an installed package
        # Which registers an instruction names is the compiler's business.
        told, page = (
            re.sub(r"%(r[ds]?)\d+", r"%\1", text) for text in (str(caught.value), PAGE.read_text())
        )
        assert f"```\n{told}\n```" in page
