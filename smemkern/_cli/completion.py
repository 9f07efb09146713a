"""python -m smemkern completion: prints a shell completion script.

Completion is by argcomplete, which runs this program to get names of variants and devices.
"""

from __future__ import annotations

import argparse
import os

from .._render.document import Listing
from . import common
from .common import Answer

SHELLS = ("bash", "zsh", "fish")

SUMMARY = "print a shell completion script"
ABOUT = """\
Prints a script for bash, zsh or fish, with which the tab key completes commands,
options, variants and devices of `smemkern`. Needs argcomplete, which .[cli]
installs. The example adds it to the start file of bash; for fish:
smemkern completion fish | source"""
EXAMPLES = (("completion bash >> ~/.bashrc", ""),)
NEXT = "in a new shell: smemkern trace gemm --variant <TAB>."
FOUND = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(chosen: argparse.Namespace) -> Answer:
    try:
        import argcomplete
    except ImportError:
        raise common.Missing(
            "completion needs argcomplete: pip install '.[cli]' in the clone"
        ) from None
    text = argcomplete.shellcode(["smemkern"], shell=chosen.shell)
    return Answer({"shell": chosen.shell, "script": text}, [Listing(text.strip().split("\n"))])


def complete(parser: argparse.ArgumentParser) -> None:
    """If a shell runs this program for completions, prints them and exits."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)
