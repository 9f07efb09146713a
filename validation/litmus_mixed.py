"""Holds the race detector against the litmus tests of the paper on proxies.

    python validation/litmus_mixed.py FOLDER   # a checkout of github.com/NVlabs/mixedproxy
    python validation/hazard_docs.py           # puts the record's table into docs/hazards.md

Lustig, Cooksey and Giroux, "Mixed-Proxy Extensions for the NVIDIA PTX Memory Consistency Model"
(ISCA 2022). A test is a program and a condition: `assert`, it holds in every execution, or
`permit`, in some. A file with rows behind $$ has one test per row. A test is judged as litmus.py
judges published verdicts: if the load may miss the write although the flags say that it has been
made, there is a race, which must be reported; else there must be no report.

The generic tests are also compared with memory_model/model.py, which knows no other proxies.

What PTX cannot express is not run: fences of the texture and the surface proxy, which the paper
introduces as a hypothesis, and with them all its reads of textures; and two addresses of one
memory, which launches here do not have.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import litmus
import records
from memory_model.program import Litmus, NotSupported, Op, Thread

EXECUTIONS = 16
# Why a verdict, or the detector's report against the model, differs: by file.
REASONS = {
    "Release_acquire_pattern": "PTX has a release operation and then a strong write of the same "
    "address among its release patterns, and so has the model in this suite's `ptx.als`: the "
    "outcome that the test permits is forbidden",
    "SB_cta": "store buffering: the order of two `fence.sc` follows from what a thread has not "
    "seen, which the detector does not use, so it reports a race",
}


def expand(text: str) -> Iterator[str]:
    """The tests of a file: the text, or one per row, whose cells replace $0, $1, ..."""
    template, _, rows = text.partition("$$")
    if not rows:
        yield template
    for row in filter(str.strip, rows.splitlines()):
        cells = [cell.strip() for cell in row.split("|")]
        yield re.sub(r"\$(\d+)", lambda m, cells=cells: cells[int(m[1])], template)


def title(name: str, text: str) -> str:
    """The file's name and, of a row, its accesses of data and its fences."""
    body = re.sub(r"\.(global|texref|surfref)[^;]*;", "", text)
    ops = re.findall(r"\b(?:fence|st|sust|ld|suld|tld|atom)\b[^;{]*(?=;)", body)
    return f"{name}: {'; '.join(' '.join(op.split()) for op in ops if 'flag' not in op)}"


def read_op(text: str, surfaces: dict[str, str]) -> tuple[Op, str]:
    """The operation, and the clause about what it reads."""
    text, _, value = text.partition("==")
    head, _, rest = text.strip().partition(" ")
    opcode, *modifiers = head.split(".")
    args = [a.strip(" []") for a in rest.split(",") if a.strip()]
    if "proxy" in modifiers:
        raise NotSupported(f"{head} is not in PTX" if "alias" not in head else "two addresses")
    if opcode == "tld":
        raise NotSupported("a read of a texture that a fence would have to order")
    clause = f"{args[0]} == {value.strip()}" if value else ""
    if opcode == "fence":
        return Op("fence", "", modifiers[0], modifiers[1]), ""
    if opcode == "atom":
        what, order, scope = modifiers
        return Op("atom", what, order, scope, args[1], (args[0], *args[2:])), clause
    load = opcode in ("ld", "suld")
    location, values = (args[1], args[:1]) if load else (args[0], args[1:])
    order = modifiers[0] if modifiers else "weak"
    scope = modifiers[1] if len(modifiers) > 1 else ""
    if order == "volatile":
        order, scope = "relaxed", "sys"
    what = "surface" if location in surfaces else ""
    location = surfaces.get(location, location)
    return Op("ld" if load else "st", what, order, scope, location, tuple(values)), clause


