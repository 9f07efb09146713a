"""smemkern.bench, the fit of what "auto" predicts by, and what it then chooses."""

import json
import math

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU, SKINNY
from rows import table
from smemkern import _core
from smemkern._performance.bench import SHAPES, Bench, Line, fit
from smemkern._render.rows import Rows
from smemkern._variants import cost_model
from smemkern._variants.choices import ACCURACIES, LAYOUTS, alignment_of

CUBES = [(n, n, n) for n in (64, 128, 256, 512, 1024, 2048, 4096, 8192)]
CUBES += [(8, n, n) for n in (64, 128, 256, 512, 1024, 2048, 4096, 8192)]
CUBES += [(n, 8, n) for n in (64, 128, 256, 512, 1024, 2048, 4096, 8192)]
CUBES += [(2, n, n) for n in (64, 128, 256, 512, 1024, 2048, 4096, 8192)]
CUBES += [(n, 2, n) for n in (64, 128, 256, 512, 1024, 2048, 4096, 8192)]


def predicted(
    timings, shape, dtype="float32", accuracy="float32", sm=90, alignment=16, layout="NN"
):
    return _core.predict(timings, "gemm", dtype, accuracy, (*shape, 1), sm, 132, layout, alignment)


# ---- the times


def test_lines_of_the_emulator():
    shapes = [(64, 48, 32), (33, 40, 50)]
    result = smemkern.bench(
        shapes, variants=["tiled", ("padded", {"tile": 16})], device="emu", seconds=0.001
    )
    assert [(line.variant, line.params, line.shape) for line in result] == [
        (name, params, shape)
        for shape in shapes
        for name, params in (("tiled", {}), ("padded", {"tile": 16}))
    ]
    for line in result:
        assert 0 < line.best_ms <= line.ms
        assert line.rate == pytest.approx(2 * math.prod(line.shape) / line.ms * 1e-9)
    assert "padded" in repr(result)


def test_lines_of_a_transpose():
    [line] = smemkern.bench(
        [(64, 96)], op="transpose", variants=["swizzle"], dtypes=["float64"], device="emu"
    )
    assert line.rate == pytest.approx(2 * 64 * 96 * 8 / line.ms * 1e-9)


def test_a_variant_takes_only_its_dtypes():
    result = smemkern.bench(
        [(16, 16, 16)], variants=["tiled", "mma_fp16"], dtypes=["float64", "float16"], device="emu"
    )
    assert [(line.variant, line.dtype) for line in result] == [
        ("tiled", "float64"),
        ("mma_fp16", "float16"),
    ]


def test_wrong_calls():
    with pytest.raises(ValueError, match="no variant 'tild'"):
        smemkern.bench([(8, 8, 8)], variants=["tild"], device="emu")
    with pytest.raises(smemkern.NoDeviceError, match="device='emu'"):
        smemkern.bench(device="cuda:99")

    with pytest.raises(TypeError, match="not 'gemm'; see op="):
        smemkern.bench("gemm", device="emu")


@pytest.mark.parametrize("op", ["gemm", "transpose"])
def test_what_is_timed_by_itself(op, monkeypatch):
    """On the emulator one shape, for all variants of a transpose."""
    monkeypatch.setattr("smemkern._performance.bench._times", lambda *_: [2.0])
    lines = smemkern.bench(op=op, device="emu").lines
    shape = (256, 256, 256) if op == "gemm" else (256, 256)
    assert lines and {line.shape for line in lines} == {shape}
    if op == "transpose":
        assert [line.variant for line in lines] == [row.name for row in smemkern.variants(op)]


def test_plot():
    pytest.importorskip("matplotlib").use("agg")
    result = smemkern.bench([(32, 32, 32), (48, 48, 48)], variants=["tiled"], device="emu")
    ax = result.plot()
    assert len(ax.lines) == 1 and len(ax.lines[0].get_xdata()) == 2


def test_command(command):
    words = "bench --shape 32 --shape 16x24x8 --variant tiled"
    lines = command.json(f"{words} --device emu")["lines"]
    assert [line["shape"] for line in lines] == [[32, 32, 32], [16, 24, 8]]
    assert command.run(f"{words} --device cuda:99") == 3
    assert "device='emu'" in command.err


