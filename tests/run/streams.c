/* Programs that miss a wait, and their correct twins: the second argument names one, a third one
 * makes it wrong. The first is the file of kernels. A program declares what it needs of cuda.h. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef uint64_t CUdeviceptr;
typedef struct any *handle;

CUresult cuInit(unsigned flags);
CUresult cuDevicePrimaryCtxRetain(handle *context, int device);
CUresult cuCtxSetCurrent(handle context);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoad(handle *module, const char *file);
CUresult cuModuleGetFunction(handle *function, handle module, const char *name);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, handle stream);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, handle stream);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, handle stream);
CUresult cuStreamCreate(handle *stream, unsigned flags);
CUresult cuStreamSynchronize(handle stream);
CUresult cuStreamQuery(handle stream);
CUresult cuStreamWaitEvent(handle stream, handle event, unsigned flags);
CUresult cuEventCreate(handle *event, unsigned flags);
CUresult cuEventRecord(handle event, handle stream);
CUresult cuEventSynchronize(handle event);
CUresult cuLaunchKernel(handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, handle stream, void **params, void **extra);
CUresult cuLaunchHostFunc(handle stream, void (*call)(void *), void *user);

enum { N = 100, BYTES = N * sizeof(unsigned), NON_BLOCKING = 1, NOT_READY = 600 };

static handle kernel, one, two, event;
static CUdeviceptr y;
static unsigned *pinned, pageable[N];

static void check(CUresult result, const char *what) {
    if (!result) return;
    printf("%s: %d\n", what, result);
    exit(3);
}
#define CHECK(call) check(call, #call)

static void add(handle stream) {
    int n = N;
    void *params[] = {&y, &n};
    CHECK(cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, 0, stream, params, NULL));
}

static unsigned value(void) { /* after all work */
    unsigned values[N];
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH_v2(values, y, BYTES));
    return values[N - 1];
}

/* Each returns what should be 6. */

static unsigned host_reads(int wrong) {
    CHECK(cuMemsetD32Async(y, 5, N, one));
    add(one);
    CHECK(cuMemcpyDtoHAsync_v2(pinned, y, BYTES, one));
    if (!wrong) CHECK(cuStreamSynchronize(one));
    return pinned[N - 1];
}

static unsigned host_writes(int wrong) {
    for (int k = 0; k < N; k++)
        pinned[k] = 5;
    CHECK(cuMemcpyHtoDAsync_v2(y, pinned, BYTES, one));
    CHECK(cuEventRecord(event, one));
    if (!wrong) CHECK(cuEventSynchronize(event));
    for (int k = 0; k < N; k++)
        pinned[k] = 8;
    add(one);
    return value();
}

static unsigned two_streams(int wrong) {
    CHECK(cuMemsetD32Async(y, 5, N, one));
    CHECK(cuEventRecord(event, one));
    if (!wrong) CHECK(cuStreamWaitEvent(two, event, 0));
    add(two);
    return value();
}

static unsigned early_event(int wrong) {
    if (wrong) CHECK(cuEventRecord(event, one));
    CHECK(cuMemsetD32Async(y, 5, N, one));
    if (!wrong) CHECK(cuEventRecord(event, one));
    CHECK(cuStreamWaitEvent(two, event, 0));
    add(two);
    return value();
}

static unsigned default_stream(int wrong) {
    handle third;
    CHECK(cuStreamCreate(&third, wrong ? NON_BLOCKING : 0));
    CHECK(cuMemsetD32Async(y, 2, N, third));
    CHECK(cuMemsetD32Async(y, 5, N, NULL));
    add(third);
    return value();
}

static void take(void *user) {
    *(unsigned *)user = pinned[N - 1];
}

static unsigned callback(int wrong) {
    static unsigned seen;
    CHECK(cuMemsetD32Async(y, 5, N, one));
    add(one);
    CHECK(cuMemcpyDtoHAsync_v2(pinned, y, BYTES, one));
    CHECK(cuLaunchHostFunc(wrong ? two : one, take, &seen));
    CHECK(cuCtxSynchronize());
    return seen;
}

static unsigned query(int wrong) {
    CUresult result;
    CHECK(cuMemsetD32Async(y, 5, N, one));
    add(one);
    while ((result = cuStreamQuery(wrong ? two : one)) == NOT_READY) {
    }
    CHECK(result);
    CHECK(cuMemcpyDtoHAsync_v2(pinned, y, BYTES, two));
    CHECK(cuStreamSynchronize(two));
    return pinned[N - 1];
}

/* Copies from and to memory that is not pinned have read or written it when they return. */
static unsigned not_pinned(int wrong) {
    unsigned back[N];
    (void)wrong;
    for (int k = 0; k < N; k++)
        pageable[k] = 5;
    CHECK(cuMemcpyHtoDAsync_v2(y, pageable, BYTES, one));
    memset(pageable, 0, sizeof pageable);
    add(one);
    CHECK(cuMemcpyDtoHAsync_v2(back, y, BYTES, one));
    return back[N - 1];
}

/* A blocking copy comes after the work of streams that are not made otherwise. */
static unsigned blocking_copy(int wrong) {
    handle third;
    unsigned values[N];
    CHECK(cuStreamCreate(&third, wrong ? NON_BLOCKING : 0));
    CHECK(cuMemsetD32Async(y, 5, N, third));
    add(third);
    CHECK(cuMemcpyDtoH_v2(values, y, BYTES));
    return values[N - 1];
}

static const struct {
    const char *name;
    unsigned (*run)(int wrong);
} programs[] = {{"host-reads", host_reads},
                {"host-writes", host_writes},
                {"two-streams", two_streams},
                {"early-event", early_event},
                {"default-stream", default_stream},
                {"callback", callback},
                {"query", query},
                {"not-pinned", not_pinned},
                {"blocking-copy", blocking_copy}};

int main(int n, char **words) {
    handle context, module;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoad(&module, words[1]));
    CHECK(cuModuleGetFunction(&kernel, module, "add"));
    CHECK(cuMemAlloc_v2(&y, BYTES));
    CHECK(cuMemHostAlloc((void **)&pinned, BYTES, 0));
    memset(pinned, 0, BYTES);
    for (int k = 0; k < N; k++)
        pageable[k] = 1;
    CHECK(cuMemcpyHtoD_v2(y, pageable, BYTES));
    CHECK(cuStreamCreate(&one, NON_BLOCKING));
    CHECK(cuStreamCreate(&two, NON_BLOCKING));
    CHECK(cuEventCreate(&event, 0));
    for (size_t k = 0; n > 2 && k < sizeof programs / sizeof *programs; k++)
        if (!strcmp(programs[k].name, words[2])) printf("%u\n", programs[k].run(n > 3));
    CHECK(cuMemFree_v2(y));
    return 0;
}
