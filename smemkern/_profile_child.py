"""What runs under ncu: makes the one call that smemkern.profile has written into a file."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import smemkern


def main(request: Path) -> None:
    what, args, kw = pickle.loads(request.read_bytes())
    if isinstance(what, str):
        getattr(smemkern, what)(*args, **kw)
    else:
        smemkern.Kernel(*what)(*args, **kw)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
