"""Machine code of shipped kernels, by nvcc and ptxas, whose warnings are errors."""

import dataclasses
import random
from pathlib import Path

import pytest

from buildtools import images, registry, targets, toolkit

KERNELS = Path(__file__).resolve().parents[2] / "csrc" / "kernels"
SAMPLES = 10  # of the images, which are some 190: all of them take minutes


@pytest.fixture
def kit() -> toolkit.Toolkit:
    try:
        return toolkit.find(machine_code=True)
    except toolkit.ToolkitError as error:
        pytest.skip(str(error))


@pytest.mark.long(instead="any build for a GPU, which compiles all images")
@pytest.mark.parametrize("sample", range(SAMPLES))
def test_an_image_drawn_at_random(sample, kit, tmp_path, monkeypatch):
    """Both .ptx and fat binary, of a row, a type and a set of parameters. A test run without a GPU
    may be of a build by NVRTC, and then nothing else compiles kernels as wheels have them."""
    monkeypatch.setenv(targets.VARIABLE, "80;90a")
    wanted = targets.read(kit.assembler)
    seed = random.SystemRandom().getrandbits(32)
    image = random.Random(seed).choice(images.images_of(registry.read(KERNELS), wanted))
    print(f"seed {seed}: {image.name}")
    row = dataclasses.replace(image.row, dtypes=(image.dtype,), prebuilt=(image.values,))
    images.build([row], KERNELS, tmp_path / "images", tmp_path / "stamps", wanted, kit)
    made = {file.suffix: file.read_bytes() for file in (tmp_path / "images").iterdir()}
    assert made.keys() == {".ptx", ".fatbin"}
    assert b".entry" in made[".ptx"] and b"inline asm" not in made[".ptx"]
    assert made[".fatbin"][:4] == (0xBA55ED50).to_bytes(4, "little")  # the magic of fat binaries
