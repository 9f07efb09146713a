/* Kernel parameters are passed to the driver one by one, not as one block: the driver aligns the
 * first one by its type, and PTX's layout does not contain that padding.
 */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

#include "errors.h"

/* Timed runs enqueued at a time: enough to keep the device busy, few enough not to fill the
 * driver's queue. */
enum { BATCH = 64 };

static smk_code encode_map(device *d, const smk_tensor_map *map, uint64_t address,
                           unsigned char *to, smk_status *status) {
    _Alignas(SMK_TENSOR_MAP_ALIGN) unsigned char encoded[SMK_TENSOR_MAP_BYTES];
    const int no_interleave = 0, no_promotion = 0;
    if (!d->cu->cuTensorMapEncodeTiled)
        return smk_fail(status, SMK_DRIVER_TOO_OLD,
                        "the NVIDIA driver has no cuTensorMapEncodeTiled, which a TensorMap needs. "
                        "Install a newer driver, or use device=\"emu\"");
    CUresult result = d->cu->cuTensorMapEncodeTiled(
        encoded, (int)map->type, map->rank, (void *)(uintptr_t)address, map->size, map->stride + 1,
        map->box, map->step, no_interleave, (int)map->swizzle, no_promotion, map->fill_nan);
    if (result)
        return device_fail(d, result, SMK_VALUE, status,
                           "cuTensorMapEncodeTiled of a tensor of %u dimensions (a GPU of compute "
                           "capability 9.0 or newer is needed)",
                           map->rank);
    memcpy(to, encoded, sizeof encoded);
    return SMK_OK;
}

/* Replaces the tensor's address in the arguments by the encoded map, or fills in the host memory of
 * the map's buffer, which is copied to the device later. */
static smk_code bind_map(device *d, const smk_job *job, const smk_tensor_map *map,
                         const CUdeviceptr *addresses, unsigned char *block, smk_status *status) {
    uint64_t address;
    if (map->in_buffer)
        return encode_map(d, map, addresses[map->tensor_buffer] + map->tensor_offset,
                          job->buffers[map->buffer].host, status);
    memcpy(&address, block + map->arg_offset, sizeof address);
    return encode_map(d, map, address, block + map->arg_offset, status);
}

/* Code for chips before this one has neither griddepcontrol.wait nor clusters. */
enum { OVERLAP_AND_CLUSTERS = 90 };

/* Programmatic dependent launch: drivers before 12.3 cannot capture such a launch in a graph. */
static bool may_overlap(const device *d, const smk_launch *launch, int virtual_sm) {
    enum { OLDEST_DRIVER = 12030 };
    return launch->overlaps && virtual_sm >= OVERLAP_AND_CLUSTERS &&
           d->cu->version >= OLDEST_DRIVER;
}

/* Clusters of more than 8 blocks need an opt-in per function. */
static smk_code allow_cluster(device *d, CUfunction function, int virtual_sm, const smk_launch *l,
                              smk_status *status) {
    enum { PORTABLE_BLOCKS = 8 };
    if (l->cluster[0] && virtual_sm < OVERLAP_AND_CLUSTERS)
        return smk_fail(status, SMK_LAUNCH,
                        "kernel \"%s\" was compiled for sm_%d, which has no clusters", l->entry,
                        virtual_sm);
    if (l->cluster[0] * l->cluster[1] * l->cluster[2] <= PORTABLE_BLOCKS) return SMK_OK;
    CUresult result =
        d->cu->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (!result) return SMK_OK;
    return device_fail(d, result, SMK_LAUNCH, status,
                       "cuFuncSetAttribute of kernel \"%s\" for clusters of (%u, %u, %u) blocks",
                       l->entry, l->cluster[0], l->cluster[1], l->cluster[2]);
}

