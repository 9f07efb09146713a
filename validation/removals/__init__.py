"""The parts of mutation.py: what it removes from a kernel, how it calls the kernel, and reasons."""
