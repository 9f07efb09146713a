/* The state of a running pipeline, shared by its threads: which chunk of which copy is next, and
 * which kernels can be launched. */
#ifndef SMK_PIPELINE_TASKS_H
#define SMK_PIPELINE_TASKS_H

#include "plan/graph.h"
#include "../cuda/launch.h"
#include "../cuda/stage.h"

/* A rectangle in equal parts (the last ones may be smaller): each has `height` whole rows, or a
 * part of one row. */
typedef struct chunking {
    size_t width, height;
    size_t per_row; /* parts side by side */
    size_t n;
} chunking;

chunking cut_into_chunks(const smk_rectangle *r, size_t max_bytes);
smk_rectangle chunk_at(const smk_rectangle *whole, const chunking *c, size_t i);

/* The rectangle as a single row, if its rows are adjacent on both sides. */
smk_rectangle join_rows(smk_rectangle r);

/* A copy is cut into chunks. A chunk passes through one staging buffer, or is copied directly. */
typedef struct task_state {
    smk_rectangle whole; /* rows joined */
    chunking chunks;
    bool direct;         /* the host memory is pinned: one chunk, no staging buffer */
    bool copied_by_peer; /* another pipeline of the group copies it for all */
    uint32_t shared;  /* 1 + index in shared_tasks, if all pipelines of the group have the task */
    size_t taken;     /* chunks handed out to threads */
    size_t on_stream; /* chunks whose copy is on the stream */
    bool enqueued;    /* the whole task is on its stream, after all earlier ones of its queue */
    launch_plan launches; /* computes */
    CUevent done;         /* recorded at the task's end, if other streams wait for it */
    bool signals;         /* a direct copy out waits for the task, ... */
    uint32_t sequence;    /* ... until its compute stream's fence reaches this */
} task_state;

typedef struct chunk {
    size_t task;
    smk_rectangle rectangle;
    bool direct;
} chunk;

/* A staging buffer and the chunk in it: one copy by the driver, some slices copied by threads. */
typedef struct staging_slot {
    stage *stage;
    chunk chunk;
    chunking slices;
    size_t taken, copied; /* slices */
    bool open;     /* in: until the copy is on its stream; out: until all slices are copied */
    bool enqueued; /* out: the copy is on its stream, so the stage's fence signals its end */
} staging_slot;

/* Slots of one direction, used round robin. All of them should fit in the shared cache: otherwise
 * staged bytes take another trip to memory. Results need more slots, because a thread empties a
 * slot only after it has finished its current work. */
enum { SLOTS_IN = 4, SLOTS_OUT = 8 };

typedef struct staging_ring {
    staging_slot slots[SLOTS_OUT];
    size_t n;
    size_t opened;  /* chunks so far */
    size_t emptied; /* out: chunks with all slices taken */
} staging_ring;

typedef struct pipeline_state {
    device *d;
    const smk_pipeline *graph;
    struct peer_group *group; /* pipelines on other GPUs; NULL: none */
    int member;               /* index in the group */
    uint32_t *shared_tasks;   /* numbers of the tasks that all pipelines of the group have */
    task_state *tasks;
    CUdeviceptr *addresses; /* of the buffers; 0: an empty one */
    /* One stream per direction: chunks of several would be copied at once, and all arrive late. */
    CUstream copy_streams[STAGE_WAYS], compute_streams[SMK_COMPUTE_STREAMS];
    CUstream peer_stream;         /* copies from other GPUs; NULL: peers copy from the host */
    stage_fence *kernel_fences;   /* one per compute stream */
    const char *kernel_name;      /* for messages */
    atomic_bool launched;         /* at least one kernel */
    bool memory_bound;            /* many staged bytes: host memory is the bottleneck */
    _Atomic unsigned changes;     /* incremented when there may be new work */
    pthread_mutex_t driver_mutex; /* one driver call at a time: the driver's own locks sleep */
    pthread_mutex_t lock;         /* guards what follows */
    pthread_cond_t changed;
    size_t next_copy[SMK_N_KINDS]; /* the first task with untaken chunks; n_tasks: none */
    size_t pending[SMK_N_KINDS];   /* the first task that is not enqueued */
    size_t unstaged[STAGE_WAYS];   /* chunks that need a slot and are not taken */
    staging_ring rings[STAGE_WAYS];
    bool memory_ready;   /* device memory is allocated: copies can be enqueued */
    bool launching;      /* a thread is launching kernels */
    atomic_bool stopped; /* failed or interrupted; `status` has the reason */
    smk_status status;
    size_t bytes[STAGE_WAYS], bytes_direct, bytes_staged, bytes_peer;
} pipeline_state;

typedef enum poll_result {
    POLL_TAKEN,
    POLL_NOT_YET, /* waits for the device, or for other chunks */
    POLL_DONE
} poll_result;

/* Call tasks_free, also after failure. */
smk_code tasks_init(pipeline_state *p, smk_status *status);
void tasks_free(pipeline_state *p);

/* Before any chunk is taken: makes the task use staging, even from pinned memory. */
void tasks_stage(pipeline_state *p, size_t task);

/* Before any chunk is taken: leaves the task to a peer. */
void tasks_skip(pipeline_state *p, size_t task);

typedef struct poll_caller {
    bool has_slot;  /* a free one, in this direction */
    bool is_worker; /* not the caller's thread */
} poll_caller;

/* With the lock held: takes the next chunk, if all that it waits for is enqueued. Workers are done
 * once no chunk needs a slot any more: direct copies are enqueued by the caller's thread. */
poll_result tasks_poll_copy(pipeline_state *p, stage_way way, poll_caller who, chunk *out);

/* With the lock held: wakes idle threads. */
void tasks_notify(pipeline_state *p);

/* The chunk's copy between its slot (NULL: direct) and the device is on its stream. Launches
 * kernels that waited for it. */
void tasks_enqueued(pipeline_state *p, const chunk *chunk, staging_slot *slot);

/* Launches kernels that wait for nothing. */
void tasks_start_kernels(pipeline_state *p);

/* Idles until `changes` differs, at most for 2 ms. */
void tasks_idle_wait(pipeline_state *p, unsigned changes);

/* A driver call failed. If the context is lost, a kernel was the cause: the message names it. */
smk_code pipeline_fail(const pipeline_state *p, CUresult result, const char *call,
                       smk_status *status);

/* Stops all threads; the first reason is kept. */
void pipeline_stop(pipeline_state *p, const smk_status *why);

#endif
