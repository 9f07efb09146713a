/* A job: launches, arguments and buffers as plain data. Both devices run the same job.
 *
 *     module/ (arrays) -> core/ (plan: a pure function) -> smk_job -> pipeline_run_job or emu_run
 *
 * gemm and transpose of host arrays on a GPU run as a task graph of several jobs instead:
 * pipeline/plan/graph.h.
 */
#ifndef SMK_JOB_H
#define SMK_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hazard.h"
#include "recording.h"
#include "status.h"
#include "tensor_map.h"
#include "texture.h"

/* Device code: PTX text (NUL-terminated; for "emu", or for the JIT of "cuda") or a fat binary. */
typedef struct smk_image {
    const char *key; /* key in the devices' caches of loaded modules; NULL: not cached */
    const void *data;
    size_t size;     /* bytes, without the NUL of PTX text */
    const char *ptx; /* fallback for a GPU that the fat binary has no code for, or NULL */
} smk_image;

enum { SMK_IN = 1, SMK_OUT = 2, SMK_ON_DEVICE = 4 };

/* Memory of the kernels. `access` is one of:
 *
 *     SMK_IN, SMK_OUT or both   host memory; "cuda" copies it in and back, "emu" maps it
 *     SMK_ON_DEVICE             `host` is a device address, used in place
 *     0                         no host memory: a workspace of the kernels
 *
 * A buffer without SMK_IN starts with unspecified contents. After a failed run the contents of all
 * buffers are unspecified. module/ therefore passes copies of host arrays that kernels write, and
 * copies them back after success. Exception: gemm and transpose of host arrays on a GPU, whose task
 * graph writes a contiguous `out` directly (module/host_request.c). */
typedef struct smk_buffer {
    void *host;
    size_t bytes;
    unsigned access;
} smk_buffer;

/* A device pointer in the arguments. The argument holds a byte offset into the buffer; the device
 * adds the buffer's address. */
typedef struct smk_pointer {
    uint32_t arg_offset;
    uint32_t buffer;
} smk_pointer;

typedef struct smk_launch {
    const char *entry;
    uint32_t grid[3], block[3];
    uint32_t cluster[3]; /* blocks per cluster; [0] 0: as the kernel states, or 1 */
    bool cooperative;    /* all blocks are resident at the same time */
    size_t shared_bytes; /* dynamic shared memory */
    /* May start before the previous launch of the job has ended (programmatic dependent launch,
     * for code of sm_90 or newer); the kernel itself waits for that launch. False for the first
     * launch. */
    bool overlaps;
    const void *args; /* job->args_bytes of kernel parameters, in PTX's layout */
} smk_launch;

struct smk_trace;

/* Traffic between host and device. */
typedef struct smk_transfer {
    size_t bytes_in, bytes_out;
    size_t bytes_direct; /* of these, copied from or to pinned memory, without staging */
    size_t bytes_staged; /* copied by host threads through staging buffers, for all GPUs */
    size_t bytes_peer;   /* received from another GPU; not part of bytes_in */
    double seconds;      /* from the first allocation to the last byte */
    int threads;         /* host threads that copied */
    size_t steps;        /* tasks of the graph: copies and products */
} smk_transfer;

/* Output of printf in kernels. `lost`: bytes dropped because of the limit or of lack of memory. */
typedef struct smk_text {
    char *bytes; /* from malloc; the caller frees it */
    size_t size, lost;
} smk_text;

/* What a kernel asks to be done when its launch has ended: launches, copies and memsets of CUDA's
 * device runtime, graphs, and values of their conditions. */
typedef enum smk_child_kind {
    SMK_CHILD_LAUNCH,
    SMK_CHILD_COPY,      /* `bytes` from `from` to `to` */
    SMK_CHILD_SET,       /* `bytes` at `to`, to the byte `from` */
    SMK_CHILD_CONDITION, /* the condition `to` gets the value `from` */
    SMK_CHILD_GRAPH      /* the graph `to` in the stream `from`; `bytes` is of ask_graph */
} smk_child_kind;

typedef struct smk_child {
    smk_child_kind kind;
    bool tail;         /* after all others of the launch, and theirs */
    smk_launch launch; /* its args are from malloc, `bytes` of them; `entry` is the module's */
    uint64_t to, from, bytes;
    uint64_t block; /* that asked */
} smk_child;

typedef struct smk_children {
    smk_child *items; /* from malloc */
    size_t n, room;
} smk_children;

