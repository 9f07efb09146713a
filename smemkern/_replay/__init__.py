"""Recordings of runs on the emulator, and moving to and fro in them."""
