/* Zstandard frames, as RFC 8878 describes them. Without dictionaries, which fat binaries do not
 * use, and without verification of the checksum. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decompress.h"

enum {
    MAX_FSE_LOG = 9,
    MAX_HUFFMAN_BITS = 11,
    MAX_SYMBOLS = 256,
    MAX_BLOCK = 128 * 1024,
    N_LITERAL_LENGTHS = 36,
    N_MATCH_LENGTHS = 53,
    N_OFFSETS = 32
};

/* ---- bits ---- */

static unsigned highest_bit(uint64_t value) {
    return 63u - (unsigned)__builtin_clzll(value);
}

/* n bits from bit `at` on; bits before the start are 0. */
static uint64_t bits_at(const uint8_t *data, int64_t at, unsigned n) {
    uint64_t value = 0;
    if (at < 0) {
        const uint64_t missing = (uint64_t)-at;
        return missing >= n ? 0 : bits_at(data, 0, n - (unsigned)missing) << missing;
    }
    const unsigned skip = (unsigned)(at % 8);
    for (unsigned k = 0; 8 * k < n + skip; k++) {
        const uint64_t byte = data[at / 8 + k];
        value |= k ? byte << (8 * k - skip) : byte >> skip;
    }
    return n < 64 ? value & ((1ull << n) - 1) : value;
}

/* A stream that is read from its last bit to its first. */
typedef struct bit_stack {
    const uint8_t *data;
    int64_t left; /* negative: more was read than there is */
} bit_stack;

static bool bits_open(bit_stack *b, const uint8_t *data, size_t bytes) {
    if (!bytes || !data[bytes - 1]) return false;
    *b = (bit_stack){data, (int64_t)(bytes - 1) * 8 + highest_bit(data[bytes - 1])};
    return true;
}

static uint64_t bits_pop(bit_stack *b, unsigned n) {
    b->left -= n;
    return b->left <= -64 ? 0 : bits_at(b->data, b->left, n);
}

/* ---- finite state entropy ---- */

typedef struct fse_table {
    unsigned log;
    struct {
        uint8_t symbol, bits;
        uint16_t base;
    } states[1 << MAX_FSE_LOG];
} fse_table;

static bool fse_build(fse_table *t, const int16_t *counts, unsigned n, unsigned log) {
    const unsigned size = 1u << log, step = (size >> 1) + (size >> 3) + 3;
    uint16_t next[MAX_SYMBOLS];
    unsigned high = size, position = 0;
    t->log = log;
    for (unsigned s = 0; s < n; s++) {
        next[s] = counts[s] < 0 ? 1 : (uint16_t)counts[s];
        if (counts[s] < 0) t->states[--high].symbol = (uint8_t)s;
    }
    for (unsigned s = 0; s < n; s++)
        for (int k = 0; k < counts[s]; k++) {
            t->states[position].symbol = (uint8_t)s;
            do
                position = (position + step) & (size - 1);
            while (position >= high);
        }
    for (unsigned k = 0; k < size; k++) {
        const unsigned x = next[t->states[k].symbol]++;
        const unsigned bits = log - highest_bit(x);
        t->states[k].bits = (uint8_t)bits;
        t->states[k].base = (uint16_t)((x << bits) - size);
    }
    return position == 0;
}

/* Reads a distribution and builds its table. Returns the bytes read; 0: invalid. */
static size_t fse_read(fse_table *t, const uint8_t *data, size_t bytes, unsigned max_log,
                       unsigned max_symbols) {
    int16_t counts[MAX_SYMBOLS];
    uint8_t padded[512] = {0};
    unsigned n = 0, at = 4;
    memcpy(padded, data, bytes < 256 ? bytes : 256);
    const unsigned log = (padded[0] & 15u) + 5;
    if (!bytes || log > max_log) return 0;
    int left = 1 << log;
    while (left > 0) {
        if (n == max_symbols || at / 8 > 256) return 0;
        const unsigned bits = highest_bit((uint64_t)left + 1) + 1;
        const unsigned small = (1u << bits) - 1 - ((unsigned)left + 1);
        unsigned value = (unsigned)bits_at(padded, at, bits - 1);
        if (value < small) {
            at += bits - 1;
        } else {
            value = (unsigned)bits_at(padded, at, bits);
            at += bits;
            if (value >= 1u << (bits - 1)) value -= small;
        }
        counts[n++] = (int16_t)((int)value - 1);
        left -= value ? (int)value - 1 : 1;
        if (value != 1) continue;
        for (unsigned repeat = 3; repeat == 3;) {
            if (at / 8 > 256) return 0;
            repeat = (unsigned)bits_at(padded, at, 2);
            at += 2;
            if (repeat > max_symbols - n) return 0;
            for (unsigned k = 0; k < repeat; k++)
                counts[n++] = 0;
        }
    }
    if (left < 0 || (at + 7) / 8 > bytes || !fse_build(t, counts, n, log)) return 0;
    return (at + 7) / 8;
}

