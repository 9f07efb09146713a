"""How good is the hazard detector? Removes from every shipped kernel one thing that it needs.

    python validation/mutation.py                 # every kernel; writes results/mutation.json.xz
    python validation/mutation.py --fast          # one image a variant
    python validation/mutation.py --only simt tma # the others' mutants stay as they are in the file

In the PTX of each image that the build made, everything that orders accesses, each branch or guard
around memory accesses, and each part of a check goes in turn. The mutant runs on the emulator over
small, odd shapes. What is removed is

    reported    the detector finds a hazard
    noted       it has a note only (trace.benign), and the result is right for every shape
    endless     it never ends, in the branch at the end of a loop: nobody can take it for right
    harmless    no hazard, and the result is right for every shape
    unseen      no hazard, where the emulator cannot show the mistake, or where there is none, only
                another number
    unreported  no hazard, but a wrong result

A removal that is not reported needs a reason in removals/reasons.py, and none may be unreported.
The kernels as they are must have no findings and right results.

    barrier, ... proxy   the order of accesses: removals/order.py
    bounds               whether an access happens: branches and guards around one
    value                which value counts (beta == 0), and so whether C is read at all
    term, choice         parts of checks, and checks without a branch: removals/terms.py

Large kernels are the same check many times, unrolled. Of those rows one image is taken apart, and
of removals there that stand at one line and read alike the first, the middle and the last.
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

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import records
import smemkern
from removals import order
from removals.calls import ORDER_ONLY, SHAPES, Image, calls, is_right, launches
from removals.reasons import UNSEEN, reason, text_of
from removals.terms import removals
from rows import parameter_sets, table

KINDS = (*order.KINDS, "bounds", "value", "term", "choice")
# Of ORDER_ONLY everything that orders accesses goes, in every kernel that the calls launch. From
# sm_90 on checks are TMA's, which has no instructions for them; skinny's reads are moved inside the
# matrix, and its checks, as sliced_k's, small_k's and direct's, say which numbers are added up;
# sector_aligned has a way for each kind of edge, each unrolled.
# Rows of which only the kernels for rows are, beside their order: those for columns differ in which
# way copies go.
ROWS_ONLY = ("mma_tf32x3", "mma_tf32", "mma_fp16", "mma_bf16")
SAMPLED = ("simt", *ROWS_ONLY, *ORDER_ONLY)
EACH_TYPE = ("small_k", "direct")  # of which each type's image is taken apart
EACH_SET = ("direct",)  # and each set's: one has a barrier, one does not
TWINS = ("bf16", "mma_bf16")  # fp16's and mma_fp16's source for another type
SECONDS = 40  # a mutant that loops for ever has been found out
RESULTS = records.RESULTS / "mutation.json.xz"

Record = dict[str, Any]


class Mutant(NamedTuple):
    image: Image
    kind: str  # one of KINDS
    line: int  # of the PTX
    text: str
    source: str  # file:line of the CUDA source, as .loc says
    entry: str  # the kernel
    instead: str  # what stands there now: nothing, or the rest of it

    @property
    def name(self) -> str:
        return f"{self.image.name}:{self.line}"


# ---- images and mutants


def images(fast: bool) -> list[Image]:
    """All; of SAMPLED rows, and if need be of every row, one."""
    from buildtools import registry

    found = []
    for row in smemkern.variants():
        if row.name in TWINS:
            continue
        one = table()[row.op, row.name]
        some = 1 if fast or row.name in SAMPLED else None
        with_ptx = parameter_sets(row)[: len(one.prebuilt) - len(one.tuned)]
        for params in with_ptx[: None if row.name in EACH_SET and not fast else some]:
            for dtype in row.dtypes[: None if row.name in EACH_TYPE and not fast else some]:
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


def kernels(lines: list[str]) -> list[str]:
    """The kernel that each line of the PTX belongs to."""
    entry, found = "", []
    for line in lines:
        if m := re.search(r"\.entry (\w+)\(", line):
            entry = m[1]
        found.append(entry)
    return found


def mutants(image: Image) -> list[Mutant]:
    """Everything that can be removed of the kernels that the calls launch."""
    lines = read_ptx(image).splitlines()
    source, kernel = sources(lines), kernels(lines)
    launched = {entry for call in calls(image) for entry in launches(image, *call)}
    labels = {m[1]: n for n, line in enumerate(lines) if (m := re.match(r"(\$\w+):", line))}
    found = []

    def add(n: int, kind: str, instead: str = "") -> None:
        text = lines[n].strip()
        found.append(Mutant(image, kind, n + 1, text, source[n], kernel[n], instead))

    for n, line in enumerate(lines):
        if kernel[n] not in launched:
            continue
        text = line.strip()
        for kind, instead in order.removals(text):
            add(n, kind, instead)
        if image.variant in ORDER_ONLY or not has_checks(image, kernel[n]):
            continue
        if m := re.match(r"@!?%p\d+ bra\s+(\$\w+);", text):
            if any(ACCESS.search(skipped) for skipped in lines[n : labels[m[1]]]):
                add(n, "value" if chooses_value(source[n]) else "bounds")
        elif text.startswith("@") and ACCESS.search(text):
            add(n, "bounds", re.sub(r"^@!?%?\w+\s+", "", text))
    for n, kind, instead in () if image.variant in ORDER_ONLY else removals(lines):
        if kernel[n] in launched and has_checks(image, kernel[n]):
            add(n, kind, instead)
    return sampled(found) if image.variant in SAMPLED else found


def has_checks(image: Image, kernel: str) -> bool:
    ends = ("", "_reduce") if image.variant in ROWS_ONLY else (kernel.removeprefix(own(image)),)
    return kernel in [own(image) + end for end in ends]


def own(image: Image) -> str:
    return f"{image.op}_{image.variant}"


def sampled(every: list[Mutant]) -> list[Mutant]:
    """The first, the middle and the last of those that are the same but for their registers: of
    checks in all of the image's kernels, of what orders accesses in each."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for n, m in enumerate(every):
        text, instead = (re.sub(r"[%$]\w+", "%", t) for t in (m.text, m.instead))
        where = m.entry if m.kind in order.KINDS else ""
        alike.setdefault((m.kind, where, m.source, text, instead), []).append(n)
    chosen = {n for same in alike.values() for n in (same[0], same[len(same) // 2], same[-1])}
    return [every[n] for n in sorted(chosen)]


def mutate(mutant: Mutant) -> str:
    lines = read_ptx(mutant.image).splitlines()
    lines[mutant.line - 1] = mutant.instead
    return "\n".join(lines) + "\n"


# ---- running one


def outcome(mutant: Mutant | Image) -> Record:
    """What becomes of it, up to the first call with a finding.

    In a process of its own: devices keep images by their name.
    """
    image = mutant.image if isinstance(mutant, Mutant) else mutant

    def too_long(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, too_long)
    kinds: Counter[str] = Counter()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(mutant, Mutant):
            Path(folder, f"{image.name}.ptx").write_text(mutate(mutant))
            smemkern._core.configure(images=folder, kernels=smemkern._core.config()["kernels"])
        for given, keywords in calls(image):
            if isinstance(mutant, Mutant) and mutant.entry not in launches(image, given, keywords):
                continue
            signal.alarm(SECONDS)
            try:
                trace = smemkern.trace(image.op, *given, **keywords)
            except (TimeoutError, smemkern.LaunchError) as error:
                kinds[type(error).__name__] += 1
                break
            finally:
                signal.alarm(0)
            kinds.update(row.kind for row in (*trace.hazards, *trace.benign))
            if trace.hazards:
                break
            wrong += not is_right(image, given, trace.result, keywords)
    return {"verdict": verdict(kinds, wrong), "kinds": dict(kinds), "wrong": wrong}


def verdict(kinds: Counter[str], wrong: int) -> str:
    if kinds.keys() == {"TimeoutError"}:
        return "endless"
    if kinds.keys() - set(smemkern._core.benign_kinds):
        return "reported"
    return "unreported" if wrong else "noted" if kinds else "harmless"


# ---- all of them


def run(
    every: list[Image], workers: int, kinds: list[str], each: int | None, clean_too: bool
) -> tuple[dict[str, Record], list[Record]]:
    """Of each image, what it is like unmutated, and a line for each mutant."""
    removed = [m for i in every for m in [m for m in mutants(i) if m.kind in kinds][:each]]
    todo: list[Mutant | Image] = [*(every if clean_too else ()), *removed]
    context = multiprocessing.get_context("fork")
    with context.Pool(workers, maxtasksperchild=1) as pool:
        results = pool.map(outcome, todo, chunksize=1)
    clean, lines = {}, []
    for what, result in zip(todo, results, strict=True):
        if isinstance(what, Image):
            clean[what.name] = {
                "runs": len(list(calls(what))),
                "findings": sum(result["kinds"].values()),
                "wrong": result["wrong"],
            }
            continue
        lines.append(
            {
                "image": what.image.name,
                "kind": what.kind,
                "ptx_line": what.line,
                "text": what.text,
                **({"instead": what.instead} if what.instead else {}),
                "source": what.source,
                **result,
            }
        )
    return clean, lines


def record_of(every: list[Image], clean: dict[str, Record], lines: list[Record]) -> Record:
    place = {image.name: n for n, image in enumerate(every)}
    lines.sort(key=lambda line: (place[line["image"]], line["ptx_line"]))
    for line in lines:
        if not line["kinds"]:
            row = line["image"].split("-")[0].split("_", 1)[1]
            # A row that was not run again keeps its reason if its source has changed since.
            before = line.get("reason", "")
            line["reason"] = reason(row, line["kind"], line["text"], line["source"]) or before
            line["verdict"] = verdict(Counter(), line["wrong"])
            if line["reason"] in UNSEEN:
                line["verdict"] = "unseen"
    kinds = [kind for kind in KINDS if any(line["kind"] == kind for line in lines)]
    return {
        "date": datetime.date.today().isoformat(),
        "images": len(every),
        "shapes": SHAPES,
        "unmutated": {name: clean[name] for name in place if name in clean},
        "figures": {
            kind: dict(Counter(line["verdict"] for line in lines if line["kind"] == kind))
            for kind in kinds
        },
        "mutants": lines,
    }


def accounted_for(line: Record) -> bool:
    return line["verdict"] in ("reported", "noted", "endless") or (
        line["verdict"] in ("harmless", "unseen") and line["reason"]
    )


def write(record: Record, path: Path) -> None:
    """JSON with a line for each image and each mutant."""
    clean = ",\n".join(f'  "{k}": {json.dumps(v)}' for k, v in record["unmutated"].items())
    lines = ",\n".join(f"  {json.dumps(line)}" for line in record["mutants"])
    text = json.dumps({**record, "unmutated": {}, "mutants": []}, indent=1)
    text = text.replace('"unmutated": {}', f'"unmutated": {{\n{clean}\n }}')
    records.save(path, text.replace('"mutants": []', f'"mutants": [\n{lines}\n ]') + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="one image a variant")
    parser.add_argument(
        "--only", nargs="*", metavar="ROW", help="rows to take apart: tma, gemm_tma"
    )
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--each", type=int, help="mutants of an image, at most")
    parser.add_argument("--only-mutants", action="store_true", help="not the kernels as they are")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    every, kinds = images(options.fast), options.kinds.split(",")
    again, clean, lines, clean_too = every, {}, [], not options.only_mutants
    if options.only is not None:
        again = [i for i in every if {i.variant, own(i)} & set(options.only)]
    if options.only is not None and records.stored(options.results):
        old = records.load(options.results)
        kept = {i.name for i in every} - {i.name for i in again}
        clean = {n: one for n, one in old["unmutated"].items() if n in kept or not clean_too}
        lines = [line for line in old["mutants"] if line["image"] in kept]
    new_clean, new_lines = run(again, options.workers, kinds, options.each, clean_too)
    record = record_of(every, clean | new_clean, lines + new_lines)
    print(json.dumps({k: record[k] for k in ("images", "figures")}, indent=1))
    for line in record["mutants"]:
        if not accounted_for(line):
            print(line["image"], line["kind"], line["ptx_line"], line["source"], line["text"])
    write(record, options.results)
    sound = not any(one["findings"] or one["wrong"] for one in record["unmutated"].values())
    return 0 if sound and all(map(accounted_for, record["mutants"])) else 1


if __name__ == "__main__":
    sys.exit(main())
