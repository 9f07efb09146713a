/* LZ4 blocks: tokens of literals and matches, as the LZ4 block format describes them. */
#include <stdint.h>
#include <string.h>

#include "decompress.h"

/* A length of 15 goes on in further bytes, up to the first that is not 255. */
static bool read_length(const uint8_t **at, const uint8_t *end, size_t *length) {
    uint8_t more = 255;
    if (*length != 15) return true;
    while (more == 255) {
        if (*at == end) return false;
        more = *(*at)++;
        *length += more;
    }
    return true;
}

bool lz4_decompress(const void *in, size_t bytes, unsigned char *out, size_t out_bytes) {
    enum { MIN_MATCH = 4 };
    const uint8_t *at = in, *end = at + bytes;
    size_t done = 0;
    while (at < end) {
        const uint8_t token = *at++;
        size_t literals = token >> 4, match = token & 15;
        if (!read_length(&at, end, &literals)) return false;
        if (literals > (size_t)(end - at) || literals > out_bytes - done) return false;
        memcpy(out + done, at, literals);
        at += literals;
        done += literals;
        if (at == end) break; /* the last sequence has no match */
        if (end - at < 2) return false;
        const size_t distance = at[0] | (size_t)at[1] << 8;
        at += 2;
        if (!read_length(&at, end, &match)) return false;
        match += MIN_MATCH;
        if (!distance || distance > done || match > out_bytes - done) return false;
        for (size_t k = 0; k < match; k++, done++)
            out[done] = out[done - distance];
    }
    return done == out_bytes;
}
