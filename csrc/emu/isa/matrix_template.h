/* The opcode table of matrix multiplications. It includes the other matrix_*_template.h files;
 * together they are compiled once per instruction set of the host (base/cpu.h).
 */
#include "../base/cpu.h"
#include "matrix.h"

#include <stdio.h>

/* -Wpsabi warns about passing vectors; here they are passed to inlined functions only. */
#pragma GCC diagnostic ignored "-Wpsabi"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-trapping-math")
#endif

#include "matrix_layout_template.h"
#include "matrix_element_template.h"
#include "matrix_float_template.h"
#include "matrix_exact_template.h"
#include "matrix_product_template.h"
#include "matrix_mma_template.h"
#include "matrix_quad_template.h"
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
