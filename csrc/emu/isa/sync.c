/* The operations of bar.warp.sync, shfl, vote, match, redux and elect; and activemask.
 *
 * Lanes of one instruction may have different member masks (two groups of 16 lanes that shuffle
 * separately, for example), so an operation processes one group at a time.
 */
#include <string.h>

#include "../machine/machine.h"
#include "../base/lanes.h"

/* The lanes of `remaining` that have the same member mask as the first of them. */
static uint32_t group_of(const warp *w, const insn *i, uint32_t remaining, uint32_t *members) {
    const uint32_t *mask = U32(w, i->imm);
    uint32_t group = 0;
    *members = mask[first_lane(remaining)];
    for (; remaining; remaining &= remaining - 1)
        if (mask[first_lane(remaining)] == *members) group |= remaining & -remaining;
    return group;
}

static void write_lanes(warp *w, uint32_t slot, uint32_t lanes, uint32_t value) {
    uint32_t *d = U32(w, slot);
    for (; lanes; lanes &= lanes - 1)
        d[first_lane(lanes)] = value;
}

static const insn *op_bar_warp(warp *w, const insn *i) {
    for (uint32_t remaining = w->active; remaining;) {
        uint32_t members;
        const uint32_t group = group_of(w, i, remaining, &members);
        observe_sync(w, i, EMU_WARP_SYNC, group);
        remaining &= ~group;
    }
    return i;
}

enum shuffle { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY, SHUFFLE_IDX };

static bool all_take_part(const warp *w, const insn *i) {
    const uint32_t *members = U32(w, i->imm);
    uint32_t common = w->active;
    for (int lane = 0; lane < LANES; lane++)
        common &= members[lane];
    return common == FULL;
}

/* Reports each lane whose source lane is not in its member mask or does not run the operation. */
static void observe_absent_sources(const warp *w, const insn *i, const int32_t *from) {
    if (all_take_part(w, i)) return;
    for (uint32_t left = w->active; left; left &= left - 1) {
        const int lane = first_lane(left);
        const uint32_t mask = U32(w, i->imm)[lane];
        if (!((mask & w->active) >> from[lane] & 1))
            observe_event(w, (emu_sync){.kind = mask >> from[lane] & 1 ? EMU_SHUFFLE_ABSENT
                                                                       : EMU_SHUFFLE_OUTSIDE,
                                        .ptx = i->ptx,
                                        .lanes = 1u << lane,
                                        .object = (uint32_t)from[lane]});
    }
}

/* The formulas of the PTX ISA. c holds the clamp in bits 0-4 and the segment mask in bits 8-12. */
static inline __attribute__((always_inline)) const insn *shuffle(warp *w, const insn *i,
                                                                 enum shuffle mode) {
    const uint32_t *a = U32(w, i->a), *b = U32(w, i->b), *c = U32(w, i->c);
    uint32_t *d = U32(w, i->d), *p = PRED(w, i->e);
    int32_t from[LANES], in_range[LANES];
    lanes_u32 value;
    for (int lane = 0; lane < LANES; lane++) {
        const int delta = b[lane] & 31, clamp = c[lane] & 31, segment = c[lane] >> 8 & 31;
        const int low = lane & segment, high = low | (clamp & ~segment);
        int j = lane;
        switch (mode) {
        case SHUFFLE_UP: j = lane - delta; break;
        case SHUFFLE_DOWN: j = lane + delta; break;
        case SHUFFLE_BFLY: j = lane ^ delta; break;
        case SHUFFLE_IDX: j = low | (delta & ~segment); break;
        }
        in_range[lane] = -(mode == SHUFFLE_UP ? j >= high : j <= high);
        from[lane] = in_range[lane] ? j : lane;
    }
    if (w->block->observer) observe_absent_sources(w, i, from);
    for (int lane = 0; lane < LANES; lane++)
        value[lane] = a[from[lane]];
    for (int lane = 0; lane < LANES; lane++) {
        d[lane] = w->mask[lane] ? value[lane] : d[lane];
        p[lane] = w->mask[lane] ? (uint32_t)in_range[lane] : p[lane];
    }
    return i;
}

#define SHUFFLE(name, mode)                                                                        \
    static const insn *name(warp *w, const insn *i) {                                              \
        return shuffle(w, i, mode);                                                                \
    }
