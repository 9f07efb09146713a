/* The linker: PTX in, PTX out. What is linked is one text with the heads of all but the first left
 * out. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct linker {
    handle head;
    joined_ptx joined;
    bool device_runtime; /* its library is linked */
};

enum { INPUT_PTX = 1, INPUT_LIBRARY = 4, N_INPUTS = 6 };

/* What kernels call of libcudadevrt, which has machine code only, and the emulator does not have
 * by itself: the barrier of a cooperative grid. The handle is the address of the grid's workspace,
 * whose second word counts blocks: the last one to arrive flips the highest bit. */
static const char device_runtime[] =
    ".visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)\n"
    "{\n"
    ".reg .b32 %high, %low; .reg .b64 %at;\n"
    "mov.u32 %high, %envreg1;\n"
    "mov.u32 %low, %envreg2;\n"
    "mov.b64 %at, {%low, %high};\n"
    "st.param.b64 [handle], %at;\n"
    "ret;\n"
    "}\n"
    ".visible .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)\n"
    "{\n"
    ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %at;\n"
    "ld.param.u64 %at, [handle];\n"
    "barrier.sync 0;\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z;\n"
    "or.b32 %r0, %r0, %r1; or.b32 %r0, %r0, %r2;\n"
    "setp.ne.u32 %p, %r0, 0;\n"
    "@%p bra ARRIVED;\n"
    "mov.u32 %r3, %nctaid.x; mov.u32 %r4, %nctaid.y; mov.u32 %r5, %nctaid.z;\n"
    "mul.lo.u32 %r3, %r3, %r4; mul.lo.u32 %r3, %r3, %r5;\n"
    "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.z;\n"
    "or.b32 %r0, %r0, %r1; or.b32 %r0, %r0, %r2;\n"
    "setp.ne.u32 %p, %r0, 0;\n"
    "sub.u32 %r3, 0x80000001, %r3;\n"
    "selp.u32 %r3, 1, %r3, %p;\n"
    "atom.acq_rel.gpu.add.u32 %r4, [%at+4], %r3;\n"
    "WAIT:\n"
    "ld.acquire.gpu.u32 %r5, [%at+4];\n"
    "xor.b32 %r5, %r5, %r4;\n"
    "setp.ge.s32 %p, %r5, 0;\n"
    "@%p bra WAIT;\n"
    "ARRIVED:\n"
    "barrier.sync 0;\n"
    "st.param.b32 [error], 0;\n"
    "ret;\n"
    "}\n";

/* Whether a line is of a head: only the first counts. */
static bool is_head(const char *line) {
    static const char *const heads[] = {".version", ".target", ".address_size"};
    while (*line == ' ' || *line == '\t')
        line++;
    for (size_t k = 0; k < sizeof heads / sizeof *heads; k++)
        if (!strncmp(line, heads[k], strlen(heads[k]))) return true;
    return false;
}

/* Copies a line of PTX. `shift` is added to its numbers of files; *last is the highest of them. */
static char *copy_line(char *to, const char *line, const char *end, uint32_t shift,
                       uint32_t *last) {
    static const char *const before[] = {".file", ".loc", "inlined_at"};
    while (line < end) {
        const size_t blanks = strspn(line, " \t\n"), word = strcspn(line + blanks, " \t\n");
        const char *at = line + blanks;
        bool number = false;
        for (size_t k = 0; k < sizeof before / sizeof *before; k++)
            number |= strlen(before[k]) == word && !memcmp(at, before[k], word);
        const size_t n =
            (size_t)(end - line) < blanks + word ? (size_t)(end - line) : blanks + word;
        memcpy(to, line, n);
        to += n, line += n;
        if (!number || (*line != ' ' && *line != '\t')) continue;
        char *rest;
        const uint32_t file = (uint32_t)strtoul(line, &rest, 10) + shift;
        if (rest == line || rest > end) continue;
        if (file > *last) *last = file;
        to += sprintf(to, " %u", file);
        line = rest;
    }
    return to;
}

