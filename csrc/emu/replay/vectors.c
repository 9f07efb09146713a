/* A register's 32 lanes in a few words: most are equal, or evenly spaced. */
#include <string.h>

#include "recorder.h"

static uint64_t element(const unsigned char *lanes, uint32_t bytes, int lane) {
    uint64_t value = 0;
    memcpy(&value, lanes + (size_t)lane * bytes, bytes);
    return value;
}

static uint64_t low_bytes(uint64_t value, uint32_t bytes) {
    return bytes == 8 ? value : value & ((1ull << 8 * bytes) - 1);
}

static bool is_affine(const unsigned char *lanes, uint32_t bytes) {
    const uint64_t base = element(lanes, bytes, 0), stride = element(lanes, bytes, 1) - base;
    if (bytes == 4) return lanes_evenly_u32((const uint32_t *)lanes, (uint32_t)stride);
    if (bytes == 8) return lanes_evenly_u64((const uint64_t *)lanes, stride);
    for (uint64_t l = 2; l < LANES; l++)
        if (element(lanes, bytes, (int)l) != low_bytes(base + l * stride, bytes)) return false;
    return true;
}

/* 16-byte elements: only equal ones. */
static bool is_uniform(const unsigned char *lanes, uint32_t bytes) {
    for (int l = 1; l < LANES; l++)
        if (memcmp(lanes, lanes + (size_t)l * bytes, bytes)) return false;
    return true;
}

static void push_value(columns *c, uint64_t value, uint32_t bytes) {
    column_push(c, COLUMN_words, (uint32_t)value);
    if (bytes == 8) column_push(c, COLUMN_words, (uint32_t)(value >> 32));
}

static uint32_t push_raw(columns *c, const unsigned char *lanes, uint32_t bytes) {
    const size_t words = bytes < 4 ? 1 : bytes / 4;
    unsigned char *to = column_extend(c, COLUMN_words, LANES * words);
    for (size_t l = 0; to && l < LANES; l++)
        memcpy(to + 4 * l * words, lanes + l * bytes, bytes);
    return VECTOR_RAW;
}

uint32_t vector_push(columns *c, const void *given, uint32_t bytes) {
    const unsigned char *lanes = given;
    if (bytes == 0) {
        column_push(c, COLUMN_words, lanes_bits(given));
        return VECTOR_PREDICATE;
    }
    if (bytes == 16) {
        if (!is_uniform(lanes, bytes)) return push_raw(c, lanes, bytes);
        unsigned char *to = column_extend(c, COLUMN_words, 8);
        if (to) memcpy(to, lanes, bytes);
        return VECTOR_AFFINE;
    }
    if (!is_affine(lanes, bytes)) return push_raw(c, lanes, bytes);
    const uint64_t base = element(lanes, bytes, 0);
    push_value(c, base, bytes);
    push_value(c, low_bytes(element(lanes, bytes, 1) - base, bytes), bytes);
    return VECTOR_AFFINE;
}

uint32_t vector_push_addresses(columns *c, const uint64_t address[LANES], uint32_t active,
                               uint32_t bytes) {
    const uint32_t rest = active & (active - 1);
    const uint64_t first = active ? (uint64_t)first_lane(active) : 0;
    const uint64_t second = rest ? (uint64_t)first_lane(rest) : first + 1;
    const uint64_t span = rest ? address[second] - address[first] : 0;
    const uint64_t stride = (uint64_t)((int64_t)span / (int64_t)(second - first));
    const uint64_t base = active ? address[first] - first * stride : 0;
    bool affine = true;
    for (uint32_t left = active; left; left &= left - 1) {
        const uint64_t l = (uint64_t)first_lane(left);
        affine &= address[l] == base + l * stride;
    }
    if (affine) {
        push_value(c, base, bytes);
        push_value(c, stride, bytes);
        return VECTOR_AFFINE;
    }
    for (int l = 0; l < LANES; l++)
        push_value(c, active >> l & 1 ? address[l] : 0, bytes);
    return VECTOR_RAW;
}
