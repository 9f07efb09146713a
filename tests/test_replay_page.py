"""The page of a recording in a headless browser: its reader beside the Python one, its views.

A page is made as smemkern._web does it, with a script behind it that asks and operates it, and
writes the answers into the document, which the browser prints (chromium.py finds it).
"""

import base64
import html
import json
import re
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

import smemkern
from chromium import browser
from recordings import EVENTS, NONE, OPERATIONS, Recorder, transpose
from smemkern import _web
from smemkern._replay.recording import Recording
from test_replay_locals import SOURCE

SCRIPTS = Path(__file__).with_name("replay_page")


def visit(folder, asked, ask, width=1280, height=900):
    """What `ask` of a file of SCRIPTS returns, in a page with all modules and styles."""
    text = json.dumps(asked).replace("</", "<\\/")
    style = "body{margin:0;background:var(--bg)}" + "".join(map(_web.read, _web.STYLES))
    script = f"{_web.script()}{(SCRIPTS / ask).read_text()}{(SCRIPTS / 'script.js').read_text()}"
    file = folder / "page.html"
    file.write_text(
        f"<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>"
        f"<style>{style}</style>"
        f"</head><body><main id='view'></main>"
        f"<script type='application/json' id='asked'>{text}</script>"
        f"<script type='module'>{script}</script></body></html>",
        encoding="utf-8",
    )
    told = dumped(folder, file, f"--window-size={width},{height}")
    found = re.search(r"<pre>(.*?)</pre>", told, re.S)
    assert found, told[-2000:]
    answer = json.loads(html.unescape(found[1]))
    assert not isinstance(answer, dict) or "failed" not in answer, answer["failed"]
    return answer


