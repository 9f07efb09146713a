/* Modules, libraries and functions. A library is a module, and a kernel of a library is a function:
 * the runtime uses the handles in place of each other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static struct {
    CUmodule last; /* that ran, or was loaded */
    uint64_t n;
} modules;

CUmodule module_last(void) {
    return modules.last && handle_is(modules.last, HANDLE_MODULE) ? modules.last : NULL;
}

void module_ran(CUmodule module) {
    modules.last = module;
}

/* ---- loading ---- */

static CUresult code_of(smk_code code) {
    switch (code) {
    case SMK_OK: return CUDA_SUCCESS;
    case SMK_MEMORY: return CUDA_ERROR_OUT_OF_MEMORY;
    default: return CUDA_ERROR_INVALID_PTX;
    }
}

static void report_image(const char *message) {
    report_misuse("module", NULL, "%s: %s", driver_call(), message);
}

/* Managed variables are found by the attribute in the text: the host uses them by the address that
 * kernels use, so all .global variables of such a module are in managed memory. */
static CUresult place_variables(CUmodule m, bool managed) {
    const emu_memory globals = emu_variables(m->loaded, false);
    const emu_memory constants = emu_variables(m->loaded, true);
    CUresult result = CUDA_SUCCESS;
    size_t offset;
    if (globals.bytes && managed) {
        result = memory_new(MEMORY_MANAGED, globals.bytes, 1, &m->globals);
        if (result) return result;
        allocation *a = memory_find(m->globals, &offset);
        memory_set_variables(a);
        emu_move_globals(m->loaded, a->host);
    } else if (globals.bytes) {
        result = memory_window(MEMORY_VARIABLES, globals.host, globals.bytes, 0, &m->globals);
    }
    if (!result && constants.bytes)
        result = memory_window(MEMORY_VARIABLES, constants.host, constants.bytes, 0, &m->constants);
    return result;
}

/* 80 of ".target sm_80". */
static int target_of(const char *ptx) {
    const char *target = strstr(ptx, ".target");
    const char *number = target ? strstr(target, "sm_") : NULL;
    return number ? atoi(number + 3) : 0;
}

static CUresult load(const char *ptx, size_t bytes, const void *image, CUmodule *out) {
    smk_status status = {0};
    CUmodule m = handle_new(HANDLE_MODULE, sizeof *m);
    CUresult result = m ? code_of(emu_open(ptx, bytes, NULL, NULL, &m->loaded, &status))
                        : CUDA_ERROR_OUT_OF_MEMORY;
    if (!result) result = place_variables(m, strstr(ptx, ".attribute(.managed)") != NULL);
    if (result && status.message[0]) report_image(status.message);
    if (m) {
        m->target = target_of(ptx);
        m->of_object = image_is_wrapped(image);
        m->of_text = image_is_text(image);
    }
    if (result) {
        if (m) module_drop(m);
        return result;
    }
    m->id = ++modules.n;
    modules.last = m;
    *out = m;
    return CUDA_SUCCESS;
}

CUresult module_for_device(CUresult result, CUmodule *out) {
    const int sm = device_attribute(75) * 10 + device_attribute(76);
    char message[256];
    if (result || !(*out)->of_text || (*out)->target <= sm) return result;
    snprintf(message, sizeof message,
             "the PTX is for sm_%d, newer than this GPU; compile it for sm_%d, or choose a newer "
             "--gpu",
             (*out)->target, sm);
    report_image(message);
    module_drop(*out);
    *out = NULL;
    return CUDA_ERROR_INVALID_PTX;
}

/* Without code for this GPU a module has no kernels. If that is allowed, their use is the error. */
static CUresult open_image(const void *image, bool without_code, CUmodule *out) {
    static const char nothing[] = ".version 6.0\n.target sm_50\n.address_size 64\n";
    char message[512], *ptx = NULL;
    size_t bytes;
    CUresult result = image_ptx(image, &ptx, &bytes, message, sizeof message);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU && without_code) {
        result = load(nothing, strlen(nothing), image, out);
        if (!result) (*out)->missing = strdup(message);
    } else if (result && message[0]) {
        report_image(message);
    } else if (!result) {
        result = load(ptx, bytes, image, out);
    }
    free(ptx);
    return result;
}

