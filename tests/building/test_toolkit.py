"""Where nvcc is looked for, and what is asked of the package index where there is none."""

import os
import stat

import pytest

from buildtools import images, toolkit


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """An environment without any CUDA."""
    for name in ("NVCC", "CUDA_HOME", "CUDA_PATH", images.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return monkeypatch


def program(path, text="exit 0"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_order_of_the_search(bare, tmp_path):
    on_path = program(tmp_path / "path" / "nvcc")
    in_home = program(tmp_path / "home" / "bin" / "nvcc")
    named = program(tmp_path / "named" / "nvcc-13")
    assert toolkit.system_nvcc() is None
    bare.setenv("PATH", str(on_path.parent))
    assert toolkit.system_nvcc() == on_path
    bare.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert toolkit.system_nvcc() == in_home
    bare.setenv("NVCC", str(named))
    assert toolkit.system_nvcc() == named


def test_a_wrong_nvcc_is_named(bare, tmp_path):
    bare.setenv("NVCC", str(tmp_path / "nothing"))
    with pytest.raises(toolkit.ToolkitError, match="nothing is not a program"):
        toolkit.system_nvcc()


def test_an_old_toolkit_is_refused(bare, tmp_path):
    nvcc = program(tmp_path / "nvcc", "echo 'release 11.8, V11.8.89'")
    with pytest.raises(toolkit.ToolkitError, match=r"CUDA 11\.8; 12\.0 or newer is needed"):
        toolkit.describe(nvcc)


def test_no_compiler_says_what_to_do(bare):
    bare.setattr(toolkit.sys, "path", [])
    with pytest.raises(toolkit.ToolkitError, match="Set NVCC .* nvidia-cuda-nvcc"):
        toolkit.find()


def test_wheels_are_asked_for_only_without_nvcc(bare, tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    from buildtools.pep517 import backend

    assert backend._wheels() == toolkit.WHEELS
    bare.setenv("PATH", str(program(tmp_path / "bin" / "nvcc").parent))
    assert backend._wheels() == []


def kit(*known):
    path = os.devnull
    return toolkit.Toolkit(path, path, path, (13, 0), "", frozenset(known))


def test_list_of_architectures(bare):
    everything = kit("75", "80", "86", "90", "90a", "100", "120", "121a")
    assert images.architectures(everything) == ["80", "90a", "100", "120"]
    # An older toolkit leaves the newest out: the PTX inside the image covers them.
    assert images.architectures(kit("80", "90a")) == ["80", "90a"]
    bare.setenv(images.VARIABLE, "sm_90a, 12.1a;80 80")
    assert images.architectures(everything) == ["90a", "121a", "80"]
    bare.setenv(images.VARIABLE, "none")
    assert images.architectures(everything) == []
    for text, message in [("99", "does not support '99'"), ("75", "too old"), (" ", "is empty")]:
        bare.setenv(images.VARIABLE, text)
        with pytest.raises(images.ImageError, match=message):
            images.architectures(everything)
