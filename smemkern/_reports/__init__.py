"""Findings, and the reports that other programs read."""