CUresult module_new(const void *image, CUmodule *out) {
    return image && out ? open_image(image, false, out) : CUDA_ERROR_INVALID_VALUE;
}

/* A GPU's driver looks for the code of nvcc's objects when a kernel is first used, so a program can
 * be linked with libraries whose kernels it does not launch. */
CUresult library_new(const void *image, CUlibrary *out) {
    return image && out ? open_image(image, image_is_wrapped(image), out)
                        : CUDA_ERROR_INVALID_VALUE;
}

char *module_file(const char *name, size_t *bytes) {
    FILE *file = fopen(name, "rb");
    if (!file) return NULL;
    char *text = NULL;
    size_t n = 0, capacity = 0;
    for (size_t got = 1; got;) {
        if (capacity - n < 4096) {
            char *larger = realloc(text, capacity = 2 * capacity + 8192);
            if (!larger) {
                free(text);
                text = NULL;
                break;
            }
            text = larger;
        }
        got = fread(text + n, 1, capacity - n - 1, file);
        n += got;
    }
    fclose(file);
    if (text) text[n] = 0;
    *bytes = n;
    return text;
}

CUresult module_read(const char *name, CUmodule *out) {
    size_t bytes;
    if (!name || !*name || !out) return CUDA_ERROR_INVALID_VALUE;
    char *text = module_file(name, &bytes);
    if (!text) return CUDA_ERROR_FILE_NOT_FOUND;
    const CUresult result = module_new(text, out);
    free(text);
    return result;
}

