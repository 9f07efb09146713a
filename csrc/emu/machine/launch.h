/* A launch: its limits, its parameters, and its blocks spread over host threads. */
#ifndef EMU_LAUNCH_H
#define EMU_LAUNCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "../../core/job.h"
#include "../base/interrupt.h"
#include "../observe/observer.h"
#include "print.h"
#include "program.h"
#include "spaces.h"

enum {
    MAX_THREADS = 1024,
    MAX_WARPS = MAX_THREADS / LANES,
    MAX_SHARED_BYTES = 227 * 1024, /* what a block may opt in to on sm_90 */
    SLICE = 4096                   /* instructions that a warp runs before others get their turn */
};

/* One launch; all host threads that work on it share this. */
typedef struct launch {
    emu_module *module;
    const program *program;
    uint32_t grid[3], block[3];
    uint64_t n_blocks;          /* to run */
    _Atomic uint64_t *finished; /* counts them, if not NULL */
    const uint64_t *blocks;     /* which, NULL: all ... */
    uint64_t first_block;       /* ... by numbers that start at this one */
    uint32_t n_warps;           /* per block */
    bool overlaps, followed; /* may begin before the one before it has ended, as may the next one */
    uint64_t dynamic_shared_at, dynamic_shared_bytes, shared_bytes;
    const region *regions; /* by region_id; shared memory is each block's own */
    uint32_t n_regions;
    const emu_observer *observer; /* NULL: none */
    int (*poll)(void *);
    void *poll_arg;
    const _Atomic bool *cancel; /* NULL, or true once all threads are to stop */
    pthread_t caller;
    uint64_t max_instructions, slice; /* 0: no limit; the most that a warp runs at a time */
    _Atomic uint64_t instructions;    /* so far, where there is a limit */
    _Atomic uint64_t next_block;
    _Atomic bool stop;
    pthread_mutex_t lock; /* of status, of what was printed and of the observer's join */
    smk_status *status;
    print_log printed;
} launch;

/* regions: all but the kernel's parameters, which this fills from the job's arguments. */
smk_code launch_run(const smk_job *job, const smk_launch *shape, const program *program,
                    region *regions, uint32_t n_regions, const emu_observer *observer,
                    smk_status *status);
/* For work within a launch, by the thread that calls this. */
interrupt_poller launch_poller(const launch *l);
/* Stops the launch; the first failure is kept. */
void launch_fail(launch *l, smk_code code, const char *message);
/* The same with fault->message; the observer gets the fault. */
void launch_fail_at(launch *l, smk_code code, const emu_fault *fault);

#endif
