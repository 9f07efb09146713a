/* Hooks: what may watch a run without the interpreter knowing who watches.
 *
 * The interpreter is built twice from one source: with hooks and without, so an unobserved run pays
 * nothing. A launch runs on several host threads: `fork` makes each its own state, `join` merges it
 * back (called one at a time), so hooks need no locks. A hook that an observer does not need is NULL.
 * A launch has one observer; observers.h makes one of two.
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
    EMU_LDMATRIX, /* lanes 0-7, 0-15 or 0-31 hold the addresses of rows of 16 bytes */
    EMU_STMATRIX,
    EMU_BULK_READ, /* no thread's: lanes are up to 32 neighbouring 16-byte pieces of a bulk copy ... */
    EMU_BULK_WRITE,
    EMU_MATRIX_READ /* ... or of an operand that wgmma reads by descriptor */
} emu_operation;

/* One warp instruction's access to one space. A generic access whose lanes hit two spaces makes two;
 * a bulk copy or a wgmma operand makes as many as its pieces need. */
typedef struct emu_request {
    const ptx_instruction *ptx;
    uint32_t index; /* instruction's index in its function */
    const ptx_function *function;
    const struct vectorized *machine; /* what the assembler makes of it (widen.h) */
    ptx_space space;                  /* never PTX_GENERIC */
    emu_operation operation;
    uint32_t width; /* bytes a lane: 1, 2, 4, 8, 16 */
    uint32_t active;
    const uint64_t *address; /* 32 of them: offsets in the window; global: addresses */
    uint64_t step; /* bytes from lane to lane, if all lanes run and it is 0 or width; else ~0 */
    /* EMU_COPY_ASYNC_WRITE: where lanes read, and which of them do; else NULL, 0 */
    const uint64_t *source;
    uint32_t reading;
    /* EMU_BULK_READ of global memory by no lane: sectors of zeros that come instead of what lies
     * outside a tensor; address is not to be used */
    uint32_t filled;
    uint32_t bulk_lane; /* EMU_BULK_...: the lane that asked for it; EMU_MATRIX_READ: 0 */
    uint32_t block[3];
    uint32_t warp;  /* in the block */
    uint32_t clock; /* instructions that the warp has run, modulo 2^32 */
    /* Stores: where the values stand, as `elements` vectors of 32 lanes of `slot_bytes` each. NULL:
     * nobody can tell. */
    const unsigned char *frame;
    const uint32_t *slots; /* offsets in the frame */
    uint32_t elements, slot_bytes;
} emu_request;

/* What orders accesses, or has to do with it. */
typedef enum emu_sync_kind {
    EMU_BARRIER_ARRIVE, /* lanes are at barrier `object`; they wait unless `arrive_only` */
    EMU_BARRIER_COMPLETE, /* barrier `object` lets everybody go on; lanes, warp and ptx mean nothing */
    EMU_WARP_SYNC,        /* lanes waited for each other: __syncwarp */
    EMU_FENCE,            /* __threadfence and the like */
    EMU_LAUNCH_WAIT,      /* lanes waited for the launch before: griddepcontrol.wait */
    EMU_EXIT,             /* lanes have ended */
    EMU_MBARRIER_ARRIVE, /* lanes arrive at the mbarrier at offset `object`, or a lane's bulk copy of
                          * `width` bytes to address[0] does */
    EMU_MBARRIER_WAIT,   /* lanes have seen a phase of that one end */
    EMU_COPY_DONE,       /* lanes' cp.async to address[] is complete, by a wait that covers it */
    EMU_MBARRIER_INIT,   /* lanes make the mbarrier at offset `object` */
    EMU_PROXY_FENCE,     /* lanes let bulk copies and wgmma see what they have written */
    EMU_BULK_SOURCE,     /* a lane's bulk store has read `width` bytes from address[0] on */
    EMU_MATRIX_COMMIT,   /* the warp's wgmma since the last one of these are a group */
    EMU_MATRIX_WAIT      /* all but the last `object` of the warp's groups are done */
} emu_sync_kind;

typedef struct emu_sync {
    emu_sync_kind kind;
    const ptx_instruction *ptx; /* NULL: none */
    uint32_t warp, lanes, clock;
    uint32_t object;
    uint32_t threads; /* barrier: as many as the instruction names; 0: all of the block */
    bool arrive_only;
    const uint64_t *address; /* EMU_COPY_DONE: offsets in shared memory, ... */
    uint32_t width;          /* ... and bytes a lane */
} emu_sync;

/* What ends a launch, and is a finding to who looks for mistakes. */
typedef enum emu_fault_kind {
    EMU_OUT_OF_BOUNDS,
    EMU_MISALIGNED,
    EMU_DEADLOCK,
    EMU_SHARED_LIMIT /* of the launch: there is no instruction, block or thread */
} emu_fault_kind;

typedef struct emu_fault {
    emu_fault_kind kind;
    const ptx_instruction *ptx; /* NULL: none */
    const uint32_t *block;      /* NULL: none */
    uint32_t thread;            /* in the block */
    uint64_t address;           /* as its region knows it */
    uint32_t width;
    const char *message; /* lives as long as the call */
} emu_fault;

/* How often an instruction ran. */
typedef struct emu_executed {
    uint64_t warps, lanes; /* lanes: those whose guard held, perhaps none */
} emu_executed;

struct launch;

typedef struct emu_observer {
    void *self;
    /* A launch is about to begin; false: out of memory. `sequential` may be set: its blocks then run on
     * one host thread, one after the other. */
    bool (*launch)(void *self, const struct launch *launch, bool *sequential);
    void *(*fork)(void *self);             /* NULL if out of memory: the launch fails cleanly */
    void (*join)(void *self, void *state); /* merges and frees state */
    void (*finish)(void *self);            /* every host thread has joined */
    void (*memory)(void *state, const emu_request *request);
    /* Where the interpreter shall count what runs of a function, by instruction; NULL: nowhere. */
    emu_executed *(*executed)(void *state, const ptx_function *function);
    void (*barrier)(void *state, const ptx_instruction *ptx, uint32_t warp, uint32_t barrier,
                    bool complete); /* an arrival; complete: this one released the block */
    void (*sync)(void *state, const emu_sync *event);
    void (*block)(void *state, const uint32_t block[3], bool begin);
    bool (*exhausted)(void *state); /* it has no memory left, so the launch is to end */
    void (*fault)(void *self, const emu_fault *fault); /* under the launch's lock */
} emu_observer;

#endif
