"""Boosted trees that correct predicted times: core/plan_ring_trees.c evaluates them.

All splits of one level of a tree are the same, so a leaf's number has a bit per level. Fitting
needs CatBoost.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

LEVELS, UNIT = 6, 1e-4


class Tree(NamedTuple):
    facts: list[int]  # by level
    borders: list[float]
    leaves: list[int]  # logarithms, in units of UNIT


def fit(facts: Any, logs: Any, weights: Any, count: int) -> list[Tree]:
    """facts: (n, facts) of float32; logs: what the trees' sum should be, (n,); count: of trees."""
    import tempfile

    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        **{"iterations": count, "depth": LEVELS, "learning_rate": 0.15, "border_count": 64},
        **{"random_seed": 1, "verbose": 0, "allow_writing_files": False},
    )
    model.fit(facts, logs, sample_weight=weights)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        made = json.loads(path.read_text())
    scale, (bias,) = made["scale_and_bias"]
    trees = []
    for tree in made["oblivious_trees"]:
        splits = tree["splits"]
        missing = LEVELS - len(splits)  # the fit found fewer: one more is never passed
        facts_of = [split["float_feature_index"] for split in splits] + [0] * missing
        borders = [split["border"] for split in splits] + [3e38] * missing
        leaves = [scale * value + bias / count for value in tree["leaf_values"]]
        leaves += [0.0] * (2**LEVELS - len(leaves))
        trees.append(Tree(facts_of, borders, [round(value / UNIT) for value in leaves]))
    return trees


def corrections(trees: list[Tree], facts: Any) -> Any:
    """How many times as long calls take as the sums of their terms. facts: (n, facts)."""
    import numpy as np

    known = np.asarray(facts, np.float32)
    total = np.zeros(len(known))
    for tree in trees:
        above = known[:, tree.facts] > np.float32(tree.borders)
        total += np.array(tree.leaves)[above @ (1 << np.arange(LEVELS))]
    return np.exp(total * UNIT)


def write(path: Path, trees: list[Tree], title: str) -> None:
    rows = (
        "{" + ", ".join("{" + ", ".join(f"{x:.9g}" for x in part) + "}" for part in tree) + "},\n"
        for tree in trees
    )
    path.write_text(f"/* {title} */\n" + "".join(rows))


def read(path: Path) -> list[Tree]:
    lines = path.read_text().translate({ord("{"): "[", ord("}"): "]"}).splitlines()
    return [Tree(*json.loads(line.rstrip(","))) for line in lines if not line.startswith("/*")]
