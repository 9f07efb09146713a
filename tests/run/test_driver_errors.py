"""Result codes of wrong calls: those of a GPU's driver, call by call.

The record is by validation/driver_errors.py on an H200; the same script runs here on the emulator.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import smemkern
from smemkern._device.emulated import emulated_device

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "validation" / "driver_errors.py"
RECORD = json.loads((ROOT / "benchmarks" / "results" / "driver-errors-h200.json").read_text())
DRIVER = Path(smemkern.__file__).parent / "driver" / "libcuda.so.1"

# Calls for which the emulator has another code than the record: why, and which.
DIFFERENT: dict[str, tuple[str, list[str]]] = {
    "launches": (
        "parameters that are too short are refused",
        ["launch extra too short"],
    ),
    "functions": (
        "read-only attributes are not all known",
        ["set function attribute 10 to 1"],
    ),
    "memory": (
        "a size that overflows is refused",
        ["memset 2^62 words"],
    ),
    "pointers": (
        "attributes of compression and of mapped memory are not known",
        [
            "pointer attribute 5",
            "pointer attribute 18",
            "pointer attribute 19",
            "pointer attribute 20",
        ],
    ),
    "devices": (
        "a name of no length and calls that no version has are refused",
        ["device name -1", "proc unknown", "proc old"],
    ),
    "modules": (
        "newer versions and unknown calls are taken until they run; machine code has a message",
        [
            "ptx of a comment",
            "ptx of a comment, Ex",
            "ptx opcode",
            "ptx opcode, Ex",
            "ptx version 99",
            "ptx version 99, Ex",
            "ptx target sm_9",
            "ptx target sm_9, Ex",
            "ptx extern",
            "ptx extern, Ex",
            "elf header",
            "elf header, Ex",
            "elf of the host",
            "elf of the host, Ex",
            "fat binary header",
            "fat binary header, Ex",
            "file a folder",
        ],
    ),
    "libraries": (
        "a library is loaded at once, not at its first use",
        [
            "library bad ptx",
            "library empty image",
            "library image of spaces",
            "library ptx of a comment",
            "library ptx of the version alone",
            "library ptx syntax",
            "library ptx unknown register",
            "library ptx 32 bits",
            "library elf header",
            "library elf of the host",
            "library fat binary header",
            "library fat binary version 1",
            "library fat binary empty",
        ],
    ),
    "events": (
        "the order of two checks",
        ["elapsed null result"],
    ),
    "limits": (
        "limits that have no effect here",
        [
            "limit 0 to 2^63",
            "limit 3",
            "limit 3 to 2^63",
            "limit 5 to 2^63",
            "limit 6 to 2^63",
            "limit 7",
            "limit 7 to 2^63",
            "limit 8",
            "limit 8 to 2^63",
            "limit 9",
            "limit 9 to 2^63",
        ],
    ),
    "contexts": (
        "objects are not bound to their context; a destroyed context is not kept",
        [
            "other context's launch",
            "other context's event",
            "other context's event query",
            "stream of a destroyed context",
            "push destroyed",
            "destroy destroyed",
        ],
    ),
    "captures": (
        "the order of two checks",
        ["capture end to null", "capture end 10", "capture mode exchange 9"],
    ),
    "graphs": (
        "addresses of nodes are checked when they run",
        [
            "kernel node no function",
            "memset node wild",
            "memset node over",
            "copy node wild",
            "copy node null device",
            "copy node null host",
            "copy node over",
            "copy node x over",
            "copy node x 2^64-4",
        ],
    ),
    "arrays": (
        "a texture of no size, and flags",
        [
            "texture linear empty",
            "texture pitch short",
            "texture flags",
            "surface of a plain array",
        ],
    ),
    "tensor maps": (
        "a null address is refused",
        ["tensor map null address"],
    ),
    "virtual": (
        "what is mapped where is not kept",
        [
            "granularity device",
            "access before map",
            "map offset",
            "map odd",
            "map beyond",
            "map large",
            "map again",
            "mapped without access",
            "access device 99",
            "access beyond",
            "address free mapped",
            "unmap",
            "unmap again",
        ],
    ),
    "pools": (
        "a device that there is not, and sizes of 0",
        ["async alloc 0", "pool set 5", "pool access 99"],
    ),
    "linker": (
        "inputs are read at the end",
        ["link null options", "link nonsense", "link complete of nothing"],
    ),
    "store beyond": (
        "the address is valid on the GPU that made the record",
        [
            "after store at 0x10000000000: synchronize",
            "after store at 0x10000000000: synchronize again",
            "after store at 0x10000000000: launch again",
            "after store at 0x10000000000: launch null",
            "after store at 0x10000000000: alloc",
            "after store at 0x10000000000: alloc 0",
            "after store at 0x10000000000: dtoh",
            "after store at 0x10000000000: query",
            "after store at 0x10000000000: stream synchronize",
            "after store at 0x10000000000: stream create",
            "after store at 0x10000000000: record",
            "after store at 0x10000000000: event query",
            "after store at 0x10000000000: info",
            "after store at 0x10000000000: function attribute",
            "after store at 0x10000000000: module",
            "after store at 0x10000000000: limit",
            "after store at 0x10000000000: free",
            "after store at 0x10000000000: event destroy",
            "after store at 0x10000000000: stream destroy",
        ],
    ),
    "destroyed": (
        "a freed handle is never read",
        [
            "destroyed event query",
            "destroyed event record",
            "destroyed event destroy",
            "unloaded function attribute",
            "destroyed node type",
            "destroyed array destroy",
        ],
    ),
    "wild handles": (
        "a handle that no call made is never read",
        ["wild small texture"],
    ),
    "handles of zeros": (
        "a handle that no call made is never read",
        [
            "wild zeros context",
            "wild zeros event",
            "wild zeros function",
            "wild zeros node",
            "wild zeros exec",
            "wild zeros array",
            "wild zeros texture",
            "wild zeros linker",
            "wild zeros user object",
        ],
    ),
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """The emulator's record."""
    out = tmp_path_factory.mktemp("driver_errors") / "ours.json"
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(DRIVER.parent),
        "SMEMKERN_RUN_DEVICE": emulated_device("h200").described(),
    }
    subprocess.run(
        [sys.executable, SCRIPT, out, "--jobs", "2"], env=environment, check=True, timeout=300
    )
    return json.loads(out.read_text())


@pytest.mark.parametrize("group", RECORD["codes"])
def test_codes_are_those_of_the_gpus_driver(ours, group):
    """But for those that end the process of the GPU's driver. The list of others is exact."""
    found = ours["codes"][group]
    wrong = {
        case: (code, found.get(case))
        for case, code in RECORD["codes"][group].items()
        if isinstance(code, int) and found.get(case) != code
    }
    assert set(wrong) == set(DIFFERENT.get(group, ("", []))[1]), (
        wrong
    )  # the record's, the emulator's


def test_no_wrong_call_ends_the_emulators_process(ours):
    codes = {case: code for group in ours["codes"].values() for case, code in group.items()}
    assert not {case: code for case, code in codes.items() if not isinstance(code, int)}
    assert len(codes) > 1000


def test_codes_have_the_names_and_texts_of_the_gpus_driver(ours):
    assert ours["texts"] == RECORD["texts"]


def test_the_record_has_what_it_needs():
    assert "H200" in RECORD["device"] and RECORD["driver"]
    assert sum(map(len, RECORD["codes"].values())) > 1000 and set(DIFFERENT) <= set(RECORD["codes"])
