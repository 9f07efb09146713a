/* CUDA's vprintf. The format is a string in the kernel's memory. The arguments are packed in a
 * buffer, each aligned to its size; floats are promoted to double.
 *
 * Lanes print into their block's buffer, and the buffers are sorted by block at the end of the
 * launch. So the output does not depend on the distribution of blocks over host threads. Formats
 * are untrusted: each conversion is parsed, and a new one is built for the host's printf with the
 * type that was read.
 */
#include "../base/stable_sort.h"
#include "print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "observe.h"

enum {
    MAX_LAUNCH_BYTES = 16 << 20, /* further output is counted and dropped */
    MAX_FIELD = 4096             /* of a width, a precision, the length of a string */
};

typedef struct print_chunk {
    uint64_t block;
    char *bytes;
    size_t size;
} print_chunk;

/* ---- the buffer ---- */

static bool grow(print_buffer *out, size_t n) {
    if (out->size + n <= out->room) return true;
    const size_t room = 2 * (out->size + n);
    char *larger = out->size + n > MAX_LAUNCH_BYTES ? NULL : realloc(out->bytes, room);
    if (!larger) return false;
    out->bytes = larger;
    out->room = room;
    return true;
}

static void put(print_buffer *out, const char *text, size_t n) {
    if (!grow(out, n)) {
        out->lost += n;
        return;
    }
    memcpy(out->bytes + out->size, text, n);
    out->size += n;
}

#define PUT_FORMATTED(out, ...)                                                                    \
    do {                                                                                           \
        char field[2 * MAX_FIELD];                                                                 \
        const int n = snprintf(field, sizeof field, __VA_ARGS__);                                  \
        if (n > 0) put(out, field, (size_t)n < sizeof field ? (size_t)n : sizeof field - 1);       \
    } while (0)

/* ---- formatting ---- */

typedef struct printing {
    warp *w;
    const insn *i;
    int lane;
    uint64_t format, arguments; /* addresses of the next character and argument */
    int32_t n_arguments;
    bool failed;
} printing;

static char read_character(printing *p, uint64_t address) {
    const unsigned char *at = lane_reach(p->w, p->i, PTX_GENERIC, p->lane, address, 1, false);
    if (!at) p->failed = true;
    return at ? (char)*at : 0;
}

static uint64_t read_argument(printing *p, uint32_t bytes) {
    uint64_t value = 0;
    p->arguments = (p->arguments + bytes - 1) & ~(uint64_t)(bytes - 1);
    const unsigned char *at =
        p->failed ? NULL : lane_reach(p->w, p->i, PTX_GENERIC, p->lane, p->arguments, bytes, false);
    if (!at) {
        p->failed = true;
        return 0;
    }
    memcpy(&value, at, bytes);
    const uint64_t offset = REGION_OFFSET(p->arguments);
    if (REGION_OF(p->arguments) == REGION_LOCAL)
        observe_event(p->w, (emu_sync){.kind = EMU_PRINTED,
                                       .ptx = p->i->ptx,
                                       .lanes = 1u << p->lane,
                                       .address = &offset,
                                       .width = bytes});
    p->arguments += bytes;
    p->n_arguments++;
    return value;
}

/* Reads a width or precision: digits or `*`. */
static int read_field(printing *p) {
    int value = 0;
    if (read_character(p, p->format) == '*') {
        p->format++;
        value = (int32_t)read_argument(p, 4);
        p->n_arguments--;
    } else {
        for (char c; c = read_character(p, p->format), c >= '0' && c <= '9'; p->format++)
            if (value < MAX_FIELD) value = 10 * value + (c - '0');
    }
    return value > MAX_FIELD ? MAX_FIELD : value < -MAX_FIELD ? -MAX_FIELD : value;
}

