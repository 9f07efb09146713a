/* Launches on the emulator, and occupancy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

enum {
    MAX_EXTRA = 16,
    WARP = 32,
    SHARED_DEFAULT = 48 * 1024,
    /* CUdevice_attribute */
    MAX_THREADS = 1,
    SHARED_OPTIN = 97,
    SHARED_PER_SM = 81,
    SHARED_RESERVED = 111,
    REGISTERS_PER_SM = 82,
    SMS = 16,
    THREADS_PER_SM = 39,
    CC_MAJOR = 75,
    CC_MINOR = 76,
    BLOCKS_PER_SM = 106
};

/* ---- printf ---- */

/* Output of kernels, which the program sees when it synchronises. */
static smk_text printed;

void launch_flush_printed(void) {
    if (!printed.size) return;
    fwrite(printed.bytes, 1, printed.size, stdout);
    free(printed.bytes);
    printed = (smk_text){0};
}

static void keep_printed(smk_text *text) {
    if (!text->size) {
        free(text->bytes);
        return;
    }
    char *joined = realloc(printed.bytes, printed.size + text->size);
    if (joined) {
        memcpy(joined + printed.size, text->bytes, text->size);
        printed.bytes = joined;
        printed.size += text->size;
    }
    free(text->bytes);
}

/* ---- arguments ---- */

/* The block of parameters: from pointers, or from a buffer that `extra` names. */
static CUresult gather(const emu_signature *s, void **params, void **extra, unsigned char *block) {
    enum { END, BUFFER_POINTER, BUFFER_SIZE };
    if (params && extra) return CUDA_ERROR_INVALID_VALUE;
    if (params || !s->n_parameters) {
        for (size_t k = 0; k < s->n_parameters; k++) {
            if (!params[k]) return CUDA_ERROR_INVALID_VALUE;
            memcpy(block + s->parameters[k].offset, params[k], s->parameters[k].size);
        }
        return CUDA_SUCCESS;
    }
    const void *from = NULL;
    size_t bytes = 0;
    for (size_t k = 0; extra && k < MAX_EXTRA && extra[k] != (void *)END; k += 2) {
        if (extra[k] == (void *)BUFFER_POINTER) from = extra[k + 1];
        if (extra[k] == (void *)BUFFER_SIZE) memcpy(&bytes, extra[k + 1], sizeof bytes);
    }
    if (!from || bytes < s->args_bytes) return CUDA_ERROR_INVALID_VALUE;
    memcpy(block, from, s->args_bytes);
    return CUDA_SUCCESS;
}

/* ---- limits ---- */

CUresult launch_occupancy(CUfunction f, int threads, size_t dynamic_shared, int *blocks) {
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || threads < 1) return CUDA_ERROR_INVALID_VALUE;
    *blocks = 0;
    if (threads > (int)f->signature.max_threads || threads > device_attribute(MAX_THREADS))
        return CUDA_SUCCESS;
    if (dynamic_shared > (size_t)device_attribute(SHARED_OPTIN)) return CUDA_SUCCESS;
    const size_t unit = device_attribute(SHARED_RESERVED) ? 128 : 256;
    const size_t shared =
        (f->signature.static_shared_bytes + dynamic_shared + unit - 1) / unit * unit +
        (size_t)device_attribute(SHARED_RESERVED);
    const size_t warps = ((size_t)threads + WARP - 1) / WARP;
    size_t most = (size_t)device_attribute(THREADS_PER_SM) / WARP / warps;
    if (most > (size_t)device_attribute(BLOCKS_PER_SM))
        most = (size_t)device_attribute(BLOCKS_PER_SM);
    if (shared && most > (size_t)device_attribute(SHARED_PER_SM) / shared)
        most = (size_t)device_attribute(SHARED_PER_SM) / shared;
    if (f->signature.static_shared_bytes + dynamic_shared > (size_t)device_attribute(SHARED_OPTIN))
        most = 0;
    *blocks = (int)most;
    return CUDA_SUCCESS;
}

