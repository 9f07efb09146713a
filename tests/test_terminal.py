"""Nodes as text and on a terminal: widths and colour; rich neither adds nor drops a word."""

import io
import os
import re
import sys
from pathlib import Path

import pytest

from command import sum_source
from smemkern._render import document, terminal
from smemkern._render.document import Facts, Heading, Listing, Paragraph, Table, text
from smemkern._render.table import Bar, Cell, Note, Right, fitted, table
from test_trace_rows import PTX

SNAPSHOTS = Path(__file__).parent / "snapshots"
HEADER = ("variant", "what it is", "requests", "factor", "")
WORDS = "tiles in shared memory make both sides coalesced, and columns of them conflict"
ROWS = [
    ("gemm tiled", WORDS, 1081344, Right("1.00", "good"), Bar(0.5, 20)),
    ("transpose_of_a_long_name", "short", 7, Right("16.50", "bad"), Bar(1.0, 20)),
]
NODES = [
    Heading("What there is"),
    Facts([("device", "emu"), ("driver", "there is no NVIDIA driver: " + WORDS), ("", "more")]),
    Paragraph(WORDS + ". " + WORDS + "\nA line of its own"),
    Table(HEADER, ROWS),
    Paragraph(""),
    Listing(["    if (x)   y[threadIdx.x] = z;", Cell("! " + WORDS, "bad")]),
    Table(("a", "b"), []),
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def without_escapes(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def words(text):
    """Without colours, rules and the places where lines break."""
    return re.sub("─+", " ", without_escapes(text)).split()


# ---- widths


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_nothing_is_lost_and_lines_fit(width):
    shown = text(NODES, width)
    least = len("what it is  transpose_of_a_long_name")  # names and words are not broken
    assert max(map(len, shown.splitlines())) <= max(width, least)
    unbroken = text(NODES, None).split()
    assert {*unbroken} <= {*shown.split()}
    if fitted(HEADER, ROWS, width):  # else the names of columns are there more than once
        assert sorted(shown.split()) == sorted(unbroken)


def test_numbers_and_names_are_not_broken():
    for width in range(10, 150):
        shown = table(HEADER, ROWS, width)
        for whole in ("gemm tiled", "transpose_of_a_long_name", "1081344", "16.50", "variant"):
            assert whole in shown, width


def test_too_narrow_for_columns_means_a_line_for_each_cell():
    assert fitted(HEADER, ROWS, 40) is None
    assert table(HEADER, ROWS, 40).splitlines()[-3:-1] == [
        "requests    7",
        "factor      16.50",
    ]


def test_in_a_pipe_a_row_is_a_line():
    assert len(table(HEADER, ROWS).splitlines()) == 3
    assert terminal.width_of(io.StringIO()) is None


def test_width_is_the_terminals(monkeypatch):
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as stream, os.fdopen(master):
        import fcntl
        import struct
        import termios

        fcntl.ioctl(stream.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", 24, 57, 0, 0))
        assert terminal.width_of(stream) == 57
        monkeypatch.setenv("COLUMNS", "99")
        assert terminal.width_of(stream) == 99
        monkeypatch.setenv("COLUMNS", "wide")
        assert terminal.width_of(stream) == 57


def test_empty():
    assert text([]) == "" and table(("a", "b"), []) == "a  b"
    assert text([Paragraph(""), Heading("x")]) == "x"


# ---- colour


@pytest.mark.parametrize(
    ("choice", "is_tty", "environment", "wanted"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("always", False, {"NO_COLOR": "1", "TERM": "dumb"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour(monkeypatch, choice, is_tty, environment, wanted):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = Terminal() if is_tty else io.StringIO()
    assert terminal.is_coloured(choice, stream) == wanted
    pytest.importorskip("rich")
    terminal.show(NODES, stream, choice)
    assert ("\x1b[" in stream.getvalue()) == wanted


@pytest.mark.parametrize("width", [None, 20, 30, 40, 60, 80, 120])
def test_rich_says_the_same(monkeypatch, width):
    pytest.importorskip("rich")
    if width:
        monkeypatch.setenv("COLUMNS", str(width))
    coloured, plain = io.StringIO(), io.StringIO()
    terminal.show(NODES, coloured, "always")
    terminal.show(NODES, plain, "never")
    assert "\x1b[" in coloured.getvalue() and "\x1b" not in plain.getvalue()
    assert words(coloured.getvalue()) == words(plain.getvalue())
    lines = without_escapes(coloured.getvalue()).splitlines()
    assert [line.rstrip() for line in lines if "─" not in line] == plain.getvalue().splitlines()


@pytest.mark.parametrize("choice", ["auto", "always", "never"])
def test_without_rich(monkeypatch, choice):
    for name in ("rich", "rich.console"):
        monkeypatch.setitem(sys.modules, name, None)
    stream = Terminal()
    terminal.show(NODES, stream, choice)
    assert stream.getvalue() == text(NODES) + "\n"


def test_every_style_has_a_rendering():
    used = set()
    for file in Path(document.__file__).parents[1].rglob("*.py"):
        used |= set(
            re.findall(
                r"(?:Cell|Right|Paragraph)\(.*\"(good|bad|dim|strong|bar)\"", file.read_text()
            )
        )
    assert used <= {*terminal._STYLES} and len(used) > 3


# ---- snapshots: COMMAND WIDTH; written anew by SMEMKERN_SNAPSHOTS=write


COMMANDS = {
    "banks": "banks",
    "stride": "banks --stride 2 --width 8",
    "tile": "banks --tile 32x32 --access row --access column",
    "occupancy": "occupancy --threads 256 --registers 64 --shared 49152 --curve",
    "trace": "trace k.ptx --grid 2 --block 32 --arg i32[64]",
    "annotate": "trace k.ptx --grid 2 --block 32 --arg i32[64] --annotate",
    "hazard": "check k.ptx --grid 1 --block 32 --arg i32[8]",
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("with_rich", [False, True], ids=["plain", "rich"])
def test_snapshots(command, name, width, with_rich, tmp_path, monkeypatch):
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "sum.cu").write_text(sum_source())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(width))
    if with_rich:
        pytest.importorskip("rich")
    status = command.run(f"{COMMANDS[name]} --color={'always' if with_rich else 'never'}")
    assert status == (name == "hazard") and not command.err
    file = SNAPSHOTS / f"{name}-{width}{'-rich' if with_rich else ''}.txt"
    if os.environ.get("SMEMKERN_SNAPSHOTS") == "write":
        file.write_text(command.out, encoding="utf-8")
    assert command.out == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 120])
def test_snapshots_of_nodes(width):
    file = SNAPSHOTS / f"nodes-{width}.txt"
    shown = text(NODES, width) + "\n"
    if os.environ.get("SMEMKERN_SNAPSHOTS") == "write":
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("colour", ["never", "always"])
@pytest.mark.parametrize(
    ("width", "is_below"), [(None, False), (59, False), (58, True), (30, True)]
)
def test_notes_without_room_are_listed_below(monkeypatch, width, is_below, colour):
    """Every word is shown once at any width; in a column of its own if that is 40 wide."""
    words = "forty-nine characters of text, which is all right"
    rows = [["seven77", Note(words), 12345678], ["b", Note("short"), 9]]
    monkeypatch.setenv("COLUMNS", str(width or 0))
    stream = io.StringIO()
    terminal.show([Table(["name", "what", "n"], rows), Paragraph("end")], stream, colour)
    shown = without_escapes(stream.getvalue())
    assert ("\nname: what\nseven77  forty-nine" in shown) == is_below
    above = re.sub(r"name: what\n.*?\n\n", "", shown, flags=re.S)
    assert ("forty-nine" in above) != is_below and "12345678" in above
    for word in [*words.split(), "short", "12345678"]:
        assert shown.split().count(word) == 1, word
    assert width is None or all(len(line) <= width for line in shown.splitlines())