def dumped(folder, file, *options):
    run = subprocess.run(
        [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        + ["--force-prefers-reduced-motion", f"--user-data-dir={folder}/profile"]
        + [*options, file.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
    )
    return run.stdout


def packed(data):
    return base64.b64encode(data).decode()


# ---- the reader ----


@pytest.fixture
def rng():
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")
    return np.random.default_rng(seed)


REGISTERS = [("%r1", "u32", 4), ("%rd1", "u64", 8), ("%h1", "b16", 2), ("%p1", "pred", 0)]
REGISTERS += [("%q1", "b128", 16), ("%f1", "f32", 4)]


def random_values(rng, size):
    """32 values: any, one for all lanes, evenly spaced, wrapping around."""
    most = 1 << 8 * size if size else 2
    kind = rng.integers(4)
    big = lambda: int.from_bytes(rng.bytes(max(size, 1)), "little") % most  # noqa: E731
    if kind == 0 or size in (0, 16):
        return [big() for _ in range(32)]
    base, stride = big(), 0 if kind == 1 else big() if kind == 2 else int(rng.integers(1, 9))
    return [(base + lane * stride) % most for lane in range(32)]


def random_recording(rng):
    warps = int(rng.integers(1, 5))
    words = int(rng.integers(1, 200))
    r = Recorder(warps, REGISTERS, shared_bytes=4 * words, first=int(rng.integers(0, 10**6)))
    for n in range(5):
        r.instruction(f"op{n}.u32 %r1, %r1;", n + 1)
    for _ in range(rng.integers(0, 9)):  # from before the window
        register = int(rng.integers(len(REGISTERS)))
        r.initial(int(rng.integers(warps)), register, random_values(rng, REGISTERS[register][2]))
        r.initial_word(int(rng.integers(words)), int(rng.integers(1 << 32)), 0, 3)
    for _ in range(rng.integers(0, 120)):
        warp = int(rng.integers(warps))
        active = int(rng.integers(1, 1 << 32))
        r.step(warp, int(rng.integers(5)), active, active & int(rng.integers(1 << 32)))
        for register in rng.choice(len(REGISTERS), rng.integers(0, 3), replace=False):
            r.delta(int(register), random_values(rng, REGISTERS[register][2]))
        for word in rng.choice(words, min(words, int(rng.integers(0, 40))), replace=False):
            r.write(word, int(rng.integers(1 << 32)), int(rng.integers(32)))
        if rng.random() < 0.5:
            waves = rng.integers(0, 4, 32)
            r.access(str(rng.choice(OPERATIONS)), 4 * rng.integers(0, words, 32), active=active,
                     cost=4, ideal=1, waves=waves)  # fmt: skip
        elif rng.random() < 0.3:
            r.access("load", [int(a) for a in rng.integers(0, 1 << 50, 32)], memory=NONE,
                     space="global", cost=3, ideal=2)  # fmt: skip
        if rng.random() < 0.2:
            r.event(str(rng.choice(EVENTS)), active, int(rng.integers(3)))
    return r


def words_of(values, size):
    """A register's bits as the reader has them: lane by lane, low word first."""
    per = max(1, size // 4)
    return [int(v) >> 32 * i & NONE for v in values for i in range(per)]


def test_states_of_random_recordings(tmp_path, rng):
    """Registers, words and last writers are those that the encoder kept, at any step."""
    made = [random_recording(rng) for _ in range(12)]
    asked = []
    for r in made:
        data, n = r.bytes(), len(r.columns["step_warp"])
        steps = sorted({0, n, *rng.integers(0, n + 1, 6).tolist()}, key=lambda _: rng.random())
        asked.append({"data": packed(data), "steps": steps})
    answers = visit(tmp_path, {"recordings": asked}, "states.js")
    for r, question, answer in zip(made, asked, answers, strict=True):
        for k, found in zip(question["steps"], answer, strict=True):
            registers, shared, writers = r.states[k]
            for warp, of_warp in enumerate(found["registers"]):
                for register, bits in enumerate(of_warp):
                    known = registers.get((warp, register))
                    size = REGISTERS[register][2]
                    assert bits == (known and words_of(known, size)), (k, warp, register)
            memory = found["memories"][0]
            assert memory["values"] == shared.tolist()
            assert memory["agree"]
            who = [w and [w[0], w[1], w[2] if w[2] is not None else -1] for w in memory["writers"]]
            assert who == [None if w[0] < 0 else w.tolist() for w in writers]


def test_accesses_of_random_recordings(tmp_path, rng):
    r = random_recording(rng)
    data, n = r.bytes(), len(r.columns["step_warp"])
    [answer] = visit(
        tmp_path, {"recordings": [{"data": packed(data), "steps": [*range(n)]}]}, "states.js"
    )
    c = r.columns
    for k, found in enumerate(answer):
        at = range(c["first_access"][k], c["first_access"][k + 1])
        assert [OPERATIONS.index(one["operation"]) for one in found["accesses"]] == [
            c["access_operation"][i] for i in at
        ]
        events = range(c["first_event"][k], c["first_event"][k + 1])
        assert [EVENTS.index(one["kind"]) for one in found["events"]] == [
            c["event_kind"][i] for i in events
        ]
        lanes = found["lanes"][c["step_warp"][k]]
        executed = sum(1 << lane for lane, state in enumerate(lanes) if state == "executes")
        assert executed & ~c["step_executed"][k] == 0


def test_mistaken_recordings(tmp_path, rng):
    """An error that says what is wrong; random bytes never do worse."""
    data = transpose().bytes()
    length = int.from_bytes(data[8:12], "little")
    header = json.loads(data[12 : 12 + length])

    def changed(**changes):
        text = json.dumps(header | changes).encode()
        text += b" " * (-(12 + len(text)) % 8)
        return data[:8] + len(text).to_bytes(4, "little") + text + data[12 + length :]

    sections = header["sections"]
    far = sections | {"words": sections["words"] | {"at": 1 << 40}}
    less = {name: of for name, of in sections.items() if name != "waves"}
    cases = [b"", b"no recording at all", data[:300], changed(format=2), changed(sections=far)]
    cases += [changed(sections=less), changed(warps=header["warps"][:3])]
    random = []
    for _ in range(60):
        broken = bytearray(data)
        for at in rng.integers(12 + length, len(data), 4):
            broken[at] = rng.integers(256)
        random.append(bytes(broken))
    told = visit(
        tmp_path, {"recordings": [packed(one) for one in [*cases, *random]]}, "mistakes.js"
    )
    for answer, message in zip(
        told,
        ["begins with SMKREC1", "begins with SMKREC1", "ends in its header", "found format 2"]
        + ["section words is not within", "has no section waves", "step_warp has 3, of 3"],
        strict=False,
    ):
        assert answer.startswith("RecordingError: ")
        assert message in answer
    assert {answer.split(":")[0] for answer in told[len(cases) :]} <= {"read", "RecordingError"}


# Digits that a value is shown with, and how NumPy reads its bits.
SHOWN = {"f32": (7, "f4"), "f64": (12, "f8"), "f16": (4, "f2"), "bf16": (3, None)}
INTEGERS = {"u8": "u1", "s8": "i1", "u16": "u2", "s16": "i2", "u32": "u4", "s32": "i4", "s64": "i8"}


def test_values_are_shown_as_numpy_reads_them(tmp_path, rng):
    words = rng.integers(1 << 32, size=(400, 2)).tolist()
    words += [[0x7F800000, 0x7FF00000], [0x80000000, 0], [0x7FC00000, 0x7FF80000], [1, 0], [0, 0]]
    words += [[0x3C003F80, 0x3FF00000], [0xFC00, 0], [0x8001, 0], [0x03FF, 0], [0xFF80, 0]]
    asked = {"words": words, "types": [*SHOWN, *INTEGERS]}
    told = visit(tmp_path, asked, "values.js")
    raw = np.array(words, "<u4")
    for kind, dtype in INTEGERS.items():
        expected = np.ascontiguousarray(raw).view(dtype).reshape(len(words), -1)[:, 0]
        assert [int(text) for text in told[kind]] == expected.tolist(), kind
    for kind, (digits, dtype) in SHOWN.items():
        if dtype is None:  # the upper half of a float32
            expected = (raw[:, 0].astype("<u4") << np.uint32(16)).view("<f4")
        else:
            expected = np.ascontiguousarray(raw).view(dtype).reshape(len(words), -1)[:, 0]
        found = np.array([float(text) for text in told[kind]])
        with np.errstate(invalid="ignore"):  # signalling NaNs
            expected = expected.astype(np.float64)
        np.testing.assert_allclose(found, expected, rtol=10.0 ** (1 - digits), atol=0)
        assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all(), kind


@pytest.mark.long(instead="test_states_of_random_recordings")
def test_a_long_recording(tmp_path, rng):
    """200 000 steps: any state is there in less than 20 ms."""
    r = Recorder(8, REGISTERS[:1], shared_bytes=65536, keep=False)
    r.instruction("add.u32 %r1, %r1, 1;", 1)
    values = [random_values(rng, 4) for _ in range(8)]
    for k in range(200_000):
        r.step(k % 8, 0)
        r.delta(0, values[k % 7])
        if k % 4 == 0:
            r.write(k * 7 % 16384, k, k % 32)
    told = visit(tmp_path, {"data": packed(r.bytes())}, "long.js")
    assert told["count"] == 200_000
    assert told["median"] < 20


# ---- beside the Python reader ----

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x) {
    .reg .b64 %rd<9>; .reg .b32 %r<16>; .reg .f32 %f<4>; .reg .f64 %fd<3>; .reg .pred %p<3>;
    .shared .f32 tile[1056];
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r3, %r2, 64, %r1;
    mul.wide.u32 %rd2, %r3, 4; add.u64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    cvt.f64.f32 %fd1, %f1; add.f64 %fd2, %fd1, %fd1; cvt.rn.f32.f64 %f2, %fd2;
    mov.u64 %rd4, tile; mul.wide.u32 %rd5, %r1, STRIDE; add.u64 %rd6, %rd4, %rd5;
    st.shared.f32 [%rd6], %f2;
    bar.sync 0;
    setp.lt.u32 %p1, %r1, LIMIT;
    @%p1 bra LOW;
    xor.b32 %r4, %r1, 5; mul.wide.u32 %rd7, %r4, STRIDE; add.u64 %rd8, %rd4, %rd7;
    ld.shared.f32 %f3, [%rd8]; st.global.f32 [%rd3], %f3;
    bra END;
LOW:
    mov.u32 %r5, 0;
LOOP:
    add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r1; @%p2 bra LOOP;
    atom.shared.add.f32 %f3, [%rd6], 0f3F800000;
END:
    ret;
}
"""


def real_recordings(rng):
    for _ in range(3):
        stride, limit = int(rng.choice([4, 8, 16, 64])), int(rng.integers(0, 40))
        ptx = KERNEL.replace("STRIDE", str(stride)).replace("LIMIT", str(limit))
        x = rng.standard_normal(128).astype(np.float32)
        yield smemkern.replay(smemkern.Kernel(ptx, "k"), 2, 64, x, blocks=[0, 1])
    a = rng.standard_normal((32, 32)).astype(np.float32)
    yield smemkern.replay("gemm", a, a, variant="conflicted", first=int(rng.integers(200)))


def test_states_are_those_of_python(tmp_path, rng):
    """Registers, memories and last writers of real recordings, bit for bit; lanes and accesses."""
    replays = [*real_recordings(rng)]
    made = [Recording(one.recording) for one in replays]
    asked = [
        {"data": packed(one.data), "steps": [0, one.count, *rng.integers(0, one.count, 4).tolist()]}
        for one in made
    ]
    answers = visit(tmp_path, {"recordings": asked}, "states.js")
    written = 0
    for replay, one, question, answer in zip(replays, made, asked, answers, strict=True):
        for k, found in zip(question["steps"], answer, strict=True):
            step = one.first + k
            same_lanes(replay.seek(step), found["lanes"])
            same_accesses(replay.accesses, found["accesses"])
            for warp, of_warp in enumerate(found["registers"]):
                for number, bits in enumerate(of_warp):
                    values = one.register(number, warp, step)
                    size = one.header["registers"][number]["size"]
                    if values is None:
                        assert bits is None
                        continue
                    dtype = {0: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[size]
                    expected = values.astype(np.uint8) if size == 0 else values.view(dtype)
                    assert bits == words_of(expected.tolist(), size), (k, warp, number)
                    written += 1
            for number, memory in enumerate(found["memories"]):
                assert memory["values"] == one.memory(number, step).tolist(), (k, number)
                for who, writer in zip(memory["writers"], one.writers(number, step), strict=True):
                    expected = writer and [
                        writer.warp,
                        writer.lane if writer.warp is not None else who[1],
                        None if writer.step is None else writer.step - one.first,
                        writer.instruction,
                    ]
                    assert who == expected, (k, number)
    assert written > 100


def same_lanes(replay, lanes):
    """The states of the lanes of the warp whose step it is."""
    found = lanes[replay.warp]
    is_here = replay.instruction is not None
    for row, state in zip(replay.lanes, found, strict=True):
        if row["exited"]:
            assert state in ("exited", "absent")
        elif row["waits"].startswith("barrier"):
            assert state == "barrier"
        elif not row["active"]:
            assert state == "waits"
        elif is_here:
            assert state == ("executes" if row["executes"] else "guarded")


def same_accesses(accesses, found):
    for access, one in zip(accesses, found, strict=True):
        assert (access.op, access.memory, access.width) == (
            *(one["operation"], one["memory"], one["width"]),
        )
        assert (access.wavefronts, access.ideal) == (one["cost"], one["ideal"])
        active = access.active
        assert access.addresses[active].tolist() == np.array(one["addresses"])[active].tolist()
        assert access.wavefront_index[active].tolist() == np.array(one["waves"])[active].tolist()
        assert (one["active"] >> np.arange(32) & 1).astype(bool).tolist() == active.tolist()


def test_variables_are_those_of_python(tmp_path, rng, nvrtc):
    kernel = smemkern.Kernel(SOURCE, options=("-G",))
    x = rng.integers(-99, 99, 64).astype(np.int32)
    r = smemkern.replay(kernel, 1, 32, x, float(rng.integers(1, 9)), 3)
    steps = [*range(0, r.count, 7)]
    told = visit(tmp_path, {"data": packed(r.recording), "steps": steps}, "locals.js")
    names = set()
    for k, answer in zip(steps, told, strict=True):
        expected = {  # arrays in shared memory are in the grid
            name: value for name, value in r.seek(r.first + k).locals.items() if len(value) == 32
        }
        assert answer["shown"] == [*answer["found"]]
        assert set(answer["found"]) == set(expected)
        for name, texts in answer["found"].items():
            value = expected[name]
            if value.ndim == 1:
                found = [float(int(t, 0)) if t.startswith("0x") else float(t) for t in texts]
                np.testing.assert_allclose(found, value.astype(float), rtol=1e-6)
            elif value.dtype.kind == "f":
                found = np.array([json.loads(text.replace("NaN", "null")) for text in texts], float)
                known = ~np.isnan(found) & ~np.isnan(value)
                np.testing.assert_allclose(found[known], value[known], rtol=1e-6)
            names.add(name)
    assert {"i", "total", "history", "scale", "p"} <= names


# ---- the page ----


@pytest.fixture(scope="module")
def operated(tmp_path_factory):
    """What a reader does with the page of the naive transpose, and what it says."""
    made = transpose(hazard=True)
    made.header["hazards"][0]["parties"][0]["step"] = 160
    data = made.bytes()
    return visit(tmp_path_factory.mktemp("replay"), {"data": packed(data)}, "operate.js")


def test_it_opens_at_the_worst_conflict(operated):
    opening = operated["opening"]
    assert opening["k"] == 160
    assert opening["title"] == "Warp 0 reads shared memory: 32 lanes, 4 bytes each"
    assert opening["numbers"] == "32wavefronts1the fewest possible×32times the fewest"
    assert opening["detail"].startswith("Bank 0 has 32 different words to serve, one per wavefront")
    assert "31 banks have nothing to do" in opening["detail"]
    assert "tile[32][33]" in opening["cure"]
    assert opening["line"] == "6"
    assert (opening["cells"], opening["paths"]) == (32, 32)
    assert operated["badges"] == ["⚠", "⚠×32"]


def test_wavefront_by_wavefront(operated):
    waves, texts = zip(*operated["waves"], strict=True)
    assert waves == (0, 1, 2, 1)
    assert texts[2] == (
        "Wavefront 3 of 32: bank 0 delivers a word to lane 2 (tile[2][0]). 29 lanes still wait."
    )
    assert operated["lanes"][1] == (
        "Lane 1: tile[1][0], byte 128, word 32, bank 0, served in wavefront 2 of 32."
    )


# Four times forwards from step 0, and four times backwards: [step, wavefront].
WALKS = {
    "n": [0, 2, 4, 160, 162, 160, 4, 2, 0],
    "i": [0, 1, 2, 3, 4, 3, 2, 1, 0],
    "ArrowRight": [0, 1, 2, 3, 4, 3, 2, 1, 0],
    ".": [0, 1, 2, 3, 4, 3, 2, 1, 0],
    "b": [0, 4, 4, 4, 4, 4, 4, 4, 4],  # this warp has one barrier
    "c": [0, 160, 163, 166, 169, 166, 163, 160, 160],
    "w": [0, (3, 0), (160, 0), (160, 1), (160, 2), (160, 1), (160, 0), (3, 0), (3, 0)],
}


@pytest.mark.parametrize("key", WALKS)
def test_steps_forwards_and_backwards(operated, key):
    expected = [[k, None] if isinstance(k, int) else list(k) for k in WALKS[key]]
    assert operated["walk"][key] == expected


def test_a_click_on_a_number_runs_to_the_line(operated):
    clicks = operated["clicks"]
    assert clicks["forwards"] == [160, ""]
    assert clicks["again"] == [163, ""]  # another warp's
    assert clicks["backwards"] == [7, "This warp does not come to line 4 again: went back to it."]
    assert clicks["never"][1] == "Line 2 is not executed in these steps."
    assert operated["keyboardLine"] == ["4", 2]  # below line 3, where step 0 is
    assert operated["ends"][0] == [256, "The end of the recording"]
    assert operated["ends"][1][0] == 0


def test_from_a_hazard_to_each_of_its_accesses(operated):
    assert operated["hazards"] == [
        ["Show the read (transpose.cu:6, step 160)", 160],
        ["Show the read (transpose.cu:4, step 7)", 7],
    ]


def test_warps_and_the_time_line(operated):
    assert operated["other"] == [2, 3, 2]
    assert [row[0] for row in operated["time"]] == [0, 1, 14, 256]
    assert operated["time"][1] == [1, "1", "step 1, warp 0"]


def test_cells_of_shared_memory(operated):
    first, second, below = operated["grid"]
    assert first.startswith("tile[0][0] = 0.345584")
    assert "byte 0, bank 0; written by warp 0, lane 0 at transpose.cu:4, step 3." in first
    assert "Touched now by 1 lane: 0." in first
    assert second.startswith("tile[0][1]") and "bank 1" in second
    assert below.startswith("tile[1][1]") and "written by warp 1, lane 1" in below
    assert operated["columns"].startswith("tile[3][1]")


def test_registers_by_name_and_type(operated):
    rows = {row[0].split()[-2 if " read" in row[0] or " written" in row[0] else -1]: row
            for row in operated["registers"]}  # fmt: skip
    assert rows["%r1"][1:] == ["u32", "0", "0, 1, 2 … 31"]
    assert rows["%f2"][1] == "f32" and rows["%f2"][2].startswith("→ 0.345584")


def test_it_asks_for_nothing_and_leaves_nothing(operated):
    assert operated["asked"] == []
    assert operated["left"] == 0
    assert operated["named"] == []
    assert operated["help"][0] and "next bank conflict" in operated["help"][1]


HOSTILE = '</script><img src=x onerror="document.title=1"><b>'


def test_texts_stay_texts(tmp_path):
    made = transpose(hazard=True)
    made.header["files"] = [{"name": HOSTILE, "text": f"{HOSTILE}\n" * 7}]
    made.header["title"] = made.header["hazards"][0]["message"] = HOSTILE
    made.header["shared"][0]["name"] = made.header["arrays"][0]["name"] = HOSTILE
    made.header["explanations"][0]["text"] = made.header["instructions"][5]["text"] = HOSTILE
    told = visit(tmp_path, {"data": packed(made.bytes())}, "texts.js")
    assert told == {"images": 0, "bold": 0, "heading": HOSTILE}


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_contrast_and_width(tmp_path, width):
    """WCAG AA in both themes, and nothing that is wider than the screen."""
    data = packed(transpose(hazard=True).bytes())
    told = visit(tmp_path, {"data": data, "themes": ["light", "dark"]}, "look.js", width=width)
    assert told["width"] == width
    for theme in ("light", "dark"):
        assert told[theme]["faint"] == []
        assert told[theme]["canvas"] == []
    assert told["wide"] == []
    assert told["scroll"] <= width
    assert told["small"] == 0


def request(addresses, width=4, waves=None, cost=1, ideal=1, operation="load"):
    active = (1 << len(addresses)) - 1
    more = [0] * (32 - len(addresses))
    waves = [*map(int, waves), *more] if waves is not None else None
    return {"operation": operation, "width": width, "active": active, "cost": cost,
            "addresses": [*map(int, addresses), *more], "ideal": ideal, "waves": waves}  # fmt: skip


def test_pictures_of_single_requests(tmp_path):
    lanes = np.arange(32)
    requests = [
        request(0 * lanes),  # a broadcast
        request(8 * lanes, waves=lanes // 16, cost=2),  # two ways
        request(16 * lanes, 16, lanes // 8, 4, 4),
        request(16 * lanes, 16, cost=8, ideal=4, operation="copy_async_write"),
        request([4, 132, 260], waves=[0, 1, 2], cost=3, operation="store"),
    ]
    told = visit(tmp_path, {"requests": requests}, "pictures.js")
    broadcast, two, wide, copy, store = told
    assert broadcast["cells"] == ["×32"]
    assert broadcast["text"].endswith("1 wavefront: no conflict.")
    assert not broadcast["controls"]
    assert two["text"].startswith("Banks 0, 2, 4, 6, 8, 10 … have 2 different words each to serve")
    assert two["now"] == list(range(16))
    assert wide["first"] == (
        "Wavefront 1 of 4: banks 0–31 deliver words to lanes 0–7. 24 lanes still wait."
    )
    assert len(wide["cells"]) == 4 * 32
    assert copy["cells"] == [] and copy["wave"] is None and not copy["controls"]
    assert copy["text"] == (
        "The hardware takes 8 wavefronts where 4 would be the fewest. "
        "Which lanes each of them serves is not known."
    )
    assert store["first"] == (
        "Wavefront 1 of 3: bank 1 takes a word from lane 0. 2 lanes still wait."
    )


# ---- the document ----


def test_the_page_is_one_file(tmp_path):
    made = transpose()
    page = _web.page(made.bytes(), "transpose & <b>")
    assert "<title>transpose &amp; &lt;b&gt; - smemkern replay</title>" in page
    assert not re.search(r"(src|href)=", page.split("<script", 1)[0])
    assert "http" not in re.sub(r'"http://www\.w3\.org/2000/svg"|http-equiv', "", page)
    file = tmp_path / "replay.html"
    file.write_text(page, encoding="utf-8")
    shown = dumped(tmp_path, file, "--virtual-time-budget=5000")
    assert "Warp 0 reads shared memory: 32 lanes, 4 bytes each" in html.unescape(shown)


def test_the_recording_is_in_the_page():
    data = transpose().bytes()
    page = _web.page(data, "t")
    held = re.search(r'id="recording">([^<]*)<', page)[1]
    assert zlib.decompress(base64.b64decode(held)) == data


def test_a_frame_for_notebooks(tmp_path):
    """Small, and the page that it unpacks is the page."""
    page = _web.page(transpose().bytes(), "t")
    frame = _web.frame(page)
    assert frame.startswith("<iframe srcdoc=") and 'sandbox="allow-scripts"' in frame
    assert len(frame) < 100_000
    held = html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1])
    packed_page = re.search(r'atob\("([^"]*)"\)', held)[1]
    assert zlib.decompress(base64.b64decode(packed_page)).decode() == page
    file = tmp_path / "unpacked.html"
    file.write_text(f"<!DOCTYPE html>{held}", encoding="utf-8")
    shown = dumped(tmp_path, file, "--virtual-time-budget=5000")
    assert "Warp 0 reads shared memory: 32 lanes, 4 bytes each" in html.unescape(shown)


def test_modules_can_be_joined():
    """Imports name files that come before, and no name is declared twice."""
    names, seen = [], set()
    for file in _web.SCRIPTS:
        text = _web.read(file)
        for imported in re.findall(r'from "\./([\w.]+)"', text):
            assert imported in seen, f"{file} comes before {imported}"
        names += re.findall(
            r"^(?:export )?(?:async )?(?:class|function\*?|const|let) (\w+)", text, re.M
        )
        seen.add(file)
    assert len(names) == len(set(names)), {name for name in names if names.count(name) > 1}
    assert not re.search(r"^(import|export)\b", _web.script(), re.M)