# ---- the fit


def test_fit_finds_the_costs(rng):
    terms = rng.uniform(0.1, 100, (40, 5))
    wanted = np.array([5.0, 0.0, 0.3, 2.0, 0.01])
    times = terms @ wanted
    cost, error = fit(terms, times, times * rng.uniform(0.1, 1, 40))
    assert np.allclose(cost, wanted, rtol=1e-3, atol=1e-6) and error < 1e-3


def test_fit_has_no_negative_cost(rng):
    terms = rng.uniform(0.1, 100, (40, 5))
    times = np.abs(terms @ np.array([5.0, -0.5, 0.3, 2.0, 0.01])) + 1
    cost, _ = fit(terms, times, times)
    assert min(cost) >= 0


def test_fit_of_slow_calls_that_it_would_choose():
    """A variant that is fast for small problems (the first term), and far slower than others for
    large ones: what the small ones say about these must not make "auto" choose it."""
    small, large = np.array([[1, 1e-6]] * 60), np.array([[1, n] for n in (100.0, 200.0, 400.0)])
    terms, times = np.vstack([small, large]), np.array([10.0] * 60 + [5e3, 1e4, 2e4])
    times[:60] *= 1 + np.linspace(-0.2, 0.2, 60)
    fastest = np.array([10.0] * 60 + [150.0, 200.0, 400.0])
    cost, _ = fit(terms, times, fastest)
    assert (large @ cost > fastest[60:]).all()


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    yield tmp_path
    _core.set_timings(0, None)


def test_wrong_layout():
    with pytest.raises(ValueError, match="layout should be one of NN, NT, TN, TT, not 'N'"):
        smemkern.choices(8, 8, 8, layout="N")


def as_timed(timings, device, shapes, scale):
    """Lines as if every row took `scale` times what it is predicted to."""
    lines = []
    for timing in timings:
        for shape in shapes:
            alignment = alignment_of(shape, timing.dtype)
            if timing.alignment == min(alignment, 16) and not 0 < timing.side < min(shape[:2]):
                for _, us, _ in predicted(
                    [timing], shape, timing.dtype, ACCURACIES[-1], alignment=alignment
                ):
                    ms = us * scale / 1e3
                    lines.append(Line(*timing[:4], shape, ms=ms, best_ms=0.0, rate=0.0))
    return Bench(Rows(lines), device)


@pytest.mark.long(instead="the tests of the fit")
def test_retuning_is_kept(config):
    gpu = smemkern.Device("cuda:0", "Some GPU 2", (9, 0), 132, 1.0, 1, 1)
    before = cost_model.load("Some GPU 2")
    assert before == cost_model.read(cost_model.PACKAGED)
    sides = [k for m, n, k in CUBES if m == n]
    cubes = [*CUBES, *((1, n, n) for n in sides), *((n, 1, n) for n in sides)]
    even, odd = ([tuple(n + (n > 1) * more for n in shape) for shape in cubes] for more in (2, 1))
    fits = as_timed(before, gpu, cubes + even + odd, 2.0).retune(store=False)
    assert not list(config.rglob("*.json"))
    fits = as_timed(before, gpu, cubes + even + odd, 2.0).retune()
    # but for gemv's along aligned rows of A: with one column, those of B are single elements
    assert len(fits) == len(before) - 6 and max(fit.error for fit in fits) < 0.02
    [file] = config.rglob("*.json")
    assert file.name == "timings-some-gpu-2.json"
    after = cost_model.load("Some GPU 2")
    rows = {str(row._replace(microseconds=())): row for row in before}
    for new in after:
        old = rows[str(new._replace(microseconds=()))]
        for shape in {16: cubes, 4: even, 1: odd}[old.alignment]:
            if 0 < old.side < min(shape[:2]):
                continue
            ask = shape, old.dtype, ACCURACIES[-1], 90, alignment_of(shape, old.dtype)
            pairs = zip(predicted([new], *ask), predicted([old], *ask), strict=True)
            for (_, slow, _), (_, fast, _) in pairs:
                assert slow == pytest.approx(2 * fast, rel=0.03)


