"""Files of kernels: their names, and the Kernel of one that the command line or a judge names."""

from __future__ import annotations

import re
from pathlib import Path

from .. import _core

SUFFIXES = ("cu", "cuh", "ptx")
_FILE_NAME = re.compile(rf"\S(.*\S)?\.({'|'.join(SUFFIXES)})")


class Missing(Exception):
    """This machine lacks something required. The message says what, and what to do."""


def is_file_name(source: str) -> bool:
    """Whether a str is a file's name: one line without blanks around it, with a known suffix."""
    return _FILE_NAME.fullmatch(source) is not None


def kernel_in(path: Path, name: str | None, options: tuple[str, ...]) -> _core.Kernel:
    """A Kernel of a file."""
    from .compile import can_compile

    path.open("rb").close()  # the error of a missing file comes first
    if path.suffix == ".ptx":
        if options:
            raise ValueError(f"{options[0]} needs CUDA C++; a .ptx file is run as it is")
    elif not can_compile():
        raise Missing(
            "compiling CUDA C++ needs NVRTC, which is not installed: pip install '.[nvrtc]' in the "
            "clone; or nvcc on PATH; or pass a PTX file, made by nvcc -ptx"
        )
    return _core.Kernel(path, name, options)
