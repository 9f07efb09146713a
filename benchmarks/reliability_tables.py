"""The generated parts of docs/reliability.md: counts of the tests, and records of long runs."""

from __future__ import annotations

import re
import sys

import records
from cells import Record, markdown
from records import ROOT, read

TESTS = ROOT / "tests"
SPACE = "\N{NO-BREAK SPACE}"


def grouped(n: float) -> str:
    return f"{n:_.0f}".replace("_", SPACE)


def made(record: Record) -> str:
    return f"{record['date']}, commit {record['commit'] or 'unknown'}"


def run_of(name: str, say) -> str:
    """`say` of the record, with its date and commit; "not recorded yet" if there is none."""
    record = read(name)
    return f"{say(record)} ({made(record)})" if record else "not recorded yet"


# ---- counts of the tests


def wrong_calls() -> str:
    sys.path.append(str(TESTS))
    try:
        import test_arguments
        import wrong_calls as table
    finally:
        sys.path.remove(str(TESTS))
    on_gpu = re.findall(r"^row\(", (TESTS / "cuda" / "fake_wrong_calls.py").read_text(), re.M)
    lines = [
        (
            f"{len(table.ALL)} invalid calls of every public function and "
            f"{len(test_arguments.CALLS)} of `gemm`, `transpose` and `probe`: `out` keeps every "
            "byte, and a valid call after each is right",
            "`tests/test_wrong_calls.py` (its table is `wrong_calls.py`), "
            "`tests/test_arguments.py`",
        ),
        (
            f"{len(on_gpu)} on arrays of a GPU: interfaces and DLPack tensors with a false "
            "address, shape, strides, type or device; freed arrays; wrong devices and streams",
            "`tests/cuda/test_faults.py::test_wrong_calls`",
        ),
    ]
    return markdown(("guarantee", "test"), lines, 2)


# ---- long runs


def driver_faults() -> str:
    def say(record: Record) -> str:
        results = {result for each in record["calls"].values() for result in each}
        calls = sum(sum(each.values()) for each in record["calls"].values())
        return (
            f"{len(record['calls'])} operations × {len(results)} results: {grouped(calls)} failing "
            f"calls, each in its own process, of which {len(record['failed'])} broke the guarantees"
        )

    return (
        f"`python validation/driver_faults.py`, on the fake driver: {run_of('driver-faults', say)}."
    )


LOST = 'each call on that GPU: `LaunchError` with "lost" and the first failure'


def faults() -> str:
    """The table of GPU faults: sentences with the outcomes and times of the record."""
    record = read("faults-h200")
    cases = record["cases"]

    def raised(case: str, what: str = "a kernel") -> str:
        found = cases[case][what]
        if "raised" in found:
            return f"`{found['raised']}`"
        return "right" if found["right"] else "wrong"

    def late(case: str, what: str) -> str:
        return f"{raised(case, what)} {1e3 * cases[case][what]['seconds_late']:.1f} ms after"

    def after(case: str) -> str:
        found = cases[case]["afterwards"].values()
        return "results right" if all(each.get("right") for each in found) else "results wrong"

    def unchanged(case: str) -> str:
        return "no array written" if cases[case]["its array"] else "an array was written"

    product, fork = cases["ctrl_c_in_a_product"], cases["fork"]
    waits = product["afterwards"]["the next kernel"]["seconds"]
    lines = [
        (
            "another library occupies the GPU's memory",
            raised("out_of_memory"),
            f"{raised('out_of_memory', 'once it is free')}, once it is free",
        ),
        (
            "a kernel on host arrays traps or accesses memory outside its arrays",
            f"{raised('trap')}, {raised('illegal_address')}; {unchanged('trap')}",
            f"{LOST}; the emulator works, and so does a new process",
        ),
        (
            "the same on GPU arrays, where calls return before the kernel ends",
            f"returns ({raised('illegal_address_on_the_gpu')}); half a second later "
            f"{raised('illegal_address_on_the_gpu', 'half a second later')}: an earlier kernel "
            "failed",
            "as above",
        ),
        (
            "a kernel exceeds `timeout=0.25`",
            f"{raised('timeout')} after {cases['timeout']['a kernel']['seconds']:.4f} s, "
            f"{unchanged('timeout')}",
            "the GPU continues until the kernel ends. The next call waits for that if it needs "
            f"memory that the kernel uses; {after('timeout')}",
        ),
        (
            "the process ends while such a kernel runs",
            raised("exit_while_it_runs"),
            f"ends at once, status {cases['exit_while_it_runs']['status']}",
        ),
        (
            "Ctrl-C in a kernel",
            f"{late('ctrl_c_in_a_kernel', 'a kernel')} the signal, "
            f"{unchanged('ctrl_c_in_a_kernel')}",
            after("ctrl_c_in_a_kernel"),
        ),
        (
            f"Ctrl-C in a product that is computed in blocks "
            f"({product['a product']['shape'][0]}³, the slowest variant)",
            f"{late('ctrl_c_in_a_product', 'a product')} the signal, "
            f"{product['its part of out']:.0%} of `out` written",
            f"the GPU finishes the queued work, here in {waits:.0f} s, and later calls on it wait "
            f"for that; {after('ctrl_c_in_a_product')}",
        ),
        (
            "fork before the first use, after it, and spawn",
            f"{raised('fork', 'before the first use')}; refused in "
            f"{1e3 * fork['after it']['GPU']['seconds']:.1f} ms, with a message that says what to "
            f"do; {raised('spawn', 'two processes')}",
            f"{after('fork')}, in the parent and in the child (there on the emulator)",
        ),
    ]
    commits = " and ".join(sorted({case["commit"] for case in cases.values()}))
    return (
        f"{record['gpu']}, driver {record['driver']}, {record['date']}, commits {commits}.\n\n"
        + markdown(("fault", "the call", "afterwards"), lines, 3)
    )


