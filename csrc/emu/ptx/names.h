/* The parser's symbol table: each distinct word of the text, and its current bindings.
 *
 * A name has one binding per name space: as a value (register, variable, function), as the prefix
 * of a register range (%r<100>), and as a label. An inner scope's binding hides the outer one until
 * the scope ends.
 */
#ifndef EMU_NAMES_H
#define EMU_NAMES_H

#include "../base/arena.h"
#include "ptx.h"

/* As in C, a name may mean different things in different name spaces. */
typedef enum name_space {
    NAME_SPACE_VALUE,
    NAME_SPACE_RANGE,
    NAME_SPACE_LABEL,
    N_NAME_SPACES
} name_space;

typedef struct name {
    const char *text; /* NUL-terminated */
    uint32_t length, hash;
    struct binding *bound[N_NAME_SPACES]; /* of the innermost scope */
    bool number_split;                    /* prefix and number are set */
    struct name *prefix;                  /* "%r12": "%r"; NULL: cannot be a member of a range */
    uint64_t number;                      /* "%r12": 12 */
    /* As an opcode or a modifier; set when the name is first used as one. */
    bool classified;
    ptx_opcode opcode;
    uint64_t has;
    uint32_t types;
} name;

typedef struct names {
    ptx_arena *arena, *texts; /* of the names, and of their spellings, which may live longer */
    name **slots;
    size_t capacity, count;
} names;

typedef enum binding_kind {
    BOUND_REGISTER,  /* index */
    BOUND_REGISTERS, /* index, count: .reg .v4 */
    BOUND_RANGE,     /* count, type; index: components of .v4, 0 for scalars */
    BOUND_VARIABLE,
    BOUND_FUNCTION,
    BOUND_LABEL, /* index of the instruction */
    BOUND_LIST   /* .branchtargets, .calltargets, .callprototype: operand */
} binding_kind;

typedef struct binding {
    binding_kind kind;
    name_space name_space;
    uint32_t depth, index;
    uint64_t count;
    ptx_type type;
    struct variable_info *variable;
    struct function_info *function;
    ptx_operand *operand;
    name *name;
    struct binding *outer; /* the binding of the enclosing scope that this one hides */
    struct binding *next;  /* in the same scope */
} binding;

bool names_start(names *table, ptx_arena *arena, ptx_arena *texts);
void names_free(names *table);

/* Finds or inserts the name; NULL if out of memory. */
name *names_get(names *table, const char *text, size_t length);

#endif
