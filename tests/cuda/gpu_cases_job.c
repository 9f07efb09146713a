/* The job of the cases and its kernels: "add", "spin" (runs for two seconds) and "crash". */
#include <math.h>
#include <string.h>

#include "gpu_cases.h"

static const char ptx[] = ".version 7.0\n"
                          ".target sm_80\n"
                          ".address_size 64\n"
                          ".visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z,\n"
                          "                    .param .u64 n)\n"
                          "{\n"
                          "    .reg .pred %p;\n"
                          "    .reg .b32 %r<4>;\n"
                          "    .reg .b64 %d<6>;\n"
                          "    .reg .f32 %f<3>;\n"
                          "    mov.u32 %r0, %ctaid.x;\n"
                          "    mov.u32 %r1, %ntid.x;\n"
                          "    mov.u32 %r2, %tid.x;\n"
                          "    mad.wide.u32 %d0, %r0, %r1, 0;\n"
                          "    cvt.u64.u32 %d1, %r2;\n"
                          "    add.u64 %d0, %d0, %d1;\n"
                          "    ld.param.u64 %d1, [n];\n"
                          "    setp.ge.u64 %p, %d0, %d1;\n"
                          "    @%p ret;\n"
                          "    shl.b64 %d0, %d0, 2;\n"
                          "    ld.param.u64 %d2, [x];\n"
                          "    ld.param.u64 %d3, [y];\n"
                          "    ld.param.u64 %d4, [z];\n"
                          "    add.u64 %d2, %d2, %d0;\n"
                          "    add.u64 %d3, %d3, %d0;\n"
                          "    add.u64 %d4, %d4, %d0;\n"
                          "    ld.global.f32 %f0, [%d2];\n"
                          "    ld.global.f32 %f1, [%d3];\n"
                          "    add.rn.f32 %f2, %f0, %f1;\n"
                          "    st.global.f32 [%d4], %f2;\n"
                          "    ret;\n"
                          "}\n"
                          ".visible .entry spin(.param .u64 x, .param .u64 y, .param .u64 z,\n"
                          "                     .param .u64 n)\n"
                          "{\n"
                          "    .reg .pred %p;\n"
                          "    .reg .b64 %d<3>;\n"
                          "    mov.u64 %d0, %globaltimer;\n"
                          "again:\n"
                          "    mov.u64 %d1, %globaltimer;\n"
                          "    sub.u64 %d2, %d1, %d0;\n"
                          "    setp.lt.u64 %p, %d2, 2000000000;\n"
                          "    @%p bra again;\n"
                          "    ret;\n"
                          "}\n"
                          ".visible .entry crash(.param .u64 x, .param .u64 y, .param .u64 z,\n"
                          "                      .param .u64 n)\n"
                          "{\n"
                          "    .reg .b64 %d;\n"
                          "    mov.u64 %d, 16;\n"
                          "    st.global.u32 [%d], 1;\n"
                          "    ret;\n"
                          "}\n";

static const uint32_t parameters[] = {0, 8, 16, 24};

void vector_job_make(vector_job *v, size_t n, const char *key) {
    size_t bytes = n * sizeof(float);
    *v = (vector_job){
        .n = n, .x = malloc(bytes + 1), .y = malloc(bytes + 1), .z = malloc(bytes + 1)};
    for (size_t i = 0; i < n; i++) {
        v->x[i] = (float)rand() / (float)RAND_MAX - 0.5f;
        v->y[i] = (float)rand() / (float)RAND_MAX - 0.5f;
        v->z[i] = NAN;
    }
    v->buffers[0] = (smk_buffer){v->x, bytes, SMK_IN};
    v->buffers[1] = (smk_buffer){v->y, bytes, SMK_IN};
    v->buffers[2] = (smk_buffer){v->z, bytes, SMK_OUT};
    size_t half = n / 2;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t offset = i * half * sizeof(float), count = i ? n - half : half;
        v->args[i].x = v->args[i].y = v->args[i].z = offset;
        v->args[i].n = count;
        v->launches[i] = (smk_launch){.entry = "add",
                                      .grid = {(uint32_t)(count / 256 + 1), 1, 1},
                                      .block = {256, 1, 1},
                                      .args = &v->args[i]};
    }
    for (uint32_t i = 0; i < 3; i++)
        v->pointers[i] = (smk_pointer){8 * i, i};
    v->job = (smk_job){.image = {key, ptx, sizeof ptx - 1, NULL},
                       .pointers = v->pointers,
                       .n_pointers = 3,
                       .args_bytes = sizeof v->args[0],
                       .parameters = parameters,
                       .n_parameters = 4,
                       .launches = v->launches,
                       .n_launches = 2,
                       .buffers = v->buffers,
                       .n_buffers = 3};
}

void vector_job_check(const vector_job *v) {
    for (size_t i = 0; i < v->n; i++)
        CHECK(v->z[i] == v->x[i] + v->y[i]);
}

void vector_job_free(vector_job *v) {
    free(v->x);
    free(v->y);
    free(v->z);
}

void run_and_check(size_t n) {
    vector_job v;
    smk_status status = {0};
    vector_job_make(&v, n, "vectors");
    CHECK_OK(pipeline_run_job(0, &v.job, &status), status);
    vector_job_check(&v);
    vector_job_free(&v);
}
