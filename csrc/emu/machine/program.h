/* Decoded functions, which all launches share: immutable once decoded. */
#ifndef EMU_PROGRAM_H
#define EMU_PROGRAM_H

#include <pthread.h>

#include "insn.h"
#include "../../core/interrupt.h"

/* Limit of host memory per block: frames, local memory, copies in flight. */
enum { MAX_BLOCK_BYTES = 1 << 30 };
/* The same of a group (block_group.h). */
enum { MAX_GROUP_GIB = 4 };

/* Kinds of frame slots, beside ptx_special, whose value is set per launch, block, warp or call. */
enum slot_kind {
    SLOT_LOCAL_BASE = PTX_N_SPECIALS, /* address of the frame's local variables */
    SLOT_SHARED_BASE,                 /* address of the block's shared memory */
    SLOT_DYNAMIC_SHARED               /* address of the launch's extern .shared array */
};

typedef struct special_slot {
    uint32_t offset;
    uint16_t kind;  /* ptx_special or slot_kind */
    uint16_t bytes; /* of an element: 2, 4, 8 */
    int64_t addend;
} special_slot;

/* Whether it is a clock or a timer, which is read anew for each instruction (register_file.c). */
bool special_is_time(unsigned kind);

typedef struct constant_slot {
    uint32_t offset;
    uint32_t bytes; /* of an element: 2, 4, 8, 16 */
    uint64_t bits;
} constant_slot;

typedef struct program {
    const ptx_function *function;
    struct emu_module *module;
    bool observed; /* memory handlers report to the observer */
    bool waits;    /* of an entry: it or a function of its module may wait for other blocks */
    insn *code;
    struct vectorized *vectorized; /* per PTX instruction; only of an observed program */
    uint32_t frame_bytes;
    constant_slot *constants;
    uint32_t n_constants;
    special_slot *specials;
    uint32_t n_specials;
    /* Layout of a call's local memory: results, parameters, variables. Results are at 0 in every
     * function, so a caller through a pointer can find them. An entry has only variables. */
    uint64_t parameters_at, variables_at, local_bytes;
    struct allocation *allocations; /* from decode_alloc */
    struct program *next;           /* in the module, or in the program_set */
    struct program *next_undecoded;
} program;

typedef struct emu_module {
    const struct instruction_set *isa;
    char *key; /* NULL: not cached */
    ptx_module *ptx;
    unsigned char *globals, *constants; /* the module's variables */
    bool globals_moved;                 /* by emu_move_globals: memory of the caller */
    struct heap *heap;                  /* NULL: the module does not allocate */
    size_t bytes;                       /* of the variables and the parsed text */
    /* Decoded programs by function number: [0] for plain runs, [1] for observed ones. */
    _Atomic(program *) *decoded[2];
    program *programs;    /* list of all of them */
    pthread_mutex_t lock; /* of that list */
    unsigned users;
    struct emu_module *next;
} emu_module;

/* Parses a module and initialises its variables. */
smk_code module_load(const struct instruction_set *isa, const char *key, const char *text,
                     size_t size, interrupt_poller *poller, emu_module **out, smk_status *status);
void module_free(emu_module *module);

/* The decoded function; all functions that it calls are decoded too. */
const program *program_get(emu_module *module, const ptx_function *function, bool observed,
                           interrupt_poller *poller, smk_status *status);

/* Programs that a thread decodes, before they are published in the module. No other thread can
 * see them, so no lock is held. */
typedef struct program_set {
    emu_module *module;
    bool observed;
    program **by_function;        /* by function number */
    program *created, *undecoded; /* lists: all of them, and those still to be decoded */
    interrupt_poller *poller;
} program_set;

/* Decodes one function (decode.c). Calls program_find for its callees. */
smk_code decode_function(program *p, program_set *set, smk_status *status);
/* The function's program, decoded or not; NULL: out of memory. */
program *program_find(program_set *set, const ptx_function *function);

/* The address of a function, and the function at an address (NULL: none). */
uint64_t function_address(const ptx_function *function);
const ptx_function *function_at(const ptx_module *module, uint64_t address);

#endif
