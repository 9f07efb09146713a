"""The rows of the table as C: registry_rows.c, which is the smk_rows of csrc/core/registry.h."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .registry import DTYPES, TABLE, Row


def c_source(rows: Sequence[Row]) -> str:
    """registry_rows.c."""
    return "\n".join(_c_lines(rows)) + "\n"


def _c_lines(rows: Sequence[Row]) -> Iterator[str]:
    yield f"/* Written by buildtools/rows_c.py out of {TABLE}. */"
    yield '#include "core/registry.h"'
    for row in rows:
        yield ""
        yield f"/* ---- {row.op} {row.name} */"
        yield from _c_functions(row)
        yield from _c_tables(row)
    yield ""
    yield "const smk_row smk_rows[] = {"
    for row in rows:
        yield from _c_row(row)
    yield "};"
    yield "const size_t smk_n_rows = sizeof smk_rows / sizeof *smk_rows;"


def _c_string(text: str | None) -> str:
    if text is None:
        return "NULL"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    # Octal, not \x: a hexadecimal escape would swallow the letters after it.
    return (
        '"'
        + "".join(
            c if c.isascii() else "".join(f"\\{byte:03o}" for byte in c.encode()) for c in escaped
        )
        + '"'
    )


def _c_locals(row: Row) -> Iterator[str]:
    for i, param in enumerate(row.params):
        yield f"    const int64_t {param.name} = values_[{i}];"
    yield "    const int64_t itemsize = itemsize_;"
    used = [param.name for param in row.params] + ["itemsize"]
    yield "    " + " ".join(f"(void){name};" for name in ["values_", *used])


def _c_functions(row: Row) -> Iterator[str]:
    def braces(texts: Sequence[str], count: int) -> str:
        return "{" + ", ".join([*texts, *["1"] * (count - len(texts))]) + "}"

    yield (
        f"static void geometry_{row.stem}(const int64_t *values_, int itemsize_, int64_t n, "
        "smk_geometry *out_)"
    )
    yield "{"
    yield from _c_locals(row)
    yield "    const int64_t k = n;"
    yield "    (void)n, (void)k;"
    yield "    *out_ = (smk_geometry){"
    yield f"        .threads = {braces(row.threads, 3)},"
    yield f"        .output_tile = {braces(row.output_tile, 2)},"
    yield f"        .shared_bytes = {row.shared_bytes},"
    yield f"        .input = {row.input},"
    yield f"        .output = {row.output},"
    yield "    };"
    yield "}"
    if row.require:
        yield f"static const char *conflict_{row.stem}(const int64_t *values_, int itemsize_)"
        yield "{"
        yield from _c_locals(row)
        for test, sentence in row.require:
            yield f"    if (!({test})) return {_c_string(sentence)};"
        yield "    return NULL;"
        yield "}"


def _c_tables(row: Row) -> Iterator[str]:
    for param in row.params:
        if param.legal:
            values = ", ".join(map(str, param.legal))
            yield f"static const int64_t legal_{row.stem}_{param.name}[] = {{{values}}};"
    if row.params:
        yield f"static const smk_param params_{row.stem}[] = {{"
        for param in row.params:
            legal = f"legal_{row.stem}_{param.name}" if param.legal else "NULL"
            yield (
                f"    {{.name = {_c_string(param.name)}, .doc = {_c_string(param.doc)}, "
                f".fallback = {param.default}, .first = {param.first}, .last = {param.last}, "
                f".legal = {legal}, .n_legal = {len(param.legal)}, "
                f".runtime = {str(param.runtime).lower()}}},"
            )
        yield "};"
    yield f"static const smk_dtype dtypes_{row.stem}[] = {{"
    for dtype in row.dtypes:
        itemsize, define = DTYPES[row.op][dtype]
        yield f"    {{{_c_string(dtype)}, {itemsize}, {_c_string(define)}}},"
    yield "};"


def _c_by_layout(row: Row) -> str:
    """The kernels for the two layouts of A and of B."""
    pairs = (f'{{"{row.stem}{a}", "{row.stem}{b}"}}' for a, b in (("", "_b"), ("_a", "_ab")))
    return f"{{{', '.join(pairs)}}}"


def _c_row(row: Row) -> Iterator[str]:
    yield "    {"
    yield f"        .op = SMK_{row.op.upper()},"
    yield f"        .name = {_c_string(row.name)},"
    yield f"        .entry = {_c_string(row.stem)},"
    yield f"        .summary = {_c_string(row.summary)},"
    yield f"        .differs_from = {_c_string(row.differs_from)},"
    yield f"        .min_sm = {row.min_sm},"
    yield f"        .dtypes = dtypes_{row.stem},"
    yield f"        .n_dtypes = {len(row.dtypes)},"
    yield f"        .params = {f'params_{row.stem}' if row.params else 'NULL'},"
    yield f"        .n_params = {len(row.params)},"
    yield f"        .product_bits = {row.product_bits},"
    yield f"        .portable = {str(row.portable).lower()},"
    yield f"        .overlaps = {str(row.overlaps).lower()},"
    if row.default_on:
        devices = " | ".join(f"SMK_DEFAULT_{device.upper()}" for device in row.default_on)
        yield f"        .default_on = {devices},"
    if row.rate:
        yield f'        .split = {{{row.rate}, "{row.stem}_reduce"}},'
    yield f"        .by_layout = {_c_by_layout(row) if row.both_orders else '{{NULL}}'},"
    if row.wgmma:
        yield f"        .wgmma = {{SMK_TENSOR_{row.wgmma.operand.upper()}, {row.wgmma.terms},"
        yield f"            {str(row.wgmma.b_by_rows).lower()},"
        yield f'            "{row.stem}_largest", "{row.stem}_pack",'
        yield f"            {_c_by_layout(row)}}},"
    if row.skinny:
        names = (f'{{"{row.stem}_{n}", "{row.stem}_{n}_along"}}' for n in row.skinny)
        rows = ", ".join(map(str, row.skinny))
        yield f"        .skinny = {{{{{rows}}}, {{{', '.join(names)}}}}},"
    if row.any_strides:
        names = ("any", "tall", "flat", "small", "copy", "in_place")
        names += ("in_place_vectors", "even", "large", "little", "least")
        names += ("vectors", "vectors_little")
        kernels = ", ".join(f'.{name} = "{row.stem}_{name}"' for name in names)
        yield f"        .transpose_kernels = {{{kernels}}},"
    if row.boxes:
        yield "        .transpose_kernels = {.boxes = true},"
    yield f"        .geometry = geometry_{row.stem},"
    yield f"        .conflict = {f'conflict_{row.stem}' if row.require else 'NULL'},"
    yield "    },"
