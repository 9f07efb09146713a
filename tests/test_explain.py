"""The words of csrc/emu/cost/explain.h: every number in them is read back and checked against the
bank model, or against a model of this file."""

import random
import re
from collections import defaultdict

import numpy as np
import pytest

from smemkern import _core, banks
from smemkern.banks import Layout

SEED = random.SystemRandom().randrange(1 << 32)
ALL = (1 << 32) - 1


@pytest.fixture
def rng(request):
    print("seed", SEED)
    return np.random.default_rng([SEED, *request.node.name.encode()])


def drawn_request(rng):
    """(op, addresses, active mask, width): often with some structure, at times without any."""
    op = str(rng.choice(["load", "store", "atomic", "ldmatrix", "stmatrix", "copy_async"]))
    width = (
        16 if "matrix" in op else int(rng.choice([4, 8, 16] if op[0] in "ac" else [1, 2, 4, 8, 16]))
    )
    if op == "atomic":
        width = 4
    lanes = np.arange(32)
    step, wrap = int(rng.integers(0, 40)), int(rng.integers(1, 33))
    units = [
        lanes * step,
        lanes % wrap * step + lanes // wrap,
        lanes // int(rng.integers(1, 9)) * step,
        rng.integers(0, 200, 32),
    ][rng.integers(4)]
    addresses = (units + int(rng.integers(0, 64))) * width
    active = int(rng.integers(1, 1 << 32)) if rng.random() < 0.4 else ALL
    return op, addresses, active, width


def counted(op, addresses, active, width):
    """(wavefronts, ideal), as a trace counts them for operations that are one instruction."""
    wavefronts = banks.wavefronts(addresses, width, op, active=np.int64(active))
    ideal = banks.ideal(addresses, width, op, active=np.int64(active))
    if op in ("atomic", "copy_async"):
        wavefronts = serial(addresses, active, width)
        ideal = min(wavefronts, serial(np.arange(32) * width, active, width))
    return wavefronts, ideal


def groups_of(size):
    return [range(first, first + size) for first in range(0, 32, size)]


def active_in(group, active):
    return [lane for lane in group if active >> lane & 1]


