/* A launch: limits, kernel parameters, and distribution of its blocks over host threads.
 *
 * The calling thread runs blocks like the others, and calls the job's poll every 50 ms. Host
 * threads take blocks (groups of them: block_group.h) in ascending order, so a block may wait for
 * one with a lower number, as on a GPU.
 */
#include <errno.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "block_group.h"
#include "device_runtime.h"
#include "../base/device.h"
#include "../base/host_thread.h"
#include "../base/size.h"
#include "instruction_set.h"
#include "texture.h"

enum { POLL_NANOSECONDS = 50 * 1000 * 1000, MAX_HOST_THREADS = 256 };

static const char INTERRUPTED[] = "interrupted";

void launch_fail(launch *l, smk_code code, const char *message) {
    pthread_mutex_lock(&l->lock);
    smk_fail(l->status, code, "%s", message);
    pthread_mutex_unlock(&l->lock);
    atomic_store(&l->stop, true);
}

void launch_interrupted_at(launch *l, const char *where) {
    pthread_mutex_lock(&l->lock);
    smk_status *s = l->status;
    if (s->code == SMK_INTERRUPTED && strcmp(s->message, INTERRUPTED) == 0)
        snprintf(s->message, sizeof s->message, "%s", where);
    pthread_mutex_unlock(&l->lock);
}

void launch_fail_at(launch *l, smk_code code, const emu_fault *fault) {
    pthread_mutex_lock(&l->lock);
    if (l->observer && l->observer->fault && !l->status->code)
        l->observer->fault(l->observer->self, fault);
    pthread_mutex_unlock(&l->lock);
    launch_fail(l, code, fault->message);
}

/* ---- limits ---- */

static smk_code check_shape(const ptx_function *f, const smk_launch *shape, smk_status *status) {
    static const uint32_t grid_limit[3] = {0x7fffffff, 65535, 65535};
    static const uint32_t block_limit[3] = {1024, 1024, 64};
    const uint32_t *grid = shape->grid, *block = shape->block;
    for (int k = 0; k < 3; k++) {
        if (grid[k] < 1 || grid[k] > grid_limit[k])
            return smk_fail(status, SMK_LAUNCH,
                            "kernel %s: grid (%u, %u, %u): dimension %c must be 1 to %u", f->name,
                            grid[0], grid[1], grid[2], 'x' + k, grid_limit[k]);
        if (block[k] < 1 || block[k] > block_limit[k])
            return smk_fail(status, SMK_LAUNCH,
                            "kernel %s: block (%u, %u, %u): dimension %c must be 1 to %u", f->name,
                            block[0], block[1], block[2], 'x' + k, block_limit[k]);
    }
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads > MAX_THREADS)
        return smk_fail(status, SMK_LAUNCH,
                        "kernel %s: block (%u, %u, %u) has %llu threads; at most %d are possible",
                        f->name, block[0], block[1], block[2], (unsigned long long)threads,
                        MAX_THREADS);
    const uint32_t *max = f->max_threads, *required = f->required_threads;
    const uint64_t allowed =
        (uint64_t)(max[0] ? max[0] : 1) * (max[1] ? max[1] : 1) * (max[2] ? max[2] : 1);
    if (max[0] && threads > allowed)
        return smk_fail(status, SMK_LAUNCH,
                        "kernel %s: %llu threads per block, but it was compiled for at most %llu "
                        "(__launch_bounds__ or .maxntid)",
                        f->name, (unsigned long long)threads, (unsigned long long)allowed);
    for (int k = 0; k < 3 && required[0]; k++)
        if (block[k] != (required[k] ? required[k] : 1))
            return smk_fail(
                status, SMK_LAUNCH,
                "kernel %s: block (%u, %u, %u), but it was compiled for blocks of exactly "
                "(%u, %u, %u) (.reqntid)",
                f->name, block[0], block[1], block[2], required[0], required[1] ? required[1] : 1,
                required[2] ? required[2] : 1);
    return SMK_OK;
}

