/* A warp: its active lanes, its instruction loop, and faults. */
#ifndef EMU_WARP_H
#define EMU_WARP_H

#include "../observe/observer.h"
#include "insn.h"

struct warp {
    unsigned char *frame; /* of the running split */
    uint32_t active;      /* lanes that run this instruction, as bits ... */
    lanes_u32 mask;       /* ... and as 0 or ~0 per lane; warp_set_active sets both */
    struct block *block;
    uint32_t index;                     /* in the block */
    struct warp_split *split;           /* the running split; NULL: none (warp_split.h) */
    uint64_t clock;                     /* instructions executed so far */
    uint64_t slice_start;               /* clock at the start of the current slice */
    lanes_u32 carry;                    /* CC.CF of add.cc, addc, ...: 0 or 1 per lane */
    struct warp_split *ready, *waiting; /* lists of leaves */
    uint32_t alive;                     /* lanes that have not exited */
    uint32_t registers;                 /* per thread; 0: not known (registers.c) */
    uint32_t polling_slices;            /* consecutive slices that polled memory */
    bool polled;                        /* the current slice polled memory */
    bool yielded;                       /* the last slice ended in split_yield */
    struct {
        const insn *at; /* NULL: none */
        int lane;
        uint64_t offset;       /* of the mbarrier, in shared memory */
    } failed_wait;             /* the last failed try_wait of an mbarrier */
    struct copy_queue *copies; /* isa/copy_async.h */
    struct local_memory *local;
};

void warp_set_active(warp *w, uint32_t active);

/* Handlers write a destination d only in active lanes: d[l] for all l if w->active == FULL, else
 * d[l] where w->mask[l]. A macro in ../isa/alu.h does it. */

/* Runs one slice of instructions. */
void warp_run(warp *w);

/* The active lanes whose guard holds. */
uint32_t guard_lanes(const warp *w, const insn *i);
/* Wrapper: runs i->body for the lanes whose guard holds. */
const insn *exec_guarded(warp *w, const insn *i);

/* A run-time fault (address out of bounds, trap, ...): stops the launch. Its status names kernel,
 * source line, block, thread (the first lane of `lanes`) and the message. Handlers return the
 * result, NULL. */
const insn *warp_fault(warp *w, const insn *i, smk_code code, uint32_t lanes, const char *format,
                       ...) __attribute__((format(printf, 5, 6)));
/* The same with SMK_LAUNCH, for a fault that observers record. Fills in its instruction, block
 * and thread. */
const insn *warp_fault_at(warp *w, const insn *i, uint32_t lanes, const emu_fault *what,
                          const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Where a warp is: its block and first thread, the line of instruction i of function f, and the
 * innermost loop around that. */
void warp_describe(const warp *w, const ptx_function *f, const insn *i, char *out, size_t size);
const char *source_position(const insn *i, char *out, size_t size); /* "gemm.cu:12" */

#endif