SHUFFLE(op_shfl_up, SHUFFLE_UP)
SHUFFLE(op_shfl_down, SHUFFLE_DOWN)
SHUFFLE(op_shfl_bfly, SHUFFLE_BFLY)
SHUFFLE(op_shfl_idx, SHUFFLE_IDX)

enum vote { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };

static inline __attribute__((always_inline)) const insn *vote(warp *w, const insn *i,
                                                              enum vote mode) {
    const uint32_t predicate =
        lanes_bits(PRED(w, i->a)) ^ (i->flags & COLLECTIVE_NEGATED ? FULL : 0);
    for (uint32_t remaining = w->active; remaining;) {
        uint32_t members;
        const uint32_t group = group_of(w, i, remaining, &members);
        const uint32_t voters = members & w->active, yes = predicate & voters;
        uint32_t result = yes;
        switch (mode) {
        case VOTE_ALL: result = yes == voters ? FULL : 0; break;
        case VOTE_ANY: result = yes ? FULL : 0; break;
        case VOTE_UNI: result = !yes || yes == voters ? FULL : 0; break;
        case VOTE_BALLOT: break;
        }
        write_lanes(w, i->d, group, result);
        remaining &= ~group;
    }
    return i;
}

#define VOTE(name, mode)                                                                           \
    static const insn *name(warp *w, const insn *i) {                                              \
        return vote(w, i, mode);                                                                   \
    }
VOTE(op_vote_all, VOTE_ALL)
VOTE(op_vote_any, VOTE_ANY)
VOTE(op_vote_uni, VOTE_UNI)
VOTE(op_vote_ballot, VOTE_BALLOT)

static uint64_t match_value(const warp *w, const insn *i, int lane) {
    return i->flags & COLLECTIVE_WIDE ? U64(w, i->a)[lane] : U32(w, i->a)[lane];
}

static uint32_t equal_lanes(const warp *w, const insn *i, uint32_t among, uint64_t value) {
    uint32_t equal = 0;
    for (; among; among &= among - 1)
        if (match_value(w, i, first_lane(among)) == value) equal |= among & -among;
    return equal;
}

static const insn *op_match_any(warp *w, const insn *i) {
    lanes_u32 result = {0}; /* d may be the register of a */
    for (uint32_t remaining = w->active; remaining; remaining &= remaining - 1) {
        const int lane = first_lane(remaining);
        result[lane] = equal_lanes(w, i, U32(w, i->imm)[lane] & w->active, match_value(w, i, lane));
    }
    for (uint32_t remaining = w->active; remaining; remaining &= remaining - 1)
        U32(w, i->d)[first_lane(remaining)] = result[first_lane(remaining)];
    return i;
}

static const insn *op_match_all(warp *w, const insn *i) {
    for (uint32_t remaining = w->active; remaining;) {
        uint32_t members;
        const uint32_t group = group_of(w, i, remaining, &members);
        const uint32_t participants = members & w->active;
        const bool equal = equal_lanes(w, i, participants,
                                       match_value(w, i, first_lane(participants))) == participants;
        write_lanes(w, i->d, group, equal ? participants : 0);
        write_lanes(w, i->e, group, equal ? FULL : 0);
        remaining &= ~group;
    }
    return i;
}

enum reduction {
    REDUX_ADD,
    REDUX_MIN,
    REDUX_MAX,
    REDUX_SMIN,
    REDUX_SMAX,
    REDUX_AND,
    REDUX_OR,
    REDUX_XOR
};

static uint32_t reduce(enum reduction r, uint32_t x, uint32_t y) {
    switch (r) {
    case REDUX_ADD: return x + y;
    case REDUX_MIN: return x < y ? x : y;
    case REDUX_MAX: return x > y ? x : y;
    case REDUX_SMIN: return (int32_t)x < (int32_t)y ? x : y;
    case REDUX_SMAX: return (int32_t)x > (int32_t)y ? x : y;
    case REDUX_AND: return x & y;
    case REDUX_OR: return x | y;
    case REDUX_XOR: return x ^ y;
    }
    return x;
}