/* What a launch of a wrong size returns. For kernels of nvcc's objects it is the number that the
 * runtime documents, cudaErrorInvalidConfiguration: the runtime returns what the driver does. */
static CUresult wrong_size(CUfunction f) {
    enum { RUNTIME_INVALID_CONFIGURATION = 9 };
    return f->module->of_object ? (CUresult)RUNTIME_INVALID_CONFIGURATION
                                : CUDA_ERROR_INVALID_VALUE;
}

CUresult launch_check(CUfunction f, const smk_launch *l) {
    const uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    for (int k = 0; k < 3; k++) /* attributes 2 to 4: of blocks; 5 to 7: of grids */
        if (!l->grid[k] || !l->block[k] || l->grid[k] > (unsigned)device_attribute(5 + k) ||
            l->block[k] > (unsigned)device_attribute(2 + k))
            return wrong_size(f);
    if (threads > (uint64_t)device_attribute(MAX_THREADS)) return wrong_size(f);
    if (threads > f->signature.max_threads) return CUDA_ERROR_INVALID_VALUE;
    const size_t allowed =
        f->max_dynamic_shared > SHARED_DEFAULT ? f->max_dynamic_shared : SHARED_DEFAULT;
    const size_t statics = f->signature.static_shared_bytes;
    if (l->shared_bytes > allowed ||
        (allowed == SHARED_DEFAULT && statics + l->shared_bytes > SHARED_DEFAULT &&
         l->shared_bytes > f->max_dynamic_shared))
        return CUDA_ERROR_INVALID_VALUE;
    int blocks;
    if (!l->cooperative) return CUDA_SUCCESS;
    const CUresult result = launch_occupancy(f, (int)threads, l->shared_bytes, &blocks);
    if (result) return result;
    return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] >
                   (uint64_t)blocks * (uint64_t)device_attribute(SMS)
               ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
               : CUDA_SUCCESS;
}

CUresult launch_attribute(const CUlaunchAttribute *a, smk_launch *out) {
    if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) out->cooperative = a->value.cooperative;
    if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
        out->cluster[0] = a->value.clusterDim.x;
        out->cluster[1] = a->value.clusterDim.y;
        out->cluster[2] = a->value.clusterDim.z;
    }
    return CUDA_SUCCESS;
}

static CUresult read_attributes(const CUlaunchConfig *c, smk_launch *out) {
    if (c->numAttrs && !c->attrs) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned k = 0; k < c->numAttrs; k++)
        launch_attribute(&c->attrs[k], out);
    return CUDA_SUCCESS;
}

/* ---- running ---- */

/* All live allocations, as buffers: `written` of those that have unwritten words. */
static void list_buffers(smk_buffer *buffers, unsigned char **written, bool checked) {
    for (size_t k = 0; k < memory_count(); k++) {
        allocation *a = memory_at(k);
        if (!a || !a->live || a->address) continue;
        if (a->written && checked && memory_is_written(memory_address(a), a->bytes))
            memory_set_complete(a);
        written[k] = checked ? a->written : NULL;
        buffers[k] = (smk_buffer){a->host, a->bytes, written[k] ? SMK_OUT : SMK_IN | SMK_OUT};
        if (a->written && !checked) memory_set_complete(a); /* what it writes is not known */
    }
    unsigned char *host;
    size_t bytes;
    uint64_t offset;
    if (host_region_buffer(&host, &bytes))
        buffers[emu_buffer_of((uintptr_t)host, &offset)] =
            (smk_buffer){host, bytes, SMK_IN | SMK_OUT};
}

/* What a launch has written is not known. */
static void set_all_complete(void) {
    for (size_t k = 0; k < memory_count(); k++) {
        allocation *a = memory_at(k);
        if (a && a->live && a->written) memory_set_complete(a);
    }
}

