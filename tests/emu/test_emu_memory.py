"""Loads, stores, atomics and asynchronous copies of the emulator, in global and shared memory."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import smemkern

LANES = 32
N = 4 * LANES  # threads of the block


def run(body: str, *arrays: np.ndarray, declared: str = "") -> None:
    """A kernel of one block whose parameters are arrays p0, p1, ...; %i is the thread."""
    parameters = ", ".join(f".param .u64 p{k}" for k in range(len(arrays)))
    loads = "\n".join(f".reg .b64 %p{k}; ld.param.u64 %p{k}, [p{k}];" for k in range(len(arrays)))
    text = f"""
.version 8.3
.target sm_90
.address_size 64
.visible .entry memory({parameters})
{{
    .reg .b64 %at, %from, %to; .reg .b32 %i; .reg .pred %in;
    .shared .align 16 .b8 tile[8192];
    {declared}
    {loads}
    mov.u32 %i, %tid.x;
    {body}
    ret;
}}
"""
    smemkern.Kernel(text, "memory")(1, N, *arrays, device="emu")


def random_array(rng, dtype, count=N) -> np.ndarray:
    dtype = np.dtype(dtype)
    return rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)


@pytest.fixture
def rng(request) -> np.random.Generator:
    return np.random.default_rng(len(request.node.name))


# ---- spaces ----

SPACES = ("global", "shared", "local", "const", "param")


def test_addresses_say_their_space() -> None:
    """isspacep of a generic address of each space, for each space, by lanes that differ."""
    out = np.full((len(SPACES), N), 9, "u4")
    asks = "".join(
        f"isspacep.{space} %in, %at; selp.u32 %yes, 1, 0, %in;"
        f" mad.wide.u32 %to, %i, 4, %p0; st.global.u32 [%to+{4 * N * k}], %yes;"
        for k, space in enumerate(SPACES)
    )
    places = "".join(
        f"mov.b64 %from, {name}; cvta.{space}.u64 %from, %from;"
        f" rem.u32 %yes, %i, 6; setp.eq.u32 %in, %yes, {k}; @%in mov.b64 %at, %from;"
        for k, (space, name) in enumerate(
            zip(SPACES, ("values", "tile", "own", "table", "p0"), strict=True)
        )
    )
    text = f"""
.version 8.3
.target sm_90
.address_size 64
.const .u32 table[4];
.global .u32 values[4];
.visible .entry spaces(.param .u64 p0)
{{
    .reg .b64 %at, %from, %to, %p0; .reg .b32 %i, %yes; .reg .pred %in;
    .shared .align 16 .b8 tile[64]; .local .align 16 .b8 own[64];
    ld.param.u64 %p0, [p0]; mov.u32 %i, %tid.x; mov.b64 %at, %p0;
    {places} {asks}
    ret;
}}
"""
    smemkern.Kernel(text, "spaces")(1, N, out, device="emu")
    k = np.arange(N) % 6  # the last one's address is the array's
    place = np.where(k < 5, k, 0)
    assert np.array_equal(out, place[None] == np.arange(len(SPACES))[:, None])


def test_addresses_say_nothing_of_the_host() -> None:
    """Which of two arrays the host has first, a kernel does not see; nor which it has between."""
    room = np.zeros(4 * 256, "u8")
    parts = [room[256 * k :][:16] for k in range(4)]
    whole = room[256:784]  # the second part, and all up to the fourth one's first half

    def seen(*arrays: np.ndarray) -> list[int]:
        out = np.zeros(len(arrays), "u8")
        stores = "".join(f"st.global.u64 [%p0+{8 * k}], %p{k + 1};" for k in range(len(arrays)))
        run(f"setp.eq.u32 %in, %i, 0; @!%in bra E; {stores} E:", out, *arrays)
        return out.tolist()

    a, b, c, d = parts
    assert seen(a, b, c, d) == seen(d, c, b, a) == seen(c, a, d, b)
    assert len(set(seen(a, b, c, d))) == 4
    first, shared, inside = seen(a, whole, c)
    assert inside - shared == c.ctypes.data - whole.ctypes.data
    assert seen(a, c, whole) == [first, inside, shared]


def test_a_copy_that_is_told_to_read_more_than_it_has() -> None:
    body = "mov.u64 %at, tile; mov.u32 %i, 5; cp.async.ca.shared.global [%at], [%p0], 4, %i;"
    with pytest.raises(smemkern.LaunchError, match="copies 4 bytes, but its source size is 5"):
        run(body, np.zeros(64, "u4"))


@pytest.mark.parametrize("lanes", [32, 7])
@pytest.mark.parametrize("width", ["u32", "v4.u32", "u8"])
@pytest.mark.parametrize(
    ("space", "holder"), [("const", "table"), ("const", "p0"), ("local", "p0")]
)
def test_an_address_of_another_space_is_refused(space, holder, width, lanes) -> None:
    values = "{%a, %b, %c, %e}" if width.startswith("v4") else "%a"
    text = f"""
