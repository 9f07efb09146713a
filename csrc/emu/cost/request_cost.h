/* The cost of one request; counts.c adds them up, and replay/ records them. */
#ifndef EMU_REQUEST_COST_H
#define EMU_REQUEST_COST_H

#include "../observe/observer.h"

typedef struct request_cost {
    uint32_t actual; /* wavefronts (shared) or sectors (global) */
    uint32_t ideal;
    /* The same for the vectorized access in the machine code; not used for global memory. */
    uint32_t machine, machine_ideal;
} request_cost;

/* Sectors of surfaces depend on the layout of CUDA arrays, which is not modelled. */
static inline bool request_is_of_surface(const ptx_instruction *p) {
    return p->op == PTX_OP_suld || p->op == PTX_OP_sust || p->op == PTX_OP_sured;
}

/* Whether the request has a cost. A lane of st.async or red.async is part of the warp's
 * EMU_STORE_ASYNC. */
static inline bool request_is_counted(const emu_request *r) {
    if (r->space != PTX_SHARED && r->space != PTX_GLOBAL) return false;
    const bool lane =
        r->operation == EMU_BULK_WRITE && (r->ptx->op == PTX_OP_st || r->ptx->op == PTX_OP_red);
    return !lane && !request_is_of_surface(r->ptx);
}

/* Goes to the shared memory of a block through the network of the cluster. st.async and red.async
 * do so even to their own block. */
static inline bool request_is_remote(const emu_request *r) {
    const emu_operation o = r->operation;
    if (r->space != PTX_SHARED) return false;
    return o == EMU_STORE_ASYNC ||
           (r->owner != r->member && (o == EMU_LOAD || o == EMU_STORE || o == EMU_ATOMIC));
}

/* Of any counted request but a remote load, store or atomic. */
request_cost request_cost_of(const emu_request *r);

/* The latest warp instruction that accessed other blocks' shared memory. The observer makes a
 * request of each block; together they are one to the hardware. */
typedef struct remote_access {
    const ptx_instruction *ptx;
    uint32_t block[3], warp, clock;
    uint32_t active;
    uint64_t offset[32], address[32]; /* the latter as in remote.h */
    uint32_t wavefronts, ideal;
    bool is_worst; /* of its tally (counts.c) */
} remote_access;

bool remote_access_continues(const remote_access *at, const emu_request *r);
/* Adds a remote load, store or atomic, and returns what it adds to the cost. The sums may exceed 32
 * bits' range downwards: add modulo 2^32, or as int32_t. */
request_cost remote_access_add(remote_access *at, const emu_request *r);

#endif
