"""Where the CUDA compilers are looked for, and what is asked of the package index."""

import stat
from pathlib import Path

import pytest

from buildtools import nvrtc, targets, toolkit

CODE = toolkit.NVRTC_WHEELS + toolkit.MACHINE_CODE_WHEELS


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """An environment without any CUDA."""
    for name in ("NVCC", "CUDA_HOME", "CUDA_PATH", targets.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'empty'}:/bin")
    monkeypatch.setattr(toolkit.sys, "path", [])
    monkeypatch.setattr(nvrtc, "version", lambda library: (13, 0))
    return monkeypatch


def program(path, text="exit 0"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def installed(root, library="lib64", majors=(13,), folder=None):
    """A toolkit: its nvcc, which says that the programs are in `folder`."""
    (root / library).mkdir(parents=True)
    for name in (*majors, "alt.so.13", *(f"{major}.0.88" for major in majors)):
        (root / library / f"libnvrtc.so.{name}").touch()
    program(root / "bin" / "ptxas", "echo \"'sm_80','sm_90a','sm_75'\"")
    program(root / "bin" / "fatbinary")
    return program(root / "bin" / "nvcc", f"echo '#$ _HERE_={folder or root / 'bin'}'")


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


@pytest.mark.parametrize("library", ["lib64", "lib"])
def test_nvrtc_of_a_toolkit(bare, tmp_path, library):
    bare.setenv("NVCC", str(installed(tmp_path, library, (12, 13))))
    kit = toolkit.find(machine_code=False)
    assert kit.nvrtc == tmp_path / library / "libnvrtc.so.13"
    assert kit.assembler is None
    assembler = toolkit.find(machine_code=True).assembler
    assert assembler.ptxas == tmp_path / "bin" / "ptxas"
    assert assembler.architectures == {"75", "80", "90a"}


def test_a_wrapper_of_nvcc_leads_to_its_toolkit(bare, tmp_path):
    installed(tmp_path / "real")
    wrapper = program(tmp_path / "nvcc", f"echo '#$ _HERE_={tmp_path / 'real' / 'bin'}'")
    bare.setenv("NVCC", str(wrapper))
    assert toolkit.find(machine_code=False).nvrtc == tmp_path / "real/lib64/libnvrtc.so.13"


def test_wheels_serve_where_the_toolkit_has_no_nvrtc(bare, tmp_path):
    bare.setenv("NVCC", str(program(tmp_path / "nvcc")))
    with pytest.raises(toolkit.ToolkitError, match=r"no NVRTC \(libnvrtc.so\) in the toolkit of"):
        toolkit.find(machine_code=False)
    installed(tmp_path / "site" / "nvidia" / "cu13", "lib")
    bare.setattr(toolkit.sys, "path", [str(tmp_path / "site")])
    kit = toolkit.find(machine_code=True)
    root = tmp_path / "site" / "nvidia" / "cu13"
    assert (kit.nvrtc.parent, kit.assembler.ptxas) == (root / "lib", root / "bin" / "ptxas")
    (root / "bin" / "fatbinary").unlink()
    with pytest.raises(toolkit.ToolkitError, match="machine code needs fatbinary"):
        toolkit.find(machine_code=True)


def test_an_old_toolkit_is_refused(bare, tmp_path):
    bare.setenv("NVCC", str(installed(tmp_path)))
    bare.setattr(nvrtc, "version", lambda library: (11, 8))
    with pytest.raises(toolkit.ToolkitError, match=r"CUDA 11\.8; 12\.0 or newer is needed"):
        toolkit.find(machine_code=False)


def test_a_library_that_is_none_is_named(bare, tmp_path):
    bare.undo()
    (tmp_path / "libnvrtc.so.13").write_text("not a library")
    with pytest.raises(nvrtc.NvrtcError, match=r"libnvrtc\.so\.13 cannot be used: "):
        nvrtc.version(tmp_path / "libnvrtc.so.13")


def test_no_compiler_says_what_to_do(bare):
    with pytest.raises(toolkit.ToolkitError, match="Set NVCC .* nvidia-cuda-nvrtc"):
        toolkit.find(machine_code=False)


def test_wheels_are_asked_for_only_without_a_toolkit(bare, tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    from buildtools.pep517 import backend

    bare.setattr(targets, "_capabilities", lambda: [])
    assert backend._wheels() == toolkit.NVRTC_WHEELS
    bare.setenv(targets.VARIABLE, "90a")
    assert backend._wheels() == CODE
    bare.delenv(targets.VARIABLE)
    bare.setattr(targets, "_capabilities", lambda: [(9, 0)])
    assert backend._wheels() == CODE
    bare.setenv("PATH", str(program(tmp_path / "bin" / "nvcc").parent))
    assert backend._wheels() == CODE  # no NVRTC beside it
    bare.setenv("PATH", str(installed(tmp_path / "whole").parent))
    assert backend._wheels() == []


def kit(*known):
    here = Path("ptxas")
    return toolkit.Assembler(here, here, "", frozenset(known))


EVERYTHING = kit("75", "80", "86", "90", "90a", "100", "120", "121a")


def test_list_of_architectures(bare):
    bare.setenv(targets.VARIABLE, "all")
    assert targets.read(EVERYTHING).architectures == ("80", "90a", "100", "120")
    # An older toolkit leaves the newest out: the PTX inside the image covers them.
    assert targets.read(kit("80", "90a")).architectures == ("80", "90a")
    bare.setenv(targets.VARIABLE, "sm_90a, 12.1a;80 80")
    assert targets.read(EVERYTHING) == targets.Targets(("90a", "121a", "80"))
    bare.setenv(targets.VARIABLE, "none")
    assert targets.read(EVERYTHING) == targets.Targets(())
    for text, message in [("99", "does not support '99'"), ("75", "too old"), (" ", "is empty")]:
        bare.setenv(targets.VARIABLE, text)
        with pytest.raises(targets.TargetError, match=message):
            targets.read(EVERYTHING)


@pytest.mark.parametrize(
    ("gpus", "architectures"),
    [
        ([], ()),
        ([(9, 0), (9, 0)], ("90a",)),
        ([(8, 6), (12, 0)], ("86", "120")),
        ([(7, 5)], ()),  # too old: for the emulator
        ([(13, 0)], ()),  # newer than ptxas: the driver compiles PTX
    ],
)
def test_by_default_for_the_gpus_of_this_machine(bare, gpus, architectures):
    bare.setattr(targets, "_capabilities", lambda: gpus)
    for text in (None, "native", " Native "):
        if text is not None:
            bare.setenv(targets.VARIABLE, text)
        found = targets.read(EVERYTHING)
        assert found == targets.Targets(architectures, native=True)
        assert found.emulator_only == (not architectures)
        assert targets.wants_machine_code() == bool(gpus)
