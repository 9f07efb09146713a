/* Arithmetic of sizes and strides. */
#ifndef SMK_INTEGERS_H
#define SMK_INTEGERS_H

#include <stdint.h>

static inline int64_t min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static inline int64_t ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

static inline int64_t round_up(int64_t n, int64_t to) {
    return ceil_div(n, to) * to;
}

static inline int64_t magnitude(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

#endif
