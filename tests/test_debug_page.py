"""The sessions of docs/debug.md are what the debugger prints.

To write them again: python tests/test_debug_page.py
"""

import re
import shlex
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "debug.md"
BLOCK = re.compile(r"```text session\n(.*?)```", re.S)
PROMPT = "(smemkern) "


def sessions():
    return BLOCK.findall(PAGE.read_text(encoding="utf-8"))


def source():
    return re.search(r"```cuda\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[1]


def words_of(session):
    """The arguments of smemkern: the first line's, and the commands."""
    first, *lines = session.splitlines()
    commands = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
    words = shlex.split(first.removeprefix("$ smemkern "))
    return words + [word for command in commands for word in ("-ex", command)]


@pytest.mark.parametrize("number", range(len(sessions())))
def test_page_shows_what_the_debugger_prints(number, command, nvrtc, tmp_path, monkeypatch):
    session = sessions()[number]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turn.cu").write_text(source())
    words = words_of(session)
    assert command.run(shlex.join(words)) == 0
    assert command.out.splitlines() == session.splitlines()[1:]
    assert max(map(len, command.out.expandtabs(8).splitlines())) <= 80


def main():
    """Runs the sessions in a folder of their own and writes their output to the page."""
    import subprocess
    import tempfile

    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "turn.cu").write_text(source())

        def written(match):
            words = [sys.executable, "-m", "smemkern", *words_of(match[1])]
            out = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
            first = match[1].splitlines()[0]
            return f"```text session\n{first}\n{out.stdout}```"

        text = BLOCK.sub(written, text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
