"""Reports of trace, check, ci and judge: SARIF, JUnit XML, GitHub's workflow commands; limits."""

import json
import random
import re
import xml.etree.ElementTree as ElementTree
from urllib.parse import unquote

import pytest

from command import checked_source, write_examples
from smemkern._reports import formats
from smemkern._reports.findings import RULES, Case, Finding, Place, Sources, of_error

SUM = "sum.cu --grid 4 --block 256 --arg f32[1000]=random --arg f32[4] --arg i32=1000"
TILE = """#include "lib/store.cuh"
extern "C" __global__ void tile(float *y) {
    __shared__ float t[32][32 + PAD];
    store(&t[threadIdx.x][threadIdx.y]);
    __syncthreads();
    y[threadIdx.x + 32 * threadIdx.y] = t[threadIdx.y][threadIdx.x];
}
"""
STORE = """
__device__ inline void store(float *at) {
    *at = 1;
}
"""
TILED = "tile.cu --grid 1 --block 32,32 --arg f32[1024] --option=-I."


@pytest.fixture
def sources(tmp_path, monkeypatch, nvrtc):
    write_examples(tmp_path)
    (tmp_path / "tile.cu").write_text(TILE)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "store.cuh").write_text(STORE)
    (tmp_path / "broken.cu").write_text('extern "C" __global__ void k(int *y) {\n    *y = z;\n}\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- what the formats require


def check_sarif(text):
    """The fields that SARIF 2.1.0 requires, and that GitHub reads; the results."""
    document = json.loads(text)
    assert document["version"] == "2.1.0" and document["$schema"].endswith("sarif-2.1.0.json")
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    rules = [rule["id"] for rule in driver["rules"]]
    assert driver["name"] == "smemkern" and len({*rules}) == len(rules)
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    (invocation,) = run["invocations"]
    assert isinstance(invocation["executionSuccessful"], bool)
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note") and result["message"]["text"]
        assert result["locations"]
        for location in [*result["locations"], *result.get("relatedLocations", [])]:
            place = location["physicalLocation"]
            assert place["region"]["startLine"] >= 1
            assert re.fullmatch(r"[\w/.%~-]+|file:///[\w/.%~-]+", place["artifactLocation"]["uri"])
    return run["results"]


def check_junit(text):
    """The counts are those of the elements, and no two cases have one name; the cases."""
    root = ElementTree.fromstring(text)
    (suite,) = root.findall("testsuite")
    cases = suite.findall("testcase")
    for element in (root, suite):
        assert int(element.get("tests")) == len(cases)
        assert int(element.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(element.get("errors")) == len(suite.findall("testcase/error"))
        assert float(element.get("time")) >= 0
    names = [(case.get("classname"), case.get("name")) for case in cases]
    assert len({*names}) == len(names) and all(all(name) for name in names)
    return cases


COMMAND = re.compile(r"::(error|warning|notice) file=([^,]*),line=(\d+),title=([^,:]*)::(.*)")


def check_github(text):
    """(level, file, line, title, message) of each workflow command, as a runner reads them."""
    *lines, summary = text.splitlines()
    assert summary.startswith("smemkern: ")
    found = []
    for line in lines:
        level, *rest = COMMAND.fullmatch(line).groups()
        for code, letter in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n")):
            rest = [one.replace(code, letter) for one in rest]
        file, number, title, message = (one.replace("%25", "%") for one in rest)
        found.append((level, file, int(number), title, message))
    return found


# ---- the commands


@pytest.mark.parametrize("name", ["check", "trace"])
def test_a_race_in_each_format(command, sources, name):
    line = 1 + sources.joinpath("sum.cu").read_text().splitlines().index(
        "            part[threadIdx.x] += part[threadIdx.x + half];"
    )
    assert command.run(f"{name} {SUM} --format sarif") == 1
    (result,) = check_sarif(command.out)
    assert result["ruleId"] == "RAW" and "RAW race, shared part[1]" in result["message"]["text"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "sum.cu"},
        "region": {"startLine": line},
    }
    assert command.run(f"{name} {SUM} --format junit") == 1
    (case,) = check_junit(command.out)
    failure = case.find("failure")
    assert failure.get("type") == "RAW" and f"sum.cu:{line}: RAW" in failure.text
    assert command.run(f"{name} {SUM} --format github") == 1
    ((level, file, at, title, message),) = check_github(command.out)
    assert (level, file, at, title) == ("error", "sum.cu", line, "smemkern: RAW")
    assert f"sum.cu:{line} reads it" in message


def test_a_clean_kernel_in_each_format(command, sources):
    words = SUM.replace("sum.cu", "ref.cu")
    assert command.run(f"check {words} --format sarif") == 0
    assert check_sarif(command.out) == []
    assert command.run(f"check {words} --format junit") == 0
    assert [len(case) for case in check_junit(command.out)] == [0]
    assert command.run(f"check {words} --format github") == 0
    assert command.out == "smemkern: 1 kernel, no findings\n"


def test_files_are_written_beside_the_text(command, sources):
    assert command.run(f"check {SUM} --sarif a.sarif --junit a.xml") == 1
    assert "RAW race" in command.out and "{" not in command.out
    assert len(check_sarif((sources / "a.sarif").read_text())) == 1
    assert len(check_junit((sources / "a.xml").read_text())) == 1
    assert command.run(f"check {SUM} --sarif missing/a.sarif") == 2
    assert "missing/a.sarif: No such file" in command.err


@pytest.mark.parametrize(
    ("pad", "limit", "status"), [(0, 1, 1), (0, 31.9, 1), (0, 32, 0), (1, 1, 0)]
)
def test_a_limit_of_factors(command, sources, pad, limit, status):
    words = f"{TILED} --option=-DPAD={pad} --max-factor {limit}"
    for name in ("check", "trace"):
        assert command.run(f"{name} {words} --format github") == status
        found = check_github(command.out)
        assert len(found) == status
        for level, file, line, title, message in found:  # in the header, called from tile.cu
            assert (level, file, line) == ("error", "lib/store.cuh", 3)
            assert title == "smemkern: bank-conflict" and "factor 32.00" in message
            assert "tile.cu:4: inlined here" in message
    assert command.run(f"trace {words}") == status
    assert ("is over the limit" in command.out) == bool(status)


def test_limits_of_variants(command):
    words = "trace gemm --shape 32 32 32 --variant"
    assert command.run(f"{words} conflicted --max-factor 1 --format sarif") == 1
    uris = {
        row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for row in check_sarif(command.out)
    }
    assert {uri.rpartition("/")[2] for uri in uris} == {"gemm_conflicted.cu"}
    assert command.run(f"{words} padded --max-factor 1") == 0
    assert command.run(f"{words} conflicted") == 0


@pytest.mark.parametrize("limit", ["0.5", "nan", "inf", "x", "-1"])
def test_limits_that_are_none(command, limit):
    assert command.run(f"trace gemm --max-factor={limit}") == 2
    assert "expected a number of at least 1" in command.err


def test_errors_are_in_the_reports(command, sources):
    words = "broken.cu --grid 1 --block 1 --arg i32[1]"
    for name in ("check", "trace"):
        assert command.run(f"{name} {words} --format github --sarif b.sarif --junit b.xml") == 2
        ((level, file, line, title, message),) = check_github(command.out)
        assert (level, file, line, title) == ("error", "broken.cu", 2, "smemkern: error")
        assert '"z" is undefined' in message
        (result,) = check_sarif((sources / "b.sarif").read_text())
        assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 2
        assert '"executionSuccessful": false' in (sources / "b.sarif").read_text()
        (case,) = check_junit((sources / "b.xml").read_text())
        assert case.find("error") is not None
    assert command.run("check none.cu --grid 1 --block 1 --format github") == 2
    assert check_github(command.out)[0][1:3] == ("none.cu", 1)


def test_json_is_a_format(command, sources):
    assert command.run(f"check {SUM} --json") == 1
    first = command.out
    assert command.run(f"check {SUM} --format json") == 1
    assert command.out == first and json.loads(first)["schema"] == "smemkern.check/1"


# ---- untrusted texts


def hostile(rng):
    parts = [*"ab:,%<>&\"'\n\r\t\0\x1b\x85\u2028\ud800\U0001f600"]
    parts += ["]]>", "::error::", "%0A", "%25", "%3A", "&amp;", "../", "file:///"]
    return "".join(rng.choice(parts) for _ in range(rng.randrange(1, 30)))


def test_any_text_stays_inside_of_its_field():
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(200):
        message, name, file = hostile(rng), hostile(rng), hostile(rng)
        finding = Finding("RAW", message, Place(file, 3), (Place(hostile(rng), 4, "x"),))
        cases = [Case(name, file, 1, [finding])]
        (result,) = json.loads(formats.sarif(cases))["runs"][0]["results"]
        assert result["message"]["text"] == message, seed
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        if "\ud800" not in file:
            assert unquote(uri.removeprefix("file://")) == file, seed
        (case,) = check_junit(formats.junit(cases).encode("utf-8"))
        shown = re.sub("[\0\x1b\ud800]", "\ufffd", name)
        assert case.get("name") == shown, seed
        lines = formats.github(cases).split("\n")
        assert len(lines) == 3 and lines[1].startswith("smemkern: ") and not lines[2], seed
        assert not re.search(r"[\r\n]", lines[0]) and lines[0].count("::") >= 2, seed
        properties, _, data = lines[0].removeprefix("::").partition("::")
        assert properties.count(",") == 2 and ":" not in properties, seed
        decoded = data.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
        assert decoded.startswith(message), seed


PRINTS = r"""extern "C" __global__ void k(int *y) {
    printf("::error::printed\n{\nno newline");
    *y = 1;
}
"""


@pytest.mark.parametrize("form", ["json", "sarif", "junit", "github"])
def test_what_kernels_print_is_in_no_report(command, sources, form):
    (sources / "prints.cu").write_text(PRINTS)
    words = "check prints.cu --grid 1 --block 1 --arg i32[1]"
    assert command.run(words) == 0
    assert command.out.startswith("::error::printed\n{\nno newline")
    assert command.run(f"{words} --format {form}") == 0
    assert "printed" not in command.out
    assert command.err == "printf: ::error::printed\nprintf: {\nprintf: no newline"


def test_a_flood_of_lines_is_cut(command, sources):
    (sources / "prints.cu").write_text(PRINTS)
    command.run("check prints.cu --grid 9 --block 32 --arg i32[1] --format github")
    assert 100 <= len(command.err.splitlines()) < 110
    assert "further lines are not shown" in command.err


def test_a_compiler_message_begins_no_workflow_command(command, sources):
    evil = 'extern "C" __global__ void k() {\n  ::error::mine;\n}\n'
    (sources / "evil.cu").write_text(evil)
    assert command.run("check evil.cu --grid 1 --block 1 --format github") == 2
    assert "::error::mine" in command.err  # the compiler quotes the line
    assert not any(line.strip().startswith("::") for line in command.err.splitlines())


# ---- places


def test_included_files_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.cu").write_text('#include "a.h"\n# include <b.h>\n#include "none.h"\n')
    (tmp_path / "a.h").write_text('#include "sub/c.h"\n#include "k.cu"\n')  # a circle
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.h").write_text("")
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "b.h").write_text("")
    for options in (["-Iinc"], ["-I", "inc"], ["--include-path=inc"]):
        found = Sources(tmp_path / "k.cu", options)
        assert found.find("kernel.cu", 7) == Place("k.cu", 7)
        assert found.find(None, 5) == Place("k.cu", 5)
        assert found.find("a.h", 2) == Place("a.h", 2)
        assert found.find("c.h", 3) == Place("sub/c.h", 3)
        assert found.find("b.h", 4) == Place("inc/b.h", 4)
        assert found.find("cuda_fp16.h", 9) == Place("k.cu", 1)  # of no known file
        assert found.find(None, None) == Place("k.cu", 1)
    assert Sources(tmp_path / "k.cu").find("b.h", 4) == Place("k.cu", 1)
    monkeypatch.chdir(tmp_path / "sub")
    assert Sources(tmp_path / "k.cu").find(None, 5) == Place(f"{tmp_path}/k.cu", 5)


