/* What the fake driver's files share: the lock and the failures on demand, which open every call.
 */
#ifndef FAKE_INTERNAL_H
#define FAKE_INTERNAL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../csrc/cuda/driver.h"
#include "fake_libcuda.h"

#define EXPORTED __attribute__((visibility("default")))

enum {
    INVALID_VALUE = 1,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    INVALID_CLUSTER_SIZE = 912,
    MOST_RESIDENT = 4224, /* blocks of a cooperative launch */
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719,
    CAPTURE_UNSUPPORTED = 900
};

#define X(function, version, arguments) EXPORTED CUresult function arguments;
DRIVER_FUNCTIONS(X)
OPTIONAL_DRIVER_FUNCTIONS(X)
#undef X

extern fake_cuda_state fake_cuda;

enum { MOST_MARKS = 64 };

struct CUstream_st {
    bool hangs, destroyed, has_launched;
    uint32_t *marks[MOST_MARKS], values[MOST_MARKS]; /* to be written when it no longer hangs */
    int n_marks;
    CUstream next;
};

bool fake_stream_is_busy(CUstream stream);

/* Whether the bytes lie in one allocation that is in use. */
bool fake_is_allocated(CUdeviceptr address, size_t bytes);

bool fake_is_pinned(const void *address);
EXPORTED int fake_registrations(void);

/* What there is in every module; NULL behind the last one. */
const char *fake_kernel_name(size_t index);

/* Runs it, as C loops: a CUresult that is not CUDA_SUCCESS is sticky. */
int fake_run(const char *name, void **parameters, const unsigned grid[3]);

/* Kernels that copy the texels of a texture to a surface. Their handles are arguments, a struct, or
 * in memory; or they are variables of the module. */
int fake_sample(void **parameters, const unsigned grid[3]);
int fake_sample_struct(void **parameters, const unsigned grid[3]);
int fake_sample_stored(void **parameters, const unsigned grid[3]);
int fake_sample_references(void **parameters, const unsigned grid[3]);

/* Memory freed on a stream that is idle by now becomes the pool's. */
void fake_settle_memory(void);

int fake_begin(const char *call, bool needs_context);
void fake_end(const int *unused);

/* Opens every function: locks until its end, and returns if it is to fail. */
#define CALL_ANYWHERE(call)                                                                        \
    __attribute__((cleanup(fake_end))) int result = fake_begin(#call, false);                      \
    if (result) return (CUresult)result
#define CALL(call)                                                                                 \
    __attribute__((cleanup(fake_end))) int result = fake_begin(#call, true);                       \
    if (result) return (CUresult)result

static inline CUresult fail(int result) {
    return (CUresult)result;
}

#endif
