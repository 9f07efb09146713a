"""The files that a source includes: where they are, and their texts.

Only the user's own files are read here. Headers of CUDA's installations belong to the compiler.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MAX_FILES = 4000
MAX_BYTES = 64 << 20
_PARENTS = 6  # folders above a source that are searched
_PLACES = ("", "include", "inc", "includes", "common", "Common", "src", "utils", "headers")

_INCLUDE = re.compile(r'[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>|(\w+))')
_TOKENS = re.compile(
    r"""//(?:[^\\\n]|\\.)* | /\*.*?(?:\*/|\Z) | "(?:[^"\\\n]|\\.)*" | ^[ \t]*\#(?:[^\\\n]|\\.)*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)


@dataclass
class Include:
    """An #include line: where it stands in its file, and the file that it names."""

    start: int
    end: int
    name: str
    path: Path | None  # None: not among the user's files


@dataclass
class File:
    path: Path
    text: str
    shown: str  # its name in messages
    includes: list[Include] = field(default_factory=list)


class Includes:
    """A source and the user's files that it includes, directly or through others.

    Every #include counts, also one that a condition leaves out.

    Attributes
    ----------
    main : File
    files : dict of path to File
    missing : set of str
        The names that are none of the user's files: headers of the compiler, or of nobody.
    computed : bool
        Whether an #include names its file by a macro.
    found_above : list of Path
        The folders above the source in which headers were found that no -I option names.
    """

    def __init__(self, text: str, path: Path, shown: str, folders: Sequence[Path]) -> None:
        self.folders = list(folders)
        self.files: dict[Path, File] = {}
        self.missing: set[str] = set()
        self.computed = False
        self.found_above: list[Path] = []
        self._bytes = 0
        self._above = [*_above(path.parent)]
        self._known: dict[tuple[Path, str], Path | None] = {}
        self.main = self._add(path, text, shown)

    def _add(self, path: Path, text: str, shown: str) -> File:
        """Adds a file and, in a loop, those that it includes."""
        first = file = File(path, text, shown)
        pending = [file]
        self.files[path] = file
        while pending:
            file = pending.pop()
            self._bytes += len(file.text)
            if len(self.files) > MAX_FILES or self._bytes > MAX_BYTES:
                raise ValueError(
                    f"{shown} includes more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB"
                )
            for include in self._scan(file):
                if include.path is None:
                    self.missing.add(include.name)
                elif include.path not in self.files:
                    text = include.path.read_text(encoding="utf-8-sig", errors="replace")
                    name = _shown(include.path, file, include.name)
                    self.files[include.path] = added = File(include.path, text, name)
                    pending.append(added)
        return first

    def _scan(self, file: File) -> list[Include]:
        if "#" not in file.text:
            return []
        for token in _TOKENS.finditer(file.text):
            if token[0].lstrip(" \t")[:1] != "#":
                continue
            if found := _INCLUDE.match(token[0]):
                if found[3]:
                    self.computed = True
                    continue
                name = found[1] or found[2]
                path = self._find(name, file.path.parent if found[1] else None)
                start = token.start()
                file.includes.append(Include(start, start + found.end(), name, path))
            elif "__has_include" in token[0]:
                self.computed = True
        return file.includes

    def _find(self, name: str, beside: Path | None) -> Path | None:
        key = (beside or Path(), name)
        if key not in self._known:
            self._known[key] = self._search(name, beside)
        return self._known[key]

    def _search(self, name: str, beside: Path | None) -> Path | None:
        for folder in (*([beside] if beside else []), *self.folders, *self.found_above):
            if path := _file(folder, name):
                return path
        if name in STANDARD or _of_toolkit(name):
            return None
        for folder in self._above:
            if path := _file(folder, name):
                self.found_above.append(folder)
                return path
        return None

    def names(self) -> dict[Path, str]:
        """The names under which headers are given to NVRTC, which knows no folders of theirs."""
        paths = [path for path in self.files if path != self.main.path]
        return {path: f"smemkern-{number}/{path.name}" for number, path in enumerate(paths)}

    def named(self, file: File, text: str, names: Mapping[Path | str, str]) -> str:
        """A file's text in which every #include has the name given to NVRTC.

        `text`: of the file, possibly with parts blanked. A #line directive keeps the file's name.
        `names`: by path, or by name for what is none of the user's files.
        """
        parts = [_line(1, file.path)]
        at = 0
        for include in file.includes:
            name = names.get(include.path or include.name)
            if name is not None:
                parts += [text[at : include.start], f'#include "{name}"']
                at = include.end
        return "".join([*parts, text[at:]])


def _line(number: int, path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {number} "{escaped}"\n'


def _shown(path: Path, by: File, name: str) -> str:
    """A header's name in messages: beside the name of the file that includes it, if it is there."""
    beside = Path(by.shown).parent / name
    return str(beside) if (by.path.parent / name) == path else str(path)


def _file(folder: Path, name: str) -> Path | None:
    try:
        path = Path(os.path.normpath(folder / name))
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None


def _above(folder: Path) -> Iterator[Path]:
    """Folders in which a project keeps its headers, up to the root of its repository."""
    home = Path.home()
    for variable in ("CUTLASS_PATH", "CUTLASS_HOME", "CUTLASS_DIR", "CUTLASS_ROOT"):
        if os.environ.get(variable):
            yield Path(os.environ[variable], "include")
    for level in [folder, *folder.parents][:_PARENTS]:
        if level in (home, Path(level.root), Path("/tmp")):
            return
        for place in _PLACES:
            yield level / place
        for vendor in ("", "third_party", "third-party", "3rdparty", "external", "deps"):
            yield level / vendor / "cutlass" / "include"
        if (level / ".git").exists():
            return


def _of_toolkit(name: str) -> bool:
    """Whether a header is one of CUDA's C++ libraries."""
    return name.split("/")[0] in ("cub", "cuda", "thrust", "nv", "cooperative_groups", "crt")


_C = """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time
uchar wchar wctype"""
_CXX = """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv
chrono cinttypes climits clocale cmath codecvt compare complex concepts condition_variable coroutine
csetjmp csignal cstdarg cstdbool cstddef cstdint cstdio cstdlib cstring ctgmath ctime cuchar cwchar
cwctype deque exception execution expected filesystem format forward_list fstream functional future
initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
memory_resource mutex new numbers numeric optional ostream print queue random ranges ratio regex
scoped_allocator semaphore set shared_mutex source_location span spanstream sstream stack stdexcept
stop_token streambuf string string_view strstream syncstream system_error thread tuple type_traits
typeindex typeinfo unordered_map unordered_set utility valarray variant vector version"""
STANDARD = frozenset([*(f"{name}.h" for name in _C.split()), *_CXX.split()])
