"""What each run that suites/explained.py explains gives, so that a change of it shows.

An explanation excuses a wrong result or a hazard. The record says which instances of the kernel
have it, what the result is to the bit (or the fault), and which lines the hazards are of. An
instance that is not in the record, or that gives something else, counts as wrong.
`public_suites.py --accept` writes the record, after several runs: of what differs between these
runs, because blocks race, it keeps only what they have in common.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from . import reference

PATH = Path(__file__).with_name("fingerprints.json")
RUNS = 4  # before a fingerprint is accepted
VARIES = "varies"
# Addresses, blocks and threads of a fault depend on the host's threads.
PLACES = re.compile(r"0x[0-9a-f]+|\(\d+(?:, \d+)*\)")

# What ends a run. What else a run has found by then depends on the host's threads, too.
FAULTS = ("out-of-bounds", "misaligned", "deadlock", "exited", "shared-limit", "untraced")

Fingerprint = dict[str, str]


def _result(outcome: reference.Outcome) -> Fingerprint:
    """The bits, and less exactly how many elements differ; or the fault."""
    if outcome.right:
        return {"bits": "right", "result": "right"}
    if outcome.bits is None:
        fault = PLACES.sub("...", outcome.detail)
        return {"bits": "none", "result": fault}
    bits = hashlib.sha256(outcome.bits).hexdigest()[:16]
    return {"bits": bits, "result": outcome.detail.partition(";")[0]}


def _kind(place: str) -> str:
    return place.partition(" ")[0]


def of(outcome: reference.Outcome) -> Fingerprint:
    places = set(outcome.places)
    if faults := {place for place in places if _kind(place) in FAULTS}:
        places = faults
    return {
        **_result(outcome),
        "hazards": "; ".join(sorted(places)),
        "kinds": ", ".join(sorted(set(map(_kind, places)))),
    }


def common(several: list[Fingerprint]) -> Fingerprint:
    first = several[0]
    return {
        key: value if all(one[key] == value for one in several) else VARIES
        for key, value in first.items()
    }


def difference(found: Fingerprint, recorded: Fingerprint | None) -> str:
    """What is not as recorded; empty if nothing is."""
    if recorded is None:
        return "the record of explained runs has no such instance"
    for key, value in recorded.items():
        if value not in (VARIES, found[key]):
            return f"{key}: recorded {value!r}, found {found[key]!r}"
    return ""


class Record:
    """The fingerprints by suite, and by file and demangled name."""

    def __init__(self, path: Path = PATH) -> None:
        self.path = path
        self.suites: dict[str, dict[str, Any]] = (
            json.loads(path.read_text()) if path.exists() else {}
        )

    @staticmethod
    def key(file: str, name: reference.Name) -> str:
        return f"{file}: {name.text}"

    def find(self, suite: str, file: str, name: reference.Name) -> Fingerprint | None:
        return self.suites.get(suite, {}).get(self.key(file, name))

    def names(self, suite: str) -> set[str]:
        return set(self.suites.get(suite, {}))

    def replace(self, suite: str, found: dict[str, Fingerprint]) -> None:
        """Writes the suite's fingerprints."""
        self.suites.pop(suite, None)
        if found:
            self.suites[suite] = dict(sorted(found.items()))
        text = json.dumps(dict(sorted(self.suites.items())), indent=1)
        self.path.write_text(f"{text}\n")
