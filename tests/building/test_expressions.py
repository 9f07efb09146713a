"""The reader of the table's C expressions, against the C compiler and by its error messages."""

import random
import shutil
import subprocess

import pytest

from buildtools import expressions

NAMES = {"a": 5, "b": -3, "n": 12}
BINARY = "+ - * / % << >> < > <= >= == != & ^ | && ||".split()


def random_expression(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.2:
        return rng.choice(["a", "b", "n", "1", "3", "7"])
    if kind < 0.3:
        return f"{rng.choice('-+!~')} {random_expression(rng, depth - 1)}"
    if kind < 0.45:
        return f"({random_expression(rng, depth - 1)})"
    if kind < 0.55:
        return " ".join(
            word for mark in ("?", ":", "") for word in (random_expression(rng, depth - 1), mark)
        ).strip()
    left, right = (random_expression(rng, depth - 1) for _ in range(2))
    return f"{left} {rng.choice(BINARY)} {right}"


def test_agrees_with_the_c_compiler(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    rng = random.Random(20261121)
    cases = []
    while len(cases) < 500:
        text = random_expression(rng, 4)
        try:
            value = expressions.read(text, NAMES)(NAMES)
        except (ZeroDivisionError, ValueError, OverflowError, MemoryError):
            continue  # undefined in C: division by zero, a shift by a negative count
        # A shift that leaves the range is undefined in C too, so shifts are kept rare and small.
        if abs(value) < 2**20 and (text.count("<<") == 0 or rng.random() < 0.1):
            cases.append((text, value))
    lines = "\n".join(f'printf("%lld\\n", (long long)({text}));' for text, _ in cases)
    names = ", ".join(f"{name} = {value}" for name, value in NAMES.items())
    source = tmp_path / "cases.c"
    source.write_text(f"#include <stdio.h>\nint main(void) {{ long long {names};\n{lines}\n}}\n")
    subprocess.run([compiler, "-w", source, "-o", tmp_path / "cases"], check=True)
    printed = subprocess.run([tmp_path / "cases"], check=True, capture_output=True).stdout.split()
    wrong = [
        (text, value, int(c))
        for (text, value), c in zip(cases, printed, strict=True)
        if value != int(c)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a number, a name or '\\(', found the end"),
        ("1 +", "found the end"),
        ("a b", "expected an operator or the end, found 'b'"),
        ("(a", r"expected '\)', found the end"),
        ("a ? 1", "expected ':', found the end"),
        ("q", "unknown name 'q'; known here: a, b, n"),
        ("1 $ 2", "unknown token '\\$'"),
        ("a = b", "unknown token '='"),
        ("a +* b", r"found '\*'"),
    ],
)
def test_says_what_is_wrong(text, message):
    with pytest.raises(expressions.ExpressionError, match=message):
        expressions.read(text, NAMES)


def test_reads_only_the_side_that_is_taken():
    value = expressions.read("n == 0 ? 0 : (n != 0 && 12 / n == 1)", NAMES)
    assert value({**NAMES, "n": 0}) == 0
    assert value({**NAMES, "n": 12}) == 1
