/* Any text as PTX: it is read, and each kernel that it has is run on the emulator, plain, watched for
 * counts and hazards, and recorded.
 *
 * The text decides everything, so that an input is one file. How a kernel is launched follows from a
 * checksum of the text. A pointer is any parameter of 8 bytes; each gets a buffer of its own, between
 * two guards that AddressSanitizer knows, so an access that the emulator lets through is seen.
 */
#include <stdlib.h>
#include <string.h>

#include "../../csrc/emu/emu.h"
#include "fuzz.h"

enum {
    MOST_ARGUMENTS = 8,
    BUFFER_BYTES = 4096,
    MOST_PARAMETER_BYTES = 4096,
    MOST_INSTRUCTIONS = 2000
};

typedef struct buffers {
    smk_buffer buffer[MOST_ARGUMENTS];
    smk_pointer pointer[MOST_ARGUMENTS];
    size_t n;
} buffers;

static uint32_t checksum(const uint8_t *data, size_t size) {
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ data[i]) * 16777619u;
    return sum ^ sum >> 16;
}

static void give_buffers(const emu_signature *s, uint32_t seed, buffers *out) {
    for (size_t k = 0; k < s->n_parameters && out->n < MOST_ARGUMENTS; k++) {
        const emu_parameter *p = &s->parameters[k];
        if (p->size != 8 || p->kind == 'f') continue;
        unsigned char *host = malloc(BUFFER_BYTES);
        for (size_t at = 0; host && at < BUFFER_BYTES; at++)
            host[at] = (unsigned char)(at * (2 * k + 1) + seed);
        out->buffer[out->n] = (smk_buffer){host, BUFFER_BYTES, SMK_IN | (k % 4 == 3 ? 0 : SMK_OUT)};
        out->pointer[out->n] = (smk_pointer){p->offset, (uint32_t)out->n};
        out->n++;
    }
}

static void run(const char *text, size_t size, const emu_signature *s, uint32_t seed) {
    static unsigned char arguments[MOST_PARAMETER_BYTES];
    buffers given = {0};
    smk_trace trace = {0};
    smk_text printed = {0};
    smk_status status = {0};
    if (s->args_bytes > sizeof arguments) return;
    memset(arguments, 0, sizeof arguments);
    for (size_t at = 0; at < s->args_bytes; at += 4)
        arguments[at] = (unsigned char)(seed >> at % 24 & 63);
    for (size_t k = 0; k < s->n_parameters; k++)
        if (s->parameters[k].size == 8 && s->parameters[k].kind != 'f')
            memset(arguments + s->parameters[k].offset, 0, 8);
    give_buffers(s, seed, &given);
    const uint32_t threads[] = {32, 1, 33, 64, 128, 96, 256, 32};
    const smk_launch launch = {.entry = s->entry,
                               .grid = {1 + (seed >> 3) % 2, 1, 1},
                               .block = {threads[seed % 8], 1, 1},
                               .shared_bytes = seed >> 4 & 1 ? 1024 : 0,
                               .args = arguments};
    smk_job job = {.image = {NULL, text, size},
                   .pointers = given.pointer,
                   .n_pointers = given.n,
                   .args_bytes = s->args_bytes,
                   .parameters = s->offsets,
                   .n_parameters = s->n_parameters,
                   .launches = &launch,
                   .n_launches = 1,
                   .buffers = given.buffer,
                   .n_buffers = given.n,
                   .printed = &printed,
                   .threads = 1,
                   .max_instructions = MOST_INSTRUCTIONS};
    if (seed >> 5 & 1) {
        job.trace = &trace;
        job.hazards = SMK_FIND_HAZARDS | (seed >> 6 & 1 ? SMK_EQUAL_WRITES : 0);
    }
    smk_recording recording = {.first = seed >> 9 & 1 ? seed >> 10 & 127 : 0,
                               .steps = 1 + (seed >> 17 & 2047),
                               .max_bytes = seed >> 8 & 1 ? 0 : 20000 + (seed >> 12)};
    if (seed >> 7 & 1) job.recording = &recording;
    emu_run(&job, &status);
    free(recording.bytes);
    for (size_t k = 0; k < given.n; k++)
        free(given.buffer[k].host);
    smk_trace_free(&trace);
    free(printed.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1); /* to the byte, so that reading past the end is seen */
    smk_status status = {0};
    emu_signature signature;
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (emu_signature_read(text, size, NULL, NULL, NULL, &signature, &status) == SMK_OK)
        run(text, size, &signature, checksum(data, size));
    emu_signature_free(&signature);
    free(text);
    return 0;
}
