/* cuGetExportTable: tables of functions that CUDA's runtime uses beside the API. NVIDIA does not
 * document them. Which there are and what their functions do is as ZLUDA describes it
 * (dark_api/src/lib.rs, zluda/src/impl/driver.rs); which of them cudart 13.0 calls was found by
 * running it. All other places hold a function that reports itself and returns
 * CUDA_ERROR_NOT_SUPPORTED.
 */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "runtime_check.h"

enum { MAX_PLACES = 32 };

static CUresult not_supported(void) {
    static bool reported;
    return driver_missing("a function of an export table", &reported);
}

/* ---- modules of the runtime ---- */

static CUresult load_module(CUmodule *out, const void *image) {
    DRIVER_CALL(cuModuleLoadData, NEED_INIT, module_new(image, out));
}

static CUresult load_module_more(CUmodule *out, const void *image, void *a, void *b, unsigned c) {
    (void)a, (void)b, (void)c;
    return load_module(out, image);
}

static CUresult load_fatbin(const void *image, CUmodule *out, void *a, void *b, unsigned c) {
    (void)a, (void)b, (void)c;
    return load_module(out, image);
}

static CUresult find_primary(CUcontext *out, CUdevice device) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    *out = context_primary();
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult primary_context(CUcontext *out, CUdevice device) {
    DRIVER_CALL(cuDevicePrimaryCtxRetain, NEED_INIT, find_primary(out, device));
}

static void ignore(uintptr_t value) {
    (void)value;
}

static CUresult succeed(void) {
    return CUDA_SUCCESS;
}

/* ---- hooks of tools: memory that the runtime writes ---- */

static uint64_t tool_memory[2][128];

static void first_hooks(void **out, size_t *bytes) {
    *out = tool_memory[0];
    *bytes = sizeof tool_memory[0];
}

static void second_hooks(void **out, size_t *bytes) {
    *out = tool_memory[1];
    *bytes = 14; /* as the real driver says, by ZLUDA */
}

/* ---- storage of contexts ---- */

static storage_entry **storage_find(CUcontext c, const void *key) {
    storage_entry **link = &c->storage;
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    return link;
}

static CUresult put(CUcontext c, void *key, void *value,
                    void (*destroy)(CUcontext context, void *key, void *value)) {
    if (!c) c = context_current();
    if (!handle_is(c, HANDLE_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
    storage_entry **link = storage_find(c, key);
    if (!*link) *link = calloc(1, sizeof **link);
    if (!*link) return CUDA_ERROR_OUT_OF_MEMORY;
    (*link)->key = key;
    (*link)->value = value;
    (*link)->destroy = destroy;
    return CUDA_SUCCESS;
}

static CUresult storage_put(CUcontext c, void *key, void *value,
                            void (*destroy)(CUcontext context, void *key, void *value)) {
    DRIVER_CALL(cuCtxSetCurrent, NEED_INIT, put(c, key, value, destroy));
}

static CUresult drop(CUcontext c, void *key) {
    if (!c) c = context_current();
    if (!handle_is(c, HANDLE_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
    storage_entry **link = storage_find(c, key), *found = *link;
    if (found) *link = found->next;
    free(found);
    return CUDA_SUCCESS;
}

static CUresult storage_delete(CUcontext c, void *key) {
    DRIVER_CALL(cuCtxSetCurrent, NEED_INIT, drop(c, key));
}

static CUresult find(void **value, CUcontext c, void *key) {
    if (!c) c = context_current();
    if (!handle_is(c, HANDLE_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
    const storage_entry *found = *storage_find(c, key);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    *value = found->value;
    return CUDA_SUCCESS;
}

static CUresult storage_get(void **value, CUcontext c, void *key) {
    DRIVER_CALL(cuCtxGetCurrent, NEED_INIT, find(value, c, key));
}

/* ---- checks ---- */

static CUresult check_context(CUcontext c, unsigned *first, const void **second) {
    (void)c, (void)second;
    *first = 0;
    return CUDA_SUCCESS;
}

static CUresult answer_check(uint32_t version, uint64_t seconds, uint64_t answer[2]);

/* ---- the tables ---- */

typedef void (*function_pointer)(void);
#define F(name) ((function_pointer)(name))

typedef struct table {
    unsigned char id[16];
    unsigned n;     /* places; the first holds their bytes, unless it is a function */
    bool no_length; /* the first place is a function */
    struct {
        unsigned at;
        function_pointer function;
    } functions[8];
    const void *places[MAX_PLACES];
} table;

enum { CUDART, CHECK = 5 };

static table tables[] = {
    [CUDART] = {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd,
                 0x9d, 0xf9},
                13,
                false,
                {{1, F(load_module)},
                 {2, F(primary_context)},
                 {6, F(load_module_more)},
                 {7, F(ignore)},
                 {8, F(load_fatbin)},
                 {12, F(succeed)}},
                {NULL}},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec,
      0xdc},
     4,
     false,
     {{0, NULL}},
     {NULL}},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a,
      0x66},
     7,
     false,
     {{2, F(first_hooks)}, {6, F(second_hooks)}},
     {NULL}},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95,
      0x93},
     4,
     true,
     {{0, F(storage_put)}, {1, F(storage_delete)}, {2, F(storage_get)}},
     {NULL}},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
      0x7e},
     4,
     false,
     {{2, F(check_context)}, {3, F(succeed)}},
     {NULL}},
    [CHECK] = {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66,
                0xe1, 0xf2},
               3,
               false,
               {{1, F(answer_check)}},
               {NULL}},
};

enum { N_TABLES = sizeof tables / sizeof *tables };

static const void *table_start(table *t) {
    if (t->places[1]) return t->places;
    for (unsigned k = 0; k < t->n; k++)
        t->places[k] = (const void *)(uintptr_t)not_supported;
    if (!t->no_length) t->places[0] = (const void *)(uintptr_t)(t->n * sizeof(void *));
    for (unsigned k = 0; k < sizeof t->functions / sizeof *t->functions; k++)
        if (t->functions[k].function)
            t->places[t->functions[k].at] = (const void *)(uintptr_t)t->functions[k].function;
    return t->places;
}

static CUresult find_answer(uint32_t version, uint64_t seconds, uint64_t answer[2]) {
    enum { PCI_BUS = 33, PCI_DEVICE = 34, PCI_DOMAIN = 50 };
    const runtime_check_device device = {.uuid = device_uuid(),
                                         .domain = device_attribute(PCI_DOMAIN),
                                         .bus = device_attribute(PCI_BUS),
                                         .device = device_attribute(PCI_DEVICE)};
    int driver_version;
    cuDriverGetVersion(&driver_version);
    runtime_check_answer(version, seconds, (uint32_t)driver_version, tables[CUDART].places,
                         tables[CHECK].places, tables[CHECK].places[1], &device, answer);
    return CUDA_SUCCESS;
}

static CUresult answer_check(uint32_t version, uint64_t seconds, uint64_t answer[2]) {
    DRIVER_CALL(cuGetExportTable, NEED_INIT, find_answer(version, seconds, answer));
}

EXPORT CUresult cuGetExportTable(const void **out, const CUuuid *id) {
    if (!out || !id) return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    for (unsigned k = 0; k < N_TABLES; k++)
        if (tables[k].n && !memcmp(tables[k].id, id, sizeof tables[k].id)) {
            *out = table_start(&tables[k]);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}
