/* Calls to the launch's observer; see observe.c. */
#ifndef EMU_OBSERVE_H
#define EMU_OBSERVE_H

#include "../observe/observer.h"
#include "warp.h"

/* Around a memory instruction's handler: one request, of the active lanes' addresses. */
const insn *exec_observed(warp *w, const insn *i);

/* Reports an event of these lanes, if an observer listens. */
void observe_sync(const warp *w, const insn *i, emu_sync_kind kind, uint32_t lanes);
void observe_event(const warp *w, emu_sync event);

/* ---- for handlers of their own kind; there must be an observer ---- */

/* The lanes' addresses, from slot a. */
void observe_addresses(const warp *w, const insn *i, lanes_u64 out);
/* Reports one request, or one for each space that the lanes hit. Changes the addresses. */
void observe_access(const warp *w, const insn *i, ptx_space space, emu_operation operation,
                    uint32_t width, lanes_u64 address, uint32_t active);
/* cp.async's write to shared memory: from `source`, of which the lanes `reading` read. */
void observe_copy(const warp *w, const insn *i, const uint64_t *address, const uint64_t *source,
                  uint32_t reading);
/* Chunks of a bulk copy that a lane has issued, in global or shared memory, ... */
void observe_bulk(const warp *w, const insn *i, int lane, ptx_space space, emu_operation operation,
                  uint32_t width, const uint64_t *address, uint32_t active);
/* ... and sectors of zeros that a bulk load brings for what lies outside its tensor. */
void observe_filled(const warp *w, const insn *i, int lane, uint32_t sectors);

#endif
