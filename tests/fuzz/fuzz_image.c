/* What csrc/driver reads of a program's code: fat binaries, their compressed parts, and texts that
 * are linked. The first byte says which.
 *
 * A fat binary states its own size, as programs give no other; here it is no larger than the input.
 */
#include <stdlib.h>
#include <string.h>

#include "../../csrc/driver/decompress.h"
#include "../../csrc/driver/driver.h"
#include "fuzz.h"

enum { PREFIX = 16, MAX_PARTS = 4 };
static const uint32_t WRAPPER_MAGIC = 0x466243b1;

/* The fat binary at the start of `data`, in memory that ends with it; NULL: it is too short, or a
 * wrapper, whose pointers no driver can check. Where it is a text a NUL follows. */
static unsigned char *fat_binary(const uint8_t *data, size_t size) {
    static const unsigned char magic[4] = {0x50, 0xed, 0x55, 0xba};
    uint16_t header;
    uint64_t bytes;
    if (size < PREFIX || !memcmp(data, &WRAPPER_MAGIC, sizeof WRAPPER_MAGIC)) return NULL;
    if (memcmp(data, magic, sizeof magic)) {
        char *text = calloc(1, size + 1);
        return text ? memcpy(text, data, size) : NULL;
    }
    memcpy(&header, data + 6, sizeof header);
    memcpy(&bytes, data + 8, sizeof bytes);
    if (header > size) return NULL;
    if (bytes > size - header) bytes = size - header;
    unsigned char *copy = malloc(size);
    if (!copy) return NULL;
    memcpy(copy, data, size);
    memcpy(copy + 8, &bytes, sizeof bytes);
    return copy;
}

static void read_image(const void *image) {
    char message[512], *ptx = NULL;
    size_t bytes = 0;
    if (image_ptx(image, &ptx, &bytes, message, sizeof message)) return;
    if (strlen(ptx) != bytes) abort();
    free(ptx);
}

static void one_image(const uint8_t *data, size_t size) {
    unsigned char *image = fat_binary(data, size);
    if (image) read_image(image);
    free(image);
}

/* The list that nvcc makes of the parts of a linked program. Each begins with its size. */
static void linked_images(const uint8_t *data, size_t size) {
    const void *parts[MAX_PARTS + 1] = {NULL};
    for (int n = 0; n < MAX_PARTS && size > 2; n++) {
        const size_t stated = data[0] | (size_t)data[1] << 8;
        const size_t own = stated < size - 2 ? stated : size - 2;
        if (!(parts[n] = fat_binary(data + 2, own))) break;
        data += 2 + own;
        size -= 2 + own;
    }
    const struct {
        uint32_t magic, version;
        const void *data;
        const void *const *linked;
    } wrapper = {WRAPPER_MAGIC, 2, NULL, parts};
    read_image(&wrapper);
    for (int n = 0; n < MAX_PARTS; n++)
        free((void *)parts[n]);
}

/* The size of the plain text, and what is compressed. */
static void decompress(const uint8_t *data, size_t size,
                       bool (*call)(const void *, size_t, unsigned char *, size_t)) {
    if (size < 2) return;
    const size_t plain = data[0] | (size_t)data[1] << 8;
    unsigned char *out = malloc(plain + 1), *in = malloc(size - 1);
    if (out && in) {
        memcpy(in, data + 2, size - 2);
        call(in, size - 2, out, plain);
    }
    free(out);
    free(in);
}

/* Two texts: the first byte is the length of the first. */
static void link_texts(const uint8_t *data, size_t size) {
    joined_ptx joined = {0};
    const size_t at = size ? 1 + (size - 1) * data[0] / 256 : 0;
    const struct {
        const uint8_t *text;
        size_t bytes;
    } texts[] = {{data + 1, at ? at - 1 : 0}, {data + at, size - at}};
    for (size_t k = 0; size && k < 2; k++) {
        char *text = calloc(1, texts[k].bytes + 1);
        if (!text) break;
        memcpy(text, texts[k].text, texts[k].bytes);
        if (!ptx_join(&joined, text) && strlen(joined.text) != joined.bytes) abort();
        free(text);
    }
    free(joined.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool started;
    if (!started) {
        setenv("SMEMKERN_RUN_DEVICE", "fuzzed;1000000000;75=9,76=0", 1);
        started = cuInit(0) == CUDA_SUCCESS;
    }
    if (!started) abort();
    if (!size) return 0;
    switch (data[0] % 5) {
    case 0: one_image(data + 1, size - 1); break;
    case 1: linked_images(data + 1, size - 1); break;
    case 2: decompress(data + 1, size - 1, zstd_decompress); break;
    case 3: decompress(data + 1, size - 1, lz4_decompress); break;
    default: link_texts(data + 1, size - 1); break;
    }
    return 0;
}
