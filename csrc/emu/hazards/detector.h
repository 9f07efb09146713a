/* The hazard detector's state, shared by the files of this folder.
 *
 *     hazards.c               the observer: launches, host threads, blocks, events
 *     sites.c                 instructions, numbered, with their memory ordering
 *     vector_clock.c          vector clocks
 *     happens_before.c        the order by barriers, and the test for it
 *     release_acquire.c       ... by fences, flags, atomics and mbarriers
 *     proxy_fences.c          ... between the generic and the asynchronous proxy
 *     between_blocks.c        ... between blocks
 *     shadow.c                shadow memory
 *     row_template.h          fast path: a row of consecutive words ...
 *     lanes_template.h        ... and words of scattered lanes
 *     granule.c               slow path: one access to one granule
 *     access_list.c           ... and lists of earlier accesses to it
 *     equal_writes.c          writes that do not change a value
 *     cas_reads.c             reads whose value a compare-and-swap checks
 *     access.c                memory requests: fast path or slow path
 *     undefined.c             values that nobody wrote, from loads to stores
 *     undefined_copies.c      ... and in shared and global memory
 *     async.c                 mbarriers, copies in flight, the asynchronous proxy
 *     barriers.c              barriers that some threads do not reach
 *     shuffles.c              shuffles from lanes that do not take part
 *     overlapping_launches.c  programmatic dependent launch
 *     across_blocks.c         races between blocks that ran on different host threads
 *     unwritten.c             results that are not completely written
 *     findings.c              deduplication, and the report
 */
#ifndef EMU_HAZARDS_DETECTOR_H
#define EMU_HAZARDS_DETECTOR_H

#include "hazards.h"
#include "findings.h"
#include "happens_before.h"
#include "row.h"

/* ---- sites: the numbers of instructions in epochs ---- */

/* How an access gets to global memory. Nothing in PTX orders accesses by two of these within a
 * launch (PTX ISA, "Proxies"). Each block has a surface proxy of its own. */
enum access_path { PATH_POINTER, PATH_SURFACE, PATH_TEXTURE };

typedef struct site {
    const ptx_instruction *ptx;
    uint8_t access_kind; /* enum access_kind */
    hb_ordering ordering;
    uint32_t elements; /* of a vector: accesses of their own */
    bool stores;       /* st, sust.b, stmatrix: the stored value is available */
    bool transposed;   /* stmatrix.trans */
    bool bulk;         /* a bulk copy: writes through the asynchronous proxy */
    uint8_t path;      /* enum access_path */
    uint32_t copied;   /* ld: by byte of a lane, whether its register only copies it */
} site;

typedef struct site_table {
    site *sites; /* [0]: unknown */
    uint32_t n;
    const ptx_function **functions;
    uint32_t *first_site; /* by function */
    uint32_t n_functions;
    bool fine_grained; /* some instruction synchronises less than the whole block */
    bool sequential;   /* some instruction synchronises blocks with each other */
    bool has_cas;
    bool several_paths; /* some instruction accesses a texture or a surface */
} site_table;

/* The memory ordering that the modifiers of a fence or of an access specify. */
hb_ordering site_ordering(const ptx_instruction *p);
bool sites_read(site_table *t, const ptx_module *module, const ptx_function *entry);
void sites_free(site_table *t);

/* ---- shadow memory of a region ---- */

typedef struct access_entry access_entry;

/* A granule is a 4-byte word. The first access to part of a word changes all granules of the region
 * to single bytes. */
