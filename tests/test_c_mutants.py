"""validation/c_mutants.py: what it changes of C, and that its record accounts for every mutant."""

import importlib
from pathlib import Path

import pytest

from checks import record

VALIDATION = Path(__file__).resolve().parent.parent / "validation"
pytestmark = pytest.mark.skipif(not VALIDATION.exists(), reason="not a source tree")


def harness(name):
    """A module of validation/."""
    return importlib.import_module(name)


def changes(statement):
    """(operator, what the line becomes) of each change in a function of this statement."""
    sites = harness("c_mutant.sites")
    text = f"int f(int a) {{\n{statement}\n}}\n"
    found = sites.File("x.c", text).sites()
    for site in found:
        assert sites.mutate(text, site).count("\n") == text.count("\n")
        assert site.line >= 2
    return {(site.operator, sites.shown(text, site)[1]) for site in found}


WANTED = {
    "x = a < b;": {("comparison", "x = a <= b;")},
    "x = a->b != c;": {("comparison", "x = a->b == c;")},
    "x = a < 4;": {
        ("comparison", "x = a <= 4;"),
        ("bound", "x = a < 5;"),
        ("bound", "x = a < 3;"),
    },
    "x = a > LANES;": {
        ("comparison", "x = a >= LANES;"),
        ("bound", "x = a > (LANES + 1);"),
        ("bound", "x = a > (LANES - 1);"),
    },
    "x = a[0];": {("bound", "x = a[1];")},
    "return a[0];": {("bound", "return a[1];")},
    "x = a & 0xff;": {
        ("mask", "x = a | 0xff;"),
        ("mask", "x = a & 0x7f;"),
        ("mask", "x = a & 0x1ff;"),
    },
    "x = a >> 3;": {
        ("mask", "x = a << 3;"),
        ("mask", "x = a >> 4;"),
        ("mask", "x = a >> 2;"),
    },
    "x = (a + align - 1) / align;": {
        ("rounding", "x = (a ) / align;"),
        ("off by one", "x = (a + align ) / align;"),
    },
    "x = (a + f(b).c - 1);": {
        ("rounding", "x = (a );"),
        ("off by one", "x = (a + f(b).c );"),
    },
    "x = floor(a);": {("rounding", "x = ceil(a);")},
    "x = a + 1;": {("off by one", "x = a ;")},
    "x = a && b || c;": {("logic", "x = a || b || c;"), ("logic", "x = a && b && c;")},
    "f(a);": {("dropped call", "(void)0;")},
    "f(a, g(b));": {("dropped call", "(void)0;")},
    "while (a) f(a);": {
        ("negated condition", "while (!(a)) f(a);"),
        ("dropped call", "while (a) (void)0;"),
    },
    "if (a) return f(b);": {
        ("negated condition", "if (!(a)) return f(b);"),
        ("dropped guard", ";"),
    },
    "if (a) {\n continue;\n}": {
        ("negated condition", "if (!(a)) {"),
        ("dropped guard", ";"),
    },
    "if (a) return 1; else return 2;": {
        ("negated condition", "if (!(a)) return 1; else return 2;")
    },
}


@pytest.mark.parametrize("statement", WANTED)
def test_changes(statement):
    assert changes(statement) == WANTED[statement]


@pytest.mark.parametrize(
    "statement",
    [
        "/* a < b */ // a < b",
        'x = "a < b && c[1]";',
        "x = *a, y = &b, z = -1;",
        "x = (struct s *)&a;",
        "#define X(a) ((a) < 4)",
        '#define Y(a) f(a); \\\n g(a < 1)',
        'return warp_fault(w, i, SMK_LAUNCH, w->active, "%u", a < 1);',
        "return f(a);",
        "int x[2][4] = {a};",
        "x = f(a);",
    ],
)  # fmt: skip
def test_no_changes(statement):
    assert changes(statement) == set()


def test_only_functions_have_sites():
    file = harness("c_mutant.sites").File(
        "x.c", "int table[] = {1 << 3, 2 & 4};\nenum { A = 1 << 2 };\n"
    )
    assert file.sites() == []


def test_every_mutant_of_the_record_is_accounted_for():
    run, reasons = record("c-mutants"), harness("c_mutant.reasons")
    if not run:
        pytest.skip("no run is recorded")
    mutants = run["records"]
    assert len(mutants) == run["mutants"] >= 300
    assert len({(m["file"], m["line"], m["before"], m["after"]) for m in mutants}) == len(mutants)
    killed = [m for m in mutants if m["verdict"] == "killed"]
    ways = harness("c_mutant_tables").HOW
    assert all(m["how"] in ways and m["test"] for m in killed)
    assert len(killed) == run["killed"] >= 0.95 * len(mutants)
    for mutant in mutants:
        assert mutant["verdict"] == "killed" or reasons.reason_of(mutant), mutant
