"""Assembles the laboratory page: one HTML file without network access, from docs/lab/.

    python -m buildtools.lab_page OUT.html [--wasm lab.wasm]

docs/lab/page.html has places for the parts: the style sheets, the page's script, the worker's
script, the WebAssembly module, the gallery's data, the exercises. Scripts are ES modules; here each
becomes a function of one classic script, because a page opened from a folder cannot load modules.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import tempfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import registry
from .images import Image

ROOT = Path(__file__).resolve().parents[1]
LAB = ROOT / "docs" / "lab"
WEB = ROOT / "smemkern" / "_web"
KERNELS = ROOT / "csrc" / "kernels"
MADE = ROOT / "smemkern" / "images"
MISTAKES = ROOT / "build" / "mistakes"

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const|let)\*? ?)(\w+)", re.MULTILINE)
_EXPORT_LIST = re.compile(r"^export \{([^}]*)\};\n", re.MULTILINE)
# Numbers of registers, labels and offsets in PTX; each is likely to be a little more than the one
# of its kind before.
_KINDS = r"%[a-z]+|\$L__tmp|\$L__info_string|\$L__BB\d+_|[+]"
_NUMBERED = re.compile(rf"({_KINDS})(-?\d{{1,9}})(?!\d)")
_MISSING = re.compile(rf"({_KINDS})`")
_PLACE = re.compile(r"^\t\.loc\t(.*)\n", re.MULTILINE)
_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"]+)"', re.MULTILINE)
_SMALL = 5_000  # deflated bytes of PTX: below it the gallery has all prebuilt sets of a row
_LARGE = 100_000  # and above it the smallest set of a row instead of its default
_FIRST_DTYPES = ("float32", "b32")  # shown first, where a row has them


class PageError(Exception):
    """Something of the page is missing or cannot be assembled."""


def bundle(entry: Path) -> str:
    """A classic script of a module and all that it imports."""
    order: list[Path] = []

    def visit(path: Path, above: tuple[Path, ...]) -> None:
        if path in above:
            raise PageError(f"{path.name} imports itself, through {above[-1].name}")
        if path not in order:
            for found in _IMPORT.finditer(_text(path)):
                visit(_imported(path, found[2]), (*above, path))
            order.append(path)

    visit(entry, ())
    names = {path: f"$module{number}" for number, path in enumerate(order)}
    return '"use strict";\n' + "".join(_as_function(path, names) for path in order)


def _text(path: Path) -> str:
    if not path.is_file():
        raise PageError(f"there is no {path}")
    return path.read_text(encoding="utf-8")


def _imported(path: Path, name: str) -> Path:
    """A file beside the module, or, as on an installed page, one of smemkern/_web."""
    if not name.startswith("./"):
        return (WEB / name.removeprefix("web/")).resolve()
    return (path.parent / name).resolve()


def _renamed(names: str, separator: str) -> str:
    """The names of an import or export list, as members of an object pattern or literal."""
    each = [name.strip() for name in names.split(",") if name.strip()]
    return ", ".join(re.sub(r" as ", separator, name) for name in each)


def _as_function(path: Path, names: dict[Path, str]) -> str:
    text = _text(path)
    exported = [found[2] for found in _EXPORT.finditer(text)]
    for found in _EXPORT_LIST.finditer(text):
        exported += [name.strip() for name in found[1].split(",") if name.strip()]

    def imported(found: re.Match[str]) -> str:
        return f"const {{ {_renamed(found[1], ': ')} }} = {names[_imported(path, found[2])]};\n"

    text = _EXPORT.sub(r"\1\2", _EXPORT_LIST.sub("", _IMPORT.sub(imported, text)))
    if left := re.search(r"^(import|export)\b.*", text, re.MULTILINE):
        raise PageError(f"{path.name}: the assembler does not know “{left[0]}”")
    returned = ", ".join(dict.fromkeys(exported))
    return f"const {names[path]} = (() => {{\n{text}\nreturn {{ {returned} }};\n}})();\n"


def packed(data: bytes) -> str:
    """base64 of a deflate stream. Short blocks, each with its own code, make PTX 1.6 % smaller."""
    deflate = zlib.compressobj(9, memLevel=5)
    return base64.b64encode(deflate.compress(data) + deflate.flush()).decode("ascii")


def compact(ptx: str) -> dict[str, Any]:
    """PTX in a form that deflates to half: `text` without .loc lines ("@") and without the numbers
    of registers and labels ("`"), `places` and `order` of the .loc lines, and `numbers` by their
    kind, as differences. docs/lab/images.js undoes it, like restored() here.
    """
    places: dict[str, int] = {}
    order: list[int] = []
    numbers: dict[str, list[int]] = {}
    last: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        order.append(places.setdefault(found[1], len(places)))
        return "@\n"

    def number(found: re.Match[str]) -> str:
        kind, value = found[1], int(found[2])
        numbers.setdefault(_kind(kind), []).append(value - last.get(kind, 0))
        last[kind] = value
        return f"{kind}`"

    text = _NUMBERED.sub(number, _PLACE.sub(place, ptx))
    steps = [each - before for each, before in zip(order, [0, *order[:-1]], strict=True)]
    return {
        "text": text,
        "places": list(places),
        "order": " ".join(map(str, steps)),
        "numbers": {kind: " ".join(map(str, values)) for kind, values in numbers.items()},
    }


def _kind(label: str) -> str:
    return re.sub(r"\d+", "", label)


def restored(packed_ptx: dict[str, Any]) -> str:
    """Undoes compact()."""
    numbers = {
        kind: iter(map(int, values.split())) for kind, values in packed_ptx["numbers"].items()
    }
    last: dict[str, int] = {}
    at = 0

    def number(found: re.Match[str]) -> str:
        last[found[1]] = last.get(found[1], 0) + next(numbers[_kind(found[1])])
        return f"{found[1]}{last[found[1]]}"

    steps = iter(map(int, packed_ptx["order"].split()))

    def place(_: re.Match[str]) -> str:
        nonlocal at
        at += next(steps)
        return f"\t.loc\t{packed_ptx['places'][at]}\n"

    return re.sub(r"(?m)^@\n", place, _MISSING.sub(number, packed_ptx["text"]))


def _packed_ptx(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise PageError(f"there is no {path.name}; build the package first")
    ptx = path.read_text(encoding="utf-8")
    made = compact(ptx)
    if restored(made) != ptx:
        raise PageError(f"{path.name} does not survive compact()")
    return made


def _deflated(path: Path) -> int:
    return len(zlib.compress(path.read_bytes(), 6))


def gallery_images(rows: Iterable[registry.Row]) -> list[Image]:
    """What the gallery shows of each row: all sets of small kernels, one set of a large one."""
    chosen = []
    for row in rows:
        images = [
            image
            for dtype in sorted(row.dtypes, key=lambda name: name not in _FIRST_DTYPES)
            for image in (Image(row, dtype, values) for values in row.prebuilt)
            if (MADE / f"{image.name}.ptx").is_file()
        ]
        if not images:
            raise PageError(f"there is no PTX of {row.stem}; build the package first")
        sizes = {image.name: _deflated(MADE / f"{image.name}.ptx") for image in images}
        first = images[0]
        if sizes[first.name] > _LARGE:
            same = [image for image in images if image.dtype == first.dtype]
            first = min(same, key=lambda image: sizes[image.name])
        rest = [image for image in images if sizes[image.name] < _SMALL and image is not first]
        chosen += [first, *rest]
    return chosen


def _declared(path: Path, sources: Mapping[str, str]) -> list[dict[str, Any]]:
    """What the source files of a PTX file say of its arrays in shared memory."""
    from smemkern._compiler.shared_arrays import declared

    ptx = path.read_text(encoding="utf-8")
    files = [Path(name).name for name in _FILE.findall(ptx)]
    found = declared(ptx, [sources[name] for name in files if name in sources])
    return [{"name": name, **row._asdict()} for name, row in found.items()]


def gallery() -> str:
    """The gallery's data for page.html."""
    from smemkern import mistakes  # the launches of the mistakes are there

    texts = sorted(path for kind in ("cu", "cuh", "h") for path in KERNELS.rglob(f"*.{kind}"))
    sources = {path.name: path.read_text(encoding="utf-8") for path in texts}
    images = [
        {
            "op": image.row.op,
            "variant": image.row.name,
            "dtype": image.dtype,
            "params": image.values,
            "ptx": _packed_ptx(MADE / f"{image.name}.ptx"),
            "declared": _declared(MADE / f"{image.name}.ptx", sources),
        }
        for image in gallery_images(registry.read(KERNELS))
    ]
    wrong = [
        {
            **row._asdict(),
            "source": row.source,
            "ptx": _packed_ptx(MISTAKES / f"{row.name}.ptx"),
            "declared": _declared(MISTAKES / f"{row.name}.ptx", sources),
        }
        for row in mistakes.rows()
    ]
    document = {"images": images, "sources": sources, "mistakes": wrong}
    return packed(json.dumps(document, separators=(",", ":")).encode())


