/* The machine's interface to isa/. isa/ includes the machine's headers and passes this table to
 * it (isa/isa.c), so the machine includes no header of isa/. */
#ifndef EMU_INSTRUCTION_SET_H
#define EMU_INSTRUCTION_SET_H

#include "../../core/tensor_map.h"
#include "block.h"
#include "decode.h"

typedef struct instruction_set {
    /* Opcode tables, NULL-terminated. An opcode may be in several. */
    const select_fn *const *opcodes;
    /* Asynchronous copies in flight: their memory is kept from block_new to block_free; each
     * block of the launch begins and ends them. */
    bool (*allocate_copies)(block *b);
    void (*begin_copies)(block *b);
    void (*end_copies)(block *b);
    void (*free_copies)(block *b);
    /* Describes what the mbarrier of w->failed_wait lacks, for the end of a message. */
    void (*describe_failed_wait)(const warp *w, char *out, size_t size);
    void (*encode_tensor_map)(const smk_tensor_map *map, uint64_t address,
                              unsigned char out[SMK_TENSOR_MAP_BYTES]);
} instruction_set;

#endif
