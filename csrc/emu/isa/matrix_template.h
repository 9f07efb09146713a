/* The table of matrix multiplications. The files below are parts of this one, as in alu.c, and together
 * they are built once per instruction set of the host. */
#include "../base/cpu.h"
#include "matrix.h"

#include <stdio.h>

/* The vectors of eight are passed to inlined functions only. */
#pragma GCC diagnostic ignored "-Wpsabi"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-trapping-math")
#endif

#include "matrix_layout_template.h"
#include "matrix_element_template.h"
#include "matrix_float_template.h"
#include "matrix_exact_template.h"
#include "matrix_mma_template.h"
#include "matrix_wmma_template.h"
#include "matrix_wgmma_template.h"

opcode_table FOR_CPU(matrix_opcodes) = {
    [PTX_OP_mma] = select_mma,
    [PTX_OP_wmma] = select_wmma,
    [PTX_OP_wgmma] = select_wgmma,
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
