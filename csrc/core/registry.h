/* The registry: one row per kernel variant.
 *
 * The build generates the rows from csrc/kernels/variants.toml (buildtools/rows_c.py). A new
 * variant is one .cu file and one row of that table. No C code names a variant, except that
 * module/check.c names the default of probe().
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
    const char *define; /* macro for the kernel's source: "REAL=float", "ELEMENT=uint4" */
} smk_dtype;

/* Launch geometry for given parameters: the expressions of its row, evaluated by generated code. */
typedef struct smk_geometry {
    int64_t threads[3];     /* per block */
    int64_t output_tile[2]; /* rows and columns of the result per block */
    int64_t shared_bytes;   /* dynamic shared memory per block */
    int64_t input, output;  /* probes: min elements of x; elements of y (may depend on n) */
} smk_geometry;

enum { SMK_MAX_WIDTHS = 12 };

/* Variants whose kernel reads A and B by TMA; planned by core/plan_wgmma.c. */
typedef struct smk_wgmma {
    /* Element type in shared memory. With two terms, FLOAT32 values are rounded to tf32
     * beforehand. */
    smk_tensor_type operand;
    int terms;      /* operands that sum to one element; 0: another kind of variant */
    bool b_by_rows; /* B tiles are K x N, as in memory; else N x K, as wgmma needs */
    bool columns;   /* of tiles are an argument, "block_n" */
    bool guarded; /* the smallest elements are found too: tiles in which fp16 loses bits use tf32 */
    const char *pack; /* kernel */
    /* Kernels, by [A is MN-major][B is MN-major]; swapped: of the product of the transposes; thin:
     * for few rows or columns; summed: for other tiles whose ranges of K a cluster adds. */
    const char *products[2][2], *swapped[2][2], *thin[2][2], *summed[2][2];
    /* Or kernels of a tile's columns each, by [swapped][the first operand is MN-major]. */
    struct {
        int columns;
        const char *products[2][2];
    } by_columns[SMK_MAX_WIDTHS];
} smk_wgmma;

/* Variants with split-K. Their parameter "split" is the number of K ranges; at 0 core/plan_split.c
 * chooses it. */
typedef struct smk_split {
    int rate;           /* multiply-adds per clock per multiprocessor; 0: no split-K */
    const char *reduce; /* the kernel that sums the ranges */
    bool clusters;      /* or the blocks of a tile do, as a cluster, from sm_90 on */
} smk_split;

/* Operand layouts that a variant's kernels read. Each value includes the ones before it. */
typedef enum smk_strides {
    SMK_ROWS,            /* contiguous rows that do not overlap */
    SMK_ROWS_OR_COLUMNS, /* or contiguous columns */
    SMK_ANY_STRIDES
} smk_strides;

/* Variants for few rows or columns; planned by core/plan_skinny.c, which defines thin and thick. */
enum { SMK_SKINNY_KERNELS = 4 };
typedef struct smk_skinny {
    /* Rows of the thin operand per kernel, ascending; 0 ends the list. Empty: another kind. */
    int rows[SMK_SKINNY_KERNELS];
    const char *products[SMK_SKINNY_KERNELS][2]; /* kernels, by [.][the thick operand is K-major] */
    bool mma;                                    /* by MMAs, not FFMAs */
    bool gemv;                                   /* tiled by core/plan_gemv.c */
} smk_skinny;

/* Further kernels of rows that core/plan_ozaki.c plans: products by residues. NULL: another
 * kind. */
typedef struct smk_ozaki {
    const char *scale, *pack, *combine;
    bool tma; /* the product reads and writes planes by TMA */
} smk_ozaki;

/* Further kernels of transposes; core/plan_transpose.c chooses among them. Each field is the
 * kernel's suffix: "transpose_sector_aligned_strided". */