def outside_replay(css: str) -> str:
    """page.css with rules that leave the replay alone, which has a style sheet of its own."""

    def selector(text: str) -> str:
        own, *pseudo = re.split(r"(?=::)", text.strip(), maxsplit=1)
        if own in ("", "*", "html", "body", ":root"):
            return text.strip()
        return f"{own}:where(:not(.smk-replay, .smk-replay *)){''.join(pseudo)}"

    def rule(found: re.Match[str]) -> str:
        return f"{found[1]}{', '.join(map(selector, found[2].split(',')))} {{"

    plain = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    return re.sub(r"((?:^|[{}])\s*)([^{}@]+?)\s*\{", rule, plain)


def _for_script(text: str) -> str:
    """A script's text that cannot end the element it stands in."""
    return re.sub(r"<(?=/script|!--|script)", r"\\x3c", text, flags=re.IGNORECASE)


def exercises() -> str:
    """The exercises as JSON, in which no text can end the element."""
    from . import exercises as course

    return json.dumps(course.exercises(), separators=(",", ":")).replace("<", "\\u003c")


def page(wasm: bytes, *, with_gallery: bool = True) -> str:
    """The whole page."""
    styles = [_text(WEB / name) for name in ("theme.css", "replay.css")]
    parts = {
        "style": "\n".join([*styles, outside_replay(_text(LAB / "page.css"))]),
        "worker": _for_script(bundle(LAB / "worker.js")),
        "module": packed(wasm),
        "gallery": gallery() if with_gallery else "",
        "exercises": exercises(),
        "script": _for_script(bundle(LAB / "main.js")),
    }
    text = _text(LAB / "page.html")
    for name, part in parts.items():
        place = f"@@{name}@@"
        if text.count(place) != 1:
            raise PageError(f"page.html has {text.count(place)} places for {place}")
        text = text.replace(place, part)
    return text


def made_module() -> bytes:
    """lab.wasm, built by buildtools.wasm."""
    from . import wasm

    with tempfile.TemporaryDirectory() as folder:
        wasm.build(Path(folder))
        return Path(folder, "lab.wasm").read_bytes()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="assemble the laboratory page")
    parser.add_argument("out", type=Path)
    parser.add_argument("--wasm", type=Path, help="lab.wasm (default: build it)")
    chosen = parser.parse_args(arguments)
    module = chosen.wasm.read_bytes() if chosen.wasm else made_module()
    text = page(module)
    chosen.out.write_text(text, encoding="utf-8")
    print(f"{chosen.out}: {len(text.encode()):,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
