/* A launch, a block of it at work on one host thread, and the warps' state.
 *
 * A warp is a tree of fragments. A fragment is a group of lanes that run together; when they part at a
 * branch, the fragment becomes the parent, waiting at the point where the sides meet again, and the
 * sides become its children. A child that reaches that point, or whose lanes all exit, ends; when the
 * last child has ended the parent goes on with the lanes that are left. Any leaf may run next, which is
 * why this is a tree and not a stack: lanes may wait for lanes on the other side of a branch
 * (__syncwarp, shuffles, spin loops), as on hardware since Volta.
 */
#ifndef EMU_BLOCK_H
#define EMU_BLOCK_H

#include <pthread.h>
#include <stdatomic.h>

#include "../core/job.h"
#include "guarded.h"
#include "observer.h"
#include "print.h"
#include "program.h"
#include "spaces.h"

enum {
    MAX_THREADS = 1024,
    MAX_WARPS = MAX_THREADS / LANES,
    MAX_SHARED_BYTES = 227 * 1024, /* what a block may opt in to on sm_90 */
    MAX_LOCAL_BYTES = 512 * 1024,  /* a thread, as on hardware */
    MAX_CALL_DEPTH = 256,
    N_NAMED_BARRIERS = 16,
    CLUSTER_BARRIER = N_NAMED_BARRIERS, /* barrier.cluster: of a cluster that is this block */
    N_BARRIERS,
    SLICE = 4096, /* instructions that a warp runs before others get their turn */
    MAX_BLOCK_BYTES = 1
        << 30 /* of the host's memory, for what the threads of a block make it keep */
};

/* Fills memory that nobody has written: as 16, 32 or 64 bits a NaN in every floating-point type, so that
 * a kernel that reads it shows. */
enum { POISON = 0x7ff7 };

typedef struct frame {
    struct frame *next;  /* free frames */
    struct frame *older; /* all frames of the block */
    const program *program;
    uint64_t local_base;
    uint32_t depth;
    unsigned char *slots; /* 64-byte aligned */
} frame;

typedef struct fragment {
    uint32_t active;
    uint32_t children; /* > 0: waits for them, then goes on at next */
    const insn *next;
    const insn *reconverge; /* where it ends; NULL: at exit or return */
    struct fragment *parent;
    struct frame *frame;
    bool call;             /* first fragment of a call: owns the frame */
    bool at_barrier;       /* waits for a block barrier, else for lanes of its warp ... */
    uint32_t waits_for;    /* ... the barrier's number, or the lanes */
    struct fragment *link; /* next in warp.ready, warp.waiting or block.free_fragments */
} fragment;

/* A copy that cp.async has begun: read already, written when a wait covers its group. */
typedef struct pending_copy {
    uint32_t lanes;
    uint32_t bytes;
    uint64_t clock;  /* of the warp, when it was issued */
    lanes_u32 group; /* how many groups the lane had committed before */
    unsigned char *to[LANES];
    unsigned char data[LANES][16];
} pending_copy;

typedef struct copy_queue {
    lanes_u32 committed;
    lanes_u32 bulk_committed; /* groups of bulk copies (bulk.c) */
    pending_copy *pending;    /* a ring, oldest at first */
    uint32_t first, n, capacity;
} copy_queue;

typedef struct barrier {
    lanes_u32 arrived;  /* by warp */
    uint32_t complete;  /* warps of which all living lanes have arrived */
    uint32_t wanted;    /* warps; 0: all that live */
    uint32_t n_true;    /* bar.red: threads whose predicate holds ... */
    uint32_t n_threads; /* ... of these */
} barrier;

/* One launch; all host threads that work on it share this. */
typedef struct launch {
    emu_module *module;
    const program *program;
    uint32_t grid[3], block[3];
    uint64_t n_blocks;          /* to run */
    _Atomic uint64_t *finished; /* counts them, if not NULL */
    const uint64_t *blocks;     /* which, NULL: all ... */
    uint64_t first_block;       /* ... by numbers that start at this one */
    uint32_t n_warps;           /* a block */
    bool overlaps, followed; /* may begin before the one before it has ended, as may the next one */
    uint64_t dynamic_shared_at, dynamic_shared_bytes, shared_bytes;
    const region *regions; /* by region_id; shared memory is each block's own */
    uint32_t n_regions;
    const emu_observer *observer; /* NULL: nobody watches */
    int (*poll)(void *);
    void *poll_arg;
    const _Atomic bool *cancel; /* NULL, or true once all threads are to stop */
    pthread_t caller;
    uint64_t max_instructions, slice; /* 0: no limit; the most that a warp runs at a time */
    _Atomic uint64_t instructions;    /* so far, where there is a limit */
    _Atomic uint64_t next_block;
    _Atomic bool stop;
    pthread_mutex_t lock; /* of status, of what was printed and of the observer's join */
    smk_status *status;
    print_log printed;
} launch;

