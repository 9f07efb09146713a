"""TensorMap, and the tensor copies that kernels do with it: boxes against a model in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from test_emu_bulk import BULK
from test_emu_mbarrier import HELPERS

import smemkern

COPIES = r"""
struct alignas(64) Map { char bytes[128]; };
#if RANK == 1
#define C "{%2}"
#elif RANK == 2
#define C "{%2, %3}"
#elif RANK == 3
#define C "{%2, %3, %4}"
#elif RANK == 4
#define C "{%2, %3, %4, %5}"
#else
#define C "{%2, %3, %4, %5, %6}"
#endif
#define S2(x) #x
#define S1(x) S2(x)
#define DIM S1(RANK) "d"
#define COORDINATES "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4])
__device__ void load_box(void *to, const Map &map, const int *c, u64 *b) {
    asm volatile("cp.async.bulk.tensor." DIM ".shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, " C "], [%7];"
                 :: "r"(at(to)), "l"(&map), COORDINATES, "r"(at(b)) : "memory");
}
__device__ void store_box(const void *from, const Map &map, const int *c) {
    asm volatile("cp.async.bulk.tensor." DIM ".global.shared::cta.tile.bulk_group"
                 " [%1, " C "], [%0];"
                 :: "r"(at(from)), "l"(&map), COORDINATES : "memory");
}
#ifdef REDUCE
__device__ void reduce_box(const void *from, const Map &map, const int *c) {
    asm volatile("cp.reduce.async.bulk.tensor." DIM ".global.shared::cta." REDUCE ".tile.bulk_group"
                 " [%1, " C "], [%0];"
                 :: "r"(at(from)), "l"(&map), COORDINATES : "memory");
}
#endif
extern __shared__ unsigned char raw[];
__device__ unsigned char *aligned() { return raw + (-at(raw) & 1023); }
// One box into shared memory, and shared memory as it then is into out.
extern "C" __global__ void load_one(const __grid_constant__ Map map, const int *start,
                                    unsigned char *out, int bytes, int whole) {
    unsigned char *tile = aligned();
    __shared__ u64 b;
    int c[5];
    for (int d = 0; d < 5; d++) c[d] = start[d];
    for (int k = threadIdx.x; k < whole; k += 32) tile[k] = 0xa5;
    if (threadIdx.x == 0) init(&b, 1), fence_init();
    fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        arrive_expect(&b, bytes);
        load_box(tile, map, c, &b);
    }
    wait(&b, 0);
    for (int k = threadIdx.x; k < whole; k += 32) out[k] = tile[k];
}
// A box into shared memory; meanwhile other threads write 16-byte chunks, of which `free` has a 1.
extern "C" __global__ void load_beside(const __grid_constant__ Map map, const unsigned char *free,
                                       uint4 *out, int bytes, int chunks) {
    uint4 *tile = (uint4 *)aligned();
    __shared__ u64 b;
    int c[5];
    for (int d = 0; d < 5; d++) c[d] = 0;
    if (threadIdx.x == 0) init(&b, 1), fence_init();
    __syncthreads();
    if (threadIdx.x == 0) {
        arrive_expect(&b, bytes);
        load_box(tile, map, c, &b);
    }
    for (int k = threadIdx.x; k < chunks; k += 32)
        if (free[k]) tile[k] = make_uint4(k, k, k, k);
    wait(&b, 0);
    __syncthreads();
    for (int k = threadIdx.x; k < chunks; k += 32) out[k] = tile[k];
}
__device__ void load_two(const Map &a, const Map &b, int row, unsigned char *out) {
    unsigned char *tile = aligned();
    __shared__ u64 bar;
    const int c[5] = {0, row, 0, 0, 0};
    if (threadIdx.x == 0) init(&bar, 1), fence_init();
    __syncthreads();
    if (threadIdx.x == 0) {
        arrive_expect(&bar, 1024);
        load_box(tile, a, c, &bar);
        load_box(tile + 512, b, c, &bar);
    }
    wait(&bar, 0);
    for (int k = threadIdx.x; k < 1024; k += 32) out[k] = tile[k];
}
#if RANK == 2
struct Two { int row; Map a; Map b; int unused; };
extern "C" __global__ void load_members(const __grid_constant__ Two two, unsigned char *out) {
    load_two(two.a, two.b, two.row, out);
}
extern "C" __global__ void load_pointers(const Map *a, const Map *b, int row, unsigned char *out) {
    load_two(*a, *b, row, out);
}
#endif
// Shared memory from in, and a box of it to the tensor.
extern "C" __global__ void store_one(const __grid_constant__ Map map, const int *start,
                                     const unsigned char *in, int whole) {
    unsigned char *tile = aligned();
    int c[5];
    for (int d = 0; d < 5; d++) c[d] = start[d];
    for (int k = threadIdx.x; k < whole; k += 32) tile[k] = in[k];
    fence();
    __syncthreads();
    if (threadIdx.x == 0) {
#ifdef REDUCE
        reduce_box(tile, map, c);
#else
        store_box(tile, map, c);
#endif
        commit();
        wait_group<0>();
    }
}
"""

SPANS = {None: 0, "32B": 32, "64B": 64, "128B": 128}


def kernel(name: str, rank: int, *options: str) -> smemkern.Kernel:
    every = ("-arch=compute_90", "-std=c++17", f"-DRANK={rank}", *options)
    return smemkern.Kernel(HELPERS + BULK + COPIES, name, options=every)


def box_of(array, box, start, steps=None, fill=0):
    """The box at start (in the array's order), with `fill` outside."""
    steps = steps or (1,) * array.ndim
    out = np.full([-(-n // s) for n, s in zip(box, steps, strict=True)], fill, array.dtype)
    for k in np.ndindex(out.shape):
        x = tuple(a + i * s for a, i, s in zip(start, k, steps, strict=True))
        if all(0 <= i < n for i, n in zip(x, array.shape, strict=True)):
            out[k] = array[x]
    return out


def swizzled(dense: bytes, span: int, background: bytes, row: int | None = None) -> bytes:
    """Shared memory with the box in it: chunk's address bits 4.. are xored with bits 7.. . Rows of
    `row` bytes, fewer than the span, lie a span apart."""
    out, row = bytearray(background), row or span
    for at in range(0, len(dense), 16):
        plain = at // row * span + at % row if span > row else at
        to = plain ^ ((plain >> 7) & (max(span, 16) // 16 - 1)) << 4
        out[to : to + 16] = dense[at : at + 16]
    return bytes(out)


def coordinates(start) -> np.ndarray:
    c = np.zeros(5, "i4")
    c[: len(start)] = start[::-1]
    return c


def load(array, box, start, device, *, swizzle=None, steps=None, fill=None, room=0):
    m = smemkern.TensorMap(array, box, swizzle=swizzle, element_strides=steps, fill=fill)
    taken = [-(-n // s) for n, s in zip(box, steps or (1,) * len(box), strict=True)]
    n = int(np.prod(taken)) * array.itemsize
    whole = -(-max(n, room) // 128) * 128
    out = np.zeros(whole, "u1")
    kernel("load_one", array.ndim)(
        1, 32, m, coordinates(start), out, n, whole, shared_bytes=whole + 1024, device=device
    )
    return out, n


def random_array(rng, shape, dtype):
    n = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 256, n, dtype="u1").view(dtype).reshape(shape)


# Starts lie inside, across each edge, and outside; the innermost at multiples of 16 bytes.
CASES = [
    ((100,), (32,), (88,), "f4"),
    ((37, 52), (9, 16), (30, 44), "f4"),
    ((37, 52), (9, 16), (40, 0), "i4"),
    ((37, 52), (9, 16), (3, 52), "i4"),
    ((11, 16), (16, 16), (0, 0), "u1"),
    ((9, 48), (4, 32), (5, 32), "u1"),
    ((33, 24), (7, 8), (1, 8), "f2"),
    ((9, 6), (4, 2), (7, 4), "f8"),
    ((9, 6), (4, 4), (7, 4), "f8"),
    ((5, 7, 12), (3, 2, 8), (3, 6, 8), "i4"),
    ((3, 4, 5, 16), (2, 3, 2, 8), (2, 3, 4, 8), "u2"),
    ((2, 3, 4, 5, 8), (2, 2, 3, 2, 4), (1, 2, 2, 4, 4), "f4"),
    ((1, 24), (2, 8), (0, 20), "f4"),
    ((5, 1, 12), (3, 1, 8), (3, 0, 8), "f4"),
    ((1, 1, 4), (2, 2, 4), (0, 0, 0), "f4"),
]
# Only loads may begin before the tensor does.
BEFORE = [
    ((100,), (32,), (-8,), "f4"),
    ((37, 52), (9, 16), (-3, -4), "f4"),
    ((33, 24), (7, 8), (1, -8), "f2"),
    ((3, 4, 5, 16), (2, 3, 2, 8), (2, -1, 4, 8), "u2"),
    ((2, 3, 4, 5, 8), (2, 2, 3, 2, 4), (1, 2, -1, 4, 4), "f4"),
]


@pytest.mark.parametrize(("shape", "box", "start", "dtype"), CASES + BEFORE)
def test_loads(nvrtc, device, rng, shape, box, start, dtype):
    array = random_array(rng, shape, dtype)
    got, n = load(array, box, start, device)
    assert got[:n].tobytes() == box_of(array, box, start).tobytes()
    assert (got[n:] == 0xA5).all()


@pytest.mark.parametrize(
    ("swizzle", "dtype", "rows"),
    list(itertools.product(["32B", "64B", "128B"], ["u1", "f2", "f4", "f8"], [1, 8, 19, 64])),
)
def test_swizzles(nvrtc, device, rng, swizzle, dtype, rows):
    span = SPANS[swizzle]
    box = (rows, span // np.dtype(dtype).itemsize)
    array = random_array(rng, (70, 2 * box[1]), dtype)
    start = (60, box[1] // 2)
    got, n = load(array, box, start, device, swizzle=swizzle)
    expected = swizzled(box_of(array, box, start).tobytes(), span, b"\xa5" * got.size)
    assert got.tobytes() == expected


@pytest.mark.parametrize("columns", [8, 16, 24, 40])
def test_between_short_rows_others_may_write(nvrtc, device, rng, columns):
    """Rows shorter than the swizzle are 128 bytes apart, and what is between is not the copy's: it
    is no race to write it, and never written if nobody does."""
    rows, used = 16, columns * 2 // 16
    m = smemkern.TensorMap(
        random_array(rng, (rows, columns), "f2"), (rows, columns), swizzle="128B"
    )
    chunk = np.arange(8 * rows)
    free = (chunk % 8 ^ chunk // 8 % 8) >= used
    call = (1, 32, m)
    rest = (2 * rows * columns, 8 * rows)
    out = np.zeros((8 * rows, 4), "u4")
    run = kernel("load_beside", 2)
    run(*call, free.astype("u1"), out, *rest, shared_bytes=128 * rows + 1024, device=device)
    assert np.array_equal(out[free], np.repeat(chunk[free], 4).reshape(-1, 4))

    def hazards(written):
        options = {"shared_bytes": 128 * rows + 1024}
        found = smemkern.trace(run, *call, written.astype("u1"), out, *rest, **options)
        return [h.kind for h in found.hazards]

    assert hazards(free) == []
    one = rng.choice(np.flatnonzero(free))
    assert hazards(free & (chunk != one)) == ["uninitialised"]
    one = rng.choice(np.flatnonzero(~free))
    assert hazards(free | (chunk == one)) != []


@pytest.mark.parametrize(
    ("box", "start", "steps"),
    [((9, 8), (1, 4), (2, 1)), ((16, 8), (30, 0), (5, 1)), ((8, 8), (-3, 4), (8, 1))],
)
def test_element_strides(nvrtc, device, rng, box, start, steps):
    array = random_array(rng, (41, 12), "i4")
    got, n = load(array, box, start, device, steps=steps)
    assert got[:n].tobytes() == box_of(array, box, start, steps).tobytes()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_fill_with_nan(nvrtc, device, rng, dtype):
    array = random_array(rng, (10, 16), dtype)
    got, n = load(array, (6, 16), (7, 8), device, fill="nan")
    expected = box_of(array, (6, 16), (7, 8), fill=np.nan)
    assert np.array_equal(got[:n].view(dtype).reshape(6, 16), expected, equal_nan=True)


def test_a_view_with_gaps(nvrtc, device, rng):
    base = random_array(rng, (20, 32), "f4")
    array = base[1::3, 4:24]
    got, n = load(array, (5, 8), (3, 16), device)
    assert got[:n].tobytes() == box_of(array, (5, 8), (3, 16)).tobytes()


def test_one_row_stands_for_all(nvrtc, device, rng):
    array = np.broadcast_to(random_array(rng, (1, 32), "f4"), (20, 32))
    got, n = load(array, (6, 8), (16, 16), device)
    assert got[:n].tobytes() == box_of(array, (6, 8), (16, 16)).tobytes()


def test_strides_of_dimensions_of_one_mean_nothing(nvrtc, device, rng):
    base = random_array(rng, (7, 3, 4), "f4")
    array = base[2:3, :, :1]  # rows of one element, 16 bytes apart
    strange = np.lib.stride_tricks.as_strided(array, strides=(5, 16, 3))
    for view in (array, strange):
        got, n = load(view, (1, 4, 4), (0, 1, 0), device)
        assert got[:n].tobytes() == box_of(array, (1, 4, 4), (0, 1, 0)).tobytes()


@pytest.mark.parametrize(("shape", "box", "start", "dtype"), CASES)
def test_stores(nvrtc, device, rng, shape, box, start, dtype):
    array = random_array(rng, shape, dtype)
    tile = random_array(rng, box, dtype)
    expected = array.copy()
    for k in np.ndindex(*box):
        x = tuple(a + i for a, i in zip(start, k, strict=True))
        if all(0 <= i < n for i, n in zip(x, shape, strict=True)):
            expected[x] = tile[k]
    m = smemkern.TensorMap(array, box)
    n = tile.nbytes
    kernel("store_one", len(shape))(
        1, 32, m, coordinates(start), tile, n, shared_bytes=n + 1024, device=device
    )
    assert array.tobytes() == expected.tobytes()


SHORT_ROWS = [(s, row) for s, span in SPANS.items() if s for row in range(16, span + 1, 16)]


@pytest.mark.parametrize(("swizzle", "row"), SHORT_ROWS)
def test_rows_shorter_than_the_swizzle(nvrtc, device, rng, swizzle, row):
    """They lie a span apart; what is between them keeps its bytes (H200: all of these cases)."""
    rows, span = int(rng.integers(1, 20)), SPANS[swizzle]
    array = random_array(rng, (24, row), "u1")
    got, _ = load(array, (rows, row), (3, 0), device, swizzle=swizzle, room=rows * span)
    dense = box_of(array, (rows, row), (3, 0)).tobytes()
    assert got.tobytes() == swizzled(dense, span, b"\xa5" * got.size, row)


@pytest.mark.parametrize(("swizzle", "row"), SHORT_ROWS)
def test_swizzled_stores(nvrtc, device, rng, swizzle, row):
    box = (16, row // 4)
    array = np.zeros((16, box[1]), "i4")
    tile = random_array(rng, box, "i4")
    background = rng.bytes(16 * SPANS[swizzle])
    there = np.frombuffer(swizzled(tile.tobytes(), SPANS[swizzle], background, row), "u1")
    m = smemkern.TensorMap(array, box, swizzle=swizzle)
    kernel("store_one", 2)(
        1,
        32,
        m,
        coordinates((0, 0)),
        there,
        there.size,
        shared_bytes=there.size + 1024,
        device=device,
    )
    assert (array == tile).all()


REDUCTIONS = [
    ("add", "i4", np.add),
    ("add", "u8", np.add),
    ("add", "f4", np.add),
    ("add", "f2", np.add),
    ("min", "i4", np.minimum),
    ("max", "u4", np.maximum),
    ("and", "u4", np.bitwise_and),
    ("or", "i4", np.bitwise_or),
    ("xor", "u8", np.bitwise_xor),
]


@pytest.mark.parametrize(("op", "dtype", "model"), REDUCTIONS)
def test_reductions(nvrtc, device, rng, op, dtype, model):
    array, tile = random_array(rng, (13, 16), dtype), random_array(rng, (8, 16), dtype)
    expected = array.copy()
    expected[9:, 8:] = model(expected[9:, 8:], tile[:4, :8])
    m = smemkern.TensorMap(array, (8, 16))
    kernel("store_one", 2, f'-DREDUCE="{op}"')(
        1,
        32,
        m,
        coordinates((9, 8)),
        tile,
        tile.nbytes,
        shared_bytes=tile.nbytes + 1024,
        device=device,
    )
    assert array.tobytes() == expected.tobytes()


def test_two_maps_of_one_array(nvrtc, device, rng):
    source = (
        HELPERS
        + BULK
        + COPIES
        + r"""
    extern "C" __global__ void both(const __grid_constant__ Map from,
                                    const __grid_constant__ Map to) {
        __shared__ alignas(1024) unsigned char tile[16 * 64];
        __shared__ u64 b;
        const int there[5] = {0, 16}, here[5] = {0, 0};
        if (threadIdx.x) return;
        asm volatile("prefetch.tensormap [%0];" :: "l"(&from) : "memory");
        init(&b, 1);
        fence_init();
        fence();
        arrive_expect(&b, sizeof tile);
        load_box(tile, from, here, &b);
        wait(&b, 0);
        store_box(tile, to, there);
        commit();
        wait_group<0>();
    }"""
    )
    array = random_array(rng, (32, 16), "i4")
    expected = array.copy()
    expected[16:] = expected[:16]
    k = smemkern.Kernel(source, "both", options=("-arch=compute_90", "-DRANK=2"))
    box = (16, 16)
    k(1, 32, smemkern.TensorMap(array, box), smemkern.TensorMap(array, box), device=device)
    assert (array == expected).all()


@pytest.mark.parametrize(
    ("shape", "dtype", "box", "options", "message"),
    [
        ((8, 8), "f4", (8,), {}, "1 elements"),
        ((8, 8), "f4", (8, 3), {}, "multiple of 16"),
        ((8, 7), "f4", (8, 4), {}, "28 bytes apart"),
        ((8, 8), "f4", (257, 8), {}, "1 to 256"),
        ((8, 8), "f4", (0, 8), {}, "element 0"),
        ((0, 8), "f4", (1, 8), {}, "0 elements"),
        ((2, 2, 2, 2, 2, 8), "f4", (1,) * 6, {}, "1 to 5"),
        ((8, 32), "f4", (8, 16), {"swizzle": "32B"}, "64 bytes, more than the 32"),
        ((8, 8), "f4", (8, 8), {"swizzle": "16B"}, "swizzle must be"),
        ((8, 8), "i4", (8, 8), {"fill": "nan"}, "no NaN"),
        ((8, 8), "f4", (8, 8), {"element_strides": (9, 1)}, "1 to 8"),
        ((8, 8), "f4", (8, 8), {"element_strides": (1, 2)}, "1 in the innermost"),
    ],
)
def test_rules(shape, dtype, box, options, message):
    with pytest.raises(ValueError, match=message):
        smemkern.TensorMap(np.zeros(shape, dtype), box, **options)


def test_types():
    for dtype in ["c8", "?", ">f4", "f4,f4"]:
        with pytest.raises(TypeError, match="dtype"):
            smemkern.TensorMap(np.zeros((8, 16), dtype), (8, 16))
    with pytest.raises(ValueError, match="contiguous"):
        smemkern.TensorMap(np.zeros((8, 16), "f4").T, (8, 8))
    m = smemkern.TensorMap(np.zeros((8, 16), "f4"), (4, 8), swizzle="32B")
    assert m.box == (4, 8)
    assert m.array.shape == (8, 16)
    assert repr(m) == "<smemkern.TensorMap of float32 (8, 16), box (4, 8), swizzle '32B'>"


MISUSE = r"""
extern "C" __global__ void k(const __grid_constant__ Map map, const Map *other) {
    __shared__ alignas(1024) unsigned char tile[1024];
    __shared__ u64 b;
    const int c[5] = {0};
    init(&b, 1);
    BODY
}"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("load_box(tile + 64, map, c, &b);", "must begin at a multiple of 128"),
        ("int odd[5] = {-2}; load_box(tile, map, odd, &b);", "-2, which is -8 bytes .* 16 bytes"),
        ("int odd[5] = {3}; store_box(tile, map, odd);", "3, which is 12 bytes .* 16 bytes"),
        ("int left[5] = {-4}; store_box(tile, map, left);", "-4 of dimension 0 .* only loads"),
        ("int above[5] = {4, -1}; store_box(tile, map, above);", "-1 of dimension 1 .* only loads"),
        ("load_box(tile + 896, map, c, &b);", "out of bounds"),
        ("load_box(tile, *other, c, &b);", "no tensor map"),
        ("u64 *p = (u64 *)other; load_box(tile, *(Map *)(p + 4), c, &b);", "no tensor map"),
        (
            "Map *p = (Map *)other; *p = map; ((u64 *)p)[1] += 1ull << 43;"
            " load_box(tile, *p, c, &b);",
            "out of bounds",
        ),
        (
            "Map *p = (Map *)other; *p = map; ((u64 *)p)[8] = 1ull << 31;"
            " int far[5] = {0, 1 << 20}; load_box(tile, *p, far, &b);",
            "out of bounds",
        ),
    ],
)
def test_misuse_is_named(nvrtc, body, message):
    source = HELPERS + BULK + COPIES + MISUSE.replace("BODY", body)
    k = smemkern.Kernel(source, "k", options=("-arch=compute_90", "-DRANK=2"))
    m = smemkern.TensorMap(np.zeros((8, 8), "f4"), (8, 8))
    with pytest.raises(smemkern.LaunchError, match=message):
        k(1, 1, m, np.zeros(1024, "u1"), device="emu")


BESIDE = r"""
extern "C" __global__ void k(const __grid_constant__ Map map, char *y, int first, int pitch) {
    unsigned char *tile = aligned();
    int c[5] = {};
    for (int k = threadIdx.x; k < 8 * pitch; k += 32) tile[k] = k;
    fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        store_box(tile, map, c);
        commit();
        wait_group<0>();
    }
    if (threadIdx.x == 1)
        for (int row = 0; row < 8; row++)
            for (int k = first; k < pitch; k++) y[row * pitch + k] = -1;
}
"""


WIDTH = 64  # bytes of a row, of whose tensor the last columns are no part


def partial_rows(drawn, dtype) -> tuple[np.ndarray, int, int]:
    """An array of such rows, the tensor's columns, and the bytes that their chunks have."""
    itemsize = np.dtype(dtype).itemsize
    width = WIDTH // itemsize
    columns = int(drawn.choice([n for n in range(1, width) if n * itemsize % 16]))
    return np.zeros((8, width), dtype), columns, -(-columns * itemsize // 16) * 16


def kernel_beside() -> smemkern.Kernel:
    source = HELPERS + BULK + COPIES + BESIDE
    return smemkern.Kernel(source, "k", options=("-arch=compute_90", "-DRANK=2"))


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4"])
def test_a_store_overwrites_the_rest_of_a_rows_last_chunk(nvrtc, device, drawn, dtype):
    """A row of a tensor that ends within 16 bytes is stored up to their end (H200)."""
    y, columns, end = partial_rows(drawn, dtype)
    expected = y.view("u1").copy()
    expected[:, :end] = np.arange(8 * WIDTH).reshape(8, WIDTH)[:, :end] % 256
    tensor = smemkern.TensorMap(y[:, :columns], y.shape)
    kernel_beside()(1, 32, tensor, y, WIDTH, WIDTH, shared_bytes=2048, device=device)
    assert y.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4"])
def test_a_store_races_with_the_rest_of_a_rows_last_chunk(nvrtc, drawn, dtype):
    """Another thread writes what follows a row, or only what follows its last chunk."""
    y, columns, end = partial_rows(drawn, dtype)
    tensor = smemkern.TensorMap(y[:, :columns], y.shape)
    for first in (end, columns * y.itemsize):
        trace = smemkern.trace(kernel_beside(), 1, 32, tensor, y, first, WIDTH, shared_bytes=2048)
        found = [(h.kind, h.count) for h in trace.hazards]
        assert found == [("WAW", 8 * (end - first))] * (first < end)


def test_parameters_that_are_no_map(nvrtc):
    k = kernel("load_one", 2)
    m = smemkern.TensorMap(np.zeros((8, 8), "f4"), (8, 8))
    with pytest.raises(TypeError, match="argument 3 is a TensorMap"):
        k(1, 32, m, np.zeros(5, "i4"), np.zeros(1, "u1"), m, 0, device="emu")


@pytest.mark.parametrize(
    "text",
    [
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        " [t], [%d0, {0, 0, 0, 0}], [b], {%h0, %h0};",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes"
        " [t], [%d0, {0, 0, 0, 0, 0}], [b];",
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%d0, {0, 0}], [t];",
    ],
)
def test_unknown_forms_are_refused(text):
    ptx = (
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k() {"
        " .reg .b64 %d<2>; .reg .b16 %h<2>; .shared .align 128 .b32 t[8];"
        " .shared .align 8 .b64 b; " + text + " ret; }\n"
    )
    k = smemkern.Kernel(ptx, "k")
    with pytest.raises(smemkern.UnsupportedInstructionError, match=r"cp\.async\.bulk\.tensor"):
        k(1, 1, device="emu")


# ---- maps that are reached by pointers, and maps in structs ----

TWO = np.dtype(
    {
        "names": ["row", "a", "b", "unused"],
        "formats": ["i4", "V128", "V128", "i4"],
        "offsets": [0, 64, 192, 320],
        "itemsize": 384,
    }
)


def two_maps(rng):
    """Two tensors, their maps, and what load_two gives from row 3 on."""
    arrays = [random_array(rng, (20, 16), "f4"), random_array(rng, (9, 24), "i4")]
    arrays[0].flags.writeable = False
    maps = [smemkern.TensorMap(array, (8, 16)) for array in arrays]
    return maps, b"".join(box_of(array, (8, 16), (3, 0)).tobytes() for array in arrays)


def test_pointers_to_maps(nvrtc, device, rng):
    (a, b), expected = two_maps(rng)
    out = np.zeros(1024, "u1")
    load = kernel("load_pointers", 2)
    load(1, 32, a, b, 3, out, shared_bytes=2048 + 1024, device=device)
    assert out.tobytes() == expected


def test_maps_in_a_struct(nvrtc, device, rng):
    (a, b), expected = two_maps(rng)
    out = np.zeros(1024, "u1")
    two = np.zeros(1, TWO)
    two["row"], two["a"], two["b"] = 3, np.void(bytes(a)), np.void(bytes(b))
    before = two.tobytes()
    load = kernel("load_members", 2)
    for given in (two, two[0]):
        out[:] = 0
        load(1, 32, given, out, shared_bytes=2048 + 1024, device=device)
        assert out.tobytes() == expected
    assert two.tobytes() == before


def test_maps_in_a_struct_keep_their_memory_apart(nvrtc, rng):
    """What lies between two arrays is no memory of the kernel's."""
    block = random_array(rng, (60, 16), "i4")
    a, b = (smemkern.TensorMap(block[k : k + 16], (8, 16)) for k in (0, 44))
    two, out = np.zeros(1, TWO), np.zeros(1024, "u1")
    two["a"], two["b"] = np.void(bytes(a)), np.void(bytes(b))
    load = kernel("load_members", 2)
    load(1, 32, two, out, shared_bytes=3072)
    assert out.tobytes() == block[:8].tobytes() + block[44:52].tobytes()
    text = """.version 8.3\n.target sm_90\n.address_size 64
    .visible .entry k(.param .align 64 .b8 s[384]) { .reg .b64 %a; .reg .b32 %r;
    ld.param.u64 %a, [s+72]; ld.global.u32 %r, [%a+1024]; ret; }"""
    made = smemkern.Kernel(text, "k")
    with pytest.raises(smemkern.LaunchError, match="the first byte past the end of a buffer .1024"):
        made(1, 1, two, device="emu")


def test_an_output_through_a_pointer_to_a_map(nvrtc, rng):
    """A writable array is written back, and its memory is that of the same array elsewhere."""
    source = HELPERS + BULK + COPIES.replace("const __grid_constant__ Map map", "const Map *p")
    source = source.replace("int c[5];", "const Map &map = *p; int c[5];")
    array, tile = np.zeros((20, 16), "i4"), random_array(rng, (8, 16), "i4")
    store = smemkern.Kernel(
        source, "store_one", options=("-arch=compute_90", "-std=c++17", "-DRANK=2")
    )
    store(
        *(1, 32, smemkern.TensorMap(array, (8, 16)), coordinates((5, 0)), tile, tile.nbytes),
        shared_bytes=tile.nbytes + 1024,
    )
    assert (array[5:13] == tile).all()
    assert not array[:5].any()
    assert not array[13:].any()


def test_a_pointed_map_is_read_only_and_ends(rng):
    head = ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 m)"
    tensor = smemkern.TensorMap(random_array(rng, (8, 16), "f4"), (8, 16))
    body = "{{ .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [m]; {} ret; }}"
    smemkern.Kernel(head + body.format("ld.global.u32 %r, [%p+124];"), "k")(1, 1, tensor)
    for wrong, match in (
        ("st.global.u32 [%p], 0;", "writes 4 bytes"),
        ("ld.global.u32 %r, [%p+128];", "the first byte past the end of a buffer .128 bytes"),
    ):
        made = smemkern.Kernel(head + body.format(wrong), "k")
        with pytest.raises(smemkern.LaunchError, match=match):
            made(1, 1, tensor, device="emu")


def test_bytes_of_maps(rng):
    array = random_array(rng, (8, 16), "f4")
    a, b = (smemkern.TensorMap(array, (8, 16)) for _ in range(2))
    assert len(bytes(a)) == 128
    assert bytes(a) == bytes(a) != bytes(b)
    address = array.ctypes.data.to_bytes(8, "little")
    assert address not in bytes(a)


def test_bytes_of_a_map_that_is_gone(nvrtc, rng):
    (a, b), _ = two_maps(rng)
    two = np.zeros(1, TWO)
    two["a"], two["b"] = np.void(bytes(a)), np.void(bytes(b))
    load = kernel("load_members", 2)
    del b
    with pytest.raises(ValueError, match="argument 0 contains the bytes of a TensorMap that does"):
        load(1, 32, two, np.zeros(1024, "u1"), shared_bytes=3072, device="emu")


def test_bytes_of_no_map(nvrtc, rng):
    """Bytes of another process, or any others, are no tensor map to the kernel."""
    (a, b), _ = two_maps(rng)
    two = np.zeros(1, TWO)
    two["a"], two["b"] = np.void(bytes(a)), np.void(rng.bytes(16) + bytes(b)[16:])
    load = kernel("load_members", 2)
    with pytest.raises(smemkern.LaunchError, match="there is no tensor map at"):
        load(1, 32, two, np.zeros(1024, "u1"), shared_bytes=3072, device="emu")


def test_maps_elsewhere_in_a_struct(nvrtc, rng):
    """At other places than multiples of 64 they are bytes like any others."""
    head = ".version 8.3\n.target sm_90\n.address_size 64\n"
    text = (
        head
        + """.visible .entry k(.param .align 64 .b8 s[256], .param .u64 o) {
    .reg .b64 %o; .reg .b32 %r; ld.param.u64 %o, [o]; ld.param.u32 %r, [s+32];
    st.global.u32 [%o], %r; ret; }"""
    )
    (a, _), _ = two_maps(rng)
    given, out = np.zeros(256, "u1"), np.zeros(1, "u4")
    given[32:160] = np.frombuffer(bytes(a), "u1")
    smemkern.Kernel(text, "k")(1, 1, given, out)
    assert out[0] == np.frombuffer(bytes(a)[:4], "u4")[0]


def test_a_map_for_a_number(rng):
    head = (
        ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry k(.param .{} m) {{ ret; }}"
    )
    tensor = smemkern.TensorMap(random_array(rng, (8, 16), "f4"), (8, 16))
    for kind in ("u32", "f64", "align 8 .b8 m2[16], .param .u64"):
        text = head.format(kind).replace(" m2[16], .param .u64 m", " m[16]")
        made = smemkern.Kernel(text, "k")
        with pytest.raises(
            TypeError, match="argument 0 is a TensorMap, but .* or a pointer to one"
        ):
            made(1, 1, tensor, device="emu")
