"""The suites of referee.py: cases and labels that others published, one module per suite."""