/* The size of the clusters: as the kernel states it, or the launch, or both. */
static smk_code set_cluster(launch *l, const smk_launch *shape, smk_status *status) {
    const ptx_function *f = l->program->function;
    const uint32_t *own = f->cluster, *given = shape->cluster;
    if (f->blocks_are_clusters)
        return smk_fail(status, SMK_UNSUPPORTED,
                        "kernel %s is .blocksareclusters (__block_size__): its grid counts "
                        "clusters, which the emulator does not support; use __cluster_dims__",
                        f->name);
    if (own[0] && given[0] && memcmp(own, given, sizeof f->cluster))
        return smk_fail(status, SMK_LAUNCH,
                        "kernel %s: clusters of (%u, %u, %u) blocks, but it was compiled for "
                        "clusters of (%u, %u, %u) (__cluster_dims__ or .reqnctapercluster)",
                        f->name, given[0], given[1], given[2], own[0], own[1], own[2]);
    if (f->explicit_cluster && !own[0] && !given[0])
        return smk_fail(status, SMK_LAUNCH,
                        "kernel %s is .explicitcluster and does not state the size of its "
                        "clusters; pass cluster=",
                        f->name);
    for (int k = 0; k < 3; k++) {
        l->cluster[k] = own[0] ? own[k] : given[0] ? given[k] : 1;
        if (l->cluster[k] < 1 || l->cluster[k] > MAX_CLUSTER_BLOCKS || l->grid[k] % l->cluster[k])
            return smk_fail(status, SMK_LAUNCH,
                            "kernel %s: grid (%u, %u, %u) in clusters of %u blocks in dimension "
                            "%c; the size of clusters must divide the grid, and be 1 to %d",
                            f->name, l->grid[0], l->grid[1], l->grid[2], l->cluster[k], 'x' + k,
                            MAX_CLUSTER_BLOCKS);
    }
    l->cluster_blocks = l->cluster[0] * l->cluster[1] * l->cluster[2];
    l->explicit_cluster = own[0] || given[0];
    const uint32_t most = f->max_cluster_rank[0] ? f->max_cluster_rank[0] : MAX_CLUSTER_BLOCKS;
    if (l->cluster_blocks > most || l->cluster_blocks > MAX_CLUSTER_BLOCKS)
        return smk_fail(status, SMK_LAUNCH,
                        "kernel %s: clusters of (%u, %u, %u), %u blocks; at most %u are possible%s",
                        f->name, l->cluster[0], l->cluster[1], l->cluster[2], l->cluster_blocks,
                        most < MAX_CLUSTER_BLOCKS ? most : MAX_CLUSTER_BLOCKS,
                        most < MAX_CLUSTER_BLOCKS ? " (.maxclusterrank)"
                                                  : " (8 on every GPU with clusters, 16 on some)");
    return SMK_OK;
}

/* The offset of dynamic shared memory: after the static arrays, aligned as its declarations
 * require. */
uint64_t launch_dynamic_shared_at(const ptx_module *module, const ptx_function *f) {
    uint64_t align = LOCAL_CHUNK;
    for (uint32_t k = 0; k < module->n_variables; k++) {
        const ptx_variable *v = module->variables[k];
        if (v->space == PTX_SHARED && v->external && v->align > align) align = v->align;
    }
    return (f->shared_bytes + align - 1) / align * align;
}

