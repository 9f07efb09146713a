/* What the machine needs of the instructions beyond it. They include the machine's headers and hand this table
 * to it (isa/isa.c), so that the machine includes none of theirs. */
#ifndef EMU_INSTRUCTION_SET_H
#define EMU_INSTRUCTION_SET_H

#include "../../core/tensor_map.h"
#include "block.h"
#include "decode.h"

typedef struct instruction_set {
    const select_fn *const *opcodes; /* tables, up to NULL; an opcode may be in several */
    /* Copies in flight: their memory, by block_new and block_free, and their end with each block. */
    bool (*allocate_copies)(block *b);
    void (*begin_copies)(block *b);
    void (*end_copies)(block *b);
    void (*free_copies)(block *b);
    /* What is missing at the mbarrier of w->failed_wait, as the end of a message. */
    void (*describe_failed_wait)(const warp *w, char *out, size_t size);
    void (*encode_tensor_map)(const smk_tensor_map *map, uint64_t address,
                              unsigned char out[SMK_TENSOR_MAP_BYTES]);
} instruction_set;

#endif
