"""Runs on the emulator: their counts, hazards, listings and pages."""
