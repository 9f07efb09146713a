/* The recording's bytes: a header and the columns. */
#include <stdlib.h>
#include <string.h>

#include "../../core/json.h"
#include "recorder.h"

static const char magic[8] = {'S', 'M', 'K', 'R', 'E', 'C', '1', '\n'};

static size_t padded(size_t bytes) {
    return (bytes + 7) / 8 * 8;
}

/* What came after the last step belongs to it. */
static void close_window(recorder *r) {
    const size_t n = COUNT(r, first_delta);
    if (n < 2) return;
    column_set(&r->columns, COLUMN_first_write, n - 1, (uint32_t)COUNT(r, write_value));
    column_set(&r->columns, COLUMN_first_event, n - 1, (uint32_t)COUNT(r, event_kind));
}

/* If the run ended before the window began. */
static void open_window(recorder *r) {
    if (COUNT(r, first_delta)) return;
    PUSH(r, first_delta, 0);
    PUSH(r, first_access, 0);
    PUSH(r, first_write, 0);
    PUSH(r, first_event, 0);
}

static void put_columns(recorder *r, unsigned char *to) {
    for (int k = 0; k < N_COLUMNS; k++) {
        column *c = &r->columns.column[k];
        const size_t bytes = c->n * column_bytes[k];
        if (bytes) memcpy(to, c->bytes, bytes);
        memset(to + bytes, 0, padded(bytes) - bytes);
        to += padded(bytes);
        free(c->bytes); /* one after the other, so that memory holds little twice */
        c->bytes = NULL;
    }
}

smk_code recorder_report(recorder *r, const smk_trace *trace, smk_status *status) {
    json header = {0};
    smk_code code = SMK_OK;
    open_window(r);
    if (r->phase == IN_WINDOW) close_window(r);
    explanations_make(r);
    header_write(r, trace, &header);
    size_t size = sizeof magic + sizeof(uint32_t);
    const size_t header_size = padded(size + header.n) - size;
    size += header_size;
    for (int k = 0; k < N_COLUMNS; k++)
        size += padded(r->columns.column[k].n * column_bytes[k]);
    unsigned char *bytes = malloc(size);
    if (!bytes || header.out_of_memory || r->out_of_memory || r->columns.out_of_memory ||
        header_size > UINT32_MAX) {
        code = smk_fail_memory(status, size, "a recording");
        free(bytes);
    } else {
        const uint32_t length = (uint32_t)header_size;
        unsigned char *to = bytes;
        memcpy(to, magic, sizeof magic);
        memcpy(to + sizeof magic, &length, sizeof length);
        to += sizeof magic + sizeof length;
        memcpy(to, header.text, header.n);
        memset(to + header.n, ' ', header_size - header.n);
        put_columns(r, to + header_size);
        r->out->bytes = bytes;
        r->out->size = size;
        r->out->total = r->step;
    }
    free(header.text);
    return code;
}