enum {
    SMK_FIND_HAZARDS = 1, /* faults are findings too; they do not fail the run */
    SMK_EQUAL_WRITES = 2, /* also report races of threads that write the same value */
    SMK_UNTIL_FULL = 4    /* a full record of accesses ends the search and not the run */
};

typedef struct smk_job {
    smk_image image;
    const smk_pointer *pointers;
    size_t n_pointers;
    const smk_tensor_map *tensor_maps; /* checked (smk_tensor_map_check) */
    size_t n_tensor_maps;
    const smk_texture *textures; /* checked (smk_texture_check) */
    size_t n_textures;
    size_t args_bytes;
    const uint32_t *parameters; /* byte offset of each kernel parameter in the arguments */
    size_t n_parameters;
    const smk_launch *launches; /* run in order, on one stream; at least one */
    size_t n_launches;
    const smk_buffer *buffers;
    size_t n_buffers;
    /* "emu", or NULL: for each buffer one byte per 4-byte word, 0 until the word has been
     * written, or NULL if all of it has. A checked run reports reads of other words, and sets those
     * of the words that it writes. Such a buffer has access SMK_OUT; its contents are kept.
     *
     * Then it is 1, or 2 and more for a word that holds a copy of what nobody wrote: it counts as
     * not written. copied_by gives the number for the line that read the original. begin_written
     * gives a buffer its bytes, all 1, when it gets such a copy; NULL: it has none, so the copy is
     * reported. */
    unsigned char *const *written;
    unsigned char (*copied_by)(const char *file, uint32_t line);
    unsigned char *(*begin_written)(size_t buffer);
    struct emu_module *module; /* "emu": from emu_open, in place of `image`; NULL: none */
    bool of_program; /* "emu": a program's launch, which may be given pointers to its own memory */

    /* Called about every 50 ms on the thread that runs the job; nonzero ends the run with
     * SMK_INTERRUPTED. May be NULL. */
    int (*poll)(void *poll_arg);
    void *poll_arg;
    const _Atomic bool *cancel; /* "emu": if not NULL, ends all threads when it becomes true */

    /* Timing: if repeat > 0, the launches run `repeat` more times after the normal run, and
     * milliseconds[i] is the time of run i (CUDA events; wall clock on "emu"). */
    int repeat;
    float *milliseconds;

    /* "emu": receives printf output, ordered by launch and block; NULL: discarded. On "cuda" the
     * driver writes it to the process's standard output. */
    smk_text *printed;

    /* "emu": receives the children of the launches, ordered by launch and block; also if the run
     * fails. NULL: kernels that ask for some fail. */
    smk_children *children;
    /* With children: whether a kernel may launch a graph in a stream; 0, else it gets an error.
     * Calls come from any thread, but one at a time. */
    unsigned (*ask_graph)(uint64_t graph, uint64_t stream);
    uint64_t graph; /* what kernels read as %current_graph_exec */

    void *stream;      /* "cuda": a CUstream; NULL: a stream of our own */
    bool asynchronous; /* "cuda": return once all is enqueued; no buffer is in host memory */
    /* Asynchronous jobs: enqueued after this one, with the same stream and buffers, but with an
     * image, pointers, arguments and launches of its own. */
    const struct smk_job *next;
    void *const *after; /* "cuda": n_after CUstreams; the job starts after their enqueued work */
    size_t n_after;
    smk_transfer *transfer;   /* "cuda", not asynchronous: filled in, if not NULL */
    struct smk_trace *trace;  /* "emu": filled with counts, if not NULL */
    smk_recording *recording; /* "emu": filled with steps, if not NULL */
    /* "emu": run only these n_blocks blocks, in ascending order. Blocks are numbered x fastest, and
     * consecutively across the launches. NULL: all blocks. */
    const uint64_t *blocks;
    size_t n_blocks;
    /* "emu", traced, one launch: all blocks run, but only these, in ascending order, are observed,
     * with the other blocks of their clusters. NULL: all blocks. All blocks are observed as well if
     * the launch is cooperative, or its blocks synchronise and hazards are looked for. */
    const uint64_t *sample;
    size_t n_sample;
    bool keep_partial;          /* "emu", traced: a run that is interrupted fills the trace, too */
    unsigned hazards;           /* "emu", traced: SMK_FIND_HAZARDS, SMK_EQUAL_WRITES */
    int threads;                /* "emu": host threads; 0: all */
    _Atomic uint64_t *finished; /* "emu": if not NULL, incremented for each finished block */
    uint64_t max_instructions;  /* "emu": limit on warp instructions per launch; 0: none */
} smk_job;

/* ---- counts of a traced run (device "emu") ---- */

