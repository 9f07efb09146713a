"""smemkern.profile, with an ncu that says what a test wants, and with the real one."""

import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU
from smemkern._performance import ncu as _ncu
from smemkern._performance import profile as _profile

RECORDED = Path(__file__).parent / "ncu_h200"
FAKE = """#!/bin/sh
case "$*" in
    *"--page source"*) cat "{source}"; exit 0;;
    *"--page raw"*) cat "{answer}"; exit 0;;
esac
echo "$@" > "{log}"
for word in "$@"; do last="$word"; [ "$before" = "--export" ] && : > "$word"; before="$word"; done
cp "$last" "{call}"
{extra}
"""


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Puts an ncu on PATH that answers with counts of a dict, one a launch."""
    monkeypatch.setattr(_profile, "_has_gpu", lambda: True)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def make(*launches, extra="", raw=None, source="/dev/null"):
        metrics = list(_profile.METRICS)
        rows = [["ID", "Kernel Name", *metrics], ["", "", *["inst"] * len(metrics)]]
        for number, counts in enumerate(launches):
            rows.append([str(number), "kernel", *(counts.get(metric, "n/a") for metric in metrics)])
        answer = tmp_path / "answer.csv"
        body = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
        answer.write_text(f"==PROF== a line of ncu's own\n{body}\n")
        script = tmp_path / "ncu"
        script.write_text(
            FAKE.format(
                answer=raw or answer,
                source=source,
                log=tmp_path / "log",
                call=tmp_path / "call",
                extra=extra,
            )
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return tmp_path

    return make


def predicted(t):
    return {name: predict(t) for name, (_, predict, _) in _profile.METRICS.items()}


@pytest.fixture
def ab(rng):
    return rng.standard_normal((2, 64, 64)).astype(np.float32)


def test_measured_beside_predicted(ncu, ab):
    counts = predicted(smemkern.trace("gemm", *ab, variant="conflicted"))
    shown = {name: f"{count or 0:,}" for name, count in counts.items()}
    missing = "memory_l1_wavefronts_shared_ideal"
    wrong = "smsp__inst_executed.sum"
    shown[missing], shown[wrong] = "n/a", "12.000000"
    folder = ncu(shown)
    p = smemkern.profile("gemm", *ab, variant="conflicted", device="cuda")
    for row in p.rows:
        assert row.predicted == counts[row.metric]
        if row.metric == missing:
            assert row.measured is row.equal is None
        elif row.metric == wrong:
            assert row.measured == 12
            assert row.equal is False
        else:
            assert row.equal
    assert "differs" in repr(p)
    assert p.command in repr(p)
    assert "--clock-control none" in p.command
    assert "gemm_conflicted" in (folder / "log").read_text()
    assert "<table>" in p._repr_html_()
    import pickle

    what, args, kw = pickle.loads((folder / "call").read_bytes())
    assert (what, kw) == ("gemm", {"variant": "conflicted", "device": "cuda"})
    np.testing.assert_array_equal(args[0], ab[0])


def test_launches_add_up(ncu, ab):
    name = next(iter(_profile.METRICS))
    ncu({name: "3"}, {name: "1,004"})
    p = smemkern.profile("gemm", *ab, variant="tiled")
    assert p.rows[0].measured == 1007


def test_to_pandas(ncu, ab):
    pytest.importorskip("pandas")
    ncu({})
    frame = smemkern.profile("gemm", *ab, variant="tiled").to_pandas()
    assert list(frame["metric"]) == list(_profile.METRICS)
    assert frame["measured"].isna().all()


def test_a_kernel_keeps_its_arrays(ncu):
    from test_trace_rows import PTX

    folder = ncu({})
    out = np.full(64, -1, np.int32)
    smemkern.profile(smemkern.Kernel(PTX, "k"), 2, 32, out)
    assert (out == -1).all()
    import pickle

    what, _args, kw = pickle.loads((folder / "call").read_bytes())
    assert what == (PTX, "k")
    assert kw == {"device": "cuda"}


def test_forbidden_counters(ncu, ab):
    ncu({}, extra="echo '==ERROR== ERR_NVGPUCTRPERM - no permission'; exit 1")
    with pytest.raises(smemkern.Error, match="ERR_NVGPUCTRPERM.*NVreg_Restrict"):
        smemkern.profile("gemm", *ab)


def test_it_says_how_far_it_is(ncu, ab, monkeypatch):
    """While ncu runs, so that a bar moves that waits for two seconds."""
    ncu({}, extra="sleep 0.5")
    told = []
    monkeypatch.setattr(_profile.Meter, "__call__", lambda self, *at: told.append(at))
    smemkern.profile("gemm", *ab, variant="tiled")
    assert {(0, 4), (1, 4)} <= {*told}


def test_ncu_that_fails(ncu, ab):
    ncu({}, extra="echo something broke; exit 3")
    with pytest.raises(smemkern.Error, match="status 3(?s:.*)something broke"):
        smemkern.profile("gemm", *ab)


def test_no_launch_was_seen(ncu, ab):
    ncu()
    with pytest.raises(smemkern.Error, match="no launch"):
        smemkern.profile("gemm", *ab)


def test_no_ncu(ab, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_ncu, "_PLACES", (str(tmp_path),))
    with pytest.raises(smemkern.Error, match="neither on PATH"):
        smemkern.profile("gemm", *ab)


def test_no_gpu(ncu, ab, monkeypatch):
    ncu({})
    monkeypatch.setattr(_profile, "_has_gpu", lambda: False)
    with pytest.raises(smemkern.NoDeviceError, match="needs a GPU"):
        smemkern.profile("gemm", *ab)


# ---- what ncu 2025.3 printed on an H200: columns and instructions of other things left out


def test_recorded_totals():
    text = (RECORDED / "histogram.raw.csv").read_text()
    found = _ncu.totals(text, [*_profile.METRICS])
    assert found["smsp__sass_inst_executed_op_shared_ld.sum"] == 40
    assert found["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 1032
    assert found["memory_l1_wavefronts_shared"] == 1481
    assert found["smsp__inst_executed.sum"] == 4281
    assert None not in found.values()


def test_recorded_totals_are_as_predicted(ncu, rng):
    """All of them but machine instructions, of which PTX has another number."""
    ncu({}, raw=RECORDED / "gemm_pipelined.raw.csv")
    a = rng.standard_normal((128, 64)).astype(np.float32)
    b = rng.standard_normal((64, 96)).astype(np.float32)
    p = smemkern.profile("gemm", a, b, variant="pipelined")
    differ = {row.metric for row in p.rows if not row.equal}
    assert differ == {"smsp__inst_executed.sum", "memory_l1_wavefronts_shared_ideal"}


HISTOGRAM = """
extern "C" __global__ void histogram(const int *in, int n, int *out) {
    __shared__ int bins[64];
    __shared__ float tile[32][32];
    int t = threadIdx.x;
    if (t < 64)
        bins[t] = 0;
    for (int i = t; i < 1024; i += blockDim.x)
        tile[i / 32][i % 32] = i;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[in[i] & 63], 1);
    float x = tile[t % 32][t / 32];
    __syncthreads();
    if (t < 64)
        atomicAdd(&out[t], bins[t] + (x < 0));
}
"""


def test_recorded_lines_of_a_kernel(ncu, nvrtc, rng):
    ncu({}, source=RECORDED / "histogram.source.csv")
    data, out = rng.integers(0, 64, 5000).astype(np.int32), np.zeros(64, np.int32)
    p = smemkern.profile(smemkern.Kernel(HISTOGRAM, "histogram"), 4, 256, data, 5000, out)
    assert [(line.line, line.space, line.op) for line in p.lines] == [
        (7, "shared", "store"),
        (9, "shared", "store"),
        (12, "global", "load"),
        (12, "shared", "atomic"),
        (13, "shared", "load"),
        (16, "global", "atomic"),
        (16, "shared", "load"),
    ]
    for line in p.lines:
        if (line.space, line.op) == ("shared", "atomic"):
            assert line.requests == line.measured_requests == 157
            assert line.measured_cost == 313  # of other data
        else:
            assert line.equal, line
    first = p.lines[0]  # six of eight warps had no lane that stored
    assert (first.requests, first.measured_requests) == (8, 32)


def test_recorded_lines_of_an_inlined_kernel(ncu, rng):
    ncu({}, source=RECORDED / "gemm_pipelined.source.csv")
    a = rng.standard_normal((128, 64)).astype(np.float32)
    b = rng.standard_normal((64, 96)).astype(np.float32)
    p = smemkern.profile("gemm", a, b, variant="pipelined")
    assert {line.op for line in p.lines} == {"load", "store", "copy_async"}
    for line in p.lines:
        assert line.equal, line
        assert line.requests == line.measured_requests
    assert sum(line.cost for line in p.lines if line.space == "shared") == 6656
    assert "gemm_pipelined.cu:86" in repr(p)
    assert "gemm_pipelined.cu:86" in p._repr_html_()


@pytest.mark.skipif(not HAS_GPU or shutil.which("ncu") is None, reason="no NVIDIA GPU or no ncu")
def test_the_real_one(ab):
    p = smemkern.profile("gemm", *ab, variant="conflicted")
    rows = {row.metric: row for row in p.rows}
    for op in ("ld", "st"):
        row = rows[f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"]
        assert row.measured is not None
    assert rows["smsp__inst_executed.sum"].measured > 0
