/* What a device is asked to do, as plain data: both devices take the same job.
 *
 *     module/ (arrays)  ->  core/ (plan: a pure function)  ->  smk_job  ->  gpu_run or emu_run
 */
#ifndef SMK_JOB_H
#define SMK_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hazard.h"
#include "status.h"
#include "tensor_map.h"

/* Code for a device: PTX text (NUL-terminated; device "emu", or JIT on "cuda") or a fat binary. */
typedef struct smk_image {
    const char *key; /* identity: devices keep loaded modules by it; NULL: load, run, forget */
    const void *data;
    size_t size;     /* bytes, without the NUL of PTX text */
    const char *ptx; /* or NULL: for a GPU that the fat binary has no code for */
} smk_image;

enum { SMK_IN = 1, SMK_OUT = 2, SMK_ON_DEVICE = 4 };

/* Host memory that the kernel sees. "cuda" copies it in (SMK_IN) and back (SMK_OUT); "emu" maps it.
 * SMK_ON_DEVICE, alone: `host` is an address in the device's memory, and is used in place.
 * None of them: there is no host memory, the kernels use it among themselves. A buffer that is not SMK_IN
 * starts with unspecified contents. If a run fails, its contents are
 * unspecified: module/ always hands over a fresh array and copies to the user's `out` at the end. */
typedef struct smk_buffer {
    void *host;
    size_t bytes;
    unsigned access;
} smk_buffer;

/* Where in the arguments a device pointer stands. The argument itself holds a byte offset into the
 * buffer; the device adds the address at which the buffer is mapped. */
typedef struct smk_pointer {
    uint32_t arg_offset;
    uint32_t buffer;
} smk_pointer;

typedef struct smk_launch {
    const char *entry;
    uint32_t grid[3], block[3];
    size_t shared_bytes; /* dynamic shared memory */
    bool
        overlaps; /* may begin before the launch before it in the job has ended: its kernel waits for that
                    * itself, where it is code of sm_90 or later. Never of the first */
    const void *args; /* job->args_bytes of kernel parameters, laid out as PTX lays them out */
} smk_launch;

struct smk_trace;

/* How much went between host and device, and how. */
typedef struct smk_transfer {
    size_t bytes_in, bytes_out;
    size_t
        bytes_direct; /* of both, those from and to memory that the copy engines reach by themselves */
    size_t bytes_staged; /* what threads moved through pinned memory, for whichever GPUs */
    size_t bytes_peer;   /* what one GPU had from another, and is not among those in */
    double seconds;      /* from the first allocation to the last byte */
    int threads;         /* that did so */
    size_t steps;        /* copies and products that it was cut into */
} smk_transfer;

/* What kernels print. `lost` bytes more were too many, or found no memory. */
typedef struct smk_text {
    char *bytes; /* from malloc; the caller's */
    size_t size, lost;
} smk_text;

enum {
    SMK_FIND_HAZARDS = 1, /* a fault is then a finding too, and no failure of the run */
    SMK_EQUAL_WRITES = 2  /* threads that race to write one value are found too */
};

typedef struct smk_job {
    smk_image image;
    const smk_pointer *pointers;
    size_t n_pointers;
    const smk_tensor_map *tensor_maps; /* checked (smk_tensor_map_check) */
    size_t n_tensor_maps;
    size_t args_bytes;
    const uint32_t *parameters; /* where in the arguments each kernel parameter begins */
    size_t n_parameters;
    const smk_launch *launches; /* run in order, on one stream; at least one */
    size_t n_launches;
    const smk_buffer *buffers;
    size_t n_buffers;

    /* Called about every 50 ms from the thread that called run; nonzero stops it with
     * SMK_INTERRUPTED. May be NULL. */
    int (*poll)(void *poll_arg);
    void *poll_arg;
    const _Atomic bool *cancel; /* "emu": stops all threads as soon as it is true, if not NULL */

    /* Timing: if repeat > 0, after the normal run the launches are run `repeat` more times and
     * milliseconds[i] is the device time (CUDA events; wall clock on "emu") of each. */
    int repeat;
    float *milliseconds;

    /* "emu": what kernels print is put here, by launch and block; NULL: nowhere. On "cuda" the driver
     * writes it to the process's standard output. */
    smk_text *printed;

    void *stream;      /* "cuda": a CUstream, NULL for the device's own */
    bool asynchronous; /* "cuda": done when all is on the stream; all buffers are on the device */
    const struct smk_job
        *next;          /* asynchronous: runs behind this one, on its stream and its buffers,
                                   and has pointers, arguments, launches and an image of its own */
    void *const *after; /* "cuda": n_after CUstreams whose queued work has to be done first */
    size_t n_after;
    smk_transfer *transfer;  /* "cuda", not asynchronous: filled in, if not NULL */
    struct smk_trace *trace; /* "emu": filled with counts, if not NULL */
    const uint64_t *blocks;  /* "emu": run only these; ascending, numbered x first and on through */
    size_t n_blocks;         /* the launches in their order. NULL: all of them */
    unsigned hazards;        /* "emu", traced: SMK_FIND_HAZARDS, SMK_EQUAL_WRITES */
    int threads;             /* "emu": host threads, 0 for all of them */
    _Atomic uint64_t *finished; /* "emu": grows by 1 with each block that has run, if not NULL */
    uint64_t max_instructions;  /* "emu": warp instructions of a launch, 0: as many as there are */
} smk_job;

