/* The session: PTX, buffers, a launch, and its run. */
#include "api.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "session.h"

lab_session session;

/* ---- calls ---- */

void session_begin(void) {
    session.status = (smk_status){0};
    json_clear(&session.result);
}

smk_code session_end(void) {
    if (!session.status.code && session.result.out_of_memory)
        smk_fail_memory(&session.status, session.result.n, "a result");
    return session.status.code;
}

void *lab_alloc(size_t bytes) {
    return malloc(bytes ? bytes : 1);
}

void lab_free(void *p) {
    free(p);
}

const char *lab_error_kind(void) {
    static const char *const names[] = {
#define X(code, exception) [SMK_##code] = #code,
        SMK_CODE_MAP(X)
#undef X
    };
    return names[session.status.code];
}

const char *lab_error(void) {
    return session.status.message;
}

const char *lab_result(void) {
    return session.result.text ? session.result.text : "";
}

size_t lab_result_bytes(void) {
    return session.result.n;
}

void session_drop_job(void) {
    smk_plan_free(&session.plan);
    emu_signature_free(&session.signature);
    free(session.arguments);
    free(session.pointers);
    free(session.tensor_maps);
    session.plan = (smk_plan){0};
    session.planned = false;
    session.launch = (smk_launch){0};
    session.arguments = NULL;
    session.pointers = NULL;
    session.n_pointers = 0;
    session.tensor_maps = NULL;
    session.arrays_found = false;
    session.n_tensor_maps = 0;
}

void lab_reset(void) {
    session_begin();
    session_drop_job();
    lab_drop_buffers();
    lab_record(0, 0, 0, NULL, 0, NULL, 0);
    session.n_declared = session.n_arrays = 0;
    free(session.ptx);
    session.ptx = NULL;
    session.ptx_bytes = 0;
    emu_trim();
}

/* ---- PTX ---- */

int lab_load(const char *ptx, size_t size) {
    static unsigned n_loaded;
    session_begin();
    if (size > LAB_MAX_PTX)
        return smk_fail(&session.status, SMK_VALUE, "the PTX has %zu bytes; at most %d", size,
                        LAB_MAX_PTX);
    char *copy = malloc(size + 1);
    if (!copy) return smk_fail_memory(&session.status, size, "the PTX");
    if (size) memcpy(copy, ptx, size);
    copy[size] = 0;
    session_drop_job();
    free(session.ptx);
    emu_trim(); /* the variables of the module before */
    session.n_declared = session.n_arrays = 0;
    session.ptx = copy;
    session.ptx_bytes = size;
    snprintf(session.key, sizeof session.key, "lab %u", ++n_loaded);
    return SMK_OK;
}

static void entry_json(void *to, const emu_signature *s) {
    json *t = to;
    json_open(t, NULL, '{');
    json_text(t, "name", s->entry);
    json_unsigned(t, "sharedBytes", s->static_shared_bytes);
    json_true_false(t, "cooperative", s->cooperative);
    json_unsigned(t, "registers", s->live_registers);
    json_open(t, "parameters", '[');
    for (size_t k = 0; k < s->n_parameters; k++) {
        const emu_parameter *p = &s->parameters[k];
        json_open(t, NULL, '{');
        json_unsigned(t, "offset", p->offset);
        json_unsigned(t, "size", p->size);
        json_unsigned(t, "scalarSize", p->scalar_size);
        json_text(t, "kind", (char[]){p->kind, 0});
        json_close(t, '}');
    }
    json_close(t, ']');
    json_close(t, '}');
}

int lab_entries(void) {
    session_begin();
    json_open(&session.result, NULL, '[');
    emu_signatures_read(session.ptx ? session.ptx : "", session.ptx_bytes, entry_json,
                        &session.result, &session.status);
    json_close(&session.result, ']');
    return session_end();
}

/* ---- buffers ---- */

