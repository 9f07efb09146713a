/* Device "emu": runs a job.
 *
 * A module stays loaded under its image's key, so its variables keep their values between jobs,
 * as on a GPU. */
#include "emu.h"

#include "base/size.h"

#include "isa/isa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "machine/block.h"
#include "machine/heap.h"
#include "machine/instruction_set.h"
#include "cost/counts.h"
#include "hazards/hazards.h"
#include "../core/interrupt.h"
#include "observe/observer_pair.h"
#include "replay/replay.h"

enum { MAX_CACHED = 64, HOST_ALIGN = 16 };
/* Enough for all of our own kernels at their default settings. */
static const size_t MAX_CACHED_BYTES = 512u << 20;

/* ---- module cache ---- */

static struct {
    pthread_mutex_t lock;
    emu_module *modules; /* most recently used first */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static emu_module *cache_take(const char *key) {
    emu_module **link = &cache.modules;
    while (*link && strcmp((*link)->key, key))
        link = &(*link)->next;
    emu_module *m = *link;
    if (!m) return NULL;
    *link = m->next;
    m->next = cache.modules;
    cache.modules = m;
    m->users++;
    return m;
}

/* Evicts the least recently used modules above either limit, except those in use. Returns the
 * bytes freed. */
static size_t cache_trim(size_t max_modules, size_t max_bytes) {
    size_t n = 0, bytes = 0, dropped = 0;
    for (emu_module **link = &cache.modules; *link;) {
        emu_module *m = *link;
        bytes += m->bytes;
        if ((++n <= max_modules && bytes <= max_bytes) || m->users) {
            link = &m->next;
            continue;
        }
        *link = m->next;
        dropped += m->bytes;
        module_free(m);
    }
    return dropped;
}

size_t emu_trim(void) {
    pthread_mutex_lock(&cache.lock);
    const size_t dropped = cache_trim(0, 0);
    pthread_mutex_unlock(&cache.lock);
    guarded_trim();
    return dropped;
}

static emu_module *cache_find(const char *key) {
    pthread_mutex_lock(&cache.lock);
    emu_module *m = cache_take(key);
    pthread_mutex_unlock(&cache.lock);
    return m;
}

/* Adds a module to the cache, and returns the cached one. If another thread has cached the same
 * text in the meantime, that module is returned and `read` is freed. */
static emu_module *cache_keep(emu_module *read) {
    pthread_mutex_lock(&cache.lock);
    emu_module *m = cache_take(read->key);
    if (!m) {
        m = read;
        m->users = 1;
        m->next = cache.modules;
        cache.modules = m;
        cache_trim(MAX_CACHED, MAX_CACHED_BYTES);
    }
    pthread_mutex_unlock(&cache.lock);
    if (m != read) module_free(read);
    return m;
}

/* Parses without holding the lock: a text may be long, and a signal handler may run the same
 * one. */
static smk_code module_open(const smk_image *image, interrupt_poller *poller, emu_module **out,
                            smk_status *status) {
    if (image->key && (*out = cache_find(image->key))) return SMK_OK;
    const smk_code code =
        module_load(isa_for_cpu(), image->key, image->data, image->size, poller, out, status);
    if (!code && image->key) *out = cache_keep(*out);
    return code;
}

static void module_close(emu_module *m) {
    if (!m) return;
    if (!m->key) {
        module_free(m);
        return;
    }
    pthread_mutex_lock(&cache.lock);
    m->users--;
    pthread_mutex_unlock(&cache.lock);
}

/* ---- modules that stay loaded ---- */

smk_code emu_open(const char *ptx, size_t size, int (*poll)(void *poll_arg), void *poll_arg,
                  emu_module **out, smk_status *status) {
    interrupt_poller poller = interrupt_start(poll, poll_arg, NULL);
    return module_load(isa_for_cpu(), NULL, ptx, size, &poller, out, status);
}

void emu_close(emu_module *module) {
    module_free(module);
}

emu_memory emu_variables(const emu_module *m, bool constant) {
    return constant ? (emu_memory){m->constants, size_from(m->ptx->const_bytes)}
                    : (emu_memory){m->globals, size_from(m->ptx->global_bytes)};
}

void emu_move_globals(emu_module *m, unsigned char *to) {
    memcpy(to, m->globals, size_from(m->ptx->global_bytes));
    guarded_free(m->globals, m->ptx->global_bytes);
    m->globals = to;
    m->globals_moved = true;
}

bool emu_find_variable(const emu_module *m, const char *name, emu_variable *out) {
    for (uint32_t k = 0; k < m->ptx->n_variables; k++) {
        const ptx_variable *v = m->ptx->variables[k];
        if ((v->space != PTX_GLOBAL && v->space != PTX_CONST) || strcmp(v->name, name)) continue;
        *out = (emu_variable){size_from(v->offset), size_from(v->size), v->space == PTX_CONST};
        return true;
    }
    return false;
}

const char *emu_entry_name(const emu_module *m, size_t k) {
    for (uint32_t i = 0; i < m->ptx->n_functions; i++) {
        const ptx_function *f = m->ptx->functions[i];
        if (f->is_entry && !f->is_declaration && !k--) return f->name;
    }
    return NULL;
}

bool emu_is_variable_address(uint64_t address, bool *constant, uint64_t *offset) {
    const uint64_t id = REGION_OF(address);
    *constant = id == REGION_CONST;
    *offset = REGION_OFFSET(address);
    return id == REGION_CONST || id == REGION_GLOBAL;
}

uint64_t emu_buffer_address(size_t k) {
    return REGION_BASE(REGION_BUFFERS + k);
}

int64_t emu_buffer_of(uint64_t address, uint64_t *offset) {
    const uint64_t id = REGION_OF(address);
    *offset = REGION_OFFSET(address);
    return id < REGION_BUFFERS ? -1 : (int64_t)(id - REGION_BUFFERS);
}

void emu_encode_tensor_map(const smk_tensor_map *map, uint64_t address,
                           unsigned char out[SMK_TENSOR_MAP_BYTES]) {
    isa_for_cpu()->encode_tensor_map(map, address, out);
}

/* ---- memory regions ---- */

/* Atomics need aligned host memory. An unaligned buffer, or one without host memory, gets a
 * copy. */
static bool needs_copy(const smk_job *job, const smk_buffer *b) {
#ifdef EMU_CHECKED
    /* A copy has guard pages and canaries beside it (base/guarded.h). Buffers of a module that is
     * loaded for longer can be windows on its variables. */
    if (!job->module) return true;
#endif
    (void)job;
    return !b->host || (uintptr_t)b->host % HOST_ALIGN;
}

static smk_code map_buffers(const smk_job *job, region *regions, smk_status *status) {
    for (size_t k = 0; k < job->n_buffers; k++) {
        const smk_buffer *b = &job->buffers[k];
        unsigned char *host = b->host;
        if (!host && !b->bytes && job->module) continue; /* a place without an allocation */
        if (needs_copy(job, b)) {
            host = guarded_alloc(b->bytes);
            if (!host) return smk_fail_memory(status, b->bytes, "an aligned copy of a buffer");
            if (b->host)
                memcpy(host, b->host, b->bytes);
            else
                memset(host, 0xff, b->bytes); /* an uninitialized float reads as NaN */
        }
        const bool writable = !b->host || b->access & SMK_OUT;
        regions[REGION_BUFFERS + k] =
            (region){host, b->bytes, PTX_GLOBAL, writable, b->access == SMK_OUT, 0};
    }
    return SMK_OK;
}

static void unmap_buffers(const smk_job *job, const region *regions) {
    for (size_t k = 0; k < job->n_buffers; k++) {
        const smk_buffer *b = &job->buffers[k];
        unsigned char *host = regions[REGION_BUFFERS + k].host;
        if (!host || !needs_copy(job, b)) continue;
        if (b->host && b->access & SMK_OUT) memcpy(b->host, host, b->bytes);
        guarded_free(host, b->bytes);
    }
}

/* ---- runs ---- */

static smk_code find_entry(const emu_module *m, const char *name, const ptx_function **out,
                           smk_status *status) {
    char known[1024] = "";
    size_t n = 0;
    const ptx_function *f = ptx_find_function(m->ptx, name);
    if (f && f->is_entry && !f->is_declaration) {
        *out = f;
        return SMK_OK;
    }
    for (uint32_t k = 0; k < m->ptx->n_functions && n < sizeof known; k++)
        if (m->ptx->functions[k]->is_entry)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "",
                                  m->ptx->functions[k]->name);
    return smk_fail(status, SMK_VALUE, "no kernel %s in this PTX; it has: %s", name,
                    n ? known : "none");
}

