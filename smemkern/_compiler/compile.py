"""Turns the source of a Kernel, a text or a file, into PTX.

CUDA C++ is tried in this order, until one succeeds:

1. NVRTC, as it is: kernels without host code. Naming a template instantiates it.
2. nvcc, where it and a host compiler are found: whole programs.
3. NVRTC without the host code that it cannot compile (device_view.py).

What succeeds is kept in the cache on disk, under a hash of all of the user's files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from .. import _core
from . import nvcc, nvrtc, shims
from .demangle import Name, demangled, normal
from .device_view import DeviceView, diagnostics
from .includes import STANDARD, Includes
from .kernel_file import is_file_name
from .outline import Outline, every
from .ptx import entry_names, is_ptx

TEXT = "kernel.cu"  # the name of a source that is no file
MAX_BYTES = 256 << 20  # of a file
_HEADER_BYTES = 4 << 20
_DEFAULT_ARCH = "compute_80"
_NEWER_ARCH = "compute_90a"  # tried if a source does not compile for the default
_ENTRY_LINE = b"// entry: "


@dataclass(frozen=True)
class Origin:
    """Where the PTX of a Kernel is from."""

    file: str | None = None  # the file, as given
    compiler: str | None = None  # None: the source was PTX
    texts: Mapping[str, str] = field(default_factory=dict)  # by file name: the user's files
    pointees: dict[tuple[str, int], tuple[str | None, ...]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)  # of CUDA, as far as they were asked for

    def text_of(self, name: str, ptx: str) -> str | None:
        """The text of a file that line information names: one of the user's, or of CUDA's."""
        if name in self.texts:
            return self.texts[name]
        if name not in self.headers and self.compiler is not None:
            self.headers[name] = _header_text(name, ptx)
        return self.headers.get(name)


def _header_text(name: str, ptx: str) -> str:
    """The text of a header in a folder of CUDA's that the PTX names by its path; "": none."""
    roots = [root.resolve() for root in _paths(nvrtc.all_include_options())]
    for found in dict.fromkeys(re.findall(r'\.file\s+\d+\s+"([^"\n]+)"', ptx)):
        path = Path(os.path.realpath(found))
        known = path.name == name and any(root in path.parents for root in roots)
        if known and path.is_file() and path.stat().st_size < _HEADER_BYTES:
            return path.read_text(encoding="utf-8", errors="replace")
    return ""


class _Made(NamedTuple):
    """The result of a compilation."""

    ptx: bytes
    entry: str | None  # of the name, if the compiler said it
    compiler: str
    read: tuple[Path, ...] = ()  # files besides the user's


@dataclass(frozen=True)
class Compiled:
    """A source of a Kernel that needs no compiler: what another Kernel was made of."""

    text: str
    ptx: bytes
    entry: str
    origin: Origin


def pickled(kernel: _core.Kernel) -> tuple[object, ...]:
    """Kernel.__reduce__: it is restored where no compiler and no file is."""
    made = Compiled(kernel.source, kernel.ptx.encode(), kernel.name, kernel._origin)
    return _restored, (made, kernel.check)


def _restored(made: Compiled, check: bool) -> _core.Kernel:
    return _core.Kernel(made, None, check=check)


def kernel_source(
    source: str | os.PathLike[str] | Compiled, name: str | None, options: Sequence[str] | None
) -> tuple[str, bytes, str | None, Origin]:
    """The text, the PTX, the entry and the origin of a Kernel.

    Raises
    ------
    CompileError
        If no compiler takes the source; with the log.
    ValueError
        If it has no such kernel, or several and `name` is None.
    OSError
        If a file cannot be read.
    """
    if isinstance(source, Compiled):
        return source.text, source.ptx, source.entry, source.origin
    given = _strings(options)
    text, file = _read(source)
    if is_ptx(text):
        if given:
            raise ValueError("options are for CUDA C++; this source is PTX already")
        ptx = text.encode()
        return text, ptx, _entry(ptx, name, file or "the PTX"), Origin(file)
    if file and file.endswith(".ptx"):
        raise ValueError(f"{file} is not PTX: a PTX text begins with .version")
    unit = _Unit(text, file, name, given)
    try:
        made = unit.compiled()
    except ValueError:  # NVRTC takes the name for none of a kernel
        unit = _Unit(text, file, None, given)
        made = unit.compiled()
    entry = made.entry or unit.entry(made.ptx, name)
    texts = {path.name: one.text for path, one in unit.includes.files.items()}
    texts[unit.path.name] = text
    return text, made.ptx, entry, Origin(file, made.compiler, texts)


