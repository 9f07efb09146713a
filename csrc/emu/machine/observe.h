/* Calls to the launch's observer; see observe.c. */
#ifndef EMU_OBSERVE_H
#define EMU_OBSERVE_H

#include "../observe/observer.h"
#include "warp.h"

/* Wrapper around a memory instruction's handler: reports one request of the active lanes. */
const insn *exec_observed(warp *w, const insn *i);

/* The same around a mov: reports its registers. */
const insn *exec_moved(warp *w, const insn *i);

/* Reports an event of these lanes, if there is an observer for it. */
void observe_sync(const warp *w, const insn *i, emu_sync_kind kind, uint32_t lanes);
void observe_event(const warp *w, emu_sync event);

/* ---- for other wrappers; only in a launch with an observer ---- */

/* Computes the lanes' addresses: frame slot a, plus imm. */
void observe_addresses(const warp *w, const insn *i, lanes_u64 out);
/* Reports one request per memory space that the lanes access. Modifies `address`. */
void observe_access(const warp *w, const insn *i, ptx_space space, emu_operation operation,
                    uint32_t width, lanes_u64 address, uint32_t active);
/* Reports cp.async's read by these lanes, each of so many bytes. */
void observe_copy_source(const warp *w, const insn *i, const uint64_t *source, uint32_t reading,
                         const uint32_t bytes[LANES]);
/* Reports cp.async's write to shared memory. The lanes `reading` copy from `source`, others write
 * zeros. */
void observe_copy(const warp *w, const insn *i, const uint64_t *address, const uint64_t *source,
                  uint32_t reading);
/* Reports 16-byte chunks that a bulk copy, issued by `lane`, reads or writes, the last one without
 * its last `excess` bytes. */
void observe_bulk(const warp *w, const insn *i, int lane, ptx_space space, emu_operation operation,
                  uint32_t width, const uint64_t *address, uint32_t active, uint32_t excess,
                  emu_multicast multicast);
/* Reports sectors of zeros that a bulk load writes for elements outside its tensor. */
void observe_filled(const warp *w, const insn *i, int lane, uint32_t sectors,
                    emu_multicast multicast);

#endif