static smk_code set_shared(launch *l, const smk_launch *shape, smk_status *status) {
    const ptx_function *f = l->program->function;
    l->dynamic_shared_bytes = shape->shared_bytes;
    l->dynamic_shared_at = launch_dynamic_shared_at(l->module->ptx, f);
    l->shared_bytes =
        shape->shared_bytes ? l->dynamic_shared_at + shape->shared_bytes : f->shared_bytes;
    l->reserved_shared_at = (l->shared_bytes + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
    l->shared_region_bytes = l->module->ptx->reserved_shared
                                 ? l->reserved_shared_at + RESERVED_SHARED_BYTES
                                 : l->shared_bytes;
    if (shape->shared_bytes <= MAX_SHARED_BYTES && l->shared_bytes <= MAX_SHARED_BYTES)
        return SMK_OK;
    char message[512];
    snprintf(message, sizeof message,
             "kernel %.200s: a block needs %llu bytes of shared memory (%llu static, %llu "
             "dynamic); at most %d are possible; use smaller tiles or fewer stages",
             f->name, (unsigned long long)(f->shared_bytes + shape->shared_bytes),
             (unsigned long long)f->shared_bytes, (unsigned long long)shape->shared_bytes,
             MAX_SHARED_BYTES);
    launch_fail_at(l, SMK_LAUNCH, &(emu_fault){.kind = EMU_SHARED_LIMIT, .message = message});
    return status->code;
}

/* Whether the launch may overlap the previous one. As on a GPU, not below sm_90: such code has no
 * griddepcontrol.wait to wait for the previous launch with. */
static bool may_overlap(const smk_job *job, const smk_launch *shape, const program *program) {
    const char *target = program->module->ptx->target;
    const bool exists = shape < job->launches + job->n_launches;
    return exists && shape->overlaps && !strncmp(target, "sm_", 3) && atoi(target + 3) >= 90;
}

/* The number of the cluster of a block of the grid. */
static uint64_t cluster_of(const launch *l, uint64_t linear) {
    uint64_t cluster = 0, rows = 1;
    for (int k = 0; k < 3; k++) {
        cluster += linear % l->grid[k] / l->cluster[k] * rows;
        linear /= l->grid[k];
        rows *= l->grid[k] / l->cluster[k];
    }
    return cluster;
}

static int compare_numbers(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The groups to run. Clusters of which some blocks are selected run as a whole. False: out of
 * memory. */
static bool choose_clusters(launch *l) {
    const bool together = l->cooperative || l->one_by_one;
    l->group_blocks = together ? (uint32_t)l->n_blocks : l->cluster_blocks;
    l->n_groups = l->n_blocks / l->group_blocks;
    if (together) return true;
    if (!l->blocks || l->cluster_blocks == 1) return true;
    l->clusters = calloc(size_from(l->n_blocks + 1), sizeof *l->clusters);
    if (!l->clusters) return false;
    for (uint64_t k = 0; k < l->n_blocks; k++)
        l->clusters[k] = cluster_of(l, l->blocks[k] - l->first_block);
    qsort(l->clusters, (size_t)l->n_blocks, sizeof *l->clusters, compare_numbers);
    l->n_groups = 0;
    for (uint64_t k = 0; k < l->n_blocks; k++)
        if (!k || l->clusters[k] != l->clusters[k - 1]) l->clusters[l->n_groups++] = l->clusters[k];
    l->n_blocks = l->n_groups * l->cluster_blocks;
    return true;
}

/* The most blocks that a multiprocessor of an H200 can hold at the same time. Registers, which
 * ptxas allocates, can make that fewer. */
static uint64_t blocks_per_sm(const launch *l) {
    enum { SM_THREADS = 2048, SM_BLOCKS = 32, SM_SHARED = 228 * 1024, RESERVED_SHARED = 1024 };
    const uint64_t by_threads = SM_THREADS / (l->n_warps * LANES);
    const uint64_t by_shared = SM_SHARED / (l->shared_bytes + RESERVED_SHARED);
    const uint64_t per_sm = by_threads < by_shared ? by_threads : by_shared;
    return per_sm < SM_BLOCKS ? per_sm : SM_BLOCKS;
}

/* Whether blocks may wait for others that begin later, as they can where all are resident. */
static bool runs_one_by_one(const launch *l, const smk_job *job) {
    const uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    return l->program->waits && !l->cooperative && l->cluster_blocks == 1 && !job->blocks &&
           !l->sample && blocks > 1 && blocks <= blocks_per_sm(l) * EMU_MULTIPROCESSORS;
}

static smk_code check_cooperative(const launch *l, const smk_job *job, smk_status *status) {
    const uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    const uint64_t per_sm = blocks_per_sm(l);
    if (blocks > per_sm * EMU_MULTIPROCESSORS)
        return smk_fail(status, SMK_LAUNCH,
                        "kernel %s: a cooperative launch of %llu blocks; an H200 holds at most "
                        "%llu at the same time (%d SMs with %llu blocks of %u warps and %llu bytes "
                        "of shared memory each)",
                        l->program->function->name, (unsigned long long)blocks,
                        (unsigned long long)(per_sm * EMU_MULTIPROCESSORS), EMU_MULTIPROCESSORS,
                        (unsigned long long)per_sm, l->n_warps,
                        (unsigned long long)l->shared_bytes);
    if (job->blocks)
        return smk_fail(status, SMK_VALUE,
                        "kernel %s: a cooperative launch runs all its blocks, as they wait for "
                        "each other; leave blocks= out",
                        l->program->function->name);
    return SMK_OK;
}

/* Selects the blocks to run. job->blocks numbers the blocks of all launches consecutively. False:
 * out of memory. */
static bool set_blocks(launch *l, const smk_job *job, const smk_launch *shape) {
    const uint64_t all = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    l->n_blocks = all;
    if (job->blocks) {
        for (const smk_launch *before = job->launches; before != shape; before++)
            l->first_block += (uint64_t)before->grid[0] * before->grid[1] * before->grid[2];
        size_t begin = 0;
        while (begin < job->n_blocks && job->blocks[begin] < l->first_block)
            begin++;
        size_t end = begin;
        while (end < job->n_blocks && job->blocks[end] - l->first_block < all)
            end++;
        l->blocks = job->blocks + begin;
        l->n_blocks = end - begin;
    }
    if (!choose_clusters(l)) return false;
    if (job->trace) {
        job->trace->blocks += l->n_blocks;
        job->trace->grid_blocks += all;
        if (l->shared_bytes > job->trace->shared_bytes) job->trace->shared_bytes = l->shared_bytes;
    }
    return true;
}

/* ---- parameters ---- */

static smk_code bind_tensor_map(const smk_job *job, const smk_tensor_map *map, const launch *l,
                                unsigned char *block, smk_status *status) {
    unsigned char *to = block + map->arg_offset;
    uint64_t address;
    bool in_range = map->arg_offset + (uint64_t)SMK_TENSOR_MAP_BYTES <= job->args_bytes;
    if (map->in_buffer) {
        in_range = map->buffer < job->n_buffers && map->tensor_buffer < job->n_buffers &&
                   job->buffers[map->buffer].bytes == SMK_TENSOR_MAP_BYTES;
        to = in_range ? l->regions[REGION_BUFFERS + map->buffer].host : NULL;
        address = REGION_BASE(REGION_BUFFERS + map->tensor_buffer) + map->tensor_offset;
    }
    if (!in_range)
        return smk_fail(status, SMK_VALUE,
                        "kernel %s: a tensor map is at byte %u of %zu: out of range",
                        l->program->function->name, map->arg_offset, job->args_bytes);
    if (!map->in_buffer) memcpy(&address, to, sizeof address);
    l->module->isa->encode_tensor_map(map, address, to);
    return SMK_OK;
}

static smk_code bind_parameters(const smk_job *job, const smk_launch *shape, const launch *l,
                                unsigned char *block, smk_status *status) {
    const ptx_function *f = l->program->function;
    if (job->args_bytes != f->parameters_bytes)
        return smk_fail(status, SMK_VALUE, "kernel %s: expected %llu bytes of parameters, got %llu",
                        f->name, (unsigned long long)f->parameters_bytes,
                        (unsigned long long)job->args_bytes);
    if (job->args_bytes) memcpy(block, shape->args, job->args_bytes);
    for (size_t k = 0; k < job->n_pointers; k++) {
        const smk_pointer *p = &job->pointers[k];
        uint64_t address;
        if (p->arg_offset + (uint64_t)sizeof address > job->args_bytes ||
            p->buffer >= job->n_buffers)
            return smk_fail(
                status, SMK_VALUE,
                "kernel %s: pointer %zu is at byte %u of %zu, for buffer %u of %zu: out of range",
                f->name, k, p->arg_offset, job->args_bytes, p->buffer, job->n_buffers);
        memcpy(&address, block + p->arg_offset, sizeof address);
        address += REGION_BASE(REGION_BUFFERS + p->buffer);
        memcpy(block + p->arg_offset, &address, sizeof address);
    }
    for (size_t k = 0; k < job->n_tensor_maps; k++)
        if (bind_tensor_map(job, &job->tensor_maps[k], l, block, status)) return status->code;
    return SMK_OK;
}

/* ---- host threads ---- */

typedef struct host_threads {
    launch *launch;
    pthread_mutex_t lock;
    pthread_cond_t finished;
    unsigned running;        /* number of threads, without the calling one */
    interrupt_poller poller; /* for the calling thread */
} host_threads;

interrupt_poller launch_poller(const launch *l) {
    const bool caller = pthread_equal(pthread_self(), l->caller);
    return (interrupt_poller){.poll = caller ? l->poll : NULL,
                              .poll_arg = l->poll_arg,
                              .cancel = caller ? l->cancel : &l->stop};
}

static void stop(launch *l) {
    launch_fail(l, SMK_INTERRUPTED, INTERRUPTED);
}

static void stop_if_cancelled(void *arg) {
    launch *l = arg;
    if (l->cancel && !atomic_load(&l->stop) && atomic_load(l->cancel)) stop(l);
}

static void poll_when_due(void *arg) {
    host_threads *h = arg;
    if (!atomic_load(&h->launch->stop) && interrupt_look(&h->poller)) stop(h->launch);
}

static void run_host_thread(launch *l, void (*poll)(void *), void *poll_arg) {
    const emu_observer *observer = l->observer;
    fenv_t environment;
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV); /* PTX's rounding and subnormals, whatever the caller has set */
    void *state = observer ? observer->fork(observer->self) : NULL;
    block_group *groups[2] = {NULL, NULL}; /* not observed, observed */
    bool ok = !observer || state;
    while (ok && !atomic_load(&l->stop)) {
        const uint64_t next = atomic_fetch_add(&l->next_group, 1);
        if (next >= l->n_groups) break;
        const bool observed = block_group_is_observed(l, next);
        block_group **g = &groups[observed];
        if (!*g) *g = block_group_new(l, observed ? state : NULL);
        ok = *g != NULL;
        if (!ok) break;
        block_group_run(*g, next, poll, poll_arg);
        if (observed && l->sample) atomic_fetch_add(&l->n_observed, (*g)->n_blocks);
        if (l->finished) atomic_fetch_add(l->finished, (*g)->n_blocks);
    }
    if (!ok) launch_fail(l, SMK_MEMORY, "out of memory: the warps of a block");
    block_group_free(groups[0]);
    block_group_free(groups[1]);
    if (state) {
        pthread_mutex_lock(&l->lock);
        observer->join(observer->self, state);
        pthread_mutex_unlock(&l->lock);
    }
    fesetenv(&environment);
}

static void *host_thread_main(void *arg) {
    host_threads *h = arg;
    run_host_thread(h->launch, stop_if_cancelled, h->launch);
    pthread_mutex_lock(&h->lock);
    h->running--;
    pthread_cond_signal(&h->finished);
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static void join_workers(host_threads *h) {
    pthread_mutex_lock(&h->lock);
    while (h->running) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += POLL_NANOSECONDS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&h->finished, &h->lock, &until) != ETIMEDOUT) continue;
        pthread_mutex_unlock(&h->lock);
        poll_when_due(h);
        pthread_mutex_lock(&h->lock);
    }
    pthread_mutex_unlock(&h->lock);
}

