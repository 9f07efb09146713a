/* Sampling. Source: CUDA C++ Programming Guide, "Texture Fetching"; for the exact bits, samples of
 * an H200 (validation/textures.py, tests/emu/texture_h200.json).
 *
 * A coordinate becomes a fixed-point number of texels. The point filter takes the texel that
 * contains it. The linear filter takes the two texels whose centres are around it along each axis,
 * with weights of 1/256. Then each index outside the texture becomes one inside, or the border, by
 * the axis' address mode.
 */
#include "sampler.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "alu_float.h"

enum { OUTSIDE = -1, ONE = 256 /* the sum of all weights */ };

/* The texels of one axis. */
typedef struct axis {
    int64_t index[2];
    uint32_t weight; /* of index[1] */
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
    const smk_address_mode mode = t->address[d];
    return t->normalized || mode == SMK_ADDRESS_BORDER ? mode : SMK_ADDRESS_CLAMP;
}

enum { FIXED_BITS = 21 };

/* The coordinate in texels, with FIXED_BITS of fraction. A normalized one is cut to that before it
 * is multiplied. NaN is 0; so is infinity where coordinates repeat. */
static int64_t fixed_texels(const smk_texture *t, uint32_t d, double x) {
    enum { REPEAT_LIMIT = 1 << 24 /* from here on floats are even integers */ };
    const smk_address_mode mode = mode_of(t, d);
    const bool repeats = mode == SMK_ADDRESS_WRAP || mode == SMK_ADDRESS_MIRROR;
    /* what is further outside reads the same, whatever the offset */
    const double limit = t->normalized ? 64 : 1 << 29;
    if (x != x || (repeats && fabs(x) >= REPEAT_LIMIT)) x = 0;
    if (!repeats) x = x < -limit ? -limit : x > limit ? limit : x;
    int64_t fixed = (int64_t)floor(x * (1 << FIXED_BITS));
    if (repeats) fixed = remainder_of(fixed, 2 << FIXED_BITS);
    return t->normalized ? fixed * t->size[d] : fixed;
}

static axis axis_of(const smk_texture *t, uint32_t d, double x, int32_t offset, bool linear) {
    const int64_t at = fixed_texels(t, d, x), unit = (int64_t)1 << FIXED_BITS, step = unit / ONE;
    /* from the first texel's centre, in 1/ONE, rounded half up */
    const int64_t weights = (at - unit / 2 + step / 2) >> (FIXED_BITS - 8);
    const int64_t first = linear ? weights >> 8 : at >> FIXED_BITS;
    axis out = {.weight = (uint32_t)(weights & (ONE - 1))};
    for (int k = 0; k < 2; k++)
        out.index[k] = addressed(mode_of(t, d), first + k + offset, t->size[d]);
    /* a clamped coordinate is at a texel's centre */
    if (mode_of(t, d) == SMK_ADDRESS_CLAMP && out.index[0] == out.index[1]) out.weight = 0;
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
    uint64_t row = plane;
    if (index[0] == OUTSIDE) return texel_border(f);
    for (uint32_t d = f->rank; d-- > 1;) {
        if (index[d] == OUTSIDE) return texel_border(f);
        row = row * f->size[d] + (uint64_t)index[d];
    }
    return texel_load(f, t->texels + row * smk_texture_row_bytes(f) +
                             (uint64_t)index[0] * smk_texel_bytes(f));
}

/* ---- the linear filter ---- */

enum { MAX_CORNERS = 1 << SMK_TEXTURE_RANK };

/* The texels with weights other than 0. */
typedef struct corners {
    uint32_t n;
    uint32_t weight[MAX_CORNERS];
    uint8_t plane[MAX_CORNERS]; /* 0 or 1, along z */
    texel texel[MAX_CORNERS];
} corners;

/* Splits ONE along z, then each part along x, then along y, in integers that are rounded half up.
 * Corner 1 is the second along x, 2 along y, 4 along z. */
static void split_weights(const axis *axes, uint32_t rank, uint32_t out[MAX_CORNERS]) {
    const uint32_t a = axes[0].weight, b = rank > 1 ? axes[1].weight : 0;
    const uint32_t c = rank > 2 ? axes[2].weight : 0;
    for (uint32_t z = 0; z < 2; z++, out += MAX_CORNERS / 2) {
        const uint32_t plane = z ? c : ONE - c;
        const uint32_t right = (plane * a + ONE / 2) / ONE, left = plane - right;
        out[0] = (left * (ONE - b) + ONE / 2) / ONE;
        out[2] = left - out[0];
        out[3] = (right * b + ONE / 2) / ONE;
        out[1] = right - out[3];
    }
}

