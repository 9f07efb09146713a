/* What a test can see of the fake driver, and make it do: libcuda.so.1 exports `fake_cuda`. */
#ifndef FAKE_LIBCUDA_H
#define FAKE_LIBCUDA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fake_cuda {
    /* The countdown-th call of this function from now on fails, once, with this result. */
    const char *fail_call;
    int fail_countdown, fail_result;

    bool capturing;     /* somewhere a graph is being captured, in the mode that forbids most */
    bool no_pools;      /* the device says that it has no memory pools */
    bool no_peers;      /* devices do not reach each other's memory */
    bool kernels_hang;  /* "spin" started while this is true runs until it is false */
    bool products_hang; /* so does "gemm_naive", if this is true as well */
    size_t total_bytes; /* memory of the device */
    int allocation_ms;  /* what it takes to have some of it */
    int sticky;         /* the result of every call after a crash */

    int blocks, streams, events, modules; /* alive; blocks: in use, not held by a pool */
    size_t used_bytes, held_bytes, pinned_bytes;
    int fresh_blocks;                       /* allocations that no pool could serve, so far */
    size_t bytes_in, bytes_out, bytes_peer; /* copied so far */
    int waits;                              /* of streams for events, so far */
    void *launched_on;                      /* the stream of the latest launch */
    int launches;                           /* so far */
    size_t searched;                        /* elements of B whose largest were found, so far */
    int overlapping;     /* launches that may begin before the last one has ended, so far */
    int virtual_sm;      /* what the kernels' PTX was compiled for */
    int version;         /* of the driver */
    int contexts_pushed; /* and not popped, over all threads */

    /* The fail_number-th call of all, counted in `calls`, fails with fail_result; then failed_call is
     * its name. If it is a fault of a kernel, every later call in a context fails so, too. */
    int calls, fail_number;
    const char *failed_call;

    int arrays, objects; /* of textures and surfaces; alive */
} fake_cuda_state;

#endif
