"""The table's reader: the shipped table passes, and every kind of slip is named."""

import re
from pathlib import Path

import pytest

from buildtools import images, registry, rows_c, targets

EVERYTHING, EMULATOR = targets.Targets(targets.ALL), targets.Targets((), native=True)
KERNELS = Path(__file__).resolve().parents[2] / "csrc" / "kernels"

GOOD = """
[[variant]]
op = "gemm"
name = "first"
summary = "a summary"
dtypes = ["float32", "float64"]
params.tile = { default = 16, legal = "4..32", doc = "edge" }
params.rows = { default = 2, legal = [1, 2, 4], doc = "rows" }
prebuilt = [{ tile = 32 }]
require = [["tile % rows == 0", "rows must divide tile"]]
threads = ["tile", "tile / rows"]
output_tile = ["tile", "tile"]
shared_bytes = "tile * tile * itemsize"

[[variant]]
op = "probe"
name = "second"
summary = "a summary"
dtypes = ["float32"]
params.stride = { default = 1, legal = "1..64", doc = "words", runtime = true }
threads = ["32"]
input = "32 * stride"
output = "n / 2"
"""


def read(folder: Path, text: str, files=("gemm_first", "probe_second")) -> list[registry.Row]:
    (folder / registry.TABLE).write_text(text)
    (folder / registry.LIBRARY).mkdir(exist_ok=True)
    for stem in files:
        (folder / f"{stem}.cu").touch()
    return registry.read(folder)


def test_the_shipped_table_passes():
    rows = registry.read(KERNELS)
    assert {row.op for row in rows} == {"gemm", "transpose", "probe"}
    names = [image.name for image in images.images_of(rows, EVERYTHING)]
    assert len(set(names)) == len(names)


def test_sets_and_names_of_images(tmp_path):
    rows = read(tmp_path, GOOD)
    assert [image.name for image in images.images_of(rows, EVERYTHING)] == [
        "gemm_first-float32-tile16-rows2",
        "gemm_first-float32-tile32-rows2",
        "gemm_first-float64-tile16-rows2",
        "gemm_first-float64-tile32-rows2",
        "probe_second-float32",
    ]
    assert registry.defines(rows[0], "float64", {"tile": 32, "rows": 2}) == [
        "REAL=double",
        "TILE=32",
        "ROWS=2",
    ]


def test_tuned_sets_are_for_gpus(tmp_path):
    text = GOOD.replace("prebuilt = [{ tile = 32 }]", "tuned = [{ tile = 32 }, { rows = 4 }]")
    rows = read(tmp_path, text)
    sets = [{"tile": 16, "rows": 2}, {"tile": 32, "rows": 2}, {"tile": 16, "rows": 4}]
    assert rows[0].prebuilt == tuple(sets) and rows[0].tuned == tuple(sets[1:])
    for wanted, tuned in (
        (EVERYTHING, True),
        (targets.Targets(()), True),
        (targets.Targets(("86",), native=True), True),
        (EMULATOR, False),
    ):
        found = [image.values for image in images.images_of(rows[:1], wanted)]
        assert found == (sets if tuned else sets[:1]) * 2  # dtypes
    with pytest.raises(registry.TableError, match="twice"):
        read(tmp_path, text.replace("{ rows = 4 }", "{ tile = 32 }"))


@pytest.mark.parametrize(
    ("keys", "virtual", "real"),
    [
        ("", ("80",), {"80": "80", "90a": "80", "100": "80", "120": "80"}),
        ("min_sm = 90", ("90a",), {"90a": "90a"}),
        ("min_sm = 90\nportable = true", ("90",), {"90a": "90", "100": "90", "120": "90"}),
        (
            "overlaps = true",
            ("80", "90"),
            {"80": "80", "90a": "90", "100": "90", "120": "90"},
        ),
    ],
)
def test_architectures_of_a_row(tmp_path, keys, virtual, real):
    row = read(tmp_path, GOOD.replace('name = "first"', f'name = "first"\n{keys}'))[0]
    image = images.images_of([row], EVERYTHING)[0]
    assert image.virtual == virtual
    assert image.real(targets.ALL) == real
    assert f".portable = {str('90a' not in virtual).lower()}," in rows_c.c_source([row])


def test_product_bits(tmp_path):
    rows = read(tmp_path, GOOD.replace('name = "first"', 'name = "first"\nproduct_bits = 20'))
    text = rows_c.c_source(rows)
    assert text.index(".product_bits = 20,") < text.index(".product_bits = 0,")


def test_accuracy(tmp_path):
    rows = read(tmp_path, GOOD.replace('name = "first"', 'name = "first"\naccuracy = "tf32-norm"'))
    assert rows_c.c_source(rows).count(".accuracy = SMK_ACCURACY_TF32_NORM,") == 1
    with pytest.raises(registry.TableError, match="accuracy = 'half'; known: float32, norm"):
        read(tmp_path, GOOD.replace('name = "first"', 'name = "first"\naccuracy = "half"'))


