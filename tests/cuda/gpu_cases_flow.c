/* A flow of the job's vectors: blocks of x and y in, their sums, blocks of z out, over both lanes, with fewer
 * places on the device than there are blocks. */
#include <string.h>

#include "gpu_cases.h"

enum { BLOCKS = 7, PLACES = 3, STEPS = 4 * BLOCKS };

typedef struct vector_flow {
    vector_job v;
    smk_job jobs[BLOCKS];
    smk_launch launches[BLOCKS];
    struct {
        uint64_t x, y, z, n;
    } args[BLOCKS];
    smk_task tasks[STEPS];
    smk_buffer buffers[3];
    smk_pipeline flow;
} vector_flow;

static uint32_t step_of(int block, int what) {
    return (uint32_t)(4 * block + what);
}

void vector_flow_make(vector_flow *f, size_t n) {
    memset(f, 0, sizeof *f);
    vector_job_make(&f->v, n, "vectors");
    const size_t most = (n + BLOCKS - 1) / BLOCKS;
    char *host[] = {(char *)f->v.x, (char *)f->v.y, (char *)f->v.z};
    for (int i = 0; i < 3; i++)
        f->buffers[i].bytes = PLACES * most * sizeof(float);
    for (int b = 0; b < BLOCKS; b++) {
        const size_t first = (size_t)b * most < n ? (size_t)b * most : n;
        const size_t count = n - first < most ? n - first : most;
        const size_t place = (size_t)(b % PLACES) * most * sizeof(float);
        f->args[b].x = f->args[b].y = f->args[b].z = place;
        f->args[b].n = count;
        f->launches[b] = (smk_launch){.entry = "add",
                                      .grid = {(uint32_t)(count / 256 + 1), 1, 1},
                                      .block = {256, 1, 1},
                                      .args = &f->args[b]};
        f->jobs[b] = f->v.job;
        f->jobs[b].launches = &f->launches[b];
        f->jobs[b].n_launches = 1;
        for (int what = 0; what < 4; what++) {
            smk_task *task = &f->tasks[step_of(b, what)];
            const int buffer = what == 3 ? 2 : what;
            if (what == 2) {
                *step = (smk_task){.kind = SMK_COMPUTE, .job = &f->jobs[b], .lane = b % SMK_COMPUTE_STREAMS};
                task->after[task->n_after++] = step_of(b, 1);
                if (b >= PLACES) task->after[task->n_after++] = step_of(b - PLACES, 3);
                continue;
            }
            *step = (smk_task){.kind = what == 3 ? SMK_COPY_OUT : SMK_COPY_IN,
                               .rectangle = {.host = host[buffer] + first * sizeof(float),
                                             .buffer = (uint32_t)buffer,
                                             .offset = place,
                                             .width = count * sizeof(float),
                                             .lines = 1}};
            if (what == 3) task->after[task->n_after++] = step_of(b, 2);
            if (what < 2 && b >= PLACES) task->after[task->n_after++] = step_of(b - PLACES, 2);
        }
    }
    f->flow = (smk_pipeline){.image = f->v.job.image,
                         .buffers = f->buffers,
                         .n_buffers = 3,
                         .tasks = f->tasks,
                         .n_tasks = STEPS};
}

void case_flow(char **arguments) {
    (void)arguments;
    const size_t sizes[] = {8 << 20, 1000003, 5, 0};
    for (int i = 0; i < 4; i++) {
        vector_flow f;
        smk_status status = {0};
        smk_transfer moved = {0};
        _Atomic size_t delivered = 0;
        vector_flow_make(&f, sizes[i]);
        f.flow.transfer = &moved;
        f.flow.delivered = &delivered;
        CHECK_OK(pipeline_run_gpu(0, &f.flow, &status), status);
        vector_job_check(&f.v);
        CHECK(moved.bytes_in == 8 * sizes[i] && moved.bytes_out == 4 * sizes[i]);
        CHECK(delivered == 4 * sizes[i] && moved.tasks == STEPS && moved.bytes_direct == 0);
        if (fake && i == 0) CHECK(moved.threads > 1);
        vector_job_free(&f.v);
    }
    check_clean();
}

/* Kernels that do not end, on both lanes: the call does; later ones work, and nothing of it is reused before. */
void case_flow_interrupt(char **arguments) {
    (void)arguments;
    run_and_check(1000);
    vector_flow f;
    smk_status status = {0};
    int polls = 0;
    if (fake) fake->kernels_hang = true;
    vector_flow_make(&f, 4 << 20);
    for (int b = 0; b < BLOCKS; b++)
        f.launches[b].entry = "spin";
    f.flow.poll = stop_at_third;
    f.flow.poll_arg = &polls;
    CHECK(pipeline_run_gpu(0, &f.flow, &status) == SMK_INTERRUPTED && polls == 3);
    vector_job_free(&f.v);
    for (int i = 0; i < 3; i++)
        run_and_check(1000);
    if (fake) {
        CHECK(fake->blocks == 3);
        fake->kernels_hang = false;
        run_and_check(1000);
    }
    check_clean();
}