typedef struct shadow {
    /* If fine_grained, `other_read` is a list of readers, and `read` one of writes before the last
     * one (access_list.c). */
    shadow_rows epochs;
    epoch *uninitialised_read; /* first read of a granule never written; NULL: none so far */
    /* A granule that holds a copy of what nobody wrote: the load that read it there, and where; 0:
     * other granules. NULL: none so far. */
    epoch *undefined;
    uint64_t *undefined_from;
    epoch *equal_writers; /* index of a list of access_entry (equal_writes.c); NULL: none so far */
    unsigned char *value; /* as this host thread's stores left it; NULL: equal writes race, too */
    uint64_t bytes;
    uint32_t shift;              /* a granule has 1 << shift bytes */
    uint64_t base;               /* address of the region */
    bool is_shared;              /* shared memory of a block */
    bool written;                /* some epochs.write is set */
    bool in_flight;              /* some epoch may be TIME_IN_FLIGHT */
    bool displaced;              /* some write before a last one is kept */
    bool has_uninitialised_read; /* in this block, not yet reported */
    const unsigned char *words;  /* by word, 1: written before this launch; NULL: not known */
    bool starts_uninitialised;   /* global memory with unspecified contents until written */
} shadow;

/* An entry of a list: accesses to a granule by lanes of one warp at one time, or all reads in
 * flight by one thread. */
struct access_entry {
    epoch e; /* of the lane that was recorded first; of the last read in flight */
    uint32_t lanes;
    uint32_t next;      /* index; 0: end of the list */
    uint32_t covered;   /* time of a newer access that covers this one (access_list.c); 0: none */
    uint32_t in_flight; /* how many operations are still reading */
};

/* ---- shared memory that a warp's wgmma are reading ---- */

enum { MATRIX_COMMIT = ~0u }; /* in `offsets`: end of a wgmma group */

typedef struct matrix_reads {
    uint32_t *offsets; /* in shared memory, of 16 bytes each, in issue order */
    size_t n, capacity;
} matrix_reads;

/* ---- barriers ---- */

/* Arrivals at a barrier since it last completed, by warp. */
typedef struct barrier_arrivals {
    uint32_t arrived[MAX_WARPS], waiting[MAX_WARPS]; /* lanes */
    const ptx_instruction *arrival_ptx[MAX_WARPS];   /* of the first arrival ... */
    uint8_t arrival_lane[MAX_WARPS];                 /* ... and its first lane */
    uint32_t clock[MAX_WARPS];
    bool has_thread_count; /* for some threads of the block */
    bool has_relaxed;      /* some arrival is .relaxed */
} barrier_arrivals;

/* ---- the job, and one host thread of a launch ---- */

typedef struct written_bytes {
    unsigned char *written; /* by byte: 1 if written; NULL: not tracked */
    uint64_t bytes;
} written_bytes;

struct hazards {
    const smk_job *job;
    findings found;
    finding_context context;
    bool stopped, out_of_memory;
    _Atomic bool full; /* SMK_UNTIL_FULL: nothing is recorded any more */
    /* of the job's launches so far: */
    written_bytes *written; /* by region */
    uint32_t n_written;
    bool incomplete; /* some blocks did not run, or some epochs were cleared */
    /* of the current launch: */
    const launch *launch;
    site_table sites;
    size_t n_found_before;   /* findings of earlier launches */
    struct detector *joined; /* states of host threads that have finished */
    /* of the job: */
    const uint64_t *now;     /* hazards_set_step; NULL: it is not recorded */
    struct overlap *overlap; /* NULL: no launches that overlap */
};

/* One block of the group that runs (machine/block_group.h). */
typedef struct member {
    uint32_t block[3];
    shadow shared;
    uint32_t barrier_clock[MAX_WARPS]; /* the warp's clock at its last barrier */
    uint32_t alive[MAX_WARPS];         /* lanes that have not exited */
    uint32_t initial_lanes[MAX_WARPS]; /* lanes that the block began with */
    uint32_t launch_waited[MAX_WARPS]; /* lanes that have run griddepcontrol.wait */
    uint32_t last_access[MAX_WARPS];   /* the time of the warp's last access to memory */
    barrier_arrivals barriers[N_BARRIERS];
    finding_op exit; /* of its last thread */
} member;

typedef struct cas_reads cas_reads;

/* A load of what nobody wrote: the load, and the address of the first such byte. */
typedef struct undefined_origin {
    epoch load;
    uint64_t address;
} undefined_origin;

