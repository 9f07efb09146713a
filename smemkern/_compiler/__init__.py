"""From CUDA C++ to PTX: the compilers, what they need to know of a source, and names."""
