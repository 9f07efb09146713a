/* Decoded code: what the warps of any launch share. Nothing here changes once it is decoded. */
#ifndef EMU_PROGRAM_H
#define EMU_PROGRAM_H

#include <pthread.h>

#include "insn.h"
#include "../base/interrupt.h"

enum {
    MAX_BLOCK_BYTES = 1
    << 30 /* of the host's memory, for what the threads of a block make it keep */
};

/* Frame slots whose value a launch, a block, a warp or a call knows: special registers, and addresses
 * of what stands at another place in each frame. */
enum slot_kind {
    SLOT_LOCAL_BASE = PTX_N_SPECIALS, /* address of the frame's local variables */
    SLOT_DYNAMIC_SHARED               /* offset of the launch's extern .shared array */
};

typedef struct special_slot {
    uint32_t offset;
    uint16_t kind;  /* ptx_special or slot_kind */
    uint16_t bytes; /* of an element: 2, 4, 8 */
    int64_t addend;
} special_slot;

/* Whether frames hold this register (frames.c). */
bool frame_knows(ptx_special special);

typedef struct constant_slot {
    uint32_t offset;
    uint32_t bytes; /* of an element: 2, 4, 8, 16 */
    uint64_t bits;
} constant_slot;

typedef struct program {
    const ptx_function *function;
    struct emu_module *module;
    bool observed; /* memory handlers report to the observer */
    bool decoded;
    insn *code;
    struct vectorized *vectorized; /* by instruction; of an observed program */
    uint32_t frame_bytes;
    constant_slot *constants;
    uint32_t n_constants;
    special_slot *specials;
    uint32_t n_specials;
    /* Local memory of a call: its results (at 0, where the caller finds them whatever it called),
     * its parameters, its variables. An entry has only variables. */
    uint64_t parameters_at, variables_at, local_bytes;
    struct allocation *allocations; /* decode_alloc's */
    struct program *next;           /* of the module, or of the set that is being made */
    struct program *next_undecoded;
} program;

typedef struct emu_module {
    const struct instruction_set *isa;
    char *key; /* NULL: not cached */
    ptx_module *ptx;
    unsigned char *globals, *constants; /* the module's variables */
    size_t bytes;                       /* of all this and the text as it was read */
    _Atomic(program *)
        *known[2];        /* by the function's number: decoded, and decoded to be observed */
    program *programs;    /* all of them */
    pthread_mutex_t lock; /* of that list */
    unsigned users;
    struct emu_module *next;
} emu_module;

/* Parses and loads; emu.c keeps it. */
smk_code module_load(const struct instruction_set *isa, const char *key, const char *text,
                     size_t size, interrupt_poller *poller, emu_module **out, smk_status *status);
void module_free(emu_module *module);

/* The function, decoded, with all that it calls. */
const program *program_get(emu_module *module, const ptx_function *function, bool observed,
                           interrupt_poller *poller, smk_status *status);

/* Programs on the way into their module, by one thread: nobody else sees them, and no lock is held. */
typedef struct program_set {
    emu_module *module;
    bool observed;
    program **own; /* by the function's number */
    program *made, *undecoded;
    interrupt_poller *poller;
} program_set;

/* decode.c: fills program from its function; asks program_find for what it calls. */
smk_code decode_function(program *p, program_set *set, smk_status *status);
program *program_find(program_set *set, const ptx_function *function);

/* A function's address as a value, and back; NULL for anything else. */
uint64_t function_address(const ptx_function *function);
const ptx_function *function_at(const ptx_module *module, uint64_t address);

#endif