static unsigned host_thread_count(const smk_job *job, uint64_t n_groups) {
    unsigned n = job->threads > 0 ? (unsigned)job->threads : host_thread_limit();
    if (n > MAX_HOST_THREADS) n = MAX_HOST_THREADS;
    return n < n_groups ? n : (unsigned)n_groups;
}

static void run_blocks(launch *l, unsigned threads) {
    pthread_t ids[MAX_HOST_THREADS];
    unsigned started = 0;
    host_threads h = {.launch = l, .poller = interrupt_start(l->poll, l->poll_arg, l->cancel)};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&h.lock, NULL);
    pthread_cond_init(&h.finished, &monotonic);
    pthread_condattr_destroy(&monotonic);
    while (started + 1 < threads) { /* if thread creation fails, run with fewer threads */
        pthread_mutex_lock(&h.lock);
        h.running++;
        pthread_mutex_unlock(&h.lock);
        if (!host_thread_start(&ids[started], host_thread_main, &h)) {
            pthread_mutex_lock(&h.lock);
            h.running--;
            pthread_mutex_unlock(&h.lock);
            break;
        }
        started++;
    }
    run_host_thread(l, poll_when_due, &h);
    join_workers(&h);
    for (unsigned k = 0; k < started; k++)
        host_thread_join(ids[k]);
    pthread_cond_destroy(&h.finished);
    pthread_mutex_destroy(&h.lock);
}

