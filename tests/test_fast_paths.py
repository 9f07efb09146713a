"""What traces work out for many lanes at once, or only once, against the rules themselves.

Costs of requests are kept by pattern: here patterns come again at other bases, and are compared
with the models of banks and coalescing, which keep nothing. Races are looked for in rows and
scattered lanes at once: here random programs are compared with a few lines that define a race.
"""

import numpy as np
import pytest

import smemkern

LANES, WORDS = 32, 2048
HEADER = """.version 8.0
.target sm_80
.address_size 64
"""


def table_kernel(body, shared_bytes=4 * WORDS):
    """Of .u64 table, each thread's words at %d0 ...; %r1: the thread, %r3: the shared array."""
    return f"""{HEADER}
.visible .entry k(.param .u64 table, .param .u64 memory)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<12>;
    .reg .b64 %d<6>;
    .shared .align 16 .b8 tile[{shared_bytes}];
    ld.param.u64 %d0, [table];
    ld.param.u64 %d3, [memory];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r0, %r2, %r1;
    mad.wide.u32 %d0, %r4, 4, %d0;
{body}
    ret;
}}
"""


def drawn_patterns(rng, width):
    """Word offsets of 32 lanes, -1 where a lane does not run."""
    step = width // 4
    lane = np.arange(LANES)
    kinds = [
        lane * step,
        np.zeros(LANES, int),
        lane[::-1] * step,
        lane * 33 * step,
        lane * 32 * step,
        (lane // 4) * step,
        (lane ^ rng.integers(32)) * step,
        rng.permutation(LANES) * step,
        rng.integers(0, 64, LANES) * step,
        rng.integers(0, 8, LANES) * step,
    ]
    for words in kinds:
        for mask in (np.ones(LANES, bool), rng.random(LANES) < 0.7):
            mask[rng.integers(LANES)] = True
            base = int(min(words)) % step
            for shift in rng.integers(0, 32, 3) * step:
                yield np.where(mask, (words + shift - base) % (WORDS - step) // step * step, -1)


@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize("op", ["load", "store"])
def test_costs_by_pattern(rng, op, width):
    patterns = list(drawn_patterns(rng, width))
    patterns = [patterns[k] for k in rng.permutation(2 * [*range(len(patterns))])]
    vector = {4: "", 8: ".v2", 16: ".v4"}[width]
    registers = {4: "%r8", 8: "{%r8, %r9}", 16: "{%r8, %r9, %r10, %r11}"}[width]

    def access(space, at):
        place = f"[{at}]"
        operands = f"{registers}, {place}" if op == "load" else f"{place}, {registers}"
        return f"@%p0 {'ld' if op == 'load' else 'st'}.{space}{vector}.b32 {operands};"

    body = f"""
    ld.global.s32 %r5, [%d0];
    setp.ge.s32 %p0, %r5, 0;
    shl.b32 %r5, %r5, 2;
    add.u32 %r6, %r3, %r5;
    cvt.s64.s32 %d1, %r5;
    add.s64 %d3, %d3, %d1;
    {access("shared", "%r6")}
    {access("global", "%d3")}"""
    kernel = smemkern.Kernel(table_kernel(body), "k")
    table = np.array(patterns, np.int32)
    t = smemkern.trace(kernel, len(patterns), LANES, table, np.zeros(WORDS, "u4"), hazards=False)
    active = table >= 0
    byte = np.where(active, 4 * table.astype(np.int64), 0).astype(np.uint64)
    wanted = [
        smemkern.banks.wavefronts(a, width=width, op=op, active=m)
        for a, m in zip(byte, active, strict=True)
    ]
    [shared] = t.shared
    assert (shared.requests, shared.wavefronts) == (len(patterns), sum(wanted))
    assert shared.worst == max(wanted)
    sectors = sum(
        smemkern.coalescing.sectors(a[m], width=width) for a, m in zip(byte, active, strict=True)
    )
    accesses = [r for r in t.global_ if r.op == op and r.width == width]
    row = max(accesses, key=lambda r: r.line)  # the table is read above it
    assert (row.requests, row.sectors) == (len(patterns), sectors)


# ---- races ----

THREADS = 64


PLAIN = ("ld", "ld", "ld", "ld.volatile", "st", "st.volatile")
VOLATILE = ("ld", "ld.volatile", "ld.volatile", "ld.volatile", "st.volatile")


def drawn_step(rng, whats, barriers):
    """(what, words a lane, first words by thread or -1) or None: a barrier."""
    if rng.random() < barriers:
        return None
    what = str(rng.choice(whats))
    n = int(rng.choice([1, 2, 4])) if whats is PLAIN else 1
    t = np.arange(THREADS)
    base = 256 * int(rng.integers(2))
    words = [
        base + t * n,
        base + (t ^ 1) * n,
        base + (t % 32) * n,
        np.full(THREADS, base),
        base + (t // 32) * n,
        (t * 5 * n) % 512,
        base + rng.permutation(THREADS) * n,
        512 + rng.integers(0, 64, THREADS) * n,
    ][rng.choice(8, p=[0.3, 0.05, 0.1, 0.1, 0.1, 0.15, 0.1, 0.1])]
    mask = [
        np.ones(THREADS, bool),
        t < 32,
        t >= 32,
        rng.random(THREADS) < 0.5,
        rng.random(THREADS) < 0.05,
    ][rng.choice(5, p=[0.5, 0.15, 0.1, 0.15, 0.1])]
    return what, n, np.where(mask, words, -1)


def races(steps):
    """Of two threads' accesses to a word with no barrier between, one writes, and one is plain."""
    found = set()
    since = {}  # by word: (thread, writes, strong)
    for step in steps:
        if step is None:
            since = {}
            continue
        what, n, words = step
        for thread, first in enumerate(words):
            now = (thread, what.startswith("st"), what.endswith("volatile"))
            for word in range(first, first + n) if first >= 0 else ():
                for thread_before, wrote, strong in since.get(word, ()):
                    if thread_before != thread and (wrote or now[1]) and not (strong and now[2]):
                        found.add("write" if wrote and now[1] else "read")
                since.setdefault(word, set()).add(now)
    return found


def body_of(steps):
    lines = [f"mad.lo.u32 %r6, %r1, {4 * WORDS // THREADS}, %r3;"]
    for k in range(0, 4 * WORDS // THREADS, 4):
        lines.append(f"st.shared.b32 [%r6+{k}], %r1;")
    lines.append("bar.sync 0;")
    for k, step in enumerate(steps):
        if step is None:
            lines.append("bar.sync 0;")
            continue
        what, n, _ = step
        registers = ["%r8", "%r9", "%r10", "%r11"][:n]
        operand = registers[0] if n == 1 else "{" + ", ".join(registers) + "}"
        vector = "" if n == 1 else f".v{n}"
        order = [operand, "[%r6]"] if what.startswith("ld") else ["[%r6]", operand]
        lines += [
            f"ld.global.s32 %r5, [%d0+{4 * THREADS * k}];",
            "setp.ge.s32 %p0, %r5, 0;",
            "mad.lo.s32 %r6, %r5, 4, %r3;",
            f"@%p0 {what}.shared{vector}.b32 {', '.join(order)};",
        ]
    return "\n".join(f"    {line}" for line in lines)


@pytest.mark.parametrize(
    ("whats", "barriers"), [(PLAIN, 0.45), (VOLATILE, 0.2)], ids=["plain", "volatile"]
)
def test_races_of_random_programs(rng, whats, barriers):
    seen = {frozenset(): 0}
    for _ in range(400):
        steps = [drawn_step(rng, whats, barriers) for _ in range(rng.integers(2, 9))]
        table = np.array([np.full(THREADS, -1) if s is None else s[2] for s in steps], np.int32)
        kernel = smemkern.Kernel(table_kernel(body_of(steps)), "k")
        t = smemkern.trace(
            kernel, 1, THREADS, table, np.zeros(1, "u4"), hazards=True, equal_writes=True
        )
        assert {h.kind for h in t.hazards} <= {"RAW", "WAR", "WAW"}
        wanted = frozenset(races(steps))
        assert bool(t.hazards) == bool(wanted), body_of(steps)
        seen[wanted] = seen.get(wanted, 0) + 1
    assert seen[frozenset()] > 40 and sum(seen.values()) - seen[frozenset()] > 40


@pytest.mark.parametrize("words", [1, 2, 4])
def test_readers_of_words_of_which_some_have_been_read(rng, words):
    """A word that two threads have read notes no third; those around it note all of theirs."""
    found, lanes, room = 0, np.arange(THREADS), 96
    for n in range(60):
        known = rng.permutation(room)[: rng.integers(64, room) if n % 3 else -1]  # all but one
        read = [np.resize(known[k : k + 32], THREADS) for k in range(0, len(known), 32)]
        gathered = words * rng.integers(0, room // words, THREADS)
        if n % 3 == 1:  # in most lanes one place
            gathered = np.where(lanes % 32 < n % 22, gathered, known[0] // words * words)
        stored = np.full(THREADS, -1)
        stored[40] = rng.integers(0, room)
        steps = [("ld", 1, places) for places in read]
        steps += [("ld", words, np.where(lanes < 32, gathered, -1)), ("st", 1, stored)]
        if n % 2:  # what was read alone would do: the words that nobody else has are stored to
            stored[40] = rng.choice(np.setdiff1d(np.arange(room), known))
        table = np.array([places for _, _, places in steps], np.int32)
        kernel = smemkern.Kernel(table_kernel(body_of(steps)), "k")
        t = smemkern.trace(kernel, 1, THREADS, table, np.zeros(1, "u4"), hazards=True)
        assert bool(t.hazards) == bool(races(steps)), gathered
        found += bool(t.hazards)
    assert 10 < found < 60
