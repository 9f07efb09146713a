/* The recorder's state, shared by the files of this folder.
 *
 *     recorder.c    the observer: launches, blocks, steps, the window
 *     registers.c   which registers an instruction changed
 *     accesses.c    requests, and what they wrote
 *     tables.c      functions, blocks and warps, as they are first seen
 *     vectors.c     32 lanes in a few words
 *     columns.c     growing arrays
 *     explanations.c    words for conflicts
 *     register_types.c  what registers of bits hold
 *     report.c      the recording's bytes
 *     header.c      ... and its header, in JSON (json.c)
 *     hazard_steps.c  the steps of a hazard's two accesses
 */
#ifndef EMU_REPLAY_RECORDER_H
#define EMU_REPLAY_RECORDER_H

#include "../machine/machine.h"
#include "../ptx/ptx.h"
#include "../cost/request_cost.h"
#include "columns.h"
#include "replay.h"

#define NONE UINT32_MAX

/* ---- what is known of the program ---- */

typedef struct recorded_function {
    const ptx_function *function;
    uint32_t first_instruction, first_register; /* numbers in the recording */
    uint32_t *writes;      /* registers that instructions write, by index in the function ... */
    uint32_t *first_write; /* ... from first_write[k] on, to first_write[k + 1] */
} recorded_function;

/* ---- a warp that runs ---- */

/* The registers of a frame as the recording has them. Registers share slots, so each slot knows
 * which register was written there last. */
typedef struct shadow_frame {
    struct shadow_frame *next;
    const frame *frame;
    uint32_t function; /* index in recorder.functions */
    uint32_t *owner;   /* by slot / SLOT_UNIT: a register's index in the function; NONE */
    unsigned char *bytes;
} shadow_frame;

enum { SLOT_UNIT = 64 };

/* An instruction with a result that waits for other lanes or warps, which complete it. */
typedef struct unfinished {
    const insn *insn;
    const frame *frame;
} unfinished;

enum { MAX_UNFINISHED = LANES };

typedef struct live_warp {
    uint32_t id; /* in recorder.warps; NONE: not yet there */
    bool recorded;
    shadow_frame *frames; /* most recently used first */
    unfinished unfinished[MAX_UNFINISHED];
    uint32_t n_unfinished;
    uint32_t local; /* in recorder.memories; NONE */
} live_warp;

/* ---- a block that runs ---- */

typedef struct live_block {
    bool live, recorded;
    uint32_t id; /* in recorder.blocks; NONE: not yet there */
    uint32_t index[3];
    const block *block; /* NULL until its first step */
    live_warp warps[MAX_WARPS];
    bool has_unfinished;
    /* By word of shared memory. Writers are numbered member * MAX_WARPS + warp. */
    uint32_t n_words;
    uint32_t *value; /* as the recording has it */
    uint32_t *writer, *writer_instruction;
    uint8_t *writer_lane;
    /* Of copies that have been issued and have not appeared yet; NONE: no such copy. */
    uint32_t *copy_writer, *copy_step, *copy_instruction;
    uint8_t *copy_lane;
    size_t bytes;
} live_block;

/* ---- tables of the recording ---- */

typedef struct recorded_block {
    uint32_t launch, index[3], memory;
    uint64_t number;
} recorded_block;

typedef struct recorded_warp {
    uint32_t block, warp, lanes;
    bool recorded;
} recorded_warp;

typedef enum memory_kind {
    MEMORY_SHARED,
    MEMORY_LOCAL,
    MEMORY_ARRAY,
    MEMORY_VARIABLES
} memory_kind;

typedef struct recorded_memory {
    memory_kind kind;
    uint32_t of;        /* block, warp or array */
    uint64_t bytes;     /* local: per lane */
    uint32_t at, words; /* in memory_words; NONE: its contents are not included */
} recorded_memory;

typedef struct recorded_launch {
    char *entry;
    uint32_t grid[3], block[3], cluster[3];
    uint64_t shared_bytes, dynamic_at, dynamic_bytes;
    const ptx_function *function;
    const ptx_module *module;
} recorded_launch;

/* An array in shared memory. */
typedef struct recorded_variable {
    uint32_t launch;
    const ptx_variable *variable;
    bool dynamic;
    uint64_t offset, bytes;
    uint32_t element, columns; /* bytes, and elements from row to row; 0: not known */
    ptx_type accessed;         /* by the first access; PTX_NO_TYPE */
    char *layout;              /* a better one, in words; NULL: none is known */
} recorded_variable;

typedef struct explanation {
    char *text;
    uint32_t variable; /* NONE */
} explanation;

/* ---- what the hooks have collected for the step that runs ---- */

typedef struct pending_request {
    emu_request request;
    uint64_t address[LANES], source[LANES];
} pending_request;