static const insn *op_redux(warp *w, const insn *i) {
    lanes_u32 a;
    memcpy(a, U32(w, i->a), sizeof a);
    for (uint32_t remaining = w->active; remaining;) {
        uint32_t members;
        const uint32_t group = group_of(w, i, remaining, &members);
        uint32_t left = members & w->active;
        uint32_t result = a[first_lane(left)];
        for (left &= left - 1; left; left &= left - 1)
            result = reduce((enum reduction)i->count, result, a[first_lane(left)]);
        write_lanes(w, i->d, group, result);
        remaining &= ~group;
    }
    return i;
}

static const insn *op_elect(warp *w, const insn *i) {
    for (uint32_t remaining = w->active; remaining;) {
        uint32_t members;
        const uint32_t group = group_of(w, i, remaining, &members);
        const int leader = first_lane(members & w->active);
        write_lanes(w, i->d, group, (uint32_t)leader);
        write_lanes(w, i->e, group, 0);
        write_lanes(w, i->e, group & 1u << leader, FULL);
        remaining &= ~group;
    }
    return i;
}

static const insn *exec_activemask(warp *w, const insn *i) {
    write_lanes(w, i->d, w->active, w->active);
    return i + 1;
}

/* ---- decoding ---- */

/* Decodes d|e, a, b, c. Absent operands share an unused slot. Returns the operand after them; NULL
 * if there are fewer. */
static const ptx_operand *operands(decoder *dc, const ptx_instruction *p, insn *out,
                                   ptx_type d_type, ptx_type a_type, uint32_t n_sources) {
    const ptx_operand *o = p->operands;
    static const ptx_operand sink = {.kind = PTX_SINK};
    if (p->n_operands < (d_type != PTX_NO_TYPE) + n_sources) return NULL;
    out->e = decode_destination(dc, &sink, PTX_PRED);
    out->a = out->b = out->c = out->d = out->e;
    if (d_type != PTX_NO_TYPE) {
        out->d = decode_destination(dc, o, d_type);
        if (o->pair) out->e = decode_destination(dc, o->pair, PTX_PRED);
        o++;
    }
    if (n_sources > 0) {
        if (o->kind == PTX_REGISTER && o->negated) out->flags |= COLLECTIVE_NEGATED;
        if (ptx_type_size[a_type] == 8) out->flags |= COLLECTIVE_WIDE;
        out->a = decode_source(dc, o++, a_type);
    }
    if (n_sources > 1) out->b = decode_source(dc, o++, PTX_U32);
    if (n_sources > 2) out->c = decode_source(dc, o++, PTX_U32);
    return o;
}

/* Decodes the same and the member mask. */
static exec_fn collective(decoder *dc, const ptx_instruction *p, insn *out, exec_fn body,
                          ptx_type d_type, ptx_type a_type, uint32_t n_sources) {
    const ptx_operand *o = operands(dc, p, out, d_type, a_type, n_sources);
    if (!body || !o || p->n_operands != (d_type != PTX_NO_TYPE) + n_sources + 1) return NULL;
    out->imm = decode_source(dc, o, PTX_B32);
    out->body = body;
    decode_not_predicable(dc);
    return exec_collective;
}

typedef struct named_operation {
    const char *modifier;
    exec_fn body;
} named_operation;

static exec_fn take_operation(decoder *dc, const named_operation *operations) {
    for (; operations->modifier; operations++)
        if (decode_take(dc, operations->modifier)) return operations->body;
    return NULL;
}

/* shfl and vote without .sync, of targets before sm_70: for the lanes that run it together. */
static const insn *exec_converged(warp *w, const insn *i) {
    ((const named_operation *)i->extra)->body(w, i);
    return i + 1;
}

static exec_fn converged(decoder *dc, const ptx_instruction *p, insn *out, exec_fn body,
                         ptx_type d_type, ptx_type a_type, uint32_t n_sources) {
    named_operation *operation = decode_alloc(dc, sizeof *operation);
    operation->body = body;
    if (!operands(dc, p, out, d_type, a_type, n_sources)) return NULL;
    if (!body || p->n_operands != n_sources + 1) return NULL;
    out->imm = decode_constant(dc, FULL, PTX_B32);
    out->extra = operation;
    return exec_converged;
}

