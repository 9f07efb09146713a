"""Values that nobody wrote: copies carry them along, and a report comes where one is used."""

import json
import re

import pytest

import run_programs

SOURCE = (run_programs.PROGRAMS / "undefined.cu").read_text()
MARKS = {
    n: mark[1]
    for n, line in enumerate(SOURCE.splitlines(), 1)
    if (mark := re.search(r"// (\w+)$", line))
}


@pytest.fixture(scope="module", params=[(), ("-G",)], ids=["optimised", "for debugging"])
def program(tmp_path_factory, request):
    """Code for debugging copies structs through local memory."""
    options = ("-arch=sm_80", *request.param)
    return run_programs.compiled(tmp_path_factory.mktemp("undefined"), "undefined", *options)


@pytest.fixture
def found(program, run_program):
    """found(words): the marks of the lines with a hazard and how many, and messages of misuses."""

    def run(words):
        _, out, err = run_program("--json", program, *words.split())
        assert "PASS" in err, out + err
        report = json.loads(out)
        hazards = [h for kernel in report["kernels"] for h in kernel["hazards"]]
        assert all(h["kind"] == "uninitialised" for h in hazards), hazards
        return (
            {MARKS.get(h["line"], h["line"]): h["count"] for h in hazards},
            [m["message"] for m in report["misuses"]],
        )

    return run


COPIES = [
    "fill copy",
    "fill reverse",
    "fill loop",
    "fill pipelined",
    "fill bounded",
    "fill bytes",
    "fill three",
    "fill unused",
    "fill keep",
    "copy swap copy swap copy",  # of what is not written at all
    "unused",
    "fill memcpy swap copy swap memcpy",
    "fill copy zeros add",  # overwritten
    "zeros copy zeros add",
    "fill zeros copy zeros swap copy swap add",
]


@pytest.mark.parametrize("words", COPIES)
def test_copies_are_not_reported(found, words):
    assert found(words) == ({}, [])


USES = [
    ("fill copy add", {"add": 64}),
    ("fill zeros copy add", {"add": 64}),  # also into memory that was written
    ("fill reverse add", {"add": 64}),
    ("fill loop add", {"add": 64}),
    ("fill pipelined add", {"add": 64}),
    ("fill bounded add", {"add": 59}),
    ("fill keep add", {"add": 64}),
    ("fill zeros memcpy add", {"add": 64}),
    ("fill copy branch", {"branch": 64}),
    ("fill copy index", {"index": 64}),
    ("fill copy print", {"print": 1}),
    ("fill copy clear atomic", {"atomic": 64}),
    ("fill copy swap copy swap copy swap zeros swap add", {"add": 64}),
    ("fill within", {"within": 64}),
    ("fill shared", {"shared": 64}),
    ("copy add", {"add": 64}),
    ("some", {"some": 64}),  # some lanes use it
    ("fill copy swap add swap add", {"add": 128}),
]


@pytest.mark.parametrize(("words", "uses"), USES)
def test_uses_are_reported_at_the_load(found, words, uses):
    assert found(words) == (uses, [])


def test_a_copy_to_the_host_says_who_copied(found):
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if "void copy(" in text)
    said = "cuMemcpyDtoH copies bytes to the host that were never written"
    copied = f": undefined.cu:{line} reads them in a kernel, which copies them"
    assert found("fill copy back") == ({}, [said + copied])
    assert found("fill zeros copy back") == ({}, [said + copied])
    assert found("fill swap back") == ({}, [said])
    [line] = [n for n, mark in MARKS.items() if mark == "never"]
    copied = f": undefined.cu:{line} reads them in a kernel, which copies them"
    assert found("never sum") == ({}, [said + copied])
    assert found("fill zeros copy zeros back") == ({}, [])
