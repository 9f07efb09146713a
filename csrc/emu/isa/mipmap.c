/* Mipmaps: the levels that a sample takes. Sources: CUDA driver API, cuTexObjectCreate (bias and
 * clamps); OpenGL 4.6, 8.14 (the level of two gradients, which CUDA does not state). Not compared
 * with a GPU. */
#include "mipmap.h"

#include <math.h>

#include "alu_float.h"
#include "alu_functions.h"

enum { LEVEL_UNIT = 256 }; /* a level's fraction has 8 bits, as other weights */

bound_texture texture_level(const bound_texture *t, uint32_t level, smk_texture *form) {
    bound_texture out = *t;
    uint64_t offset;
    *form = smk_texture_level(t->form, level, &offset);
    out.form = form;
    out.texels += offset;
    out.address += offset;
    return out;
}

static texel sample_one(const bound_texture *t, const sample_point *p, uint32_t level) {
    smk_texture form;
    const bound_texture one = texture_level(t, level, &form);
    return sample_float(&one, p);
}

/* With the bias and between the clamps, from 0 to the last level; NaN is the lowest one. */
static uint32_t fixed_level(const smk_texture *t, float level) {
    const float last = (float)(smk_texture_levels(t) - 1);
    const float inside = fminf(fmaxf(level + t->level_bias, t->min_level), t->max_level);
    const float there = inside > 0 ? fminf(inside, last) : 0;
    return (uint32_t)(there * LEVEL_UNIT + 0.5f);
}

static float mix(float a, float b, uint32_t weight) {
    return (float)(((double)a * (LEVEL_UNIT - weight) + (double)b * weight) / LEVEL_UNIT);
}

texel sample_mipmap(const bound_texture *t, const sample_point *p, float level) {
    if (smk_texture_levels(t->form) == 1) return sample_float(t, p);
    const uint32_t fixed = fixed_level(t->form, level), weight = fixed % LEVEL_UNIT;
    if (!t->form->linear_levels) return sample_one(t, p, (fixed + LEVEL_UNIT / 2) / LEVEL_UNIT);
    texel out = sample_one(t, p, fixed / LEVEL_UNIT);
    if (!weight) return out;
    const texel next = sample_one(t, p, fixed / LEVEL_UNIT + 1);
    for (uint32_t c = 0; c < t->form->channels; c++)
        out.word[c] =
            canonical_f32(mix(f32_of_bits(out.word[c]), f32_of_bits(next.word[c]), weight));
    return out;
}

/* How far a step goes on the face of a cube that the direction points to, from 0 to 1. */
static void step_on_face(const float *direction, const float *step, double *out) {
    const float x = fabsf(direction[0]), y = fabsf(direction[1]), z = fabsf(direction[2]);
    const int major = z >= fmaxf(x, y) ? 2 : y >= x;
    const double length = fabs((double)direction[major]);
    const double forward = direction[major] < 0 ? -(double)step[major] : step[major];
    for (int d = 0, k = 0; d < 3; d++) {
        if (d == major) continue;
        out[k++] = (step[d] - direction[d] / length * forward) / length / 2;
    }
}

/* The square of a step's length in texels. */
static double squared_length(const smk_texture *t, const sample_point *p, const float *step) {
    double part[SMK_TEXTURE_RANK], sum = 0;
    for (int d = 0; d < SMK_TEXTURE_RANK; d++)
        part[d] = step[d];
    if (t->cubemap) step_on_face(p->x, step, part);
    for (uint32_t d = 0; d < t->rank; d++)
        sum += part[d] * t->size[d] * (part[d] * t->size[d]);
    return sum;
}

texel sample_gradients(const bound_texture *t, const sample_point *p,
                       const float step[2][SMK_TEXTURE_RANK]) {
    if (smk_texture_levels(t->form) == 1) return sample_float(t, p);
    const double a = squared_length(t->form, p, step[0]), b = squared_length(t->form, p, step[1]);
    const double longer = a > b ? a : b;
    /* No step is the largest level, which a step of 2^-64 is as well. */
    const double level = longer > 0x1p-128 ? function_log2(longer) / 2 : -64;
    return sample_mipmap(t, p, (float)level);
}
