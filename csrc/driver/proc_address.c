/* cuGetProcAddress, and the functions of missing.def. */
#include <string.h>

#include "driver.h"

/* ---- calls that are missing ---- */

CUresult driver_missing(const char *name, bool *reported) {
    CUresult result = driver_enter(NEED_NOTHING, name);
    if (result) return result;
    if (!*reported) report_unsupported(name);
    *reported = true;
    return driver_leave(CUDA_ERROR_NOT_SUPPORTED);
}

#define MISSING(name)                                                                              \
    EXPORT CUresult name(void);                                                                    \
    EXPORT CUresult name(void) {                                                                   \
        static bool reported;                                                                      \
        return driver_missing(#name, &reported);                                                   \
    }
#define OLD MISSING
#include "missing.def"
#undef OLD
#undef MISSING

/* ---- other names ---- */

#ifdef __aarch64__
#define JUMP(function) "b " #function
#else
#define JUMP(function) "jmp " #function "@PLT"
#endif
#define ALIAS(name, function)                                                                      \
    __asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ": " JUMP(function) "\n");
#include "aliases.def"
#undef ALIAS

/* ---- the table ---- */

#define CALL(base, version, symbol) extern CUresult symbol();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include "calls.def"
#pragma GCC diagnostic pop
#undef CALL

typedef struct call {
    const char *base;
    int version; /* of CUDA, from which on the base name means this function */
    void *function;
} call;

static const call calls[] = {
#define CALL(base, version, symbol) {#base, version, (void *)symbol},
#include "calls.def"
#undef CALL
#define MISSING(name) {#name, 0, (void *)name},
#define OLD(name)
#include "missing.def"
#undef OLD
#undef MISSING
};

static CUresult find(const char *name, void **out, int version, uint64_t flags, int *status) {
    enum { FOUND, NOT_FOUND, VERSION_TOO_OLD };
    const call *best = NULL;
    bool known = false;
    if (!name || !out || flags > 2) return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        if (strcmp(calls[k].base, name)) continue;
        known = true;
        if (calls[k].version <= version && (!best || calls[k].version > best->version))
            best = &calls[k];
    }
    *out = best ? best->function : NULL;
    if (status) *status = best ? FOUND : known ? VERSION_TOO_OLD : NOT_FOUND;
    return best ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                    int *status) {
    const CUresult result = find(name, out, version, flags, status);
    return status && result == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : result;
}

EXPORT CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
    return find(name, out, version, flags, NULL);
}
