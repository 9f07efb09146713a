"""Compiles a kernel for _judge/runs.py: a process that a hostile source may exhaust or end.

Reads {"file", "name", "options"} from stdin; prints {"ptx", "entry"}, or {"kind", "error"}.
"""

import json
import resource
import sys
from pathlib import Path

from ..errors import Error
from .kernel_file import Missing, kernel_in

MEMORY = 16 << 30


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    given = json.load(sys.stdin)
    try:
        kernel = kernel_in(Path(given["file"]), given["name"], tuple(given["options"]))
        found = {"ptx": kernel.ptx, "entry": kernel.name}
    except (Error, Missing, OSError, ValueError) as error:
        kind = "ValueError" if isinstance(error, ValueError) else type(error).__name__
        told = str(error)
        if isinstance(error, OSError) and error.filename:
            told = f"{error.filename}: {error.strerror}"
        found = {"kind": kind, "error": told}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
