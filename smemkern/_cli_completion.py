"""python -m smemkern completion: what a shell needs to complete the command line.

argcomplete does it, which asks this program itself: names of variants are those there are.
"""

from __future__ import annotations

import argparse
import os

from . import _cli
from ._blocks import Listing
from ._cli import Answer

SHELLS = ("bash", "zsh", "fish")

SUMMARY = "print what a shell needs to complete this command line"
ABOUT = """\
Prints a few lines for bash, zsh or fish, after which the tab key completes commands,
options, variants and devices of `smemkern`. Needs argcomplete, which smemkern[cli]
brings. Put the line of the example into the shell's start file; for fish:
smemkern completion fish | source"""
EXAMPLES = (("completion bash >> ~/.bashrc", ""),)
NEXT = "a new shell, and smemkern trace gemm --variant <TAB>."
FOUND = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(chosen: argparse.Namespace) -> Answer:
    try:
        import argcomplete
    except ImportError:
        raise _cli.Missing("completion needs argcomplete: pip install 'smemkern[cli]'") from None
    text = argcomplete.shellcode(["smemkern"], shell=chosen.shell)
    return Answer({"shell": chosen.shell, "script": text}, [Listing(text.strip().split("\n"))])


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell and exit, if it is a shell that asks."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)
