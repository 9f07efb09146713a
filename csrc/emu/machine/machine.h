/* The machine: what runs decoded PTX, whatever its instructions are.
 *
 *     program.h          decoded functions, and the module that keeps them
 *     decode.h           from parsed PTX to handlers and places in a frame
 *     insn.h             a decoded instruction
 *     warp.h             32 lanes: the loop, guards, faults
 *     warp_split.h       lanes that have diverged; control.c, call.c, barrier.c, collective.c stop and split them
 *     register_file.h    frames of calls
 *     spaces.h           addresses that kernels see, checked
 *     block.h, launch.h  warps on a host thread, blocks over host threads
 *     observe.h          the calls to an observer
 *     instruction_set.h  what the instructions give the machine
 *
 * This is the header for the other folders.
 */
#ifndef EMU_MACHINE_H
#define EMU_MACHINE_H

#include "block.h"
#include "collective.h"
#include "decode.h"
#include "instruction_set.h"
#include "launch.h"
#include "observe.h"
#include "program.h"
#include "spaces.h"
#include "warp.h"
#include "warp_split.h"

#endif
