/* What the files of the hazard detector share.
 *
 *     hazards.c           the observer: launches, host threads, blocks, events
 *     hazards_sites.c     what is known of each instruction before anything runs
 *     hazards_order.c     what happens before what
 *     hazards_shadow.c    the memory of epochs
 *     hazards_row.c       epochs of a whole row at once ...
 *     hazards_lanes.c     ... and of scattered lanes
 *     hazards_granule.c   an access to one granule against the epochs of earlier ones
 *     hazards_access.c    requests: which of these looks at them
 *     hazards_async.c     mbarriers; copies in flight; what the asynchronous proxy can see
 *     hazards_barrier.c   barriers that not everybody reaches
 *     hazards_overlap.c   launches that begin before the one before them has ended
 *     hazards_blocks.c    blocks that ran on different host threads
 *     hazards_unwritten.c results that are not all written
 *     hazards_findings.c  folding, and telling
 */
#ifndef EMU_HAZARDS_STATE_H
#define EMU_HAZARDS_STATE_H

#include "hazards.h"
#include "findings.h"
#include "happens_before.h"
#include "row.h"

/* ---- sites: an instruction's number in the epochs ---- */

typedef struct site {
    const ptx_instruction *ptx;
    uint8_t access_kind; /* enum access_kind */
    bool acquires, releases;
    bool stores; /* st: the value is known */
    bool bulk;   /* writes by the asynchronous proxy */
} site;

typedef struct site_table {
    site *sites; /* [0]: not known */
    uint32_t n;
    const ptx_function **functions;
    uint32_t *base; /* by function */
    uint32_t n_functions;
    bool fine;       /* something synchronises less than the whole block ... */
    bool sequential; /* ... or blocks with each other */
} site_table;

bool sites_read(site_table *t, const ptx_module *module, const ptx_function *entry);
void sites_free(site_table *t);

/* ---- epochs of a region ---- */

typedef struct reader reader;

/* Granules are words of 4 bytes until somebody touches a part of one, and bytes from then on. */
typedef struct shadow {
    epoch_rows epochs; /* where synchronisation is fine, `other` is the head of a list of readers */
    epoch *uninitialised; /* first read of what nobody had written; NULL: none yet */
    unsigned char
        *value; /* the bytes as this host thread's stores left them; NULL: of no interest */
    uint64_t bytes;
    uint32_t shift; /* a granule has 1 << shift bytes */
    uint64_t base;  /* address of the region */
    bool written, in_flight, pending;
    bool blank; /* global memory whose contents are unspecified until they are written */
} shadow;

/* A reader of a granule, in lists; the epochs' thread bits are the first lane's. */
struct reader {
    epoch m;
    uint32_t lanes; /* of the same warp, at the same time */
    uint32_t next;  /* index; 0: the end */
};

/* ---- what a warp's wgmma read ---- */

enum { MATRIX_COMMIT = ~0u }; /* in `at`: the end of a group */

typedef struct matrix_reads {
    uint32_t *at; /* offsets in shared memory of 16 bytes each, in order; and the ends of groups */
    size_t n, room;
} matrix_reads;

/* ---- barriers ---- */

typedef struct barrier_state {
    uint32_t arrived[MAX_WARPS], waits[MAX_WARPS];
    const ptx_instruction *at[MAX_WARPS]; /* the first arrival's */
    uint8_t lane[MAX_WARPS];              /* ... and its lane */
    uint32_t clock[MAX_WARPS];
    bool counted, arrive_only;
} barrier_state;

/* ---- the whole run, and one host thread of a launch ---- */

typedef struct written_bytes {
    unsigned char *at; /* by byte: whether anybody wrote it; NULL: not of interest */
    uint64_t bytes;
} written_bytes;

struct hazards {
    unsigned flags;
    findings found;
    finding_scene scene;
    bool stopped, out_of_memory;
    /* of the job's launches so far: */
    written_bytes *written; /* by region */
    uint32_t n_written;
    bool some_blocks; /* not all of its blocks ran, or not all epochs are left */
    /* of the launch: */
    const launch *launch;
    site_table sites;
    struct detector *joined; /* host threads that are done */
    /* of the job: */
    struct overlap *overlap; /* NULL: no launch of it overlaps another */
};