def read(text: str, name: str) -> Litmus:
    aliases = dict(re.findall(r"\.surfref (\w+) virtually aliases (\w+);", text))
    if "physically aliases" in text:
        raise NotSupported("two addresses of one memory")
    threads, where, flags = [], {}, []
    blocks: dict[str, int] = {}
    for block, body in re.findall(r"d0\.(b\d+)\.t\d+\s*\{(.*?)\}", text, re.S):
        number = len(threads)
        threads.append(Thread(blocks.setdefault(block, len(blocks))))
        for one in filter(str.strip, body.split(";")):
            op, clause = read_op(one, aliases)
            threads[-1].ops.append(op)
            if op.kind in ("ld", "atom"):
                where[op.args[0]] = f"P{number}:{op.args[0]}"
            flags += [clause] if clause else []
    found = re.search(r"(assert|permit)\s*\((.*)\)\s*as", text)
    if not found or not threads:
        raise NotSupported("no condition")
    condition = found[2].replace("&&", "/\\").replace("||", "\\/")
    if found[1] == "assert":
        negated = [litmus.negated(clause) for clause in flags]
        condition = " \\/ ".join([*negated, condition])
    else:
        condition = " /\\ ".join([*flags, condition])
    condition = re.sub(r"\br\d+\b", lambda m: where[m[0]], condition)
    return Litmus(name, {}, threads, "forall" if found[1] == "assert" else "exists", condition)


def rule_of(test: Litmus) -> litmus.Rule:
    """The published verdicts are "true". A thread may miss its own write, too."""
    if len(test.threads) > 1:
        return litmus.rule_of(test, True)
    [location] = test.locations
    return litmus.Rule(location, [], test.quantifier == "exists")


def judge(test: Litmus, rng: random.Random) -> str:
    """By the published verdict."""
    done = list(litmus.runs(test, EXECUTIONS, rng))
    try:
        return litmus.judge(test, rule_of(test), done)
    except NotSupported as reason:
        return f"not judged by a verdict: {reason}"


def by_model(test: Litmus, suite: litmus.Suite) -> str:
    """Whether the model has the published verdict; adds the test's executions to the suite."""
    suite.add(test)
    return "same" if litmus.model.verdict(test) else "different"


def judge_all(folder: Path, seed: int) -> records.Record:
    rng = random.Random(seed)
    suite = litmus.Suite(EXECUTIONS, rng)
    judged: dict[str, str] = {}
    model: dict[str, str] = {}
    for path in sorted((folder / "tests").glob("*.test")):
        for text in expand(path.read_text()):
            name = title(path.stem, text)
            try:
                test = read(text, name)
            except NotSupported as reason:
                judged[name] = f"not run: {reason}"
                continue
            judged[name] = judge(test, rng)
            if not any(op.what == "surface" for t in test.threads for op in t.ops):
                model[name] = by_model(test, suite)
    differ = [name for name, verdict in judged.items() if verdict.endswith("wrong")]
    differ += [name for name, verdict in model.items() if verdict == "different"]
    differ += suite.misses
    return {
        "seed": seed,
        "tests": len(judged),
        "counts": dict(sorted(Counter(judged.values()).items())),
        "judged": judged,
        "model": model,
        "by_model": suite.record(),
        "reasons": {(file := name.partition(":")[0]): REASONS.get(file) for name in differ},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a checkout of mixedproxy")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=records.RESULTS / "litmus-mixed.json")
    args = parser.parse_args()
    commit = records.first_line("git", "-C", str(args.folder), "rev-parse", "HEAD")
    record = {
        **records.facts(),
        "source": f"mixedproxy {commit}",
        **judge_all(args.folder, args.seed),
    }
    if not record["tests"]:
        parser.error(f"no tests/*.test in {args.folder}")
    records.write(args.out, record)
    wrong = sum(verdict.endswith("wrong") for verdict in record["judged"].values())
    misses = len(record["by_model"]["misses"])
    unexplained = [file for file, reason in record["reasons"].items() if reason is None]
    print(record["counts"])
    print(f"{wrong} wrong by verdict, {misses} misses by the model; no reason: {unexplained}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
