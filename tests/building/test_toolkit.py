"""Where the CUDA compilers are looked for, and what is asked of the package index."""

import stat
from pathlib import Path

import pytest

from buildtools import nvrtc, targets, toolkit


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


SAYS = "echo 'release 13.0, V13.0.88'; echo '#$ _HERE_={}'"


def installed(root, library="lib64", majors=(13,), folder=None):
    """A toolkit: its nvcc, which says that the programs are in `folder`."""
    (root / library).mkdir(parents=True)
    for name in (*majors, "alt.so.13", *(f"{major}.0.88" for major in majors)):
        (root / library / f"libnvrtc.so.{name}").touch()
    program(root / "bin" / "ptxas", "echo \"'sm_80','sm_90a','sm_75'\"")
    program(root / "bin" / "fatbinary")
    return program(root / "bin" / "nvcc", SAYS.format(folder or root / "bin"))


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
def test_nvrtc_for_the_emulator_and_nvcc_for_machine_code(bare, tmp_path, library):
    nvcc = installed(tmp_path, library, (12, 13))
    bare.setenv("NVCC", str(nvcc))
    kit = toolkit.find(machine_code=False)
    assert (kit.compiler, kit.is_nvrtc) == (tmp_path / library / "libnvrtc.so.13", True)
    assert kit.assembler is None
    kit = toolkit.find(machine_code=True)
    assert (kit.compiler, kit.is_nvrtc, kit.version) == (nvcc, False, (13, 0))
    assert kit.assembler.ptxas == tmp_path / "bin" / "ptxas"
    assert kit.assembler.architectures == {"75", "80", "90a"}


def test_a_wrapper_of_nvcc_leads_to_its_toolkit(bare, tmp_path):
    installed(tmp_path / "real")
    wrapper = program(tmp_path / "nvcc", SAYS.format(tmp_path / "real" / "bin"))
    bare.setenv("NVCC", str(wrapper))
    assert toolkit.find(machine_code=False).compiler == tmp_path / "real/lib64/libnvrtc.so.13"
    assert toolkit.find(machine_code=True).assembler.ptxas == tmp_path / "real/bin/ptxas"


def test_a_toolkit_without_nvrtc(bare, tmp_path):
    """Its nvcc serves, unless the build has the wheel."""
    nvcc = program(tmp_path / "nvcc", SAYS.format(tmp_path))
    bare.setenv("NVCC", str(nvcc))
    kit = toolkit.find(machine_code=False)
    assert (kit.compiler, kit.is_nvrtc, kit.assembler) == (nvcc, False, None)
    with pytest.raises(toolkit.ToolkitError, match="ptxas is neither beside nvcc nor on PATH"):
        toolkit.find(machine_code=True)
    root = tmp_path / "site" / "nvidia" / "cu13"
    installed(root, "lib")
    bare.setattr(toolkit.sys, "path", [str(tmp_path / "site")])
    assert toolkit.find(machine_code=False).compiler == root / "lib" / "libnvrtc.so.13"


def test_wheels(bare, tmp_path):
    root = tmp_path / "nvidia" / "cu13"
    installed(root, "lib")
    bare.setattr(toolkit.sys, "path", [str(tmp_path)])
    assert toolkit.find(machine_code=False).compiler == root / "lib" / "libnvrtc.so.13"
    assert toolkit.find(machine_code=True).compiler == root / "bin" / "nvcc"


@pytest.mark.parametrize("machine_code", [False, True])
def test_an_old_toolkit_is_refused(bare, tmp_path, machine_code):
    nvcc = installed(tmp_path)
    program(nvcc, "echo 'release 11.8, V11.8.89'")
    bare.setenv("NVCC", str(nvcc))
    bare.setattr(nvrtc, "version", lambda library: (11, 8))
    with pytest.raises(toolkit.ToolkitError, match=r"CUDA 11\.8; 12\.0 or newer is needed"):
        toolkit.find(machine_code)


def test_a_library_that_is_none_is_named(bare, tmp_path):
    bare.undo()
    (tmp_path / "libnvrtc.so.13").write_text("not a library")
    with pytest.raises(nvrtc.NvrtcError, match=r"libnvrtc\.so\.13 cannot be used: "):
        nvrtc.version(tmp_path / "libnvrtc.so.13")


@pytest.mark.parametrize(("machine_code", "wheel"), [(False, "nvrtc"), (True, "nvcc")])
def test_no_compiler_says_what_to_do(bare, machine_code, wheel):
    with pytest.raises(toolkit.ToolkitError, match=f"Set NVCC .* nvidia-cuda-{wheel}"):
        toolkit.find(machine_code)


def test_wheels_are_asked_for_only_without_a_toolkit(bare, tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    from buildtools.pep517 import backend

    bare.setattr(targets, "_capabilities", lambda: [])
    assert backend._wheels() == toolkit.NVRTC_WHEELS
    bare.setenv(targets.VARIABLE, "90a")
    assert backend._wheels() == toolkit.NVCC_WHEELS
    bare.delenv(targets.VARIABLE)
    bare.setattr(targets, "_capabilities", lambda: [(9, 0)])
    assert backend._wheels() == toolkit.NVCC_WHEELS
    bare.setenv("PATH", str(program(tmp_path / "bin" / "nvcc", "echo").parent))
    assert backend._wheels() == []
    bare.setattr(targets, "_capabilities", lambda: [])
    assert backend._wheels() == toolkit.NVRTC_WHEELS  # none beside it
    bare.setenv("PATH", str(installed(tmp_path / "whole").parent))
    assert backend._wheels() == []


def kit(*known):
    here = Path("ptxas")
    return toolkit.Assembler(here, here, frozenset(known))


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
