/* The table of matrix multiplications. The files below are parts of this one, as in alu.c, and together
 * they are built once per instruction set of the host. */
#include "isa.h"
#include "matrix.h"

#include <stdio.h>

/* The vectors of eight are passed to inlined functions only. */
#pragma GCC diagnostic ignored "-Wpsabi"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-trapping-math")
#endif

#include "matrix_layout.c"
#include "matrix_element.c"
#include "matrix_float.c"
#include "matrix_exact.c"
#include "matrix_mma.c"
#include "matrix_wmma.c"
#include "matrix_wgmma.c"

const opcode_row ISA(matrix_opcodes)[] = {
    {"mma", select_mma},
    {"wmma", select_wmma},
    {"wgmma", select_wgmma},
    {NULL, NULL},
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
