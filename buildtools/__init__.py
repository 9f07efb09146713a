"""Build steps beyond setuptools: the kernel table, the kernel images, the CUDA toolkit.

    pep517/          PEP 517 hooks: setuptools' own, plus CUDA wheels as requirements without nvcc
    commands.py      setuptools commands for setup.py
    registry.py      csrc/kernels/variants.toml -> checked rows
    rows_c.py        rows -> registry_rows.c
    expressions.py   parses and evaluates the C expressions in that table
    toolkit.py       finds nvcc, ptxas and fatbinary
    images.py        rows -> PTX and machine code
    machine_code.py  reduces the size of machine code
    mistakes.py      csrc/kernels/mistakes/*.cu -> PTX

Needed only to build; not installed.
"""
