/* Findings of a checked run on the emulator, as plain data. */
#ifndef SMK_HAZARD_H
#define SMK_HAZARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(enumerator, name in rows and messages, whether such findings are benign: no hazards, as
 * docs/hazards.md says) */
#define SMK_HAZARD_MAP(X)                                                                          \
    X(RAW, "RAW", false)                                                                           \
    X(WAR, "WAR", false)                                                                           \
    X(WAW, "WAW", false)                                                                           \
    X(CAS_READ, "cas-read", true)                                                                  \
    X(UNINITIALISED, "uninitialised", false)                                                       \
    X(UNWRITTEN, "unwritten", false)                                                               \
    X(ASYNC_READ, "async-read", false)                                                             \
    X(ASYNC_WRITE, "async-write", false)                                                           \
    X(OVERLAP, "overlap", false)                                                                   \
    X(PROXY, "proxy", false)                                                                       \
    X(PROXY_INIT, "proxy-init", true)                                                              \
    X(INIT_AGAIN, "init-again", true)                                                              \
    X(BARRIER, "barrier", false)                                                                   \
    X(DEADLOCK, "deadlock", false)                                                                 \
    X(OUT_OF_BOUNDS, "out-of-bounds", false)                                                       \
    X(MISALIGNED, "misaligned", false)                                                             \
    X(SHARED_LIMIT, "shared-limit", false)                                                         \
    X(EXITED, "exited", false)                                                                     \
    X(SHUFFLE, "shuffle", false)                                                                   \
    X(SHUFFLE_OUTSIDE, "shuffle-outside", true)

typedef enum smk_hazard_kind {
#define X(name, spelling, benign) SMK_HAZARD_##name,
    SMK_HAZARD_MAP(X)
#undef X
        SMK_N_HAZARDS
} smk_hazard_kind;

bool smk_is_hazard(smk_hazard_kind kind);
const char *smk_hazard_name(smk_hazard_kind kind);

typedef enum smk_space {
    SMK_NO_SPACE,
    SMK_SHARED_SPACE,
    SMK_GLOBAL_SPACE,
    SMK_OTHER_SPACE
} smk_space;

const char *smk_space_name(smk_space space); /* NULL for SMK_NO_SPACE */

typedef struct smk_position {
    const char *file;
    int line;
} smk_position;

enum { SMK_MAX_CALLERS = 8 };

/* One of the two conflicting accesses, barriers, ... of a finding. */
typedef struct smk_party {
    const char *file; /* as .loc names it, NULL if the PTX has no line information */
    int line;         /* of the PTX if it has no line information; 0: there is no such party */
    int ptx_line;     /* of the instruction */
    const char *text; /* the PTX instruction; NULL if there is none */
    uint32_t block[3], thread[3];
    smk_position callers[SMK_MAX_CALLERS]; /* inlined code: call sites, innermost first */
    int n_callers;
} smk_party;

/* Findings of one kind on the same lines are merged: `count` is their number, all other fields
 * describe the first one. */
typedef struct smk_hazard {
    smk_hazard_kind kind;
    smk_party party, other;
    smk_space space;
    int64_t offset;      /* shared: in the block's window; global: in the buffer or variable */
    int width;           /* bytes */
    int buffer;          /* index into the job's buffers; -1: none */
    int argument;        /* filled in by module/: index of the argument that is the buffer, or -1 */
    int64_t argument_at; /* byte offset in the argument */
    const char *variable; /* PTX name of the variable at this address; NULL: none */
    int64_t variable_at;  /* byte offset in the variable */
    uint64_t count;
    uint64_t step; /* of a recorded run: the one that revealed it */
    char *message; /* faults: the error that an unchecked run raises; shuffles: which lane reads
                    * which. Owned; NULL for other kinds */
} smk_hazard;

#endif
