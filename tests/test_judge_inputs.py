"""smemkern.judge: the inputs, and the expressions of sizes."""

import ast
import random
import secrets

import numpy as np
import pytest

from smemkern._judge.inputs import (
    PATTERNS,
    VALUES,
    Case,
    arguments,
    cases,
    evaluate,
    extent,
    odd_sizes,
    poison,
    template,
)

# ---- inputs


def test_patterns():
    seed = secrets.randbits(32)
    for dtype in (np.float16, np.float32, np.float64):
        for shape in ((1,), (7,), (3, 5), (0,), (1000,)):
            rng = np.random.default_rng(seed)
            made = {
                name: pattern.fill(np.zeros(shape, dtype), rng)
                for name, pattern in PATTERNS.items()
                if "f" in pattern.kinds
            }
            assert all(one.dtype == dtype and one.shape == shape for one in made.values()), seed
            if not made["nan"].size:
                continue
            assert np.isnan(made["nan"]).any() and np.isinf(made["inf"]).any(), seed
            tiny, largest = np.finfo(dtype).tiny, np.finfo(dtype).max
            assert (np.abs(made["subnormal"]) <= tiny).all(), seed
            assert np.isfinite(made["large"].astype(float) ** 2 * 255).all(), seed
            if made["large"].size > 100:
                assert np.abs(made["large"]).max() > float(largest) ** 0.5 / 32, seed
                assert np.isnan(made["nan"]).sum() < 20, seed
                pairs = made["cancelling"].astype(float).reshape(-1, 2)
                assert np.abs(pairs.sum(1)).max() < 0.2 < np.abs(pairs).max(), seed
    for kind in "iu":
        for bits in (8, 16, 32, 64):
            like = np.zeros(50, f"{kind}{bits // 8}")
            made = PATTERNS["extremes"].fill(like, np.random.default_rng(seed))
            assert {np.iinfo(like.dtype).min, np.iinfo(like.dtype).max} <= {*made.tolist()}


def test_poisons_differ():
    rng = np.random.default_rng()
    for dtype in (np.float16, np.float32, np.float64, np.int32, np.uint64):
        like = np.zeros((40, 50), dtype)
        one, other = poison(like, rng, True), poison(like, rng, False)
        again = poison(like, rng, True)
        word = f"u{like.itemsize}"
        assert (one.view(word) != other.view(word)).mean() > 0.99
        assert (one.view(word) != again.view(word)).mean() > 0.9
        if like.dtype.kind == "f":
            assert np.isnan(one).all() and np.isfinite(other).all()
            assert (np.abs(other) > float(np.finfo(dtype).max) / 20).all()


def test_odd_sizes():
    assert odd_sizes({"n": 100}) == [{"n": n} for n in (100, 1, 99, 101, 47)]
    assert odd_sizes({}) == [{}]
    found = odd_sizes({"m": 8, "n": 1})
    assert found[0] == {"m": 8, "n": 1} and {"m": 1, "n": 1} in found and {"m": 9, "n": 1} in found
    assert len({tuple(one.items()) for one in found}) == len(found)
    assert all(size >= 1 for one in found for size in one.values())


def test_aliased_arguments_are_one_array():
    templates = [template(text) for text in ("f32[n]=random", "f32[n]=random", "f32[n]", "f32=2")]
    planned = list(cases(templates, [{"n": 9}], VALUES, "all"))
    assert [one.aliased for one in planned if one.aliased] == [(0, 1), (0, 2), (1, 2)]
    made, outputs = arguments(templates, Case({"n": 9}, aliased=(0, 2)), np.random.default_rng(1))
    assert made[0] is made[2] and made[0] is not made[1] and outputs == [False] * 4
    planned = list(cases(templates, [{"n": 9}], VALUES, "inputs"))
    assert [one.aliased for one in planned if one.aliased] == [(0, 1)]
    assert not any(one.aliased for one in cases(templates, [{"n": 9}], VALUES, "none"))


# ---- expressions


def test_expressions_are_those_of_c():
    seed = secrets.randbits(32)
    rng = random.Random(seed)
    sizes = {"m": rng.randrange(1, 99), "n": rng.randrange(1, 99)}

    def expression(depth):
        if depth == 0:
            return rng.choice(["m", "n", str(rng.randrange(1, 9))])
        one, other = expression(depth - 1), expression(depth - 1)
        return rng.choice(
            [f"({one} + {other})", f"({one}) * ({other})", f"cdiv({one}, {other})"]
            + [f"max({one}, {other})", f"min({one},{other})", f"(({one}) / ({other}))"]
        )

    def values(text):
        """Of the text's parts."""
        parts = ast.walk(ast.parse(text.replace("/", "//"), mode="eval").body)
        parts = [one for one in parts if isinstance(one, (ast.BinOp, ast.Call))]
        return [eval(ast.unparse(one), dict(names)) for one in parts]

    names = {"cdiv": lambda a, b: -(-a // b), "max": max, "min": min, **sizes}
    for _ in range(100):
        text = expression(3)
        try:
            expected = eval(text.replace("/", "//"), dict(names))
        except ZeroDivisionError:
            continue
        try:
            found = evaluate(text, sizes)
        except ValueError:  # the limits, in the text's own words
            largest = max(abs(value) for value in values(text))
            assert len(text) > 200 or largest > 2**40, (seed, text)
        else:
            assert found == expected, (seed, text)


@pytest.mark.parametrize(
    "text",
    ["n**9", "n.real", "__import__('os')", "[n]", "n if n else 1", "1.5", "'a'", "", "n n", "f(n)"]
    + ["k", "n(1)", "n/0", "n % (n - n)", "lambda: 1", "(" * 99 + "n" + ")" * 99, "9" * 300]
    + ["cdiv(1)", "cdiv(a=1, b=2)", "2000000*2000000", "True", "n := 3", "-" * 199 + "n"],
)
def test_expressions_that_are_refused(text):
    if text.startswith("("):
        assert evaluate(text, {"n": 3}) == 3  # deep, but short enough
        return
    if text.startswith("---"):
        assert evaluate(text, {"n": 3}) == -3
        return
    with pytest.raises(ValueError, match="."):
        evaluate(text, {"n": 3})


def test_extents():
    sizes = {"n": 100}
    assert extent(7, sizes) == (7,) and extent("16x2", sizes) == (16, 2)
    assert extent("cdiv(n, 32), 2,n/50", sizes) == (4, 2, 2) == extent(("cdiv(n,32)", 2, 2), sizes)
    for wrong in ("0", "n - 100", "1,2,3,4", "", ()):
        with pytest.raises(ValueError, match="expected"):
            extent(wrong, sizes)