smk_code launch_run(const smk_job *job, const smk_launch *shape, const program *program,
                    const struct program *plain, region *regions, uint32_t n_regions,
                    const emu_observer *observer, smk_status *status) {
    const ptx_function *f = program->function;
    launch l = {.module = program->module,
                .program = program,
                .plain = plain,
                .sample = plain && !shape->cooperative ? job->sample : NULL,
                .n_sample = job->n_sample,
                .regions = regions,
                .n_regions = n_regions,
                .observer = observer,
                .poll = job->poll,
                .poll_arg = job->poll_arg,
                .cancel = job->cancel,
                .caller = pthread_self(),
                .finished = job->finished,
                .max_instructions = job->max_instructions,
                .of_program = job->of_program,
                .children = job->children,
                .ask_graph = job->ask_graph,
                .graph = job->graph,
                .slice = SLICE,
                .status = status};
    unsigned char *parameters = NULL, *workspace = NULL;
    const size_t first_child = job->children ? job->children->n : 0;
    bool sequential = false;
    smk_code code = check_shape(f, shape, status);
    if (code) return code;
    l.cooperative = shape->cooperative;
    if (l.cooperative) l.slice = COOPERATIVE_SLICE;
    if (l.max_instructions && l.max_instructions < l.slice) l.slice = l.max_instructions;
    l.overlaps = may_overlap(job, shape, program);
    l.followed = may_overlap(job, shape + 1, program);
    memcpy(l.grid, shape->grid, sizeof l.grid);
    memcpy(l.block, shape->block, sizeof l.block);
    pthread_mutex_init(&l.lock, NULL);
    code = set_shared(&l, shape, status);
    if (code) goto out;
    code = set_cluster(&l, shape, status);
    if (code) goto out;
    l.n_warps = (l.block[0] * l.block[1] * l.block[2] + LANES - 1) / LANES;
    l.registers = launch_registers(program->module->ptx, f);
    if (l.cooperative) code = check_cooperative(&l, job, status);
    if (code) goto out;
    l.one_by_one = runs_one_by_one(&l, job);
    if (!set_blocks(&l, job, shape)) {
        code = smk_fail_memory(status, 0, "the clusters of a launch");
        goto out;
    }
    parameters = guarded_alloc(f->parameters_bytes);
    if (!parameters) {
        code = smk_fail_memory(status, f->parameters_bytes, "kernel parameters");
        goto out;
    }
    workspace = guarded_zeros(l.cooperative ? GRID_WORKSPACE_BYTES : 0);
    if (!workspace) {
        code = smk_fail_memory(status, GRID_WORKSPACE_BYTES, "the grid's workspace");
        goto out;
    }
    regions[REGION_GRID] =
        (region){workspace, l.cooperative ? GRID_WORKSPACE_BYTES : 0, PTX_GLOBAL, true, false, 0};
    regions[REGION_PARAM] = (region){parameters, f->parameters_bytes, PTX_PARAM, false, false, 0};
    code = bind_parameters(job, shape, &l, parameters, status);
    if (!code) code = textures_bind(&l, job, parameters, status);
    if (!code && observer && observer->launch && !observer->launch(observer->self, &l, &sequential))
        code = smk_fail_memory(status, 0, "the trace of a launch");
    if (!code) {
        if (sequential) l.sample = NULL; /* its blocks synchronise by what is not observed, too */
        run_blocks(&l, sequential ? 1 : host_thread_count(job, l.n_groups));
        if (observer && observer->finish) observer->finish(observer->self);
        stop_if_cancelled(&l);
        if (job->trace && l.sample) job->trace->blocks -= l.n_blocks - l.n_observed;
        print_end_launch(&l.printed, job->printed);
        device_runtime_end_launch(&l, first_child);
        code = status->code;
    }
out:
    textures_free(&l);
    pthread_mutex_destroy(&l.lock);
    free(l.clusters);
    guarded_free(parameters, f->parameters_bytes);
    guarded_free(workspace, l.cooperative ? GRID_WORKSPACE_BYTES : 0);
    return code;
}
