/* Hooks: what may watch a run without the interpreter knowing who watches.
 *
 * The interpreter is built twice from one source: with hooks and without, so an unobserved run pays
 * nothing. A launch runs on several host threads: `fork` makes each its own state, `join` merges it
 * back (called one at a time), so hooks need no locks.
 */
#ifndef EMU_OBSERVER_H
#define EMU_OBSERVER_H

#include "ptx.h"

typedef enum emu_operation {
    EMU_LOAD,
    EMU_STORE,
    EMU_ATOMIC,
    EMU_COPY_ASYNC_READ,
    EMU_COPY_ASYNC_WRITE,
    EMU_LDMATRIX, /* lanes 0-7, 0-15 or 0-31 hold the addresses of rows of 16 bytes */
    EMU_STMATRIX,
    EMU_BULK_READ, /* no thread's: lanes are up to 32 neighbouring 16-byte pieces of a bulk copy ... */
    EMU_BULK_WRITE,
    EMU_MATRIX_READ /* ... or of an operand that wgmma reads by descriptor */
} emu_operation;

/* One warp instruction's access to one space. A generic access whose lanes hit two spaces makes two;
 * a bulk copy or a wgmma operand makes as many as its pieces need. */
typedef struct emu_request {
    const ptx_instruction *ptx;
    uint32_t index; /* instruction's index in its function */
    const ptx_function *function;
    ptx_space space; /* never PTX_GENERIC */
    emu_operation operation;
    uint32_t width; /* bytes a lane: 1, 2, 4, 8, 16 */
    uint32_t active;
    const uint64_t *address; /* 32 of them: offsets in the window; global: addresses */
    const uint64_t
        *source; /* EMU_COPY_ASYNC_WRITE: where lanes read, and which of them do; else NULL */
    uint32_t reading;
    uint32_t block[3];
    uint32_t warp; /* in the block */
} emu_request;

typedef struct emu_observer {
    void *self;
    void *(*fork)(void *self);             /* NULL if out of memory: the launch fails cleanly */
    void (*join)(void *self, void *state); /* merges and frees state */
    void (*memory)(void *state, const emu_request *request);
    void (*instruction)(void *state, const ptx_function *function, const ptx_instruction *ptx,
                        uint32_t index, uint32_t active);
    void (*barrier)(void *state, const ptx_instruction *ptx, uint32_t warp, uint32_t barrier,
                    bool complete); /* an arrival; complete: this one released the block */
    void (*block)(void *state, const uint32_t block[3], bool begin);
} emu_observer;

#endif
