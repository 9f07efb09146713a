/* The arrays in shared memory of the session's launch, and words for accesses to them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

enum { LANES = 32, MAX_REQUESTS = 4096 };

/* ---- arrays ---- */

static const lab_array *find_declared(const char *name) {
    for (int k = 0; k < session.n_declared; k++)
        if (!strcmp(session.declared[k].name, name)) return &session.declared[k];
    return NULL;
}

int lab_arrays(const char *lines) {
    session_begin();
    session.n_declared = 0;
    session.arrays_found = false;
    for (const char *line = lines; *line && session.n_declared < LAB_MAX_ARRAYS;) {
        lab_array *a = &session.declared[session.n_declared];
        if (sscanf(line, "%255s %" SCNu32 " %" SCNu64 " %" SCNu64, a->name, &a->array.element,
                   &a->array.cols, &a->array.rows) != 4)
            return smk_fail(&session.status, SMK_VALUE,
                            "expected 'name element-bytes columns rows', found '%.100s'", line);
        session.n_declared++;
        const char *end = strchr(line, '\n');
        line = end ? end + 1 : line + strlen(line);
    }
    return SMK_OK;
}

static void add_array(void *context, const explain_array *from) {
    (void)context;
    const lab_array *known = find_declared(from->name);
    if (session.n_arrays == LAB_MAX_ARRAYS || strlen(from->name) >= sizeof known->name) return;
    lab_array *to = &session.arrays[session.n_arrays++];
    to->array = *from;
    to->array.name = strcpy(to->name, from->name);
    if (!known) return;
    to->array.element = known->array.element;
    to->array.cols = known->array.cols;
    to->array.rows = known->array.rows;
}

void session_find_arrays(const smk_job *job) {
    const smk_launch *first = &job->launches[0];
    const char *entry = first->entry;
    smk_status ignored = {0};
    if (session.arrays_found) return;
    session.arrays_found = true;
    session.n_arrays = 0;
    for (size_t k = 1; entry && k < job->n_launches; k++)
        if (strcmp(job->launches[k].entry, entry)) entry = NULL;
    session.arrays_placed = entry;
    emu_shared_arrays_read(session.ptx, session.ptx_bytes, entry, first->shared_bytes, add_array,
                           NULL, &ignored);
}

const explain_array *session_array_named(const char *name) {
    for (int k = 0; k < session.n_arrays; k++)
        if (!strcmp(session.arrays[k].name, name)) return &session.arrays[k].array;
    return NULL;
}

const explain_array *session_array_at(uint64_t offset) {
    for (int k = 0; session.arrays_placed && k < session.n_arrays; k++) {
        const explain_array *a = &session.arrays[k].array;
        if (offset >= a->at && offset - a->at < a->bytes) return a;
    }
    return NULL;
}

/* ---- words ---- */

static uint64_t whole(double x) {
    return x > 0 && x < 0x1p53 ? (uint64_t)x : 0;
}

/* Requests like `of`, whose addresses go to `lanes`. False: one of them is no address. */
static bool fill_requests(const explain_request *of, explain_request *out, uint64_t (*lanes)[LANES],
                          const double *address, const uint32_t *numbers, size_t n) {
    for (size_t k = 0; k < n; k++, numbers += 3) {
        out[k] = *of;
        out[k].address = lanes[k];
        out[k].active = numbers[0];
        out[k].wavefronts = numbers[1];
        out[k].ideal = numbers[2];
        for (int l = 0; l < LANES; l++) {
            const double at = address[k * LANES + (size_t)l];
            if (numbers[0] >> l & 1 && !(at >= 0 && at < 0x1p53)) return false;
            lanes[k][l] = whole(at);
        }
    }
    return true;
}

static void write_words(const explain_array *array, const explain_request *requests, size_t n) {
    char text[EXPLAIN_SIZE] = "";
    json *t = &session.result;
    json_open(t, NULL, '{');
    json_text(t, "conflict", explain_conflict(&requests[0], text, sizeof text) ? text : NULL);
    const bool known = array && explain_layout(array, requests, n, NULL, text, sizeof text);
    json_text(t, "layout", known ? text : NULL);
    json_close(t, '}');
}

int lab_explain(const char *op, uint32_t width, const double *address, const uint32_t *numbers,
                size_t n, const char *name, const double shape[5]) {
    explain_array array = {0};
    session_begin();
    if (!n || n > MAX_REQUESTS || !width || width > 16 || width & (width - 1))
        return smk_fail(&session.status, SMK_VALUE,
                        "expected 1 to %d requests of 1, 2, 4, 8 or 16 bytes per lane, found %zu "
                        "of %u bytes",
                        MAX_REQUESTS, n, width);
    if (name)
        array = (explain_array){name,
                                whole(shape[0]),
                                whole(shape[1]),
                                (uint32_t)(whole(shape[2]) & 31),
                                whole(shape[3]),
                                whole(shape[4])};
    explain_request of = {.width = width, .array = name ? &array : NULL};
    if (!explain_operation(op, &of))
        return smk_fail(&session.status, SMK_VALUE, "there are no words for '%.100s'", op);
    explain_request *requests = calloc(n, sizeof *requests);
    uint64_t (*lanes)[LANES] = calloc(n, sizeof *lanes);
    if (!requests || !lanes)
        smk_fail_memory(&session.status, n * sizeof *lanes, "requests");
    else if (!fill_requests(&of, requests, lanes, address, numbers, n))
        smk_fail(&session.status, SMK_VALUE, "an address is not a number from 0 to 2^53");
    else
        write_words(of.array, requests, n);
    free(lanes);
    free(requests);
    return session_end();
}