/* ---- Huffman codes of literals ---- */

typedef struct huffman_table {
    unsigned bits; /* of the longest code; 0: there is no table */
    struct {
        uint8_t symbol, bits;
    } codes[1 << MAX_HUFFMAN_BITS];
} huffman_table;

static bool huffman_build(huffman_table *t, uint8_t *weights, unsigned n) {
    unsigned sum = 0, at = 0;
    for (unsigned k = 0; k < n; k++) {
        if (weights[k] > MAX_HUFFMAN_BITS) return false;
        sum += weights[k] ? 1u << (weights[k] - 1) : 0;
    }
    if (!sum || n >= MAX_SYMBOLS) return false;
    t->bits = highest_bit(sum) + 1;
    const unsigned rest = (1u << t->bits) - sum;
    if (t->bits > MAX_HUFFMAN_BITS || rest & (rest - 1)) return false;
    weights[n++] = (uint8_t)(highest_bit(rest) + 1); /* the last one is not stored */
    for (unsigned weight = 1; weight <= t->bits; weight++)
        for (unsigned s = 0; s < n; s++)
            for (unsigned k = 0; weights[s] == weight && k < 1u << (weight - 1); k++, at++) {
                t->codes[at].symbol = (uint8_t)s;
                t->codes[at].bits = (uint8_t)(t->bits + 1 - weight);
            }
    return at == 1u << t->bits;
}

/* Weights that two interleaved states of one table give. */
static bool fse_weights(const uint8_t *data, size_t bytes, uint8_t *weights, unsigned *n) {
    enum { WEIGHT_LOG = 6 };
    fse_table t;
    bit_stack b;
    const size_t header = fse_read(&t, data, bytes, WEIGHT_LOG, MAX_HUFFMAN_BITS + 2);
    if (!header || !bits_open(&b, data + header, bytes - header)) return false;
    unsigned states[2] = {(unsigned)bits_pop(&b, t.log), (unsigned)bits_pop(&b, t.log)};
    if (b.left < 0) return false;
    for (*n = 0; *n < MAX_SYMBOLS - 1; ++*n) {
        unsigned *state = &states[*n % 2];
        weights[*n] = t.states[*state].symbol;
        const unsigned bits = t.states[*state].bits;
        *state = t.states[*state].base + (unsigned)bits_pop(&b, bits);
        if (b.left >= 0) continue;
        ++*n;
        if (*n == MAX_SYMBOLS - 1) return false;
        weights[*n] = t.states[states[*n % 2]].symbol; /* the other state's last one */
        ++*n;
        return true;
    }
    return false;
}

/* Returns the bytes read; 0: invalid. */
static size_t huffman_read(huffman_table *t, const uint8_t *data, size_t bytes) {
    uint8_t weights[MAX_SYMBOLS + 1];
    if (!bytes) return 0;
    unsigned n = data[0] >= 128 ? data[0] - 127u : 0;
    const size_t size = n ? (n + 1) / 2 : data[0];
    if (size > bytes - 1) return 0;
    for (unsigned k = 0; k < n; k++)
        weights[k] = k % 2 ? data[1 + k / 2] & 15 : data[1 + k / 2] >> 4;
    if (!n && !fse_weights(data + 1, size, weights, &n)) return 0;
    return huffman_build(t, weights, n) ? size + 1 : 0;
}

