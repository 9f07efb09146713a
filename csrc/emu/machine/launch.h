/* A launch: limits, kernel parameters, and distribution of its blocks over host threads. */
#ifndef EMU_LAUNCH_H
#define EMU_LAUNCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "../../core/job.h"
#include "../../core/interrupt.h"
#include "../observe/observer.h"
#include "print.h"
#include "program.h"
#include "spaces.h"

enum {
    MAX_THREADS = 1024,
    MAX_WARPS = MAX_THREADS / LANES,
    MAX_SHARED_BYTES = 227 * 1024, /* opt-in limit per block on sm_90 */
    MAX_CLUSTER_BLOCKS = 16,
    GRID_WORKSPACE_BYTES = 64,
    COOPERATIVE_SLICE = 256, /* SLICE of a cooperative launch, whose blocks wait for each other */
    SHARED_UNIT = 128,       /* a block's shared memory is a multiple of this on sm_80 and up */
    RESERVED_SHARED_BYTES = 1024,   /* per block, from sm_80 on */
    RESERVED_SHARED_PARTITION = 32, /* %reserved_smem_offset_1, from the start */
    SLICE = 4096,                   /* instructions that a warp runs before the next warp does */
};

/* One launch, shared by the host threads that run its blocks. */
typedef struct launch {
    emu_module *module;
    const program *program;
    const program *plain; /* of blocks that are not observed, if there is a sample */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t cluster_blocks;    /* blocks per cluster */
    uint32_t group_blocks;      /* blocks that a host thread runs in turns (block_group.h) */
    bool cooperative;           /* all blocks are resident together */
    bool one_by_one;            /* likewise, but a block begins when it has to (block_group.h) */
    bool explicit_cluster;      /* the kernel or the launch states the size of clusters */
    uint64_t n_blocks;          /* to run */
    uint64_t n_groups;          /* the same, as groups */
    _Atomic uint64_t *finished; /* if not NULL: incremented for each finished block */
    const uint64_t *blocks;     /* the blocks to run, in the job's numbering; NULL: all */
    uint64_t *clusters;         /* the clusters to run, if they have several blocks; NULL: all */
    uint64_t first_block;       /* this launch's first block in that numbering */
    const uint64_t *sample;     /* the blocks to observe, ascending; NULL: all */
    uint64_t n_sample;
    bool of_program;    /* smk_job.of_program */
    uint32_t n_warps;   /* per block */
    uint32_t registers; /* per thread; 0: not known (registers.c) */
    bool overlaps; /* programmatic dependent launch: may start before the previous launch ends */
    bool followed; /* likewise, the next launch may start before this one ends */
    uint64_t dynamic_shared_at, dynamic_shared_bytes, shared_bytes;
    uint64_t reserved_shared_at;  /* the part that CUDA reserves for itself ... */
    uint64_t shared_region_bytes; /* ... which exists only if the module reads its address */
    const region *regions;        /* by region_id; shared memory is each block's own */
    uint32_t n_regions;
    struct bound_texture *textures; /* texture.h */
    uint32_t n_textures;
    const emu_observer *observer; /* NULL: none */
    int (*poll)(void *);
    void *poll_arg;
    const _Atomic bool *cancel; /* if not NULL: stops all threads once it is true */
    pthread_t caller;
    uint64_t max_instructions;     /* of all warps; 0: no limit */
    uint64_t slice;                /* instructions that a warp runs before the next warp does */
    _Atomic uint64_t instructions; /* executed so far, if there is a limit */
    _Atomic uint64_t n_observed;   /* blocks of the sample that have run */
    _Atomic uint64_t next_group;
    _Atomic bool stop;
    pthread_mutex_t lock; /* of status, printed, children, and of the observer's fault and join */
    smk_status *status;
    print_log printed;
    smk_children *children; /* of the job; NULL: its kernels may have none */
    unsigned (*ask_graph)(uint64_t graph, uint64_t stream); /* with the lock */
    uint64_t graph;                                         /* %current_graph_exec */
} launch;

/* `regions` lacks that of the kernel's parameters, which launch_run fills in from the job's
 * arguments. `plain`: the program of blocks that the job does not sample, else NULL. */
smk_code launch_run(const smk_job *job, const smk_launch *shape, const program *program,
                    const struct program *plain, region *regions, uint32_t n_regions,
                    const emu_observer *observer, smk_status *status);
/* Registers per thread of a launch, as setmaxnreg counts them; 0: not known (registers.c). */
uint32_t launch_registers(const ptx_module *module, const ptx_function *kernel);
/* Where the kernel's dynamic shared memory begins. */
uint64_t launch_dynamic_shared_at(const ptx_module *module, const ptx_function *kernel);
/* A poller for long work within the launch, on the calling host thread. */
interrupt_poller launch_poller(const launch *l);
/* Stops the launch. Only the first failure is kept. */
void launch_fail(launch *l, smk_code code, const char *message);
/* Of an interrupted launch: where it was. */
void launch_interrupted_at(launch *l, const char *where);
/* The same with fault->message; reports the fault to the observer. */
void launch_fail_at(launch *l, smk_code code, const emu_fault *fault);

#endif
