"""python -m smemkern share: a kernel, its launch and its data as a link or a page.

A link is lab.html#v1=<base64url of a deflated JSON document>; docs/lab/share.js reads and writes
the same document:

    {"source", "file", "ptx", "kernel", "launch": {"grid", "block", "shared_bytes", "cluster"?,
     "cooperative"?, "arguments": [{"name", "type", "shape", "fill", "value" | "data",
     "tensor"?: {"box", "swizzle", "element_strides", "fill"}} | {"name", "type", "value"}]}}
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from .._compiler import parameters
from .._core import Kernel, TensorMap
from .._render.document import Listing, Paragraph
from .._trace import argspec
from . import calls, common
from .common import Answer

SUMMARY = "a link or a page that shows a kernel's run to others"
ABOUT = """\
Packs a kernel, its PTX, its launch and its arguments into a link, or into one HTML
file. Whoever opens it sees the source, the counts, the hazards and the replay, and can
change all of it, with nothing installed: the emulator runs in the page. A link is the
fragment of the laboratory page, lab.html, whose address --base gives. Nothing is sent
anywhere: browsers keep fragments to themselves. Random arguments travel as data, so
large ones need a file; zeros, ones, numbers and arange take no room."""
EXAMPLES = (
    (
        "share sum.cu --grid 4 --block 256 --arg 'f32[1000]=arange' --arg 'f32[4]' --arg i32=1000 "
        "--link",
        "lab.html#v1=...",
    ),
)
NEXT = "check, trace: the same run in this terminal; docs/explorer.md: the laboratory page."
FOUND = ""

VERSION = "v1"
MOST_LINK = 1_000_000  # characters; browsers cut longer addresses
MOST_FILE = 16 << 20  # bytes of a document, as docs/lab/share.js reads them
MOST_EXACT = 1 << 53  # integers that a JSON number holds
_PACKAGE = Path(__file__).resolve().parents[1]
PAGES = (_PACKAGE / "_web" / "lab.html", _PACKAGE.parent / "docs" / "lab.html")  # of a clone
_PLACE = '<script type="text/plain" id="shared"></script>'
_FILLED = re.compile(r"\w+\[[^\]]*\](?:=(?P<fill>.+))?", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="CUDA C++ (.cu) or PTX (.ptx)")
    calls.add_kernel_arguments(parser, required=True)
    made = parser.add_mutually_exclusive_group(required=True)
    made.add_argument("-o", "--output", type=Path, metavar="FILE", help="write one HTML file")
    made.add_argument("--link", action="store_true", help="print a link")
    parser.add_argument(
        "--base",
        default="lab.html",
        metavar="URL",
        help="address of the laboratory page in the link (lab.html, beside the reader's page)",
    )
    parser.add_argument(
        "--page",
        type=Path,
        default=next((page for page in PAGES if page.is_file()), PAGES[0]),
        metavar="FILE",
        help="the laboratory page that -o fills (default: this installation's)",
    )


def run(chosen: argparse.Namespace) -> Answer:
    kernel, args, launch = calls.kernel_call(chosen.file, chosen)
    document = shared(chosen, kernel, args, launch)
    fragment = fragment_of(document)
    data = {"file": str(chosen.file), "kernel": kernel.name, "link": None, "output": None}
    if chosen.link:
        link = f"{chosen.base.split('#')[0]}#{fragment}"
        if len(link) > MOST_LINK:
            raise ValueError(
                f"the link would have {len(link)} characters, more than browsers take "
                f"({MOST_LINK}): write a file with -o, or use smaller arrays or =arange, =ones"
            )
        return Answer({**data, "link": link}, [Listing([link])])
    chosen.output.write_text(filled_page(chosen.page, fragment), encoding="utf-8")
    size = chosen.output.stat().st_size
    nodes = [Paragraph(f"wrote {chosen.output} ({size / 1e6:.1f} MB)")]
    return Answer({**data, "output": str(chosen.output)}, nodes)


def shared(
    chosen: argparse.Namespace, kernel: Kernel, args: list[Any], launch: dict[str, Any]
) -> dict[str, Any]:
    """The document of a link."""
    grid, block, *given = args
    names = [one.name for one in parameters.parameters(kernel, len(given))]
    texts = zip(chosen.arg, given, names, strict=True)
    whole = {
        "grid": list(grid),
        "block": list(block),
        "shared_bytes": launch["shared_bytes"],
        "cluster": launch["cluster"] and list(launch["cluster"]),
        "cooperative": launch["cooperative"],
        "arguments": [
            _argument(text, value, name or f"argument{at}")
            for at, (text, value, name) in enumerate(texts)
        ],
    }
    is_cuda = chosen.file.suffix != ".ptx"
    return {
        "source": chosen.file.read_text(encoding="utf-8") if is_cuda else "",
        "file": chosen.file.name if is_cuda else "",
        "ptx": kernel.ptx,
        "kernel": kernel.name,
        "launch": {name: value for name, value in whole.items() if value not in (None, False)},
    }


def _argument(text: str, value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, tuple):
        raise ValueError(f"argument {text!r}: the laboratory page has no structs")
    if isinstance(value, TensorMap):
        return _tensor(text, value, name)
    if not isinstance(value, np.ndarray):
        return {"name": name, **_scalar(text, value)}
    known = {"name": name, "type": value.dtype.name, "shape": list(value.shape)}
    if value.dtype.byteorder == ">" or value.dtype.kind not in "fiu" or value.ndim == 0:
        raise ValueError(f"argument {text!r}: expected an array of numbers, as f32[64]")
    fill = _FILLED.fullmatch(text)
    if fill and fill["fill"] == "arange":
        return {**known, "fill": "range"}
    if fill and fill["fill"] != "random":
        first = _plain(value.flat[0]) if value.size else 0
        if first is not None:
            return {**known, "fill": "constant", "value": first}
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
    return {**known, "fill": "data", "data": data}


def _tensor(text: str, value: TensorMap, name: str) -> dict[str, Any]:
    """The array as it would be alone, and how the map copies it."""
    array = _argument(argspec.tensor_members(text)[0], value.array, name)
    any_other_than_1 = max(value.element_strides) > 1
    options = {
        "box": list(value.box),
        "swizzle": value.swizzle,
        "element_strides": list(value.element_strides) if any_other_than_1 else None,
        "fill": value.fill,
    }
    return {**array, "tensor": {key: one for key, one in options.items() if one is not None}}


def _scalar(text: str, value: Any) -> dict[str, Any]:
    plain = _plain(value)
    if plain is None:
        raise ValueError(f"argument {text!r}: a link holds finite numbers, integers below 2**53")
    if isinstance(value, np.generic):
        return {"type": value.dtype.name, "value": plain}
    if isinstance(value, float):
        return {"type": "float64", "value": plain}
    return {"type": "int64" if plain < 0 else "uint64", "value": plain}


def _plain(value: Any) -> int | float | None:
    """The number as JSON holds it; None if that would change it."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, float):
        return number if np.isfinite(number) else None
    return number if abs(number) <= MOST_EXACT else None


def fragment_of(document: dict[str, Any]) -> str:
    """The fragment of a link, without #."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    if len(text) > MOST_FILE:
        raise ValueError(
            f"source, PTX and data have {len(text)} bytes, more than {MOST_FILE}: "
            "use smaller arrays, or =arange, =ones, a number"
        )
    packed = base64.urlsafe_b64encode(zlib.compress(text, 9)).decode("ascii")
    return f"{VERSION}={packed.rstrip('=')}"


def filled_page(page: Path, fragment: str) -> str:
    """The laboratory page with a kernel in it, without the gallery."""
    if not page.is_file():
        raise common.Missing(
            f"there is no laboratory page {page}: give one with --page lab.html, "
            "make one with python -m buildtools.lab_page lab.html, or print a --link"
        )
    text = page.read_text(encoding="utf-8")
    if text.count(_PLACE) != 1:
        raise ValueError(f"{page} is no laboratory page of this version")
    text = re.sub(r'(<script type="text/plain" id="gallery">)[^<]*', r"\1", text)
    return text.replace(_PLACE, _PLACE.replace("></", f">{fragment}</"))
