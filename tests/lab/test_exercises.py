"""The exercises of the laboratory: each start fails for the reason it is about, each solution
passes, and what evades the task does not; by the laboratory's compiler and by NVRTC."""

import numpy as np
import pytest
from exercise_check import Checked, filled
from lab_compiler import kernels

from buildtools.exercises import exercises

pytestmark = pytest.mark.usefixtures("nvrtc")

EXERCISES = {e["name"]: e for e in exercises()}
compilers = pytest.mark.parametrize("which", [0, 1], ids=["own", "nvrtc"])
every = pytest.mark.parametrize("name", EXERCISES)

# What the start breaks: the task.
START_FAILS = {
    "read_the_counts": [],  # its questions are not answered
    "every_second_word": ["conflict_factor", "shared_wavefronts"],
    "transpose_padding": ["conflict_factor"],
    "transpose_swizzle": ["conflict_factor"],
    "missing_barrier": ["hazards", "values"],
    "one_barrier_too_many": ["barriers"],
    "reduction": ["conflict_factor", "shared_wavefronts"],
    "last_warp": ["hazards"],
    "vector_loads": ["global_requests", "shared_requests"],
    "histogram": ["conflict_factor", "shared_wavefronts"],
    "tiled_product": ["shared_wavefronts"],
    "double_buffer": ["barriers"],
}


def check(name, source, which):
    return Checked(EXERCISES[name], source, lambda text, entry: kernels(text, entry)[which])


@every
@compilers
def test_start_fails_for_its_reason(name, which):
    assert check(name, EXERCISES[name]["start"], which).failed == START_FAILS[name]


@every
@compilers
def test_solution_passes(name, which):
    checked = check(name, EXERCISES[name]["solution"], which)
    assert not checked.failed, checked.found


# ---- what the reference kernels compute, by NumPy ----

EXPECTED = {
    "read_the_counts": lambda x, y: [x, x[:128] + x[:256:2] + x[::4]],
    "every_second_word": lambda x, y: [x, np.concatenate([x[::2], x[1::2]])],
    "transpose_padding": lambda x, y, rows, cols: [x, x.T],
    "transpose_swizzle": lambda x, y, rows, cols: [x, x.T],
    "missing_barrier": lambda x, y: [x, x.reshape(3, 128)[:, ::-1]],
    "one_barrier_too_many": lambda x, y: [x, x[:-2] + x[1:-1] + x[2:]],
    "reduction": lambda x, sums: [x, x.reshape(4, 256).sum(1)],
    "last_warp": lambda x, sums: [x, x.reshape(3, 64).sum(1)],
    "vector_loads": lambda x, y: [x, x[::-1]],
    "histogram": lambda kind, weight, sums, n: [kind, weight, np.bincount(kind, weight, 8)],
    "tiled_product": lambda a, b, c: [a, b, a @ b],
    "double_buffer": lambda a, b, c, k: [a, b, a @ b],
}


@every
def test_reference(name):
    exercise = EXERCISES[name]
    want = EXPECTED[name](*[filled(argument) for argument in exercise["arguments"]])
    got = check(name, exercise["solution"], 0).reference.arrays()
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert np.array_equal(a.ravel(), b.ravel())
        assert np.any(a)


# ---- what evades the task ----

