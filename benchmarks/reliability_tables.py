"""The counts and long runs of docs/reliability.md: out of the tests, and of benchmarks/results."""

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
    """What a record says, and when it was made; without one, nothing is claimed."""
    record = read(name)
    return f"{say(record)} ({made(record)})" if record else "not recorded yet"


# ---- counted in the tests


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
            f"{len(table.ALL)} wrong calls of every public function and "
            f"{len(test_arguments.CALLS)} of `gemm`, `transpose` and `probe`, with `out` "
            "compared byte by byte and a right call after each",
            "`tests/test_wrong_calls.py` (its table is `wrong_calls.py`), "
            "`tests/test_arguments.py`",
        ),
        (
            f"{len(on_gpu)} on arrays of a GPU: interfaces and DLPack tensors that lie about "
            "address, shape, strides, type and device; freed arrays; wrong devices and streams",
            "`tests/cuda/test_faults.py::test_wrong_calls`",
        ),
    ]
    return markdown(("promise", "test"), lines, 2)


# ---- long runs


def driver_faults() -> str:
    def say(record: Record) -> str:
        results = {result for each in record["calls"].values() for result in each}
        calls = sum(sum(each.values()) for each in record["calls"].values())
        return (
            f"{len(record['calls'])} operations × {len(results)} results: {grouped(calls)} failing "
            f"calls, each in a process of its own, {len(record['failed'])} not as promised"
        )

    return (
        f"`python validation/driver_faults.py`, on the fake driver: {run_of('driver-faults', say)}."
    )


LOST = 'each call on that GPU: `LaunchError` that says "lost", with the first failure'


def faults() -> str:
    """Of a GPU, in words: the outcomes are looked at, the times are the record's."""
    record = read("faults-h200")
    cases = record["cases"]

    def raised(case: str, what: str = "a kernel") -> str:
        told = cases[case][what]
        return f"`{told['raised']}`" if "raised" in told else "right" if told["right"] else "wrong"

    def late(case: str, what: str) -> str:
        return f"{raised(case, what)} {1e3 * cases[case][what]['seconds_late']:.1f} ms after"

    def after(case: str) -> str:
        told = cases[case]["afterwards"].values()
        return "right" if all(each.get("right") for each in told) else "not right"

    def unchanged(case: str) -> str:
        return "no array written" if cases[case]["its array"] else "an array written"

    product, fork = cases["ctrl_c_in_a_product"], cases["fork"]
    waits = product["afterwards"]["the next kernel"]["seconds"]
    lines = [
        (
            "another library holds the GPU's memory",
            raised("out_of_memory"),
            f"{raised('out_of_memory', 'once it is free')}, once it is free",
        ),
        (
            "a kernel traps, or leaves its arrays, in host memory",
            f"{raised('trap')}, {raised('illegal_address')}; {unchanged('trap')}",
            f"{LOST}; the emulator and a new process work",
        ),
        (
            "the same on arrays of the GPU, which are not waited for",
            f"returns ({raised('illegal_address_on_the_gpu')}); half a second later "
            f"{raised('illegal_address_on_the_gpu', 'half a second later')}: an earlier kernel "
            "failed",
            "as above",
        ),
        (
            "a kernel that takes too long, `timeout=0.25`",
            f"{raised('timeout')} after {cases['timeout']['a kernel']['seconds']:.4f} s, "
            f"{unchanged('timeout')}",
            "the GPU goes on until the kernel ends: the next call waits for it if it needs what "
            f"the kernel holds; {after('timeout')}",
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
            f"Ctrl-C in a product in blocks ({product['a product']['shape'][0]}³, the slowest row)",
            f"{late('ctrl_c_in_a_product', 'a product')} the signal, "
            f"{product['its part of out']:.0%} of `out` written",
            f"the GPU works off what was queued, here for {waits:.0f} s: a call that needs it "
            f"waits so long; {after('ctrl_c_in_a_product')}",
        ),
        (
            "fork before the first use, after it, and spawn",
            f"{raised('fork', 'before the first use')}; refused in "
            f"{1e3 * fork['after it']['GPU']['seconds']:.1f} ms, with what to do in place of it; "
            f"{raised('spawn', 'two processes')}",
            f"{after('fork')}, in parent and child (there on the emulator)",
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
            f"{grouped(record['calls'])} calls, right and wrong, than after "
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


RUNS = {  # of validation/sanitized.py
    "address": "the suite, AddressSanitizer and UBSan, Python's memory from malloc",
    "leaks": "`validation/leaks.py`, LeakSanitizer; reports: of leaks by the extension",
    "thread": "`validation/load.py`, ThreadSanitizer",
    "driver": "`tests/cuda/fake_threads.py`, ThreadSanitizer, on the fake driver's two GPUs",
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
    return markdown(("kind", "what runs", "what ran", "reports"), lines, 3) + where


def load() -> str:
    def say(record: Record) -> str:
        small, many = record["calls"][0], record["at_once"]
        kept = [each["in_use_mb"] for each in many.get("rounds", ())]
        memory = (
            f"; malloc holds {kept[0]:.1f} MB after a fifth of the time and {kept[-1]:.1f} at its "
            "end, the caches empty"
            if kept
            else ""
        )
        return (
            f"{grouped(small['count'])} small calls: {small['grown_mb']:.1f} MB more, "
            f"{small['us']:.1f} µs in the median, {small['us_first']:.1f} in the first twentieth "
            f"and {small['us_last']:.1f} in the last. {many['threads']} threads for "
            f"{grouped(many['seconds'])} seconds: {grouped(many['calls'])} calls, "
            f"{len(many['failed'])} wrong{memory}"
        )

    names = {
        "load-emu": "the emulator",
        "load-emu-free-threaded": "the same without a GIL (3.14t)",
        "load-cuda": "an H200",
    }
    lines = [
        (where, f"{say(record)} ({made(record)})" if (record := read(name)) else "not recorded yet")
        for name, where in names.items()
    ]
    return markdown(("`validation/load.py`", "what came of it"), lines, 2)


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
        "processes ended",
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