/* The detector's state for one host thread of a launch. */
typedef struct detector {
    struct detector *next;
    hazards *hazards;
    const launch *launch;
    findings found;
    happens_before hb;
    member *members;
    uint32_t n_members;
    uint64_t n_groups;     /* that have begun */
    shadow *regions;       /* by region id; made at the first access */
    access_entry *entries; /* of lists; [0]: unused */
    uint32_t n_entries, entries_capacity, free_entries;
    cas_reads *cas_reads;             /* NULL: the module has no CAS */
    struct undefined_warp *undefined; /* by member and warp; undefined.c */
    uint32_t n_undefined;             /* how many registers and words they are */
    /* Of all members, one after the other. */
    matrix_reads *all_matrix_reads; /* by warp */
    uint32_t *all_last_runs;        /* by warp and site: the warp's clock when it last ran it */
    /* Of the running member, which `running` is. detector_switch sets them. */
    member *running;
    uint32_t *block;
    shadow *shared;
    matrix_reads *matrix_reads;
    uint32_t *last_run;
    uint32_t *barrier_clock, *alive, *initial_lanes, *launch_waited, *last_access;
    barrier_arrivals *barriers;
    const ptx_function *last_function; /* of the last request ... */
    uint32_t last_first_site;          /* ... and its first site */
    uint32_t *block_begins;            /* first times of the blocks that this host thread ran ... */
    uint32_t (*block_indices)[3];      /* ... and which they are */
    size_t n_blocks, blocks_capacity;
    const row_functions *row;
    const lane_functions *lanes;
    /* For loads of memory that starts uninitialised, against the write epoch; for all other checks
     * in shared memory, and in global memory. */
    fast_path_limits uninitialised_limits, shared_limits, global_limits;
    bool any_strong;     /* some strong access that is no operation of an mbarrier */
    bool epochs_cleared; /* because the logical clock restarted */
    bool out_of_memory;
    bool full;      /* nothing is recorded any more */
    size_t n_found; /* findings at the end of the last slice */
} detector;

/* ---- detector.c ---- */

/* Remembers a block whose turn begins at that time, for detector_op. */
void detector_add_block(detector *d, uint32_t time, const uint32_t block[3]);

/* A member of the group runs from now on. */
void detector_switch(detector *d, uint32_t member);
/* Whether the epoch is of another block of the running group. */
bool detector_is_other_member(const detector *d, epoch e);
/* Whether both are of one block of it. */
bool detector_same_member(const detector *d, epoch a, epoch b);

/* Updates the limits of the fast paths; called after each synchronisation of the block. */
void detector_set_limits(detector *d);

/* The address, as a synchronisation object, of the start of a member's shared memory. */
static inline uint64_t shared_object(uint32_t owner) {
    return REGION_BASE(REGION_SHARED) + WINDOW_BASE(owner);
}

/* The epoch of time `floor`: an access with a smaller epoch is ordered before all threads. */
static inline epoch detector_floor(const detector *d) {
    return (epoch)d->hb.floor << EPOCH_TIME_SHIFT;
}

/* Whether the accesses are morally strong: both are strong, and each one's scope includes the
 * other's thread: is at least `scope`. Such accesses do not race. */
bool is_morally_strong(const site_table *sites, epoch a, epoch b, hb_scope scope);

/* The instruction, thread and block of the epoch's access. */
finding_op detector_op(const detector *d, epoch e);

/* ---- shadow.c ---- */

bool shadow_init(shadow *s, uint64_t base, uint64_t bytes, bool values);
void shadow_free(shadow *s);
static inline uint64_t shadow_granules(const shadow *s) {
    return (s->bytes >> s->shift) + 1;
}
/* Adds arrays of read epochs, which a region that is only written does not need. False: out of
 * memory, as for the next two. */
