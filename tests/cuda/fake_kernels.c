/* The fake driver's kernels, of float: they do what those of the same names do. */
#include "../../csrc/kernels/args.h"
#include "fake_internal.h"

#include <math.h>

static float *at(long long address, long long elements) {
    return (float *)(uintptr_t)address + elements;
}

/* z[i] = x[i] + y[i], as in the PTX of gpu_cases.c. */
static int add(void **parameters, const unsigned grid[3]) {
    (void)grid;
    uint64_t args[4];
    for (int i = 0; i < 4; i++)
        memcpy(&args[i], parameters[i], sizeof args[i]);
    const size_t n = args[3];
    const float *x = (const float *)(uintptr_t)args[0], *y = (const float *)(uintptr_t)args[1];
    float *z = (float *)(uintptr_t)args[2];
    for (int i = 0; i < 3 && n; i++)
        if (!fake_is_allocated(args[i], n * sizeof *z)) return ILLEGAL_ADDRESS;
    for (size_t i = 0; i < n; i++)
        z[i] = x[i] + y[i];
    return CUDA_SUCCESS;
}

static int nothing(void **parameters, const unsigned grid[3]) {
    (void)parameters, (void)grid;
    return CUDA_SUCCESS;
}

static int crash(void **parameters, const unsigned grid[3]) {
    (void)parameters, (void)grid;
    return ILLEGAL_ADDRESS;
}

static int trap(void **parameters, const unsigned grid[3]) {
    (void)parameters, (void)grid;
    return LAUNCH_FAILED;
}

/* The row of C; NULL: it is not all in one allocation. */
static float *row_of(const gemm_args *g, unsigned z, long long i) {
    float *row = at(g->C, z * g->batch_c + i * g->ldc);
    return fake_is_allocated((uintptr_t)row, (size_t)g->N * sizeof *row) ? row : NULL;
}

static float result_of(const gemm_args *g, double sum, float before) {
    return (float)(g->alpha * sum + (g->beta == 0 ? 0 : g->beta * before));
}

static int gemm(void **parameters, const unsigned grid[3]) {
    const gemm_args *g = parameters[0];
    for (unsigned z = 0; z < grid[2]; z++)
        for (long long i = 0; i < g->M; i++) {
            float *c = row_of(g, z, i);
            if (!c) return ILLEGAL_ADDRESS;
            for (long long j = 0; j < g->N; j++) {
                double sum = 0;
                for (long long k = 0; k < g->K; k++)
                    sum += *at(g->A, z * g->batch_a + i * g->lda + k) *
                           *at(g->B, z * g->batch_b + k * g->ldb + j);
                c[j] = result_of(g, sum, c[j]);
            }
        }
    return CUDA_SUCCESS;
}

/* ---- a row that makes something of A and B first (core/plan_wgmma.c) ---- */

/* One of them, of one matrix of the batch. */
typedef struct side {
    const wgmma_operand *s;
    const float *matrix;
    float *packed; /* the first of its parts, here all of it */
    unsigned *largest;
} side;

static side side_of(const gemm_args *g, const wgmma_args *w, bool of_a, unsigned z) {
    const wgmma_operand *s = of_a ? &w->a : &w->b;
    side out = {.s = s, .matrix = of_a ? at(g->A, z * g->batch_a) : at(g->B, z * g->batch_b)};
    if (s->packed) out.packed = at(s->packed + z * s->batch, 0);
    if (s->largest) out.largest = (unsigned *)at(s->largest + z * s->batch, 0);
    return out;
}

static float element(const side *of, long long row, long long k) {
    return of->matrix[row * of->s->row_stride + k * of->s->k_stride];
}

/* The bits of the largest |element| of a chunk of a row. */
static unsigned largest_of(const side *of, long long row, int chunk) {
    float most = 0;
    const long long size = of->s->chunks > 1 ? LARGEST_K : of->s->k;
    for (long long k = chunk * size; k < of->s->k && k < (chunk + 1) * size; k++)
        most = fmaxf(most, fabsf(element(of, row, k)));
    unsigned bits;
    memcpy(&bits, &most, sizeof bits);
    return bits;
}

static int find_largest(const side *of) {
    const wgmma_operand *s = of->s;
    const size_t words = (size_t)s->rows * (size_t)s->chunks;
    if (!fake_is_allocated((uintptr_t)of->largest, words * sizeof *of->largest))
        return ILLEGAL_ADDRESS;
    for (int chunk = 0; chunk < s->chunks; chunk++)
        for (int row = 0; row < s->rows; row++)
            of->largest[chunk * s->rows + row] = largest_of(of, row, chunk);
    return CUDA_SUCCESS;
}

static int pack_side(const side *of) {
    const wgmma_operand *s = of->s;
    const size_t bytes = (size_t)s->rows * (size_t)s->pitch * sizeof(float);
    if (!fake_is_allocated((uintptr_t)of->packed, bytes)) return ILLEGAL_ADDRESS;
    for (int row = 0; row < s->rows; row++)
        for (int k = 0; k < s->k; k++)
            of->packed[row * s->pitch + k] = element(of, row, k);
    return CUDA_SUCCESS;
}