def test_all_errors_of_a_compiler(tmp_path):
    message = "it failed\nkernel.cu(3): error: one\n  text\nkernel.cu(9): error: two\n2 errors"
    found = of_error(message, Sources(tmp_path / "x.cu"))
    assert [(one.place.line, one.message[-3:]) for one in found] == [(3, "one"), (9, "two")]


def test_every_kind_of_hazard_has_a_rule():
    from pathlib import Path

    page = Path(__file__).parents[1] / "docs" / "hazards.md"
    table = page.read_text(encoding="utf-8").split("## What is found")[1].split("A row has")[0]
    kinds = {kind for row in re.findall(r"^\| (`.*?) \|", table, re.M) for kind in row.split(", ")}
    assert len(kinds) > 14 and {kind.strip("`") for kind in kinds} <= {*RULES}


# ---- ci


def test_launches_of_comments(command, sources):
    folder = sources / "src"
    (folder / "two.cu").write_text(
        "// smemkern: check --grid 1 --block 64\n//    --arg i32[4]\n// --no-optimise\n"
        'extern "C" __global__ void race(int *y) { y[threadIdx.x / 32] = threadIdx.x; }\n'
        "// smemkern: check --grid 1 --block 1 --arg i32[4]\n"
    )
    (folder / "none.cuh").write_text("// nothing of smemkern here\n")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "h.cu").write_text("// smemkern: check\n")
    found = command.json("ci src")
    assert command.status == 1
    runs = [(run["file"], run["line"], run["status"]) for run in found["runs"]]
    assert runs == [("src/sum.cu", 1, 1), ("src/two.cu", 1, 1), ("src/two.cu", 5, 0)]
    assert found["runs"][1]["command"].endswith("--arg i32[4] --no-optimise")
    assert [one["rule"] for one in found["runs"][1]["findings"]] == ["WAW"]
    assert command.run("ci src --sarif a.sarif --junit a.xml") == 1
    assert "src/none.cuh: no launches" in command.out
    assert "3 launches checked, 2 with findings" in command.out
    assert len(check_sarif((sources / "a.sarif").read_text())) == 2
    cases = check_junit((sources / "a.xml").read_text())
    assert [case.get("line") for case in cases] == ["1", "1", "5"]
    assert command.run("ci src/two.cu src/none.cuh --format github") == 1
    assert [row[1:3] for row in check_github(command.out)] == [("src/two.cu", 4)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("chek --grid 1 --block 1", 'expected "smemkern: check"'),
        ("", 'expected "smemkern: check"'),
        ("check --grid 1", "required: --block"),
        ("check --grid 0 --block 1", "positive integers"),
        ("check --grid 1 --block 1 --sarif x.sarif", "belong to the command line"),
        ("check --grid 1 --block 1 --html x.html", "unrecognized arguments: --html"),
        ("check --grid 1 --block 1 --arg 'i32", "No closing quotation"),
        ("check --help", "required: --grid"),
        ("check other.cu --grid 1 --block 1", "unrecognized arguments: other.cu"),
    ],
)
def test_comments_that_are_wrong(command, sources, text, error):
    (sources / "k.cu").write_text(f"\n// smemkern: {text}\n")
    assert command.run("ci k.cu --format github") == 2
    ((_, file, line, _, message),) = check_github(command.out)
    assert (file, line) == ("k.cu", 2) and error in message
    assert not (sources / "x.sarif").exists()


def test_one_wrong_launch_does_not_hide_the_others(command, sources):
    (sources / "src" / "broken.cu").write_text("// smemkern: check --grid 1 --block 1\nint f(\n")
    found = command.json("ci src")
    assert command.status == 2
    assert [run["status"] for run in found["runs"]] == [2, 1]
    assert checked_source().startswith("// smemkern: check")
