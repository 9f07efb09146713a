/* A recording: what warps did, step by step, in a window of a run on the emulator. docs/replay.md
 * describes its bytes. */
#ifndef SMK_RECORDING_H
#define SMK_RECORDING_H

#include <stddef.h>
#include <stdint.h>

enum { SMK_RECORDING_BYTES = 256 << 20 }; /* default of max_bytes */

/* What the caller knows of an array in shared memory, and PTX does not say. */
typedef struct smk_recorded_array {
    const char *name;          /* as in the PTX */
    uint32_t element, columns; /* bytes; elements from row to row */
} smk_recorded_array;

typedef struct smk_recording {
    /* From the caller. Steps are instructions of recorded warps, counted from 0 through all
     * launches; the window is `steps` of them from `first` on. */
    uint64_t first, steps;
    size_t max_bytes;       /* limit of the recording; 0: SMK_RECORDING_BYTES */
    const uint64_t *blocks; /* to record, ascending, numbered as smk_job.blocks; NULL: all */
    size_t n_blocks;
    const uint32_t *warps; /* of each block, to record; NULL: all */
    size_t n_warps;
    const smk_recorded_array *arrays;
    size_t n_arrays;
    /* From the run: `bytes` is from malloc, and the caller frees it. */
    unsigned char *bytes;
    size_t size;
    uint64_t total; /* steps of the whole run */
} smk_recording;

#endif