static bool huffman_stream(const huffman_table *t, const uint8_t *data, size_t bytes, uint8_t *out,
                           size_t n) {
    bit_stack b;
    if (!bits_open(&b, data, bytes)) return false;
    for (size_t k = 0; k < n; k++) {
        const uint64_t code = bits_at(data, b.left - t->bits, t->bits);
        out[k] = t->codes[code].symbol;
        b.left -= t->codes[code].bits;
        if (b.left < 0) return false;
    }
    return b.left == 0;
}

static bool huffman_streams(const huffman_table *t, const uint8_t *data, size_t bytes, uint8_t *out,
                            size_t n, bool four) {
    enum { JUMP_TABLE = 6 };
    if (!four) return huffman_stream(t, data, bytes, out, n);
    if (bytes < JUMP_TABLE) return false;
    const size_t each = (n + 3) / 4;
    size_t at = JUMP_TABLE;
    if (3 * each > n) return false;
    for (unsigned k = 0; k < 4; k++) {
        const size_t size = k < 3 ? data[2 * k] | (size_t)data[2 * k + 1] << 8 : bytes - at;
        const size_t count = k < 3 ? each : n - 3 * each;
        if (size > bytes - at || !huffman_stream(t, data + at, size, out + k * each, count))
            return false;
        at += size;
    }
    return true;
}

/* ---- blocks ---- */

typedef struct decoder {
    unsigned char *out;
    size_t done, out_bytes;
    huffman_table huffman;
    fse_table lengths, offsets, matches; /* log 0 and no_table: never set */
    bool has_tables[3];
    uint64_t repeated[3];
    uint8_t literals[MAX_BLOCK];
    size_t n_literals;
} decoder;

/* The literals of a block. Returns the bytes read; 0: invalid. */
static size_t read_literals(decoder *d, const uint8_t *data, size_t bytes) {
    enum { RAW, RLE, COMPRESSED, REPEATED };
    uint8_t head[8] = {0};
    if (!bytes) return 0;
    memcpy(head, data, bytes < 5 ? bytes : 5);
    const unsigned type = head[0] & 3u, format = head[0] >> 2 & 3u;
    uint64_t bits;
    memcpy(&bits, head, sizeof bits);
    if (type == RAW || type == RLE) {
        const unsigned header = format == 1 ? 2 : format == 3 ? 3 : 1;
        d->n_literals = (size_t)(header == 1   ? bits >> 3 & 0x1f
                                 : header == 2 ? bits >> 4 & 0xfff
                                               : bits >> 4 & 0xfffff);
        const size_t stored = type == RAW ? d->n_literals : 1;
        if (d->n_literals > MAX_BLOCK || header + stored > bytes) return 0;
        if (type == RAW)
            memcpy(d->literals, data + header, stored);
        else
            memset(d->literals, data[header], d->n_literals);
        return header + stored;
    }
    const unsigned header = format < 2 ? 3 : format + 2, width = 4 * header - 2;
    d->n_literals = (size_t)(bits >> 4 & ((1ull << width) - 1));
    const size_t stored = (size_t)(bits >> (4 + width) & ((1ull << width) - 1));
    if (d->n_literals > MAX_BLOCK || header + stored > bytes) return 0;
    size_t tree = 0;
    if (type == COMPRESSED && !(tree = huffman_read(&d->huffman, data + header, stored))) return 0;
    if (!d->huffman.bits) return 0;
    return huffman_streams(&d->huffman, data + header + tree, stored - tree, d->literals,
                           d->n_literals, format != 0)
               ? header + stored
               : 0;
}

/* The code's first value and the number of bits that are added to it. */
typedef struct code {
    uint32_t base;
    uint8_t bits;
} code;

