"""How good is the hazard detector? Removes from every shipped kernel one thing that it needs.

    python benchmarks/mutation.py                 # every kernel; writes results/mutation.json
    python benchmarks/mutation.py --fast          # one image a variant

In the PTX of each image that the build made, each barrier, each cp.async wait and commit, each
branch or guard around memory accesses, and each part of a check goes in turn. The mutant runs on
the emulator over small, odd shapes. What is removed is

    reported    the detector finds a hazard
    endless     it never ends, in the branch at the end of a loop: nobody can take it for right
    harmless    no hazard, and the result is right for every shape
    unreported  no hazard, but a wrong result

A removal that is not reported needs a reason in mutation_reasons.py, and none may be unreported.
The kernels as they are must have no findings and right results.

    barrier, wait, commit   the order of accesses
    bounds                  whether an access happens: branches and guards around one
    value                   which value counts (beta == 0), and so whether C is read at all
    term, choice            parts of checks, and checks without a branch: mutation_terms.py
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import re
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import smemkern
from mutation_reasons import reason, text_of
from mutation_terms import removals
from rows import ROOT, parameter_sets, table
from smemkern import reference

# Odd, with every remainder of the vectors and of the unrolled loops; tiles with one row or column;
# a last row in each part of a tile, beside a last column that is not the tile's; aligned rows of
# which a tile has only a part; more tiles than stages; more than fits into shared memory.
SHAPES = {
    "gemm": [
        *[(67, 45, 31), (64, 64, 64), (5, 129, 7), (33, 17, 0)],
        *[(66, 46, 2), (65, 47, 29), (1, 1, 1), (8, 3, 18), (130, 132, 20), (70, 131, 3)],
        *[(90, 131, 21), (40, 130, 17), (128, 128, 20), (20, 19, 81)],
    ],
    "transpose": [
        *[(67, 45), (1, 129), (64, 64), (33, 130), (1, 1), (3, 2), (80, 31)],
        *[(84, 33), (31, 35), (23, 37), (26, 35), (64, 80), (80, 64), (128, 16), (16, 128)],
    ],
    "probe": [(1000,), (9001,), (5,), (65,), (60001,)],
}
# A kernel with a way of its own for whole tiles: aligned, and not; with edges that move inwards.
WHOLE_TILES = {"simt": [(256, 128, 36), (260, 132, 33)]}
# Kernels whose tiles are long: K that takes several.
LONG = {
    **{"mma_fp16": [(65, 64, 264), (65, 66, 263)], "mma_bf16": [(65, 64, 264), (65, 66, 263)]},
    "mma_tf32x3": [(65, 45, 50)],
}
# Run-time parameters with which a kernel does what it is there for.
RUNTIME = {"stride_read": {"stride": 3}}
# Kernels whose checks are not taken apart. simt's terms also choose which tile a block makes, and a
# tile that nobody makes is no hazard; those of the mma rows have not been looked at.
WHOLE_CHECKS = ("simt", "mma_tf32x3", "mma_fp16", "mma_bf16")
# Rows whose mutants have not been looked at; nor have those of rows from sm_90 on, where TMA's and
# wgmma's waits are other instructions.
NOT_YET = ("skinny", "skinny_mma", "sectors")
KINDS = ("barrier", "wait", "commit", "bounds", "value", "term", "choice")
OLD = 2.0  # what C holds in the calls that add to it
SECONDS = 20  # a mutant that loops for ever has been found out
RESULTS = ROOT / "benchmarks" / "results" / "mutation.json"


class Image(NamedTuple):
    op: str
    variant: str
    dtype: str
    params: dict[str, int]
    name: str


class Mutant(NamedTuple):
    image: Image
    kind: str  # one of KINDS
    line: int  # of the PTX
    text: str
    source: str  # file:line of the CUDA source, as .loc says
    instead: str  # what stands there now: nothing, or the rest of it

    @property
    def name(self) -> str:
        return f"{self.image.name}:{self.line}"


# ---- images and mutants


def images(fast: bool) -> list[Image]:
    from buildtools import registry

    found = []
    for row in smemkern.variants():
        if row.min_sm >= 90 or row.name in NOT_YET:
            continue
        one = table()[row.op, row.name]
        for params in parameter_sets(row)[: 1 if fast else None]:
            for dtype in row.dtypes[: 1 if fast else None]:
                values = {**one.prebuilt[0], **params}
                runtime = {p.name: p.default for p in one.params if p.runtime}
                name = registry.image_name(one, dtype, {**values, **runtime})
                found.append(Image(row.op, row.name, dtype, params, name))
    return found


def read_ptx(image: Image) -> str:
    return Path(smemkern._core.config()["images"], f"{image.name}.ptx").read_text()


ACCESS = re.compile(r"\b(ld|st|atom|red)\.(global|shared|volatile)|cp\.async\.c[ag]")


def chooses_value(source: str) -> bool:
    """Whether the branch stands where beta == 0 decides if C counts: not where C lies."""
    return "beta" in text_of(source)


def sources(lines: list[str]) -> list[str]:
    """The file:line of each line of the PTX, as the last .loc says."""
    files, source, found = {}, "?", []
    for line in lines:
        if m := re.match(r'\s*\.file\s+(\d+)\s+"([^"]+)"', line):
            files[m[1]] = m[2]
    for line in lines:
        if (m := re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", line)) and m[2] != "0":
            source = f"{files.get(m[1], '?')}:{m[2]}"
        found.append(source)
    return found


def launched(image: Image, lines: list[str]) -> range:
    """The lines of the kernel that the calls launch; others are for other orders of operands."""
    name = f".entry {image.op}_{image.variant}("
    first = next(n for n, line in enumerate(lines) if name in line)
    return range(first, lines.index("}", first))


def mutants(image: Image) -> list[Mutant]:
    """Everything of the image's kernel that can be removed."""
    lines = read_ptx(image).splitlines()
    within = launched(image, lines)
    labels = {m[1]: n for n, line in enumerate(lines) if (m := re.match(r"(\$\w+):", line))}
    source, found = sources(lines), []
    for n, line in enumerate(lines):
        text, kind, instead = line.strip(), None, ""
        if re.match(r"bar(rier)?\.", text):
            kind = "barrier"
        elif re.match(r"cp\.async\.wait", text):
            kind = "wait"
        elif re.match(r"cp\.async\.commit", text):
            kind = "commit"
        elif m := re.match(r"@!?%p\d+ bra\s+(\$\w+);", text):
            if any(ACCESS.search(skipped) for skipped in lines[n : labels[m[1]]]):
                kind = "value" if chooses_value(source[n]) else "bounds"
        elif text.startswith("@") and ACCESS.search(text):
            kind, instead = "bounds", re.sub(r"^@!?%p\d+\s+", "", text)
        if kind and n in within:
            found.append(Mutant(image, kind, n + 1, text, source[n], instead))
    for n, kind, instead in () if image.variant in WHOLE_CHECKS else removals(lines):
        if n not in within:
            continue
        found.append(Mutant(image, kind, n + 1, lines[n].strip(), source[n], instead))
    return found


