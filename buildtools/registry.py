"""Reads and checks the table of kernel variants, csrc/kernels/variants.toml.

Every mistake in the table is a build error that names the row and the key: an unknown key, a
missing file, a file without a row, a bad expression, a parameter set that violates the row's own
conditions.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from . import expressions

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = "variants.toml"
INCLUDE = "include"  # folder of the device headers
LIBRARY = "library"  # folder of the kernels that are neither rungs of a ladder nor probes

# op -> dtype -> (bytes, macro for the kernel's source). Transposes move bits.
DTYPES: dict[str, dict[str, tuple[int, str]]] = {
    "gemm": {
        "float32": (4, "REAL=float"),
        "float64": (8, "REAL=double"),
        "float16": (2, "REAL=float16"),
        "bfloat16": (2, "REAL=bfloat16"),
    },
    "transpose": {
        "b8": (1, "ELEMENT=unsigned char"),
        "b16": (2, "ELEMENT=unsigned short"),
        "b32": (4, "ELEMENT=unsigned int"),
        "b64": (8, "ELEMENT=unsigned long long"),
        "b128": (16, "ELEMENT=uint4"),
    },
    "probe": {"float32": (4, "REAL=float")},
}

MAX_PARAMS = 8  # SMK_MAX_PARAMS
MAX_THREADS = 1024
SHARED_BYTES_ANYWHERE = 227 * 1024  # largest opt-in limit of any architecture

_ROW_KEYS = {
    *("op", "name", "summary", "differs_from", "dtypes", "min_sm", "params", "prebuilt"),
    *("tuned", "require", "threads", "output_tile", "shared_bytes", "input", "output", "wgmma"),
    *("accuracy", "product_bits", "portable", "overlaps", "rate", "clusters", "both_orders"),
    *("skinny", "ozaki"),
    *("any_strides", "boxes", "default_on"),
}
_WGMMA_KEYS = {"operand", "terms", "b_by_rows", "guarded", "by_columns"}
OPERANDS = ("float16", "float32", "bfloat16", "tfloat32")
DEVICES = ("cuda", "emu")
ACCURACIES = ("float32", "norm", "tf32", "tf32-norm")  # smk_accuracy
_PARAM_KEYS = {"default", "legal", "doc", "runtime"}
_WORD = re.compile(r"[a-z][a-z0-9_]*\Z")
_C_WORDS = set(
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while itemsize n k".split()
)

Values = dict[str, int]


class TableError(ValueError):
    """Something in variants.toml that cannot be built."""


@dataclass(frozen=True)
class Param:
    name: str
    doc: str
    default: int
    first: int
    last: int
    legal: tuple[int, ...]  # empty: first..last
    runtime: bool

    def allows(self, value: int) -> bool:
        return value in self.legal if self.legal else self.first <= value <= self.last


@dataclass(frozen=True)
class Wgmma:
    """What a row's kernel reads by TMA: smk_wgmma."""

    operand: str
    terms: int
    b_by_rows: bool
    guarded: bool
    by_columns: bool  # there are kernels for each value of block_n


@dataclass(frozen=True)
class Skinny:
    """The kernels of a row that core/plan_skinny.c plans: smk_skinny."""

    rows: tuple[int, ...]  # of the thin operand, per kernel
    mma: bool
    gemv: bool  # tiled by core/plan_gemv.c