void lab_drop_buffers(void) {
    for (int k = 0; k < session.n_buffers; k++)
        free(session.buffers[k].host);
    session.n_buffers = 0;
}

int lab_buffer(double bytes, int access) {
    session_begin();
    smk_buffer *b = &session.buffers[session.n_buffers];
    if (session.n_buffers == LAB_MAX_BUFFERS) {
        smk_fail(&session.status, SMK_VALUE, "more than %d buffers", LAB_MAX_BUFFERS);
        return -1;
    }
    if (!(bytes >= 0 && bytes <= 0x1p30) || access < 0 || access > (SMK_IN | SMK_OUT)) {
        smk_fail(&session.status, SMK_VALUE,
                 "a buffer of %g bytes; at most 1 GiB is possible in a page", bytes);
        return -1;
    }
    *b = (smk_buffer){NULL, (size_t)bytes, (unsigned)access};
    session.names[session.n_buffers] = (buffer_name){.element = 1};
    snprintf(session.names[session.n_buffers].name, sizeof session.names->name, "buffer %d",
             session.n_buffers + 1);
    if (access) {
        const size_t whole = ((size_t)bytes + 256) & ~(size_t)255;
        b->host = aligned_alloc(256, whole);
        if (!b->host) {
            smk_fail_memory(&session.status, whole, "a buffer");
            return -1;
        }
        memset(b->host, 0, whole);
    }
    return session.n_buffers++;
}

static bool has_buffer(int index) {
    return index >= 0 && index < session.n_buffers;
}

unsigned char *lab_buffer_at(int index) {
    return has_buffer(index) ? session.buffers[index].host : NULL;
}

size_t lab_buffer_bytes(int index) {
    return has_buffer(index) ? session.buffers[index].bytes : 0;
}

int lab_name_buffer(int index, const char *name, uint32_t element_bytes, double columns) {
    session_begin();
    if (!has_buffer(index) || !element_bytes || element_bytes > 16 ||
        !(columns >= 0 && columns <= 0x1p30))
        return smk_fail(&session.status, SMK_VALUE, "buffer %d: elements of %u bytes in rows of %g",
                        index, element_bytes, columns);
    buffer_name *n = &session.names[index];
    snprintf(n->name, sizeof n->name, "%s", name);
    n->element = element_bytes;
    n->columns = (uint64_t)columns;
    return SMK_OK;
}

int lab_fill(int index, const char *type, int pattern, uint32_t seed, double low, double high) {
    session_begin();
    const int size = data_element_bytes(type);
    unsigned char *to = lab_buffer_at(index);
    if (!to) return smk_fail(&session.status, SMK_VALUE, "there is no buffer %d", index);
    if (!size) return smk_fail(&session.status, SMK_VALUE, "there is no type '%.100s'", type);
    data_fill(to, session.buffers[index].bytes / (size_t)size, type, pattern, seed, low, high);
    return SMK_OK;
}

/* ---- a launch ---- */

int lab_launch(const char *entry, const uint32_t shape[9], int cooperative, uint32_t shared_bytes) {
    session_begin();
    if (!session.ptx) return smk_fail(&session.status, SMK_VALUE, "no PTX is loaded");
    session_drop_job();
    emu_signature *s = &session.signature;
    if (emu_signature_read(session.ptx, session.ptx_bytes, entry, NULL, NULL, s, &session.status))
        return session_end();
    session.arguments = calloc(s->args_bytes + 1, 1);
    session.pointers = calloc(s->n_parameters + 1, sizeof *session.pointers);
    session.tensor_maps = calloc(s->n_parameters + 1, sizeof *session.tensor_maps);
    if (!session.arguments || !session.pointers || !session.tensor_maps) {
        session_drop_job();
        return smk_fail_memory(&session.status, s->args_bytes, "arguments");
    }
    smk_launch *l = &session.launch;
    *l = (smk_launch){.entry = s->entry,
                      .cooperative = cooperative || s->cooperative,
                      .shared_bytes = shared_bytes,
                      .args = session.arguments};
    memcpy(l->grid, shape, sizeof l->grid);
    memcpy(l->block, shape + 3, sizeof l->block);
    memcpy(l->cluster, shape + 6, sizeof l->cluster);
    return SMK_OK;
}

