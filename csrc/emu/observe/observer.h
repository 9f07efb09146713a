/* The observer: hooks that a launch calls, so that machine/ and isa/ need not include what
 * observes.
 *
 * A function is decoded with a wrapper around each memory instruction, for observed launches, and
 * without, for others (machine/observe.c). So an unobserved launch does not pay for memory hooks.
 *
 * A launch runs on several host threads. `fork` makes a state for each of them, and `join` merges
 * it back; joins are called one at a time, so hooks need no locks. A launch has one observer;
 * observer_pair.h combines two. `fork`, `join` and `memory` are required; other hooks may be NULL.
 */
#ifndef EMU_OBSERVER_H
#define EMU_OBSERVER_H

#include "../ptx/ptx.h"

typedef enum emu_operation {
    EMU_LOAD,
    EMU_STORE,
    EMU_ATOMIC,
    EMU_COPY_ASYNC_READ,
    EMU_COPY_ASYNC_WRITE,
    EMU_LDMATRIX, /* lanes 0-7, 0-15 or 0-31 hold the addresses of 16-byte rows */
    EMU_STMATRIX,
    /* A warp's st.async or red.async, as one request for all blocks that it writes to; `owner` is
     * not valid. Each lane is also an EMU_BULK_WRITE, which completes by itself. */
    EMU_STORE_ASYNC,
    EMU_TEXTURE_READ, /* texels of a texture in linear memory, by lane */
    /* In the next three a lane of `active` is not a thread but a 16-byte chunk: one of up to 32
     * consecutive chunks of a bulk copy, or of an operand that wgmma reads by descriptor. */
    EMU_BULK_READ,
    EMU_BULK_WRITE,
    EMU_MATRIX_READ
} emu_operation;

/* A multicast, which writes to several blocks. Each counts the sectors that it receives, which are
 * more than those read if these are few. */
typedef struct emu_multicast {
    uint32_t receivers; /* 0: not a multicast */
    uint32_t least;     /* sectors that each receives */
} emu_multicast;

/* One warp instruction's access to one space. A generic access whose lanes hit two spaces makes two
 * requests; a bulk copy or a wgmma operand makes as many as its chunks need. */
typedef struct emu_request {
    const ptx_instruction *ptx;
    uint32_t index; /* the instruction's index in its function */
    const ptx_function *function;
    const struct vectorized *machine; /* what ptxas makes of it (cost/ptxas_vectorize.h) */
    ptx_space space;                  /* never PTX_GENERIC */
    emu_operation operation;
    uint32_t width; /* bytes per lane: 1, 2, 4, 8, 16 */
    uint32_t active;
    const uint64_t *address; /* by lane; global: addresses, else offsets in the window */
    /* Bytes from lane to lane, if all lanes are active and it is 0 or width for all; else ~0. */
    uint64_t step;
    /* EMU_COPY_ASYNC_WRITE: source addresses, and the lanes that read; else NULL and 0 */
    const uint64_t *source;
    uint32_t reading;
    /* EMU_COPY_ASYNC_READ: bytes that each lane reads, where some read less than `width` */
    const uint32_t *lane_bytes;
    /* EMU_BULK_READ of global memory with no active lane: how many sectors of zeros the copy
     * supplies for the part of its box outside the tensor; `address` is not valid */
    uint32_t filled;
    emu_multicast multicast; /* EMU_BULK_READ; else 0 */
    uint32_t excess;         /* EMU_BULK_*: bytes of the last lane's chunk that are not accessed */
    uint32_t bulk_lane;      /* EMU_BULK_*: the lane that issued the copy; EMU_MATRIX_READ: 0 */
    uint32_t block[3];
    uint32_t member; /* of its group (machine/block_group.h), the block ... */
    uint32_t owner;  /* ... and the block whose shared memory is accessed */
    uint32_t rank;   /* of the owner in its cluster, if it is not `member` */
    uint32_t warp;   /* in the block */
    uint32_t clock;  /* instructions that the warp has run, modulo 2^32 */
    /* EMU_STORE: the stored values, as `elements` vectors of 32 lanes with slot_bytes per lane.
     * EMU_STMATRIX: the fragments' registers. NULL: not available. */
    const unsigned char *frame;
    const uint32_t *slots; /* offsets in the frame */
    uint32_t elements, slot_bytes;
    const unsigned char *registers; /* the warp's frame, also of loads */
} emu_request;

/* A warp has run a mov to a register with bytes that are only copied (ptx_register.used). */
typedef struct emu_move {
    const ptx_instruction *ptx;
    const ptx_function *function;
    const unsigned char *registers; /* the warp's frame */
    uint32_t member, warp, active;
} emu_move;