def can_compile() -> bool:
    """Whether a compiler is installed."""
    return _core.config()["nvrtc"][0].isdigit() or nvcc.stamp() is not None


def _read(source: str | os.PathLike[str]) -> tuple[str, str | None]:
    """The text, and the file if `source` names one."""
    if isinstance(source, str) and not is_file_name(source):
        if "\0" in source:
            raise ValueError("the source contains a null character")
        return source, None
    file = os.fsdecode(source)
    path = Path(file)
    if path.is_file() and path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{file} is larger than {MAX_BYTES >> 20} MiB")
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    if "\0" in text:
        raise ValueError(f"{file} contains a null character; is it a text?")
    return text, file


def _strings(options: Sequence[str] | None) -> tuple[str, ...]:
    given = tuple(options or ())
    for option in given:
        if not isinstance(option, str):
            raise TypeError(f"options must be strings, not {type(option).__name__}")
    return given


# ---- names ----


def entries(ptx: bytes) -> dict[str, Name]:
    """The kernels of a PTX text."""
    return {entry: demangled(entry) for entry in entry_names(ptx.decode(errors="replace"))}


def listed(found: Mapping[str, Name]) -> list[str]:
    """The kernels as one would write them; those of equal names with their parameters."""
    written = [name.written for name in found.values()]
    names = (
        name.whole if written.count(name.written) > 1 else name.written for name in found.values()
    )
    return sorted(names, key=lambda name: re.sub(r"\d+", lambda n: n[0].zfill(9), name))


def _entry(ptx: bytes, name: str | None, shown: str) -> str | None:
    """The entry of a kernel's name as one would write it; None: the only entry."""
    found = entries(ptx)
    if not found:
        return name  # the reader of PTX says what is wrong
    if name is None:
        own = {entry: one for entry, one in found.items() if not _is_of_library(one)}
        if len(own or found) == 1:
            return next(iter(own or found))
        if not own:
            names = sorted({one.written.partition("<")[0] for one in found.values()})
            raise ValueError(
                f"{shown} has no kernel of its own, and {len(found)} of the libraries that it "
                f"includes: {_joined(names)}"
            )
        raise ValueError(f"{shown} has several kernels; name one of: {_joined(listed(own))}")
    if name in found:
        return name
    wanted = normal(name)
    ways = (
        lambda one: normal(one.written) == wanted or normal(one.whole) == wanted,
        lambda one: normal(one.written.split("<")[0]) == wanted,
    )
    for way in ways:
        matches = {entry: one for entry, one in found.items() if way(one)}
        if len(matches) == 1:
            return next(iter(matches))
        if matches:
            many = _joined(listed(matches))
            raise ValueError(
                f"{shown} has several kernels '{_printable(name)}'; name one of: {many}"
            )
    raise ValueError(
        f"{shown} has no kernel '{_printable(name)}'; it has: {_joined(listed(found))}"
    )


def _is_of_library(name: Name) -> bool:
    """Whether a kernel is one of CUDA's C++ libraries, which instantiate some of their own."""
    return name.written.startswith(("cub::", "thrust::", "at_cuda_detail::cub::"))


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _joined(names: Sequence[str], most: int = 40) -> str:
    left = len(names) - most
    shown = [*names[:most], *([f"and {left} more"] if left > 0 else [])]
    return ("; " if any("," in one for one in shown) else ", ").join(shown)


# ---- compilation ----