typedef struct smk_transpose_kernels {
    /* Any strides. NULL: the variant has one kernel, for contiguous rows of x and y. */
    const char *strided;
    const char *tall_skinny, *short_wide; /* few columns; few rows */
    const char *small;                    /* several small matrices per block */
    const char *copy;                     /* x and y are contiguous in the same dimension */
    const char *in_place, *in_place_vectors;
    const char *aligned;                 /* all rows of y begin at a sector */
    const char *large;                   /* tiles of 64 or 96 rows and columns */
    const char *tile_by2, *tile_by4;     /* small tiles of any sides, by elements per thread */
    const char *tile_by8, *tile_words;   /* words of elements of 1 and 2 bytes */
    const char *vectors, *vectors_small; /* rows of whole, aligned 16-byte vectors */
    bool boxes;                          /* the variant's kernel reads x by TMA */
} smk_transpose_kernels;

/* Devices on which a variant is the default of variant "auto": smk_default_variant. */
enum { SMK_DEFAULT_EMU = 1, SMK_DEFAULT_CUDA = 2 };

/* Accuracy of a gemm's results, which a variant has and a call asks for. Each value also allows the
 * ones before it. */
typedef enum smk_accuracy {
    SMK_ACCURACY_FLOAT32,   /* elementwise as accurate as fp32 sums; the default */
    SMK_ACCURACY_NORM,      /* in norm: small elements of rows with large ones may lose bits */
    SMK_ACCURACY_TF32,      /* operands rounded to tf32 */
    SMK_ACCURACY_TF32_NORM, /* tf32's in norm: rounded after rows and columns are scaled */
    SMK_N_ACCURACIES
} smk_accuracy;

extern const char *const smk_accuracy_names[SMK_N_ACCURACIES];

typedef struct smk_variant {
    smk_op op;
    const char *name;
    const char *entry; /* of its kernel: "gemm_tiled" */
    const char *summary;
    const char *differs_from; /* name of the previous variant on the ladder, NULL for the first */
    int min_sm;               /* 80: compute capability 8.0 */
    const smk_dtype *dtypes;
    int n_dtypes;
    const smk_param *params;
    int n_params;
    smk_accuracy accuracy;
    int product_bits; /* correct bits per product; 0: all bits of the type */
    bool overlaps; /* compiled for sm_90 or newer, all its kernels wait for the previous launch */
    bool portable; /* runs on newer chips too: no instructions of min_sm alone ("sm_90a") */
    unsigned default_on; /* SMK_DEFAULT_... */
    smk_split split;
    const char *by_layout[2][2]; /* kernels, by [A is column-major][B ...]; NULL: row-major only */
    smk_wgmma wgmma;
    smk_skinny skinny;
    smk_ozaki ozaki;
    smk_transpose_kernels transpose_kernels;
    /* values[i] belongs to params[i]. n: K of a gemm, number of elements of a probe, else 0. */
    void (*geometry)(const int64_t *values, int itemsize, int64_t n, smk_geometry *out);
    /* Says why the values do not fit together; NULL if they do. */
    const char *(*conflict)(const int64_t *values, int itemsize);
} smk_variant;

/* The layouts that the variant reads in place. Others have to be packed first. */
static inline smk_strides smk_strides_of(const smk_variant *variant) {
    if (variant->wgmma.terms > 0 || variant->skinny.rows[0] || variant->ozaki.pack ||
        variant->transpose_kernels.strided)
        return SMK_ANY_STRIDES;
    return variant->by_layout[0][0] ? SMK_ROWS_OR_COLUMNS : SMK_ROWS;
}

extern const smk_variant smk_variants[];
extern const size_t smk_n_variants;
extern const char *const smk_op_names[SMK_N_OPS];

const smk_variant *smk_variant_find(smk_op op, const char *name);

/* The first variant of the operation that reads any strides; NULL: there is none. */
const smk_variant *smk_variant_find_any_strides(smk_op op);
/* Whether a variant of the operation has this parameter. */
bool smk_op_has_param(smk_op op, const char *name);

/* The index of a parameter; -1: the variant has none of that name. */
int smk_variant_param(const smk_variant *variant, const char *name);

/* Fills the values of all parameters: the given ones by name, defaults for the others. SMK_VALUE
 * lists the legal names or values. */
smk_code smk_variant_values(const smk_variant *variant, int itemsize, const char *const *names,
                            const int64_t *given, int n_given, int64_t *values, smk_status *status);

/* File stem of the compiled image: "gemm_tiled-float32-tile32-pad0", without run-time parameters.
 * Returns the length, like snprintf. */
int smk_image_name(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                   char *out, size_t size);

#endif
