/* The state of a running flow that its threads share: which piece of which copy is next, and which kernels
 * can start. */
#ifndef SMK_CUDA_FLOW_STEPS_H
#define SMK_CUDA_FLOW_STEPS_H

#include "../core/flow.h"
#include "launch.h"
#include "stage.h"

/* How a rectangle is cut: into some lines each, or into parts of one. */
typedef struct flow_cut {
    size_t width, lines, across, n;
} flow_cut;

flow_cut flow_cut_into(const smk_rectangle *r, size_t most_bytes);
smk_rectangle flow_part(const smk_rectangle *whole, const flow_cut *cut, size_t i);

/* Lines that follow each other on both sides become one. */
smk_rectangle flow_joined(smk_rectangle r);

/* A copy is cut into pieces that fit a stage. */
typedef struct step_state {
    smk_rectangle whole; /* with lines joined where they follow each other on both sides */
    flow_cut cut;
    bool direct;            /* no stage: the driver reaches the host's memory; one piece */
    uint32_t common;        /* other flows have this step too, under that number from 1 on ... */
    bool elsewhere;         /* ... and one of them brings it for all */
    size_t taken, on_queue; /* pieces handed out; pieces that are on the stream */
    launch_plan plan;       /* a compute step's */
    CUevent done;           /* the step's end, if steps of other streams wait for it */
    bool told;              /* a direct copy out waits for it ... */
    uint32_t mark;          /* ... and sees it in its lane's mark */
    bool queued;            /* all of it is on its stream, and all before it in its queue */
} step_state;

/* A piece of a copy. */
typedef struct flow_piece {
    size_t step;
    smk_rectangle rectangle;
    bool direct;
} flow_piece;

/* A stage of a flow and what passes through it now: one copy of the driver's, some shares of threads. */
typedef struct flow_slot {
    stage *stage;
    flow_piece piece;
    flow_cut cut;         /* into shares */
    size_t taken, copied; /* shares */
    bool open;   /* in: until its copy is on a stream; out: until its bytes are where they belong */
    bool queued; /* out: its copy is on a stream, so that the stage's mark will tell */
} flow_slot;

/* One way's slots, used in turn. Taken by flow_begin. No more than the shared cache keeps, or what is staged goes through
 * memory once more; results need more of them, as threads come to empty one only after what they are at. */
enum { SLOTS_IN = 4, SLOTS_OUT = 8 };
typedef struct flow_ring {
    flow_slot slots[SLOTS_OUT];
    size_t n, opened,
        emptied; /* slots; pieces that were begun; of those out, all of whose shares are taken */
} flow_ring;

typedef struct flow_state {
    device *d;
    const smk_flow *flow;
    struct flow_group *group; /* of the flows that run beside it; NULL: it is alone */
    int self;                 /* its number there */
    uint32_t *common;         /* its steps that the others have too */
    step_state *steps;
    CUdeviceptr *addresses; /* of the buffers; 0 for an empty one */
    /* One stream each way: pieces of several would move at once, all slowly, and come all together. */
    CUstream copies[STAGE_WAYS], lanes[SMK_LANES];
    CUstream passing; /* what other GPUs have brought comes on it from them; NULL: from the host */
    stage_mark *ends; /* of each lane's kernels */
    const char *what; /* the kernels, as messages name them */
    atomic_bool launched;     /* one of them, at least */
    bool is_much;             /* what passes through slots: flow_work.c says how much that is */
    _Atomic unsigned changes; /* how often there was something new for a thread to take */
    pthread_mutex_t calls; /* for copies and kernels put on streams: the driver's own locks sleep */
    pthread_mutex_t lock;  /* guards what follows */
    pthread_cond_t changed;
    size_t next
        [SMK_N_KINDS]; /* the first step of a kind that is not wholly handed out; n_steps: none */
    size_t first[SMK_N_KINDS]; /* the first one that is not queued */
    size_t staged[STAGE_WAYS]; /* pieces that are not handed out and go through a slot */
    flow_ring rings[STAGE_WAYS];
    bool may_put;        /* there is memory on the device to copy to */
    bool starts;         /* a thread puts kernels on their streams */
    atomic_bool stopped; /* failed, or interrupted */
    smk_status status;   /* why */
    size_t bytes[STAGE_WAYS], bytes_direct, bytes_staged, bytes_peer;
} flow_state;

typedef enum flow_answer {
    FLOW_TAKEN,
    FLOW_NOT_YET, /* the device, or other pieces, come first */
    FLOW_NO_MORE
} flow_answer;

/* Cuts the steps up, makes events. flow_steps_free is due, also when it failed. */
smk_code flow_steps_make(flow_state *f, smk_status *status);
void flow_steps_free(flow_state *f);

/* Before any piece is handed out: that step's go through slots, pinned memory or not; and none is handed out here. */
void flow_stage(flow_state *f, size_t step);
void flow_give_up(flow_state *f, size_t step);

typedef struct flow_asker {
    bool has_slot; /* that way */
    bool helps;    /* not the caller */
} flow_asker;

/* With the lock held: the next piece that way, if what it waits for is on its stream. Not at all once the flow is
 * stopped. A helper is done when the rest needs no slot: that is the caller's, one thread's work. */
flow_answer flow_take(flow_state *f, stage_way way, flow_asker who, flow_piece *out);

/* With the lock held: threads that rest may find something to do. */
void flow_change(flow_state *f);

/* The piece's copy, between its slot (NULL: it is direct) and the device, is on its stream. Starts the kernels that
 * waited for it. */
void flow_put(flow_state *f, const flow_piece *piece, flow_slot *slot);

/* A call of the driver failed. Where the context is lost a kernel has lost it, whichever call tells: it is named. */
smk_code flow_fail(const flow_state *f, CUresult result, const char *call, smk_status *status);

/* Ends all threads' work; the first reason is kept. */
void flow_stop(flow_state *f, const smk_status *why);

/* Waits a little, at most until there have been more changes than these. */
void flow_rest(flow_state *f, unsigned changes);

/* Starts the kernels that wait for nothing. */
void flow_start(flow_state *f);

#endif
