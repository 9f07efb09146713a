/* A program of driver API calls, compiled by cc: what it needs of cuda.h, it declares itself. It
 * runs the PTX of its first argument: the kernels of kernels.ptx. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int CUresult;
typedef uint64_t CUdeviceptr;
typedef struct any *handle;

CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(int *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(handle *context, int device);
CUresult cuCtxSetCurrent(handle context);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoad(handle *module, const char *file);
CUresult cuModuleGetFunction(handle *function, handle module, const char *name);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags);
CUresult cuStreamQuery(handle stream);
CUresult cuTexRefDestroy(handle reference);
CUresult cuGetExportTable(const void **table, const void *id);
CUresult cuLaunchKernel(handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, handle stream, void **params, void **extra);

enum { N = 100 };

static handle module;

static void check(CUresult result, const char *what) {
    if (!result) return;
    printf("%s: %d\n", what, result);
    exit(3);
}

/* A function of a table that the driver knows, but not this function. */
static void call_table(void) {
    static const unsigned char id[16] = {0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47,
                                         0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc};
    const void *found;
    check(cuGetExportTable(&found, id), "cuGetExportTable");
    CUresult (*const *table)(void) = found;
    printf("table %d\n", table[1]());
}

static CUresult start(const char *kernel, unsigned threads, CUdeviceptr address, int n) {
    handle f;
    void *params[] = {&address, &n};
    check(cuModuleGetFunction(&f, module, kernel), "cuModuleGetFunction");
    const unsigned blocks = strcmp(kernel, "blocks") && strcmp(kernel, "sweep") ? 1 : N;
    return cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, NULL, params, NULL);
}

int main(int n, char **words) {
    handle context;
    int device, values[N], *pinned = values;
    CUdeviceptr address;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuModuleLoad(&module, words[1]), "cuModuleLoad");
    check(cuMemAlloc_v2(&address, sizeof values), "cuMemAlloc");
    for (int k = 0; k < N; k++)
        values[k] = k;
    for (int k = 2; k < n; k++) {
        const char *word = words[k];
        if (!strcmp(word, "fill"))
            check(cuMemcpyHtoD_v2(address, values, sizeof values), "cuMemcpyHtoD");
        else if (!strcmp(word, "back"))
            check(cuMemcpyDtoH_v2(values, address, sizeof values), "cuMemcpyDtoH");
        else if (!strcmp(word, "show"))
            printf("%d %d\n", values[0], values[N - 1]);
        else if (!strcmp(word, "free"))
            printf("free %d\n", cuMemFree_v2(address));
        else if (!strcmp(word, "copy-out"))
            printf("copy %d\n", cuMemcpyDtoH_v2(values, address + 4, sizeof values));
        else if (!strcmp(word, "texref"))
            printf("texref %d\n", cuTexRefDestroy(NULL));
        else if (!strcmp(word, "table"))
            call_table();
        else if (!strcmp(word, "sync"))
            printf("sync %d\n", cuCtxSynchronize());
        else if (!strcmp(word, "crash"))
            abort();
        else if (!strcmp(word, "ready")) {
            puts("ready");
            fflush(stdout);
        } else if (!strcmp(word, "sleep"))
            pause();
        else if (!strcmp(word, "pinned")) { /* the memory of all that follows */
            check(cuMemHostAlloc((void **)&pinned, sizeof values, 0), "cuMemHostAlloc");
            memset(pinned, 0, sizeof values);
            address = (CUdeviceptr)(uintptr_t)pinned;
        } else if (!strcmp(word, "signal"))
            __atomic_store_n(&pinned[0], 1, __ATOMIC_RELEASE);
        else if (!strcmp(word, "query"))
            printf("query %d\n", cuStreamQuery(NULL));
        else if (!strcmp(word, "answer"))
            printf("answer %d\n", pinned[1]);
        else if (!strcmp(word, "large"))
            check(cuMemAlloc_v2(&address, (size_t)16 << 30), "cuMemAlloc");
        else
            printf("%s %d\n", word, start(word, 128, address, N));
    }
    return 0;
}