def test_text_is_quoted_for_c(tmp_path):
    rows = read(tmp_path, GOOD.replace('"a summary"', r'"a \"b\" \\ 3×f"', 1))
    assert r'.summary = "a \"b\" \\ 3\303\227f",' in rows_c.c_source(rows)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('summary = "a summary"', 'sumary = "a summary"', "gemm 'first': unknown sumary"),
        ('op = "gemm"', 'op = "conv"', "op = 'conv'; known: gemm, transpose, probe"),
        ('name = "first"', 'name = "First"', "should be a lower-case word"),
        ('"float32", "float64"', '"float32", "int8"', "legal: float32, float64"),
        ("default = 16", "default = 64", "parameter 'tile': default = 64 is not among"),
        ("params.tile", "params.int", "parameter 'int'.*C does not use"),
        ('op = "gemm"', 'op = "gemm"\nozaki = true', "True should be a table { tma }"),
        ('op = "gemm"', 'op = "gemm"\nozaki = { tmma = true }', "unknown tmma; known: tma"),
        ('op = "gemm"', 'op = "gemm"\nozaki = { tma = true }', "params.moduli is missing"),
        ('legal = "4..32"', 'legal = "4-32"', 'should be "first..last" or a list'),
        ('doc = "edge"', 'dok = "edge"', "parameter 'tile': unknown dok"),
        ("{ tile = 32 }", "{ tile = 33 }", "prebuilt tile = 33 is not legal"),
        ("{ tile = 32 }", "{ edge = 32 }", "prebuilt: unknown edge; known: rows, tile"),
        ("{ tile = 32 }", "{ tile = 16 }", "twice"),
        ("tile % rows == 0", "tile % row == 0", "unknown name 'row'; known here"),
        ("tile % rows == 0", "tile == 17", "violates require: rows must divide tile"),
        ('"tile", "tile / rows"', '"tile", "tile * rows"', "makes blocks of 2048 threads"),
        ('["tile", "tile / rows"]', '["tile", 4]', "threads = .* list of expressions"),
        ("tile * tile * itemsize", "tile * tile * itemsize * 1000", "bytes of shared memory"),
        ('output_tile = ["tile", "tile"]', 'output_tile = ["tile"]', "output_tile = "),
        ('shared_bytes = "tile', 'output = "1"\nshared_bytes = "tile', "output is for probes only"),
        ('input = "32 * stride"\n', "", "probe 'second': input is missing"),
        ('name = "second"', 'name = "second"\ndiffers_from = "first"', "should name a row above"),
        ('op = "probe"', "op = 3", "op = 3 should be of type str"),
        (
            'summary = "a summary"',
            'summary = "a"\nportable = false',
            "is for rows from min_sm = 90",
        ),
        (
            'summary = "a summary"',
            'summary = "a"\ndefault_on = ["gpu"]',
            r"default_on = \['gpu'\]; known: cuda, emu",
        ),
        ("[[variant]]", "[[variants]]", "unknown variants"),
        ("[[variant]]", "[variant", "Expected"),
    ],
)
def test_a_slip_is_named(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(registry.TableError, match=message):
        read(tmp_path, GOOD.replace(old, new, 1))


def test_two_rows_of_one_name(tmp_path):
    with pytest.raises(registry.TableError, match="gemm 'first' has two rows"):
        read(tmp_path, GOOD + GOOD.split('\n[[variant]]\nop = "probe"')[0])


LIKE = """
[[variant]]
op = "gemm"
name = "third"
like = "first"
summary = "another"
dtypes = ["float64"]
threads = ["tile"]
"""


def test_a_row_like_another_says_what_differs(tmp_path):
    first, _, third = read(tmp_path, GOOD + LIKE, ["gemm_first", "probe_second", "gemm_third"])
    differs = {key for key in vars(first) if getattr(first, key) != getattr(third, key)}
    assert differs == {"name", "summary", "dtypes", "threads", "file"}


@pytest.mark.parametrize("like", ["second", "fourth", "third"])
def test_a_row_is_like_an_earlier_one_of_its_operation(tmp_path, like):
    with pytest.raises(registry.TableError, match=f"like = '{like}', but no gemm of that name"):
        read(tmp_path, GOOD + LIKE.replace('"first"', f'"{like}"'))


def test_files_are_rows(tmp_path):
    with pytest.raises(registry.TableError, match="no source file for probe_second"):
        read(tmp_path, GOOD, files=["gemm_first"])
    with pytest.raises(registry.TableError, match=r"no row for gemm_stray\.cu"):
        read(tmp_path, GOOD, files=["gemm_first", "probe_second", "gemm_stray"])


def test_a_file_is_beside_the_table_or_in_the_library(tmp_path):
    rows = read(tmp_path, GOOD, files=["library/gemm_first", "probe_second"])
    assert [(row.file, row.in_library) for row in rows] == [
        ("library/gemm_first.cu", True),
        ("probe_second.cu", False),
    ]
    twice = r"gemm_first\.cu and library/gemm_first\.cu are of one row"
    with pytest.raises(registry.TableError, match=twice):
        read(tmp_path, GOOD, files=["gemm_first"])


def test_the_list_of_kernels_is_the_table():
    """README.md there: the ladders, the library, the probes; within each the order of the table."""
    text = (KERNELS / "README.md").read_text()
    listed = re.findall(r"^\| \[(?:(\w+) )?(\w+)\]\((\S+\.cu)\) \| .* \| (\w*) \|$", text, re.M)
    rows = registry.read(KERNELS)
    rungs = [row for row in rows if not row.in_library and row.op != "probe"]
    library = [row for row in rows if row.in_library]
    probes = [row for row in rows if row.op == "probe"]
    assert listed == [
        (row.op if row.in_library else "", row.name, row.file, row.differs_from or "")
        for row in [*rungs, *library, *probes]
    ]
    assert not any(row.in_library for row in probes)
    names = {(row.op, row.name) for row in rungs}
    assert all((r.op, r.differs_from) in names for r in rungs if r.differs_from)
