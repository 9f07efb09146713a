"""Why no test can kill a mutant of c_mutants.py: a reason for each file, line and change.

Looked up by the file and by what the line was and became, not by its number.
"""

from __future__ import annotations

from typing import Any

REASONS: dict[tuple[str, str, str], str] = {}


def reason_of(record: dict[str, Any]) -> str | None:
    return REASONS.get((record["file"], record["before"], record["after"]))