/* Events that order accesses, or that this order depends on. */
typedef enum emu_sync_kind {
    EMU_BARRIER_ARRIVE,   /* lanes arrive at barrier `object`, and wait unless `arrive_only` */
    EMU_BARRIER_COMPLETE, /* barrier `object` completes; lanes, warp and ptx are not valid */
    EMU_CLUSTER_WAIT,     /* barrier.cluster.wait: the phase that lanes arrived in is complete */
    EMU_WARP_SYNC,        /* __syncwarp of these lanes */
    EMU_FENCE,            /* fence or membar: __threadfence and others */
    EMU_LAUNCH_WAIT,      /* griddepcontrol.wait: lanes waited for the previous launch */
    EMU_EXIT,             /* lanes exit */
    /* lanes arrive at the mbarrier at offset `object`; if `address` is set, a lane's bulk copy of
     * `width` bytes to address[0] completes on it */
    EMU_MBARRIER_ARRIVE,
    EMU_MBARRIER_WAIT, /* lanes have observed the end of a phase of the mbarrier at `object` */
    EMU_COPY_DONE,     /* lanes' cp.async to address[] have completed */
    EMU_MBARRIER_INIT, /* lanes initialise the mbarrier at offset `object` */
    EMU_PROXY_FENCE,   /* lanes make their writes visible to the asynchronous proxy */
    EMU_BULK_SOURCE,   /* a lane's bulk store has finished reading `width` bytes at address[0] */
    EMU_MATRIX_COMMIT, /* the warp's wgmma since the last commit become a group */
    EMU_MATRIX_WAIT,   /* all but the last `object` of the warp's wgmma groups have completed */
    /* A lane's shuffle reads lane `object`, which does not take part: in its member mask, or
     * not. */
    EMU_SHUFFLE_ABSENT,
    EMU_SHUFFLE_OUTSIDE,
    EMU_PRINTED /* printf reads a lane's argument: `width` bytes of local memory at address[0] */
} emu_sync_kind;

typedef struct emu_sync {
    emu_sync_kind kind;
    const ptx_instruction *ptx; /* NULL: none */
    uint32_t warp, lanes, clock;
    uint32_t object;
    uint32_t threads; /* barriers: the instruction's thread count; 0: the whole block */
    bool arrive_only;
    bool again;      /* EMU_MBARRIER_INIT: the bytes look like an mbarrier */
    uint32_t member; /* of its group, the block whose warp it is ... */
    uint32_t owner;  /* ... and the block whose shared memory `object` and `address` are in */
    const uint64_t *address; /* offsets in shared memory, and ... */
    uint32_t width;          /* ... bytes per lane: EMU_COPY_DONE and bulk copies */
} emu_sync;

/* Faults, which end a launch; the hazard detector reports them as findings. */
typedef enum emu_fault_kind {
    EMU_OUT_OF_BOUNDS,
    EMU_MISALIGNED,
    EMU_DEADLOCK,
    EMU_EXITED,      /* the block whose shared memory is accessed has exited */
    EMU_SHARED_LIMIT /* of the launch: no instruction, block or thread */
} emu_fault_kind;

typedef struct emu_fault {
    emu_fault_kind kind;
    const ptx_instruction *ptx;       /* NULL: none */
    const uint32_t *block;            /* NULL: none */
    uint32_t thread;                  /* in the block */
    const ptx_instruction *other_ptx; /* EMU_EXITED: the exit, and whose; else NULL */
    const uint32_t *other_block;
    uint32_t other_thread;
    uint64_t address; /* generic (machine/spaces.h) */
    uint32_t width;
    const char *message; /* valid during the call only */
} emu_fault;

/* How often an instruction ran. */
typedef struct emu_executed {
    uint64_t warps;
    uint64_t lanes; /* lanes whose guard was true; may be 0 */
} emu_executed;

/* A warp has run an instruction. */
typedef struct emu_step {
    const struct warp *warp;
    const struct insn *insn;   /* perhaps a hidden one (machine/decode.c) */
    const struct frame *frame; /* that it ran in */
    uint32_t active;           /* the lanes of its split ... */
    uint32_t executed;         /* ... and those of them whose guard held, unless it is a branch */
} emu_step;

struct launch;

typedef struct emu_observer {
    void *self;
    /* Called before a launch; false: out of memory. If it sets *sequential, the launch's blocks run
     * on one host thread, one after the other. */
    bool (*launch)(void *self, const struct launch *launch, bool *sequential);
    void *(*fork)(void *self);             /* NULL: out of memory, and the launch fails */
    void (*join)(void *self, void *state); /* merges and frees the state */
    void (*finish)(void *self);            /* called after all host threads have joined */
    void (*memory)(void *state, const emu_request *request);
    void (*moved)(void *state, const emu_move *move);
    /* Counters of the function's instructions, which the interpreter increments; NULL: none. */
    emu_executed *(*executed)(void *state, const ptx_function *function);
    /* A warp arrives; complete: the arrival completed the barrier. */
    void (*barrier)(void *state, const ptx_instruction *ptx, uint32_t warp, uint32_t barrier,
                    bool complete);
    void (*sync)(void *state, const emu_sync *event);
    /* All blocks of a group begin before the first of them runs; they end one by one. */
    void (*block)(void *state, const uint32_t block[3], uint32_t member, bool begin);
    /* Called after each instruction, and so after the hooks of its accesses and events. */
    void (*step)(void *state, const emu_step *step);
    bool (*exhausted)(void *state); /* true: out of memory, and the launch must end */
    void (*fault)(void *self, const emu_fault *fault); /* called under the launch's lock */
} emu_observer;

#endif
