"""For which CPUs the emulator is compiled."""

import pytest

from buildtools import cpu

AVX2 = "fpu sse2 avx avx2 fma bmi1 bmi2"


@pytest.mark.parametrize(
    ("flags", "variants"),
    [
        ("fpu sse2", 0),
        (AVX2, cpu.V3),
        (AVX2.replace(" fma", ""), 0),
        (f"{AVX2} avx512f avx512cd avx512dq avx512vl", cpu.V4),
        (f"{AVX2} avx512f avx512cd", cpu.V3),
    ],
)
def test_native_is_the_best_of_this_cpu(monkeypatch, tmp_path, flags, variants):
    monkeypatch.delenv(cpu.VARIABLE, raising=False)
    monkeypatch.setattr(cpu, "CPUINFO", tmp_path / "cpuinfo")
    assert cpu.variants() == 0  # no such file
    cpu.CPUINFO.write_text(
        f"processor\t: 0\nmodel name\t: avx2\nflags\t\t: {flags}\nvmx flags\t: x\n"
    )
    assert cpu.variants() == variants
    quick = cpu.flags("csrc/emu/cpu_baseline.c", variants)
    assert quick == (["-O0"] if variants else ["-O3"])
    assert cpu.flags("csrc/emu/cpu_v3.c", variants) == ["-O3"]
    assert cpu.flags("csrc/emu/emu.c", variants) == []


def test_all(monkeypatch):
    monkeypatch.setenv(cpu.VARIABLE, "all")
    assert cpu.variants() == cpu.V3 + cpu.V4
    assert cpu.flags("csrc/emu/cpu_baseline.c", cpu.variants()) == ["-O3"]


def test_another_value_is_refused(monkeypatch):
    monkeypatch.setenv(cpu.VARIABLE, "v3")
    with pytest.raises(cpu.CpuError, match='SMEMKERN_CPU=v3: expected "native" or "all"'):
        cpu.variants()