static code length_code(unsigned symbol) {
    static const uint8_t bits[] = {1, 1, 1, 1,  2,  2,  3,  3,  4,  6,
                                   7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const uint32_t base[] = {16,  18,  20,  22,   24,   28,   32,   40,    48,    64,
                                    128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
    return symbol < 16 ? (code){symbol, 0} : (code){base[symbol - 16], bits[symbol - 16]};
}

static code match_code(unsigned symbol) {
    static const uint8_t bits[] = {1, 1, 1, 1,  2,  2,  3,  3,  4,  4, 5,
                                   7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const uint32_t base[] = {35,  37,  39,  41,   43,   47,   51,   59,    67,    83,   99,
                                    131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539};
    return symbol < 32 ? (code){symbol + 3, 0} : (code){base[symbol - 32], bits[symbol - 32]};
}

static const int16_t default_lengths[N_LITERAL_LENGTHS] = {4, 3, 2, 2, 2, 2, 2, 2, 2,  2,  2,  2,
                                                           2, 1, 1, 1, 2, 2, 2, 2, 2,  2,  2,  2,
                                                           2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
static const int16_t default_matches[N_MATCH_LENGTHS] = {
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
static const int16_t default_offsets[29] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                            1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};

static const struct {
    const int16_t *counts;
    unsigned n, log, max_log, max_symbols;
} sequence_tables[3] = {{default_lengths, N_LITERAL_LENGTHS, 6, 9, N_LITERAL_LENGTHS},
                        {default_offsets, 29, 5, 8, N_OFFSETS},
                        {default_matches, N_MATCH_LENGTHS, 6, 9, N_MATCH_LENGTHS}};

/* One of the three tables of a block's sequences. False: invalid. */
static bool read_table(decoder *d, unsigned which, unsigned mode, const uint8_t **at,
                       const uint8_t *end) {
    enum { PREDEFINED, RLE, COMPRESSED, REPEATED };
    fse_table *const tables[3] = {&d->lengths, &d->offsets, &d->matches};
    fse_table *t = tables[which];
    if (mode == REPEATED) return d->has_tables[which];
    d->has_tables[which] = true;
    if (mode == PREDEFINED)
        return fse_build(t, sequence_tables[which].counts, sequence_tables[which].n,
                         sequence_tables[which].log);
    if (mode == RLE) {
        if (*at == end || **at >= sequence_tables[which].max_symbols) return false;
        t->log = 0;
        t->states[0].symbol = *(*at)++;
        t->states[0].bits = 0;
        t->states[0].base = 0;
        return true;
    }
    const size_t size = fse_read(t, *at, (size_t)(end - *at), sequence_tables[which].max_log,
                                 sequence_tables[which].max_symbols);
    *at += size;
    return size != 0;
}

/* The distance that an offset value stands for: the first three are recent distances. */
static uint64_t distance_of(decoder *d, uint64_t value, bool no_literals) {
    uint64_t *recent = d->repeated;
    uint64_t distance;
    if (value > 3) {
        distance = value - 3;
        recent[2] = recent[1];
        recent[1] = recent[0];
        return recent[0] = distance;
    }
    const unsigned k = (unsigned)value - 1 + no_literals;
    distance = k < 3 ? recent[k] : recent[0] - 1;
    if (k > 1) recent[2] = recent[1];
    if (k > 0) recent[1] = recent[0];
    return recent[0] = distance;
}

static bool copy_sequence(decoder *d, const uint8_t **literals, size_t length, uint64_t distance,
                          size_t match) {
    const size_t left = (size_t)(d->literals + d->n_literals - *literals);
    if (length > left || length > d->out_bytes - d->done) return false;
    memcpy(d->out + d->done, *literals, length);
    *literals += length;
    d->done += length;
    if (match > d->out_bytes - d->done || (match && (!distance || distance > d->done)))
        return false;
    for (size_t k = 0; k < match; k++, d->done++)
        d->out[d->done] = d->out[d->done - distance];
    return true;
}

static bool read_sequences(decoder *d, const uint8_t *data, size_t bytes, size_t n) {
    const uint8_t *literals = d->literals;
    bit_stack b;
    if (n && !bits_open(&b, data, bytes)) return false;
    unsigned length_state = n ? (unsigned)bits_pop(&b, d->lengths.log) : 0;
    unsigned offset_state = n ? (unsigned)bits_pop(&b, d->offsets.log) : 0;
    unsigned match_state = n ? (unsigned)bits_pop(&b, d->matches.log) : 0;
    for (size_t k = 0; k < n; k++) {
        const unsigned offset = d->offsets.states[offset_state].symbol;
        const code match = match_code(d->matches.states[match_state].symbol);
        const code length = length_code(d->lengths.states[length_state].symbol);
        const uint64_t value = (1ull << offset) + bits_pop(&b, offset);
        const size_t match_bytes = match.base + (size_t)bits_pop(&b, match.bits);
        const size_t literal_bytes = length.base + (size_t)bits_pop(&b, length.bits);
        if (b.left < 0) return false;
        const uint64_t distance = distance_of(d, value, !literal_bytes);
        if (!copy_sequence(d, &literals, literal_bytes, distance, match_bytes)) return false;
        if (k + 1 == n) break;
        length_state = d->lengths.states[length_state].base +
                       (unsigned)bits_pop(&b, d->lengths.states[length_state].bits);
        match_state = d->matches.states[match_state].base +
                      (unsigned)bits_pop(&b, d->matches.states[match_state].bits);
        offset_state = d->offsets.states[offset_state].base +
                       (unsigned)bits_pop(&b, d->offsets.states[offset_state].bits);
    }
    if (n && b.left != 0) return false;
    const size_t rest = (size_t)(d->literals + d->n_literals - literals);
    return copy_sequence(d, &literals, rest, 0, 0);
}

static bool read_block(decoder *d, const uint8_t *data, size_t bytes) {
    const uint8_t *at = data, *end = data + bytes;
    const size_t literals = read_literals(d, at, bytes);
    if (!literals || literals == bytes) return false;
    at += literals;
    size_t n = *at++;
    if (n >= 128) {
        const unsigned more = n == 255 ? 2 : 1;
        if (end - at < (int)more) return false;
        n = more == 2 ? at[0] + ((size_t)at[1] << 8) + 0x7f00 : ((n - 128) << 8) + at[0];
        at += more;
    }
    if (!n) return at == end && read_sequences(d, at, 0, 0);
    if (at == end) return false;
    const unsigned modes = *at++;
    if (modes & 3) return false;
    for (unsigned which = 0; which < 3; which++)
        if (!read_table(d, which, modes >> (6 - 2 * which) & 3, &at, end)) return false;
    return read_sequences(d, at, (size_t)(end - at), n);
}

/* ---- frames ---- */

/* The bytes of the frame's header; 0: invalid, or one that needs a dictionary. */
static size_t header_bytes(const uint8_t *data, size_t bytes) {
    static const uint8_t magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    if (bytes < 6 || memcmp(data, magic, sizeof magic)) return 0;
    const unsigned descriptor = data[4], size_flag = descriptor >> 6;
    const bool single = descriptor & 0x20;
    if (descriptor & 3 || descriptor & 8) return 0;
    const size_t content = size_flag ? (size_t)1 << size_flag : single ? 1 : 0;
    return 5 + !single + content;
}

static bool read_blocks(decoder *d, const uint8_t *at, const uint8_t *end) {
    enum { RAW, RLE, COMPRESSED };
    for (bool last = false; !last;) {
        if (end - at < 3) return false;
        const uint32_t header = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
        const size_t size = header >> 3, stored = (header >> 1 & 3) == RLE ? 1 : size;
        at += 3;
        last = header & 1;
        if (stored > (size_t)(end - at)) return false;
        switch (header >> 1 & 3) {
        case RAW:
        case RLE:
            if (size > d->out_bytes - d->done) return false;
            if ((header >> 1 & 3) == RAW)
                memcpy(d->out + d->done, at, size);
            else
                memset(d->out + d->done, *at, size);
            d->done += size;
            break;
        case COMPRESSED:
            if (size > MAX_BLOCK || !read_block(d, at, size)) return false;
            break;
        default: return false;
        }
        at += stored;
    }
    return d->done == d->out_bytes;
}

bool zstd_decompress(const void *in, size_t bytes, unsigned char *out, size_t out_bytes) {
    const size_t header = header_bytes(in, bytes);
    if (!header || header > bytes) return false;
    decoder *d = calloc(1, sizeof *d);
    if (!d) return false;
    d->out = out;
    d->out_bytes = out_bytes;
    d->repeated[0] = 1;
    d->repeated[1] = 4;
    d->repeated[2] = 8;
    const bool done = read_blocks(d, (const uint8_t *)in + header, (const uint8_t *)in + bytes);
    free(d);
    return done;
}
