"""The GitHub Action and the pre-commit hooks: their files, and the commands that they run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command import checked_source, write_examples

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}


@pytest.fixture
def project(tmp_path, nvrtc):
    write_examples(tmp_path)
    (tmp_path / "with blank").mkdir()
    (tmp_path / "with blank" / "$(touch x).cu").write_text(checked_source())
    return tmp_path


def environment(folder, **more):
    """Of a process that finds this python3, and this package."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    if not (tools / "python3").exists():
        (tools / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (tools / "python3").chmod(0o755)
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)} | more


def run_step(name, folder, inputs):
    """A step as the runner runs it: bash -eo pipefail, with the step's environment."""
    step = STEPS[name]
    assert step["shell"] == "bash" and "${{" not in step["run"]  # inputs are no part of a script
    defaults = {key: value["default"] for key, value in ACTION["inputs"].items()}
    values = defaults | inputs

    def value(text):
        text = re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: values[found[1]], str(text))
        whole = "${{ inputs.install || format('{0}[nvrtc]', github.action_path) }}"
        return text.replace(whole, values["install"] or f"{ROOT}[nvrtc]")

    own = {key: value(text) for key, text in step["env"].items()}
    assert not any("${{" in text for text in own.values())
    output = folder / "output"
    output.write_text("")
    script = folder / "script.sh"
    script.write_text(step["run"])
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=folder,
        env=environment(folder, GITHUB_OUTPUT=str(output), **own),
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done, output.read_text()


def test_the_action_is_complete():
    assert ACTION["runs"]["using"] == "composite" and ACTION["description"]
    assert all(one["description"] and "default" in one for one in ACTION["inputs"].values())
    used = {*re.findall(r"inputs\.(\w+)", (ROOT / "action.yml").read_text(encoding="utf-8"))}
    assert used == {*ACTION["inputs"]}
    assert ACTION["outputs"]["sarif"]["value"] == "${{ steps.check.outputs.sarif }}"


def test_the_action_checks(project):
    done, output = run_step("check", project, {"paths": "src\n\nwith blank\n", "junit": "j.xml"})
    assert done.returncode == 1, done.stderr
    assert output == "sarif=smemkern.sarif\n"
    assert "::error file=src/sum.cu,line=10," in done.stdout
    assert "::error file=with blank/$(touch x).cu,line=10," in done.stdout
    assert (project / "smemkern.sarif").exists() and (project / "j.xml").exists()
    assert not (project / "x").exists()


def test_the_action_with_other_inputs(project):
    done, output = run_step("check", project, {"paths": "ref.cu", "sarif": ""})
    assert (done.returncode, output) == (0, "sarif=\n")
    assert not (project / "smemkern.sarif").exists()
    done, _ = run_step("check", project, {"paths": "--help"})
    assert done.returncode == 2 and "--help: No such file" in done.stderr
    done, _ = run_step("check", project, {"paths": "$(touch x); touch x"})
    assert done.returncode == 2 and not (project / "x").exists()


def test_the_action_installs(project):
    """pip is not run: what it would be called with is."""
    tools = project / "tools"
    tools.mkdir()
    (tools / "python3").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tools / "python3").chmod(0o755)
    for given, expected in (("", f"{ROOT}[nvrtc]"), ("a b; touch x", "a b; touch x")):
        done, _ = run_step("install", project, {"install": given})
        assert done.stdout.splitlines() == ["-m", "pip", "install", expected]
    assert STEPS["install"]["if"] == "inputs.install != 'none'" and not (project / "x").exists()


def test_hooks(project):
    assert [hook["id"] for hook in HOOKS] == ["smemkern", "smemkern-installed"]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extra = re.findall(r'"([^"]+)"', re.search(r"^nvrtc = \[(.*?)\]", text, re.M | re.S)[1])
    assert HOOKS[0]["additional_dependencies"] == extra
    for hook in HOOKS:
        assert {"name", "entry", "language", "files"} <= {*hook}
        assert re.search(hook["files"], "a/b.cu") and not re.search(hook["files"], "a.cubin")
    entry = HOOKS[1]["entry"].split()
    for names, status in ((["src/sum.cu", "ref.cu"], 1), (["ref.cu"], 0)):
        done = subprocess.run(
            [*entry, *names], cwd=project, env=environment(project), capture_output=True, text=True
        )
        assert done.returncode == status, done.stderr


@pytest.mark.skipif(not shutil.which("pre-commit"), reason="pre-commit is not installed")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="pre-commit needs a clone")
def test_pre_commit_itself(project):
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(["git", "add", "src"], cwd=project, check=True)
    done = subprocess.run(
        ["pre-commit", "try-repo", str(ROOT), "smemkern-installed", "--all-files"],
        cwd=project,
        env=environment(project, PRE_COMMIT_HOME=str(project / "home")),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "RAW race" in done.stdout, done.stdout + done.stderr


def test_the_workflow_of_the_page():
    """It is YAML, and gives the action only inputs that it has."""
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.S)]
    workflow, gitlab, hooks = blocks
    steps = workflow["jobs"]["kernels"]["steps"]
    (own,) = (step for step in steps if step["uses"].startswith("OWNER/smemkern@"))
    assert {*own["with"]} <= {*ACTION["inputs"]}
    assert "smemkern ci src --junit kernels.xml" in gitlab["kernels"]["script"]
    assert hooks["repos"][0]["hooks"][0]["id"] in [hook["id"] for hook in HOOKS]
