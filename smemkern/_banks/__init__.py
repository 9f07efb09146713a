"""Shared memory: the cost of requests, and the layouts of tiles."""