static CUresult error_of(const smk_status *status, const smk_trace *trace) {
    for (size_t k = 0; trace && trace->incomplete && k < trace->n_hazards; k++) {
        if (trace->hazards[k].kind == SMK_HAZARD_OUT_OF_BOUNDS) return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (trace->hazards[k].kind == SMK_HAZARD_MISALIGNED) return CUDA_ERROR_MISALIGNED_ADDRESS;
        if (trace->hazards[k].kind == SMK_HAZARD_DEADLOCK) return CUDA_ERROR_LAUNCH_TIMEOUT;
    }
    if (trace && trace->incomplete && !status->code) return CUDA_ERROR_LAUNCH_FAILED;
    if (!status->code) return CUDA_SUCCESS;
    if (status->code == SMK_UNSUPPORTED) return CUDA_ERROR_NOT_SUPPORTED;
    if (status->code == SMK_VALUE) return CUDA_ERROR_INVALID_VALUE;
    if (status->code == SMK_MEMORY) return CUDA_ERROR_OUT_OF_MEMORY;
    if (status->code == SMK_INTERRUPTED) return CUDA_ERROR_LAUNCH_TIMEOUT;
    if (strstr(status->message, "ssertion")) return CUDA_ERROR_ASSERT;
    if (strstr(status->message, "out of bounds: ")) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (strstr(status->message, "misaligned address: ")) return CUDA_ERROR_MISALIGNED_ADDRESS;
    return CUDA_ERROR_LAUNCH_FAILED;
}

/* The allocations that hazards are in, for the names in the report. */
static void list_allocations(json *j, const smk_trace *trace) {
    json_open(j, "allocations", '{');
    for (size_t k = 0; trace && k < trace->n_hazards; k++) {
        int64_t number, offset;
        const allocation *a = memory_of_hazard(&trace->hazards[k], &number, &offset);
        char name[32];
        if (!a) continue;
        snprintf(name, sizeof name, "%lld", (long long)number);
        json_next(j, name);
        report_allocation(j, a);
    }
    json_close(j, '}');
}

static void record(CUfunction f, const smk_launch *l, const smk_trace *trace,
                   const smk_status *status, double seconds, bool examined) {
    const frames callers = report_frames();
    const int sm = device_attribute(CC_MAJOR) * 10 + device_attribute(CC_MINOR);
    json j = {0};
    json_open(&j, NULL, '{');
    json_text(&j, "record", "launch");
    json_text(&j, "kernel", f->signature.entry);
    json_extent(&j, "grid", l->grid);
    json_extent(&j, "block", l->block);
    json_unsigned(&j, "shared_bytes", l->shared_bytes);
    json_real(&j, "seconds", seconds);
    json_text(&j, "error", status->code ? status->message : NULL);
    json_next(&j, "callers");
    report_frames_json(&j, &callers);
    list_allocations(&j, examined ? trace : NULL);
    json_true_false(&j, "interrupted", status->code == SMK_INTERRUPTED);
    json_true_false(&j, "full", trace->full);
    json_number(&j, "newer_ptx", f->module->target > sm ? f->module->target : 0);
    json_next(&j, "trace");
    if (examined && (!status->code || trace->incomplete))
        report_trace(&j, trace);
    else
        json_text(&j, NULL, NULL);
    json_close(&j, '}');
    report_write(&j);
}

static bool wants_trace(CUfunction f) {
    if (f->examined < 0) f->examined = report_examines(f->signature.entry);
    f->launches++;
    return report_wanted() && report_check() != CHECK_NOTHING && f->examined &&
           f->launches <= report_launch_limit();
}

