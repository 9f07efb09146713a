/* A kernel that goes on after its launch call has returned.
 *
 * A kernel can wait for what the host does after the launch, in memory that both see. So where
 * there is such memory a kernel runs in a thread of its own, and its launch call returns after
 * some seconds. Until the kernel ends no other call runs (driver_enter): the kernel's thread has
 * the place of the call. Other launches end before their call returns. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "work.h"

enum { PATIENCE_SECONDS = 2 };

static struct {
    work work;
    frames callers;
    CUcontext context;
    CUresult result;
    bool left; /* the launch call has returned */
} kernel;

/* What the launch call can no longer return stays an error of the context. */
static int finish(CUresult result) {
    kernel.result = result;
    if (kernel.left && result && !kernel.context->error) kernel.context->error = result;
    const int number = kernel.left ? watch_take_signal() : 0;
    if (!number) watch_set_apart(false);
    return number;
}

static void *run_kernel(void *unused) {
    (void)unused;
    context_set_current(kernel.context);
    report_on_behalf(&kernel.callers);
    const CUresult result = work_run(&kernel.work);
    report_on_behalf(NULL);
    work_free(&kernel.work);
    driver_lock();
    const int signal_number = finish(result);
    /* Before the calls that wait go on. */
    if (signal_number) kill(getpid(), signal_number);
    if (signal_number) watch_set_apart(false);
    driver_set_busy(false);
    driver_unlock();
    return NULL;
}

/* Signals are the program's: its own threads receive them. */
static bool start_thread(void) {
    pthread_t id;
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    const bool started = !pthread_create(&id, NULL, run_kernel, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started && !pthread_detach(id);
}

bool background_wanted(const work *w) {
    return w->kind == WORK_KERNEL && driver_is_outermost() && memory_host_sees();
}

CUresult background_run(work *w) {
    kernel.work = *w;
    kernel.callers = report_frames();
    kernel.context = context_current();
    kernel.left = false;
    driver_set_busy(true);
    if (!start_thread()) {
        driver_set_busy(false);
        return work_run(w);
    }
    w->kind = WORK_EMPTY; /* the thread owns what it had */
    if (driver_wait_idle(PATIENCE_SECONDS)) return kernel.result;
    kernel.left = true;
    watch_set_apart(true);
    return CUDA_SUCCESS;
}
