/* A pipeline that adds the vectors of a vector_job: copies blocks of x and y in, adds them on all
 * compute streams, copies blocks of z out. The device has slots for fewer blocks than there are. */
#include <string.h>

#include "gpu_cases.h"

enum { BLOCKS = 7, SLOTS = 3, TASKS = 4 * BLOCKS };

typedef struct vector_pipeline {
    vector_job v;
    smk_job jobs[BLOCKS];
    smk_launch launches[BLOCKS];
    struct {
        uint64_t x, y, z, n;
    } args[BLOCKS];
    smk_task tasks[TASKS];
    smk_buffer buffers[3];
    smk_pipeline pipeline;
} vector_pipeline;

/* The tasks of a block, in list order. */
typedef enum block_task { COPY_X, COPY_Y, ADD, COPY_Z, N_BLOCK_TASKS } block_task;

static uint32_t number_of(int block, block_task t) {
    return (uint32_t)(N_BLOCK_TASKS * block + (int)t);
}

static void wait_for(smk_task *task, int block, block_task earlier) {
    if (block >= 0) task->after[task->n_after++] = number_of(block, earlier);
}

static void vector_pipeline_make(vector_pipeline *p, size_t n) {
    memset(p, 0, sizeof *p);
    vector_job_make(&p->v, n, "vectors");
    const size_t max = (n + BLOCKS - 1) / BLOCKS;
    char *host[] = {(char *)p->v.x, (char *)p->v.y, (char *)p->v.z};
    for (int i = 0; i < 3; i++)
        p->buffers[i].bytes = SLOTS * max * sizeof(float);
    for (int b = 0; b < BLOCKS; b++) {
        const size_t first = (size_t)b * max < n ? (size_t)b * max : n;
        const size_t count = n - first < max ? n - first : max;
        const size_t offset = (size_t)(b % SLOTS) * max * sizeof(float);
        p->args[b].x = p->args[b].y = p->args[b].z = offset;
        p->args[b].n = count;
        p->launches[b] = (smk_launch){.entry = "add",
                                      .grid = {(uint32_t)(count / 256 + 1), 1, 1},
                                      .block = {256, 1, 1},
                                      .args = &p->args[b]};
        p->jobs[b] = p->v.job;
        p->jobs[b].launches = &p->launches[b];
        p->jobs[b].n_launches = 1;
        smk_task *tasks = &p->tasks[number_of(b, COPY_X)];
        const block_task copies[] = {COPY_X, COPY_Y, COPY_Z};
        for (int i = 0; i < 3; i++)
            tasks[copies[i]] = (smk_task){.kind = i < 2 ? SMK_COPY_IN : SMK_COPY_OUT,
                                          .rectangle = {.host = host[i] + first * sizeof(float),
                                                        .buffer = (uint32_t)i,
                                                        .offset = offset,
                                                        .width = count * sizeof(float),
                                                        .height = 1}};
        tasks[ADD] = (smk_task){
            .kind = SMK_COMPUTE, .job = &p->jobs[b], .compute_stream = b % SMK_COMPUTE_STREAMS};
        wait_for(&tasks[COPY_X], b - SLOTS, ADD);
        wait_for(&tasks[COPY_Y], b - SLOTS, ADD);
        wait_for(&tasks[ADD], b, COPY_Y);
        wait_for(&tasks[ADD], b - SLOTS, COPY_Z);
        wait_for(&tasks[COPY_Z], b, ADD);
    }
    p->pipeline = (smk_pipeline){.image = p->v.job.image,
                                 .buffers = p->buffers,
                                 .n_buffers = 3,
                                 .tasks = p->tasks,
                                 .n_tasks = TASKS};
}

void case_pipeline(char **arguments) {
    (void)arguments;
    const size_t sizes[] = {8 << 20, 1000003, 5, 0};
    for (int i = 0; i < 4; i++) {
        vector_pipeline p;
        smk_status status = {0};
        smk_transfer moved = {0};
        _Atomic size_t delivered = 0;
        vector_pipeline_make(&p, sizes[i]);
        p.pipeline.transfer = &moved;
        p.pipeline.delivered = &delivered;
        CHECK_OK(pipeline_run_gpu(0, &p.pipeline, &status), status);
        vector_job_check(&p.v);
        CHECK(moved.bytes_in == 8 * sizes[i] && moved.bytes_out == 4 * sizes[i]);
        CHECK(delivered == 4 * sizes[i] && moved.steps == TASKS && moved.bytes_direct == 0);
        if (fake && i == 0) CHECK(moved.threads > 1);
        vector_job_free(&p.v);
    }
    check_clean();
}

/* Kernels that never end, on all compute streams: the call is interrupted. Later calls work, and
 * reuse nothing of it while its kernels run. */
void case_pipeline_interrupt(char **arguments) {
    (void)arguments;
    run_and_check(1000);
    vector_pipeline p;
    smk_status status = {0};
    int polls = 0;
    if (fake) fake->kernels_hang = true;
    vector_pipeline_make(&p, 4 << 20);
    for (int b = 0; b < BLOCKS; b++)
        p.launches[b].entry = "spin";
    p.pipeline.poll = stop_at_third;
    p.pipeline.poll_arg = &polls;
    CHECK(pipeline_run_gpu(0, &p.pipeline, &status) == SMK_INTERRUPTED && polls == 3);
    vector_job_free(&p.v);
    for (int i = 0; i < 3; i++)
        run_and_check(1000);
    if (fake) {
        CHECK(fake->blocks == 3);
        fake->kernels_hang = false;
        run_and_check(1000);
    }
    check_clean();
}