static void find_corners(const bound_texture *t, uint64_t plane, const axis *axes, corners *out) {
    const uint32_t rank = t->form->rank;
    uint32_t weights[MAX_CORNERS];
    split_weights(axes, rank, weights);
    out->n = 0;
    for (uint32_t corner = 0; corner < 1u << rank; corner++) {
        int64_t index[SMK_TEXTURE_RANK];
        if (!weights[corner]) continue;
        for (uint32_t d = 0; d < rank; d++)
            index[d] = axes[d].index[corner >> d & 1];
        out->weight[out->n] = weights[corner];
        out->plane[out->n] = corner >> 2;
        out->texel[out->n++] = texel_at(t, plane, index);
    }
}

/* 2^exponent, of a normal number: ldexp is slow. */
static double power_of_2(int exponent) {
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

enum { KEPT_FLOAT = 27, KEPT_HALF = 14, WEIGHT_BITS = 8 };

/* The sum of weight * texel for corners of one plane. Texels are cut to `kept` bits below the
 * largest one's first, then multiplied and added exactly. *largest: in, an exponent that it has at
 * least; out, its exponent. */
static double weigh_plane(const corners *from, uint32_t plane, int channel, int kept,
                          int *largest) {
    double sum = 0;
    for (uint32_t k = 0; k < from->n; k++) {
        const float x = f32_of_bits(from->texel[k].word[channel]);
        int exponent;
        if (from->plane[k] != plane || x == 0) continue;
        frexpf(x, &exponent);
        if (isfinite(x) && exponent - 1 > *largest) *largest = exponent - 1;
    }
    for (uint32_t k = 0; k < from->n; k++) {
        const double x = f32_of_bits(from->texel[k].word[channel]);
        if (from->plane[k] == plane)
            sum += from->weight[k] * trunc(x * power_of_2(kept - *largest)) *
                   power_of_2(*largest - kept) / ONE;
    }
    return sum;
}

/* The planes' sums are added as multiples of a unit, rounded down. It lies as far below the largest
 * texel of both as the sums' last bit does, but its exponent is the next lower one that is a
 * multiple of 4 as float32 stores it. */
static double add_planes(const corners *from, int channel, int kept, int lowest) {
    int largest[2] = {lowest, lowest};
    double sum[2];
    for (uint32_t z = 0; z < 2; z++)
        sum[z] = weigh_plane(from, z, channel, kept, &largest[z]);
    const int exponent = largest[largest[1] > largest[0]], bias = 127;
    const int unit = ((exponent + bias) & ~3) - bias - kept - WEIGHT_BITS;
    const double scale = power_of_2(-unit);
    return (floor(sum[0] * scale) + floor(sum[1] * scale)) * power_of_2(unit);
}

/* Rounds half away from 0 to the type: a number of bits, and the unit of its subnormal numbers. */
static double round_half_away(double x, int bits, int unit) {
    int exponent;
    frexp(x, &exponent);
    const int dropped = exponent - bits > unit ? exponent - bits : unit;
    return round(x * power_of_2(-dropped)) * power_of_2(dropped);
}

static uint32_t weigh_floats(const corners *from, int channel, bool half) {
    if (from->n == 1) /* nothing is cut or rounded; -0 becomes 0 */
        return canonical_f32(f32_of_bits(from->texel[0].word[channel]) + 0.0f);
    const double sum = half ? add_planes(from, channel, KEPT_HALF, -14)
                            : add_planes(from, channel, KEPT_FLOAT, -126);
    if (!isfinite(sum)) return canonical_f32((float)sum);
    return bits_of_f32(
        (float)(half ? round_half_away(sum, 11, -24) : round_half_away(sum, 24, -149)));
}

/* 8- and 16-bit integers as floats: the sum is rounded to 16 bits, then converted. */
static uint32_t weigh_integers(const corners *from, int channel, smk_texel_type type) {
    int64_t sum = 0;
    for (uint32_t k = 0; k < from->n; k++)
        sum += (int64_t)from->weight[k] * (int32_t)from->texel[k].word[channel];
    if (type == SMK_TEXEL_UINT8)
        sum += (sum + 128) >> 8; /* of 16 bits: times 257 / 256 */
    else if (type == SMK_TEXEL_INT8)
        sum += (sum + (sum >> 12) * 16 + 64) >> 7; /* about times 32767 / 32512 */
    else
        sum = (sum + 128) >> 8;
    const bool is_signed = smk_texel_type_kind(type) == 's';
    if (is_signed && sum < -INT16_MAX) sum = -INT16_MAX;
    return bits_of_f32((float)((double)sum / (is_signed ? INT16_MAX : UINT16_MAX)));
}

static texel weigh(const bound_texture *t, uint64_t plane, const axis *axes) {
    const smk_texture *f = t->form;
    corners from;
    texel out = {0};
    find_corners(t, plane, axes, &from);
    for (uint32_t c = 0; c < f->channels; c++)
        out.word[c] = f->normalized_float
                          ? weigh_integers(&from, (int)c, f->type)
                          : weigh_floats(&from, (int)c, f->type == SMK_TEXEL_FLOAT16);
    return out;
}

/* ---- cubemaps ---- */

/* The direction times 1 / its largest magnitude: infinity, and a largest magnitude that is
 * subnormal or 0, become NaN or infinity. */
static void scale_direction(const float *given, float *out) {
    const float major = fmaxf(fmaxf(fabsf(given[0]), fabsf(given[1])), fabsf(given[2]));
    for (int k = 0; k < 3; k++) {
        const float x = isinf(major)      ? given[k] * 0
                        : major < FLT_MIN ? given[k] * INFINITY
                                          : given[k] / major;
        out[k] = f32_of_bits(flush_f32(bits_of_f32(x)));
    }
}

/* From -1 to 1, to 0 to 1, cut to FIXED_BITS. NaN is 0 before. */
static double face_coordinate(float x) {
    if (x != x) return 0.5;
    const double scale = 1 << (FIXED_BITS - 1);
    return (floor(x * scale) / scale + 1) / 2;
}

/* The face that the direction points to, and the coordinates in it, from 0 to 1. */
static uint32_t cube_face(const float *given, double *s, double *t) {
    float x[3], across, down;
    uint32_t face;
    scale_direction(given, x);
    const float ax = fabsf(x[0]), ay = fabsf(x[1]), az = fabsf(x[2]), other = fmaxf(ax, ay);
    if (other != other || az >= other) {
        face = x[2] < 0 ? 5 : 4;
        across = x[2] < 0 ? -x[0] : x[0], down = -x[1];
    } else if (ax != ax || ay >= ax) {
        face = x[1] < 0 ? 3 : 2;
        across = x[0], down = x[1] < 0 ? -x[2] : x[2];
    } else {
        face = x[0] < 0 ? 1 : 0;
        across = x[0] < 0 ? x[2] : -x[2], down = -x[1];
    }
    *s = face_coordinate(across);
    *t = face_coordinate(down);
    return face;
}

/* ---- samples ---- */

static uint64_t axes_of(const bound_texture *t, const sample_point *p, bool linear, axis *out) {
    const smk_texture *f = t->form;
    double x[SMK_TEXTURE_RANK];
    for (int k = 0; k < SMK_TEXTURE_RANK; k++)
        x[k] = f32_of_bits(flush_f32(bits_of_f32(p->x[k])));
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
    return texel_result(t->form, texel_at(t, plane, index));
}

texel sample_integer(const bound_texture *t, const sample_point *p, bool clamp) {
    const smk_texture *f = t->form;
    int64_t index[SMK_TEXTURE_RANK];
    for (uint32_t d = 0; d < f->rank; d++) {
        index[d] = (int64_t)p->integer[d] + p->offset[d];
        if (clamp) index[d] = addressed(SMK_ADDRESS_CLAMP, index[d], f->size[d]);
        if (index[d] < 0 || index[d] >= f->size[d]) return (texel){0};
    }
    if (f->layered && p->layer >= f->layers) return (texel){0};
    return texel_result(f, texel_at(t, plane_of(f, p->layer, 0), index));
}

texel sample_gather(const bound_texture *t, const sample_point *p, uint32_t channel) {
    /* (x, y) of the results, counterclockwise from the lower left */
    static const uint8_t order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    axis axes[SMK_TEXTURE_RANK];
    texel out;
    const uint64_t plane = axes_of(t, p, true, axes);
    for (int k = 0; k < 4; k++) {
        const int64_t index[] = {axes[0].index[order[k][0]], axes[1].index[order[k][1]]};
        out.word[k] = texel_result(t->form, texel_at(t, plane, index)).word[channel];
    }
    return out;
}
