"""Runs under ncu: makes the call that smemkern.profile pickled into a file."""

import pickle
import sys
from pathlib import Path

import smemkern


def main(file: str) -> None:
    what, args, kw = pickle.loads(Path(file).read_bytes())
    if isinstance(what, str):
        getattr(smemkern, what)(*args, **kw)
    else:
        smemkern.Kernel(*what)(*args, **kw)


if __name__ == "__main__":
    main(sys.argv[1])
