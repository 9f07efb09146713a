"""Build steps beyond setuptools: the kernel table, the kernel images, the CUDA toolkit.

    pep517/          PEP 517 hooks: setuptools' own, and CUDA's wheels where no toolkit is
    commands.py      setuptools commands for setup.py
    registry.py      csrc/kernels/variants.toml -> checked rows
    rows_c.py        rows -> registry_rows.c
    expressions.py   parses and evaluates the C expressions in that table
    cpu.py           for which CPUs the emulator is compiled
    targets.py       for which GPUs machine code is made
    toolkit.py       finds nvcc, ptxas and fatbinary, or NVRTC
    nvrtc.py         CUDA C++ -> PTX
    images.py        rows -> PTX and machine code
    machine_code.py  reduces the size of machine code
    mistakes.py      csrc/kernels/mistakes/*.cu -> PTX

Needed only to build; not installed.
"""
