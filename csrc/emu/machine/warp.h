/* A warp: its active lanes, the loop that runs it, and faults. */
#ifndef EMU_WARP_H
#define EMU_WARP_H

#include "../observe/observer.h"
#include "insn.h"

struct warp {
    unsigned char *frame; /* of the split that runs now */
    uint32_t active;      /* lanes that run this instruction, as bits ... */
    lanes_u32 mask;       /* ... and as 0 or ~0 per lane; kept equal by warp_set_active */
    struct block *block;
    uint32_t index;           /* in the block */
    struct warp_split *split; /* that runs now; NULL: none (warp_split.h) */
    uint64_t clock;           /* instructions run so far */
    lanes_u32 carry;          /* CC.CF of add.cc, addc, ...: 0 or 1 per lane */
    struct warp_split *ready, *waiting;
    uint32_t alive;
    uint32_t polls; /* slices in a row that polled memory */
    bool polled;    /* this slice did */
    bool yielded;   /* its last slice ended in split_yield */
    struct {
        const insn *at; /* NULL: none */
        int lane;
        uint64_t offset;       /* of the mbarrier, in shared memory */
    } failed_wait;             /* the last wait for a phase of an mbarrier that had not ended */
    struct copy_queue *copies; /* isa/copy_async.h */
    struct local_memory *local;
};

void warp_set_active(warp *w, uint32_t active);

/* A write to d only in active lanes: a handler writes d[l] for all l when w->active == FULL and
 * d[l] where w->mask[l] otherwise. alu.h wraps this in one macro; nothing else writes registers. */

void warp_run(warp *w);

/* Lanes of the active ones for which the guard holds. */
uint32_t guard_lanes(const warp *w, const insn *i);
/* The wrapper around a guarded instruction. */
const insn *exec_guarded(warp *w, const insn *i);

/* A run-time fault (address out of bounds, trap, ...): fills the launch's status with kernel, source
 * line, block, thread (the first lane set in lanes) and the sentence; stops the launch. Return its value. */
const insn *warp_fault(warp *w, const insn *i, smk_code code, uint32_t lanes, const char *format,
                       ...) __attribute__((format(printf, 5, 6)));
/* As warp_fault with SMK_LAUNCH, for a fault that observers record; this fills in where. */
const insn *warp_fault_at(warp *w, const insn *i, uint32_t lanes, const emu_fault *what,
                          const char *format, ...) __attribute__((format(printf, 5, 6)));

const char *source_position(const insn *i, char *out, size_t size); /* "gemm.cu:12" */

#endif