typedef struct detector {
    struct detector *next;
    hazards *all;
    const launch *launch;
    findings found;
    happens_before hb;
    uint32_t block[3];
    shadow shared;
    shadow *regions; /* by region id; made when first touched */
    reader *readers; /* [0]: none */
    uint32_t n_readers, room_readers, spare_readers;
    matrix_reads *matrix_reads; /* by warp: under way */
    uint32_t *proxied;         /* by thread: when it had its last fence to the asynchronous proxy */
    uint32_t *position;        /* by warp and site: the warp's clock when it last ran it */
    uint32_t start[MAX_WARPS]; /* the clock at the last barrier */
    uint32_t alive[MAX_WARPS], born[MAX_WARPS];
    uint32_t waited[MAX_WARPS]; /* lanes, for the launch before */
    barrier_state barriers[N_BARRIERS];
    const ptx_function *last_function;
    uint32_t last_base;
    uint32_t *starts; /* first times of the blocks that this host thread ran ... */
    uint32_t (*blocks)[3];
    size_t n_blocks, room_blocks;
    const row_functions *row;
    const lane_functions *lanes;
    row_limits blank_loads, shared_rest, global;
    bool forgot; /* epochs, when time began anew */
    bool out_of_memory;
} detector;

/* Since a synchronisation: what the fast paths compare with. */
void detector_set_limits(detector *w);

/* The epoch's time from which on nothing is ordered yet. */
static inline epoch detector_floor(const detector *w) {
    return (epoch)w->hb.floor << EPOCH_TIME_AT;
}

finding_party detector_party(const detector *w, epoch m);

/* ---- hazards_shadow.c ---- */

bool shadow_init(shadow *s, uint64_t base, uint64_t bytes, bool values);
void shadow_free(shadow *s);
static inline uint64_t shadow_granules(const shadow *s) {
    return (s->bytes >> s->shift) + 1;
}
/* Room for readers, which a region that is only written does not need, and for reads of what nobody has
 * written; words become bytes. False: out of memory. */
bool shadow_add_readers(detector *w, shadow *s);
bool shadow_add_uninitialised(detector *w, shadow *s);
bool shadow_refine(detector *w, shadow *s);
/* A place in w->readers; 0: out of memory. */
uint32_t reader_new(detector *w);
void reader_spare(detector *w, uint32_t k);

/* ---- hazards_granule.c ---- */

void granule_report(detector *w, const shadow *s, uint64_t granule, smk_hazard_kind kind,
                    epoch party, epoch other);
void granule_read(detector *w, shadow *s, uint64_t granule, epoch now, const row_limits *writes,
                  const row_limits *rest);
/* As a read, which leaves no epoch. */
void granule_check(detector *w, shadow *s, uint64_t granule, epoch now);
/* value: the bytes that are written, NULL: not known */
void granule_write(detector *w, shadow *s, uint64_t granule, epoch now, const row_limits *rest,
                   const unsigned char *value);

/* ---- hazards_access.c ---- */

void access_request(detector *w, const emu_request *request);
/* Reads of shared memory that was never written; copies that nobody waited for are forgotten. */
void access_end_block(detector *w);

/* ---- hazards_async.c ---- */

void async_mbarrier(detector *w, const emu_sync *event);
void async_copy_done(detector *w, const emu_sync *event);
void async_source_read(detector *w, const emu_sync *event);
void async_fence(detector *w, const emu_sync *event);
void async_matrix_read(detector *w, uint32_t warp, uint64_t offset);
void async_matrix_group(detector *w, const emu_sync *event);
/* The asynchronous proxy reads a granule for a thread: has the last write been let through to it? */
void async_check(detector *w, const shadow *s, uint64_t granule, epoch now);

/* ---- hazards_barrier.c ---- */

void barrier_event(detector *w, const emu_sync *event);

/* ---- hazards_overlap.c ---- */

/* A launch is about to begin; false: out of memory. */
bool overlap_begin(hazards *h, const launch *l);
void overlap_wait(detector *w, uint32_t warp, uint32_t lanes);
/* An access of this site to global memory. */
void overlap_request(detector *w, const emu_request *request, uint32_t site);
void overlap_free(struct overlap *o);

/* ---- hazards_unwritten.c ---- */

/* When a launch ends; when the job does. */
void unwritten_note(hazards *h);
void unwritten_report(hazards *h);
void unwritten_free(hazards *h);

/* ---- hazards_blocks.c ---- */

/* Races between blocks of different host threads. */
void blocks_compare(hazards *h);

#endif
