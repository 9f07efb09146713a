/* A least-recently-used cache of loaded modules: loading one takes milliseconds, compiling PTX
 * seconds.
 */
#include "module.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_MODULES = 256, LOG_BYTES = 3000 };

/* A kernel, cached: the driver's look-up takes longer than the rest of an enqueued call. */
typedef struct function {
    char *entry;
    CUfunction handle;
    size_t shared_bytes; /* max dynamic shared memory that it has opted in to */
    int virtual_sm;
    struct function *next;
} function;

struct module {
    char *key; /* NULL: not in the cache; unloaded when `holders` becomes 0 */
    CUmodule handle;
    function *functions;
    int holders;
    bool permanent; /* never unloaded: one of `holders` is never released */
    module *next;
};

/* Resources of an interrupted call, to be released after event `done`, when its kernels have ended.
 * The streams are retained too: a new stream can get the hardware queue of a destroyed one, and
 * would be blocked there by kernels that still run. */
typedef struct retired {
    module *module; /* or NULL */
    CUstream streams[MAX_OWN_STREAMS];
    int n_streams;
    texture_set *textures; /* or NULL */
    CUevent done;
    struct retired *next;
} retired;

static smk_code load(device *d, const smk_image *image, CUmodule *out, smk_status *status) {
    char log[LOG_BYTES] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    CUresult result = d->cu->cuModuleLoadDataEx(out, image->data, 2, options, values);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU && image->ptx)
        result = d->cu->cuModuleLoadDataEx(out, image->ptx, 2, options, values);
    if (!result) return SMK_OK;

    smk_status what = {0};
    device_fail(d, result, SMK_KERNEL_IMAGE, &what,
                "cuModuleLoadDataEx of image \"%s\" (%zu bytes) on device %d (%s, sm_%d, driver "
                "for CUDA %d.%d)",
                image->key ? image->key : "without a key", image->size, d->info.ordinal,
                d->info.name, d->info.sm, d->cu->version / 1000, d->cu->version % 1000 / 10);
    return smk_fail(status, what.code, "%s%s%s", what.message, *log ? "\n" : "", log);
}

static void unload(device *d, module *m) {
    d->cu->cuModuleUnload(m->handle);
    while (m->functions) {
        function *f = m->functions;
        m->functions = f->next;
        free(f->entry);
        free(f);
    }
    free(m->key);
    free(m);
}

/* ---- with modules_mutex held ---- */

static void drop_holder(device *d, module *m) {
    if (--m->holders == 0 && !m->key) unload(d, m);
}

static void release_retired(device *d) {
    for (retired **link = &d->retired; *link;) {
        retired *r = *link;
        if (d->cu->cuEventQuery(r->done) == CUDA_ERROR_NOT_READY) {
            link = &r->next;
            continue;
        }
        *link = r->next;
        d->cu->cuEventDestroy(r->done);
        while (r->n_streams)
            d->cu->cuStreamDestroy(r->streams[--r->n_streams]);
        texture_set_destroy(d, r->textures);
        if (r->module) drop_holder(d, r->module);
        free(r);
    }
}

/* Unloads the least recently used modules without holders. */
static void evict(device *d) {
    int n = 0;
    for (module **link = &d->modules; *link; n++) {
        module *m = *link;
        if (n < MAX_MODULES || m->holders) {
            link = &m->next;
        } else {
            *link = m->next;
            unload(d, m);
        }
    }
}

static module *find(device *d, const char *key) {
    for (module **link = &d->modules; *link; link = &(*link)->next) {
        module *m = *link;
        if (strcmp(m->key, key)) continue;
        *link = m->next;
        m->next = d->modules;
        return d->modules = m;
    }
    return NULL;
}

static smk_code load_new(device *d, const smk_image *image, module **out, smk_status *status) {
    module *m = calloc(1, sizeof *m);
    if (!m) return smk_fail_memory(status, sizeof *m, "a module");
    smk_code code = SMK_OK;
    if (image->key && !(m->key = strdup(image->key)))
        code = smk_fail_memory(status, strlen(image->key) + 1, "the key of a module");
    if (!code) code = load(d, image, &m->handle, status);
    if (code) {
        free(m->key);
        free(m);
        return code;
    }
    if (m->key) {
        m->next = d->modules;
        d->modules = m;
        evict(d);
    }
    *out = m;
    return SMK_OK;
}

/* ---- without ---- */

smk_code module_acquire(device *d, const smk_image *image, module **out, smk_status *status) {
    pthread_mutex_lock(&d->modules_mutex);
    if (d->retired) release_retired(d);
    module *m = image->key ? find(d, image->key) : NULL;
    smk_code code = m ? SMK_OK : load_new(d, image, &m, status);
    if (!code) {
        m->holders++;
        *out = m;
    }
    pthread_mutex_unlock(&d->modules_mutex);
    return code;
}

void module_release(device *d, module *m) {
    pthread_mutex_lock(&d->modules_mutex);
    drop_holder(d, m);
    pthread_mutex_unlock(&d->modules_mutex);
}

CUmodule module_handle(const module *m) {
    return m->handle;
}

