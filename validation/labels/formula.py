"""Evaluates the cost formulas of Faial's test.ml, such as "Σ_{i | 0 ≤ i ≤ (n - 1)} 1"."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any

SUM = re.compile(r"Σ_\{(\w+) \| (.*?) ≤ \1 ≤ (.*?)\} (.*)$")
CONDITION = re.compile(r"if \((.*)\) then (.*) else (.*)$")
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.LShift: operator.lshift,
    ast.Lt: operator.lt,
}
FUNCTIONS = {"min": min, "floor": math.floor, "log2": math.log2}


def value_of(formula: str, numbers: dict[str, int]) -> int:
    """The formula's value where the names have these values."""
    if found := SUM.match(formula):
        name, low, high, term = found.groups()
        span = range(value_of(low, numbers), value_of(high, numbers) + 1)
        return sum(value_of(term, {**numbers, name: i}) for i in span)
    if found := CONDITION.match(formula):
        return value_of(found[2] if value_of(found[1], numbers) else found[3], numbers)
    text = formula.replace("⌊", "floor(").replace("⌋", ")").replace("log₂", "log2")
    return int(_evaluate(ast.parse(text, mode="eval").body, numbers))


def _evaluate(node: ast.AST, numbers: dict[str, int]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return numbers[node.id]
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left, numbers), _evaluate(node.right, numbers)
        return BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Compare):
        left, right = _evaluate(node.left, numbers), _evaluate(node.comparators[0], numbers)
        return BINARY[type(node.ops[0])](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return FUNCTIONS[node.func.id](*(_evaluate(arg, numbers) for arg in node.args))
    raise ValueError(f"cannot evaluate {ast.dump(node)}")
