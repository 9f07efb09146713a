/* The state of a running flow that its threads share: which piece of which copy is next, and which kernels
 * can start. */
#ifndef SMK_PIPELINE_TASKS_H
#define SMK_PIPELINE_TASKS_H

#include "plan/graph.h"
#include "../cuda/launch.h"
#include "../cuda/stage.h"

/* How a rectangle is cut: into some lines each, or into parts of one. */
typedef struct chunking {
    size_t width, lines, across, n;
} chunking;

chunking cut_into_chunks(const smk_rectangle *r, size_t most_bytes);
smk_rectangle flow_part(const smk_rectangle *whole, const chunking *cut, size_t i);

/* Lines that follow each other on both sides become one. */
smk_rectangle joined_lines(smk_rectangle r);

/* A copy is cut into pieces that fit a stage. */
typedef struct task_state {
    smk_rectangle whole; /* with lines joined where they follow each other on both sides */
    chunking cut;
    bool direct;            /* no stage: the driver reaches the host's memory; one piece */
    uint32_t common;        /* other flows have this task too, under that number from 1 on ... */
    bool elsewhere;         /* ... and one of them brings it for all */
    size_t taken, on_queue; /* pieces handed out; pieces that are on the stream */
    launch_plan plan;       /* a compute task's */
    CUevent done;           /* the task's end, if tasks of other streams wait for it */
    bool told;              /* a direct copy out waits for it ... */
    uint32_t mark;          /* ... and sees it in its lane's mark */
    bool queued;            /* all of it is on its stream, and all before it in its queue */
} task_state;

/* A piece of a copy. */
typedef struct chunk {
    size_t task;
    smk_rectangle rectangle;
    bool direct;
} chunk;

/* A stage of a flow and what passes through it now: one copy of the driver's, some shares of threads. */
typedef struct staging_slot {
    stage *stage;
    chunk piece;
    chunking cut;         /* into shares */
    size_t taken, copied; /* shares */
    bool open;   /* in: until its copy is on a stream; out: until its bytes are where they belong */
    bool queued; /* out: its copy is on a stream, so that the stage's mark will tell */
} staging_slot;

/* One way's slots, used in turn. Taken by workers_start. No more than the shared cache keeps, or what is staged goes through
 * memory once more; results need more of them, as threads come to empty one only after what they are at. */
enum { SLOTS_IN = 4, SLOTS_OUT = 8 };
typedef struct staging_ring {
    staging_slot slots[SLOTS_OUT];
    size_t n, opened,
        emptied; /* slots; pieces that were begun; of those out, all of whose shares are taken */
} staging_ring;

typedef struct pipeline_state {
    device *d;
    const smk_pipeline *flow;
    struct peer_group *group; /* of the flows that run beside it; NULL: it is alone */
    int self;                 /* its number there */
    uint32_t *common;         /* its tasks that the others have too */
    task_state *tasks;
    CUdeviceptr *addresses; /* of the buffers; 0 for an empty one */
    /* One stream each way: pieces of several would move at once, all slowly, and come all together. */
    CUstream copies[STAGE_WAYS], lanes[SMK_COMPUTE_STREAMS];
    CUstream passing;  /* what other GPUs have brought comes on it from them; NULL: from the host */
    stage_fence *ends; /* of each lane's kernels */
    const char *what;  /* the kernels, as messages name them */
    atomic_bool launched;     /* one of them, at least */
    bool is_much;             /* what passes through slots: workers_run.c says how much that is */
    _Atomic unsigned changes; /* how often there was something new for a thread to take */
    pthread_mutex_t calls; /* for copies and kernels put on streams: the driver's own locks sleep */
    pthread_mutex_t lock;  /* guards what follows */
    pthread_cond_t changed;
    size_t next
        [SMK_N_KINDS]; /* the first task of a kind that is not wholly handed out; n_tasks: none */
    size_t first[SMK_N_KINDS]; /* the first one that is not queued */
    size_t staged[STAGE_WAYS]; /* pieces that are not handed out and go through a slot */
    staging_ring rings[STAGE_WAYS];
    bool may_put;        /* there is memory on the device to copy to */
    bool starts;         /* a thread puts kernels on their streams */
    atomic_bool stopped; /* failed, or interrupted */
    smk_status status;   /* why */
    size_t bytes[STAGE_WAYS], bytes_direct, bytes_staged, bytes_peer;
} pipeline_state;

typedef enum poll_result {
    POLL_TAKEN,
    POLL_NOT_YET, /* the device, or other pieces, come first */
    POLL_DONE
} poll_result;

/* Cuts the tasks up, makes events. tasks_free is due, also when it failed. */
smk_code tasks_init(pipeline_state *f, smk_status *status);
void tasks_free(pipeline_state *f);

/* Before any piece is handed out: that task's go through slots, pinned memory or not; and none is handed out here. */
void tasks_stage(pipeline_state *f, size_t task);
void tasks_skip(pipeline_state *f, size_t task);

typedef struct poll_caller {
    bool has_slot; /* that way */
    bool helps;    /* not the caller */
} poll_caller;

/* With the lock held: the next piece that way, if what it waits for is on its stream. Not at all once the flow is
 * stopped. A pool_thread is done when the rest needs no slot: that is the caller's, one thread's work. */
poll_result tasks_poll_copy(pipeline_state *f, stage_way way, poll_caller who, chunk *out);

/* With the lock held: threads that rest may find something to do. */
void tasks_notify(pipeline_state *f);

/* The piece's copy, between its slot (NULL: it is direct) and the device, is on its stream. Starts the kernels that
 * waited for it. */
void tasks_enqueued(pipeline_state *f, const chunk *piece, staging_slot *slot);

/* A call of the driver failed. Where the context is lost a kernel has lost it, whichever call tells: it is named. */
smk_code pipeline_fail(const pipeline_state *f, CUresult result, const char *call,
                       smk_status *status);

/* Ends all threads' work; the first reason is kept. */
void pipeline_stop(pipeline_state *f, const smk_status *why);

/* Waits a little, at most until there have been more changes than these. */
void tasks_idle_wait(pipeline_state *f, unsigned changes);

/* Starts the kernels that wait for nothing. */
void tasks_start_kernels(pipeline_state *f);

#endif