static exec_fn select_bar_warp(decoder *dc, const ptx_instruction *p, insn *out) {
    if (!decode_take(dc, "warp") || !decode_take(dc, "sync")) return NULL;
    return collective(dc, p, out, op_bar_warp, PTX_NO_TYPE, PTX_NO_TYPE, 0);
}

static exec_fn select_shfl(decoder *dc, const ptx_instruction *p, insn *out) {
    static const named_operation modes[] = {
        {"up", op_shfl_up},
        {"down", op_shfl_down},
        {"bfly", op_shfl_bfly},
        {"idx", op_shfl_idx},
    };
    const bool sync = decode_take(dc, "sync");
    if (!decode_take(dc, "b32")) return NULL;
    return (sync ? collective : converged)(dc, p, out, take_operation(dc, modes), PTX_B32, PTX_B32,
                                           3);
}

static exec_fn select_vote(decoder *dc, const ptx_instruction *p, insn *out) {
    static const named_operation modes[] = {
        {"all", op_vote_all},
        {"any", op_vote_any},
        {"uni", op_vote_uni},
        {"ballot", op_vote_ballot},
    };
    const exec_fn body = take_operation(dc, modes);
    const ptx_type type = body == op_vote_ballot ? PTX_B32 : PTX_PRED;
    const bool sync = decode_take(dc, "sync");
    if (decode_take_type(dc) != type || (p->n_operands && p->operands[0].pair)) return NULL;
    return (sync ? collective : converged)(dc, p, out, body, type, PTX_PRED, 1);
}

static exec_fn select_match(decoder *dc, const ptx_instruction *p, insn *out) {
    static const named_operation modes[] = {
        {"any", op_match_any},
        {"all", op_match_all},
    };
    const exec_fn body = take_operation(dc, modes);
    const ptx_type type = decode_take_type(dc);
    if (!decode_take(dc, "sync") || (type != PTX_B32 && type != PTX_B64)) return NULL;
    if (body == op_match_any && p->n_operands && p->operands[0].pair) return NULL;
    return collective(dc, p, out, body, PTX_B32, type, 1);
}

static exec_fn select_redux(decoder *dc, const ptx_instruction *p, insn *out) {
    static const struct {
        const char *modifier;
        /* u32, s32, b32; 0xff: no such form */
        uint8_t by_kind[3];
    } operations[] = {
        {"add", {REDUX_ADD, REDUX_ADD, 0xff}},  {"min", {REDUX_MIN, REDUX_SMIN, 0xff}},
        {"max", {REDUX_MAX, REDUX_SMAX, 0xff}}, {"and", {0xff, 0xff, REDUX_AND}},
        {"or", {0xff, 0xff, REDUX_OR}},         {"xor", {0xff, 0xff, REDUX_XOR}}};
    const ptx_type type = decode_take_type(dc);
    const int kind = type == PTX_U32 ? 0 : type == PTX_S32 ? 1 : type == PTX_B32 ? 2 : -1;
    if (!decode_take(dc, "sync") || kind < 0) return NULL;
    for (size_t k = 0; k < sizeof operations / sizeof *operations; k++) {
        if (!decode_take(dc, operations[k].modifier)) continue;
        out->count = operations[k].by_kind[kind];
        if (out->count == 0xff) return NULL;
        return collective(dc, p, out, op_redux, type, type, 1);
    }
    return NULL;
}

static exec_fn select_elect(decoder *dc, const ptx_instruction *p, insn *out) {
    if (!decode_take(dc, "sync")) return NULL;
    return collective(dc, p, out, op_elect, PTX_B32, PTX_NO_TYPE, 0);
}

static exec_fn select_activemask(decoder *dc, const ptx_instruction *p, insn *out) {
    if (!decode_take(dc, "b32") || p->n_operands != 1) return NULL;
    out->d = decode_destination(dc, &p->operands[0], PTX_B32);
    return exec_activemask;
}

opcode_table sync_opcodes = {
    [PTX_OP_bar] = select_bar_warp,
    [PTX_OP_shfl] = select_shfl,
    [PTX_OP_vote] = select_vote,
    [PTX_OP_match] = select_match,
    [PTX_OP_redux] = select_redux,
    [PTX_OP_elect] = select_elect,
    [PTX_OP_activemask] = select_activemask,
};
