"""Running the command line from tests, and the source that the examples of its help are about."""

import doctest
import json
import re
import shlex
from pathlib import Path

from smemkern.__main__ import main

PAGE = Path(__file__).resolve().parents[1] / "docs" / "command-line.md"


def sum_source():
    """sum.cu of the page."""
    return re.search(r"```cuda\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[1]


def reference_source():
    """ref.cu of the page: sum.cu with its barrier."""
    return sum_source().replace("half /= 2)", "half /= 2, __syncthreads())")


def checked_source():
    """sum.cu below the comment that describes a launch."""
    launch = "--grid 4 --block 256 --arg f32[1000]=random --arg f32[4] --arg i32=1000"
    return f"// smemkern: check {launch}\n{sum_source()}"


def write_examples(folder):
    """The files of the examples of --help."""
    (folder / "src").mkdir()
    (folder / "src" / "sum.cu").write_text(checked_source())
    (folder / "sum.cu").write_text(sum_source())
    (folder / "ref.cu").write_text(reference_source())


def is_like(printed, wanted):
    """Whether a text is one that has "..." in place of what varies."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(f"{wanted}\n", printed, flags)


class Commands:
    """run("banks --stride 2"): its exit status, .out and .err."""

    def __init__(self, capsys):
        self._capsys = capsys

    def run(self, words, *more):
        self._capsys.readouterr()
        status = main([*shlex.split(words), *more])
        self.out, self.err = self._capsys.readouterr()
        return status

    def json(self, words, *more):
        name, _, rest = words.partition(" ")  # what follows the program of `run` is the program's
        self.status = self.run(f"{name} --json {rest}", *more)
        return json.loads(self.out)
