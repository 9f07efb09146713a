"""The parts of c_mutants.py: sites of mutants, builds of them, tests of lines, and reasons."""
