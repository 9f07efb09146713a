/* The PTX in a module's image. The format of fat binaries is not documented by NVIDIA; the layout
 * of the headers is as ZLUDA describes it (dark_api, cuda_types/src/dark_api.rs), and as files of
 * nvcc 13.0 have it. Only what is read here is named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decompress.h"
#include "driver.h"

enum { KIND_PTX = 1, KIND_CODE = 2, FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };
static const uint32_t FATBIN_MAGIC = 0xba55ed50;
static const size_t MAX_PTX = 1u << 30;

typedef struct wrapper {
    uint32_t magic, version;
    const void *data;
    const void *const *linked; /* version 2: fat binaries, ended by NULL */
} wrapper;

typedef struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* without this header */
} fatbin;

typedef struct entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes; /* with padding */
    uint32_t compressed_bytes, unused[2], sm;
    uint32_t unused_too[2];
    uint64_t flags, unused_three, plain_bytes;
} entry;

typedef struct choice {
    const unsigned char *best; /* an entry; NULL: none */
    uint32_t best_sm;
    const unsigned char *newer; /* the oldest PTX that this GPU cannot take; NULL: none */
    uint32_t newer_sm;
    bool has_code;     /* there is machine code that this GPU runs */
    uint32_t compiled; /* the newest machine code that there is, in any fat binary */
    uint32_t too_new;  /* the oldest PTX that this GPU cannot take, in any fat binary */
} choice;

static void choose_entry(const unsigned char *at, const entry *e, choice *c) {
    const uint32_t sm = (uint32_t)(device_attribute(75) * 10 + device_attribute(76));
    if (e->kind != KIND_PTX) {
        if (e->kind == KIND_CODE && e->sm <= sm && e->sm / 10 == sm / 10) c->has_code = true;
        if (e->sm > c->compiled) c->compiled = e->sm;
    } else if (e->sm <= sm && (!c->best || e->sm > c->best_sm)) {
        c->best = at;
        c->best_sm = e->sm;
    } else if (e->sm > sm && (!c->newer || e->sm < c->newer_sm)) {
        c->newer = at;
        c->newer_sm = e->sm;
        if (!c->too_new || e->sm < c->too_new) c->too_new = e->sm;
    }
}

/* Of one fat binary. Headers are copied: they may be at any address. */
static void choose(const unsigned char *at, choice *c) {
    *c = (choice){.compiled = c->compiled, .too_new = c->too_new};
    fatbin f;
    memcpy(&f, at, sizeof f);
    if (f.magic != FATBIN_MAGIC || f.header_bytes < sizeof f) return;
    at += f.header_bytes;
    for (uint64_t left = f.bytes; left >= sizeof(entry);) {
        entry e;
        memcpy(&e, at, sizeof e);
        if (e.header_bytes < sizeof e || e.header_bytes > left || e.bytes > left - e.header_bytes)
            return;
        choose_entry(at, &e, c);
        at += e.header_bytes + e.bytes;
        left -= e.header_bytes + e.bytes;
    }
}

