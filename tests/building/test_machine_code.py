"""What is blanked in machine code, and that nothing else changes."""

import struct
import types

import pytest

from buildtools import images, machine_code, targets


def elf(**sections):
    """A small ELF file of named sections, and where each lies in it."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
    out, headers, places = bytearray(64), [bytes(64)], {}
    for name, content in [*sections.items(), (".shstrtab", names)]:
        places[name] = slice(len(out), len(out) + len(content))
        start = names.index(b"\0" + name.encode() + b"\0") + 1
        headers.append(struct.pack("<IIQQQQIIQQ", start, 1, 0, 0, len(out), len(content), *[0] * 4))
        out += content
    out[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", out, 0x28, len(out))
    struct.pack_into("<HHH", out, 0x3A, 64, len(headers), len(headers) - 1)
    return bytes(out + b"".join(headers)), places


def test_debug_sections_of_ptx_are_blanked_and_nothing_moves():
    sections = {".text.k": b"code" * 9, ".debug_line": b"lines", ".nv_debug_ptx_txt": b"ptx" * 50}
    sections |= {".nv.merc.nv_debug_ptx_txt": b"again" * 9, ".nv_debug_line_sass": b"map" * 7}
    cubin, places = elf(**sections, **{".nv.info": b"info"})
    small = machine_code.blanked(cubin)
    assert len(small) == len(cubin)
    differ = {i for i, (old, new) in enumerate(zip(cubin, small, strict=True)) if old != new}
    expected = set()
    for name in machine_code.BLANKED:
        assert not any(small[places[name]])
        expected |= set(range(*places[name].indices(len(cubin))))
    assert differ == expected


@pytest.mark.parametrize("what", [b"", b"\x7fELF\x01\x01" + bytes(100), b"PK\x03\x04" + bytes(100)])
def test_other_files_are_refused(what):
    with pytest.raises(machine_code.NotElfError, match="ELF"):
        machine_code.blanked(what)


def test_compression_by_the_toolkits_age():
    assert machine_code.compression((12, 0)) == ["--compress-all"]
    assert machine_code.compression((13, 0)) == ["--compress-all", "--compress-mode=size"]


class Row(types.SimpleNamespace):
    portable, overlaps, min_sm = True, False, 80


KINDS = {"80 and 90": Row(overlaps=True), "80": Row(), "90a": Row(portable=False, min_sm=90)}


@pytest.mark.parametrize(
    ("architectures", "carrying"),
    [
        (targets.ALL, []),
        (["80", "90a"], []),  # later GPUs are served by the PTX beside
        (["90a"], ["80 and 90"]),  # earlier ones are not
        (["80"], ["90a"]),  # no machine code, and a fat binary has to have something
        (["90a", "120"], ["80 and 90"]),  # of which 90 alone lies beside
        ([], ["80 and 90", "80", "90a"]),
    ],
)
def test_fat_binaries_carry_ptx_where_machine_code_is_missing(architectures, carrying):
    found = [
        name
        for name, row in KINDS.items()
        if images.Image(row, "float32", {}).carries_ptx(targets.Targets(tuple(architectures)))
    ]
    assert found == carrying


@pytest.mark.parametrize(
    ("architectures", "made_of", "fat"),
    [
        ((), [("90",), ("80",), ("90a",)], []),
        (("90a",), [("90",), ("80",), ("90a",)], ["80 and 90", "80", "90a"]),
        (("86",), [("80", "90"), ("80",), ("90a",)], ["80 and 90", "80"]),
        (("100",), [("90",), ("80",), ("90a",)], ["80 and 90", "80"]),
    ],
)
def test_for_one_machine_no_more_is_made_than_runs_there(architectures, made_of, fat):
    wanted = targets.Targets(architectures, native=True)
    found = {name: images.Image(row, "float32", {}) for name, row in KINDS.items()}
    assert [image.made_of(wanted) for image in found.values()] == made_of
    assert [name for name, image in found.items() if image.has_fatbin(wanted)] == fat
    assert not any(found[name].carries_ptx(wanted) for name in fat)