CUresult module_drop(CUmodule m) {
    if (!handle_is(m, HANDLE_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    for (size_t k = 0; k < m->n_functions; k++) {
        emu_signature_free(&m->functions[k]->signature);
        handle_free(m->functions[k], HANDLE_FUNCTION);
    }
    free(m->functions);
    free(m->missing);
    if (m->loaded) emu_close(m->loaded);
    if (m->globals) memory_drop_window(m->globals);
    if (m->constants) memory_drop_window(m->constants);
    if (modules.last == m) modules.last = NULL;
    handle_free(m, HANDLE_MODULE);
    return CUDA_SUCCESS;
}

/* ---- what a module has ---- */

static CUresult add_function(CUmodule m, const char *name, CUfunction *out) {
    smk_status status = {0};
    CUfunction *larger = realloc(m->functions, (m->n_functions + 1) * sizeof *larger);
    if (!larger) return CUDA_ERROR_OUT_OF_MEMORY;
    m->functions = larger;
    CUfunction f = handle_new(HANDLE_FUNCTION, sizeof *f);
    if (!f) return CUDA_ERROR_OUT_OF_MEMORY;
    if (emu_module_signature(m->loaded, name, &f->signature, &status)) {
        emu_signature_free(&f->signature);
        handle_free(f, HANDLE_FUNCTION);
        if (!m->missing) return CUDA_ERROR_NOT_FOUND;
        report_misuse("module", NULL, "%s: kernel %s: %s", driver_call(), name, m->missing);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    f->module = m;
    f->examined = -1;
    f->carveout = -1;
    m->functions[m->n_functions++] = f;
    *out = f;
    return CUDA_SUCCESS;
}

CUresult module_function(CUmodule m, const char *name, CUfunction *out) {
    if (!handle_is(m, HANDLE_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    if (!name || !*name || !out) return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < m->n_functions; k++)
        if (!strcmp(m->functions[k]->signature.entry, name)) {
            *out = m->functions[k];
            return CUDA_SUCCESS;
        }
    return add_function(m, name, out);
}

CUresult module_global(CUmodule m, const char *name, CUdeviceptr *address, size_t *bytes) {
    emu_variable found;
    if (!handle_is(m, HANDLE_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    if (!name || (!address && !bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (!emu_find_variable(m->loaded, name, &found)) return CUDA_ERROR_NOT_FOUND;
    if (address) *address = (found.constant ? m->constants : m->globals) + found.offset;
    if (bytes) *bytes = found.bytes;
    return CUDA_SUCCESS;
}

/* ---- attributes of functions ---- */

enum {
    MAX_THREADS_PER_BLOCK,
    SHARED_BYTES,
    CONST_BYTES,
    LOCAL_BYTES,
    REGISTERS,
    PTX_VERSION,
    BINARY_VERSION,
    CACHE_MODE,
    MAX_DYNAMIC_SHARED,
    CARVEOUT,
    CLUSTER_REQUIRED,
    CLUSTER_WIDTH,
    CLUSTER_HEIGHT,
    CLUSTER_DEPTH,
    NON_PORTABLE_CLUSTER,
    CLUSTER_SCHEDULING,
    N_ATTRIBUTES
};

enum { SHARED_DEFAULT = 48 * 1024, SHARED_OPTIN_ATTRIBUTE = 97, CC_MAJOR = 75, CC_MINOR = 76 };

CUresult function_attribute(CUfunction f, int attribute, int *out) {
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || attribute < 0 || attribute >= N_ATTRIBUTES) return CUDA_ERROR_INVALID_VALUE;
    const int sm = device_attribute(CC_MAJOR) * 10 + device_attribute(CC_MINOR);
    const int statics = (int)f->signature.static_shared_bytes;
    switch (attribute) {
    case MAX_THREADS_PER_BLOCK: *out = (int)f->signature.max_threads; break;
    case SHARED_BYTES: *out = statics; break;
    case CONST_BYTES: *out = (int)emu_variables(f->module->loaded, true).bytes; break;
    case LOCAL_BYTES: *out = (int)f->signature.local_bytes; break;
    case REGISTERS:
        *out = f->signature.live_registers < 255 ? (int)f->signature.live_registers : 255;
        break;
    case PTX_VERSION: *out = f->module->target; break;
    case BINARY_VERSION: *out = sm; break;
    case MAX_DYNAMIC_SHARED:
        *out = f->max_dynamic_shared      ? (int)f->max_dynamic_shared
               : statics < SHARED_DEFAULT ? SHARED_DEFAULT - statics
                                          : 0;
        break;
    case CARVEOUT: *out = f->carveout; break;
    case CLUSTER_WIDTH:
    case CLUSTER_HEIGHT:
    case CLUSTER_DEPTH: *out = f->cluster[attribute - CLUSTER_WIDTH]; break;
    case NON_PORTABLE_CLUSTER: *out = f->non_portable_cluster; break;
    default: *out = 0; break;
    }
    return CUDA_SUCCESS;
}

CUresult function_set_attribute(CUfunction f, int attribute, int value) {
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    const int64_t most = device_attribute(SHARED_OPTIN_ATTRIBUTE);
    switch (attribute) {
    case MAX_DYNAMIC_SHARED:
        if (value < 0 || value + (int64_t)f->signature.static_shared_bytes > most)
            return CUDA_ERROR_INVALID_VALUE;
        f->max_dynamic_shared = (uint32_t)value;
        return CUDA_SUCCESS;
    case CARVEOUT:
        if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
        f->carveout = value;
        return CUDA_SUCCESS;
    case CLUSTER_WIDTH:
    case CLUSTER_HEIGHT:
    case CLUSTER_DEPTH:
        if (value < 0) return CUDA_ERROR_INVALID_VALUE;
        f->cluster[attribute - CLUSTER_WIDTH] = value;
        return CUDA_SUCCESS;
    case NON_PORTABLE_CLUSTER: f->non_portable_cluster = value; return CUDA_SUCCESS;
    case CLUSTER_REQUIRED:
    case CLUSTER_SCHEDULING: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}
