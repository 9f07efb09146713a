/* Cases for device "cuda", one a run: gpu_cases NAME [ARGUMENTS]. They run on the fake driver and,
 * where they do not steer it, on a real one. Exit status 0: passed, 77: skipped.
 */
#include "gpu_cases.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

fake_cuda_state *fake;

void use_fake(void) {
    if (fake) return;
    fprintf(stderr, "needs the fake driver\n");
    exit(SKIPPED);
}

void check_clean(void) {
    if (!fake) return;
    CHECK(fake->blocks == 0 && fake->used_bytes == 0);
    CHECK(fake->events == 0);
    CHECK(fake->contexts_pushed == 0);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void case_describe(char **arguments) {
    (void)arguments;
    smk_status status = {0};
    gpu_info info;
    CHECK(gpu_count(&status) >= 1);
    CHECK_OK(gpu_describe(0, &info, &status), status);
    CHECK(info.sm >= 50 && info.multiprocessors > 0 && info.clock_khz > 100000);
    CHECK(info.memory_bytes >= 1 << 30 && info.shared_bytes_optin >= 48 << 10);
    CHECK(info.driver_version >= 12000);
    run_and_check(10);
    /* Of a device in use the driver is asked nothing. */
    if (fake) {
        fake->fail_call = "cuDeviceGetAttribute";
        fake->fail_countdown = 1;
        fake->fail_result = 999;
    }
    CHECK_OK(gpu_describe(0, &info, &status), status);
    CHECK(gpu_describe(99, &info, &status) == SMK_NO_DEVICE && strstr(status.message, "cuda:99"));
    printf("%s, sm_%d, driver for CUDA %d\n", info.name, info.sm, info.driver_version);
}

/* No driver, or one that does not start: the reason is printed. */
static void case_absent(char **arguments) {
    (void)arguments;
    for (int i = 0; i < 2; i++) {
        smk_status status = {0}, run_status = {0};
        vector_job v;
        CHECK(gpu_count(&status) == 0 && gpu_count(NULL) == 0);
        vector_job_make(&v, 10, "vectors");
        CHECK(pipeline_run_job(0, &v.job, &run_status) == status.code && status.code != SMK_OK);
        CHECK(!strcmp(status.message, run_status.message));
        CHECK(gpu_pool_bytes(0) == 0);
        vector_job_free(&v);
        if (i == 0) printf("%d %s\n", status.code, status.message);
    }
}

static void case_add(char **arguments) {
    (void)arguments;
    const size_t sizes[] = {1000003, 2, 1, 0};
    for (int i = 0; i < 4; i++)
        run_and_check(sizes[i]);
    check_clean();
    if (fake) CHECK(fake->bytes_in == 2 * fake->bytes_out);
}

static void case_reuse(char **arguments) {
    (void)arguments;
    run_and_check(100000);
    int fresh = fake ? fake->fresh_blocks : 0;
    CHECK(gpu_pool_bytes(0) >= 3 * 400000);
    for (int i = 0; i < 10; i++)
        run_and_check(100000);
    if (fake) CHECK(fake->fresh_blocks == fresh && fake->streams == 1 && fake->modules == 1);
    smk_status status = {0};
    CHECK_OK(gpu_trim(0, &status), status);
    CHECK(gpu_pool_bytes(0) == 0);
    check_clean();
}

static void case_timing(char **arguments) {
    (void)arguments;
    vector_job v;
    smk_status status = {0};
    float milliseconds[150];
    vector_job_make(&v, 100000, "vectors");
    for (int i = 0; i < 150; i++)
        milliseconds[i] = -1;
    v.job.repeat = 150;
    v.job.milliseconds = milliseconds;
    /* z = z + y: read and written, so that repeats must not reach the result */
    v.pointers[0].buffer = 2;
    memcpy(v.z, v.x, v.buffers[2].bytes);
    v.buffers[2].access = SMK_IN | SMK_OUT;
    CHECK_OK(pipeline_run_job(0, &v.job, &status), status);
    vector_job_check(&v);
    for (int i = 0; i < 150; i++)
        CHECK(milliseconds[i] > 0 && milliseconds[i] < 1000);
    printf("launches of the job took %.4f ms\n", (double)milliseconds[100]);
    vector_job_free(&v);
    check_clean();
}

/* A job that only queues its work may be the first of the process, with a workspace, in a capture;
 * one that does not leaves captures alone. Memory that a graph would not own is refused. */
static void case_capture(char **arguments) {
    use_fake();
    fake->no_pools = arguments[0] != NULL;
    vector_job v;
    smk_status status = {0};
    vector_job_make(&v, 1000, "vectors");
    for (int i = 0; i < 3; i++)
        v.buffers[i] = (smk_buffer){.bytes = 4000};
    v.job.stream = GPU_DEFAULT_STREAM;
    v.job.asynchronous = true;
    fake->capturing = true;
    if (fake->no_pools) {
        CHECK(pipeline_run_job(0, &v.job, &status) == SMK_VALUE && strstr(status.message, "captur"));
        fake->capturing = false;
        status = (smk_status){0};
    }
    for (int i = 0; i < 2; i++)
        CHECK_OK(pipeline_run_job(0, &v.job, &status), status);
    run_and_check(10);
    vector_job_free(&v);
    check_clean();
}

/* The launches that say so may begin early; the first of a job never does. */
static void case_overlap(char **arguments) {
    use_fake();
    fake->virtual_sm = atoi(arguments[0]);
    fake->version = atoi(arguments[1]);
    vector_job v;
    smk_status status = {0};
    vector_job_make(&v, 1000, "vectors");
    CHECK_OK(pipeline_run_job(0, &v.job, &status), status);
    CHECK(fake->overlapping == 0);
    v.launches[1].overlaps = true;
    for (int i = 0; i < 2; i++)
        CHECK_OK(pipeline_run_job(0, &v.job, &status), status);
    CHECK(fake->overlapping == atoi(arguments[2]));
    vector_job_check(&v);
    vector_job_free(&v);
    check_clean();
}

static void case_no_pools(char **arguments) {
    (void)arguments;
    use_fake();
    fake->no_pools = true;
    for (int i = 0; i < 3; i++)
        run_and_check(1001);
    CHECK(gpu_pool_bytes(0) == 0 && fake->held_bytes == 0);
    check_clean();
}

/* fail CALL [no_pools]: that call fails at each place where a job that uses everything makes it,
 * each time with an error that names it, and what follows works. Prints how often it failed. */
static void case_fail(char **arguments) {
    use_fake();
    fake->no_pools = arguments[1] != NULL;
    float milliseconds[2];
    int failures = 0;
    for (int warm = 0; warm < 2 && (!warm || gpu_count(NULL)); warm++)
        for (int nth = 1;; nth++) {
            smk_status status = {0};
            vector_job v;
            vector_job_make(&v, 1001, nth % 2 ? NULL : "vectors");
            v.job.repeat = 2;
            v.job.milliseconds = milliseconds;
            v.launches[0].shared_bytes = 100000;
            int streams = fake->streams;
            fake->fail_call = arguments[0];
            fake->fail_countdown = nth;
            fake->fail_result = 999;
            pipeline_run_job(0, &v.job, &status);
            bool reached = !fake->fail_call;
            fake->fail_call = NULL;
            failures += reached;
            bool quiet = strstr("cuEventDestroy cuModuleUnload cuCtxPopCurrent "
                                "cuThreadExchangeStreamCaptureMode",
                                arguments[0]);
            /* Asked about what there is another way for. */
            if (!status.code && strstr("cuEventQuery cuPointerGetAttributes", arguments[0]))
                quiet = true;
            if (reached && !quiet) {
                CHECK(status.code != SMK_OK);
                CHECK(strstr(status.message, "CUDA_ERROR_FAKE_999"));
                CHECK(strstr(status.message, arguments[0]) || strstr(status.message, "\"add\""));
            } else {
                CHECK_OK(status.code, status);
                vector_job_check(&v);
            }
            vector_job_free(&v);
            bool released = !strstr("cuMemFreeAsync cuEventDestroy cuCtxPopCurrent", arguments[0]);
            if (released || !reached) CHECK(fake->streams <= streams + 1);
            if (released) check_clean();
            if (gpu_count(NULL) == 0) break; /* the driver did not even start */
            if (!reached) break;
            run_and_check(10);
        }
    printf("%d\n", failures);
}

/* fails CALL COUNTDOWN RESULT: prints code and message of a run of which that call fails. */
static void case_fails(char **arguments) {
    use_fake();
    smk_status status = {0};
    vector_job v;
    vector_job_make(&v, 1001, "vectors");
    fake->fail_call = arguments[0];
    fake->fail_countdown = atoi(arguments[1]);
    fake->fail_result = atoi(arguments[2]);
    pipeline_run_job(0, &v.job, &status);
    CHECK(!fake->fail_call);
    printf("%d %s\n", status.code, status.message);
    vector_job_free(&v);
    if (!strstr(status.message, "is lost")) check_clean();
}

/* The fat binary has no code for this GPU: the PTX beside it is compiled. */
static void case_other_gpu(char **arguments) {
    (void)arguments;
    use_fake();
    for (int with_ptx = 0; with_ptx < 2; with_ptx++) {
        smk_status status = {0};
        vector_job v;
        vector_job_make(&v, 1001, with_ptx ? "with PTX" : "without");
        v.job.image.ptx = with_ptx ? v.job.image.data : NULL;
        fake->fail_call = "cuModuleLoadDataEx";
        fake->fail_countdown = 1;
        fake->fail_result = 209;
        CHECK(pipeline_run_job(0, &v.job, &status) == (with_ptx ? SMK_OK : SMK_KERNEL_IMAGE));
        if (with_ptx) vector_job_check(&v);
        vector_job_free(&v);
    }
    check_clean();
}

static void case_bad_image(char **arguments) {
    (void)arguments;
    vector_job v;
    smk_status status = {0}, second = {0};
    vector_job_make(&v, 10, "nonsense");
    v.job.image.data = "bad PTX";
    CHECK(pipeline_run_job(0, &v.job, &status) == SMK_KERNEL_IMAGE);
    CHECK(strstr(status.message, "nonsense"));
    if (fake) CHECK(strstr(status.message, "line 7"));
    printf("%s\n", status.message);
    vector_job_free(&v);

    vector_job_make(&v, 10, "vectors");
    v.launches[0].entry = v.launches[1].entry = "absent";
    CHECK(pipeline_run_job(0, &v.job, &second) == SMK_KERNEL_IMAGE && strstr(second.message, "absent"));
    vector_job_free(&v);
    run_and_check(10);
    check_clean();
}

static void case_shared(char **arguments) {
    (void)arguments;
    gpu_info info;
    smk_status status = {0};
    vector_job v;
    CHECK_OK(gpu_describe(0, &info, &status), status);
    size_t wanted[] = {60000, info.shared_bytes_optin - 1024, 50000};
    for (int i = 0; i < 3; i++) {
        vector_job_make(&v, 1000, "vectors");
        v.launches[i % 2].shared_bytes = wanted[i];
        CHECK_OK(pipeline_run_job(0, &v.job, &status), status);
        vector_job_check(&v);
        vector_job_free(&v);
    }
    char limit[32];
    snprintf(limit, sizeof limit, "%zu", info.shared_bytes_optin);
    vector_job_make(&v, 1000, "vectors");
    v.launches[1].shared_bytes = info.shared_bytes_optin + 1;
    CHECK(pipeline_run_job(0, &v.job, &status) == SMK_LAUNCH && strstr(status.message, limit));
    vector_job_free(&v);
    check_clean();
}

static void case_refused(char **arguments) {
    (void)arguments;
    vector_job v;
    smk_status status = {0}, second = {0};
    vector_job_make(&v, 1000, "vectors");
    v.launches[1].block[0] = 2048;
    CHECK(pipeline_run_job(0, &v.job, &status) == SMK_LAUNCH && strstr(status.message, "2048"));
    v.launches[1].block[0] = 256;
    v.pointers[2].arg_offset = 28;
    CHECK(pipeline_run_job(0, &v.job, &second) == SMK_VALUE);
    vector_job_free(&v);
    run_and_check(10);
    check_clean();
}

static void case_memory(char **arguments) {
    (void)arguments;
    smk_status status = {0};
    vector_job v;
    gpu_info info;
    CHECK_OK(gpu_describe(0, &info, &status), status);
    if (fake) {
        /* what the pool holds does not fit, but the device has room once it lets go */
        run_and_check(fake->total_bytes / 4 / 4);
        run_and_check(fake->total_bytes / 4 / 3);
        CHECK(fake->held_bytes <= fake->total_bytes);
    }
    vector_job_make(&v, 10, "vectors");
    v.buffers[2].bytes = 2 * info.memory_bytes;
    CHECK(pipeline_run_job(0, &v.job, &status) == SMK_MEMORY);
    char wanted[32];
    snprintf(wanted, sizeof wanted, "of %zu bytes", 2 * info.memory_bytes);
    CHECK(strstr(status.message, wanted) && strstr(status.message, "are free"));
    vector_job_free(&v);
    run_and_check(10);
    check_clean();
}

static void case_modules(char **arguments) {
    (void)arguments;
    use_fake();
    for (int i = 0; i < 600; i++) {
        char key[32];
        snprintf(key, sizeof key, "image %d", i);
        vector_job v;
        smk_status status = {0};
        vector_job_make(&v, 10, i % 2 ? key : NULL);
        CHECK_OK(pipeline_run_job(0, &v.job, &status), status);
        vector_job_free(&v);
        CHECK(fake->modules <= 257);
    }
    CHECK(fake->modules >= 200);
}

static void case_crash(char **arguments) {
    (void)arguments;
    for (int i = 0; i < 2; i++) {
        vector_job v;
        smk_status status = {0};
        vector_job_make(&v, 10, "vectors");
        v.launches[1].entry = i ? "add" : "crash";
        CHECK(pipeline_run_job(0, &v.job, &status) == SMK_LAUNCH);
        CHECK(strstr(status.message, i ? "lost earlier" : "is lost with it"));
        CHECK(strstr(status.message, fake ? "FAKE_700" : "ILLEGAL_ADDRESS"));
        CHECK(strstr(status.message, "\"crash\""));
        vector_job_free(&v);
    }
    smk_status status = {0};
    CHECK(gpu_pool_bytes(0) == 0 && gpu_trim(0, &status) == SMK_OK);
    if (fake) CHECK(fake->contexts_pushed == 0);
}

int stop_at_third(void *polls) {
    return ++*(int *)polls == 3;
}

/* A kernel that is interrupted is left to run: the call returns, others go on, nothing leaks. */
static void case_interrupt(char **arguments) {
    (void)arguments;
    run_and_check(1000);
    vector_job v;
    smk_status status = {0};
    int polls = 0;
    if (fake) fake->kernels_hang = true;
    vector_job_make(&v, 1000, NULL);
    v.launches[0].entry = v.launches[1].entry = "spin";
    v.job.poll = stop_at_third;
    v.job.poll_arg = &polls;
    double start = seconds();
    CHECK(pipeline_run_job(0, &v.job, &status) == SMK_INTERRUPTED);
    double waited = seconds() - start;
    CHECK(waited > 0.1 && waited < 1 && polls == 3);
    vector_job_free(&v);

    for (int i = 0; i < 3; i++)
        run_and_check(1000);
    CHECK(seconds() - start < 1);
    if (fake) {
        CHECK(fake->blocks == 3 && fake->modules == 2);
        fake->kernels_hang = false;
        run_and_check(1000);
        CHECK(fake->modules == 1 && fake->streams == 1);
    }
    check_clean();
}

static void *many_runs(void *unused) {
    for (size_t i = 0; i < 200; i++)
        run_and_check(i * 37 % 1009);
    return unused;
}

static void case_threads(char **arguments) {
    (void)arguments;
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        CHECK(!pthread_create(&threads[i], NULL, many_runs, NULL));
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    if (fake) CHECK(fake->streams <= 8 && fake->modules == 1);
    check_clean();
}

static void case_fork(char **arguments) {
    (void)arguments;
    run_and_check(10);
    pid_t child = fork();
    if (child == 0) {
        smk_status status = {0};
        vector_job v;
        vector_job_make(&v, 10, "vectors");
        CHECK(pipeline_run_job(0, &v.job, &status) == SMK_ERROR && strstr(status.message, "fork"));
        CHECK(gpu_count(NULL) == 0 && gpu_pool_bytes(0) == 0);
        _exit(0);
    }
    int exit_status;
    CHECK(waitpid(child, &exit_status, 0) == child && exit_status == 0);
    run_and_check(10);
}

static const struct {
    const char *name;
    void (*run)(char **arguments);
} cases[] = {{"describe", case_describe},
             {"absent", case_absent},
             {"add", case_add},
             {"reuse", case_reuse},
             {"timing", case_timing},
             {"no_pools", case_no_pools},
             {"overlap", case_overlap},
             {"capture", case_capture},
             {"fail", case_fail},
             {"fails", case_fails},
             {"shared", case_shared},
             {"refused", case_refused},
             {"memory", case_memory},
             {"modules", case_modules},
             {"crash", case_crash},
             {"interrupt", case_interrupt},
             {"threads", case_threads},
             {"fork", case_fork},
             {"other_gpu", case_other_gpu},
             {"bad_image", case_bad_image},
             {"pipeline", case_pipeline},
             {"pipeline_interrupt", case_pipeline_interrupt}};

int main(int n, char **arguments) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library) fake = dlsym(library, "fake_cuda");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (n > 1 && !strcmp(arguments[1], cases[i].name)) {
            cases[i].run(arguments + 2);
            return 0;
        }
    fprintf(stderr, "gpu_cases NAME, NAME one of the cases at the end of gpu_cases.c\n");
    return 2;
}
