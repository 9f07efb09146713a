/* Frames of calls: the registers of a warp, and the values that decode puts beside them. */
#ifndef EMU_REGISTER_FILE_H
#define EMU_REGISTER_FILE_H

#include "program.h"
#include "warp.h"

typedef struct frame {
    struct frame *next;  /* free frames */
    struct frame *older; /* all frames of the block */
    const program *program;
    uint64_t local_base;
    uint32_t depth;
    unsigned char *slots; /* 64-byte aligned */
} frame;

/* A frame for a call of p, its slots filled; NULL if out of memory. */
frame *frame_take(warp *w, const program *p, uint64_t local_base, uint32_t depth);
void frame_give(struct block *b, frame *f);
bool local_reserve(warp *w, uint64_t bytes);

enum { FILL_BLOCK = 1, FILL_REST = 2 };
void frame_fill(const warp *w, frame *f, unsigned which);

#endif
