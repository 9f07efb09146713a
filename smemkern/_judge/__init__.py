"""Compares a candidate kernel with a reference: smemkern.judge."""