static void print_string(printing *p, print_buffer *out, const char *flags, int width,
                         int precision) {
    char text[MAX_FIELD + 1];
    const uint64_t address = read_argument(p, 8);
    int n = 0;
    for (; n < (precision < 0 ? MAX_FIELD : precision) && !p->failed; n++)
        if (!(text[n] = read_character(p, address + (uint64_t)n))) break;
    text[n] = 0;
    if (strchr(flags, '-')) width = -abs(width);
    PUT_FORMATTED(out, "%*s", width, text);
}

/* A finite number as glibc's %a: C leaves open how it is normalised and rounded, and C libraries
 * differ. Subnormal numbers keep the exponent -1022, ties are rounded to an even digit. */
static void print_hexadecimal(print_buffer *out, uint64_t bits, const char *flags, int width,
                              int precision, char conversion) {
    enum { DIGITS = 13, BIAS = 1023 };
    const uint64_t stored = bits >> 52 & 0x7ff, fraction = bits & (((uint64_t)1 << 52) - 1);
    const int exponent = stored ? (int)stored - BIAS : fraction ? 1 - BIAS : 0;
    uint64_t m = (uint64_t)(stored != 0) << 52 | fraction;
    int digits = DIGITS;
    for (; precision < 0 && digits && !(m & 15); digits--)
        m >>= 4;
    if (precision >= 0 && precision < DIGITS) {
        const int cut = 4 * (DIGITS - precision);
        const uint64_t rest = m & (((uint64_t)1 << cut) - 1), half = (uint64_t)1 << (cut - 1);
        m >>= cut;
        m += rest > half || (rest == half && (m & 1));
        digits = precision;
    }
    char text[64], field[2 * MAX_FIELD];
    const char *sign = bits >> 63 ? "-" : strchr(flags, '+') ? "+" : strchr(flags, ' ') ? " " : "";
    const int zeros = precision > DIGITS ? precision - DIGITS : 0;
    const bool has_point = digits || zeros || strchr(flags, '#');
    const int n = snprintf(text, sizeof text, "%llu%s%0*llx", (unsigned long long)(m >> 4 * digits),
                           has_point ? "." : "", digits,
                           (unsigned long long)(m & (((uint64_t)1 << 4 * digits) - 1)));
    const int used = digits ? n : n - 1; /* without digits the 0 of %0*llx goes */
    char end[16];
    const int n_end = snprintf(end, sizeof end, "p%+d", exponent);
    const bool left = width < 0 || strchr(flags, '-');
    const int padding = abs(width) - (int)strlen(sign) - 2 - used - zeros - n_end;
    const int inner = !left && strchr(flags, '0') && padding > 0 ? padding : 0;
    const int before = !left && !inner && padding > 0 ? padding : 0;
    const int after = left && padding > 0 ? padding : 0;
    snprintf(field, sizeof field, "%*s%s0x%.*d%.*s%.*d%s%*s", before, "", sign, inner, 0, used,
             text, zeros, 0, end, after, "");
    for (char *at = field; conversion == 'A' && *at; at++)
        if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
    put(out, field, strlen(field));
}