smk_code launch_find(device *d, launch_plan *plan, module *m, smk_status *status) {
    const smk_launch *launches = plan->job->launches;
    const size_t n = plan->job->n_launches;
    plan->module = module_handle(m);
    plan->functions = calloc(n, sizeof *plan->functions);
    if (!plan->functions) return smk_fail_memory(status, n * sizeof *plan->functions, "launches");
    for (size_t i = 0; i < n; i++) {
        size_t shared = launches[i].shared_bytes;
        int virtual_sm;
        if (plan->functions[i].handle) continue;
        for (size_t j = i + 1; j < n; j++)
            if (!strcmp(launches[j].entry, launches[i].entry) && launches[j].shared_bytes > shared)
                shared = launches[j].shared_bytes;
        CUfunction handle;
        if (module_function(d, m, launches[i].entry, shared, &handle, &virtual_sm, status))
            return status->code;
        if (allow_cluster(d, handle, virtual_sm, &launches[i], status)) return status->code;
        for (size_t j = i; j < n; j++)
            if (!strcmp(launches[j].entry, launches[i].entry))
                plan->functions[j] =
                    (launch_function){handle, may_overlap(d, &launches[j], virtual_sm)};
    }
    return SMK_OK;
}

smk_code launch_make_args(device *d, launch_plan *plan, const CUdeviceptr *addresses,
                          smk_status *status) {
    const smk_job *job = plan->job;
    const size_t bytes = job->n_launches * job->args_bytes;
    const size_t n_parameters = job->n_launches * job->n_parameters;
    plan->args = malloc(bytes + 1);
    plan->parameters = malloc((n_parameters + 1) * sizeof *plan->parameters);
    if (!plan->args || !plan->parameters)
        return smk_fail_memory(status, bytes + n_parameters * sizeof *plan->parameters,
                               "kernel arguments");
    if (texture_set_make(d, job, plan->module, addresses, &plan->textures, status))
        return status->code;
    for (size_t i = 0; i < job->n_launches; i++) {
        unsigned char *block = plan->args + i * job->args_bytes;
        if (job->args_bytes) memcpy(block, job->launches[i].args, job->args_bytes);
        for (size_t j = 0; j < job->n_parameters; j++)
            plan->parameters[i * job->n_parameters + j] = block + job->parameters[j];
        for (size_t j = 0; j < job->n_pointers; j++) {
            const smk_pointer *pointer = &job->pointers[j];
            CUdeviceptr address;
            memcpy(&address, block + pointer->arg_offset, sizeof address);
            address += addresses[pointer->buffer];
            memcpy(block + pointer->arg_offset, &address, sizeof address);
        }
        texture_set_bind(plan->textures, block);
        for (size_t j = 0; j < job->n_tensor_maps; j++)
            if (bind_map(d, job, &job->tensor_maps[j], addresses, block, status))
                return status->code;
    }
    return SMK_OK;
}

void launch_free(launch_plan *plan) {
    free(plan->functions);
    free(plan->args);
    free(plan->parameters);
    *plan = (launch_plan){0};
}

static smk_code launch_fail(device *d, const launch_plan *plan, size_t i, CUresult result,
                            smk_status *status) {
    const smk_launch *launch = &plan->job->launches[i];
    const CUfunction function = plan->functions[i].handle;
    int threads = 0, registers = 0;
    /* A sticky error comes from an earlier kernel, and the queries below would fail. */
    if (driver_result_is_sticky(result))
        return device_fail(d, result, SMK_LAUNCH, status,
                           "an earlier kernel failed (reported by the launch of \"%s\")",
                           launch->entry);
    d->cu->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
    d->cu->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    return device_fail(d, result, SMK_LAUNCH, status,
                       "cuLaunchKernelEx of \"%s\" with grid (%u, %u, %u), block (%u, %u, %u), %zu "
                       "bytes of dynamic shared memory and %zu bytes of arguments (it has %d "
                       "registers per thread and runs at most %d threads per block; a grid has at "
                       "most 2147483647 x 65535 x 65535 blocks)",
                       launch->entry, launch->grid[0], launch->grid[1], launch->grid[2],
                       launch->block[0], launch->block[1], launch->block[2], launch->shared_bytes,
                       plan->job->args_bytes, registers, threads);
}