const emu_parameter *session_parameter(uint32_t number) {
    const emu_signature *s = &session.signature;
    if (session.launch.entry && number < s->n_parameters) return &s->parameters[number];
    smk_fail(&session.status, SMK_VALUE, "the kernel has %zu parameters; argument %u is too many",
             s->n_parameters, number + 1);
    return NULL;
}

smk_code session_add_pointer(uint32_t parameter, uint32_t arg_offset, int buffer, uint64_t bytes) {
    if (session.n_pointers >= session.signature.n_parameters)
        return smk_fail(&session.status, SMK_VALUE, "argument %u is given twice", parameter + 1);
    memcpy(session.arguments + arg_offset, &bytes, sizeof bytes);
    session.pointers[session.n_pointers++] = (smk_pointer){arg_offset, (uint32_t)buffer};
    return SMK_OK;
}

int lab_argument_buffer(uint32_t parameter, int buffer, double offset) {
    session_begin();
    const emu_parameter *p = session_parameter(parameter);
    if (!p) return session_end();
    if (p->size != sizeof(uint64_t) || !has_buffer(buffer) || !(offset >= 0 && offset <= 0x1p32))
        return smk_fail(&session.status, SMK_VALUE,
                        "argument %u: parameter of %u bytes; expected a pointer's 8, an existing "
                        "buffer, and an offset of 0 or more",
                        parameter + 1, p->size);
    session_add_pointer(parameter, p->offset, buffer, (uint64_t)offset);
    return session_end();
}

int lab_argument_bytes(uint32_t parameter, const void *bytes, size_t size) {
    session_begin();
    const emu_parameter *p = session_parameter(parameter);
    if (!p) return session_end();
    if (size != p->size)
        return smk_fail(&session.status, SMK_VALUE,
                        "argument %u has %zu bytes; the kernel's parameter has %u", parameter + 1,
                        size, p->size);
    memcpy(session.arguments + p->offset, bytes, size);
    return SMK_OK;
}

/* ---- runs ---- */

/* The numbers of blocks as integers; NULL: out of memory, or they are not ascending. */
uint64_t *block_numbers(const double *blocks, size_t n) {
    uint64_t *out = calloc(n + 1, sizeof *out);
    for (size_t k = 0; out && k < n; k++) {
        const bool ascending =
            blocks[k] >= 0 && blocks[k] < 0x1p53 && (!k || blocks[k] > blocks[k - 1]);
        if (!ascending) {
            free(out);
            smk_fail(&session.status, SMK_VALUE, "blocks must be ascending numbers from 0 on");
            return NULL;
        }
        out[k] = (uint64_t)blocks[k];
    }
    if (!out) smk_fail_memory(&session.status, n * sizeof *out, "numbers of blocks");
    return out;
}

static _Atomic uint64_t finished_blocks;
static uint64_t blocks_to_run;

#ifdef __wasm__
/* The page: shows progress; nonzero ends the run. */
__attribute__((import_module("lab"), import_name("progress"))) int page_progress(double done,
                                                                                 double all);
#else
static int page_progress(double done, double all) {
    (void)done, (void)all;
    return 0;
}
#endif

static int poll_page(void *arg) {
    (void)arg;
    return page_progress((double)finished_blocks, (double)blocks_to_run);
}

