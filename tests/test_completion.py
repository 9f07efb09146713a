"""Completion in the shells that there are, as they do it: COMP_LINE in, candidates out."""

import os
import shutil
import subprocess
import sys

import pytest

import smemkern
from checks import environment

pytest.importorskip("argcomplete")


def candidates(line):
    """What the program answers a shell that asks at the end of a line."""
    asked = environment(
        _ARGCOMPLETE=1,
        _ARGCOMPLETE_IFS="\n",
        _ARGCOMPLETE_SUPPRESS_SPACE=1,
        COMP_LINE=line,
        COMP_POINT=len(line),
    )
    code = "import os, sys; os.dup2(1, 8); import smemkern.__main__ as m; m.main([])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=asked, capture_output=True, text=True, timeout=60
    )
    assert not done.stderr, done.stderr
    return done.stdout.split("\n")


def test_commands():
    assert {"trace", "transpose"} & {*candidates("smemkern tr")} == {"trace"}


def test_variants_are_those_of_the_operation():
    names = {row.name for row in smemkern.variants("transpose")}
    assert {*candidates("smemkern trace transpose --variant ")} == names
    assert {*candidates("smemkern bench --op transpose --variant s")} == {
        name for name in names if name.startswith("s")
    }
    assert "simt" in candidates("smemkern bench --variant s")


def test_devices_and_operations(tmp_path, monkeypatch):
    assert "emu" in candidates("smemkern demo --device ")
    (tmp_path / "k.cu").touch()
    (tmp_path / "k.txt").touch()
    monkeypatch.chdir(tmp_path)
    found = candidates("smemkern trace ")
    assert {"gemm", "transpose", "probe", "k.cu"} <= {*found} and "k.txt" not in found
    assert {*candidates("smemkern info --color ")} == {"auto", "always", "never"}


SESSIONS = {
    "bash": """
        source {script}
        COMP_LINE='smemkern tra' COMP_POINT=12 COMP_WORDS=(smemkern tra) COMP_CWORD=1 COMP_TYPE=9
        _python_argcomplete smemkern tra smemkern
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    "zsh": "autoload -U compinit; compinit -u -d {folder}/dump; source {script}; "
    "print ${{_comps[smemkern]}}",
    "fish": "source {script}; complete --do-complete 'smemkern tra'",
}


@pytest.mark.parametrize("shell", SESSIONS)
def test_in_a_shell(command, shell, tmp_path):
    assert command.run(f"completion {shell}") == 0
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    script = tmp_path / "script"
    script.write_text(command.out)
    program = tmp_path / "smemkern"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nfrom smemkern.__main__ import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    own = environment(PATH=f"{tmp_path}:{os.environ['PATH']}", HOME=tmp_path)
    session = SESSIONS[shell].format(script=script, folder=tmp_path)
    done = subprocess.run(
        [shell, "-c", session], env=own, capture_output=True, text=True, timeout=60
    )
    assert ("_python_argcomplete" if shell == "zsh" else "trace") in done.stdout, done.stderr
