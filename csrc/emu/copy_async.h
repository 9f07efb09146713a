/* cp.async's copies in flight; see copy_async.c. */
#ifndef EMU_COPY_ASYNC_H
#define EMU_COPY_ASYNC_H

#include "block.h"

/* Global addresses that a cp.async reads; returns the lanes that read any byte. */
uint32_t copy_async_source(const warp *w, const insn *i, lanes_u64 out);

/* The lane's copies that were issued up to then are complete. */
void copy_async_complete(warp *w, const insn *by, int lane, uint64_t clock);

void copy_queue_clear(copy_queue *queue);
void copy_queue_free(copy_queue *queue);

#endif