/* One host thread's: the block it works on, and memory that serves block after block. */
typedef struct block {
    launch *launch;
    void *observer_state;
    const struct observe_functions *watching;
    uint32_t index[3];
    uint64_t linear;
    warp *warps;
    region *regions; /* the launch's, with this block's shared memory */
    unsigned char *shared;
    barrier barriers[N_BARRIERS];
    uint32_t used_barriers; /* bits */
    uint32_t living_warps;
    guarded_arena registers; /* of all frames */
    frame **frames;          /* the entry's, by warp */
    frame *all_frames;
    frame *free_frames;
    fragment *free_fragments;
    struct slab *slabs;
    struct bulk_copy *bulk, **bulk_end; /* bulk copies in flight, and where the next is put */
    uint64_t fruitless;                 /* rounds in which all warps only asked mbarriers in vain */
    print_buffer printed;
    uint64_t charged;     /* bytes, of MAX_BLOCK_BYTES */
    void (*idle)(void *); /* polls, if this host thread is the one that does; NULL: another's */
    void *idle_arg;
} block;

/* ---- launch.c ---- */

/* regions: all but the kernel's parameters, which this fills from the job's arguments. */
smk_code launch_run(const smk_job *job, const smk_launch *shape, const program *program,
                    region *regions, uint32_t n_regions, const emu_observer *observer,
                    smk_status *status);
/* Stops the launch; the first failure is kept. */
/* Of the thread that calls, for work within a launch. */
interrupt_poller launch_poller(const launch *l);
void launch_fail(launch *l, smk_code code, const char *message);
/* The same with fault->message, and the observer is told. */
void launch_fail_at(launch *l, smk_code code, const emu_fault *fault);

/* ---- block.c ---- */

block *block_new(launch *l, void *observer_state);
void block_free(block *b);
/* Runs one block to its end; `idle` is called now and then and stops the launch by setting stop. */
void block_run(block *b, uint64_t linear, void (*idle)(void *), void *idle_arg);

/* Polls. False: the launch has been stopped. Asked between slices, and by instructions of which a slice
 * could take seconds. */
bool block_goes_on(const block *b);

/* Whether the block's threads may make it keep so many more bytes; if not, the launch has failed. */
bool block_charge(block *b, uint64_t bytes);

/* ---- frames.c ---- */

/* A frame for a call of p, its slots filled; NULL if out of memory. */
frame *frame_take(warp *w, const program *p, uint64_t local_base, uint32_t depth);
void frame_give(block *b, frame *f);
bool local_reserve(warp *w, uint64_t bytes);

enum { FILL_BLOCK = 1, FILL_REST = 2 };
void frame_fill(const warp *w, frame *f, unsigned which);

/* ---- warp.c ---- */

void warp_run(warp *w);
const char *source_position(const insn *i, char *out, size_t size); /* "gemm.cu:12" */
const insn *exec_guarded(warp *w, const insn *i);

/* As warp_fault with SMK_LAUNCH, for what a watcher wants to know more of; this fills in where. */
const insn *warp_fault_at(warp *w, const insn *i, uint32_t lanes, const emu_fault *what,
                          const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Lanes of the active ones for which the guard holds. */
uint32_t guard_lanes(const warp *w, const insn *i);

/* ---- fragment.c ---- */

/* The first fragment of a warp; NULL if out of memory. */
fragment *fragment_root(warp *w, uint32_t lanes, frame *f);
/* taken goes to i->target, the rest on; they meet at i->reconverge. */
const insn *fragment_diverge(warp *w, const insn *i, uint32_t taken);
/* Of the same kind: taken goes to one instruction, the others to another. */
const insn *fragment_split(warp *w, const insn *i, uint32_t taken, const insn *target,
                           const insn *otherwise);
/* The active lanes reached their fragment's end. */
const insn *fragment_end(warp *w);
/* lanes are gone, from the call or for good: `next` is where the others go on. */
const insn *fragment_leave(warp *w, uint32_t lanes, bool exited, const insn *next);
/* The running fragment waits at i; lanes and barrier as in fragment. */
const insn *fragment_wait(warp *w, const insn *i, bool at_barrier, uint32_t waits_for);
/* A waiting fragment goes on at next. */
void fragment_resume(warp *w, fragment *f, const insn *next);
/* Switches to the next leaf that can run; NULL if none can. */
const insn *fragment_switch(warp *w);
/* The running fragment asked in vain: the turn of another leaf, and then of another warp. Returns NULL. */
const insn *fragment_yield(warp *w, const insn *next);
/* The slice is over: another leaf's turn. */
void fragment_rotate(warp *w, const insn *next);

/* Nothing can run: lanes at a meeting point go on without those that wait for a barrier or for other
 * lanes. False if there are none. */
bool fragment_unblock(warp *w);
/* lanes of the running fragment enter a function; it waits for them. False if out of memory. */
bool fragment_push_call(warp *w, uint32_t lanes, frame *callee);
void fragment_free_slabs(block *b);

/* ---- barrier.c, sync.c ---- */

/* Lanes of w exited: whoever waited for them may go on. */
void barrier_lanes_left(warp *w);
void collective_lanes_left(warp *w);

#endif
