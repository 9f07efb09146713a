/* Helpers of the cases: a job that adds two vectors, and checks that end the process. */
#ifndef GPU_CASES_H
#define GPU_CASES_H

#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/cuda/gpu.h"
#include "../../csrc/pipeline/pipeline.h"
#include "fake_libcuda.h"

enum { SKIPPED = 77 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (condition) break;                                                                      \
        fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                  \
        exit(1);                                                                                   \
    } while (0)

#define CHECK_OK(call, status)                                                                     \
    do {                                                                                           \
        if ((call) == SMK_OK) break;                                                               \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, (status).message);                      \
        exit(1);                                                                                   \
    } while (0)

typedef struct vector_job {
    smk_job job; /* may be changed before the run */
    smk_pointer pointers[3];
    smk_launch launches[2];
    smk_buffer buffers[3];
    struct {
        uint64_t x, y, z, n;
    } args[2];
    float *x, *y, *z;
    size_t n;
} vector_job;

/* z = x + y in two launches, one a half; x and y are random, z is poisoned. Must not move. */
void vector_job_make(vector_job *v, size_t n, const char *key);
void vector_job_check(const vector_job *v);
void vector_job_free(vector_job *v);

/* Makes, runs, checks, frees: it must work. */
void run_and_check(size_t n);

extern fake_cuda_state *fake; /* NULL on a real driver */

/* Nothing of a call is left but what is kept on purpose: streams, stages and modules for the next one. */
void check_clean(void);

int stop_at_third(void *polls); /* a poll */

void case_pipeline(char **arguments);
void case_pipeline_interrupt(char **arguments);

void use_fake(void); /* skips the case where the driver is real */

#endif
