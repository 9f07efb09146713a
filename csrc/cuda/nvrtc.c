/* Compiles CUDA C++ to PTX, through the cache on disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "gpu.h"
#include "includes.h"
#include "nvrtc_library.h"

typedef struct compilation {
    const char *source, *file_name, *entry;
    const nvrtc_header *headers;
    int n_headers;
    const char *const *options;
    int n_options;
} compilation;

/* Hashes the length first, so that different lists of texts never hash the same bytes. */
static void add_text(sha256 *s, const char *text) {
    uint64_t bytes = strlen(text);
    sha256_add(s, &bytes, sizeof bytes);
    sha256_add(s, text, bytes);
}

static void key_of(const compilation *c, int version, uint8_t key[SHA256_BYTES]) {
    int numbers[] = {version, c->n_headers, c->n_options};
    sha256 s;
    sha256_start(&s);
    sha256_add(&s, numbers, sizeof numbers);
    add_text(&s, c->source);
    add_text(&s, c->file_name);
    add_text(&s, c->entry ? c->entry : "");
    for (int i = 0; i < c->n_headers; i++) {
        add_text(&s, c->headers[i].name);
        add_text(&s, c->headers[i].text);
    }
    for (int i = 0; i < c->n_options; i++)
        add_text(&s, c->options[i]);
    sha256_finish(&s, key);
}

/* The key does not cover files, so compilations that may read files are not cached. */
static bool can_be_cached(const compilation *c) {
    for (int i = 0; i < c->n_options; i++) {
        const char *option = c->options[i];
        if (!strncmp(option, "-include", 8) || strstr(option, "pre-include") ||
            strstr(option, "pch"))
            return false;
    }
    for (int i = 0; i < c->n_headers; i++)
        if (!includes_only(c->headers[i].text, c->headers, c->n_headers)) return false;
    return includes_only(c->source, c->headers, c->n_headers);
}

static smk_code fail(const nvrtc_library *n, nvrtcResult result, const compilation *c,
                     smk_status *status) {
    smk_code code = result == NVRTC_ERROR_OUT_OF_MEMORY ? SMK_MEMORY : SMK_COMPILE;
    return smk_fail(status, code, "NVRTC %d.%d could not compile \"%s\": %s", n->version / 1000,
                    n->version % 1000 / 10, c->file_name, n->nvrtcGetErrorString(result));
}

enum { MAX_LOG = 1 << 18 }; /* characters; an error in templates may quote very long types */

/* Sets *log, which the caller frees. */
static smk_code fail_with_log(const nvrtc_library *n, nvrtcProgram program, nvrtcResult result,
                              const compilation *c, char **log, smk_status *status) {
    size_t bytes = 0;
    if (n->nvrtcGetProgramLogSize(program, &bytes) == NVRTC_SUCCESS) *log = calloc(1, bytes + 1);
    if (*log && n->nvrtcGetProgramLog(program, *log) != NVRTC_SUCCESS) **log = '\0';
    if (*log && bytes > MAX_LOG) (*log)[MAX_LOG] = '\0';
    /* __nv_name_map is the virtual file in which NVRTC resolves name expressions. */
    if (c->entry && *log && strstr(*log, "__nv_name_map"))
        return smk_fail(status, SMK_VALUE,
                        "\"%s\" has no kernel %s; give its name as C++ code beside it would, with "
                        "namespaces and template arguments. NVRTC says:",
                        c->file_name, c->entry);
    return fail(n, result, c, status);
}

static smk_code create_program(const nvrtc_library *n, const compilation *c, nvrtcProgram *out,
                               smk_status *status) {
    size_t count = (size_t)c->n_headers;
    const char **lists = calloc(2 * count + 1, sizeof *lists);
    if (!lists) return smk_fail_memory(status, 2 * count * sizeof *lists, "the list of headers");
    const char **names = lists, **texts = lists + count;
    for (size_t i = 0; i < count; i++) {
        names[i] = c->headers[i].name;
        texts[i] = c->headers[i].text;
    }
    nvrtcResult result =
        n->nvrtcCreateProgram(out, c->source, c->file_name, c->n_headers, texts, names);
    free(lists);
    return result ? fail(n, result, c, status) : SMK_OK;
}

static smk_code compile(const nvrtc_library *n, const compilation *c, char **ptx, size_t *size,
                        smk_status *status) {
    nvrtcProgram program = NULL;
    const char *name = NULL;
    char *text = NULL;
    size_t bytes = 0; /* with the NUL */
    smk_code code = create_program(n, c, &program, status);
    if (code) return code;

    nvrtcResult result = NVRTC_SUCCESS;
    if (c->entry) result = n->nvrtcAddNameExpression(program, c->entry);
    if (!result) result = n->nvrtcCompileProgram(program, c->n_options, c->options);
    if (!result) result = n->nvrtcGetPTXSize(program, &bytes);
    if (!result && c->entry) result = n->nvrtcGetLoweredName(program, c->entry, &name);
    if (result) {
        code = fail_with_log(n, program, result, c, ptx, status);
        goto done;
    }
    const size_t line = name ? strlen(NVRTC_ENTRY_LINE) + strlen(name) + 1 : 0;
    text = calloc(1, line + bytes + 1);
    if (!text) {
        code = smk_fail_memory(status, line + bytes + 1, "PTX");
        goto done;
    }
    if (name) snprintf(text, line + 1, NVRTC_ENTRY_LINE "%s\n", name);
    if ((result = n->nvrtcGetPTX(program, text + line))) {
        code = fail(n, result, c, status);
        free(text);
        goto done;
    }
    *ptx = text;
    *size = strlen(text);

done:
    n->nvrtcDestroyProgram(&program);
    return code;
}

smk_code nvrtc_compile(const char *source, const char *file_name, const char *entry,
                       const nvrtc_header *headers, int n_headers, const char *const *options,
                       int n_options, const char *cache_directory, char **ptx, size_t *size,
                       smk_status *status) {
    const compilation c = {source, file_name, entry, headers, n_headers, options, n_options};
    const nvrtc_library *n = nvrtc_open(status);
    if (!n) return status->code;

    if (!cache_directory || !can_be_cached(&c)) return compile(n, &c, ptx, size, status);
    uint8_t key[SHA256_BYTES];
    key_of(&c, n->version, key);
    if ((*ptx = cache_load(cache_directory, key, size))) return SMK_OK;
    smk_code code = compile(n, &c, ptx, size, status);
    if (code == SMK_OK) cache_store(cache_directory, key, *ptx, *size);
    return code;
}
