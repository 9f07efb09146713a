/* What goes on while a kernel runs: its progress on a terminal, and Ctrl-C.
 *
 * A signal that would end the program ends the kernel first, so that the report has what it did
 * until then. Then the program receives the signal, as its own handlers or the system want it. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

static const int SIGNALS[] = {SIGINT, SIGTERM};
enum { N_SIGNALS = sizeof SIGNALS / sizeof *SIGNALS, MAX_SHOWN = 60 };

static struct {
    _Atomic bool cancel;
    _Atomic bool apart;             /* the launch call has returned */
    volatile sig_atomic_t received; /* 0: none */
    struct sigaction before[N_SIGNALS];
    bool replaced[N_SIGNALS];
    _Atomic bool running;
    bool shown;
    const char *kernel;
    double start, last;
    uint64_t blocks;
    _Atomic uint64_t finished;
} watch;

/* Where the host's own code goes on, it is to see nothing of this handler: it returns once the
 * program has the signal, as a system call that it interrupts returns, too. */
static void receive(int number) {
    enum { MAX_WAITS = 300 };
    const struct timespec wait = {.tv_nsec = 10 * 1000 * 1000};
    const int error = errno;
    watch.received = number;
    atomic_store(&watch.cancel, true);
    for (int k = 0; k < MAX_WAITS && atomic_load(&watch.apart); k++)
        nanosleep(&wait, NULL);
    errno = error;
}

void watch_set_apart(bool apart) {
    atomic_store(&watch.apart, apart);
}

/* Signals that the program ignores stay ignored. */
static void replace_handlers(void) {
    struct sigaction own = {.sa_handler = receive};
    sigemptyset(&own.sa_mask);
    for (int k = 0; k < N_SIGNALS; k++) {
        watch.replaced[k] = !sigaction(SIGNALS[k], NULL, &watch.before[k]) &&
                            watch.before[k].sa_handler != SIG_IGN &&
                            !sigaction(SIGNALS[k], &own, NULL);
    }
}

/* Called about every 50 ms. A line at most once a second. */
static int show_progress(void *unused) {
    (void)unused;
    const double now = driver_seconds();
    if (now - watch.last < 1 || !isatty(STDERR_FILENO)) return 0;
    watch.last = now;
    watch.shown = true;
    fprintf(stderr, "\r\033[K%.*s: %llu of %llu blocks, %.0f s", MAX_SHOWN, watch.kernel,
            (unsigned long long)atomic_load(&watch.finished), (unsigned long long)watch.blocks,
            now - watch.start);
    fflush(stderr);
    return 0;
}

void watch_begin(smk_job *job, const char *kernel) {
    const smk_launch *l = job->launches;
    atomic_store(&watch.cancel, false);
    atomic_store(&watch.finished, 0);
    watch.kernel = kernel;
    watch.blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    watch.start = watch.last = driver_seconds();
    watch.running = report_wanted();
    if (!watch.running) return;
    job->cancel = &watch.cancel;
    job->finished = &watch.finished;
    job->poll = show_progress;
    job->keep_partial = true;
    replace_handlers();
}

void watch_end(void) {
    for (int k = 0; watch.running && k < N_SIGNALS; k++)
        if (watch.replaced[k]) sigaction(SIGNALS[k], &watch.before[k], NULL);
    if (watch.shown) fputs("\r\033[K", stderr);
    watch.running = watch.shown = false;
}

int watch_take_signal(void) {
    const int number = watch.running ? 0 : watch.received;
    if (number) watch.received = 0;
    return number;
}

void watch_deliver(void) {
    const int number = watch_take_signal();
    if (number) raise(number);
}
