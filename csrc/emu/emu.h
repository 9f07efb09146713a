/* Device "emu": runs PTX on the CPU warp by warp, and counts what a GPU's profiler would count.
 *
 *     base/      memory, host SIMD helpers, polling; independent of PTX
 *     ptx/       PTX front end: parser, opcodes, control flow, register allocation
 *     observe/   the observer interface (hooks of a run)
 *     cost/      cost of requests (bank conflicts, sectors, atomics, ptxas vectorization); counts;
 *                words for conflicts and hazards; layouts without conflicts
 *     machine/   runs decoded PTX: warps, blocks, launches, memory spaces
 *     isa/       the instructions
 *     hazards/   races, missing fences, barriers that not all threads reach
 *
 * Other folders include only this header. PTX is untrusted: a kernel cannot reach memory outside
 * the buffers that it was given.
 */
#ifndef SMK_EMU_H
#define SMK_EMU_H

#include "../core/job.h"
#include "base/device.h"
#include "base/guarded.h"
#include "cost/banks.h"
#include "cost/explain.h"
#include "cost/layouts.h"

smk_code emu_run(const smk_job *job, smk_status *status);

/* Frees the cached modules that are not in use, and their variables. Returns the bytes freed. */
size_t emu_trim(void);

/* A module that stays loaded, with its variables, until it is closed; see smk_job.module. `poll` as
 * in smk_job. */
typedef struct emu_module emu_module;
smk_code emu_open(const char *ptx, size_t size, int (*poll)(void *poll_arg), void *poll_arg,
                  emu_module **out, smk_status *status);
void emu_close(emu_module *module);

/* The memory of the module's .global or .const variables. */
typedef struct emu_memory {
    unsigned char *host;
    size_t bytes;
} emu_memory;
emu_memory emu_variables(const emu_module *module, bool constant);
/* Moves the .global variables to memory of the caller, which must outlive the module. */
void emu_move_globals(emu_module *module, unsigned char *to);

typedef struct emu_variable {
    size_t offset, bytes; /* in emu_variables */
    bool constant;
} emu_variable;
bool emu_find_variable(const emu_module *module, const char *name, emu_variable *out);

/* The k-th entry's name; NULL: there are fewer. */
const char *emu_entry_name(const emu_module *module, size_t k);
/* The address of variables in kernels of their module: no buffer's. */
bool emu_is_variable_address(uint64_t address, bool *constant, uint64_t *offset);
/* The address of buffer `k`, and the reverse: -1 if it is in none. */
uint64_t emu_buffer_address(size_t k);
int64_t emu_buffer_of(uint64_t address, uint64_t *offset);

/* A tensor map as kernels read it, of a tensor at an address of theirs. The map must be valid. */
void emu_encode_tensor_map(const smk_tensor_map *map, uint64_t address,
                           unsigned char out[SMK_TENSOR_MAP_BYTES]);

/* One parameter of an entry. Both devices lay out Python arguments by it. */
typedef struct emu_parameter {
    uint32_t offset, size; /* bytes, in the parameter block */
    uint32_t scalar_size;  /* bytes of the element type; differs from size for structs */
    char kind;             /* 'f' float, 'i' signed, 'u' unsigned, 'b' untyped bits */
} emu_parameter;

typedef struct emu_signature {
    char entry[4096]; /* C++ names are long */
    emu_parameter *parameters;
    uint32_t *offsets; /* of the parameters, in the form of smk_job.parameters */
    size_t n_parameters;
    size_t args_bytes;
    size_t static_shared_bytes;
    uint32_t max_threads;    /* per block: __launch_bounds__, or 1024 */
    size_t local_bytes;      /* .local variables of the entry, per thread */
    bool cooperative;        /* it synchronises its grid: reads %envreg1 or %envreg2 */
    uint32_t live_registers; /* 32-bit registers per thread that the allocation of PTX takes */
} emu_signature;

/* name NULL: the module's only entry. If there is no such entry, fails with SMK_VALUE and lists
 * the entries. `poll` as in smk_job. */
smk_code emu_signature_read(const char *ptx, size_t size, const char *name,
                            int (*poll)(void *poll_arg), void *poll_arg, emu_signature *out,
                            smk_status *status);
/* The same of an entry of a loaded module. */
smk_code emu_module_signature(const emu_module *module, const char *name, emu_signature *out,
                              smk_status *status);
void emu_signature_free(emu_signature *signature);

/* Calls each(context, signature) for all entries, in the order of the text. */
smk_code emu_signatures_read(const char *ptx, size_t size,
                             void (*each)(void *context, const emu_signature *), void *context,
                             smk_status *status);

/* Calls each(context, array) for the arrays in shared memory of a launch of the entry with so much
 * dynamic shared memory; entry NULL: for those of all entries. Names end with the call. */
typedef void emu_array_hook(void *context, const explain_array *array);
smk_code emu_shared_arrays_read(const char *ptx, size_t size, const char *entry,
                                uint64_t dynamic_bytes, emu_array_hook *each, void *context,
                                smk_status *status);

#endif