CUresult ptx_join(joined_ptx *t, const char *ptx) {
    enum { GROWTH = 3 }; /* at most: ".loc 1" can become ".loc 4294967295" */
    char *joined = realloc(t->text, t->bytes + GROWTH * strlen(ptx) + 2);
    if (!joined) return CUDA_ERROR_OUT_OF_MEMORY;
    const bool first = !t->bytes;
    const uint32_t shift = t->files;
    char *to = joined + t->bytes;
    for (const char *line = ptx; *line;) {
        const char *newline = strchr(line, '\n'), *end = newline ? newline + 1 : strchr(line, 0);
        const char *word = line + strspn(line, " \t");
        if (!strncmp(word, ".file", 5) || !strncmp(word, ".loc\t", 5) || !strncmp(word, ".loc ", 5))
            to = copy_line(to, line, end, shift, &t->files);
        else if (first || !is_head(line))
            memcpy(to, line, (size_t)(end - line)), to += end - line;
        line = end;
    }
    *to++ = '\n';
    *to = 0;
    t->text = joined;
    t->bytes = (size_t)(to - joined);
    return CUDA_SUCCESS;
}

static CUresult create(CUlinkState *out) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = handle_new(HANDLE_LINKER, sizeof **out);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuLinkCreate_v2(unsigned n, int *options, void **values, CUlinkState *out) {
    (void)n, (void)options, (void)values;
    DRIVER_CALL(cuLinkCreate, NEED_CONTEXT, create(out));
}

/* Whether an archive is libcudadevrt.a, by the name of its only member. */
static bool is_device_runtime(const char *archive, size_t bytes) {
    static const char magic[] = "!<arch>\n", member[] = "cuda_device_runtime.o/";
    const size_t n = sizeof magic - 1;
    return bytes > n && !memcmp(archive, magic, n) &&
           memmem(archive, bytes, member, sizeof member - 1);
}

/* `data` has `bytes`, and perhaps no NUL. */
static CUresult add(CUlinkState l, int type, const void *data, size_t bytes) {
    if (!handle_is(l, HANDLE_LINKER)) return CUDA_ERROR_INVALID_HANDLE;
    if (!data || !bytes || type < 0 || type >= N_INPUTS) return CUDA_ERROR_INVALID_VALUE;
    if (type == INPUT_LIBRARY && is_device_runtime(data, bytes)) {
        l->device_runtime = true;
        return CUDA_SUCCESS;
    }
    if (type != INPUT_PTX) {
        report_misuse("module", NULL, "%s: the program links machine code; link PTX",
                      driver_call());
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    char *copy = calloc(1, bytes + 1);
    if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, data, bytes);
    const CUresult result = ptx_join(&l->joined, copy);
    free(copy);
    return result;
}

EXPORT CUresult cuLinkAddData_v2(CUlinkState l, int type, void *data, size_t bytes,
                                 const char *name, unsigned n, int *options, void **values) {
    (void)name, (void)n, (void)options, (void)values;
    DRIVER_CALL(cuLinkAddData, NEED_CONTEXT, add(l, type, data, bytes));
}

static CUresult add_file(CUlinkState l, int type, const char *name) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    size_t bytes;
    char *data = module_file(name, &bytes);
    if (!data) return CUDA_ERROR_FILE_NOT_FOUND;
    const CUresult result = add(l, type, data, bytes);
    free(data);
    return result;
}

EXPORT CUresult cuLinkAddFile_v2(CUlinkState l, int type, const char *name, unsigned n,
                                 int *options, void **values) {
    (void)n, (void)options, (void)values;
    DRIVER_CALL(cuLinkAddFile, NEED_CONTEXT, add_file(l, type, name));
}

static CUresult complete(CUlinkState l, void **out, size_t *bytes) {
    if (!handle_is(l, HANDLE_LINKER)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !l->joined.bytes) return CUDA_ERROR_INVALID_VALUE;
    if (l->device_runtime && strstr(l->joined.text, "cudaCG")) {
        const CUresult result = ptx_join(&l->joined, device_runtime);
        if (result) return result;
    }
    l->device_runtime = false;
    *out = l->joined.text;
    if (bytes) *bytes = l->joined.bytes + 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkComplete(CUlinkState l, void **out, size_t *bytes) {
    DRIVER_CALL(cuLinkComplete, NEED_CONTEXT, complete(l, out, bytes));
}

static CUresult destroy(CUlinkState l) {
    if (!handle_is(l, HANDLE_LINKER)) return CUDA_ERROR_INVALID_HANDLE;
    free(l->joined.text);
    handle_free(l, HANDLE_LINKER);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkDestroy(CUlinkState l) {
    DRIVER_CALL(cuLinkDestroy, NEED_CONTEXT, destroy(l));
}