bool shadow_add_readers(detector *d, shadow *s);
/* Adds the array of uninitialised reads. */
bool shadow_add_uninitialised(detector *d, shadow *s);
/* Adds the arrays of granules that hold a copy of what nobody wrote. */
bool shadow_add_undefined(detector *d, shadow *s);
/* Adds the array of last writes of another value. */
bool shadow_add_changed(detector *d, shadow *s);
/* Adds the array of lists of equal writers. */
bool shadow_add_equal_writers(detector *d, shadow *s);
/* Changes the granules from words to bytes. */
bool shadow_refine(detector *d, shadow *s);
/* An index into d->entries; 0: out of memory. */
uint32_t entry_new(detector *d);
void entry_free(detector *d, uint32_t k);
/* The epoch of one lane of the entry. */
static inline epoch entry_epoch(const access_entry *r, uint32_t lane) {
    const epoch thread = (epoch)(epoch_thread(r->e) / LANES * LANES + lane) << EPOCH_THREAD_SHIFT;
    return (r->e & ~((epoch)EPOCH_THREAD_MASK << EPOCH_THREAD_SHIFT)) | thread;
}

/* ---- access_list.c ---- */

/* Of two accesses, the one with the smaller number races with more. */
enum { N_STRENGTHS = 2 + SCOPE_GPU };
static inline int access_strength(const detector *d, epoch e) {
    const hb_scope scope = d->hazards->sites.sites[epoch_site(e)].ordering.scope;
    if (epoch_kind(e) == WEAK) return 0;
    return 1 + (int)(scope < SCOPE_GPU ? scope : SCOPE_GPU);
}
/* Whether each later access that races with `e` races with `now`, too. */
bool access_superseded(const detector *d, epoch e, epoch now);
/* Adds `e`: the access `now`, or one that it displaces. Lists are indices of an entry, with more in
 * the upper half; sorted by strength. */
void access_list_add(detector *d, epoch *list, epoch e, epoch now);
void access_list_free(detector *d, epoch *list);

/* ---- granule.c ---- */

void granule_report(detector *d, const shadow *s, uint64_t granule, smk_hazard_kind kind, epoch op,
                    epoch other);
/* Checks a read of a granule against writes, and records it. The limits are those for the write
 * epoch and for read epochs. */
void granule_read(detector *d, shadow *s, uint64_t granule, epoch now,
                  const fast_path_limits *write_limits, const fast_path_limits *read_limits);
/* Checks that the value that is read is defined. */
void granule_check_value(detector *d, shadow *s, uint64_t granule, epoch now);
/* Both checks, without recording. */
void granule_check(detector *d, shadow *s, uint64_t granule, epoch now);
/* Checks a write and records it. value: the bytes that are written; NULL: unknown. */
void granule_write(detector *d, shadow *s, uint64_t granule, epoch now,
                   const fast_path_limits *limits, const unsigned char *value);

/* ---- equal_writes.c ---- */

/* Whether the granule has this value, from a store by any thread. value: NULL if unknown. */
bool equal_writes_same_value(const detector *d, const shadow *s, uint64_t granule,
                             const unsigned char *value);
/* Whether the reading thread is recorded as one that wrote the granule's value. *recent: since the
 * last synchronisation. */
bool equal_writes_by_reader(const detector *d, const shadow *s, uint64_t granule, epoch read,
                            bool *recent);
/* Records a write of the value that the granule has. */
void equal_writes_add(detector *d, shadow *s, uint64_t granule, epoch now);
/* Whether writes are recorded. */
static inline bool equal_writes_any(const shadow *s, uint64_t granule) {
    return s->equal_writers && s->equal_writers[granule];
}
/* A recorded write that races with `now`; 0: none. */
epoch equal_writes_racing(const detector *d, const shadow *s, uint64_t granule, epoch now);
/* The value changes. */
void equal_writes_drop(detector *d, shadow *s, uint64_t granule);

/* ---- access.c ---- */

void access_request(detector *d, const emu_request *request);
/* Reports uninitialised reads and bulk stores still reading; clears epochs in flight. */
void access_end_block(detector *d);

/* ---- cas_reads.c ---- */

bool cas_reads_init(detector *d); /* false: out of memory */
void cas_reads_free(detector *d);
void cas_reads_request(detector *d, const emu_request *request, uint32_t site);
void cas_reads_end_block(detector *d);
/* Called after a launch, when the findings of all blocks are known. */
void cas_reads_classify(hazards *h);

/* ---- undefined.c ---- */