def leaks() -> str:
    def say(record: Record) -> str:
        return (
            f"{grouped(record['end'] - record['begin'])} bytes more in use after "
            f"{grouped(record['calls'])} calls, valid and invalid, than after "
            f"{grouped(record['calls'] // 10)}; Python {record['python']}"
        )

    return f"`python validation/leaks.py --calls 40000`: {run_of('leaks', say)}."


def fuzz() -> str:
    record = read("fuzz")
    if not record:
        return "Not yet run."
    names = ("executions", "edges", "crashes", "timeouts")
    lines = [
        (
            *(f"`{row['target']}`", f"{row['seed']}", *(grouped(row[name]) for name in names)),
            *(grouped(row["seconds"] * row["workers"]), row["date"], row["commit"] or "unknown"),
        )
        for row in record["rows"]
    ]
    where = {f"{row['compiler']}, {row['cpu']}" for row in record["rows"]}
    total = sum(row["executions"] for row in record["rows"])
    header = ("target", "seed", *names, "worker seconds", "date", "commit")
    return (
        f"{markdown(header, lines, 1)}\n\n{grouped(total)} executions in all. "
        f"{'; '.join(sorted(where))}; libFuzzer."
    )


# What each kind of validation/sanitized.py runs.
RUNS = {
    "address": "the test suite under AddressSanitizer and UBSan; Python allocates with malloc",
    "leaks": "`validation/leaks.py` under LeakSanitizer; only leaks of the extension are reports",
    "thread": "`validation/load.py` under ThreadSanitizer",
    "driver": "`tests/cuda/fake_threads.py` under ThreadSanitizer, on two GPUs of the fake driver",
}


def sanitizers() -> str:
    record = read("sanitizers")
    rows = {row["kind"]: row for row in record["rows"]} if record else {}
    lines = []
    for kind, what in RUNS.items():
        row = rows.get(kind)
        ran = f"{row['said']}; Python {row['python']}, {made(row)}" if row else "not recorded yet"
        lines.append((f"`{kind}`", what, ran, f"{row['reports']}" if row else ""))
    compilers = sorted({row["compiler"] for row in rows.values()})
    cores = sorted({f"{row['cpu']}, {row['cores']} cores" for row in rows.values()})
    where = f"\n\n{'; '.join([*compilers, *cores])}; no GPU." if rows else ""
    return markdown(("kind", "what runs", "recorded run", "reports"), lines, 3) + where


def load() -> str:
    def say(record: Record) -> str:
        small, many = record["calls"][0], record["at_once"]
        kept = [each["in_use_mb"] for each in many.get("rounds", ())]
        memory = (
            f"; memory in use by malloc, with empty caches: {kept[0]:.1f} MB after a fifth of "
            f"the time, {kept[-1]:.1f} MB at the end"
            if kept
            else ""
        )
        return (
            f"{grouped(small['count'])} small calls: memory grows by {small['grown_mb']:.1f} MB; "
            f"median {small['us']:.1f} µs per call, {small['us_first']:.1f} in the first twentieth "
            f"and {small['us_last']:.1f} in the last. {many['threads']} threads for "
            f"{grouped(many['seconds'])} seconds: {grouped(many['calls'])} calls, "
            f"{len(many['failed'])} wrong{memory}"
        )

    names = {
        "load-emu": "the emulator",
        "load-emu-free-threaded": "the emulator, without a GIL (3.14t)",
        "load-cuda": "an H200",
    }
    lines = [
        (where, f"{say(record)} ({made(record)})" if (record := read(name)) else "not recorded yet")
        for name, where in names.items()
    ]
    return markdown(("`validation/load.py` on", "result"), lines, 2)


def pythons() -> str:
    record = read("pythons")
    if not record:
        return "Not yet run."
    lines = []
    for name, row in sorted(
        record.items(), key=lambda item: [*map(int, item[0].rstrip("t").split("."))]
    ):
        suite, ended = row["suite"], row["shutdown"]
        well = ended["statuses"].get("0", 0)
        ends = f"{well} of {ended['runs']} with status 0"
        counts = f"{suite['passed']} passed, {suite['failed']} failed"
        lines.append((name, row["version"], row["numpy"], counts, ends, row["date"], row["commit"]))
    header = (
        "Python",
        "version",
        "NumPy",
        "part of the suite",
        "exit of processes",
        "date",
        "commit",
    )
    return markdown(header, lines, 3)


def parts() -> dict[str, str]:
    return {
        "wrong calls": wrong_calls(),
        "driver faults": driver_faults(),
        "faults": faults(),
        "leaks": leaks(),
        "fuzz": fuzz(),
        "sanitizers": sanitizers(),
        "pythons": pythons(),
        "load": load(),
    }


if __name__ == "__main__":
    print(records.RESULTS, *parts().values(), sep="\n\n")