typedef struct pending_event {
    emu_sync sync;
    uint64_t address[LANES];
} pending_event;

/* A bulk copy to global memory that no wait has covered yet. */
typedef struct pending_store {
    uint64_t address[LANES];
    uint32_t active, width;
    uint32_t member, warp, lane, step;
} pending_store;

typedef enum phase { BEFORE_WINDOW, IN_WINDOW, AFTER_WINDOW } phase;

/* A growing array of any type. */
#define LIST(type)                                                                                 \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t n, capacity;                                                                        \
    }

struct recorder {
    const smk_job *job;
    smk_recording *out;
    const launch *launch;
    columns columns;
    phase phase;
    uint64_t step; /* of the step that runs, or runs next */
    const char *truncated;
    bool out_of_memory;
    size_t live_bytes, header_bytes;
    uint64_t n_omitted; /* blocks for whose shared memory the limit has no room */
    LIST(live_block) members;
    LIST(recorded_function) functions;
    uint32_t n_instructions, n_registers;
    LIST(recorded_block) blocks;
    LIST(recorded_warp) warps;
    LIST(recorded_memory) memories;
    LIST(recorded_launch) launches;
    LIST(pending_request) requests;
    LIST(pending_event) events;
    LIST(pending_store) stores;
    LIST(recorded_variable) variables;
    LIST(explanation) explanations;
    LIST(uint32_t) clocks; /* of the warp, by step of the window */
    remote_access remote;
    bool fault;
    uint64_t fault_step;
    char *fault_message;
};

/* Room for one more element: true. `list` is a pointer to a LIST. */
#define LIST_ROOM(r, list)                                                                         \
    recorder_room(r, (void **)&(list)->items, sizeof *(list)->items, (list)->n, &(list)->capacity)
bool recorder_room(recorder *r, void **items, size_t size, size_t n, size_t *capacity);

/* ---- tables.c ---- */

/* Index in r->functions; NONE: out of memory. */
uint32_t recorder_function(recorder *r, const ptx_function *function);
/* Indices of a warp of a live block, and of memories; NONE: not recorded. */
uint32_t recorder_warp(recorder *r, uint32_t member, uint32_t warp);
uint32_t recorder_writer(recorder *r, uint32_t writer); /* member * MAX_WARPS + warp, or NONE */
uint32_t recorder_shared(recorder *r, uint32_t member);
uint32_t recorder_local(recorder *r, uint32_t member, uint32_t warp);
/* Of the region of a global address. */
uint32_t recorder_global(const recorder *r, uint64_t region);
/* Starts the table of memories with the job's arrays. */
bool recorder_start_memories(recorder *r);
bool live_block_begin(recorder *r, live_block *b, const uint32_t index[3]);
void live_block_end(recorder *r, live_block *b);

/* ---- vectors.c ---- */

enum { VECTOR_AFFINE, VECTOR_RAW, VECTOR_PREDICATE };

/* Appends 32 lanes of `bytes` each to column `words`; 0: a predicate. Returns the kind. */
uint32_t vector_push(columns *c, const void *lanes, uint32_t bytes);
/* The same for addresses of the active lanes, of 4 or 8 bytes. */
uint32_t vector_push_addresses(columns *c, const uint64_t address[LANES], uint32_t active,
                               uint32_t bytes);

/* ---- registers.c ---- */

/* Bytes per lane of a register; 0: a predicate. */
uint32_t register_bytes(ptx_type type);
/* Appends what the instruction, and those that it completed, changed. */
void registers_step(recorder *r, const warp *w, const insn *i, const frame *f);
/* Appends the registers of all recorded warps to the columns initial_*. */
void registers_snapshot(recorder *r);
void shadow_frames_free(shadow_frame *frames);

/* ---- accesses.c ---- */

/* Of the requests and events that are pending: `recorded`: of a step of the recording. */
void accesses_step(recorder *r, const warp *w, const insn *i, bool recorded);
void accesses_end_block(recorder *r, uint32_t member);
/* Appends the contents of memories to the columns memory_*. */
void memory_snapshot(recorder *r);

/* ---- explanations.c, register_types.c ---- */

/* Fills in r->variables, r->explanations and column access_words. */
void explanations_make(recorder *r);
/* A ptx_type for each register of the function. */
void register_types(const ptx_function *f, uint8_t *types);

/* ---- header.c, hazard_steps.c ---- */

struct json;
void header_write(recorder *r, const smk_trace *trace, struct json *out);
/* The steps of a hazard's two accesses; NONE: not in the window. Counted from the window's
 * start. */
void hazard_steps(const recorder *r, const smk_hazard *hazard, uint32_t steps[2]);
const ptx_instruction *recorder_instruction(const recorder *r, uint32_t number);

#endif