def mutate(mutant: Mutant) -> str:
    lines = read_ptx(mutant.image).splitlines()
    lines[mutant.line - 1] = mutant.instead
    return "\n".join(lines) + "\n"


# ---- running one


def arguments(image: Image, shape: tuple[int, ...], rng: np.random.Generator) -> list[np.ndarray]:
    if image.op == "gemm":
        m, n, k = shape
        return [rng.standard_normal(s).astype(image.dtype) for s in ((m, k), (k, n))]
    if image.op == "transpose":
        size = int(image.dtype.removeprefix("b")) // 8
        bits = rng.integers(0, 256, (*shape, size), dtype="u1")
        return [bits.view("c16" if size == 16 else f"u{size}")[..., 0]]
    return [rng.standard_normal(shape).astype("f4")]


def is_right(
    image: Image, given: list[np.ndarray], result: np.ndarray, keywords: dict[str, Any]
) -> bool:
    if image.op == "gemm":
        a, b = (x.astype("f8") for x in given)
        old = keywords.get("beta", 0) * OLD
        eps = float(ml_dtypes.finfo(image.dtype).eps)
        allowed = (a.shape[1] + 4) * eps * (np.abs(a) @ np.abs(b) + old)
        return bool(np.all(np.abs(result - (a @ b + old)) <= allowed))
    if image.op == "transpose":
        return result.tobytes() == np.ascontiguousarray(given[0].T).tobytes()
    wanted = reference.probe(*given, **keywords)
    return np.array_equal(result, wanted, equal_nan=True)


def takes(op: str, given: list[np.ndarray], keywords: dict[str, Any]) -> bool:
    """False for a probe that reads more elements than there are."""
    try:
        smemkern._core.plan(op, tuple(given), keywords)
    except ValueError:
        return False
    return True