@dataclass(frozen=True)
class Row:
    op: str
    name: str
    summary: str
    differs_from: str | None
    min_sm: int
    dtypes: tuple[str, ...]
    params: tuple[Param, ...]
    prebuilt: tuple[Values, ...]  # complete sets of the compile-time parameters, the default first
    tuned: tuple[Values, ...]  # those of them that are for GPUs only
    require: tuple[tuple[str, str], ...]
    threads: tuple[str, ...]
    output_tile: tuple[str, ...]
    shared_bytes: str
    input: str
    output: str
    accuracy: str  # of the results: one of ACCURACIES
    product_bits: int  # correct bits per product; 0: all of the type's
    portable: bool
    overlaps: bool  # its launches may begin early; each kernel waits, from sm_90 on
    rate: int  # of rows with split-K; 0: no split-K
    clusters: bool  # the blocks of a tile add the parts of K, as a cluster, from sm_90 on
    both_orders: bool
    wgmma: Wgmma | None
    skinny: Skinny | None
    ozaki: dict[str, bool] | None  # a product by residues: fields of smk_ozaki besides its kernels
    any_strides: bool  # of transposes: it has the further kernels of smk_transpose_kernels
    boxes: bool  # of transposes: its kernel reads x by TMA
    default_on: tuple[str, ...]  # devices on which variant "auto" is this row by default
    file: str = ""  # the kernel's source below the folder of the table: "library/gemm_simt.cu"

    @property
    def stem(self) -> str:
        return f"{self.op}_{self.name}"

    @property
    def in_library(self) -> bool:
        return self.file.startswith(f"{LIBRARY}/")


def read(folder: Path) -> list[Row]:
    """The checked rows of the table in a folder of kernels."""
    path = folder / TABLE
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{path}: {error}") from None
    _only({"variant"}, table, str(path))

    rows = [
        _row(entry, f"{TABLE}, variant {i + 1}")
        for i, entry in enumerate(_completed(table["variant"]))
    ]
    _check_names(rows)
    sources: dict[str, str] = {}
    for file in sorted([*folder.glob("*.cu"), *folder.glob(f"{LIBRARY}/*.cu")]):
        path = file.relative_to(folder).as_posix()
        if file.stem in sources:
            raise TableError(f"{TABLE}: {sources[file.stem]} and {path} are of one row; delete one")
        sources[file.stem] = path
    stems = {row.stem for row in rows}
    if missing := sorted(stems - set(sources)):
        raise TableError(
            f"{TABLE}: no source file for {', '.join(missing)} "
            f"(<op>_<name>.cu, beside the table or in {LIBRARY}/)"
        )
    if strays := sorted(set(sources) - stems):
        raise TableError(f"{TABLE}: no row for {', '.join(sources[stem] for stem in strays)}")
    return [replace(row, file=sources[row.stem]) for row in rows]


def headers(folder: Path) -> list[Path]:
    """The headers that a kernel may include: the host's and the kernels', and the kernels' own."""
    return sorted([*folder.glob("*.h"), *folder.glob(f"{INCLUDE}/*.cuh")])


def included(file: Path, folder: Path) -> list[Path]:
    """The file and the headers that it includes, directly or through others."""
    known = {header.name: header for header in headers(folder)}
    found = [file]
    for each in found:  # grows
        names = re.findall(
            r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', each.read_text("utf-8"), re.MULTILINE
        )
        found += [
            known[name] for name in dict.fromkeys(names) if known.get(name) not in (None, *found)
        ]
    return [file, *sorted(found[1:])]


def image_name(row: Row, dtype: str, values: Values) -> str:
    """File stem of a compiled image; smk_image_name in C builds the same."""
    return f"{row.stem}-{dtype}" + "".join(
        f"-{param.name}{values[param.name]}" for param in row.params if not param.runtime
    )


def defines(row: Row, dtype: str, values: Values) -> list[str]:
    """The macros with which a row's source is compiled: ["REAL=float", "TILE=32"]."""
    macros = [f"{name.upper()}={value}" for name, value in values.items()]
    return [DTYPES[row.op][dtype][1], *macros]


# ---- reading and checking