class _Unit:
    """A source, and how to compile it."""

    def __init__(
        self, text: str, file: str | None, name: str | None, given: tuple[str, ...]
    ) -> None:
        self.text, self.name = text, name
        self.shown = file or TEXT
        self.path = Path(os.path.abspath(self.shown))
        self.is_file = file is not None
        self.options, self.folders = _folders(given)
        self.includes = Includes(text, self.path, self.shown, self.folders)
        self.roots = nvrtc.include_options() if "include" in text else ()

    @property
    def _lacks_torch(self) -> bool:
        """Whether it is of an extension of PyTorch, whose headers nvcc would not find."""
        return shims.torch([file.text for file in self.includes.files.values()]) != ""

    def compiled(self) -> _Made:
        key = self._key()
        kept = _load(key) if key else None
        if kept:
            return kept
        made = self._compile()
        if key:
            _store(key, made)
        return made

    def entry(self, ptx: bytes, name: str | None) -> str | None:
        """The entry of a name; None: the only entry."""
        if entries(ptx):
            return _entry(ptx, name, self.shown)
        found = [one for file in self.includes.files.values() for one in _templates(file.text)]
        if not found:
            what = f"{self.shown} has no kernel (no __global__ function)"
            raise ValueError(f"{what}{self._not_found()}")
        named = f"no kernel '{_printable(name)}'" if name else "no kernel but templates"
        raise ValueError(
            f"{self.shown} has {named}, of which nothing is instantiated; name one with its "
            f"template arguments, as 'tile<float, 16>': {', '.join(dict.fromkeys(found))}"
        )

    def _key(self) -> bytes | None:
        """A hash of all that the result depends on; None if that is not known."""
        if self.includes.computed or any(re.search("include|pch", o) for o in self.options):
            return None
        files = [(str(path), one.text) for path, one in sorted(self.includes.files.items())]
        facts = [
            *("smemkern 2", self.shown, os.getcwd(), self.name, self.options, self.roots),
            *(files, sorted(self.includes.missing), nvcc.stamp(), _core.config()["nvrtc"]),
            [_stamp(root[2:]) for root in self.roots],
            [os.environ.get(name) for name in ("SMEMKERN_COMPILER", "NVCC_PREPEND_FLAGS",
                                               "NVCC_APPEND_FLAGS", "CPATH")],
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(facts).encode(errors="replace")).digest()

    def _compile(self) -> _Made:
        """Tries the compilers in turn."""
        wanted = os.environ.get("SMEMKERN_COMPILER", "")
        has_nvrtc = _core.config()["nvrtc"][0].isdigit()
        ways = []
        if wanted != "nvcc" and has_nvrtc:
            ways.append(self._plain)
        if wanted != "nvrtc" and nvcc.stamp() and (wanted or not self._lacks_torch):
            ways.append(self._nvcc)
        if wanted != "nvcc" and has_nvrtc:
            ways.append(self._without_host_code)
        if not ways:
            _core.nvrtc_compile(self.text, self.shown, None, (), (), ())  # says what to install
        errors: list[_core.CompileError] = []
        for way in ways:
            try:
                return way()
            except _core.CompileError as error:
                errors.append(error)
        raise self._told(errors)

    def _told(self, errors: Sequence[Exception]) -> Exception:
        """The error to show, of those of each way: the last that is not about a missing header."""
        about = [e for e in errors[1:] if not re.search("No such file|cannot open", str(e))]
        log = self._own_names(_errors_only(str((about or errors)[-1]))) + self._not_found()
        by_nvcc = any(isinstance(error, nvcc.Failure) for error in errors)
        return _core.CompileError(log if by_nvcc else f"{log}\n{_HINT}")

    def _not_found(self) -> str:
        """A line that names the headers that are nowhere; those of the C library are no loss."""
        roots = _paths(nvrtc.all_include_options())
        named = [
            f"{name} (pip install nvidia-curand)" if name.startswith("curand") else name
            for name in sorted(self.includes.missing - STANDARD)
            if not any((root / name).is_file() for root in (*roots, Path("/usr/include")))
            and not name.startswith("sys/")
        ]
        return f"\nnot found: {_joined(named, _SHOWN)}" if named else ""

    def _own_names(self, log: str) -> str:
        """A compiler's log with the names of files as they were given."""
        for path, file in self.includes.files.items():
            log = log.replace(str(path), file.shown)
        return log

    # ---- NVRTC ----

    @property
    def _expression(self) -> str | None:
        """The name as a C++ expression. A mangled name is none: it is looked up in the PTX."""
        return None if self.name is None or self.name.startswith("_Z") else self.name

    def _arch_options(self, arch: str) -> tuple[str, ...]:
        named = any(re.match("-arch|--gpu-architecture|--gpu-name", one) for one in self.options)
        return () if named else (f"-arch={arch}",)

    def _nvrtc(
        self, text: str, headers: Mapping[str, str], more: Sequence[str], entry: str | None
    ) -> bytes:
        found = (*self.folders, *self.includes.found_above)
        folders = [f"-I{folder}" for folder in dict.fromkeys(found)]
        # Each warning prints its line: thousands on a long line take minutes. No warning is shown.
        options = ("-lineinfo", "-w", *self.options, *folders, *self.roots, *more)
        names, texts = tuple(headers), tuple(headers.values())
        return _core.nvrtc_compile(text, self.shown, entry, names, texts, options)

    def _plain(self) -> _Made:
        ptx = self._nvrtc(self.text, {}, self._arch_options(_DEFAULT_ARCH), self._expression)
        return _made_by_nvrtc(ptx, _nvrtc_name())

    def _without_host_code(self) -> _Made:
        self.roots = nvrtc.all_include_options()
        own, known = _paths(nvrtc.include_options()), _paths(self.roots)
        view = DeviceView(self.includes, own, known)
        try:
            return self._view(view, _DEFAULT_ARCH)
        except _core.CompileError:
            if not self._arch_options(""):
                raise
            try:  # what was left out for the first architecture stays out
                return self._view(view, _NEWER_ARCH)
            except _core.CompileError:
                pass
            raise

    def _view(self, view: DeviceView, arch: str) -> _Made:
        def compile(text: str, headers: dict[str, str], options: Sequence[str]) -> bytes:
            more = (*options, *self._arch_options(arch))
            return self._nvrtc(text, headers, more, entry)

        entry = None
        ptx = view.compile(compile)
        entry = self._expression
        if entry:
            ptx = view.compile(compile)
        return _made_by_nvrtc(ptx, f"{_nvrtc_name()}, without host code")

    # ---- nvcc ----

    def _nvcc(self) -> _Made:
        try:
            return self._by_nvcc(_DEFAULT_ARCH)
        except _core.CompileError as error:
            if not self._arch_options("") or "No such file" in str(error):
                raise
            try:
                return self._by_nvcc(_NEWER_ARCH)
            except _core.CompileError:
                raise error from None

    def _by_nvcc(self, arch: str) -> _Made:
        import tempfile

        options = (*self.options, *self._arch_options(arch))
        folders = [*self.folders, *self.includes.found_above]
        with tempfile.TemporaryDirectory(prefix="smemkern-") as temporary:
            file = self.path
            if not self.is_file:
                file = Path(temporary, TEXT)
                file.write_text(self.text, encoding="utf-8")
                folders = [Path.cwd(), *folders]
            made = nvcc.compile_file(file, options, folders)
            before = entries(made.ptx)
            if self._expression and not _matches(before, self.name):
                user = Path(temporary, "instantiation.cu")
                user.write_text(
                    f'#include "{file}"\n'
                    f"extern const void *const smemkern_kernel = (const void *)&{self.name};\n"
                )
                made = nvcc.compile_file(user, options, folders)
                new = [entry for entry in entries(made.ptx) if entry not in before]
                if len(new) == 1:
                    return _Made(made.ptx, new[0], "nvcc", made.read)
        return _Made(made.ptx, None, "nvcc", made.read)


