/* What an atomic on shared memory costs depends on what sm_90 makes of it (read from machine code):
 *
 *   add inc dec min max and or xor exch of 32 bits, exch of 64    ATOMS: a wavefront a lane of a bank
 *   cas of 32 and 64 bits                                         ATOMS.CAS: two
 *   everything else of 32 and 64 bits (add.f32, add.u64, ...)     a loop: load, compute, try to store
 *   16 bits                                                       a loop of ATOMS.CAS on the word
 *   counting, and by an elected lane (atomic_form.c)              a wavefront a word of a bank, and one
 *
 * The loops' counts are exact for one warp at a time whose every attempt changes the value; warps that
 * meet, and operations such as min that find nothing to change, differ: modelled (docs/exactness.md).
 */
#include "atomic_cost.h"

#include <string.h>

#include "banks.h"

static bool has(const ptx_instruction *p, const char *modifier) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (strcmp(p->modifiers[k], modifier) == 0) return true;
    return false;
}

uint32_t atomic_wavefronts(const ptx_instruction *p, atomic_form form, const uint64_t address[32],
                           uint32_t active, uint32_t width) {
    if (form == ATOMIC_ELECTED) return 1;
    if (form == ATOMIC_COUNTING) return banks_wavefronts(address, active, width, true);
    const uint32_t lanes = banks_serial_wavefronts(address, active, width);
    const bool integer = has(p, "u32") || has(p, "s32") || has(p, "b32");
    if (width < 4) return 2 * lanes + banks_wavefronts(address, active, width, true);
    if (has(p, "cas")) return 2 * lanes;
    if (has(p, "exch") || integer) return lanes;
    const banks_attempts loop = banks_retried(address, active, width);
    return loop.loads + loop.stores;
}