/* Decodes the programs of all launches before the first one runs. So an unsupported instruction
 * in a later kernel fails the job before any kernel has had an effect. */
static smk_code decode_programs(const smk_job *job, emu_module *m, bool observed,
                                const program **programs, interrupt_poller *poller,
                                smk_status *status) {
    for (size_t k = 0; k < job->n_launches; k++) {
        const char *name = job->launches[k].entry;
        const ptx_function *entry;
        if (k && !strcmp(name, job->launches[k - 1].entry)) {
            programs[k] = programs[k - 1];
            continue;
        }
        if (find_entry(m, name, &entry, status)) return status->code;
        programs[k] = program_get(m, entry, observed, poller, status);
        if (!programs[k]) return status->code;
    }
    return SMK_OK;
}

/* `plain`: the programs of blocks that are not in the job's sample; NULL: all blocks run
 * `programs`. */
static smk_code run_launches(const smk_job *job, const program *const *programs,
                             const program *const *plain, region *regions,
                             const emu_observer *observer, smk_status *status) {
    const uint32_t n_regions = REGION_BUFFERS + (uint32_t)job->n_buffers;
    for (size_t k = 0; k < job->n_launches; k++) {
        const smk_code code =
            launch_run(job, &job->launches[k], programs[k], plain ? plain[k] : NULL, regions,
                       n_regions, observer, status);
        if (code) return code;
    }
    return SMK_OK;
}