def calls(image: Image):
    """(arguments, keywords) of each call that a mutant has to get right."""
    rng = np.random.default_rng(3)
    for shape in (
        *SHAPES[image.op],
        *WHOLE_TILES.get(image.variant, ()),
        *LONG.get(image.variant, ()),
    ):
        given, keywords = arguments(image, shape, rng), {"variant": image.variant, **image.params}
        if takes(image.op, given, keywords):
            yield given, keywords
    for m, n, k in SHAPES[image.op][:2] if image.op == "gemm" else []:
        out = np.full((m, n), OLD, image.dtype)
        keywords = {"variant": image.variant, **image.params, "beta": 0.5, "out": out}
        yield arguments(image, (m, n, k), rng), keywords
    if image.variant in RUNTIME:
        shape = SHAPES[image.op][-1]
        keywords = {"variant": image.variant, **image.params, **RUNTIME[image.variant]}
        yield arguments(image, shape, rng), keywords


def outcome(mutant: Mutant | Image) -> dict[str, Any]:
    """What becomes of it, up to the first call with a finding.

    In a process of its own: devices keep images by their name.
    """
    image = mutant.image if isinstance(mutant, Mutant) else mutant

    def too_long(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    kinds: Counter[str] = Counter()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(mutant, Mutant):
            Path(folder, f"{image.name}.ptx").write_text(mutate(mutant))
            smemkern._core.configure(images=folder, kernels=smemkern._core.config()["kernels"])
        for given, keywords in calls(image):
            try:
                trace = smemkern.trace(image.op, *given, **keywords)
            except (TimeoutError, smemkern.LaunchError) as error:
                kinds[type(error).__name__] += 1
                break
            if trace.hazards:
                kinds.update(hazard.kind for hazard in trace.hazards)
                break
            wrong += not is_right(image, given, trace.result, keywords)
    return {"verdict": verdict(kinds, wrong), "kinds": dict(kinds), "wrong": wrong}


def verdict(kinds: Counter[str], wrong: int) -> str:
    if kinds.keys() == {"TimeoutError"}:
        return "endless"
    return "reported" if kinds else "unreported" if wrong else "harmless"


# ---- all of them


def run(every: list[Image], workers: int, kinds: list[str], each: int | None) -> dict[str, Any]:
    removed = [m for i in every for m in [m for m in mutants(i) if m.kind in kinds][:each]]
    todo: list[Mutant | Image] = [*every, *removed]
    context = multiprocessing.get_context("fork")
    with context.Pool(workers, maxtasksperchild=1) as pool:
        results = pool.map(outcome, todo, chunksize=1)
    clean = [r for what, r in zip(todo, results, strict=True) if isinstance(what, Image)]
    lines = [
        {
            "image": what.image.name,
            "kind": what.kind,
            "ptx_line": what.line,
            "text": what.text,
            **({"instead": what.instead} if what.instead else {}),
            "source": what.source,
            **result,
            **({} if result["kinds"] else {"reason": reason(what.kind, what.text, what.source)}),
        }
        for what, result in zip(todo, results, strict=True)
        if isinstance(what, Mutant)
    ]
    figures = {
        kind: dict(Counter(line["verdict"] for line in lines if line["kind"] == kind))
        for kind in kinds
    }
    return {
        "date": datetime.date.today().isoformat(),
        "images": len(every),
        "shapes": SHAPES,
        "unmutated": {
            "runs": sum(len(list(calls(image))) for image in every),
            "with_findings": sum(bool(r["kinds"]) for r in clean),
            "wrong": sum(r["wrong"] for r in clean),
        },
        "figures": figures,
        "mutants": lines,
    }


def accounted_for(line: dict[str, Any]) -> bool:
    return line["verdict"] in ("reported", "endless") or (
        line["verdict"] == "harmless" and line["reason"]
    )


def write(record: dict[str, Any], path: Path) -> None:
    """JSON with a line for each mutant."""
    lines = ",\n".join(f"  {json.dumps(line)}" for line in record["mutants"])
    head = json.dumps({**record, "mutants": []}, indent=1)
    path.write_text(head.replace('"mutants": []', f'"mutants": [\n{lines}\n ]') + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="one image a variant")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--each", type=int, help="mutants of an image, at most")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    every, kinds = images(options.fast), options.kinds.split(",")
    record = run(every, options.workers, kinds, options.each)
    print(json.dumps({k: record[k] for k in ("images", "unmutated", "figures")}, indent=1))
    for line in record["mutants"]:
        if not accounted_for(line):
            print(line["image"], line["kind"], line["ptx_line"], line["source"], line["text"])
    options.results.parent.mkdir(parents=True, exist_ok=True)
    write(record, options.results)
    clean = not (record["unmutated"]["with_findings"] or record["unmutated"]["wrong"])
    return 0 if clean and all(map(accounted_for, record["mutants"])) else 1


if __name__ == "__main__":
    sys.exit(main())
