/* Device "cuda": plain C on the driver API. libcuda and libnvrtc are opened on first use, so the
 * code links and loads on machines without them. Folders other than pipeline/ include only this
 * header.
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
    size_t shared_bytes_optin; /* max shared memory per block, with opt-in */
    int driver_version;        /* 13000 for 13.0 */
} gpu_info;

/* The number of devices. 0 without a driver or a GPU; the reason is in why (if not NULL). */
int gpu_count(smk_status *why);
smk_code gpu_describe(int ordinal, gpu_info *out, smk_status *status);

/* For smk_job.stream: CU_STREAM_LEGACY, the default stream of other libraries. */
#define GPU_DEFAULT_STREAM ((void *)1)

/* SMK_VALUE if a pointer of the job is outside its arguments or refers to no buffer. */
smk_code gpu_check_job(const smk_job *job, smk_status *status);

/* Enqueues the kernels of the job and of the jobs chained to it (smk_job.next) on its stream, and
 * returns. No buffer is in host memory. Workspaces are freed in stream order, after the kernels. */
smk_code gpu_queue(int ordinal, const smk_job *job, smk_status *status);

/* Bytes held for reuse, in the device's memory pool and in pinned staging buffers. gpu_trim frees
 * both. */
size_t gpu_pool_bytes(int ordinal);
size_t gpu_stage_bytes(int ordinal);
smk_code gpu_trim(int ordinal, smk_status *status);

/* Device memory that a pipeline may use: 9/10 of what is free or held for reuse. */
smk_code gpu_memory(int ordinal, size_t *bytes, smk_status *status);

/* Pins host memory for all devices, so that their copy engines can access it. False if the driver
 * refuses: copies still work, but slower. Unpin the memory before unmapping it. */
bool gpu_pin(void *memory, size_t bytes);
void gpu_unpin(void *memory);

/* The device that owns the memory at an address. */
smk_code gpu_pointer_device(uint64_t address, int *ordinal, smk_status *status);

/* An event recorded on a stream: query whether the work before it has ended, or make another stream
 * wait for it. */
typedef struct gpu_event gpu_event;
smk_code gpu_event_record(int ordinal, void *stream, gpu_event **out, smk_status *status);
bool gpu_event_query(const gpu_event *e);
smk_code gpu_stream_wait_event(const gpu_event *e, void *stream, smk_status *status);
void gpu_event_free(gpu_event *e);

/* Compiles CUDA C++ to PTX with NVRTC, through the cache on disk (NULL: no cache). *ptx is
 * malloc'ed and NUL-terminated. On a failure it is the compiler's log, or NULL.
 *
 * `entry`, if not NULL, is a C++ name expression of a kernel ("space::tile<float, 16>"). The kernel
 * is instantiated, and the first line of the PTX is NVRTC_ENTRY_LINE followed by its mangled name.
 * SMK_VALUE if the source has no such kernel. */
#define NVRTC_ENTRY_LINE "// entry: "

typedef struct nvrtc_header {
    const char *name, *text;
} nvrtc_header;

smk_code nvrtc_compile(const char *source, const char *file_name, const char *entry,
                       const nvrtc_header *headers, int n_headers, const char *const *options,
                       int n_options, const char *cache_directory, char **ptx, size_t *size,
                       smk_status *status);

/* 13000 for 13.0; 0 if NVRTC was not found, with the paths tried in why. */
int nvrtc_version(smk_status *why);

/* The file to try first for libnvrtc (Python finds the one of the wheel). NULL: system names
 * only. */
void nvrtc_set_library(const char *path);

#endif
