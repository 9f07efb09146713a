/* What the page asks for beside runs: recordings, and PTX of CUDA C++. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compiler.h"
#include "session.h"

/* ---- recordings ---- */

/* The copies that the recording refers to until the next one. */
static struct copies {
    uint64_t *blocks;
    uint32_t *warps;
    smk_recorded_array *arrays;
} copies;

static void drop_copies(void) {
    free(copies.blocks);
    free(copies.warps);
    free(copies.arrays);
    copies = (struct copies){0};
}

/* Those of lab_arrays. */
static smk_code copy_arrays(smk_recording *out) {
    copies.arrays = calloc((size_t)session.n_declared + 1, sizeof *copies.arrays);
    if (!copies.arrays) return smk_fail_memory(&session.status, 0, "names of arrays");
    for (int k = 0; k < session.n_declared; k++) {
        const lab_array *a = &session.declared[k];
        copies.arrays[k] =
            (smk_recorded_array){a->name, a->array.element, (uint32_t)(a->array.cols & UINT32_MAX)};
    }
    out->arrays = copies.arrays;
    out->n_arrays = (size_t)session.n_declared;
    return SMK_OK;
}

static uint64_t whole(double x) {
    return x > 0 ? x < 0x1p53 ? (uint64_t)x : (uint64_t)1 << 53 : 0;
}

int lab_record(double first, double steps, double max_bytes, const double *blocks, size_t n_blocks,
               const uint32_t *warps, size_t n_warps) {
    session_begin();
    drop_copies();
    free(session.recording.bytes);
    session.recording = (smk_recording){.first = whole(first),
                                        .steps = whole(steps),
                                        .max_bytes = (size_t)(whole(max_bytes) & 0x7fffffff)};
    smk_recording *r = &session.recording;
    if (n_blocks) {
        if (!(copies.blocks = block_numbers(blocks, n_blocks))) return session_end();
        r->blocks = copies.blocks;
        r->n_blocks = n_blocks;
    }
    if (n_warps) {
        copies.warps = calloc(n_warps, sizeof *warps);
        if (!copies.warps)
            return smk_fail_memory(&session.status, n_warps * sizeof *warps, "warps");
        memcpy(copies.warps, warps, n_warps * sizeof *warps);
        r->warps = copies.warps;
        r->n_warps = n_warps;
    }
    if (steps > 0) copy_arrays(r);
    return session_end();
}

const unsigned char *lab_recording(void) {
    return session.recording.bytes;
}

size_t lab_recording_bytes(void) {
    return session.recording.bytes ? session.recording.size : 0;
}

/* ---- the compiler ---- */

int lab_compile_source(const char *name, const char *source, size_t size) {
    char error[sizeof session.status.message];
    session_begin();
    char *ptx = lab_compile(name, source, size, error, sizeof error);
    if (!ptx) return smk_fail(&session.status, SMK_COMPILE, "%s", error);
    json_raw(&session.result, ptx);
    free(ptx);
    return session_end();
}
