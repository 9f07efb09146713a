/* The C entry points that take plain numbers: planning of launches and of pipelines, the choice of a
 * variant, tensor maps, the bank model, and the search for a source's includes. The first byte says
 * which.
 *
 * Sizes are those that arrays can have (the module makes them from arrays): no operand, and no result,
 * is larger than 2^46 bytes. Everything else is anything.
 */
#include <stdlib.h>
#include <string.h>

#include "../../csrc/core/auto.h"
#include "../../csrc/pipeline/plan/plan.h"
#include "../../csrc/cuda/includes.h"
#include "../../csrc/emu/cost/banks.h"
#include "../../csrc/emu/isa/tensor_map.h"
#include "../pipeline/task_order.h"
#include "fuzz.h"

enum { MOST_BATCH = 3 };

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static uint64_t take(input *in, size_t bytes) {
    uint64_t value = 0;
    const size_t n = bytes < in->size ? bytes : in->size;
    memcpy(&value, in->data, n);
    in->data += n;
    in->size -= n;
    return value;
}

/* Small and large numbers alike: 5 bits say how many bits follow. */
static int64_t size_of(input *in, unsigned most_bits) {
    const unsigned bits = (unsigned)(take(in, 1) % (most_bits + 1));
    return (int64_t)(take(in, 8) & ((1ull << bits) - 1));
}

static const smk_variant *variant_of(input *in, smk_op op) {
    const size_t first = take(in, 1);
    for (size_t k = 0; k < smk_n_variants; k++) {
        const smk_variant *variant = &smk_variants[(first + k) % smk_n_variants];
        if (variant->op == op) return variant;
    }
    return NULL;
}

static bool values_of(input *in, const smk_variant *variant, const smk_dtype *dtype,
                      int64_t *values) {
    smk_status status = {0};
    const char *names[SMK_MAX_PARAMS + 1];
    int64_t given[SMK_MAX_PARAMS + 1];
    const int n = (int)(take(in, 1) % (SMK_MAX_PARAMS + 2));
    for (int k = 0; k < n; k++) {
        const unsigned which = (unsigned)take(in, 1);
        names[k] = variant->n_params && which < 250
                       ? variant->params[which % (unsigned)variant->n_params].name
                       : "nothing";
        const smk_param *p =
            variant->n_params ? &variant->params[which % (unsigned)variant->n_params] : NULL;
        const uint64_t value = take(in, 1);
        given[k] = value > 250                ? (int64_t)take(in, 8)
                   : p && p->n_legal          ? p->legal[value % (unsigned)p->n_legal]
                   : p && p->last >= p->first ? p->first + (int64_t)(value % 32)
                                              : (int64_t)value;
    }
    return smk_variant_values(variant, dtype->itemsize, names, given, n, values, &status) == SMK_OK;
}

static int64_t stride_of(input *in, unsigned most_bits) {
    const int64_t value = size_of(in, most_bits);
    return take(in, 1) % 4 ? value : -value;
}

static smk_matrix matrix_of(input *in, unsigned most_bits) {
    smk_matrix m = {.offset = size_of(in, most_bits),
                    .ld = stride_of(in, most_bits),
                    .step = stride_of(in, most_bits)};
    for (int k = 0; k < MOST_BATCH; k++)
        m.batch[k] = stride_of(in, most_bits);
    return m;
}

static smk_batch batch_of(input *in) {
    smk_batch batch = {.n = (int)(take(in, 1) % (MOST_BATCH + 1))};
    for (int k = 0; k < batch.n; k++)
        batch.size[k] = size_of(in, 5);
    return batch;
}

static void plan_gemm(input *in) {
    const smk_variant *variant = variant_of(in, SMK_GEMM);
    const smk_dtype *dtype = &variant->dtypes[take(in, 1) % (unsigned)variant->n_dtypes];
    int64_t values[SMK_MAX_PARAMS];
    smk_status status = {0};
    smk_plan plan = {0};
    if (!values_of(in, variant, dtype, values)) return;
    smk_gemm g = {.M = size_of(in, 20), .N = size_of(in, 20), .K = size_of(in, 20)};
    g.batch = batch_of(in);
    g.a = matrix_of(in, 28), g.b = matrix_of(in, 28), g.c = matrix_of(in, 28);
    g.alpha = (double)take(in, 1), g.beta = (double)take(in, 1);
    g.multiprocessors = 1 + (int64_t)take(in, 1);
    for (int o = 0; o < 2; o++)
        g.prepack.prepacked[o] = (smk_prepacked){size_of(in, 40), size_of(in, 40), take(in, 1) % 2};
    g.prepack.only = take(in, 1) % 2;
    if (smk_plan_gemm(variant, dtype, values, &g, &plan, &status) == SMK_OK) smk_plan_free(&plan);
}

