/* The state of decoding one function. decode.c handles instructions, decode_operand.c operands. */
#ifndef EMU_DECODER_H
#define EMU_DECODER_H

#include "decode.h"

typedef struct target_list {
    const insn **targets;
    uint32_t n;
    struct target_list *next;
} target_list;

/* A frame slot beyond the registers, looked up by its value. */
typedef struct slot_entry {
    uint64_t value;
    uint32_t kind, bytes; /* bytes of an element; 0: an empty entry of the table */
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
    const ptx_instruction *ptx;     /* the current instruction */
    uint32_t taken;                 /* its consumed modifiers, as bits */
    bool bad_operand;               /* it has an operand of an unsupported kind or size */
    char reason[256];               /* from decode_invalid; "": the instruction is not invalid */
    bool own_guard, not_predicable; /* from decode_own_guard, decode_not_predicable */
    bool reads_time;                /* it has a clock or a timer among its operands */
    insn after;                     /* from decode_emit_after; no handler: none */
    bool out_of_memory;
    uint32_t scratch; /* frame slot of sinks; 0: none yet */
    slot_table slots;
    uint32_t n_code;
    uint32_t *first;   /* per PTX instruction: index of its first insn */
    bool *reconverges; /* per PTX instruction: it is a reconvergence point */
    target_list *lists;
};

/* Grows an array of n elements by one. NULL: out of memory, which is recorded in dc. */
void *decoder_grow(decoder *dc, void *array, uint32_t n, size_t size);

/* Allocates a frame slot; returns its offset. */
uint32_t decoder_slot(decoder *dc, uint32_t element_bytes);

#endif
