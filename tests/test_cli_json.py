"""--json of every command holds what docs/command-line.md promises, in every form that it has."""

import json
from pathlib import Path

import numpy as np
import pytest

import json_pages
import run_programs
import smemkern
from command import PAGE, write_examples
from smemkern import Device
from smemkern.__main__ import COMMANDS
from smemkern._cli.common import plain
from smemkern._performance import ncu
from smemkern._performance.bench import Fit
from smemkern._performance.profile import Profile, ProfileLine, ProfileRow
from smemkern._render.rows import Rows
from test_trace_rows import PTX

SUM = "--grid 4 --block 256 --arg 'f32[1000]=random' --arg 'f32[4]' --arg i32=1000"
RACE = """__device__ __forceinline__ void set(int *y) { y[threadIdx.x / 32] = threadIdx.x; }
extern "C" __global__ void race(int *y) { set(y); }"""
TILE = """extern "C" __global__ void tile(float *y) {
    __shared__ float t[32][32];
    t[threadIdx.x][threadIdx.y] = 1;
    __syncthreads();
    y[threadIdx.x + 32 * threadIdx.y] = t[threadIdx.y][threadIdx.x];
}"""
BENIGN = """__device__ __forceinline__ void add(int *y) {
    int old = *y;
    atomicCAS(y, old, old + 1);
}
extern "C" __global__ void benign(int *y) { add(y); }"""
JUDGED = """--grid 'cdiv(n,256)' --block 256 --size n=300 --arg 'f32[n]=random'
    --arg 'f32[cdiv(n,256)]' --arg i32=n"""
DOCUMENTS = {
    "info": [""],
    "demo": ["--device emu"],
    "bench": [
        "--shape 16 --shape 8x24x8 --variant padded --variant tiled --device emu",
        "--op transpose --shape 16 --variant tiled --device emu",
        "--shape 8 --variant tiled --device emu --retune",
    ],
    "trace": [
        "gemm --shape 16 16 16",
        "gemm --shape 0 4 4",
        "gemm --shape 64 64 64 --variant conflicted --param tile=16 --blocks 1",
        "transpose --variant naive",
        "probe --variant copy_async",
        "k.ptx --grid 2 --block 32 --arg i32[64]",
        f"sum.cu {SUM}",
        "race.cu --grid 1 --block 64 --arg i32[4]",
        "gemm --shape 32 32 32 --variant conflicted --max-factor 1",
        "k.ptx --grid 2 --block 32 --arg i32[64] --machine-code",
    ],
    "banks": [
        "",
        "--stride 4 --width 8 --op store",
        "--stride 33",
        "--stride 32 --arch sm_13",
        "--tile 32x32",
        "--tile 16x24 --itemsize 2 --access row --access column",
        "--tile 16x24",
    ],
    "occupancy": [
        "--registers 0 --threads 1025",
        "--registers 64 --shared 49152 --arch A100 --curve",
        "k.ptx --threads 128 --carveout 50",
    ],
    "profile": ["gemm"],
    "check": [
        f"sum.cu {SUM}",
        "race.cu --grid 1 --block 64 --arg i32[4]",
        "benign.cu --grid 1 --block 64 --arg i32[1]",
        "tile.cu --grid 1 --block 32,32 --arg f32[1024] --max-factor 2",
        "k.ptx --grid 1 --block 32 --arg i32[8]",
        "k.ptx --grid 1 --block 32 --arg i32[64]",
    ],
    "ci": ["src", "wrong.cu", "k.ptx"],
    "judge": [
        f"ref.cu sum.cu {JUDGED}",
        f"ref.cu ref.cu {JUDGED} --size n=100",
        f"ref.cu wrong.cu {JUDGED}",
        "one.cu race.cu --grid 1 --block 64 --arg i32[2]",
        f"ref.cu ref.cu {JUDGED} --block 64 --reference-block 256",
    ],
    "share": [
        "k.ptx --grid 2 --block 32 --arg i32[64] --link",
        "k.ptx --grid 2 --block 32 --arg i32[64] -o out.html --page page.html",
    ],
    "debug": [
        f"sum.cu {SUM} -ex 'advance hazard 1' -ex wrong",
        "k.ptx --grid 2 --block 32 --arg i32[64] -ex 'info line'",
    ],
    "run": [
        "--counts-only --suppressions rules ./everything",
        "./everything",
        "--max-factor 1 ./everything a",
    ],
    "completion": ["bash"],
}