static void plan_transpose(input *in) {
    const smk_variant *variant = variant_of(in, SMK_TRANSPOSE);
    const smk_dtype *dtype = &variant->dtypes[take(in, 1) % (unsigned)variant->n_dtypes];
    int64_t values[SMK_MAX_PARAMS];
    smk_status status = {0};
    smk_plan plan = {0};
    if (!values_of(in, variant, dtype, values)) return;
    smk_transpose t = {.rows = size_of(in, 20), .cols = size_of(in, 20)};
    t.batch = batch_of(in);
    t.x = matrix_of(in, 28), t.y = matrix_of(in, 28);
    t.multiprocessors = 1 + (int64_t)take(in, 1);
    t.in_place = variant->transpose_kernels.in_place && t.rows == t.cols && take(in, 1) % 2;
    if (smk_plan_transpose(variant, dtype, values, &t, &plan, &status) == SMK_OK)
        smk_plan_free(&plan);
}

static void plan_probe(input *in) {
    const smk_variant *variant = variant_of(in, SMK_PROBE);
    int64_t values[SMK_MAX_PARAMS], n_y;
    smk_status status = {0};
    smk_plan plan = {0};
    if (!values_of(in, variant, &variant->dtypes[0], values)) return;
    const smk_probe p = {.n_x = size_of(in, 40), .offset_x = size_of(in, 40)};
    if (smk_probe_size(variant, &variant->dtypes[0], values, p.n_x, &n_y, &status)) return;
    if (smk_plan_probe(variant, &variant->dtypes[0], values, &p, &plan, &status) == SMK_OK)
        smk_plan_free(&plan);
}

static void plan_flow(input *in) {
    char *const host =
        (char *)((uintptr_t)1 << 46); /* never read; nothing lies beyond an address */
    const bool gemm = take(in, 1) % 2;
    const smk_variant *variant = variant_of(in, gemm ? SMK_GEMM : SMK_TRANSPOSE);
    const smk_dtype *dtype = &variant->dtypes[take(in, 1) % (unsigned)variant->n_dtypes];
    int64_t values[SMK_MAX_PARAMS];
    smk_status status = {0};
    smk_pipeline_plan plan = {0};
    if (!values_of(in, variant, dtype, values)) return;
    smk_pipeline_query question = {.variant = variant,
                                   .dtype = dtype,
                                   .values = values,
                                   .host = {host, host, host},
                                   .memory = (size_t)size_of(in, 34),
                                   .split = size_of(in, 4)};
    smk_batch batch = batch_of(in);
    for (int k = 0; k < batch.n; k++) /* a result without elements is not planned */
        batch.size[k] = 1 + batch.size[k] % 4;
    if (gemm) {
        smk_gemm g = {.M = 1 + size_of(in, 11), .N = 1 + size_of(in, 11), .K = size_of(in, 11)};
        g.batch = batch;
        g.a = matrix_of(in, 20), g.b = matrix_of(in, 20), g.c = matrix_of(in, 20);
        g.a.offset = g.b.offset = g.c.offset = 0;
        g.alpha = 1, g.beta = (double)(take(in, 1) % 2), g.multiprocessors = 132;
        const int64_t elements = g.M * g.K + g.K * g.N + g.M * g.N, part = (int64_t)take(in, 1);
        if (part) /* of what all of it takes, where blocks make room for each other */
            question.memory = (size_t)(elements * dtype->itemsize * part / 256);
        question.seconds = part % 2 ? 1e-9 : 0;
        if (smk_pipeline_plan_gemm(&question, &g, &plan, &status) == SMK_OK && batch.n == 0)
            task_order_check(&plan, variant, dtype->itemsize);
    } else {
        smk_transpose t = {.rows = 1 + size_of(in, 11), .cols = 1 + size_of(in, 11)};
        t.batch = batch;
        t.x = matrix_of(in, 20), t.y = matrix_of(in, 20);
        t.x.offset = t.y.offset = 0;
        t.multiprocessors = 132;
        if (smk_pipeline_plan_transpose(&question, &t, &plan, &status) == SMK_OK && batch.n == 0)
            task_order_check(&plan, variant, dtype->itemsize);
    }
    smk_pipeline_plan_free(&plan);
}