def _templates(text: str) -> list[str]:
    """The templates of kernels, as "tile<class T, int N>"."""
    found = []
    for item in every(Outline(text).items):
        words = [token.text for token in item.head]
        if item.kind != "function" or "__global__" not in words:
            continue
        own = re.match(r"template\s*<([^;{}()]*)>", text[item.start : item.body[0]])
        calls = zip(words, words[1:])  # noqa: B905
        name = next((w for w, after in calls if after == "(" and not w.startswith("__")), None)
        if own and name:
            found.append(f"{name}<{' '.join(own[1].split())}>")
    return found


def _matches(found: Mapping[str, Name], name: str | None) -> bool:
    return any(
        name == entry or normal(one.written) == normal(name or "") for entry, one in found.items()
    )


def _nvrtc_name() -> str:
    return f"NVRTC {_core.config()['nvrtc']}"


def _made_by_nvrtc(ptx: bytes, compiler: str) -> _Made:
    """The entry of a name expression is in the first line."""
    entry = None
    if ptx.startswith(_ENTRY_LINE):
        entry = ptx[len(_ENTRY_LINE) : ptx.index(b"\n")].decode()
    return _Made(ptx, entry, compiler)


def _paths(options: Iterable[str]) -> list[Path]:
    """The folders of -I options."""
    return [Path(option[2:]) for option in options]