.version 8.3
.target sm_90
.address_size 64
.global .align 16 .u32 table[256];
.visible .entry spaces(.param .u64 p0)
{{
    .reg .b64 %at; .reg .b32 %i, %a, %b, %c, %e; .local .align 16 .b8 own[512];
    {"mov.b64 %at, table" if holder == "table" else "ld.param.u64 %at, [p0]"};
    mov.u32 %i, %tid.x; mad.wide.u32 %at, %i, 16, %at;
    st.local.u32 [own], %i;
    ld.{space}.{width} {values}, [%at];
    ret;
}}
"""
    kernel = smemkern.Kernel(text, "spaces")
    with pytest.raises(smemkern.LaunchError, match=f"an access to {space}.* has the address"):
        kernel(1, lanes, np.zeros(256, "u4"), device="emu")


# ---- loads and stores ----

LOADED = [f"{kind}{n}" for kind in "us" for n in (8, 16, 32, 64)]


def as_dtype(t: str) -> np.dtype:
    return np.dtype(f"{'i' if t[0] == 's' else 'u'}{int(t[1:]) // 8}")


@pytest.mark.parametrize(
    ("t", "register"), [(t, n) for t, n in product(LOADED, (16, 32, 64)) if int(t[1:]) <= n]
)
def test_load_extends_to_the_register(t: str, register: int, rng) -> None:
    source, result = random_array(rng, as_dtype(t)), np.zeros(N, f"u{register // 8}")
    size = as_dtype(t).itemsize
    run(
        f"mad.wide.u32 %at, %i, {size}, %p0; ld.global.{t} %x, [%at];"
        f"mad.wide.u32 %at, %i, {register // 8}, %p1; st.global.b{register} [%at], %x;",
        source,
        result,
        declared=f".reg .b{register} %x;",
    )
    assert np.array_equal(
        result, source.astype(f"{t[0].replace('s', 'i')}{register // 8}").view(result.dtype)
    )


@pytest.mark.parametrize("n", [8, 16, 32, 64])
def test_store_takes_the_low_bits(n: int, rng) -> None:
    source, result = random_array(rng, np.uint64), np.zeros(N, f"u{n // 8}")
    run(
        "mad.wide.u32 %at, %i, 8, %p0; ld.global.b64 %x, [%at];"
        f"mad.wide.u32 %at, %i, {n // 8}, %p1; st.global.b{n} [%at], %x;",
        source,
        result,
        declared=".reg .b64 %x;",
    )
    assert np.array_equal(result, source.astype(result.dtype))


@pytest.mark.parametrize(
    ("count", "n", "space"),
    [
        (count, n, space)
        for count, n, space in product((2, 4), (8, 16, 32, 64), ("global", "shared"))
        if count * n <= 128
    ],
)
def test_vectors(count: int, n: int, space: str, rng) -> None:
    """Read as a vector, its elements rotated by one, written as a vector."""
    whole = count * n // 8
    kept = max(n, 16)
    names = [f"%v{k}" for k in range(count)]
    source = random_array(rng, f"u{n // 8}", N * count)
    result = np.zeros_like(source)
    vector, rotated = ", ".join(names), ", ".join(names[1:] + names[:1])
    move = f"ld.global.v{count}.b{n} {{{vector}}}, [%from];"
    if space == "shared":
        move += (
            f"mad.wide.u32 %at, %i, {whole}, %tile;"
            f"st.shared.v{count}.b{n} [%at], {{{vector}}};"
            f"ld.shared.v{count}.b{n} {{{vector}}}, [%at];"
        )
    run(
        f"mov.u64 %tile, tile; mad.wide.u32 %from, %i, {whole}, %p0;"
        f"mad.wide.u32 %to, %i, {whole}, %p1; {move}"
        f"st.global.v{count}.b{n} [%to], {{{rotated}}};",
        source,
        result,
        declared=f".reg .b64 %tile; .reg .b{kept} {vector};",
    )
    assert np.array_equal(result.reshape(N, count), np.roll(source.reshape(N, count), -1, axis=1))


# ---- atomics ----


def wrapped_inc(old, b):
    return 0 if old >= b else old + 1


def wrapped_dec(old, b):
    return b if old == 0 or old > b else old - 1


ATOMICS = [
    *((f"add.{t}", t, lambda old, b: old + b) for t in ("u32", "s32", "u64")),
    *(
        (f"{op}.{t}", t, f)
        for op, f in (("min", min), ("max", max))
        for t in ("u32", "s32", "u64", "s64")
    ),
    *((f"exch.b{n}", f"u{n}", lambda old, b: b) for n in (32, 64)),
    *(
        (f"{op}.b{n}", f"u{n}", f)
        for n in (32, 64)
        for op, f in (
            ("and", lambda old, b: old & b),
            ("or", lambda old, b: old | b),
            ("xor", lambda old, b: old ^ b),
        )
    ),
    ("inc.u32", "u32", wrapped_inc),
    ("dec.u32", "u32", wrapped_dec),
]


def atomic_operands(rng, dtype):
    memory, operand = random_array(rng, dtype), random_array(rng, dtype)
    small = np.arange(N) % 3 == 0
    memory[small] = rng.integers(0, 4, small.sum())
    operand[small] = rng.integers(0, 4, small.sum())
    return memory, operand


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(
    ("op", "t", "function"), ATOMICS, ids=lambda x: x if isinstance(x, str) else ""
)
def test_atomic(op: str, t: str, function, space: str, rng) -> None:
    """A place for each thread: what it held, and what it holds then; red and atom alike."""
    dtype = as_dtype(t)
    n = 8 * dtype.itemsize
    memory, operand = atomic_operands(rng, dtype)
    old, after = np.zeros(N, dtype), np.zeros(N, dtype)
    shared = (
        f"mad.wide.u32 %at, %i, {n // 8}, %tile; st.shared.b{n} [%at], %x;"
        if space == "shared"
        else ""
    )
    run(
        f"mov.u64 %tile, tile; mad.wide.u32 %at, %i, {n // 8}, %p0; ld.global.b{n} %x, [%at];"
        f"mad.wide.u32 %from, %i, {n // 8}, %p1; ld.global.b{n} %b, [%from]; {shared}"
        f"atom.{space}.{op} %x, [%at], %b;"
        f"mad.wide.u32 %to, %i, {n // 8}, %p2; st.global.b{n} [%to], %x;"
        f"ld.{space}.b{n} %x, [%at];"
        f"mad.wide.u32 %to, %i, {n // 8}, %p3; st.global.b{n} [%to], %x;",
        memory.copy(),
        operand,
        old,
        after,
        declared=f".reg .b64 %tile; .reg .b{n} %x, %b;",
    )
    mask = (1 << n) - 1
    expected = [
        function(x, y) & mask for x, y in zip(memory.tolist(), operand.tolist(), strict=True)
    ]
    assert np.array_equal(old, memory)
    assert after.view(f"u{n // 8}").tolist() == expected


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("n", [16, 32, 64])
def test_compare_and_swap(n: int, space: str, rng) -> None:
    dtype = f"u{n // 8}"
    memory, new = random_array(rng, dtype), random_array(rng, dtype)
    compare = np.where(np.arange(N) % 2, memory, random_array(rng, dtype))
    after = memory.copy()
    old = np.zeros(N, dtype)
    size = n // 8
    shared = (
        f"mad.wide.u32 %at, %i, {size}, %tile; st.shared.b{n} [%at], %x;"
        if space == "shared"
        else ""
    )
    run(
        f"mov.u64 %tile, tile; mad.wide.u32 %to, %i, {size}, %p0; mov.u64 %at, %to;"
        f"ld.global.b{n} %x, [%at];"
        f"mad.wide.u32 %from, %i, {size}, %p1; ld.global.b{n} %b, [%from];"
        f"mad.wide.u32 %from, %i, {size}, %p2; ld.global.b{n} %c, [%from]; {shared}"
        f"atom.{space}.cas.b{n} %d, [%at], %b, %c; ld.{space}.b{n} %x, [%at];"
        f"st.global.b{n} [%to], %x; mad.wide.u32 %to, %i, {size}, %p3; st.global.b{n} [%to], %d;",
        after,
        compare,
        new,
        old,
        declared=f".reg .b64 %tile; .reg .b{n} %x, %b, %c, %d;",
    )
    assert np.array_equal(old, memory)
    assert np.array_equal(after, np.where(memory == compare, new, memory))


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("instruction", ["atom", "red"])
def test_all_threads_add_to_one_place(instruction: str, space: str, rng) -> None:
    """No addition is lost, and the values that atom returns are the sums on the way."""
    operand = rng.integers(1, 100, N, dtype=np.uint32)
    total, seen = np.zeros(1, np.uint32), np.zeros(N, np.uint32)
    add = f"atom.{space}.add.u32 %x, [%at], %b;"
    if instruction == "red":
        add = f"mov.u32 %x, 0; red.{space}.add.u32 [%at], %b;"
    at = "mov.u64 %at, tile;" if space == "shared" else "mov.u64 %at, %p1;"
    run(
        f"{at} setp.ne.u32 %in, %i, 0; @!%in st.{space}.u32 [%at], 0; bar.sync 0;"
        "mad.wide.u32 %from, %i, 4, %p0; ld.global.u32 %b, [%from];"
        f"{add} mad.wide.u32 %to, %i, 4, %p2; st.global.u32 [%to], %x;"
        f"bar.sync 0; ld.{space}.u32 %b, [%at]; st.global.u32 [%p1], %b;",
        operand,
        total,
        seen,
        declared=".reg .b32 %x, %b;",
    )
    assert total[0] == operand.sum()
    if instruction == "atom":
        order = np.argsort(seen)
        assert np.array_equal(seen[order], np.cumsum(operand[order]) - operand[order])


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_atomic_float_add(t: str, space: str, rng) -> None:
    dtype = np.dtype(f"f{int(t[1:]) // 8}")
    memory, operand = (rng.standard_normal(N).astype(dtype) for _ in range(2))
    after, size = memory.copy(), dtype.itemsize
    shared = (
        f"mad.wide.u32 %at, %i, {size}, %tile; st.shared.{t} [%at], %x;"
        if space == "shared"
        else ""
    )
    run(
        f"mov.u64 %tile, tile; mad.wide.u32 %to, %i, {size}, %p0; mov.u64 %at, %to;"
        f"ld.global.{t} %x, [%at]; mad.wide.u32 %from, %i, {size}, %p1; ld.global.{t} %b, [%from];"
        f"{shared} atom.{space}.add.{t} %d, [%at], %b; ld.{space}.{t} %x, [%at];"
        f"st.global.{t} [%to], %x; st.global.{t} [%from], %d;",
        after,
        operand_copy := operand.copy(),
        declared=f".reg .b64 %tile; .reg .{t} %x, %b, %d;",
    )
    assert np.array_equal(after, memory + operand)
    assert np.array_equal(operand_copy, memory)


# ---- asynchronous copies ----


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize(
    "wait", ["cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;"]
)
def test_copy_async_arrives_at_the_wait(size: int, wait: str, rng) -> None:
    source = random_array(rng, np.uint32, N * size // 4)
    before, after = np.zeros(N, np.uint32), np.zeros(N, np.uint32)
    run(
        f"mov.u64 %tile, tile; mad.wide.u32 %at, %i, {size}, %tile; st.shared.u32 [%at], 77;"
        f"mad.wide.u32 %from, %i, {size}, %p0;"
        f"cp.async.ca.shared.global [%at], [%from], {size};"
        "ld.shared.u32 %x, [%at]; mad.wide.u32 %to, %i, 4, %p1; st.global.u32 [%to], %x;"
        f"{wait} ld.shared.u32 %x, [%at]; mad.wide.u32 %to, %i, 4, %p2; st.global.u32 [%to], %x;",
        source,
        before,
        after,
        declared=".reg .b64 %tile; .reg .b32 %x;",
    )
    assert np.array_equal(before, np.full(N, 77))  # not yet: a forgotten wait must show
    assert np.array_equal(after, source.reshape(N, -1)[:, 0])


def test_copy_async_fills_with_zeros(rng) -> None:
    """A source size below the size of the copy: the rest of the destination becomes 0."""
    source, result = random_array(rng, np.uint32, 4 * N), np.ones(4 * N, np.uint32)
    run(
        "mov.u64 %tile, tile; mad.wide.u32 %at, %i, 16, %tile; mad.wide.u32 %from, %i, 16, %p0;"
        "and.b32 %n, %i, 3; shl.b32 %n, %n, 2;"
        "cp.async.cg.shared.global [%at], [%from], 16, %n; cp.async.wait_all;"
        "ld.shared.v4.u32 {%x, %y, %z, %w}, [%at]; mad.wide.u32 %to, %i, 16, %p1;"
        "st.global.v4.u32 [%to], {%x, %y, %z, %w};",
        source,
        result,
        declared=".reg .b64 %tile; .reg .b32 %x, %y, %z, %w, %n;",
    )
    words = np.arange(4)[None, :] < (np.arange(N) % 4)[:, None]
    assert np.array_equal(result.reshape(N, 4), np.where(words, source.reshape(N, 4), 0))


# ---- barriers that reduce ----


@pytest.mark.parametrize(
    ("op", "function"), [("popc.u32", np.sum), ("and.pred", np.all), ("or.pred", np.any)]
)
@pytest.mark.parametrize("kind", ["some", "none", "every"])
def test_barrier_reduction(op: str, function, kind: str, rng) -> None:
    flags = {"some": rng.integers(0, 2, N), "none": np.zeros(N), "every": np.ones(N)}[kind]
    flags, result = flags.astype(np.uint32), np.zeros(N, np.uint32)
    reduce = f"bar.red.{op} {'%x' if op == 'popc.u32' else '%out'}, 0, %in;"
    if op != "popc.u32":
        reduce += "selp.u32 %x, 1, 0, %out;"
    run(
        "mad.wide.u32 %from, %i, 4, %p0; ld.global.u32 %x, [%from]; setp.ne.u32 %in, %x, 0;"
        f"{reduce} mad.wide.u32 %to, %i, 4, %p1; st.global.u32 [%to], %x;",
        flags,
        result,
        declared=".reg .b32 %x; .reg .pred %out;",
    )
    assert np.array_equal(result, np.full(N, function(flags)))


# ---- strong vectors ----

PAIRS = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry pairs(.param .u64 p0, .param .u64 p1)
{{
    .reg .b64 %pair, %out; .reg .b32 %block, %k, %torn; .reg .{type} %a, %b; .reg .pred %p;
    ld.param.u64 %pair, [p0];
    ld.param.u64 %out, [p1];
    mov.u32 %block, %ctaid.x;
    mov.u32 %k, 0;
    mov.u32 %torn, 0;
    setp.eq.u32 %p, %block, 0;
    @!%p bra reads;
writes:
    cvt.{type}.u32 %a, %k;
    st.relaxed.gpu.global.v2.{type} [%pair], {{%a, %a}};
    add.u32 %k, %k, 1;
    setp.lt.u32 %p, %k, 200000;
    @%p bra writes;
    ret;
reads:
    ld.relaxed.gpu.global.v2.{type} {{%a, %b}}, [%pair];
    setp.ne.{type} %p, %a, %b;
    @%p add.u32 %torn, %torn, 1;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p, %k, 200000;
    @%p bra reads;
    st.global.u32 [%out], %torn;
    ret;
}}
"""