/* The job of the session; what it shares with the session stays there. */
static smk_job job_of_session(void) {
    const emu_signature *s = &session.signature;
    smk_job job = {
        .image = {.key = session.key, .data = session.ptx, .size = session.ptx_bytes},
        .pointers = session.planned ? session.plan.pointers : session.pointers,
        .n_pointers = session.planned ? session.plan.n_pointers : session.n_pointers,
        .args_bytes = session.planned ? session.plan.args_bytes : s->args_bytes,
        .parameters = session.planned ? session.plan.parameters : s->offsets,
        .n_parameters = session.planned ? session.plan.n_parameters : s->n_parameters,
        .launches = session.planned ? session.plan.launches : &session.launch,
        .n_launches = session.planned ? session.plan.n_launches : 1,
        .tensor_maps = session.planned ? session.plan.maps : session.tensor_maps,
        .n_tensor_maps = session.planned ? session.plan.n_maps : session.n_tensor_maps,
        .buffers = session.buffers,
        .n_buffers = (size_t)session.n_buffers,
        .poll = poll_page,
        .threads = 1,
        .finished = &finished_blocks,
    };
    return job;
}

static void count_blocks(const smk_job *job) {
    finished_blocks = 0;
    blocks_to_run = job->n_blocks;
    for (size_t k = 0; k < job->n_launches && !job->n_blocks; k++) {
        const uint32_t *grid = job->launches[k].grid;
        blocks_to_run += (uint64_t)grid[0] * grid[1] * grid[2];
    }
}

static double milliseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void add_printed(json *t, smk_text *printed) {
    char *text_of = malloc(printed->size + 1);
    if (!text_of) {
        t->out_of_memory = true;
        return;
    }
    for (size_t k = 0; k < printed->size; k++) /* a NUL would end the JSON string */
        text_of[k] = printed->bytes[k] ? printed->bytes[k] : ' ';
    text_of[printed->size] = 0;
    json_text(t, "printed", text_of);
    json_unsigned(t, "lost", printed->lost);
    free(text_of);
}

static void run_json(json *t, const smk_trace *trace, smk_text *printed, double time) {
    json_open(t, NULL, '{');
    json_real(t, "milliseconds", time);
    add_printed(t, printed);
    if (trace) {
        json_next(t, "trace");
        trace_json(t, trace);
    }
    json_close(t, '}');
}

static smk_code run_job(smk_job *job, int flags) {
    smk_trace trace = {.by_instruction = flags & LAB_BY_INSTRUCTION};
    smk_text printed = {0};
    const bool traced = flags & (LAB_TRACE | LAB_HAZARDS);
    job->trace = traced ? &trace : NULL;
    job->printed = &printed;
    job->hazards = flags & LAB_HAZARDS ? SMK_FIND_HAZARDS : 0;
    if (flags & LAB_EQUAL_WRITES) job->hazards |= SMK_EQUAL_WRITES;
    job->recording = session.recording.steps ? &session.recording : NULL;
    free(session.recording.bytes);
    session.recording.bytes = NULL;
    count_blocks(job);
    const double begin = milliseconds();
    const smk_code code = emu_run(job, &session.status);
    const double time = milliseconds() - begin;
    if (!code && traced) session_find_arrays(job);
    if (!code) run_json(&session.result, traced ? &trace : NULL, &printed, time);
    smk_trace_free(&trace);
    free(printed.bytes);
    return session_end();
}

int lab_run(int flags, double max_instructions, const double *blocks, size_t n_blocks) {
    session_begin();
    if (!session.ptx || (!session.planned && !session.launch.entry))
        return smk_fail(&session.status, SMK_VALUE, "there is no launch to run");
    smk_job job = job_of_session();
    uint64_t *numbers = NULL;
    if (max_instructions > 0 && max_instructions < 0x1p53)
        job.max_instructions = (uint64_t)max_instructions;
    if (!job.n_launches) return smk_fail(&session.status, SMK_VALUE, "there is nothing to compute");
    if (n_blocks) {
        if (!(numbers = block_numbers(blocks, n_blocks))) return session_end();
        job.blocks = numbers;
        job.n_blocks = n_blocks;
    }
    run_job(&job, flags);
    free(numbers);
    return session_end();
}

int lab_variants(void) {
    session_begin();
    variants_json(&session.result);
    return session_end();
}
