/* The machine: runs decoded PTX, independently of the instruction set (isa/).
 *
 *     program.h          decoded functions, and the module that owns them
 *     decode.h           from parsed PTX to handlers and frame offsets
 *     insn.h             a decoded instruction
 *     warp.h             32 lanes: instruction loop, guards, faults
 *     warp_split.h       divergence; used by control.c, call.c, barrier.c, collective.c
 *     register_file.h    one frame of registers per call
 *     spaces.h           kernel addresses, and their checks
 *     block.h, launch.h  warps on a host thread, blocks over host threads
 *     texture.h          the textures and surfaces of a launch
 *     observe.h          the calls to an observer
 *     instruction_set.h  what isa/ gives the machine
 *
 * Other folders include only this header.
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
#include "texture.h"
#include "warp.h"
#include "warp_split.h"

#endif
