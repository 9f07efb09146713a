/* Device "cuda": the driver API from plain C. libcuda and libnvrtc are opened on first use, so all
 * of this links and loads where there is neither. The only header of cuda/ that others include.
 */
#ifndef SMK_GPU_H
#define SMK_GPU_H

#include <stdbool.h>

#include "../core/job.h"

typedef struct gpu_info {
    char name[128];
    int ordinal;
    int sm; /* 90 for compute capability 9.0 */
    int multiprocessors;
    int clock_khz;
    size_t memory_bytes;
    size_t shared_bytes_optin; /* most shared memory of a block, after opting in */
    int driver_version;        /* 13000 for 13.0 */
} gpu_info;

/* Number of devices; 0, with the reason in why (if not NULL), where there is no driver or no GPU.
 */
int gpu_count(smk_status *why);
smk_code gpu_describe(int ordinal, gpu_info *out, smk_status *status);

/* For smk_job.stream: the stream that other libraries use unless they are told otherwise
 * (CU_STREAM_LEGACY). */
#define GPU_DEFAULT_STREAM ((void *)1)

/* SMK_VALUE if the job's buffers and pointers contradict each other. */
smk_code gpu_check_job(const smk_job *job, smk_status *status);

/* Queues the job's kernels, and those of the jobs after it (smk_job.next), on its stream, and returns. All
 * buffers are on the device. Temporary memory is freed on the stream, behind the kernels. */
smk_code gpu_queue(int ordinal, const smk_job *job, smk_status *status);

/* What is held for reuse, and giving it back: bytes of the device's memory, and of pinned memory of the
 * host. */
size_t gpu_pool_bytes(int ordinal);
size_t gpu_stage_bytes(int ordinal);
smk_code gpu_trim(int ordinal, smk_status *status);

/* What a flow may use of the device's memory: most of what is free, or held for reuse. */
smk_code gpu_memory(int ordinal, size_t *bytes, smk_status *status);

/* Pins memory of the host for all devices, so that their copy engines reach it. False where that cannot be had: nothing
 * is lost but time. Unpinned it has to be before it is unmapped. */
bool gpu_pin(void *memory, size_t bytes);
void gpu_unpin(void *memory);

/* The device whose memory an address is in, as other libraries hand it out. */
smk_code gpu_pointer_device(uint64_t address, int *ordinal, smk_status *status);

/* What has been queued on a stream by now: has it ended, and another stream that is to wait for it. */
typedef struct gpu_event gpu_event;
smk_code gpu_event_record(int ordinal, void *stream, gpu_event **out, smk_status *status);
bool gpu_event_query(const gpu_event *m);
smk_code gpu_stream_wait_event(const gpu_event *m, void *stream, smk_status *status);
void gpu_event_free(gpu_event *m);

/* NVRTC. source and headers (name, text pairs) to PTX text for arch ("compute_80"); through the
 * cache on disk. *ptx is malloc'ed, NUL-terminated. SMK_COMPILE carries the compiler's log.
 *
 * entry, if not NULL, is a kernel as C++ names it ("space::tile<float, 16>"). It is instantiated,
 * and the first line of the PTX is a comment with its name there: NVRTC_ENTRY_LINE, the name and an
 * end of line. SMK_VALUE if the source has no such kernel. */
#define NVRTC_ENTRY_LINE "// entry: "

typedef struct nvrtc_header {
    const char *name, *text;
} nvrtc_header;

smk_code nvrtc_compile(const char *source, const char *file_name, const char *entry,
                       const nvrtc_header *headers, int n_headers, const char *const *options,
                       int n_options, const char *cache_directory, char **ptx, size_t *size,
                       smk_status *status);

/* 13000-style version, or 0 with the reason in why: the paths that were tried. */
int nvrtc_version(smk_status *why);

/* Where to look for libnvrtc first (a file path; Python finds the wheel's). NULL: system only. */
void nvrtc_set_library(const char *path);

#endif
