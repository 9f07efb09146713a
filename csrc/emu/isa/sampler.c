/* Sampling. Source: CUDA C++ Programming Guide, "Texture Fetching".
 *
 * A coordinate becomes a fixed-point number of texels with 8 bits of fraction. The point filter
 * takes the texel that contains it. The linear filter takes the two texels whose centres are around
 * it along each axis, weighed by the fraction. Then each index outside the texture becomes one
 * inside, or the border, by the axis' address mode.
 */
#include "sampler.h"

#include <math.h>

#include "alu_float.h"

enum { FRACTION_BITS = 8, ONE = 1 << FRACTION_BITS, OUTSIDE = -1 };

/* The texels of one axis. */
typedef struct axis {
    int64_t index[2];
    uint32_t weight; /* of index[1], in 1/ONE */
} axis;

/* ---- coordinates ---- */

static int64_t remainder_of(int64_t x, int64_t n) {
    const int64_t r = x % n;
    return r < 0 ? r + n : r;
}

/* The index of a texel inside, or OUTSIDE. */
static int64_t addressed(smk_address_mode mode, int64_t index, int64_t size) {
    if (index >= 0 && index < size) return index;
    switch (mode) {
    case SMK_ADDRESS_BORDER: return OUTSIDE;
    case SMK_ADDRESS_WRAP: return remainder_of(index, size);
    case SMK_ADDRESS_MIRROR:
        index = remainder_of(index, 2 * size);
        return index < size ? index : 2 * size - 1 - index;
    default: return index < 0 ? 0 : size - 1;
    }
}

/* Wrap and mirror exist for normalized coordinates only. */
static smk_address_mode mode_of(const smk_texture *t, uint32_t d) {
    const smk_address_mode mode = t->cubemap ? SMK_ADDRESS_CLAMP : t->address[d];
    return t->normalized || mode == SMK_ADDRESS_BORDER ? mode : SMK_ADDRESS_CLAMP;
}

/* The coordinate in 1/ONE texels. NaN is 0. */
static int64_t fixed_point(double texels) {
    enum { LIMIT = 1 << 30 };
    if (texels != texels) return 0;
    if (texels > LIMIT) texels = LIMIT;
    if (texels < -LIMIT) texels = -LIMIT;
    return (int64_t)floor(texels * ONE + 0.5);
}

static axis axis_of(const smk_texture *t, uint32_t d, float x, int32_t offset, bool linear) {
    const int64_t size = t->size[d];
    const smk_address_mode mode = mode_of(t, d);
    const double texels = t->normalized ? (double)(x * (float)size) : (double)x;
    int64_t first;
    axis out = {0};
    if (linear) {
        const int64_t fixed = fixed_point(texels - 0.5);
        first = fixed >> FRACTION_BITS;
        out.weight = (uint32_t)(fixed & (ONE - 1));
    } else {
        first = fixed_point(floor(texels)) >> FRACTION_BITS;
    }
    for (int k = 0; k < 2; k++)
        out.index[k] = addressed(mode, first + k + offset, size);
    return out;
}

/* ---- texels ---- */

static uint64_t plane_of(const smk_texture *t, uint32_t layer, uint32_t face) {
    const uint32_t last = t->layers - 1;
    return (uint64_t)(layer > last ? last : layer) * (t->cubemap ? SMK_CUBE_FACES : 1) + face;
}

/* index: per axis, or OUTSIDE. */
static texel texel_at(const bound_texture *t, uint64_t plane, const int64_t *index) {
    const smk_texture *f = t->form;
    uint64_t at = plane;
    for (uint32_t d = f->rank; d-- > 0;) {
        if (index[d] == OUTSIDE) return texel_border(f);
        at = at * f->size[d] + (uint64_t)index[d];
    }
    return texel_read(f, t->texels + at * smk_texel_bytes(f));
}

static texel weigh(const bound_texture *t, uint64_t plane, const axis *axes) {
    const uint32_t rank = t->form->rank;
    double sum[SMK_TEXTURE_CHANNELS] = {0};
    for (uint32_t corner = 0; corner < 1u << rank; corner++) {
        int64_t index[SMK_TEXTURE_RANK];
        double weight = 1;
        for (uint32_t d = 0; d < rank; d++) {
            const uint32_t high = corner >> d & 1;
            index[d] = axes[d].index[high];
            weight *= (high ? axes[d].weight : ONE - axes[d].weight) / (double)ONE;
        }
        const texel here = texel_at(t, plane, index);
        for (int c = 0; c < SMK_TEXTURE_CHANNELS; c++)
            sum[c] += weight * f32_of_bits(here.word[c]);
    }
    texel out;
    for (int c = 0; c < SMK_TEXTURE_CHANNELS; c++)
        out.word[c] = canonical_f32((float)sum[c]);
    return out;
}

/* ---- cubemaps ---- */

/* The face that the direction points to, and the coordinates in it, from 0 to 1. */
static uint32_t cube_face(const float *direction, float *s, float *t) {
    const float x = direction[0], y = direction[1], z = direction[2];
    const float ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
    uint32_t face;
    float major, across, down;
    if (az >= ax && az >= ay) {
        face = z < 0 ? 5 : 4, major = az;
        across = z < 0 ? -x : x, down = -y;
    } else if (ay >= ax) {
        face = y < 0 ? 3 : 2, major = ay;
        across = x, down = y < 0 ? -z : z;
    } else {
        face = x < 0 ? 1 : 0, major = ax;
        across = x < 0 ? z : -z, down = -y;
    }
    *s = (across / major + 1) / 2;
    *t = (down / major + 1) / 2;
    return face;
}

/* ---- samples ---- */

static uint64_t axes_of(const bound_texture *t, const sample_point *p, bool linear, axis *out) {
    const smk_texture *f = t->form;
    float x[SMK_TEXTURE_RANK] = {p->x[0], p->x[1], p->x[2]};
    const uint32_t face = f->cubemap ? cube_face(p->x, &x[0], &x[1]) : 0;
    for (uint32_t d = 0; d < f->rank; d++)
        out[d] = axis_of(f, d, x[d], p->offset[d], linear);
    return plane_of(f, p->layer, face);
}

texel sample_float(const bound_texture *t, const sample_point *p) {
    axis axes[SMK_TEXTURE_RANK];
    int64_t index[SMK_TEXTURE_RANK];
    const uint64_t plane = axes_of(t, p, t->form->linear, axes);
    if (t->form->linear) return weigh(t, plane, axes);
    for (uint32_t d = 0; d < t->form->rank; d++)
        index[d] = axes[d].index[0];
    return texel_at(t, plane, index);
}

texel sample_integer(const bound_texture *t, const sample_point *p) {
    const smk_texture *f = t->form;
    int64_t index[SMK_TEXTURE_RANK];
    for (uint32_t d = 0; d < f->rank; d++) {
        const int64_t at = (int64_t)p->integer[d] + p->offset[d];
        index[d] = at < 0 || at >= f->size[d] ? OUTSIDE : at;
    }
    return texel_at(t, plane_of(f, p->layer, 0), index);
}

texel sample_gather(const bound_texture *t, const sample_point *p, uint32_t channel) {
    /* (x, y) of the results, counterclockwise from the lower left */
    static const uint8_t order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    axis axes[SMK_TEXTURE_RANK];
    texel out;
    const uint64_t plane = axes_of(t, p, true, axes);
    for (int k = 0; k < 4; k++) {
        const int64_t index[] = {axes[0].index[order[k][0]], axes[1].index[order[k][1]]};
        out.word[k] = texel_at(t, plane, index).word[channel];
    }
    return out;
}