def serial(addresses, active, width):
    """Atomics and cp.async: a bank serves one lane at a time."""
    item = max(width, 4)
    total = 0
    for group in groups_of(128 // item):
        by_bank = defaultdict(int)
        for lane in active_in(group, active):
            by_bank[int(addresses[lane]) // item % (128 // item)] += 1
        total += max(by_bank.values(), default=0)
    return total


def words_of(op, addresses, active, width, array=None, cost=None):
    cost = cost or counted(op, addresses, active, width)
    request = (op, tuple(int(a) for a in addresses), active, width, *cost)
    return _core.explain_request(request, array)


def numbers(text):
    """The numbers of "0, 1, 2, ... and 31" or "0-3 and 32-35", each with its last one."""
    pairs = [one.split("-") for one in re.findall(r"\d+(?:-\d+)?", text)]
    return [(int(one[0]), int(one[-1])) for one in pairs]


def check_plural(text, noun, n):
    """Both ways: "1 lane", "2 lanes"."""
    for count, ending in re.findall(rf"(?<!\+ )\b(\d+) {noun}(s?)\b", text):
        assert (count == "1") == (ending == ""), text
        assert n is None or int(count) == n


BUSIEST = re.compile(
    r"(?:Lanes|Chunks) (?P<lanes>[\d, .and]+) (?:read|write|update|point to) "
    r"(?:(?P<place>(?:row|column|element)s? [^:]*): )?"
    r"words? (?P<words>[\d, .and-]+), (?:both |all (?P<all>\d+) )?in banks? (?P<banks>[\d-]+)"
    r"(?P<turns>, and take turns)?\."
)


@pytest.mark.parametrize("attempt", range(60))
def test_every_number_is_true(rng, attempt):
    op, addresses, active, width = drawn_request(rng)
    wavefronts, ideal = counted(op, addresses, active, width)
    text = words_of(op, addresses, active, width)
    lanes = active_in(range(32), active)
    item = max(width, 4)
    check_head(text, op, lanes, width, wavefronts, ideal)
    match = re.search(r"in (\d+) groups of (\d+)[^:]*: ([\d +]+) wavefronts", text)
    size = int(match[2]) if match else 32
    if match:
        by_group = [int(one) for one in match[3].split("+")]
        assert len(by_group) == int(match[1]) and sum(by_group) == wavefronts
        assert len(by_group) == sum(bool(active_in(g, active)) for g in groups_of(size))
    found = BUSIEST.search(text)
    has_conflict = has_busy_bank(op, addresses, active, item, size if match else None)
    assert (found is not None) == has_conflict, text
    if found:
        check_busiest(text, found, op, addresses, lanes, item)
    elif len(lanes) > 1:
        assert "No two words of a group are in one bank." in text


def check_head(text, op, lanes, width, wavefronts, ideal):
    head = text.split(": ")[0]
    check_plural(text, "wavefront", None)
    check_plural(text, "lane", None)
    check_plural(text, "byte", width)
    if "matrix" in op:
        assert head == f"{op} {'reads' if op[0] == 'l' else 'writes'} {len(lanes)} row" + (
            f"{'s' * (len(lanes) > 1)} of 16 bytes"
        )
    elif len(lanes) == 1:
        assert head.startswith(f"Lane {lanes[0]} ")
    else:
        assert head.startswith(f"{len(lanes)} lanes ") and head.endswith("each")
    cost = f": {wavefronts} wavefront{'s' * (wavefronts != 1)}"
    assert f"{cost}, which is ideal." in text or f"{cost} where {ideal} would be ideal." in text
    assert ("which is ideal" in text) == (wavefronts == ideal)


def has_busy_bank(op, addresses, active, item, size):
    """Whether some bank serves a group more than once. The group's size follows from the text, if
    there are several; a single group with active lanes has the operation's own size."""
    serial_op = op in ("atomic", "copy_async")
    n_banks = 128 // item
    sizes = [size] if size else [n_banks, 2 * n_banks]
    for one in sizes:
        parts = [active_in(g, active) for g in groups_of(min(one, 32))]
        parts = [part for part in parts if part]
        if size is None and len(parts) > 1:
            continue
        for part in parts:
            by_bank = defaultdict(list)
            for lane in part:
                by_bank[int(addresses[lane]) // item % n_banks].append(int(addresses[lane]) // item)
            for items in by_bank.values():
                if len(items if serial_op else set(items)) > 1:
                    return True
    return False


def check_busiest(text, found, op, addresses, lanes, item):
    span = item // 4
    of = [first for first, _ in numbers(found["lanes"])]
    words = numbers(found["words"])
    (first_bank, last_bank) = numbers(found["banks"])[0]
    assert set(of) <= set(lanes) and of == sorted(of)
    assert last_bank - first_bank == span - 1 and first_bank % span == 0
    assert all(last - first == span - 1 for first, last in words)
    assert all(first % 32 == first_bank for first, _ in words)
    its_words = [int(addresses[lane]) // item * span for lane in of]
    assert {first for first, _ in words} <= {int(addresses[lane]) // item * span for lane in lanes}
    assert its_words[0] == words[0][0]
    if not found["turns"]:  # one lane per word
        assert its_words == [first for first, _ in words]
        assert ("both" in found[0]) == (len(words) == 2)
        assert found["all"] is None or int(found["all"]) >= len(words)
    assert (found["turns"] is not None) == (op in ("atomic", "copy_async"))
    assert ("... and" in found["lanes"]) == (
        len(of) == 4 and of[3] != of[2] and len(of) < n_of(found)
    )


def n_of(found):
    """How many lanes there are, as far as the sentence says so."""
    return 5 if "..." in found["lanes"] else len(numbers(found["lanes"]))


@pytest.mark.parametrize("attempt", range(20))
def test_the_busiest_bank_costs_what_its_group_costs(rng, attempt):
    """Loads of 4 bytes, which are one group."""
    addresses = rng.integers(0, 96, 32) * 4 * int(rng.choice([1, 8, 32]))
    text = words_of("load", addresses, ALL, 4)
    by_bank = defaultdict(set)
    for address in addresses.tolist():
        by_bank[address // 4 % 32].add(address // 4)
    most = max(map(len, by_bank.values()))
    assert banks.wavefronts(addresses) == most
    found = BUSIEST.search(text)
    if most == 1:
        assert found is None
        return
    bank = int(found["banks"])
    assert len(by_bank[bank]) == most
    if most > 2:
        assert int(found["all"]) == most
    others = re.search(r"(\d+) other banks? (?:is|are) as busy", text)
    assert int(others[1] if others else 0) == sum(len(w) == most for w in by_bank.values()) - 1
    assert ("share its wavefront" in text) == (len(set((addresses // 4).tolist())) < 32)


@pytest.mark.parametrize("attempt", range(30))
def test_elements_are_where_the_layout_puts_them(rng, attempt):
    itemsize = int(rng.choice([1, 2, 4, 8, 16]))
    rows, cols = (int(n) for n in rng.integers(2, 70, 2))
    at = int(rng.integers(0, 16)) * 16
    r, c = rng.integers(0, rows, 32), rng.integers(0, cols, 32)
    if attempt % 3 == 0:
        c[:] = c[0]
    elif attempt % 3 == 1:
        r[:] = r[0]
    addresses = at + (r * cols + c) * itemsize
    array = ("_ZZ6kernelPfE4tile", at, rows * cols * itemsize, itemsize, cols)
    text = words_of("load", addresses, ALL, itemsize, array)
    assert "from tile: " in text
    found = BUSIEST.search(text)
    if not found:
        return
    of = [first for first, _ in numbers(found["lanes"])]
    by = {lane: (int(r[lane]), int(c[lane])) for lane in of}
    place = found["place"]
    if place.startswith("element"):
        assert re.findall(r"\[(\d+)\]\[(\d+)\]", place) == [
            (str(row), str(col)) for row, col in by.values()
        ]
    else:
        many, _, one = place.partition(" of ")
        which = 0 if many.startswith("row") else 1
        assert [n for n, _ in numbers(many)] == [place[which] for place in by.values()]
        assert {int(numbers(one)[0][0])} == {place[1 - which] for place in by.values()}


def test_an_array_of_one_dimension_and_one_that_does_not_fit():
    addresses = [256 + 128 * lane for lane in range(32)]
    assert "read elements 0, 32, 64, ... and 992: words 64, 96," in words_of(
        "load", addresses, ALL, 4, ("sums", 256, 4096, 4, 0)
    )
    outside = words_of("load", addresses, ALL, 4, ("sums", 256, 4092, 4, 0))
    whole = words_of("load", addresses, ALL, 4, ("sums", 256, 4096, 4, 0))
    assert outside == whole.replace("elements 0, 32, 64, ... and 992: ", "") or outside == whole
    assert "element" not in words_of("load", addresses, ALL, 4, ("sums", 260, 4096, 4, 0))
    assert "element" not in words_of("load", addresses, ALL, 4, ("sums", 0, 16384, 0, 0))


def test_the_example_of_two_lanes():
    addresses = [(lane // 16 * 16 * 32 + lane % 16) * 4 for lane in range(32)]
    text = words_of("load", addresses, ALL, 4, ("tile", 0, 4096, 4, 32))
    assert text == (
        "32 lanes read 4 bytes each from tile: 2 wavefronts where 1 would be ideal. Lanes 0 and 16 "
        "read rows 0 and 16 of column 0: words 0 and 512, both in bank 0. 15 other banks are as "
        "busy."
    )


def test_requests_explain_themselves():
    request = banks.explain([0, 128, 4, 132])
    assert request.explanation == (
        "4 lanes read 4 bytes each: 2 wavefronts where 1 would be ideal. Lanes 0 and 1 read words "
        "0 and 32, both in bank 0. 1 other bank is as busy."
    )


def test_the_worst_requests_of_a_trace_explain_themselves():
    import smemkern

    a = np.ones((32, 32), np.float32)
    for variant in ("tiled", "pipelined", "swizzle", "mma"):
        if variant in {row.name for row in smemkern.variants("gemm")}:
            for row in smemkern.trace("gemm", a, a, variant=variant).shared:
                assert f": {row.worst} wavefront" in row.worst_request.explanation
    for row in smemkern.trace("transpose", a, variant="tma").shared:
        assert f": {row.worst} wavefront" in row.worst_request.explanation


def test_one_lane_and_costs_beyond_the_banks():
    one = np.zeros(32, int)
    assert words_of("store", one + 4, 1 << 5, 4) == (
        "Lane 5 writes 4 bytes: 1 wavefront, which is ideal."
    )
    loop = words_of("atomic", one, 3, 4, cost=(10, 4))
    assert "this atomic is more than one access: 2 turns cost 10 wavefronts" in loop
    combined = words_of("atomic", one, ALL, 4, cost=(1, 1))
    assert "first combines lanes that have the same word" in combined
    remote = words_of("remote_load", one, ALL, 4, cost=(3, 1))
    assert "network of the cluster" in remote and "bank" not in remote


@pytest.mark.parametrize(
    "request_, array, error, match",
    [
        (("load", (0,) * 31, 1, 4, 1, 1), None, TypeError, "32 integers"),
        (("load", (0,) * 32, 1, 3, 1, 1), None, ValueError, "width should be"),
        (("load", (0,) * 32, 1, 0, 1, 1), None, ValueError, "width should be"),
        (("jump", (0,) * 32, 1, 4, 1, 1), None, ValueError, "no words for the operation 'jump'"),
    ],
)
def test_what_is_refused(request_, array, error, match):
    with pytest.raises(error, match=match):
        _core.explain_request(request_, array)


# ---- layouts ----


def advised(text, rows, cols, itemsize):
    """The layout that the words name."""
    if found := re.search(r"Pad each row by (\d+) element(s?), to (\d+)\.", text):
        assert int(found[3]) == cols + int(found[1]) and (found[1] == "1") == (found[2] == "")
        return Layout(rows, cols, itemsize, pad=int(found[1]))
    if found := re.search(r"element c of row r in column c \^ \(r % (\d+)\)", text):
        layout = Layout(rows, cols, itemsize, swizzle="xor")
        assert layout._period == int(found[1])
        return layout
    if found := re.search(r"(\d+)-byte chunk k of row r as chunk k \^ \(r % (\d+)\)", text):
        layout = Layout(rows, cols, itemsize, swizzle=f"xor:{found[1]}B")
        assert layout._period == int(found[2])
        return layout
    bits = r"XOR bits? (\d+)(?: to (\d+))? of each byte offset with bits? (\d+)"
    if found := re.search(bits, text):
        first, last, source = int(found[1]), int(found[2] or found[1]), int(found[3])
        return Layout(rows, cols, itemsize, swizzle=(last - first + 1, first, source - first))
    return Layout(rows, cols, itemsize)


@pytest.mark.parametrize("attempt", range(24))
def test_the_layout_is_that_of_suggest(rng, attempt):
    itemsize = int(rng.choice([1, 2, 4, 8]))
    rows, cols = int(rng.choice([8, 16, 24, 32, 64])), int(rng.choice([8, 16, 20, 32, 48, 64]))
    pad = int(rng.choice([0, 0, 1]))
    names = list(rng.choice(["row", "column", "store row", "store column"], 2, replace=False))
    requests, accesses = [], []
    plain = Layout(rows, cols + pad, itemsize)
    for name in names:
        walk = banks.pattern(str(name), rows, cols, itemsize)
        picked = rng.permutation(len(walk.r))[:20]
        walk = walk._replace(r=walk.r[picked], c=walk.c[picked], active=walk.active[picked])
        accesses.append(walk)
        addresses, active = plain.request(walk)
        for at, lanes in zip(addresses, active, strict=True):
            mask = int(sum(1 << lane for lane in np.flatnonzero(lanes)))
            cost = counted(walk.op, at, mask, walk.width)
            requests.append((walk.op, tuple(int(a) + 128 for a in at), mask, walk.width, *cost))
    array = ("tile", 128, rows * (cols + pad) * itemsize, itemsize, cols + pad)
    text = _core.explain_layout(requests, array)
    found = banks.suggest(rows, cols + pad, itemsize, accesses)
    layout = advised(text, rows, cols + pad, itemsize)
    if isinstance(found.best.layout.swizzle, str) and found.best.layout.swizzle[0] != "x":
        assert f"TMA's swizzle of {found.best.layout.swizzle[:-1]} bytes" in text
    elif not isinstance(found.best.layout.swizzle, tuple):
        assert repr(layout) == repr(found.best.layout)
    assert sum(layout.cost(walk).wavefronts for walk in accesses) == found.best.wavefronts
    if layout.pad == 0 and layout.swizzle is None:
        assert ("free of conflicts" in text) == found.conflict_free
        return
    assert f" {found.best.wavefronts} wavefront" in text
    assert f"in place of {found.before.wavefronts}" in text
    assert ("free of conflicts" in text) == found.conflict_free
    wasted = f"{found.best.wasted} byte" if found.best.wasted else "no memory"
    assert f"It costs {wasted}" in text
    if padding := re.search(
        r"Padding each row by (\d+) elements? takes (\d+) wavefronts? and", text
    ):
        padded = Layout(rows, cols + pad, itemsize, pad=int(padding[1]))
        assert sum(padded.cost(walk).wavefronts for walk in accesses) == int(padding[2])
        assert f"{padded.wasted} bytes of memory." in text


def test_no_layout_for_what_is_no_element():
    request = ("load", tuple(4 * lane + 2 for lane in range(32)), ALL, 2, 1, 1)
    assert _core.explain_layout([request], ("t", 0, 4096, 4, 32)) is None
    request = ("load", tuple(4 * lane for lane in range(32)), ALL, 4, 1, 1)
    assert _core.explain_layout([request], ("t", 0, 64, 4, 8)) is None  # outside
    assert _core.explain_layout([request], ("t", 0, 4096, 0, 0)) is None
    assert _core.explain_layout([], ("t", 0, 4096, 4, 32)) is None
    free = _core.explain_layout([request], ("t", 0, 4096, 4, 32))
    assert free == "Its layout is free of conflicts for these accesses."


def test_huge_tiles_do_not_end_the_search():
    """2^40 bytes and more: swizzles beyond 40 bits are left out, and nothing overflows."""
    given = np.stack([np.arange(32) * 2**20, np.arange(32)], -1)
    found = banks.suggest(2**26, 2**10, 16, [given])
    assert found.best.wavefronts == found.layout.cost(given).wavefronts


# ---- hazards and cures ----

PARTY = ("k.cu", 12, 5, "st.shared", (0, 0, 0), (1, 0, 0))
OTHER = ("k.cu", 10, 9, "ld.shared", (0, 0, 0), (40, 0, 0))


def cure(kind, party=PARTY, other=OTHER, space="shared"):
    return _core.explain_hazard(kind, party, other, space, 1, None, "shared s[3]")[1]


def test_where_the_barrier_belongs():
    between = "a __syncthreads() that all threads of the block reach, "
    assert cure("RAW") == f"{between}between k.cu:10 and k.cu:12"
    later = ("k.cu", 20, *OTHER[2:])
    assert (
        cure("WAR", other=later) == f"{between}after k.cu:20, before the loop comes back to k.cu:12"
    )
    same = ("/a/b/k.cu", 12, *OTHER[2:])
    assert "between k.cu:12 and its next execution" in cure("RAW", other=same)
    before = ("/a/b/k.cu", 12, 3, *OTHER[3:])
    assert "between the write of k.cu:12 and the read that follows it" in cure("RAW", other=before)
    assert "between the read and the write of k.cu:12" in cure("WAR", other=same)
    assert cure("WAW", other=same).startswith("let one thread write")
    elsewhere = (*OTHER[:4], (1, 0, 0), OTHER[5])
    assert cure("RAW", other=elsewhere).startswith("a cluster.sync()")
    assert "k.cu:10 releases and k.cu:12 acquires" in cure("RAW", other=elsewhere, space="global")
    assert "cudaGridDependencySynchronize() before k.cu:12" in cure("overlap", space="global")
    copy = ("k.cu", 10, 9, "cp.async.ca.shared.global [a], [b], 4", *OTHER[4:])
    assert "cp.async.wait_group" in cure("async-read", other=copy)
    bulk = ("k.cu", 10, 9, "cp.async.bulk.shared::cluster.global", *OTHER[4:])
    assert "mbarrier" in cure("async-read", other=bulk)
    assert cure("deadlock") is None
    with pytest.raises(ValueError, match="no hazard of kind 'XYZ'"):
        cure("XYZ")


def test_no_dynamic_shared_memory_has_its_own_cure():
    source = """__global__ void k(float *x) {
        extern __shared__ float s[];
        s[threadIdx.x] = 1;
        x[threadIdx.x] = s[threadIdx.x];
    }"""
    import smemkern

    kernel, x = smemkern.Kernel(source), np.zeros(33, np.float32)
    [none] = smemkern.trace(kernel, 1, 32, x).hazards
    assert "shared_bytes" in none.cure and "k.cu" not in none.cure
    [short] = smemkern.trace(kernel, 1, 32, x, shared_bytes=64).hazards
    assert short.cure.startswith("compare the index with the size before")


def racy_lines(rng):
    """Statements, each on a line of its own; a barrier between some."""
    lines = ["s[t] = x[t];"]
    for _ in range(int(rng.integers(2, 5))):
        a = int(rng.integers(1, 60))
        form = rng.choice(
            ["v += s[(t + {a}) % 64];", "s[(t + {a}) % 64] = v + t;", "__syncthreads();"]
        )
        lines.append(str(form).format(a=a))
    return [*lines, "y[t] = v + s[t];"]


def traced(lines):
    import smemkern

    body = "\n".join(lines)
    source = (
        'extern "C" __global__ void k(const float *x, float *y) { __shared__ float s[64];'
        f"int t = threadIdx.x; float v = 1;\n{body}\n}}"
    )
    x = np.arange(64, dtype=np.float32)
    return smemkern.trace(smemkern.Kernel(source, "k"), 1, 64, x, np.zeros(64, np.float32)).hazards


@pytest.mark.parametrize("attempt", range(6))
def test_a_cure_cures(rng, attempt, nvrtc):
    """A barrier where the words say: that race is gone. At most one that it hid is new."""
    lines = racy_lines(rng)
    print(lines)
    for _ in range(8):
        hazards = traced(lines)
        races = [one for one in hazards if one.kind in ("RAW", "WAR", "WAW")]
        races = [one for one in races if one.line != one.other_line]
        if not races:
            return
        found = re.search(r"__syncthreads\(\).*between \S+:(\d+) and \S+:(\d+)$", races[0].cure)
        first, last = int(found[1]), int(found[2])
        assert (races[0].other_line, races[0].line) == (first, last) and first < last
        lines.insert(last - 2, "__syncthreads();")  # line 2 of the file is the first of the list
        again = {(one.kind, one.line, one.other_line) for one in traced(lines)}
        moved = (races[0].kind, last + 1, first)
        assert moved not in again
        assert len(again) <= len(hazards)
    pytest.fail("eight barriers cure no such program")