bool undefined_init(detector *d); /* false: out of memory */
void undefined_free(detector *d);
void undefined_begin_block(detector *d);
void undefined_moved(detector *d, const emu_move *move);
/* Called before an access is recorded: a load gives its registers other values, and an access to
 * local memory copies or uses what is there. */
void undefined_request(detector *d, const emu_request *r, const site *accessed_by);
/* An argument of printf in local memory is read. */
void undefined_printed(detector *d, const emu_sync *event);
/* A lane's load has read these of its bytes, which are undefined. */
void undefined_loaded(detector *d, const emu_request *r, uint32_t lane, uint32_t bytes,
                      undefined_origin origin);
/* Whether it is a store of registers: not st.async, whose lanes stand for chunks. */
static inline bool undefined_is_copied(const emu_request *r) {
    return r->operation == EMU_STORE && r->ptx->op == PTX_OP_st;
}
/* Whether such a store has a value with undefined bytes; which bytes of a lane's, and their
 * origin. */
bool undefined_is_stored(const detector *d, const emu_request *r);
uint32_t undefined_stored(const detector *d, const emu_request *r, uint32_t lane,
                          undefined_origin *origin);

/* ---- undefined_copies.c ---- */

/* The copy of an undefined value that the granule holds; 0: none. */
static inline epoch undefined_copy(const detector *d, const shadow *s, uint64_t granule) {
    const bool is_past = s->is_shared && epoch_time(s->epochs.write[granule]) < d->hb.begin;
    return s->undefined && !is_past ? s->undefined[granule] : 0;
}
/* Whether nobody has written the granule, or only such a copy. */
static inline bool granule_is_undefined(const detector *d, const shadow *s, uint64_t granule) {
    const epoch e = s->epochs.write[granule];
    if (s->is_shared ? epoch_time(e) < d->hb.begin : !e)
        return s->is_shared ||
               (s->starts_uninitialised && !(s->words && s->words[granule << s->shift >> 2] == 1));
    return s->undefined && s->undefined[granule];
}
/* The origin of its value, if the load `now` reads it: an earlier one, or `now`. */
undefined_origin undefined_origin_of(const detector *d, const shadow *s, uint64_t granule,
                                     epoch now);
/* The granule has been written with a copy from `origin`. */
void undefined_set(detector *d, shadow *s, uint64_t granule, undefined_origin origin);
/* Called when a launch has ended and its written words are known: copies that global memory holds
 * become unwritten words again, or findings where nothing follows them any further. */
void undefined_note(hazards *h);

/* ---- async.c ---- */

void async_mbarrier(detector *d, const emu_sync *event);
void async_copy_done(detector *d, const emu_sync *event);
void async_source_read(detector *d, const emu_sync *event);
void async_matrix_read(detector *d, uint32_t warp, uint64_t offset);
void async_matrix_group(detector *d, const emu_sync *event);
/* A read through the asynchronous proxy on behalf of a thread: reports a last write without a proxy
 * fence after it. */
void async_check(detector *d, const shadow *s, uint64_t granule, epoch now);

/* ---- barriers.c ---- */

void barrier_event(detector *d, const emu_sync *event);

/* ---- shuffles.c ---- */

void shuffle_event(detector *d, const emu_sync *event);

/* ---- overlapping_launches.c ---- */

/* Called before a launch; false: out of memory. */
bool overlap_begin(hazards *h, const launch *l);
void overlap_wait(detector *d, uint32_t warp, uint32_t lanes);
/* Checks and records an access to global memory. */
void overlap_request(detector *d, const emu_request *request, uint32_t site);
void overlap_free(struct overlap *o);

/* ---- unwritten.c ---- */

/* Called when a launch ends. */
void unwritten_note(hazards *h);
/* The words of smk_job.written of a region; NULL: there are none. */
unsigned char *unwritten_words(const hazards *h, uint64_t region);
/* The same, made if the buffer can have them. */
unsigned char *unwritten_words_to_set(const hazards *h, uint64_t region);
/* Called when the job ends. */
void unwritten_report(hazards *h);
void unwritten_free(hazards *h);

/* ---- across_blocks.c ---- */

void blocks_compare(hazards *h);

#endif