NO_TILE = "the tile is left out"
STEP = "tile[t] += t < step ? tile[t + step] : 0;"
BARRIERS = f"{{ __syncthreads(); {STEP} __syncthreads(); }}"
CHEATS = [
    ("every_second_word", NO_TILE, "reference", "shared_requests"),
    ("transpose_padding", NO_TILE, None, "shared_requests"),
    ("transpose_swizzle", "padding", ("TILE][TILE]", "TILE][TILE + 1]"), "shared_bytes"),
    ("missing_barrier", NO_TILE, "reference", "shared_requests"),
    ("missing_barrier", "two barriers", ("y[f", "__syncthreads();__syncthreads();y[f"), "barriers"),
    ("one_barrier_too_many", "the wrong one", ("__syncthreads();\n        int", "int"), "hazards"),
    ("one_barrier_too_many", "no barrier", ("__syncthreads();", ""), "hazards"),
    ("reduction", "one lane adds all", None, "shared_wavefronts"),
    ("reduction", NO_TILE, None, "shared_requests"),
    ("last_warp", "barriers of the block", (STEP, BARRIERS), "barriers"),
    ("last_warp", NO_TILE, None, "shared_requests"),
    ("vector_loads", NO_TILE, None, "shared_requests"),
    ("histogram", "no atomics", None, "keep"),
    ("histogram", "atomics in global memory", None, "shared_requests"),
    ("tiled_product", NO_TILE, None, "global_load_requests"),
    ("double_buffer", "no second barrier", None, "hazards"),
    ("double_buffer", "larger tiles", ("TILE 16", "TILE 32"), "keep"),
    ("double_buffer", NO_TILE, None, "barriers"),
]
SOURCES = {
    ("transpose_padding", NO_TILE): """__global__ void transpose(const float *x, float *y, int rows,
        int cols) {
        int col = blockIdx.x * 32 + threadIdx.x;
        for (int r = blockIdx.y * 32 + threadIdx.y; r < blockIdx.y * 32 + 32; r += 8)
            y[col * rows + r] = x[r * cols + col];
    }""",
    ("reduction", "one lane adds all"): """__global__ void reduce(const int *x, int *sums) {
        __shared__ int tile[256];
        int t = threadIdx.x, sum = 0;
        tile[t] = x[blockIdx.x * 256 + t];
        __syncthreads();
        if (t == 0) {
            for (int i = 0; i < 256; i++) sum += tile[i];
            sums[blockIdx.x] = sum;
        }
    }""",
    ("reduction", NO_TILE): """__global__ void reduce(const int *x, int *sums) {
        if (threadIdx.x == 0) {
            int sum = 0;
            for (int i = 0; i < 256; i++) sum += x[blockIdx.x * 256 + i];
            sums[blockIdx.x] = sum;
        }
    }""",
    ("last_warp", NO_TILE): """__global__ void reduce_warp(const int *x, int *sums) {
        int t = threadIdx.x, v = x[blockIdx.x * 64 + t] + x[blockIdx.x * 64 + t + 32];
        for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);
        if (t == 0) sums[blockIdx.x] = v;
    }""",
    ("vector_loads", NO_TILE): """__global__ void reverse(const float *x, float *y) {
        float4 v = ((const float4 *)x)[63 - threadIdx.x];
        ((float4 *)y)[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
    }""",
    ("histogram", "no atomics"): """__global__ void histogram(const int *kind, const int *weight,
        int *sums, int n) {
        __shared__ int bins[8][32];
        int t = threadIdx.x;
        for (int i = t; i < 256; i += 128) bins[i / 32][i % 32] = 0;
        __syncthreads();
        for (int i = t; i < n; i += 128) bins[kind[i]][t % 32] += weight[i];
        __syncthreads();
        if (t < 8) {
            int sum = 0;
            for (int k = 0; k < 32; k++) sum += bins[t][(t + k) % 32];
            sums[t] = sum;
        }
    }""",
    ("histogram", "atomics in global memory"): """__global__ void histogram(const int *kind,
        const int *weight, int *sums, int n) {
        for (int i = threadIdx.x; i < n; i += 128) atomicAdd(&sums[kind[i]], weight[i]);
    }""",
    ("tiled_product", NO_TILE): """__global__ void product(const float *A, const float *B,
        float *C) {
        for (int r = threadIdx.y; r < 32; r += 8) {
            float sum = 0;
            for (int k = 0; k < 32; k++) sum += A[r * 32 + k] * B[k * 32 + threadIdx.x];
            C[r * 32 + threadIdx.x] = sum;
        }
    }""",
    ("double_buffer", NO_TILE): """__global__ void product(const float *A, const float *B, float *C,
        int K) {
        float sum = 0;
        for (int k = 0; k < K; k++) sum += A[threadIdx.y * K + k] * B[k * 16 + threadIdx.x];
        C[threadIdx.y * 16 + threadIdx.x] = sum;
    }""",
}


def cheat_source(name, cheat, how):
    start = EXERCISES[name]["start"]
    if (name, cheat) in SOURCES:
        return SOURCES[name, cheat]
    if how == "reference":
        return EXERCISES[name]["reference"]
    if cheat == "no second barrier":
        before, _, after = start.rpartition("        __syncthreads();\n")
        return before + after
    assert how[0] in start
    return start.replace(*how)