CUresult launch_once(CUfunction f, const smk_launch *l, smk_children *children) {
    const size_t n = memory_count();
    smk_trace trace = {0};
    smk_status status = {0};
    smk_text text = {0};
    const bool examined = wants_trace(f), checked = examined && report_check() == CHECK_HAZARDS;
    size_t n_sample = 0;
    uint64_t *sample =
        examined ? report_sample((uint64_t)l->grid[0] * l->grid[1] * l->grid[2], &n_sample) : NULL;
    size_t n_textures;
    smk_texture *textures = textures_list(&n_textures);
    smk_buffer *buffers = calloc(n + 1, sizeof *buffers);
    unsigned char **written = calloc(n + 1, sizeof *written);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (buffers && written) {
        /* What blocks outside of the sample write is not known. */
        list_buffers(buffers, written, checked && !sample);
        smk_job job = {.module = f->module->loaded,
                       .of_program = true,
                       .args_bytes = f->signature.args_bytes,
                       .parameters = f->signature.offsets,
                       .n_parameters = f->signature.n_parameters,
                       .launches = l,
                       .n_launches = 1,
                       .buffers = buffers,
                       .n_buffers = n,
                       .textures = textures,
                       .n_textures = n_textures,
                       .written = written,
                       .copied_by = origin_number,
                       .begin_written = sample ? NULL : memory_begin_written,
                       .sample = sample,
                       .n_sample = n_sample,
                       .printed = &text,
                       .children = children,
                       .ask_graph = graph_ask,
                       .graph = graph_current(),
                       .trace = examined ? &trace : NULL,
                       .hazards = checked ? SMK_FIND_HAZARDS | SMK_UNTIL_FULL : 0};
        const double start = driver_seconds();
        origin_begin(f->signature.entry);
        watch_begin(&job, f->signature.entry);
        emu_run(&job, &status);
        watch_end();
        if (trace.full) set_all_complete();
        keep_printed(&text);
        result = error_of(&status, examined ? &trace : NULL);
        record(f, l, &trace, &status, driver_seconds() - start, examined);
    }
    smk_trace_free(&trace);
    free(buffers);
    free(written);
    free(sample);
    free(textures);
    return result;
}

CUresult launch_prepare(CUfunction f, const CUlaunchConfig *c, void **params, void **extra,
                        work *out) {
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(f, HANDLE_FUNCTION) || !stream_is(c->hStream)) return CUDA_ERROR_INVALID_HANDLE;
    smk_launch l = {
        .entry = f->signature.entry,
        .grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
        .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
        .cluster = {(uint32_t)f->cluster[0], (uint32_t)f->cluster[1], (uint32_t)f->cluster[2]},
        .shared_bytes = c->sharedMemBytes};
    CUresult result = read_attributes(c, &l);
    if (!result) result = launch_check(f, &l);
    if (result) return result;
    const size_t bytes = f->signature.args_bytes;
    unsigned char *block = calloc(1, bytes + 1);
    if (!block) return CUDA_ERROR_OUT_OF_MEMORY;
    result = gather(&f->signature, params, extra, block);
    if (result) {
        free(block);
        return result;
    }
    l.args = block;
    *out = (work){.kind = WORK_KERNEL, .of.kernel = {f, l, bytes}};
    return CUDA_SUCCESS;
}

CUresult launch_kernel(const kernel_work *w) {
    const CUfunction f = w->function;
    /* A graph can outlive its functions. */
    if (!handle_is(f, HANDLE_FUNCTION) || f->signature.args_bytes != w->args_bytes)
        return CUDA_ERROR_INVALID_HANDLE;
    smk_launch l = w->launch;
    l.entry = f->signature.entry;
    module_ran(f->module);
    smk_children children = {0};
    CUresult result = launch_once(f, &l, &children);
    if (result)
        children_drop(&children);
    else
        result = children_run(f->module, &children);
    if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_VALUE) return result;
    /* As on a GPU, the launch succeeds, and later calls return the kernel's error. */
    CUcontext context = context_current();
    if (context) context->error = result;
    return CUDA_SUCCESS;
}

CUresult launch(CUfunction f, const CUlaunchConfig *c, void **params, void **extra) {
    work w;
    const CUresult result = launch_prepare(f, c, params, extra, &w);
    return result ? result : work_submit(c->hStream, &w);
}
