"""The parts of litmus.py: litmus tests as programs, and a second model of PTX."""
