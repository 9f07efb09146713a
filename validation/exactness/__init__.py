"""Compares the emulator's counts with those of Nsight Compute."""
