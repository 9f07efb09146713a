"""smemkern share: what a link holds. tests/test_lab_page.py opens links in a browser."""

import base64
import json
import secrets
import zlib

import numpy as np
import pytest

import smemkern

SOURCE = """extern "C" __global__ void k(const float *x, short *y, int n, double a) {
    if (threadIdx.x < n) y[threadIdx.x] = (short)(a * x[threadIdx.x]);
}
"""
ARGS = "--arg f32[40]=random --arg i16[40]=-3 --arg 40 --arg 0.5"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "k.cu").write_text(SOURCE)
    (tmp_path / "k.ptx").write_text(smemkern.Kernel(SOURCE).ptx)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def unpacked(link):
    base, _, text = link.partition("#v1=")
    assert text and not set(text) - set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    )
    return base, json.loads(
        zlib.decompress(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    )


def link(command, words):
    return unpacked(command.json(f"share {words} --link")["link"])


def test_a_link_holds_source_ptx_launch_and_data(command, folder, nvrtc):
    base, found = link(command, f"k.cu --grid 2,3 --block 64 --shared-bytes 8 {ARGS}")
    assert base == "lab.html"
    assert found["source"] == SOURCE and found["file"] == "k.cu" and found["kernel"] == "k"
    assert found["ptx"] == smemkern.Kernel(str(folder / "k.cu")).ptx
    launch = found["launch"]
    assert (launch["grid"], launch["block"], launch["shared_bytes"]) == ([2, 3], [64], 8)
    x, y, n, a = launch["arguments"]
    data = np.frombuffer(base64.b64decode(x.pop("data")), np.float32)
    expected = np.random.default_rng(0).standard_normal(40).astype(np.float32)
    np.testing.assert_array_equal(data, expected)
    assert x == {"name": "x", "type": "float32", "shape": [40], "fill": "data"}
    assert y == {"name": "y", "type": "int16", "shape": [40], "fill": "constant", "value": -3}
    assert (n["name"], n["value"]) == ("n", 40)
    assert a == {"name": "a", "type": "float64", "value": 0.5}


def test_a_file_of_data_travels_as_it_is(command, folder, nvrtc):
    rng = np.random.default_rng(seed := secrets.randbits(32))
    whole = rng.standard_normal((5, 8)).astype(np.float32)
    np.save("x.npy", whole)
    _, found = link(command, "k.cu --grid 1 --block 32 --arg x.npy --arg i16[40] --arg 40 --arg 1")
    x = found["launch"]["arguments"][0]
    assert x["shape"] == [5, 8] and base64.b64decode(x["data"]) == whole.tobytes(), seed


def test_ptx_is_shared_without_source(command, folder, nvrtc):
    base, found = link(
        command, f"k.ptx --grid 1 --block 64 {ARGS} --base https://example.org/a/lab.html#old"
    )
    assert base == "https://example.org/a/lab.html"
    assert found["source"] == "" and found["ptx"] == (folder / "k.ptx").read_text()


@pytest.mark.parametrize(
    ("words", "message", "status"),
    [
        (f"k.cu --grid 1 --block 64 {ARGS}", "one of the arguments -o/--output --link", 2),
        (f"k.cu --grid 1 --block 64 {ARGS} --link -o a.html", "not allowed with argument", 2),
        ("k.cu --grid 1 --block 64 --arg '{1,2}' --arg i16[1] --arg 1 --arg 1 --link", "struct", 2),
        (
            "k.cu --grid 1 --block 64 --arg f32[999999]=random --arg i16[9] --arg 9 --arg 1 --link",
            "write a file with -o",
            2,
        ),
        (
            "k.cu --grid 1 --block 64 --arg f32[9] --arg i16[9] --arg i64=9007199254740993 "
            "--arg 1 --link",
            "below 2**53",
            2,
        ),
        (f"k.cu --grid 1 --block 64 {ARGS} -o a.html --page none.html", "laboratory page", 3),
        (f"k.cu --grid 1 --block 64 {ARGS} -o a.html --page k.cu", "no laboratory page", 2),
        ("none.cu --grid 1 --block 64 --link", "none.cu", 2),
    ],
)
def test_what_cannot_be_shared_is_explained(command, folder, nvrtc, words, message, status):
    assert command.run(f"share {words}") == status
    assert message in command.err


def test_a_file_is_the_page_with_a_kernel(command, folder, nvrtc):
    (folder / "page.html").write_text(
        '<script type="text/plain" id="gallery">QUJD</script>'
        '<script type="text/plain" id="shared"></script>'
    )
    assert command.run(f"share k.cu --grid 1 --block 64 {ARGS} -o a.html --page page.html") == 0
    assert "wrote a.html" in command.out
    text = (folder / "a.html").read_text()
    assert text.startswith('<script type="text/plain" id="gallery"></script>')
    _, found = unpacked("#" + text.split('id="shared">')[1].split("<")[0])
    assert found["source"] == SOURCE