def test_the_shapes_are_enough_for_each_row():
    gpu = smemkern.Device("cuda:0", "Some GPU 2", (9, 0), 132, 1.0, 1, 1)
    packaged = cost_model.read(cost_model.PACKAGED)
    _, fits = as_timed(packaged, gpu, SHAPES, 1.0).fitted(packaged)
    assert {fit.variant.split("(")[0] for fit in fits} == {row.variant for row in packaged}


def test_too_few_times(config):
    gpu = smemkern.Device("cuda:0", "Some GPU 2", (9, 0), 132, 1.0, 1, 1)
    with pytest.raises(ValueError, match="3 times here, but 7"):
        as_timed(cost_model.load("x"), gpu, CUBES[:3], 1.0).retune()


def test_a_broken_table_is_told(config):
    file = cost_model.stored("Some GPU 2")
    file.parent.mkdir(parents=True)
    entry = cost_model.read(cost_model.PACKAGED)[0]
    for text in ("{", '{"timings": [{"op": "gemm"}]}'):
        file.write_text(text)
        with pytest.warns(UserWarning, match="--retune"):
            assert cost_model.load("Some GPU 2") == cost_model.read(cost_model.PACKAGED)
    cost_model.write(file, [entry._replace(variant="gone")], {})
    with pytest.warns(UserWarning, match="gone"):
        cost_model.load("Some GPU 2")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"op": "gem"}, "no gem variant"),
        ({"dtype": "int8"}, "of int8"),
        ({"params": {"tile": 5000}}, "no parameter 'tile'"),
        ({"params": {f"p{i}": 1 for i in range(20)}}, "fewer parameters"),
        ({"microseconds": (1.0,)}, "length 16, or 6 at least in an older table, not 1"),
        ({"microseconds": [1.0] * 16}, "must be tuple"),
        ({"microseconds": ("a",) * 6}, "must be real number"),
    ],
)
def test_wrong_timings(wrong, words):
    entry = cost_model.read(cost_model.PACKAGED)[0]._replace(**wrong)
    with pytest.raises((TypeError, ValueError), match=words):
        _core.set_timings(0, [entry])
    with pytest.raises(TypeError, match="a timing is a tuple"):
        _core.set_timings(0, [1])


# ---- the choice


def test_a_prediction_is_the_sum_of_its_terms():
    timing = cost_model.Timing(
        "gemm",
        "tiled",
        {"tile": 32},
        "float32",
        16,
        0,
        (1.0, 5.0, 10.0, 100.0, 1000.0, 1e4, 3.0, 7.0, 9.0)
        + (2.0, 20.0, 200.0, 2000.0, 5.0, 50.0, 500.0),
    )
    [(index, us, terms)] = predicted([timing], (1024, 4160, 2048))
    busiest = math.ceil(32 * 130 / 132)
    assert index == 0
    moved = 4e-6 * (1024 * 2048 + 2048 * 4160 + 1024 * 4160)
    step = 2 * busiest
    assert terms == pytest.approx(
        (1, 0, 2, busiest, step, moved, step, 4e-6 * 1024 * 4160, moved - 30)
        + (2, step, 0, 0, 0, step, 0)
    )
    assert us == pytest.approx(np.dot(terms, timing.microseconds))


def terms_of(variant, shape, dtype="float32", alignment=16, layout="NN", **params):
    timing = cost_model.Timing(
        *("gemm", variant, params, dtype, min(alignment, 16), 0),
        (1.0,) * len(cost_model.TERMS),
    )
    asked = shape, dtype, ACCURACIES[-1]
    [(_, _, terms)] = predicted([timing], *asked, alignment=alignment, layout=layout)
    return dict(zip(cost_model.TERMS, terms, strict=True))