@pytest.mark.parametrize(
    ("name", "cheat", "how", "failing"), CHEATS, ids=[f"{c[0]}-{c[1]}" for c in CHEATS]
)
@compilers
def test_no_cheat_passes(name, cheat, how, failing, which):
    assert failing in check(name, cheat_source(name, cheat, how), which).failed


# ---- other ways that are right, too ----

ALTERNATIVES = [
    (
        "every_second_word",
        "a half for each channel",
        ("tile[256]", "tile[144 + 128]"),
        ("tile[t] = x[t]", "tile[t % 2 * 144 + t / 2] = x[t]"),
        ("tile[2 * t]", "tile[t]"),
        ("tile[2 * (t - 128) + 1]", "tile[144 + t - 128]"),
    ),
    (
        "transpose_padding",
        "a swizzle",
        ("[r][threadIdx.x]", "[r][(threadIdx.x + r) % TILE]"),
        ("[threadIdx.x][r]", "[threadIdx.x][(threadIdx.x + r) % TILE]"),
    ),
    (
        "transpose_swizzle",
        "a rotation",
        ("[r][threadIdx.x]", "[r][(threadIdx.x + r) % TILE]"),
        ("[threadIdx.x][r]", "[threadIdx.x][(threadIdx.x + r) % TILE]"),
    ),
    ("one_barrier_too_many", "the second", ("__syncthreads();\n        y", "y")),
    (
        "last_warp",
        "registers between two barriers of the warp",
        ("for (", "__syncwarp(); for ("),
        (
            STEP,
            "{ int v = tile[t] + (t < step ? tile[t + step] : 0); __syncwarp(); tile[t] = v; "
            "__syncwarp(); }",
        ),
    ),
    (
        "double_buffer",
        "pointers that change places",
        ("float a[TILE][TILE], b[TILE][TILE]", "float m[2][TILE][TILE], w[2][TILE][TILE]"),
        ("float sum = 0;", "float sum = 0, (*a)[TILE] = m[0], (*b)[TILE] = w[0];"),
        (
            "b[k][c];\n        __syncthreads();",
            "b[k][c];\n        a = first / TILE % 2 ? m[0] : m[1];"
            "\n        b = first / TILE % 2 ? w[0] : w[1];",
        ),
    ),
]


@pytest.mark.parametrize(
    ("name", "edits"),
    [(a[0], a[2:]) for a in ALTERNATIVES],
    ids=[f"{a[0]}-{a[1]}" for a in ALTERNATIVES],
)
@compilers
def test_other_solutions_pass(name, edits, which):
    source = EXERCISES[name]["start"]
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    checked = check(name, source, which)
    assert not checked.failed, (checked.found, source)


# ---- the data ----


def test_questions_ask_for_what_the_trace_says():
    exercise = EXERCISES["read_the_counts"]
    rows = check("read_the_counts", exercise["start"], 0).run.trace.shared
    for question in exercise["questions"]:
        (row,) = [row for row in rows if row.line == question["line"]]
        columns = {
            "requests": row.requests,
            "wavefronts": row.wavefronts,
            "wavefronts per request": row.wavefronts / row.requests,
        }
        assert question["answer"] == columns[question["column"]]
        assert f"line {question['line']} " in question["text"]


@every
def test_data(name):
    exercise = EXERCISES[name]
    assert set(exercise) - {"questions"} == {
        *("name", "title", "text", "kernel", "grid", "block", "shared_bytes"),
        *("reference_grid", "reference_block", "arguments", "limits", "hints", "learned"),
        *("start", "solution", "reference"),
    }
    assert len(exercise["hints"]) == len(set(exercise["hints"])) == 3
    assert exercise["learned"].count(". ") + exercise["learned"].count("; ") >= 1
    assert exercise["limits"][0] in ({"measure": "values"}, {"measure": "hazards", "at_most": 0})
    for source in ("start", "solution", "reference"):
        assert f"void {exercise['kernel']}(" in exercise[source]
    solved_by_editing = "questions" not in exercise
    assert (exercise["start"] != exercise["solution"]) == solved_by_editing


def test_twelve_in_order():
    assert len(EXERCISES) == 12
    titles = [e["title"] for e in EXERCISES.values()]
    assert len(set(titles)) == 12