static CUresult extract(const unsigned char *at, char **ptx, size_t *bytes, char *message,
                        size_t size) {
    entry e;
    memcpy(&e, at, sizeof e);
    const unsigned char *stored = at + e.header_bytes;
    const bool lz4 = e.flags & FLAG_LZ4, zstd = e.flags & FLAG_ZSTD;
    const uint64_t plain = lz4 || zstd ? e.plain_bytes : e.bytes;
    char *text = plain < MAX_PTX ? calloc(1, plain + 1) : NULL;
    if (!text) return CUDA_ERROR_OUT_OF_MEMORY;
    bool done = e.compressed_bytes <= e.bytes;
    if (zstd)
        done = done && zstd_decompress(stored, e.compressed_bytes, (unsigned char *)text, plain);
    else if (lz4)
        done = done && lz4_decompress(stored, e.compressed_bytes, (unsigned char *)text, plain);
    else
        memcpy(text, stored, plain);
    if (!done) {
        free(text);
        snprintf(message, size, "the compressed PTX of a fat binary is damaged");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *ptx = text;
    *bytes = strlen(text);
    return CUDA_SUCCESS;
}

/* Fat binaries of a program that is compiled in parts and linked: the PTX of all of them. What has
 * machine code only is left out, and a call of it fails. `newer`: PTX that is newer than the GPU,
 * if there is machine code that the GPU would run in its place. */
static CUresult join(const void *const *list, size_t n, bool newer, choice *c, joined_ptx *joined,
                     char *message, size_t size) {
    for (size_t k = 0; k < n; k++) {
        choose(list[k], c);
        const unsigned char *chosen = newer ? (c->has_code ? c->newer : NULL) : c->best;
        if (!chosen) continue;
        char *one = NULL;
        size_t bytes;
        CUresult result = extract(chosen, &one, &bytes, message, size);
        if (result == CUDA_SUCCESS) result = ptx_join(joined, one);
        free(one);
        if (result != CUDA_SUCCESS) {
            free(joined->text);
            return result;
        }
    }
    return CUDA_SUCCESS;
}

/* The newest PTX that the device can compile. Libraries have machine code for many GPUs, and PTX
 * for the newest alone: that is taken if there is no other. */
static CUresult fatbin_ptx(const void *const *list, size_t n, char **ptx, size_t *bytes,
                           char *message, size_t size) {
    choice c = {0};
    joined_ptx joined = {0};
    CUresult result = join(list, n, false, &c, &joined, message, size);
    if (!result && !joined.text) result = join(list, n, true, &c, &joined, message, size);
    if (result) return result;
    if (joined.text) {
        *ptx = joined.text;
        *bytes = joined.bytes;
        return CUDA_SUCCESS;
    }
    if (!c.too_new && !c.compiled)
        snprintf(message, size, "the program's fat binary is damaged or has no code");
    else if (c.too_new)
        snprintf(message, size,
                 "the program's oldest PTX is for compute_%u, newer than this GPU%s; compile with "
                 "-arch=sm_%d, or choose a --gpu of compute capability %u.%u",
                 c.too_new, c.compiled ? ", and its machine code cannot run on the emulator" : "",
                 device_attribute(75) * 10 + device_attribute(76), c.too_new / 10, c.too_new % 10);
    else
        snprintf(message, size,
                 "the program has machine code of sm_%u and no PTX; compile with -gencode "
                 "arch=compute_%u,code=compute_%u, or with -arch=sm_%u",
                 c.compiled, c.compiled, c.compiled, c.compiled);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

typedef enum image_kind { IMAGE_WRAPPER, IMAGE_FATBIN, IMAGE_ELF, IMAGE_TEXT } image_kind;

/* Text may be shorter than a header: it is compared byte by byte. */
static image_kind kind_of(const void *image) {
    static const unsigned char magics[IMAGE_TEXT][4] = {
        {0xb1, 0x43, 0x62, 0x46}, {0x50, 0xed, 0x55, 0xba}, {0x7f, 'E', 'L', 'F'}};
    for (int k = 0; k < IMAGE_TEXT; k++)
        if (!strncmp(image, (const char *)magics[k], 4)) return (image_kind)k;
    return IMAGE_TEXT;
}

bool image_is_wrapped(const void *image) {
    return kind_of(image) == IMAGE_WRAPPER;
}

bool image_is_text(const void *image) {
    return kind_of(image) == IMAGE_TEXT;
}

static CUresult text_ptx(const char *text, char **ptx, size_t *bytes, char *message, size_t size) {
    if (!strstr(text, ".version")) {
        if (*text)
            snprintf(message, size, "expected PTX or a fat binary, found text without '.version'");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *ptx = strdup(text);
    if (!*ptx) return CUDA_ERROR_OUT_OF_MEMORY;
    *bytes = strlen(text);
    return CUDA_SUCCESS;
}

CUresult image_ptx(const void *image, char **ptx, size_t *bytes, char *message, size_t size) {
    enum { MAX_LINKED = 4096 };
    message[0] = 0;
    const image_kind found = kind_of(image);
    if (found == IMAGE_TEXT) return text_ptx(image, ptx, bytes, message, size);
    if (found == IMAGE_ELF) {
        snprintf(message, size,
                 "the program loads machine code, which the emulator cannot run; load PTX: compile "
                 "with nvcc -ptx, or -gencode arch=compute_XX,code=compute_XX");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (found == IMAGE_FATBIN) return fatbin_ptx(&image, 1, ptx, bytes, message, size);
    wrapper w;
    size_t n = 0;
    memcpy(&w, image, sizeof w);
    if (w.version != 2 || !w.linked)
        return fatbin_ptx(&w.data, w.data != NULL, ptx, bytes, message, size);
    while (n < MAX_LINKED && w.linked[n])
        n++;
    return fatbin_ptx(w.linked, n, ptx, bytes, message, size);
}
