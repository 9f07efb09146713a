"""What the build does beyond setuptools: the kernel table, the kernel images, the toolkit.

    pep517/         the PEP 517 hooks: setuptools' own, and the CUDA wheels where nvcc is missing
    commands.py     the setuptools commands that setup.py plugs in
    registry.py     csrc/kernels/variants.toml -> checked rows
    rows_c.py       rows -> registry_rows.c
    expressions.py  the C expressions inside that table, read and evaluated
    toolkit.py      finding nvcc, ptxas and fatbinary
    images.py       rows -> PTX and machine code
    machine_code.py machine code made small

Only needed to build; not installed.
"""
