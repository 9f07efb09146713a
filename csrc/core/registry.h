/* The table of techniques. Its rows are csrc/kernels/variants.toml, which the build turns into C:
 * a new technique is one .cu file and one row there; nothing else names it.
 */
#ifndef SMK_REGISTRY_H
#define SMK_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"
#include "tensor_map.h"

enum { SMK_MAX_PARAMS = 8, SMK_MAX_DTYPES = 8 };

typedef enum smk_op { SMK_GEMM, SMK_TRANSPOSE, SMK_PROBE, SMK_N_OPS } smk_op;

typedef struct smk_param {
    const char *name;
    const char *doc;
    int64_t fallback;     /* the default */
    int64_t first, last;  /* legal: first..last, if n_legal == 0 */
    const int64_t *legal; /* legal: one of these, otherwise */
    int n_legal;
    bool runtime; /* passed to the kernel as an argument, not as a macro */
} smk_param;

typedef struct smk_dtype {
    const char *name; /* "float32"; transposes move bits: "b8".."b128" */
    int itemsize;
    const char *define; /* how a kernel's source is told: "REAL=float", "ELEMENT=uint4" */
} smk_dtype;

/* What a row's parameters make of a launch; expressions of the row, evaluated by generated code. */
typedef struct smk_geometry {
    int64_t threads[3];     /* block */
    int64_t output_tile[2]; /* rows, columns of the result that one block makes */
    int64_t shared_bytes;   /* dynamic shared memory of a block */
    int64_t input, output;  /* probes: least elements of x; elements of y (may depend on n) */
} smk_geometry;

/* Rows whose kernel reads A and B by TMA; core/plan_wgmma.c plans them. */
typedef struct smk_wgmma {
    smk_tensor_type
        operand; /* what lies in shared memory. Of two parts, FLOAT32 is rounded to tf32 before */
    int parts;   /* 0: another kernel. Each element becomes the sum of so many operands */
    bool
        b_by_rows; /* tiles of B are rows of B; otherwise, as the tensor core wants them, columns */
    const char *largest, *pack, *products[2][2]; /* kernels; products by "A across", "B across" */
} smk_wgmma;

/* Rows that can cut K into parts; core/plan_split.c says how many. Their parameter "split" is a user's word. */
typedef struct smk_split {
    int rate;           /* multiply-adds a clock and multiprocessor; 0: the row cannot */
    const char *reduce; /* the kernel that adds the parts up */
} smk_split;
/* What of an operand's strides a row's kernels read; each kind has those before it. */
typedef enum smk_strides {
    SMK_ROWS,            /* rows of neighbours that do not overlap */
    SMK_ROWS_OR_COLUMNS, /* or columns of neighbours */
    SMK_ANY_STRIDES
} smk_strides;

/* Rows whose kernels are of few rows or columns; core/plan_skinny.c plans them. */
enum { SMK_SKINNY_KERNELS = 5 };
typedef struct smk_skinny {
    int rows
        [SMK_SKINNY_KERNELS]; /* that a kernel takes at a time, ascending; 0: no more. None: another row */
    const char *products[SMK_SKINNY_KERNELS][2]; /* across K, along it */
} smk_skinny;

/* Rows of transposes that core/plan_transpose.c knows more of than their tile. */
typedef struct smk_movers {
    /* Kernels for any strides; NULL: the row's own goes from rows to rows. */
    const char *any, *tall, *flat, *small, *copy, *in_place, *in_place_vectors, *even, *large,
        *little, *least, *vectors, *vectors_little;
    bool boxes; /* its kernel reads x by TMA */
} smk_movers;

typedef struct smk_row {
    smk_op op;
    const char *name;
    const char *entry; /* of its kernel: "gemm_tiled" */
    const char *summary;
    const char *differs_from; /* name of the row before it on the ladder, NULL for the first */
    int min_sm;               /* 80: compute capability 8.0 */
    const smk_dtype *dtypes;
    int n_dtypes;
    const smk_param *params;
    int n_params;
    int product_bits; /* of each product that are right; 0: all that the type has */
    bool overlaps; /* compiled for sm_90 on, each of its kernels waits for the launch before it */
    bool portable; /* newer chips run it too: nothing in it is of min_sm alone ("sm_90a") */
    smk_split split;
    const char
        *by_order[2][2]; /* kernels by "A column by column", "B ..."; NULL: row by row only */
    smk_wgmma wgmma;
    smk_skinny skinny;
    smk_movers movers;
    /* values[i] belongs to params[i]; n is a gemm's K, a probe's number of elements, 0 elsewhere */
    void (*geometry)(const int64_t *values, int itemsize, int64_t n, smk_geometry *out);
    /* NULL if the values fit together, else a sentence */
    const char *(*conflict)(const int64_t *values, int itemsize);
} smk_row;

/* Views of such strides need not be packed. */
static inline smk_strides smk_strides_of(const smk_row *row) {
    return row->wgmma.parts > 0 || row->skinny.rows[0] || row->movers.any ? SMK_ANY_STRIDES
           : row->by_order[0][0]                                          ? SMK_ROWS_OR_COLUMNS
                                                                          : SMK_ROWS;
}

extern const smk_row smk_rows[];
extern const size_t smk_n_rows;
extern const char *const smk_op_names[SMK_N_OPS];

const smk_row *smk_row_find(smk_op op, const char *name);

/* The index of a parameter; -1: the row has none of that name. */
int smk_row_param(const smk_row *row, const char *name);

/* Values for all parameters of a row from named ones; SMK_VALUE names the legal ones. */
smk_code smk_row_values(const smk_row *row, int itemsize, const char *const *names,
                        const int64_t *given, int n_given, int64_t *values, smk_status *status);

/* "gemm_tiled-float32-tile32-pad0": file stem of the compiled image. Run-time parameters are left
 * out. Returns the length, as snprintf. */
int smk_image_name(const smk_row *row, const smk_dtype *dtype, const int64_t *values, char *out,
                   size_t size);

#endif
