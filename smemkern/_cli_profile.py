"""python -m smemkern profile: the GPU's counters beside the predicted ones."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from . import _cli_trace, _core


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("profile", help="run Nsight Compute, and compare with the trace")
    _cli_trace.add_arguments(parser)


def run(chosen: argparse.Namespace) -> int:
    from ._profile import profile

    try:
        what, args, keywords = _cli_trace.call_of(chosen)
        print(profile(what, *args, **keywords))
    except (OSError, ValueError, TypeError, OverflowError, _core.Error) as error:
        print(f"smemkern profile: {error}", file=sys.stderr)
        return 2
    return 0
