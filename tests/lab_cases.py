"""Runs on the emulator as data: what JavaScript needs to repeat them, and what must come out.

A case is a list of steps. A step is PTX, a launch of it (or the plan of a variant), its buffers
before, and the native build's values, counts and hazards after. tests/lab_driver.js repeats it with
the WebAssembly module, plainly and traced.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import smemkern
from smemkern import _core

SITE = "shared file line access width requests wavefronts ideal worst bytes direction callers"
SITE += " worstRequest machineRequests machineWavefronts machineIdeal"
HAZARD = "kind party other space offset width buffer variable variableAt count message"
PARTY = "file line ptxLine text block thread callers"
TOTALS = {
    "warp_instructions": "warpInstructions",
    "barriers": "barriers",
    "flops": "flops",
    "blocks_traced": "blocks",
    "grid_blocks": "gridBlocks",
    "shared_bytes": "sharedBytes",
}


class NotPlain(Exception):
    """An argument that the module's launches do not take: a texture, a struct."""


def _named(names: str, values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names.split(), values, strict=True))


def _request(raw: tuple[Any, ...]) -> dict[str, Any]:
    block, warp, active, addresses = raw
    shown = [a if active >> lane & 1 else None for lane, a in enumerate(addresses)]
    return {"block": block, "warp": warp, "active": active, "addresses": shown}


def _hazard(raw: tuple[Any, ...], buffers: Sequence[int]) -> dict[str, Any]:
    kind, party, other, space, offset, width, argument, _, *rest = raw
    buffer = buffers[argument] if argument >= 0 else -1
    values = (kind, _named(PARTY, party), _named(PARTY, other), space, offset, width, buffer, *rest)
    return _named(HAZARD, values)


def trace_of(raw: tuple[Any, ...], buffers: Sequence[int]) -> dict[str, Any]:
    """_core.observe's tables in the form of trace_json.c. buffers: of each argument."""
    sites, opcodes, totals, hazards, checked, incomplete, instructions = raw
    rows = [_named(SITE, site) for site in sites]
    for row in rows:
        row["worstRequest"] = _request(row["worstRequest"])
    names = ("function", "ptxLine", "warps", "site", "requests", "wider")
    return {
        "sites": rows,
        "opcodes": {
            name: dict(zip(("warps", "lanes", "flops"), counts, strict=True))
            for name, counts in opcodes.items()
        },
        **{new: totals[old] for old, new in TOTALS.items()},
        "hazards": [_hazard(one, buffers) for one in hazards],
        "checked": checked,
        "incomplete": incomplete,
        "instructions": [dict(zip(names, one, strict=True)) for one in instructions],
    }


POINTER = 8
PARAMETER = re.compile(r"\.param\s+(?:\.align \d+\s+)?\.[a-z]+(\d+)[^,\[)]*(?:\[(\d+)\])?")