static void choose(input *in) {
    static const char *const dtypes[] = {"float32", "float64", "float16", "bfloat16", "b8", "b128"};
    static const smk_alignment alignments[] = {SMK_ALIGN_1, SMK_ALIGN_4, SMK_ALIGN_16,
                                               SMK_ALIGN_32};
    smk_query q = {.op = (smk_op)(take(in, 1) % SMK_N_OPS),
                   .dtype = dtypes[take(in, 1) % 6],
                   .accuracy = (smk_accuracy)(take(in, 1) % SMK_N_ACCURACIES),
                   .sm = (int)take(in, 1),
                   .multiprocessors = 1 + (int)take(in, 1),
                   .M = size_of(in, 40),
                   .N = size_of(in, 40),
                   .K = size_of(in, 40),
                   .batch = size_of(in, 20),
                   .strides = (smk_strides)(take(in, 1) % 3),
                   .alignment = alignments[take(in, 1) % 4]};
    smk_timing timing = {.variant = variant_of(in, q.op)};
    timing.dtype = &timing.variant->dtypes[take(in, 1) % (unsigned)timing.variant->n_dtypes];
    if (!values_of(in, timing.variant, timing.dtype, timing.values)) return;
    timing.alignment = alignments[take(in, 1) % 3];
    timing.side = size_of(in, 10);
    for (int k = 0; k < SMK_N_TERMS; k++)
        timing.cost[k] = (double)take(in, 2);
    smk_fastest(&timing, 1, &q);
    smk_default_variant(&q);
    if (smk_timing_fits(&timing, &q)) smk_timing_predicts(&timing, &q);
}

static void tensor_map(input *in) {
    smk_tensor_map map = {.type = (smk_tensor_type)take(in, 1), .rank = (uint32_t)take(in, 1) % 8};
    unsigned char encoded[SMK_TENSOR_MAP_BYTES];
    smk_status status = {0};
    for (int k = 0; k < SMK_TENSOR_RANK; k++) {
        map.size[k] = (uint64_t)size_of(in, 63);
        map.stride[k] = (uint64_t)size_of(in, 63);
        map.box[k] = (uint32_t)size_of(in, 32);
        map.step[k] = (uint32_t)size_of(in, 32);
    }
    map.swizzle = (smk_swizzle)(take(in, 1) % 8);
    map.fill_nan = take(in, 1) % 2;
    if (smk_tensor_map_check(&map, &status) == SMK_OK)
        tensor_map_encode(&map, take(in, 8), encoded);
}

static void banks(input *in) {
    uint64_t to[32], from[32];
    const uint32_t width = 1u << take(in, 1) % 5, active = (uint32_t)take(in, 4);
    const uint64_t most = take(in, 1) % 8 ? 0x3ffff : UINT64_MAX;
    uint32_t wavefronts, ideal;
    for (int l = 0; l < 32; l++) {
        to[l] = take(in, 8) & most & ~(uint64_t)(width - 1);
        from[l] = to[31 - l % (l + 1)];
    }
    const bool load = take(in, 1) % 2;
    banks_request(to, active, width, load, &wavefronts, &ideal);
    banks_group_lanes(to, active, width, load);
    banks_serial_wavefronts(to, active, width);
    banks_retried(to, active, width);
    if (width >= 4) banks_copy_wavefronts(to, from, active, (uint32_t)take(in, 4) & active, width);
    sectors_touched(to, active, width);
    sectors_ideal(to, active, width);
}

static void includes(input *in) {
    static const nvrtc_header headers[] = {{"a.h", ""}, {"sub/b.h", ""}};
    char *text = malloc(in->size + 1);
    if (!text) return;
    memcpy(text, in->data, in->size);
    text[in->size] = 0;
    includes_only(text, headers, 2);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const targets[])(input *) = {plan_gemm, plan_transpose, plan_probe, plan_flow,
                                               choose,    tensor_map,     banks,      includes};
    input in = {data, size};
    targets[take(&in, 1) % (sizeof targets / sizeof *targets)](&in);
    return 0;
}