def _folders(options: Iterable[str]) -> tuple[tuple[str, ...], list[Path]]:
    """The options without those that name folders of headers, and these folders."""
    kept, folders = [], []
    pending = iter(options)
    for option in pending:
        found = re.fullmatch(r"(?:-I|--include-path)(?:=?)(.*)", option, re.DOTALL)
        if found is None:
            kept.append(option)
        else:
            folders.append(Path(os.path.abspath(found[1] or next(pending, "."))))
    return tuple(kept), folders


def unit(file: str | os.PathLike[str]) -> _Unit:
    """A file of CUDA C++ without options, for all of its kernels."""
    text, name = _read(file)
    return _Unit(text, name, None, ())


_SHOWN = 12  # errors
_HINT = (
    "hint: without nvcc, host code that NVRTC cannot compile is left out, but device code must "
    "compile. Put nvcc and a host compiler on PATH, pass folders of headers by -I, or put code "
    "that is only for the host between #ifndef __CUDACC_RTC__ and #endif"
)


def _errors_only(log: str) -> str:
    """A log of NVRTC without its remarks, and without most of very many errors."""
    found = diagnostics(log)
    if not found or not log.startswith("NVRTC"):
        return log
    shown = [one.text for one in found[:_SHOWN]]
    left = len(found) - len(shown)
    more = [f"and {left} more error{'s' * (left != 1)}"] if left else []
    return "\n".join([log.partition("\n")[0], *shown, *more])


# ---- the cache ----


def _stamp(folder: str) -> list[object]:
    """What changes when another version is installed in a folder of CUDA's headers."""
    facts: list[object] = [folder]
    for name in ("cuda_fp16.h", "cub/version.cuh", "cuda/std/version", "curand_kernel.h"):
        try:
            found = os.stat(os.path.join(folder, name))
            facts += [name, found.st_size, found.st_mtime_ns]
        except OSError:
            continue
    return facts


def _facts(files: Iterable[Path]) -> list[list[object]]:
    found = []
    for path in files:
        try:
            facts = os.stat(path)
            found.append([str(path), facts.st_size, facts.st_mtime_ns])
        except OSError:
            found.append([str(path), None, None])
    return found


def _load(key: bytes) -> _Made | None:
    kept = _core.cache_load(key)
    if kept is None:
        return None
    head, _, ptx = kept.partition(b"\n")
    try:
        facts = json.loads(head[3:])
        read = [Path(one[0]) for one in facts["read"]]
        if _facts(read) != facts["read"]:
            return None
        return _Made(ptx, facts["entry"], facts["compiler"], tuple(read))
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def _store(key: bytes, made: _Made) -> None:
    facts = {"entry": made.entry, "compiler": made.compiler, "read": _facts(made.read)}
    _core.cache_store(key, b"// " + json.dumps(facts).encode() + b"\n" + made.ptx)
