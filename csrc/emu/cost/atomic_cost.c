/* Wavefronts of an atomic on shared memory, by the machine code that ptxas emits for sm_90:
 *
 *   add inc dec min max and or xor of 32-bit integers,  ATOMS: one wavefront per lane in a bank
 *   exch.b32, exch.b64
 *   cas.b32, cas.b64                                    ATOMS.CAS: two per lane in a bank
 *   other 32- and 64-bit ones (add.f32, add.u64, ...)   retry loop: load, compute, try to store
 *   64-bit integers in .shared::cluster                 ATOM.E: one wavefront per lane in a bank
 *   16-bit                                              retry loop of ATOMS.CAS on the 32-bit word
 *   ATOMIC_COUNTING (atomic_form.h)                     one wavefront per distinct word in a bank
 *   ATOMIC_ELECTED                                      one wavefront
 *
 * "In a bank" means: the maximum over banks. The counts for retry loops are exact if one warp
 * runs at a time and each attempt changes the value. They are only a model where warps contend
 * for a word, or where an operation such as min changes nothing (docs/exactness.md).
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
    const bool wide = has(p, "u64") || has(p, "s64") || has(p, "b64");
    if (wide && has(p, "shared::cluster")) return lanes;
    const banks_attempts loop = banks_retried(address, active, width);
    return loop.loads + loop.stores;
}
