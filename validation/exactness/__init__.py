"""Compares the emulator's counts with those of Nsight Compute."""

import sys
from pathlib import Path

# Generators of PTX that the tests have as well.
sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tests" / "emu"))
