/* The wrapper that tells an observer of a memory instruction's accesses; see observe.c. */
#ifndef EMU_OBSERVE_H
#define EMU_OBSERVE_H

#include "exec.h"
#include "observer.h"

const insn *exec_observed(warp *w, const insn *i);

/* Tells the observer, if there is one that listens, of an event of these lanes. */
void observe_sync(const warp *w, const insn *i, emu_sync_kind kind, uint32_t lanes);
void observe_event(const warp *w, emu_sync event);
/* For handlers whose accesses are not one for each lane: tells the observer, who must be there, of one
 * request, or of one for each space that the lanes hit. Changes the addresses. */
void observe_access(const warp *w, const insn *i, ptx_space space, emu_operation operation,
                    uint32_t width, lanes_u64 address, uint32_t active);
/* The same for pieces of a bulk copy that a lane has asked for, in global or shared memory. */
void observe_bulk(const warp *w, const insn *i, int lane, ptx_space space, emu_operation operation,
                  uint32_t width, const uint64_t *address, uint32_t active);
/* ... and for sectors of zeros that a bulk load brings of what lies outside its tensor. */
void observe_filled(const warp *w, const insn *i, int lane, uint32_t sectors);

#endif
