/* Finds libnvrtc: first at the path given by Python, which knows where wheels install it, then by
 * its system names.
 */
#include "nvrtc_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

static const char *const system_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define X(function, result, arguments) {#function, offsetof(nvrtc_library, function)},
    NVRTC_FUNCTIONS(X)
#undef X
};

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static nvrtc_library opened; /* guarded by `opening`, as are the next two */
static bool is_open;
static char *first_path;

void nvrtc_set_library(const char *path) {
    char *copy = path ? strdup(path) : NULL;
    pthread_mutex_lock(&opening);
    free(first_path);
    first_path = copy;
    pthread_mutex_unlock(&opening);
}

/* Opens libnvrtc-builtins of the library's own folder. NVRTC opens it by its name alone, so without
 * this it is found in the system's folders only, but not in a wheel's. */
static void open_builtins(const char *path, int major, int minor) {
    char file[PATH_MAX];
    const char *end = strrchr(path, '/');
    if (!end) return; /* a system name: so is that of the builtins */
    const int n = snprintf(file, sizeof file, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(end - path),
                           path, major, minor);
    if (n > 0 && (size_t)n < sizeof file) dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

/* On failure appends the path and the reason to `tried`. */
static bool open_library(const char *path, nvrtc_library *out, char *tried, size_t size) {
    size_t used = strlen(tried);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(tried + used, size - used, "\n  %s: %s", path, dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol) {
            snprintf(tried + used, size - used, "\n  %s: lacks %s", path, functions[i].name);
            dlclose(library);
            return false;
        }
        memcpy((char *)out + functions[i].offset, &symbol, sizeof symbol);
    }
    int major = 0, minor = 0;
    out->nvrtcVersion(&major, &minor);
    out->version = 1000 * major + 10 * minor;
    open_builtins(path, major, minor);
    return true;
}

const nvrtc_library *nvrtc_open(smk_status *status) {
    char tried[2000] = "";
    pthread_mutex_lock(&opening);
    if (!is_open && first_path) is_open = open_library(first_path, &opened, tried, sizeof tried);
    for (size_t i = 0; i < sizeof system_names / sizeof *system_names && !is_open; i++)
        is_open = open_library(system_names[i], &opened, tried, sizeof tried);
    const nvrtc_library *library = is_open ? &opened : NULL;
    pthread_mutex_unlock(&opening);
    if (!library)
        smk_fail(status, SMK_COMPILE,
                 "compiling CUDA C needs NVRTC, which was not found. Install it with: pip install "
                 "'.[nvrtc]' in the clone. Tried:%s",
                 tried);
    return library;
}

int nvrtc_version(smk_status *why) {
    smk_status unused = {0};
    const nvrtc_library *library = nvrtc_open(why ? why : &unused);
    return library ? library->version : 0;
}