void module_keep(device *d, module *m) {
    pthread_mutex_lock(&d->modules_mutex);
    if (m->permanent)
        drop_holder(d, m);
    else
        m->permanent = true; /* the caller's reference is never released */
    pthread_mutex_unlock(&d->modules_mutex);
}

void module_release_after(device *d, module *m, CUstream stream, const CUstream *own, int n_own,
                          texture_set *textures) {
    /* If recording this fails, all stays held: code that may still run must not be unloaded. */
    retired *r = malloc(sizeof *r);
    if (!r) return;
    *r = (retired){.module = m, .n_streams = n_own, .textures = textures};
    memcpy(r->streams, own, (size_t)n_own * sizeof *own);
    if (d->cu->cuEventCreate(&r->done, CU_EVENT_DISABLE_TIMING)) {
        free(r);
        return;
    }
    if (d->cu->cuEventRecord(r->done, stream)) {
        d->cu->cuEventDestroy(r->done);
        free(r);
        return;
    }
    pthread_mutex_lock(&d->modules_mutex);
    r->next = d->retired;
    d->retired = r;
    pthread_mutex_unlock(&d->modules_mutex);
}

/* More than 48 KiB of shared memory, static part included, needs an opt-in per function. The limit
 * of a function is only raised, never lowered, so threads with different sizes do not undo each
 * other's opt-in. */
static smk_code allow_shared(device *d, function *f, size_t shared_bytes, smk_status *status) {
    const driver *cu = d->cu;
    int fixed = 0;
    if (shared_bytes <= f->shared_bytes) return SMK_OK;
    CUresult result =
        cu->cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f->handle);
    if (result)
        return device_fail(d, result, SMK_LAUNCH, status, "cuFuncGetAttribute of kernel \"%s\"",
                           f->entry);
    if (shared_bytes + (size_t)fixed > d->info.shared_bytes_optin)
        return smk_fail(status, SMK_LAUNCH,
                        "kernel \"%s\" needs %zu bytes of dynamic shared memory besides its %d "
                        "static ones, but a block on device %d (%s) has at most %zu. Use a "
                        "smaller tile, fewer stages or no padding",
                        f->entry, shared_bytes, fixed, d->info.ordinal, d->info.name,
                        d->info.shared_bytes_optin);
    result = cu->cuFuncSetAttribute(f->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    (int)shared_bytes);
    if (result)
        return device_fail(d, result, SMK_LAUNCH, status,
                           "cuFuncSetAttribute of kernel \"%s\" for %zu bytes of dynamic shared "
                           "memory",
                           f->entry, shared_bytes);
    f->shared_bytes = shared_bytes;
    return SMK_OK;
}

static smk_code find_new(device *d, module *m, const char *entry, function *f, smk_status *status) {
    int allowed = 0;
    CUresult result = d->cu->cuModuleGetFunction(&f->handle, m->handle, entry);
    if (result == CUDA_ERROR_NOT_FOUND)
        return smk_fail(status, SMK_KERNEL_IMAGE,
                        "image \"%s\" has no kernel \"%s\" (cuModuleGetFunction: "
                        "CUDA_ERROR_NOT_FOUND). Pass the name as it is in the PTX: mangled, "
                        "unless the source declares it extern \"C\"",
                        m->key ? m->key : "without a key", entry);
    if (result)
        return device_fail(d, result, SMK_KERNEL_IMAGE, status,
                           "cuModuleGetFunction of kernel \"%s\"", entry);
    result = d->cu->cuFuncGetAttribute(&allowed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       f->handle);
    if (!result)
        result =
            d->cu->cuFuncGetAttribute(&f->virtual_sm, CU_FUNC_ATTRIBUTE_PTX_VERSION, f->handle);
    if (result)
        return device_fail(d, result, SMK_LAUNCH, status, "cuFuncGetAttribute of kernel \"%s\"",
                           entry);
    f->shared_bytes = (size_t)allowed;
    f->entry = strdup(entry);
    return f->entry ? SMK_OK : smk_fail_memory(status, strlen(entry) + 1, "a kernel's name");
}

/* The caller holds modules_mutex. NULL on failure. */
static function *find_function(device *d, module *m, const char *entry, smk_status *status) {
    function *f = m->functions;
    while (f && strcmp(f->entry, entry))
        f = f->next;
    if (f) return f;
    if (!(f = calloc(1, sizeof *f))) {
        smk_fail_memory(status, sizeof *f, "a kernel");
    } else if (find_new(d, m, entry, f, status)) {
        free(f);
        f = NULL;
    } else {
        f->next = m->functions;
        m->functions = f;
    }
    return f;
}

smk_code module_function(device *d, module *m, const char *entry, size_t shared_bytes,
                         CUfunction *out, int *virtual_sm, smk_status *status) {
    pthread_mutex_lock(&d->modules_mutex);
    function *f = find_function(d, m, entry, status);
    smk_code code = f ? allow_shared(d, f, shared_bytes, status) : status->code;
    if (!code) {
        *out = f->handle;
        *virtual_sm = f->virtual_sm;
    }
    pthread_mutex_unlock(&d->modules_mutex);
    return code;
}