static int tf32x3_pack(void **parameters, const unsigned grid[3]) {
    const wgmma_args *w = parameters[1];
    int result = CUDA_SUCCESS;
    for (unsigned z = 0; z < grid[2] && !result; z++) {
        const side a = side_of(parameters[0], w, true, z), b = side_of(parameters[0], w, false, z);
        if (w->a.packing) result = pack_side(&a);
        if (w->a.packing && !result) result = find_largest(&a);
        if (w->b.packing && !result) result = pack_side(&b);
        if (w->b.searching && !result) {
            result = find_largest(&b);
            fake_cuda.searched += (size_t)w->b.rows * (size_t)w->b.k;
        }
    }
    return result;
}

/* Whether what was found is of these very elements. */
static bool is_of(const side *of) {
    for (int chunk = 0; chunk < of->s->chunks; chunk++)
        for (int row = 0; row < of->s->rows; row++)
            if (of->largest[chunk * of->s->rows + row] != largest_of(of, row, chunk)) return false;
    return true;
}

static float operand_at(const side *of, long long row, long long k) {
    return of->packed ? of->packed[row * of->s->pitch + k] : element(of, row, k);
}

/* Of operands that were made of others the result is NaN. */
static int tf32x3(void **parameters, const unsigned grid[3]) {
    const gemm_args *g = parameters[0];
    for (unsigned z = 0; z < grid[2]; z++) {
        const side a = side_of(g, parameters[1], true, z), b = side_of(g, parameters[1], false, z);
        const bool right = is_of(&a) && is_of(&b);
        for (long long i = 0; i < g->M; i++) {
            float *c = row_of(g, z, i);
            if (!c) return ILLEGAL_ADDRESS;
            for (long long j = 0; j < g->N; j++) {
                double sum = right ? 0 : NAN;
                for (long long k = 0; k < g->K; k++)
                    sum += (double)operand_at(&a, i, k) * operand_at(&b, j, k);
                c[j] = result_of(g, sum, c[j]);
            }
        }
    }
    return CUDA_SUCCESS;
}

/* ---- transposes ---- */

static int transpose_all(const transpose_args *t, unsigned batches) {
    for (unsigned z = 0; z < batches; z++)
        for (long long i = 0; i < t->rows; i++)
            for (long long j = 0; j < t->cols; j++) {
                float *y = at(t->y, z * t->batch_y + j * t->ldy + i * t->step_y);
                if (!fake_is_allocated((uintptr_t)y, sizeof *y)) return ILLEGAL_ADDRESS;
                *y = *at(t->x, z * t->batch_x + i * t->ldx + j * t->step_x);
            }
    return CUDA_SUCCESS;
}

static int transpose(void **parameters, const unsigned grid[3]) {
    return transpose_all(parameters[0], grid[2]);
}

/* A block has some matrices of the batch. */
static int sector_aligned(void **parameters, const unsigned grid[3]) {
    (void)grid;
    const transpose_args *t = parameters[0];
    return transpose_all(t, (unsigned)t->batches);
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    int (*run)(void **parameters, const unsigned grid[3]);
} kernels[] = {{"add", add},
               {"spin", nothing},
               {"sample", fake_sample},
               {"sample_struct", fake_sample_struct},
               {"sample_stored", fake_sample_stored},
               {"sample_references", fake_sample_references},
               {"crash", crash},
               {"trap", trap},
               {"gemm_naive", gemm},
               {"gemm_tf32x3", tf32x3},
               {"gemm_tf32x3_b", tf32x3},
               {"gemm_tf32x3_pack", tf32x3_pack},
               {"transpose_naive", transpose},
               {"transpose_sector_aligned", sector_aligned},
               {"transpose_sector_aligned_strided", sector_aligned},
               {"transpose_sector_aligned_copy", sector_aligned},
               {"transpose_sector_aligned_short_wide", sector_aligned},
               {"transpose_sector_aligned_small", sector_aligned},
               {"transpose_sector_aligned_tile_by2", sector_aligned},
               {"transpose_sector_aligned_tile_by4", sector_aligned},
               {"transpose_sector_aligned_tile_by8", sector_aligned},
               {"transpose_sector_aligned_tile_words", sector_aligned},
               {"transpose_sector_aligned_tall_skinny", sector_aligned}};

const char *fake_kernel_name(size_t index) {
    return index < sizeof kernels / sizeof *kernels ? kernels[index].name : NULL;
}

int fake_run(const char *name, void **parameters, const unsigned grid[3]) {
    for (size_t i = 0; fake_kernel_name(i); i++)
        if (!strcmp(name, kernels[i].name)) return kernels[i].run(parameters, grid);
    return CUDA_SUCCESS;
}
