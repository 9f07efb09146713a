/* The module's state, which the files of this folder share. */
#ifndef LAB_SESSION_H
#define LAB_SESSION_H

#include "../core/plan.h"
#include "../emu/emu.h"
#include "../core/recording.h"
#include "api.h"
#include "../core/json.h"

enum { LAB_MAX_BUFFERS = 256, LAB_MAX_PTX = 64 << 20, LAB_MAX_ARRAYS = 128 };

/* What the page calls a buffer. */
typedef struct buffer_name {
    char name[64];
    uint32_t element;
    uint64_t columns;
} buffer_name;

/* An array in shared memory. */
typedef struct lab_array {
    explain_array array;
    char name[256]; /* as in the PTX */
} lab_array;

typedef struct lab_session {
    smk_status status;
    json result;
    char *ptx;
    size_t ptx_bytes;
    char key[32]; /* of its module in the emulator's cache */
    smk_buffer buffers[LAB_MAX_BUFFERS];
    buffer_name names[LAB_MAX_BUFFERS];
    int n_buffers;
    lab_array declared[LAB_MAX_ARRAYS]; /* by lab_arrays; without places */
    int n_declared;
    lab_array arrays[LAB_MAX_ARRAYS]; /* of the run */
    int n_arrays;
    bool arrays_found;  /* for the job; another run of it has the same */
    bool arrays_placed; /* false: launches of several kernels, whose arrays have the same places */
    /* The job: of a plan, or one launch. */
    smk_plan plan;
    bool planned;
    smk_launch launch;
    emu_signature signature;
    unsigned char *arguments; /* signature.args_bytes */
    smk_pointer *pointers;
    size_t n_pointers;
    smk_tensor_map *tensor_maps;
    size_t n_tensor_maps;
    smk_recording recording;
} lab_session;

extern lab_session session;

/* A call begins: no failure, and an empty result. */
void session_begin(void);
smk_code session_end(void);
void session_drop_job(void);
/* Of the launch; NULL: it has no such parameter. */
const emu_parameter *session_parameter(uint32_t number);
/* Places a buffer's address plus `bytes` at an offset of the arguments. */
smk_code session_add_pointer(uint32_t parameter, uint32_t arg_offset, int buffer, uint64_t bytes);
uint64_t *block_numbers(const double *blocks, size_t n);

/* The arrays in shared memory of a job that has run: by name in the PTX, and by address; NULL:
 * none. */
void session_find_arrays(const smk_job *job);
const explain_array *session_array_named(const char *name);
const explain_array *session_array_at(uint64_t offset);

void trace_json(json *t, const smk_trace *trace);
void variants_json(json *t);

/* Bytes of an element; 0: there is no such type. */
int data_element_bytes(const char *type);
void data_fill(void *to, size_t count, const char *type, int pattern, uint32_t seed, double low,
               double high);

#endif
