"""The operations that are compared with the hardware: PTX, kind and counters.

An operation is one PTX instruction, run by one warp. `%a` is the lane's shared address, `%g` its
global address, `%s` where a copy reads; `%v`, `%w` and `%h` are registers of 32, 64 and 16 bits;
those named in `results` are used afterwards, so that ptxas cannot leave the instruction out.
"""

from __future__ import annotations

from dataclasses import dataclass

WINDOW = 32768  # bytes of shared memory that patterns draw from


@dataclass(frozen=True)
class Operation:
    name: str
    ptx: str
    width: int  # bytes per lane, or per matrix row
    kind: str  # "load", "store", "ldmatrix", "stmatrix", "atomic", "copy_async"
    results: tuple[str, ...] = ()
    lanes: int = 32  # that supply an address
    space: str = "shared"
    full: bool = False  # all lanes must be active
    after: str = ""  # run once, after the loop
    modelled: bool = False  # the rule is known to be incomplete


def _vector(letter: str, n: int) -> tuple[str, tuple[str, ...]]:
    names = tuple(f"%{letter}{i}" for i in range(n))
    return (names[0] if n == 1 else "{" + ", ".join(names) + "}"), names


def _moves(space: str, register: str) -> list[Operation]:
    """Plain loads and stores of each width, in each PTX form."""
    out = []
    for count, bits in [
        *((1, b) for b in (8, 16, 32, 64)),
        *((2, b) for b in (8, 16, 32, 64)),
        *((4, b) for b in (8, 16, 32)),
    ]:
        letter = {8: "h", 16: "h", 32: "v", 64: "w"}[bits]
        names, results = _vector(letter, count)
        form = f"v{count}.b{bits}" if count > 1 else f"b{bits}"
        width = count * bits // 8
        prefix = "" if space == "shared" else "global_"
        out += [
            Operation(
                f"{prefix}ld_{form.replace('.', '_')}",
                f"ld.{space}.{form} {names}, [{register}];",
                width,
                "load",
                results,
                space=space,
            ),
            Operation(
                f"{prefix}st_{form.replace('.', '_')}",
                f"st.{space}.{form} [{register}], {names};",
                width,
                "store",
                space=space,
            ),
        ]
    return out


def _matrices() -> list[Operation]:
    out = []
    for n in (1, 2, 4):
        for trans in ("", ".trans"):
            names, results = _vector("v", n)
            braces = names if n > 1 else "{" + names + "}"
            suffix = f"x{n}{trans.replace('.', '_')}"
            out += [
                Operation(
                    f"ldmatrix_{suffix}",
                    f"ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {braces}, [%a];",
                    16,
                    "ldmatrix",
                    results,
                    lanes=8 * n,
                    full=True,
                ),
                Operation(
                    f"stmatrix_{suffix}",
                    f"stmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 [%a], {braces};",
                    16,
                    "stmatrix",
                    lanes=8 * n,
                    full=True,
                ),
            ]
    return out


ATOMS = [  # operation, type, register
    *[(op, "u32", "v") for op in ("add", "min", "max", "inc", "dec")],
    *[(op, "b32", "v") for op in ("and", "or", "xor", "exch", "cas")],
    *[(op, "u64", "w") for op in ("add", "min")],
    *[(op, "b64", "w") for op in ("and", "exch", "cas")],
    ("min", "s32", "v"),
    ("max", "s64", "w"),
    ("add", "f32", "v"),
    ("add", "f64", "w"),
    ("add.noftz", "f16x2", "v"),
    ("add.noftz", "bf16x2", "v"),
    ("add.noftz", "f16", "h"),
    ("cas", "b16", "h"),
]
WIDTHS = {"v": 4, "w": 8, "h": 2}
# Loops that end early if nothing changes, or that compare values of lanes.
BY_VALUE = {"min_u64", "max_s64", "and_b64", "add_f16", "cas_b16"}


def _atomics(space: str, register: str) -> list[Operation]:
    out = []
    prefix = "" if space == "shared" else "global_"
    for op, kind, letter in ATOMS:
        third = f", %{letter}2" if op == "cas" else ""
        name = f"{op.split('.')[0]}_{kind}"
        out.append(
            Operation(
                f"{prefix}atom_{name}",
                f"atom.{space}.{op}.{kind} %{letter}0, [{register}], %{letter}1{third};",
                WIDTHS[letter],
                "atomic",
                (f"%{letter}0",),
                space=space,
                modelled=space == "global" or name in BY_VALUE,
            )
        )
        if op not in ("exch", "cas"):
            out.append(
                Operation(
                    f"{prefix}red_{name}",
                    f"red.{space}.{op}.{kind} [{register}], %{letter}1;",
                    WIDTHS[letter],
                    "atomic",
                    space=space,
                    modelled=space == "global" or name in BY_VALUE,
                )
            )
    return out


def _counting() -> list[Operation]:
    """Add 1, or inc without wrapping, with an unused result: ptxas emits ATOMS.POPC.INC."""
    return [
        Operation(name, f"{ptx};", 4, "atomic")
        for name, ptx in [
            ("red_add_one", "red.shared.add.u32 [%a], 1"),
            ("atom_add_one", "atom.shared.add.u32 %from, [%a], 1"),
            ("red_inc_always", "red.shared.inc.u32 [%a], 0xffffffff"),
        ]
    ]


def _copies() -> list[Operation]:
    out = []
    for cache, width, size in [
        ("ca", 4, None),
        ("ca", 8, None),
        ("ca", 16, None),
        ("cg", 16, None),
        ("ca", 4, 0),
        ("ca", 8, 4),
        ("cg", 16, 0),
        ("cg", 16, 8),
    ]:
        tail = "" if size is None else f", {size}"
        suffix = "" if size is None else f"_size{size}"
        out.append(
            Operation(
                f"cp_async_{cache}_{width}{suffix}",
                f"cp.async.{cache}.shared.global [%a], [%s], {width}{tail};",
                width,
                "copy_async",
                after="cp.async.wait_all;",
                modelled=size != 0,
            )
        )
    return out


SHARED = [
    *_moves("shared", "%a"),
    *_matrices(),
    *_atomics("shared", "%a"),
    *_counting(),
    *_copies(),
]
GLOBAL = [*_moves("global", "%g"), *_atomics("global", "%g")]
OPERATIONS = {operation.name: operation for operation in (*SHARED, *GLOBAL)}
