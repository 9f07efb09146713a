/* Every word of the text once, and what it stands for where the parser is now. Private to the
 * reader.
 *
 * A name can stand for a value (register, variable, function), for a range of registers of which it
 * is the prefix (%r<100>), and for a label. Each meaning is a binding; an inner scope's binding
 * hides the outer one and is taken off when the scope ends.
 */
#ifndef EMU_NAMES_H
#define EMU_NAMES_H

#include "../base/arena.h"
#include "ptx.h"

typedef enum meaning { AS_VALUE, AS_RANGE, AS_LABEL, N_MEANINGS } meaning;

typedef struct name {
    const char *text; /* NUL-terminated */
    uint32_t length, hash;
    struct binding *bound[N_MEANINGS]; /* the innermost */
    bool split;                        /* prefix and number are filled */
    struct name *prefix;               /* "%r12": "%r", NULL if there is no such split */
    uint64_t number;                   /* 12 */
    /* What it is as an opcode or a modifier, once it has been used as one. */
    bool is_word;
    ptx_opcode opcode;
    uint64_t has;
    uint32_t types;
} name;

typedef struct names {
    ptx_arena *arena, *texts; /* names, and their spellings, which may outlive them */
    name **slots;
    size_t capacity, count;
} names;

typedef enum binding_kind {
    BOUND_REGISTER,  /* index */
    BOUND_REGISTERS, /* index, count: .reg .v4 */
    BOUND_RANGE,     /* count, type, and index: components of .v4, 0 for scalars */
    BOUND_VARIABLE,
    BOUND_FUNCTION,
    BOUND_LABEL, /* index of the instruction */
    BOUND_LIST   /* .branchtargets, .calltargets, .callprototype: operand */
} binding_kind;

typedef struct binding {
    binding_kind kind;
    meaning as;
    uint32_t depth, index;
    uint64_t count;
    ptx_type type;
    struct variable_note *variable;
    struct function_note *function;
    ptx_operand *operand;
    name *name;
    struct binding *hidden; /* what the name meant outside */
    struct binding *next;   /* of the same scope */
} binding;

bool names_start(names *table, ptx_arena *arena, ptx_arena *texts);
void names_free(names *table);

/* Finds or adds; NULL if out of memory. */
name *names_get(names *table, const char *text, size_t length);

#endif
