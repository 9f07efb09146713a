/* Device "emu": runs PTX on the CPU, warp by warp, and counts what the hardware would count.
 *
 *     base/      memory, lanes of the host's CPU, polling: knows nothing of PTX
 *     ptx/       what PTX says: reader, opcodes, control flow, register allocation
 *     observe/   what may watch a run
 *     cost/      what requests cost: banks, atomics, what ptxas joins; counts
 *     machine/   what runs decoded PTX: warps, blocks, launches, memory spaces
 *     isa/       what each instruction does
 *     hazards/   races, missing fences, barriers that not all threads reach
 *
 * This is the only header for other folders than these. PTX is untrusted: it cannot reach memory outside the
 * given buffers.
 */
#ifndef SMK_EMU_H
#define SMK_EMU_H

#include "../core/flow.h"
#include "base/device.h"
#include "cost/banks.h"

smk_code emu_run(const smk_job *job, smk_status *status);

/* The same steps, in the same memory, as on a GPU, one after the other. */
smk_code emu_flow(const smk_flow *flow, smk_status *status);

/* Forgets the modules that are kept for later runs, and their variables; the bytes that they took. */
size_t emu_trim(void);

/* Parameters of an entry, so that Python arguments can be laid out (both devices use this). */
typedef struct emu_parameter {
    uint32_t offset, size; /* bytes, in the parameter block */
    uint32_t scalar_size;  /* size of the element type; != size for structs, passed as bytes */
    char kind;             /* 'f' float, 'i' signed, 'u' unsigned, 'b' untyped bits */
} emu_parameter;

typedef struct emu_signature {
    char entry[4096]; /* C++ names are long */
    emu_parameter *parameters;
    uint32_t *offsets; /* of the parameters, as a job wants them */
    size_t n_parameters;
    size_t args_bytes;
    size_t static_shared_bytes;
} emu_signature;

/* name NULL: the only entry. SMK_VALUE lists the entries if there is no such one. `poll`: as in smk_job. */
smk_code emu_signature_read(const char *ptx, size_t size, const char *name,
                            int (*poll)(void *poll_arg), void *poll_arg, emu_signature *out,
                            smk_status *status);
void emu_signature_free(emu_signature *signature);

#endif
