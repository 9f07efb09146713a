/* Frames: the registers of a warp in one call, and its slots for constants and special
 * registers. */
#ifndef EMU_REGISTER_FILE_H
#define EMU_REGISTER_FILE_H

#include "program.h"
#include "warp.h"

typedef struct frame {
    struct frame *next_free;      /* in block.free_frames */
    struct frame *next_allocated; /* in block.all_frames */
    const program *program;
    uint64_t local_base;
    uint32_t depth;
    unsigned char *slots; /* 64-byte aligned */
} frame;

/* A frame for a call of p, with its constants and special registers set. NULL: out of memory. */
frame *frame_acquire(warp *w, const program *p, uint64_t local_base, uint32_t depth);
void frame_release(struct block *b, frame *f);
/* Grows the local memory of a warp's threads to at least `bytes` each. False: out of memory. */
bool local_reserve(warp *w, uint64_t bytes);

/* Sets the special registers: those that differ between blocks, clocks and timers, the others. */
enum { FILL_BLOCK = 1, FILL_REST = 2, FILL_TIME = 4 };
void frame_fill(const warp *w, frame *f, unsigned which);

/* Hidden, before an instruction that reads a clock or a timer: sets the frame's. */
const insn *exec_read_time(warp *w, const insn *i);

#endif
