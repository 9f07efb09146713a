/* The state of decoding one function: decode.c walks the instructions, decode_operand.c places operands. */
#ifndef EMU_DECODER_H
#define EMU_DECODER_H

#include "decode.h"

typedef struct target_list {
    const insn **targets;
    uint32_t n;
    struct target_list *next;
} target_list;

/* A slot behind the registers, by the value that it holds. */
typedef struct slot_entry {
    uint64_t value;
    uint32_t kind, bytes; /* bytes of an element; 0: an empty place of the table */
    uint32_t offset;
} slot_entry;

typedef struct slot_table {
    slot_entry *entries; /* open addressing */
    uint32_t n, size;
} slot_table;

struct decoder {
    program *program;
    program_set *set;
    const ptx_function *function;
    const ptx_instruction *ptx;     /* the one at hand: */
    uint32_t taken;                 /* its modifiers that somebody took, as bits */
    bool refused;                   /* an operand that nobody can serve */
    char reason[256];               /* decode_refuse: why the text is wrong; "" if it is not */
    bool own_guard, not_predicable; /* decode_own_guard, decode_not_predicable */
    insn follow;                    /* decode_follow: hidden, behind it, if it has a handler */
    bool out_of_memory;
    uint32_t scratch; /* the sinks' slot; 0: none yet */
    slot_table slots;
    uint32_t n_code;
    uint32_t *first;   /* position of each PTX instruction's first insn */
    bool *reconverges; /* lanes may reconverge before this one */
    target_list *lists;
};

/* Room for one more than n elements; NULL if out of memory (and dc knows). */
void *decoder_grow(decoder *dc, void *array, uint32_t n, size_t size);

/* A new slot of the frame. */
uint32_t decoder_slot(decoder *dc, uint32_t element_bytes);

#endif