/* Prints one conversion; p->format is after its '%'. */
static void print_conversion(printing *p, print_buffer *out) {
    static const char all_flags[] = "-+ #0";
    const uint64_t begin = p->format;
    char flags[sizeof all_flags] = "", spec[32];
    size_t n_flags = 0;
    bool is_long = false;
    int precision = -1;
    char c;
    for (; (c = read_character(p, p->format)) && strchr(all_flags, c); p->format++)
        if (!strchr(flags, c)) flags[n_flags++] = c;
    const int width = read_field(p);
    if (read_character(p, p->format) == '.') {
        p->format++;
        precision = read_field(p);
    }
    for (; (c = read_character(p, p->format)) && strchr("hljztL", c); p->format++)
        is_long |= c != 'h' && c != 'L';
    if (c) p->format++;
    if (p->failed) return;
    snprintf(spec, sizeof spec, "%%%s*.*%s%c", flags, strchr("diuoxX", c) && c ? "ll" : "", c);
    switch (c) {
    case '%': put(out, "%", 1); break;
    case 's': print_string(p, out, flags, width, precision); break;
    case 'd':
    case 'i': {
        const uint64_t value = read_argument(p, is_long ? 8 : 4);
        PUT_FORMATTED(out, spec, width, precision,
                      is_long ? (long long)value : (long long)(int32_t)value);
        break;
    }
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        PUT_FORMATTED(out, spec, width, precision,
                      (unsigned long long)read_argument(p, is_long ? 8 : 4));
        break;
    case 'c': PUT_FORMATTED(out, spec, width, precision, (int)read_argument(p, 4)); break;
    case 'p': {
        char text[24] = "(nil)"; /* as glibc prints NULL */
        const unsigned long long value = read_argument(p, 8);
        if (value) snprintf(text, sizeof text, "0x%llx", value);
        PUT_FORMATTED(out, "%*s", strchr(flags, '-') ? -abs(width) : width, text);
        break;
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
        const uint64_t bits = read_argument(p, 8);
        double value;
        memcpy(&value, &bits, sizeof value);
        if ((c == 'a' || c == 'A') && isfinite(value))
            print_hexadecimal(out, bits, flags, width, precision, c);
        else
            PUT_FORMATTED(out, spec, width, precision, value);
        break;
    }
    default: /* an unknown conversion is printed verbatim */
        put(out, "%", 1);
        for (uint64_t at = begin; at < p->format && !p->failed; at++)
            put(out, &(char){read_character(p, at)}, 1);
    }
}

bool print_lane(warp *w, const insn *i, int lane, uint64_t format, uint64_t arguments,
                int32_t *result) {
    printing p = {.w = w, .i = i, .lane = lane, .format = format, .arguments = arguments};
    print_buffer *out = &w->block->printed;
    *result = -1;
    if (!format) return true;
    for (char c; (c = read_character(&p, p.format)) && !p.failed;) {
        p.format++;
        if (c == '%' && !block_goes_on(w->block)) return false;
        if (c == '%')
            print_conversion(&p, out);
        else
            put(out, &c, 1);
    }
    *result = p.n_arguments;
    return !p.failed;
}

/* ---- merging the blocks' output ---- */

void print_end_block(block *b) {
    print_log *log = &b->launch->printed;
    print_buffer *text = &b->printed;
    if (!text->size && !text->lost) return;
    pthread_mutex_lock(&b->launch->lock);
    print_chunk *larger = NULL;
    log->lost += text->lost;
    text->lost = 0;
    if (log->bytes + text->size <= MAX_LAUNCH_BYTES)
        larger = realloc(log->chunks, (log->n + 1) * sizeof *larger);
    if (larger) {
        log->chunks = larger;
        larger[log->n++] = (print_chunk){b->linear, text->bytes, text->size};
        log->bytes += text->size;
        *text = (print_buffer){0};
    } else {
        log->lost += text->size;
        text->size = 0;
    }
    pthread_mutex_unlock(&b->launch->lock);
}

static int compare_chunks(const void *left, const void *right) {
    const print_chunk *a = left, *b = right;
    return a->block < b->block ? -1 : a->block > b->block;
}

void print_end_launch(print_log *log, smk_text *out) {
    if (log->n) stable_sort(log->chunks, log->n, sizeof *log->chunks, compare_chunks);
    char *larger = out && log->bytes ? realloc(out->bytes, out->size + log->bytes) : NULL;
    if (larger) out->bytes = larger;
    if (out) out->lost += larger ? log->lost : log->lost + log->bytes;
    for (size_t k = 0; k < log->n; k++) {
        if (larger) {
            memcpy(out->bytes + out->size, log->chunks[k].bytes, log->chunks[k].size);
            out->size += log->chunks[k].size;
        }
        free(log->chunks[k].bytes);
    }
    free(log->chunks);
    *log = (print_log){0};
}