/* What observes a run: counts of a trace, hazards, a recording; each may be missing. */
typedef struct observers {
    counts *counts;
    hazards *hazards;
    recorder *recorder;
    observer_pair pairs[2];
} observers;

static void free_observers(observers *o) {
    counts_free(o->counts);
    hazards_free(o->hazards);
    recorder_free(o->recorder);
}

static smk_code make_observers(const smk_job *job, observers *o, smk_status *status) {
    const bool checked = job->trace && job->hazards & SMK_FIND_HAZARDS;
    *o = (observers){0};
    if (job->trace) o->counts = counts_new(job->trace->by_instruction);
    if (checked) o->hazards = hazards_new(job);
    if (job->recording) o->recorder = recorder_new(job);
    if ((job->trace && !o->counts) || (checked && !o->hazards) || (job->recording && !o->recorder))
        return smk_fail_memory(status, 0, "what observes a run");
    if (o->hazards && o->recorder) hazards_set_step(o->hazards, recorder_now(o->recorder));
    return SMK_OK;
}

static emu_observer join_observers(observers *o) {
    emu_observer joined = {0};
    int n = 0;
    if (o->counts) joined = counts_observer(o->counts);
    if (o->hazards) {
        o->pairs[n] = (observer_pair){joined, hazards_observer(o->hazards)};
        joined = observer_of_pair(&o->pairs[n++]);
    }
    if (!o->recorder) return joined;
    if (!o->counts) return recorder_observer(o->recorder);
    o->pairs[n] = (observer_pair){joined, recorder_observer(o->recorder)};
    return observer_of_pair(&o->pairs[n]);
}

/* The trace of a run that was interrupted, as far as there is memory for it. */
static void report_partial(const smk_job *job, const observers *o) {
    smk_status status = {0};
    if (!counts_report(o->counts, job->trace, &status) && o->hazards)
        hazards_report(o->hazards, job->trace, &status);
    job->trace->incomplete = true;
}

/* With hazard detection, a fault that ends the run is a finding and not an error: the trace is
 * then marked as incomplete. */
static smk_code run_observed(const smk_job *job, const program *const *programs,
                             const program *const *plain, region *regions, smk_status *status) {
    observers o;
    smk_code code = make_observers(job, &o, status);
    if (code) goto out;
    const emu_observer observer = join_observers(&o);
    code = run_launches(job, programs, job->sample ? plain : NULL, regions, &observer, status);
    if (code == SMK_INTERRUPTED && job->keep_partial && o.counts) report_partial(job, &o);
    if (code == SMK_LAUNCH && o.hazards && hazards_stopped(o.hazards)) {
        *status = (smk_status){0};
        code = SMK_OK;
    }
    if (!code && o.counts) code = counts_report(o.counts, job->trace, status);
    if (!code && o.hazards) code = hazards_report(o.hazards, job->trace, status);
    if (!code && o.recorder) code = recorder_report(o.recorder, job->trace, status);
out:
    free_observers(&o);
    return code;
}