/* ---- what a traced run counted (device "emu") ---- */

typedef enum smk_access {
    SMK_LOAD,
    SMK_STORE,
    SMK_ATOMIC,
    SMK_COPY_ASYNC,
    SMK_LDMATRIX,
    SMK_STMATRIX,
    SMK_BULK,  /* bulk copies, TMA */
    SMK_MATRIX /* wgmma operands, read by descriptor */
} smk_access;

typedef struct smk_position {
    const char *file;
    int line;
} smk_position;

/* One access of one warp. */
typedef struct smk_request {
    uint64_t address[32]; /* offsets in shared memory; global: the emulator's addresses */
    uint32_t active;      /* lanes; only their addresses mean anything */
    uint32_t block[3];
    uint32_t warp; /* in the block */
} smk_request;

enum { SMK_READ = 1, SMK_WRITE = 2, SMK_MAX_CALLERS = 8 };

/* One memory instruction of the kernel. Exact integers, summed over all warps and launches. */
typedef struct smk_site {
    const char *file; /* as .loc names it, NULL if the PTX has no line information */
    int line;         /* source line; the PTX line where there is no line information */
    int shared;       /* 1 shared memory, 0 global */
    smk_access access;
    int width; /* bytes a lane */
    uint64_t requests;
    uint64_t wavefronts;       /* shared: by the rule in banks.h; global: 32-byte sectors */
    uint64_t ideal;            /* the fewest that the bytes asked for could have cost */
    uint64_t worst;            /* of one request ... */
    smk_request worst_request; /* ... the first that cost it */
    uint64_t bytes;            /* that the active lanes asked for */
    int direction;             /* SMK_READ, SMK_WRITE or both */
    smk_position callers[SMK_MAX_CALLERS]; /* of inlined code, from the inside out */
    int n_callers;
    uint64_t machine_requests,
        machine_wavefronts; /* shared: after ptxas joined accesses (emu/cost/ptxas_vectorize.h) */
} smk_site;

typedef struct smk_opcode_count {
    char opcode[32]; /* with type and modifiers: "fma.rn.f32" */
    uint64_t warps;  /* warp instructions */
    uint64_t lanes;  /* thread instructions: of lanes whose guard holds */
    uint64_t flops;  /* by the rule in emu/cost/flops.h */
} smk_opcode_count;

typedef struct smk_trace {
    smk_site *sites;
    size_t n_sites;
    smk_opcode_count *opcodes;
    size_t n_opcodes;
    uint64_t warp_instructions;
    uint64_t barriers; /* warp arrivals at block barriers */
    uint64_t flops;
    uint64_t blocks;       /* that ran ... */
    uint64_t grid_blocks;  /* ... of so many */
    uint64_t shared_bytes; /* of a block, static and dynamic: the most of any launch */
    smk_hazard *hazards;
    size_t n_hazards;
    bool checked;    /* hazards were looked for */
    bool incomplete; /* a fault among them ended the run */
    void *texts;     /* what the strings of sites and hazards lie in; NULL: none */
    void (*free_texts)(void *);
} smk_trace;

void smk_trace_free(smk_trace *trace);

#endif