def _completed(entries: Sequence[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """The entries, with the keys that one has from the earlier one that it is `like`."""
    known: dict[object, Mapping[str, object]] = {}
    for i, entry in enumerate(entries):
        op, name, like = (entry.get(key) for key in ("op", "name", "like"))
        if like is not None:
            if (op, like) not in known:
                where = f"{TABLE}, variant {i + 1}"
                raise TableError(f"{where}: like = {like!r}, but no {op} of that name is before it")
            own = {key: value for key, value in entry.items() if key != "like"}
            entry = {**known[op, like], **own}
        known[op, name] = entry
        yield entry


def _only(known: set[str], given: Mapping[str, object], where: str) -> None:
    if unknown := sorted(set(given) - known):
        raise TableError(
            f"{where}: unknown {', '.join(unknown)}; known: {', '.join(sorted(known))}"
        )


def _get(entry: Mapping[str, object], key: str, kind: type, where: str, *default: object):
    if key not in entry:
        if default:
            return default[0]
        raise TableError(f"{where}: {key} is missing")
    value = entry[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TableError(f"{where}: {key} = {value!r} should be of type {kind.__name__}")
    return value


def _row(entry: Mapping[str, object], where: str) -> Row:
    op, name = _get(entry, "op", str, where), _get(entry, "name", str, where)
    if op not in DTYPES:
        raise TableError(f"{where}: op = {op!r}; known: {', '.join(DTYPES)}")
    if not _WORD.match(name):
        raise TableError(f"{where}: name = {name!r} should be a lower-case word")
    where = f"{TABLE}, {op} {name!r}"
    _only(_ROW_KEYS, entry, where)

    dtypes = tuple(_get(entry, "dtypes", list, where))
    if not dtypes or len(set(dtypes)) < len(dtypes) or not set(dtypes) <= set(DTYPES[op]):
        raise TableError(f"{where}: dtypes = {list(dtypes)}; legal: {', '.join(DTYPES[op])}")

    params = tuple(
        _param(key, value, f"{where}, parameter {key!r}")
        for key, value in _get(entry, "params", dict, where, {}).items()
    )
    if len(params) > MAX_PARAMS:
        raise TableError(f"{where}: {len(params)} parameters; at most {MAX_PARAMS}")

    sets, tuned = (_get(entry, key, list, where, []) for key in ("prebuilt", "tuned"))
    prebuilt = _prebuilt(params, [*sets, *tuned], where)
    require = tuple(_pair(pair, where) for pair in _get(entry, "require", list, where, []))
    min_sm = _get(entry, "min_sm", int, where, 80)
    probe = op == "probe"
    for key in ("input", "output") if not probe else ():
        if key in entry:
            raise TableError(f"{where}: {key} is for probes only")
    row = Row(
        op=op,
        name=name,
        summary=_get(entry, "summary", str, where),
        differs_from=_get(entry, "differs_from", str, where, None),
        min_sm=min_sm,
        dtypes=dtypes,
        params=params,
        prebuilt=prebuilt,
        tuned=prebuilt[len(prebuilt) - len(tuned) :],
        require=require,
        threads=_dims(entry, "threads", (1, 3), where),
        output_tile=_dims(entry, "output_tile", (2, 2), where, ["1", "1"] if probe else None),
        shared_bytes=_get(entry, "shared_bytes", str, where, "0"),
        input=_get(entry, "input", str, where) if probe else "0",
        output=_get(entry, "output", str, where) if probe else "0",
        accuracy=_accuracy(entry, where),
        product_bits=_get(entry, "product_bits", int, where, 0),
        portable=_portable(entry, min_sm, where),
        overlaps=_get(entry, "overlaps", bool, where, False),
        rate=_rate(entry, params, where),
        clusters=_get(entry, "clusters", bool, where, False),
        both_orders=_get(entry, "both_orders", bool, where, False),
        wgmma=_wgmma(entry["wgmma"], f"{where}, wgmma") if "wgmma" in entry else None,
        skinny=_skinny(entry["skinny"], f"{where}, skinny") if "skinny" in entry else None,
        ozaki=_ozaki(entry["ozaki"], params, f"{where}, ozaki") if "ozaki" in entry else None,
        any_strides=_get(entry, "any_strides", bool, where, False),
        boxes=_get(entry, "boxes", bool, where, False),
        default_on=_default_on(entry, where),
    )
    _check_expressions(row, where)
    return row


def _param(name: str, entry: object, where: str) -> Param:
    if not isinstance(entry, dict):
        raise TableError(f"{where}: {entry!r} should be a table {{ default, legal, doc }}")
    if not _WORD.match(name) or name in _C_WORDS:
        raise TableError(f"{where}: the name should be a lower-case word that C does not use")
    _only(_PARAM_KEYS, entry, where)
    legal = entry.get("legal")
    span = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", legal) if isinstance(legal, str) else None
    listed = isinstance(legal, list) and legal and all(type(value) is int for value in legal)
    if not span and not listed:
        raise TableError(f'{where}: legal = {legal!r} should be "first..last" or a list of numbers')
    first, last = (int(span[1]), int(span[2])) if span else (min(legal), max(legal))
    param = Param(
        name=name,
        doc=_get(entry, "doc", str, where),
        default=_get(entry, "default", int, where),
        first=first,
        last=last,
        legal=() if span else tuple(legal),
        runtime=_get(entry, "runtime", bool, where, False),
    )
    if not param.allows(param.default):
        raise TableError(f"{where}: default = {param.default} is not among legal = {legal!r}")
    return param


def _pair(pair: object, where: str) -> tuple[str, str]:
    if not isinstance(pair, list) or [type(part) for part in pair] != [str, str]:
        raise TableError(f"{where}: expected [test, sentence] in require, found {pair!r}")
    return pair[0], pair[1]


def _portable(entry: Mapping[str, object], min_sm: int, where: str) -> bool:
    """Whether later chips run the code; before sm_90 no chip has instructions that they lack."""
    portable = _get(entry, "portable", bool, where, min_sm < 90)
    if not portable and min_sm < 90:
        raise TableError(f"{where}: portable = false is for rows from min_sm = 90 on")
    return portable


def _rate(entry: Mapping[str, object], params: Sequence[Param], where: str) -> int:
    rate = _get(entry, "rate", int, where, 0)
    if (rate > 0) != any(param.name == "split" and param.runtime for param in params):
        raise TableError(
            f"{where}: rate > 0 and params.split with runtime = true require each other"
        )
    return rate


def _default_on(entry: Mapping[str, object], where: str) -> tuple[str, ...]:
    devices = _get(entry, "default_on", list, where, [])
    if any(device not in DEVICES for device in devices):
        raise TableError(f"{where}: default_on = {devices!r}; known: {', '.join(DEVICES)}")
    return tuple(devices)


def _accuracy(entry: Mapping[str, object], where: str) -> str:
    accuracy = _get(entry, "accuracy", str, where, ACCURACIES[0])
    if accuracy not in ACCURACIES:
        raise TableError(f"{where}: accuracy = {accuracy!r}; known: {', '.join(ACCURACIES)}")
    return accuracy


def _wgmma(entry: object, where: str) -> Wgmma:
    if not isinstance(entry, dict):
        raise TableError(f"{where}: {entry!r} should be a table {{ operand, terms }}")
    _only(_WGMMA_KEYS, entry, where)
    operand = _get(entry, "operand", str, where)
    if operand not in OPERANDS:
        raise TableError(f"{where}: operand = {operand!r}; known: {', '.join(OPERANDS)}")
    terms = _get(entry, "terms", int, where, 1)
    if terms not in (1, 2):
        raise TableError(f"{where}: terms = {terms} should be 1 or 2")
    by_rows = _get(entry, "b_by_rows", bool, where, False)
    guarded, by_columns = (
        _get(entry, key, bool, where, False) for key in ("guarded", "by_columns")
    )
    return Wgmma(operand, terms, by_rows, guarded, by_columns)


def _skinny(entry: object, where: str) -> Skinny:
    if not isinstance(entry, dict):
        raise TableError(f"{where}: {entry!r} should be a table {{ rows, mma }}")
    _only({"rows", "mma", "gemv"}, entry, where)
    mma, gemv = (_get(entry, key, bool, where, False) for key in ("mma", "gemv"))
    return Skinny(tuple(_get(entry, "rows", list, where)), mma, gemv)


def _ozaki(entry: object, params: Sequence[Param], where: str) -> dict[str, bool]:
    if not isinstance(entry, dict):
        raise TableError(f"{where}: {entry!r} should be a table {{ tma }}")
    _only({"tma"}, entry, where)
    if missing := sorted({"moduli", "workspace"} - {param.name for param in params}):
        raise TableError(f"{where}: params.{missing[0]} is missing")
    return {"tma": _get(entry, "tma", bool, where)}


def _dims(
    entry: Mapping[str, object],
    key: str,
    count: tuple[int, int],
    where: str,
    default: list[str] | None = None,
) -> tuple[str, ...]:
    dims = _get(entry, key, list, where, *([] if default is None else [default]))
    if not count[0] <= len(dims) <= count[1] or not all(isinstance(text, str) for text in dims):
        raise TableError(f"{where}: {key} = {dims!r} should be a list of expressions, as strings")
    return tuple(dims)


def _prebuilt(params: Sequence[Param], given: Iterable[object], where: str) -> tuple[Values, ...]:
    fixed = {param.name: param for param in params if not param.runtime}
    default = {name: param.default for name, param in fixed.items()}
    sets = [default]
    for values in given:
        if not isinstance(values, dict):
            raise TableError(f"{where}: expected tables in prebuilt, found {values!r}")
        _only(set(fixed), values, f"{where}, prebuilt")
        for name, value in values.items():
            if not fixed[name].allows(value):
                raise TableError(f"{where}: prebuilt {name} = {value} is not legal")
        full = default | values
        if full in sets:
            raise TableError(f"{where}: prebuilt names {full} twice (the default set is implied)")
        sets.append(full)
    return tuple(sets)


def _check_expressions(row: Row, where: str) -> None:
    """Every expression must parse, and prebuilt sets must satisfy the row and the hardware."""
    names = [param.name for param in row.params] + ["itemsize"]
    runtime = {param.name: param.default for param in row.params if param.runtime}

    def reader(text: str, *more: str) -> expressions.Expression:
        try:
            return expressions.read(text, [*names, *more])
        except expressions.ExpressionError as error:
            raise TableError(f"{where}: {error}") from None

    tests = [(reader(test), sentence) for test, sentence in row.require]
    probed = ["n"] if row.op == "probe" else []
    threads = [reader(text, *probed) for text in row.threads]
    tile = [reader(text, *probed) for text in row.output_tile]
    shared = reader(row.shared_bytes, *(["k"] if row.op == "gemm" else probed))
    for text in (row.input, row.output):
        reader(text, *probed)

    for values, dtype in itertools.product(row.prebuilt, row.dtypes):
        env = {**values, **runtime, "itemsize": DTYPES[row.op][dtype][0], "n": 1, "k": 2**31}
        for test, sentence in tests:
            if not test(env):
                raise TableError(f"{where}: {values} with {dtype} violates require: {sentence}")
        count = 1
        for dim in threads:
            count *= dim(env)
        if not 1 <= count <= MAX_THREADS:
            raise TableError(f"{where}: {values} makes blocks of {count} threads")
        if any(dim(env) < 1 for dim in tile):
            raise TableError(f"{where}: {values} makes an empty output tile")
        if not 0 <= shared(env) <= SHARED_BYTES_ANYWHERE:
            raise TableError(f"{where}: {values} needs {shared(env)} bytes of shared memory")


def _check_names(rows: Sequence[Row]) -> None:
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if (row.op, row.name) in seen:
            raise TableError(f"{TABLE}: {row.op} {row.name!r} has two rows")
        if row.differs_from is not None and (row.op, row.differs_from) not in seen:
            raise TableError(
                f"{TABLE}, {row.op} {row.name!r}: differs_from = {row.differs_from!r} should name "
                "a row above it of the same op"
            )
        seen.add((row.op, row.name))