def _parameter_sizes(ptx: str, entry: str) -> list[int]:
    """Bytes of each parameter, as the entry declares them."""
    declared = re.search(rf"\.entry\s+{re.escape(entry)}\s*\(([^)]*)\)", ptx)
    found = PARAMETER.findall(declared[1] if declared else "")
    return [int(bits) // 8 * int(count or 1) for bits, count in found]


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _buffer(array: np.ndarray) -> dict[str, str]:
    return {"access": "inout" if array.flags.writeable else "in", "data": _base64(array)}


OBSERVED = {"trace": True, "hazards": True, "by_instruction": True}


# A window of each step's recording is compared, by its length and CRC-32.
RECORDED = {"first": 3, "steps": 3000, "maxBytes": 64 << 20}


def recorded_window(what: Any, args: Any, options: dict[str, Any]) -> list[int]:
    """[length, CRC-32] of the recording of a call, which leaves the arrays as they were."""
    window = (*RECORDED.values(), None, None, [])
    observed = {"trace": True, "hazards": True, "recording": window}
    data = _core.observe(what, args, {**options, "device": "emu"}, **observed)[3]
    return [len(data), zlib.crc32(data)]


class Recording:
    """The steps of one case, as kernels are called."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[dict[str, Any]] = []
        self.arrays: list[np.ndarray] = []  # of the step

    def _argument(self, value: Any, size: int) -> dict[str, Any]:
        """What the module is given for a parameter of so many bytes."""
        if isinstance(value, smemkern.TensorMap):
            return {"tensor": self._tensor(value)}
        if isinstance(value, np.ndarray) and size == POINTER:
            return {"buffer": self._buffer(value)}
        if isinstance(value, complex):
            value = np.dtype(f"c{size}").type(value)
        if isinstance(value, (np.generic, np.ndarray)) and value.nbytes == size:
            return {"bytes": base64.b64encode(value.tobytes()).decode()}
        if value is None:  # a null pointer
            return {"int": "0"}
        if isinstance(value, (bool, int)):
            return {"int": str(int(value))}
        if isinstance(value, float):
            return {"float": repr(value)}
        raise NotPlain(f"{self.name}: an argument of type {type(value).__name__}")

    def _tensor(self, value: smemkern.TensorMap) -> dict[str, Any]:
        array = value.array
        return {
            "buffer": self._buffer(array),
            "type": array.dtype.name,
            "shape": array.shape,
            "box": value.box,
            "swizzle": value.swizzle,
            "element_strides": value.element_strides,
            "fill": value.fill,
        }

    def _buffer(self, array: np.ndarray) -> int:
        if not array.flags.c_contiguous:
            raise NotPlain(f"{self.name}: an array with gaps")
        for k, known in enumerate(self.arrays):
            if known is array:
                return k
        self.arrays.append(array)
        return len(self.arrays) - 1

    def call(self, kernel: Any, grid: Any, block: Any, *args: Any, **options: Any) -> None:
        """The call on the native emulator, observed, and the step that repeats it."""
        options.pop("device", None)
        self.arrays = []
        sizes = _parameter_sizes(kernel.ptx, kernel.name)
        entered = [self._argument(*one) for one in zip(args, sizes, strict=True)]
        buffers = [_buffer(array) for array in self.arrays]
        recording = recorded_window(kernel, (grid, block, *args), options)
        raw = _core.observe(kernel, (grid, block, *args), {**options, "device": "emu"}, **OBSERVED)
        order = [one.get("tensor", one).get("buffer", -1) for one in entered]
        three = [list(n) if isinstance(n, tuple) else [n] for n in (grid, block)]
        launch = {
            "entry": kernel.name,
            "grid": three[0],
            "block": three[1],
            "sharedBytes": options.pop("shared_bytes", 0),
            "cooperative": bool(options.pop("cooperative", False)),
            "args": entered,
        }
        if (cluster := options.pop("cluster", None)) is not None:
            of = list(cluster) if isinstance(cluster, tuple) else [cluster]
            launch["cluster"] = [*of, 1, 1][:3]
        if options:
            raise NotPlain(f"{self.name}: {sorted(options)}")
        self.steps.append(
            {
                "ptx": kernel.ptx,
                "launch": launch,
                "buffers": buffers,
                "window": RECORDED,
                "recording": recording,
                "trace": trace_of(raw[2], order),
                "after": [_base64(array) for array in self.arrays],
            }
        )

    def case(self) -> dict[str, Any]:
        return {"name": self.name, "steps": self.steps}


@contextmanager
def recorded(name: str) -> Iterator[Recording]:
    """In its block each call of a new smemkern.Kernel becomes a step."""
    recording = Recording(name)
    original = smemkern.Kernel

    class Recorded:
        def __init__(self, *source: Any, **options: Any) -> None:
            self.kernel = original(*source, **options)

        def __call__(self, *args: Any, **options: Any) -> None:
            recording.call(self.kernel, *args, **options)

    _core.trim("emu")  # module variables have their initial values
    smemkern.Kernel = Recorded  # type: ignore[misc, assignment]
    try:
        yield recording
    finally:
        smemkern.Kernel = original  # type: ignore[misc]


def variant_case(row: Any, dtype: str, sizes: dict[str, int], rng: Any) -> dict[str, Any]:
    """A variant of the table with its default parameters."""
    arrays = operands(row.op, dtype, sizes, rng)
    options = {"variant": row.name, "device": "emu"}
    result, _, raw, *_ = _core.observe(row.op, arrays, options, **OBSERVED)
    plan = {"op": row.op, "variant": row.name, "dtype": dtype, "params": {}, "sizes": sizes}
    image, ptx = _image(row, dtype)
    step = {
        "plan": plan,
        "image": image,
        "ptx": ptx,
        "buffers": [_buffer(array) for array in arrays],
        "window": RECORDED,
        "recording": recorded_window(row.op, arrays, options),
        "trace": trace_of(raw, range(len(arrays) + 1)),
        "after": [*map(_base64, arrays), _base64(result)],
    }
    shown = "x".join(map(str, sizes.values()))
    return {"name": f"{row.op} {row.name} {dtype} {shown}", "steps": [step]}


def operands(op: str, dtype: str, sizes: dict[str, int], rng: Any) -> tuple[np.ndarray, ...]:
    if op == "transpose":
        words = rng.integers(0, 256, sizes["rows"] * sizes["cols"] * 16, dtype="u1")
        kind = np.dtype({"b8": "u1", "b16": "u2", "b32": "u4", "b64": "u8", "b128": "c16"}[dtype])
        count = sizes["rows"] * sizes["cols"]
        return (words[: count * kind.itemsize].view(kind).reshape(sizes["rows"], sizes["cols"]),)
    if op == "probe":
        return (rng.standard_normal(sizes["n"]).astype("f4"),)
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))


def _image(row: Any, dtype: str) -> tuple[str, str]:
    """The name of the image that the default parameters choose, and its PTX."""
    defaults = {f"{name}{param.default}" for name, param in row.params.items()}
    folder = Path(_core.config()["images"])
    for file in sorted(folder.glob(f"{row.op}_{row.name}-{dtype}*.ptx")):
        stem, kind, *parts = file.stem.split("-")
        if stem == f"{row.op}_{row.name}" and kind == dtype and defaults.issuperset(parts):
            return file.stem, file.read_text()
    raise FileNotFoundError(f"no image of {row.op} {row.name} {dtype}")