@pytest.fixture
def document(command, tmp_path, monkeypatch, short_demo):
    """What a command prints, with a GPU, ncu and long measurements made up."""
    write_examples(tmp_path)
    (tmp_path / "wrong.cu").write_text("// smemkern: check --grid 1")
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "race.cu").write_text(RACE)
    (tmp_path / "tile.cu").write_text(TILE)
    (tmp_path / "one.cu").write_text(RACE.replace("y[", "if (threadIdx.x % 32 == 0) y["))
    (tmp_path / "benign.cu").write_text(BENIGN)
    (tmp_path / "page.html").write_text('<script type="text/plain" id="shared"></script>')
    monkeypatch.chdir(tmp_path)
    gpu = Device("cuda:0", "Some GPU", (9, 0), 132, 1980.0, 2**37, 232448)
    monkeypatch.setattr(
        "smemkern._device.devices.devices", lambda: Rows([gpu, *smemkern.devices()])
    )
    monkeypatch.setattr(ncu, "find_ncu", lambda: "/somewhere/ncu")
    fits = Rows([Fit("tiled", "float32", "aligned", 9, 0.1)])
    monkeypatch.setattr("smemkern._performance.bench.Bench.retune", lambda self: fits)
    monkeypatch.setattr("smemkern._performance.bench.ALL_DTYPES", ("float32",))
    monkeypatch.setattr("smemkern.demo.why_not", lambda row, _: "no" * (row.name == "padded2"))
    left_out = smemkern.variants("gemm")[0]._replace(name="padded2")
    rows = [*smemkern.demo.variants(), left_out]
    monkeypatch.setattr("smemkern.demo.variants", lambda: rows)
    counter = ProfileRow("smsp__x.sum", "requests", 4, 4, 8)
    lines = [
        ProfileLine("gemm_tiled.cu", 3, "shared", "load", 1, 1, 2, 3),
        ProfileLine(None, 3, "global", "load", None, None, None, None),
    ]
    a = np.ones((8, 8), np.float32)
    made = Profile(smemkern.trace("gemm", a, a), [counter], lines, "ncu ...")
    monkeypatch.setattr("smemkern._performance.profile.profile", lambda *args, **kw: made)

    def read(words):
        found = command.json(words)
        assert not command.err
        return found

    return read


@pytest.mark.parametrize("name", COMMANDS)
def test_documents(document, name, nvrtc):
    """Every document has what is promised and no more; of what is promised all is seen."""
    if name == "completion":
        pytest.importorskip("argcomplete")
    if name == "run":
        run_programs.compiled(Path.cwd(), "everything")
        Path("rules").write_text("{\n leaks\n kind: leak\n}\n")
    promised, seen = json_pages.promised(name), set()
    for words in DOCUMENTS[name]:
        found = document(f"{name} {words}")
        assert found["schema"] == f"smemkern.{name}/1" and next(iter(found)) == "schema"
        json_pages.check(found, promised)
        seen.update(json_pages.paths(found))
    unseen = {path for path in promised if "*" not in path} - seen
    assert not unseen


def test_numbers_are_those_of_python(document):
    a = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    t = smemkern.trace("gemm", a, a, variant="conflicted")
    data = document("trace gemm --variant conflicted")
    assert data["conflict_factor"] == t.conflict_factor > 8
    assert data["instructions"] == t.instructions
    assert [row["wavefronts"] for row in data["shared"]] == [row.wavefronts for row in t.shared]
    assert data["grids"] == [list(grid) for grid in t.launch.grids]
    assert document("trace gemm --shape 0 4 4")["conflict_factor"] is None
    tile = document("banks --tile 32x32")["tile"]
    assert tile["best"]["swizzle"] == "xor" and tile["plain"]["worst"] == 32
    one = document("occupancy --registers 64 --shared 49152")
    assert one["limiters"] == ["registers", "shared memory"] and one["limits"]["shared_memory"] == 4
    device, *_ = document("info")["devices"]  # and those of this machine
    assert device["compute_capability"] == [9, 0] and device["memory_bytes"] == 2**37
    data = document("demo --device emu")
    assert data["correct"] and all(line["error"] < 1 for line in data["lines"])
    assert data["left_out"] == [{"op": "gemm", "variant": "padded2", "reason": "no"}]
    assert [line["equal"] for line in document("profile gemm")["lines"]] == [False, None]


def test_page_has_every_command():
    text = PAGE.read_text(encoding="utf-8")
    for name, module in COMMANDS.items():
        assert f"| `{name}` |" in text and f"### smemkern.{name}/1" in text
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        assert (row.split("|")[-2].strip() == "") == (module.FOUND == "")


def test_plain():
    given = {
        "a": (1, 2.5),
        3: [np.float32(0.5), np.int64(7), np.arange(3)],
        "n": float("nan"),
        "i": [float("inf")],
        "row": Rows([Fit("v", "d", "o", 1, float("nan"))]),
        "t": (True, None, "x"),
    }
    assert json.loads(json.dumps(plain(given), allow_nan=False)) == {
        "a": [1, 2.5],
        "3": [0.5, 7, [0, 1, 2]],
        "n": None,
        "i": [None],
        "row": [{"variant": "v", "dtype": "d", "operands": "o", "times": 1, "error": None}],
        "t": [True, None, "x"],
    }
