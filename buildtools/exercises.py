"""The exercises of the laboratory (docs/lab/exercises) as data: python -m buildtools.exercises

prints them as one JSON array, in their order, each with its sources. docs/lab/exercises/README.md
says what the fields mean.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "lab" / "exercises"
SOURCES = ("start", "solution", "reference")


def exercise(folder):
    data = json.loads((folder / "exercise.json").read_text())
    return data | {name: (folder / f"{name}.cu").read_text() for name in SOURCES}


def exercises():
    return [exercise(path.parent) for path in sorted(FOLDER.glob("*/exercise.json"))]


if __name__ == "__main__":
    print(json.dumps(exercises(), separators=(",", ":")))
