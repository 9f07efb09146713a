/* What a checked run found wrong (device "emu"), as plain data. */
#ifndef SMK_HAZARD_H
#define SMK_HAZARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(enumerator, name in rows and messages) */
#define SMK_HAZARD_MAP(X)                                                                          \
    X(RAW, "RAW")                                                                                  \
    X(WAR, "WAR")                                                                                  \
    X(WAW, "WAW")                                                                                  \
    X(UNINITIALISED, "uninitialised")                                                              \
    X(UNWRITTEN, "unwritten")                                                                      \
    X(ASYNC_READ, "async-read")                                                                    \
    X(ASYNC_WRITE, "async-write")                                                                  \
    X(OVERLAP, "overlap")                                                                          \
    X(PROXY, "proxy")                                                                              \
    X(BARRIER, "barrier")                                                                          \
    X(DEADLOCK, "deadlock")                                                                        \
    X(OUT_OF_BOUNDS, "out-of-bounds")                                                              \
    X(MISALIGNED, "misaligned")                                                                    \
    X(SHARED_LIMIT, "shared-limit")

typedef enum smk_hazard_kind {
#define X(name, spelling) SMK_HAZARD_##name,
    SMK_HAZARD_MAP(X)
#undef X
        SMK_N_HAZARDS
} smk_hazard_kind;

typedef enum smk_space {
    SMK_NO_SPACE,
    SMK_SHARED_SPACE,
    SMK_GLOBAL_SPACE,
    SMK_OTHER_SPACE
} smk_space;

/* One of the two accesses, barriers, ... that are wrong together. */
typedef struct smk_party {
    const char *file; /* as .loc names it, NULL if the PTX has no line information */
    int line;         /* of the PTX where it has no line information; 0: there is no such party */
    const char *text; /* the PTX instruction; NULL if there is none */
    uint32_t block[3], thread[3];
} smk_party;

/* Findings of the same kind on the same lines are one; `count` says how many, and the rest is of the
 * first of them. */
typedef struct smk_hazard {
    smk_hazard_kind kind;
    smk_party party, other;
    smk_space space;
    int64_t offset;       /* shared: in the block's window; global: in the buffer or variable */
    int width;            /* bytes at that place */
    int buffer;           /* of the job; -1: none */
    int argument;         /* filled by module/: which argument the buffer is, -1: none ... */
    int64_t argument_at;  /* ... and the place in it */
    const char *variable; /* PTX name of the variable that holds the place; NULL: none */
    int64_t variable_at;  /* the place in it */
    uint64_t count;
    char *message; /* faults: what an unchecked run would raise; owned; NULL for others */
} smk_hazard;

#endif