/* Outputs have no contents yet. A recording has them all, so they must not be those that the host's
 * memory happens to have. */
static void clear_outputs(const smk_job *job) {
    for (size_t k = 0; k < job->n_buffers; k++) {
        const smk_buffer *b = &job->buffers[k];
        if (b->host && b->access == SMK_OUT) memset(b->host, 0, b->bytes);
    }
}

/* A recording can be made again: its run starts with the module's variables as they are and an
 * empty heap, and leaves both as they were. */
static smk_code run_recorded(const smk_job *job, emu_module *m, const program *const *programs,
                             region *regions, smk_status *status) {
    const size_t bytes = size_from(m->ptx->global_bytes);
    heap *const kept_heap = m->heap;
    unsigned char *kept = malloc(bytes + 1);
    if (kept_heap) m->heap = heap_new();
    smk_code code = SMK_OK;
    if (!kept || (kept_heap && !m->heap)) {
        code = smk_fail_memory(status, bytes, "a copy of a module's variables");
    } else {
        memcpy(kept, m->globals, bytes);
        clear_outputs(job);
        code = run_observed(job, programs, NULL, regions, status);
        memcpy(m->globals, kept, bytes);
    }
    if (kept_heap) heap_free(m->heap);
    m->heap = kept_heap;
    free(kept);
    return code;
}

static smk_code run_timed(const smk_job *job, const program *const *programs, region *regions,
                          smk_status *status) {
    smk_job quiet = *job; /* the normal run before this one has printed */
    quiet.printed = NULL;
    for (int k = 0; k < job->repeat; k++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        const smk_code code = run_launches(&quiet, programs, NULL, regions, NULL, status);
        if (code) return code;
        clock_gettime(CLOCK_MONOTONIC, &end);
        job->milliseconds[k] = (float)((double)(end.tv_sec - begin.tv_sec) * 1e3 +
                                       (double)(end.tv_nsec - begin.tv_nsec) * 1e-6);
    }
    return SMK_OK;
}

smk_code emu_run(const smk_job *job, smk_status *status) {
    emu_module *m = NULL;
    region *regions = NULL;
    const program **plain = NULL, **observed;
    interrupt_poller poller = interrupt_start(job->poll, job->poll_arg, job->cancel);
    smk_code code = SMK_OK;
    if (job->module)
        m = job->module;
    else
        code = module_open(&job->image, &poller, &m, status);
    if (code) return code;
    plain = calloc(2 * job->n_launches, sizeof(program *));
    if (!plain) {
        code = smk_fail_memory(status, job->n_launches * sizeof(program *), "launches");
        goto out;
    }
    observed = plain + job->n_launches;
    const bool is_observed = job->trace || job->recording;
    if (!is_observed || job->repeat > 0 || job->sample)
        code = decode_programs(job, m, false, plain, &poller, status);
    if (!code && is_observed) code = decode_programs(job, m, true, observed, &poller, status);
    if (code) goto out;
    regions = calloc(REGION_BUFFERS + job->n_buffers, sizeof *regions);
    if (!regions) {
        code = smk_fail_memory(status, job->n_buffers * sizeof *regions,
                               "the table of memory regions");
        goto out;
    }
    regions[REGION_LOCAL].space = PTX_LOCAL;
    regions[REGION_CONST] = (region){m->constants, m->ptx->const_bytes, PTX_CONST, false, false, 0};
    regions[REGION_GLOBAL] = (region){m->globals, m->ptx->global_bytes, PTX_GLOBAL, true, false, 0};
    regions[REGION_HEAP].space = PTX_GLOBAL; /* without bytes, so that each access is checked */
    code = map_buffers(job, regions, status);
    if (!code)
        code = job->recording ? run_recorded(job, m, observed, regions, status)
               : is_observed  ? run_observed(job, observed, plain, regions, status)
                              : run_launches(job, plain, NULL, regions, NULL, status);
    if (!code && job->repeat > 0 && !(job->trace && job->trace->incomplete))
        code = run_timed(job, plain, regions, status);
    unmap_buffers(job, regions);
out:
    free(regions);
    free(plain);
    if (!job->module) module_close(m);
    return code;
}