enum { MAX_ATTRIBUTES = 3 };

static unsigned list_attributes(const smk_launch *l, bool overlaps, CUlaunchAttribute *out) {
    unsigned n = 0;
    if (overlaps)
        out[n++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                       .value.allowed = 1};
    if (l->cooperative)
        out[n++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.allowed = 1};
    if (l->cluster[0])
        out[n++] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                .value.cluster = {l->cluster[0], l->cluster[1], l->cluster[2]}};
    return n;
}

smk_code launch_all(device *d, const launch_plan *plan, smk_status *status) {
    const smk_job *job = plan->job;
    for (size_t i = 0; i < job->n_launches; i++) {
        const smk_launch *l = &job->launches[i];
        CUlaunchAttribute attributes[MAX_ATTRIBUTES];
        const unsigned n = list_attributes(l, plan->functions[i].overlaps, attributes);
        const CUlaunchConfig config = {.grid = {l->grid[0], l->grid[1], l->grid[2]},
                                       .block = {l->block[0], l->block[1], l->block[2]},
                                       .shared_bytes = (unsigned)l->shared_bytes,
                                       .stream = plan->stream,
                                       .attributes = attributes,
                                       .n_attributes = n};
        CUresult result = d->cu->cuLaunchKernelEx(&config, plan->functions[i].handle,
                                                  plan->parameters + i * job->n_parameters, NULL);
        if (result) return launch_fail(d, plan, i, result, status);
    }
    return SMK_OK;
}

smk_code launch_with_textures(device *d, const launch_plan *plan, smk_status *status) {
    if (texture_set_copy_in(d, plan->textures, plan->stream, status) || launch_all(d, plan, status))
        return status->code;
    return texture_set_copy_out(d, plan->textures, plan->stream, status);
}

/* Times n runs with n + 1 events: consecutive runs share one, so the device stays busy. */
static smk_code time_batch(device *d, const launch_plan *plan, const CUevent *events, int n,
                           float *milliseconds, interrupt_poller *p, const char *what,
                           smk_status *status) {
    CUresult result = d->cu->cuEventRecord(events[0], plan->stream);
    for (int i = 0; i < n && !result; i++) {
        smk_code code = launch_all(d, plan, status);
        if (code) return code;
        result = d->cu->cuEventRecord(events[i + 1], plan->stream);
    }
    if (result) return device_fail(d, result, SMK_ERROR, status, "cuEventRecord");

    smk_code code = wait_for_stream(d, plan->stream, p, what, status);
    if (code) return code;
    for (int i = 0; i < n; i++)
        if ((result = d->cu->cuEventElapsedTime(&milliseconds[i], events[i], events[i + 1])))
            return device_fail(d, result, SMK_ERROR, status, "cuEventElapsedTime");
    return SMK_OK;
}

smk_code launch_timed(device *d, const launch_plan *plan, int repeat, float *milliseconds,
                      interrupt_poller *p, const char *what, smk_status *status) {
    int n_events = 0;
    int wanted = 1 + (repeat < BATCH ? repeat : BATCH);
    CUevent events[BATCH + 1];
    smk_code code = SMK_OK;
    for (; n_events < wanted; n_events++) {
        CUresult result = d->cu->cuEventCreate(&events[n_events], CU_EVENT_DEFAULT);
        if (!result) continue;
        code = device_fail(d, result, SMK_ERROR, status, "cuEventCreate");
        goto done;
    }
    for (int first = 0; first < repeat && !code; first += BATCH) {
        int n = repeat - first < BATCH ? repeat - first : BATCH;
        code = time_batch(d, plan, events, n, milliseconds + first, p, what, status);
    }

done:
    while (n_events)
        d->cu->cuEventDestroy(events[--n_events]);
    return code;
}