@pytest.mark.parametrize("type_", ["u32", "u64"])
def test_strong_vectors_are_read_and_written_at_once(type_) -> None:
    """One block writes pairs of equal values while another, on another thread, reads them."""
    pair, torn = np.zeros(2, {"u32": "u4", "u64": "u8"}[type_]), np.ones(1, "u4")
    smemkern.Kernel(PAIRS.format(type=type_), "pairs")(2, 1, pair, torn, device="emu")
    assert torn[0] == 0


@pytest.mark.parametrize("linkage", [".common", ".weak"])
def test_texts_that_are_linked_share_a_variable(linkage) -> None:
    """As Numba's with debug information declare it."""
    variable = f"{linkage} .global .align 8 .u64 shared_one;"
    text = f"""
.version 8.3
.target sm_90
.address_size 64
{variable}
.visible .entry k(.param .u64 out)
{{
    .reg .b64 %x, %out;
    ld.param.u64 %out, [out];
    ld.global.u64 %x, [shared_one];
    st.global.u64 [%out], %x;
    add.u64 %x, %x, 3;
    st.global.u64 [shared_one], %x;
    ret;
}}
{variable}
"""
    out, kernel = np.zeros(1, "u8"), smemkern.Kernel(text, "k")
    for k in range(2):
        kernel(1, 1, out, device="emu")
        assert out[0] == 3 * k
