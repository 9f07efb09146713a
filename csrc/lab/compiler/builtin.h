/* Functions of CUDA that need no declaration. */
#ifndef LAB_BUILTIN_H
#define LAB_BUILTIN_H

#include "ast.h"

typedef enum lab_builtin_kind {
    LAB_PLAIN,     /* ptx result, arguments... */
    LAB_EFFECT,    /* the same, and it must not be removed or moved */
    LAB_NO_RESULT, /* ptx, without operands but those that it names itself */
    LAB_WARP_SYNC, /* bar.warp.sync mask */
    LAB_SHUFFLE,   /* ptx: the mode */
    LAB_VOTE,
    LAB_ATOMIC, /* ptx: operation and type */
    LAB_ATOMIC_SUB,
    LAB_LOAD,      /* __ldg */
    LAB_BITS,      /* the same bits as another type */
    LAB_ACTIVE,    /* activemask */
    LAB_FIND_FIRST /* __ffs */
} lab_builtin_kind;

/* Types by letters: v void, p bool, i int, u unsigned, l long long, L unsigned long long, f, d.
 * '*' before a letter: a pointer. Functions of one name differ in the type of the first parameter,
 * and are sorted by conversion rank. */
typedef struct lab_builtin {
    const char *name;
    lab_builtin_kind kind;
    const char *result, *parameters; /* '?': from here on parameters may be left out */
    const char *ptx;
} lab_builtin;

/* The functions of a name: the first of `count` rows; NULL: none. */
const lab_builtin *lab_builtins(const char *name, uint32_t *count);

/* The type of a letter. */
const lab_type *lab_letter_type(char letter);

#endif