def test_layouts_that_are_packed_first():
    """wgmma reads 32-bit operands from shared memory K-major only: tf32x3 packs A, and tf32 what is
    second, whose time its planner predicts."""
    of_tf32 = {
        layout: terms_of("tf32", (2048, 1024, 512), layout=layout)
        for layout in ("NN", "NT", "TN", "TT")
    }
    assert len({terms["bytes"] for terms in of_tf32.values()}) == 1
    assert max(of_tf32, key=lambda layout: of_tf32[layout]["step"]) == "TN"


def test_few_rows_by_layout():
    """The strips of a K-major thick operand have other sizes, so the tiles differ."""
    row, column, transposed = (
        terms_of("skinny", (4, 4096, 4096), layout=layout) for layout in ("NN", "NT", "TN")
    )
    assert row["tile"] != column["tile"] or row["step"] != column["step"]
    of_layout = ("turned", "step_nn", "step_tn")
    assert all(transposed[term] == row[term] for term in row if term not in of_layout)


def planned(variant, shape, dtype, **params):
    """The plan of a call of operands that lie row by row; only their first element exists."""
    m, n, k = shape
    one = np.zeros(1, dtype)
    arrays = [
        np.lib.stride_tricks.as_strided(one, size, (size[1] * one.itemsize, one.itemsize))
        for size in ((m, k), (k, n))
    ]
    return _core.plan("gemm", tuple(arrays), {"variant": variant, **params})


TABLE = {(t.variant, *t.params.items(), t.dtype): t for t in cost_model.read(cost_model.PACKAGED)}


# Bytes per element of A and B that rows move besides reading it once, which always pack it.
PACKED = {"tf32x3": (16, 4), "fp16x3": (8, 4), "fp16x3_guarded": (8, 4), "fp16x1": (4, 4)}