typedef enum smk_access {
    SMK_LOAD,
    SMK_STORE,
    SMK_ATOMIC,
    SMK_COPY_ASYNC,
    SMK_LDMATRIX,
    SMK_STMATRIX,
    SMK_BULK,        /* bulk copies, TMA */
    SMK_MATRIX,      /* wgmma operands, read through descriptors */
    SMK_TEXTURE,     /* texels in linear memory, read by integer coordinates */
    SMK_REMOTE_LOAD, /* these: shared memory of another block of the cluster */
    SMK_REMOTE_STORE,
    SMK_REMOTE_ATOMIC
} smk_access;

const char *smk_access_name(smk_access access); /* "copy_async" */

/* One access of one warp. */
typedef struct smk_request {
    uint64_t address[32]; /* shared: offsets; global: the emulator's addresses */
    uint32_t active;      /* lane mask; addresses of other lanes are undefined */
    uint32_t block[3];
    uint32_t warp; /* in the block */
} smk_request;

enum { SMK_READ = 1, SMK_WRITE = 2 };

/* One memory instruction of the kernel. Exact integers, summed over all warps and launches. */
typedef struct smk_site {
    const char *file; /* as .loc names it, NULL if the PTX has no line information */
    int line;         /* source line; the PTX line where there is no line information */
    int shared;       /* 1 shared memory, 0 global */
    smk_access access;
    int width; /* bytes per lane */
    uint64_t requests;
    uint64_t wavefronts;                   /* shared: emu/cost/banks.h; global: 32-byte sectors */
    uint64_t ideal;                        /* min wavefronts or sectors for the requested bytes */
    uint64_t worst;                        /* max wavefronts or sectors of one request */
    smk_request worst_request;             /* of the first block and warp with `worst` */
    uint64_t bytes;                        /* requested by active lanes */
    int direction;                         /* SMK_READ, SMK_WRITE or both */
    smk_position callers[SMK_MAX_CALLERS]; /* inlined code: call sites, innermost first */
    int n_callers;
    /* shared: after ptxas has merged accesses (emu/cost/ptxas_vectorize.h) */
    uint64_t machine_requests, machine_wavefronts, machine_ideal;
} smk_site;

/* The cost of requests as accesses of 4, 8 or 16 bytes per lane, each aligned to its width and
 * containing the bytes of the request. Zeros: narrower than the requests, or no request. */
enum { SMK_N_WIDTHS = 3 };

typedef struct smk_wider_cost {
    uint64_t wavefronts, ideal;
    uint32_t min_wavefronts, max_wavefronts, min_ideal, max_ideal; /* of one request */
} smk_wider_cost;

/* One PTX instruction that ran. */
typedef struct smk_instruction_count {
    const char *function;
    int ptx_line;
    uint64_t warps;    /* how often a warp executed it */
    int64_t site;      /* of its loads and stores of shared memory, an index; -1: it has none */
    uint64_t requests; /* ... and their number */
    smk_wider_cost wider[SMK_N_WIDTHS];
} smk_instruction_count;

typedef struct smk_opcode_count {
    char opcode[32]; /* with type and modifiers: "fma.rn.f32" */
    uint64_t warps;  /* warp instructions */
    uint64_t lanes;  /* thread instructions: lanes whose guard predicate is true */
    uint64_t flops;  /* emu/cost/flops.h */
} smk_opcode_count;

typedef struct smk_trace {
    smk_site *sites;
    size_t n_sites;
    smk_opcode_count *opcodes;
    size_t n_opcodes;
    bool by_instruction; /* from the caller: count also by PTX instruction */
    smk_instruction_count *instructions;
    size_t n_instructions;
    uint64_t warp_instructions;
    uint64_t barriers; /* warp arrivals at block barriers */
    uint64_t flops;
    uint64_t blocks;       /* blocks that ran ... */
    uint64_t grid_blocks;  /* ... out of this number */
    uint64_t shared_bytes; /* per block, static and dynamic: max of all launches */
    smk_hazard *hazards;
    size_t n_hazards;
    bool checked;    /* the hazard detector was on */
    bool full;       /* ... until its record was full (SMK_UNTIL_FULL) */
    bool incomplete; /* the run ended at a fault, which is one of the hazards, or by an interrupt */
    void *texts;     /* storage of the strings in sites and hazards; NULL: none */
    void (*free_texts)(void *);
} smk_trace;

/* Whether some finding is a hazard (smk_is_hazard). */
bool smk_trace_has_hazards(const smk_trace *trace);
void smk_trace_free(smk_trace *trace);

#endif