@pytest.mark.parametrize("timing", TABLE.values(), ids=lambda t: f"{t.name}-{t.dtype}")
def test_terms_are_counts_of_the_plan(timing):
    packed = PACKED.get(timing.variant, (0, 0))
    wgmma = timing.variant in (*PACKED, "tf32", "fp16", "bf16")
    residues = {"ozaki2": 14}.get(timing.variant, 0)  # per element; of A and B after a first pass
    itemsize = 2 if timing.dtype == "bfloat16" else np.dtype(timing.dtype).itemsize
    for shape in [
        *((64, 72, 40), (256, 512, 8192), (3, 4096, 4096), (2048, 5, 8192), (2048,) * 3),
        *((1024, 1024, 4096), (512, 1024, 2048)),  # some in two parts
    ]:
        alignment = 16 if timing.variant in PACKED else alignment_of(shape, timing.dtype)
        terms = terms_of(timing.variant, shape, timing.dtype, alignment, **timing.params)
        launches = planned(timing.variant, shape, timing.dtype, **timing.params)["launches"]
        split = launches[-1]["args"]["split"]
        scaled = timing.variant in (*PACKED, "ozaki2")
        depth = shape[2] / 1024 / (1 if scaled else split)
        last = launches[-1]
        adds = any(kind in last["entry"] for kind in ("_thin", "_summed"))
        shares = wgmma and not adds  # a cluster's blocks share tiles
        cluster = last["cluster"] > 0 and not shares  # or add the parts without a launch
        summed = split > 1 and not cluster
        assert terms["call"] == 1 and terms["parts"] == (0.3 if cluster else summed)
        m, n, k = shape
        moved = (itemsize + packed[0]) * m * k + (itemsize + packed[1]) * k * n + itemsize * m * n
        if residues:
            moved += (2 * residues + itemsize) * (m * k + k * n) + 2 * residues * m * n
            tiles = -(-m // 128) * -(-n // 256) * residues
            assert terms["tile"] == math.ceil(tiles / 132)
        if summed:  # the parts are written and read, as floats or doubles
            moved += 2 * split * m * n * max(4, itemsize)
        assert terms["bytes"] == pytest.approx(moved * 1e-6)
        assert terms["depth"] == pytest.approx(depth)
        # whose steps are the time that its plan predicts
        if timing.variant in ("fp16", "bf16", "tf32", "gemv"):
            assert terms["tile"] == pytest.approx(m * n / 128**2 / 132) and terms["step"] > 0
            continue
        assert terms["result"] == pytest.approx(itemsize * m * n * 1e-6)
        assert terms["far"] == pytest.approx(max(0, moved * 1e-6 - 30))
        if not wgmma and not residues:  # of which a block makes several tiles
            blocks = launches[-1 - summed]["grid"][0]
            assert terms["tile"] == math.ceil(blocks / 132)
        if timing.variant not in SKINNY:  # whose tiles are of several sizes
            assert terms["step"] == pytest.approx(terms["tile"] * shape[2] / 1024 / split)
        assert 0 < terms["lines"] <= terms["step"]


def test_lines_are_those_of_a_tile_that_exist():
    whole, few = (terms_of("fp64", (m, 4096, 2048), "float64", block_m=64) for m in (64, 16))
    assert whole["lines"] == whole["step"] > 0
    assert few["lines"] == pytest.approx(few["step"] * (16 + 128) / (64 + 128))


def test_terms_of_layouts():
    of = {layout: terms_of("direct", (96, 96, 96), "float64", layout=layout) for layout in LAYOUTS}
    for layout, turned in {"NT": 0, "NN": 1, "TT": 1, "TN": 2}.items():
        assert of[layout]["turned"] == turned * of[layout]["depth"]
        for other in LAYOUTS:
            step = of[layout]["step"] if other == layout else 0
            assert of[layout][f"step_{other.lower()}"] == step


@pytest.mark.parametrize("alignment", [32, 16, 4])
@pytest.mark.parametrize("n", [96, 98])
def test_terms_of_rows_that_do_not_begin_at_sectors(alignment, n):
    terms = terms_of("direct", (96, n, 96), "float64", alignment)
    assert terms["sectors"] == (0 if alignment == 32 else terms["step"])
    assert terms["result_sectors"] == (0 if n == 96 else terms["result"])


def test_older_tables_repeat_the_accuracy_of_the_variant(tmp_path):
    new = json.loads(cost_model.PACKAGED.read_text(encoding="utf-8"))
    old = {**new, "timings": [{**entry, "accuracy": "norm"} for entry in new["timings"]]}
    table = tmp_path / "old.json"
    table.write_text(json.dumps(old))
    assert cost_model.read(table) == cost_model.read(cost_model.PACKAGED)


@pytest.mark.parametrize("costs", [6, 9])
def test_older_tables_have_fewer_costs(costs):
    timing = cost_model.Timing("gemm", "tiled", {}, "float32", 16, 0, (2.0,) * costs)
    [(_, us, terms)] = predicted([timing], (512, 512, 512))
    assert us == pytest.approx(2 * sum(terms[:costs]))


def test_bytes_that_are_moved():
    m, n, k = 3000, 2000, 104  # enough tiles to leave K whole

    def moved(variant, dtype="float32", alignment=16, **params):
        return terms_of(variant, (m, n, k), dtype, alignment, **params)["bytes"] * 1e6

    a, b, c = m * k, k * n, m * n
    assert moved("tiled") == pytest.approx(4 * (a + b + c))
    assert moved("tf32") == pytest.approx(4 * (a + b + c))
    # Packed copies are written and read: 2 parts of A of 4 or 2 bytes; B's largest are looked for.
    assert moved("tf32x3") == pytest.approx(4 * (a + b + c) + 16 * a + 4 * b)
    assert moved("fp16x3") == pytest.approx(4 * (a + b + c) + 8 * a + 4 * b)
    assert moved("fp16x1") == pytest.approx(4 * (a + b + c) + 4 * a + 4 * b)
    # Of fp16 the planner's time has what packing takes.
    assert moved("fp16", "float16", alignment=1) == pytest.approx(2 * (a + b + c))
    split = planned("mma_tf32x3", (64, 64, 8192), "f4")["launches"][-1]["args"]["split"]
    cut = terms_of("mma_tf32x3", (64, 64, 8192))["bytes"] * 1e6
    assert split > 1
    assert cut == pytest.approx(4 * (2 * 64 * 8192 + 64 * 64) + 2 * 4 * split * 64 * 64)


def test_rows_that_do_not_fit():
    def row(variant, dtype="float32", alignment=16, side=0):
        return cost_model.Timing("gemm", variant, {}, dtype, alignment, side, (1.0,) * 6)

    table = [row("tiled"), row("tf32"), row("fp16x3"), row("fp16x1")]
    table += [row("fp16", "float16"), row("tiled", alignment=1), row("fp64", "float64")]

    def fitting(shape=(64, 64, 64), **question):
        return [table[i].variant for i, *_ in predicted(table, shape, **question)]

    assert fitting() == ["tiled"]
    assert fitting(accuracy="norm") == ["tiled", "fp16x3"]
    assert fitting(accuracy="tf32") == ["tiled", "tf32", "fp16x3"]
    assert fitting(accuracy="tf32-norm") == ["tiled", "tf32", "fp16x3", "fp16x1"]
    assert fitting(accuracy="tf32", sm=80) == ["tiled"]
    assert fitting(accuracy="tf32", sm=100) == ["tiled"]
    assert fitting(alignment=1) == ["tiled"]
    assert fitting(dtype="float16") == ["fp16"]
    assert fitting(dtype="float64", sm=100) == ["fp64"]
    table = [row("tiled", side=63), row("padded", side=64), row("naive")]
    assert fitting() == ["padded", "naive"]
    assert fitting((1000, 63, 9)) == ["tiled", "padded", "naive"]


def test_rows_for_one_order_of_the_larger_operand():
    row = cost_model.Timing("gemm", "skinny", {}, "float32", 16, 0, (1.0,) * 6)
    table = [row._replace(along=1), row._replace(along=0)]
    tall, wide = (64, 8, 64), (8, 64, 64)
    orders = {(tall, "NN"): 0, (tall, "NT"): 0, (tall, "TN"): 1, (wide, "NN"): 1, (wide, "NT"): 0}
    for (shape, layout), which in orders.items():
        assert [i for i, *_ in predicted(table, shape, layout=layout)] == [which]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("accuracy", ["float32", "norm", "tf32", "tf32-norm"])
def test_choices(dtype, accuracy):
    for shape in (*CUBES, (1, 5, 7), (0, 3, 4)):
        found = smemkern.choices(*shape, dtype=dtype, accuracy=accuracy)
        assert found and [c.microseconds for c in found] == sorted(c.microseconds for c in found)
        [row] = [r for r in smemkern.variants("gemm") if r.name == found[0].variant]
        assert dtype in row.dtypes
        if dtype == "float32" and accuracy == "float32":
            assert row.accuracy == "float32"
            assert row.product_bits is None or row.product_bits >= 20
    with pytest.raises(ValueError, match="accuracy"):
        smemkern.choices(1, 1, 1, accuracy="half")


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")
def test_auto_takes_what_is_predicted_to_be_fastest(rng):
    """Each row that fits in turn: auto has the bits of naming it."""
    a, b = rng.standard_normal((2, 256, 256)).astype("f4")
    try:
        for name, params in (("tiled", {"tile": 8}), ("simt", {}), ("mma_tf32x3", {"stages": 2})):
            timing = cost_model.Timing("gemm", name, params, "float32", 16, 0, (1.0,) * 6)
            _core.set_timings(0, [timing])
            named = smemkern.gemm(a, b, variant=name, device="cuda", **params)
            assert np.array_equal(smemkern.gemm(a, b, device="cuda"), named)
    finally:
        _core.set_timings(0, None)


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")
def test_bench_on_a_gpu():
    result = smemkern.bench([(512, 512, 512), (333, 222, 111)])
    assert {line.variant for line in result} >= {"tf32x3", "pipelined"}
    assert all(0 < line.best_ms < 50 for line in result)


def test_rows_of_the_table_are_compiled_ahead():
    """So that "auto" never waits for a compiler."""
    rows = table()
    for timing in cost_model.read(cost_model.PACKAGED):
        row = rows[timing.op, timing.variant]
        assert timing.dtype in row.dtypes
        assert {**row.prebuilt[0], **timing.params} in row.prebuilt, timing.name
