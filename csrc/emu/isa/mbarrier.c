/* mbarriers: barriers in shared memory that count arrivals and transaction bytes.
 *
 * An mbarrier has 8 bytes. Their encoding is the emulator's own:
 *
 *   bits  0-19  pending arrivals of this phase
 *   bits 20-39  expected arrivals per phase
 *   bits 40-60  transaction count (signed)
 *   bit  61     parity of the phase
 *   bits 62-63  a tag that uninitialised memory does not have
 *
 * The state that an arrive returns is the mbarrier before that arrival.
 *
 * A phase completes when no arrivals are pending and the transaction count is 0. Bulk copies
 * complete as late as this allows: when an instruction accesses the mbarrier and only the copies'
 * own arrivals and bytes are missing. So data that a kernel has not waited for is never visible.
 * Source: PTX ISA, "Parallel Synchronization: mbarrier".
 *
 * A failed try_wait or test_wait yields to other warps at once.
 */
#include "mbarrier.h"

#include <stdio.h>
#include <string.h>

#include "bulk.h"
#include "../machine/machine.h"
#include "../base/lanes.h"
#include "memory.h"

enum { COUNT_BITS = 20, MAX_COUNT = (1 << COUNT_BITS) - 1, TX_SHIFT = 40, TX_BITS = 21 };
#define PHASE_BIT     (1ull << 61)
#define INIT_TAG      (2ull << 62)
#define INIT_TAG_MASK (3ull << 62)

typedef struct mbarrier {
    block *owner; /* the block whose shared memory it is in, at this offset */
    unsigned char *at;
    uint64_t offset;
    uint32_t pending, expected;
    int64_t tx_count;
    bool phase;
} mbarrier;

static uint64_t encode_mbarrier(const mbarrier *o) {
    return o->pending | (uint64_t)o->expected << COUNT_BITS |
           ((uint64_t)o->tx_count & ((1ull << TX_BITS) - 1)) << TX_SHIFT |
           (o->phase ? PHASE_BIT : 0) | INIT_TAG;
}

static void store_mbarrier(const mbarrier *o) {
    const uint64_t bits = encode_mbarrier(o);
    memcpy(o->at, &bits, sizeof bits);
}

/* ---- state ---- */

/* Completes the phase if no arrivals are pending and the transaction count is 0. */
static void end_phase_if_complete(mbarrier *o) {
    if (o->pending || o->tx_count) return;
    o->phase = !o->phase;
    o->pending = o->expected;
}

/* Completes copies in flight if the phase completes with them. */
static void complete_copies(mbarrier *o) {
    block *b = o->owner;
    uint32_t arrivals;
    int64_t bytes;
    bulk_in_flight(b, o->offset, &arrivals, &bytes);
    if (o->pending > arrivals || o->tx_count > bytes || (!arrivals && !bytes)) return;
    const bool phase = o->phase;
    while (o->phase == phase && bulk_complete_one(b, o->offset, &arrivals, &bytes)) {
        o->pending -= arrivals < o->pending ? arrivals : o->pending;
        o->tx_count -= bytes;
        end_phase_if_complete(o);
    }
    store_mbarrier(o);
}

static void decode_mbarrier(uint64_t bits, mbarrier *o) {
    o->pending = bits & MAX_COUNT;
    o->expected = bits >> COUNT_BITS & MAX_COUNT;
    o->tx_count = (int64_t)(bits << (64 - TX_SHIFT - TX_BITS)) >> (64 - TX_BITS);
    o->phase = bits & PHASE_BIT;
}

/* Finds the 8 bytes of an mbarrier; false after a fault. */
static bool reach_mbarrier(warp *w, const insn *i, int lane, ptx_space space, uint64_t address,
                           mbarrier *o) {
    o->at = lane_reach(w, i, space, lane, address, sizeof(uint64_t), true);
    if (!o->at) return false;
    o->owner = shared_owner(w, space, address);
    o->offset = (uint64_t)(o->at - o->owner->shared);
    return true;
}

/* Whether the bytes have the tag of an mbarrier; other data may have it, too. */
static bool looks_valid(const mbarrier *o, uint64_t *bits) {
    memcpy(bits, o->at, sizeof *bits);
    return (*bits & INIT_TAG_MASK) == INIT_TAG;
}

static bool load_mbarrier(warp *w, const insn *i, int lane, ptx_space space, uint64_t address,
                          mbarrier *o) {
    uint64_t bits;
    if (!reach_mbarrier(w, i, lane, space, address, o) ||
        (o->owner->bulk && !block_goes_on(w->block)))
        return false;
    if (!looks_valid(o, &bits)) {
        warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                   "there is no mbarrier at 0x%llx of shared memory: it was not initialised "
                   "(mbarrier.init), or was overwritten",
                   (unsigned long long)WINDOW_OFFSET(address));
        return false;
    }
    decode_mbarrier(bits, o);
    complete_copies(o);
    return true;
}

static bool add_tx(warp *w, const insn *i, int lane, mbarrier *o, int64_t bytes) {
    o->tx_count += bytes;
    if (o->tx_count >= -MAX_COUNT && o->tx_count <= MAX_COUNT) return true;
    warp_fault(w, i, SMK_LAUNCH, 1u << lane,
               "the mbarrier's transaction count would be %lld; it holds -%d to %d",
               (long long)o->tx_count, MAX_COUNT, MAX_COUNT);
    return false;
}

static void report(const warp *w, const insn *i, int lane, const mbarrier *o, emu_sync_kind kind) {
    observe_event(w, (emu_sync){.kind = kind,
                                .ptx = i->ptx,
                                .lanes = 1u << lane,
                                .object = (uint32_t)o->offset,
                                .owner = o->owner->member});
}

static bool arrive(warp *w, const insn *i, int lane, mbarrier *o, uint32_t count,
                   bool no_complete) {
    if (count > o->pending || (no_complete && count == o->pending && !o->tx_count)) {
        warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                   no_complete && count == o->pending
                       ? "mbarrier.arrive.noComplete of %u with %u pending would end the phase"
                       : "%u arrivals at an mbarrier that expects %u more in this phase; its "
                         "count (mbarrier.init) must be the number of arrivals per phase",
                   count, o->pending);
        return false;
    }
    o->pending -= count;
    report(w, i, lane, o, EMU_MBARRIER_ARRIVE);
    end_phase_if_complete(o);
    return true;
}

bool mbarrier_check(warp *w, const insn *i, int lane, ptx_space space, uint64_t address) {
    mbarrier o;
    return load_mbarrier(w, i, lane, space, address, &o);
}

void mbarrier_describe(const warp *w, char *out, size_t size) {
    uint64_t bits;
    mbarrier o;
    memcpy(&bits, w->block->shared + w->failed_wait.offset, sizeof bits);
    decode_mbarrier(bits, &o);
    if (o.pending == o.expected && !o.tx_count)
        snprintf(out, size, "no arrivals in this phase; was a phase skipped?");
    else if (o.pending)
        snprintf(out, size, "in this phase %u of %u arrivals are missing", o.pending, o.expected);
    else if (o.tx_count > 0)
        snprintf(
            out, size,
            "in this phase %lld bytes are missing: more were announced (expect_tx) than are copied",
            (long long)o.tx_count);
    else
        snprintf(out, size, "in this phase %lld bytes more were copied than announced (expect_tx)",
                 -(long long)o.tx_count);
}

bool mbarrier_add_pending(warp *w, const insn *i, int lane, ptx_space space, uint64_t address) {
    mbarrier o;
    if (!load_mbarrier(w, i, lane, space, address, &o)) return false;
    if (o.pending == MAX_COUNT) {
        warp_fault(w, i, SMK_LAUNCH, 1u << lane, "an mbarrier holds at most %d pending arrivals",
                   MAX_COUNT);
        return false;
    }
    o.pending++;
    store_mbarrier(&o);
    return true;
}

/* ---- instructions. insn: address in a, wide, imm, space; state or predicate in d; operand in
 * b ---- */

static bool load_operand(warp *w, const insn *i, int lane, mbarrier *o) {
    return load_mbarrier(w, i, lane, (ptx_space)i->space, lane_address(w, i, lane), o);
}

enum arrive_flags {
    ARRIVE_DROP = 1,
    ARRIVE_NO_COMPLETE = 2,
    ARRIVE_EXPECT_TX = 4,
    ARRIVE_STATE = 8
};

static const insn *exec_init(warp *w, const insn *i) {
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const uint32_t count = U32(w, i->b)[lane];
        mbarrier o = {.pending = count, .expected = count};
        if (!reach_mbarrier(w, i, lane, (ptx_space)i->space, lane_address(w, i, lane), &o))
            return NULL;
        if (count < 1 || count > MAX_COUNT)
            return warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                              "mbarrier.init with a count of %u; it must be 1 to %d", count,
                              MAX_COUNT);
        uint64_t before;
        const bool again = looks_valid(&o, &before);
        store_mbarrier(&o);
        observe_event(w, (emu_sync){.kind = EMU_MBARRIER_INIT,
                                    .ptx = i->ptx,
                                    .lanes = 1u << lane,
                                    .object = (uint32_t)o.offset,
                                    .again = again,
                                    .owner = o.owner->member});
    }
    return i + 1;
}

static const insn *exec_inval(warp *w, const insn *i) {
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        mbarrier o;
        uint32_t arrivals;
        int64_t bytes;
        if (!load_operand(w, i, lane, &o)) return NULL;
        bulk_in_flight(o.owner, o.offset, &arrivals, &bytes);
        if (arrivals || bytes)
            return warp_fault(
                w, i, SMK_LAUNCH, 1u << lane,
                "mbarrier.inval while a copy that completes on this mbarrier is in flight");
        for (int k = 0; k < 8; k += 2)
            memcpy(o.at + k, &(uint16_t){POISON}, 2);
    }
    return i + 1;
}

static const insn *exec_arrive(warp *w, const insn *i) {
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const uint32_t operand = i->count ? U32(w, i->b)[lane] : 1;
        const uint32_t count = i->flags & ARRIVE_EXPECT_TX ? 1 : operand;
        mbarrier o;
        if (!load_operand(w, i, lane, &o)) return NULL;
        if (i->flags & ARRIVE_STATE && o.owner != w->block)
            return warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                              "an arrival at an mbarrier of block %u of the cluster returns its "
                              "state; only an mbarrier of the own block has one",
                              o.owner->rank);
        const uint64_t state = encode_mbarrier(&o);
        if (i->flags & ARRIVE_EXPECT_TX && !add_tx(w, i, lane, &o, operand)) return NULL;
        if (i->flags & ARRIVE_DROP) o.expected -= count < o.expected ? count : o.expected;
        if (!arrive(w, i, lane, &o, count, i->flags & ARRIVE_NO_COMPLETE)) return NULL;
        store_mbarrier(&o);
        if (i->flags & ARRIVE_STATE) U64(w, i->d)[lane] = state;
    }
    return i + 1;
}

/* flags 0: expect_tx, adds to the transaction count; 1: complete_tx, subtracts. */
static const insn *exec_tx(warp *w, const insn *i) {
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const int64_t bytes = U32(w, i->b)[lane];
        mbarrier o;
        if (!load_operand(w, i, lane, &o)) return NULL;
        if (!add_tx(w, i, lane, &o, i->flags ? -bytes : bytes)) return NULL;
        if (i->flags) end_phase_if_complete(&o);
        store_mbarrier(&o);
    }
    return i + 1;
}

enum test_flags { TEST_PARITY = 1, TEST_TRY = 2 };

static const insn *exec_test(warp *w, const insn *i) {
    uint32_t done = 0;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        mbarrier o;
        if (!load_operand(w, i, lane, &o)) return NULL;
        const bool waited_phase =
            i->flags & TEST_PARITY ? U32(w, i->b)[lane] & 1 : (U64(w, i->b)[lane] & PHASE_BIT) != 0;
        if (o.phase == waited_phase) {
            w->failed_wait.at = i, w->failed_wait.lane = lane, w->failed_wait.offset = o.offset;
            continue;
        }
        done |= 1u << lane;
        report(w, i, lane, &o, EMU_MBARRIER_WAIT);
    }
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1)
        PRED(w, i->d)[first_lane(lanes)] = done >> first_lane(lanes) & 1 ? FULL : 0;
    return done == w->active ? i + 1 : split_yield(w, i + 1);
}

static const insn *exec_pending_count(warp *w, const insn *i) {
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1)
        U32(w, i->d)[first_lane(lanes)] = U64(w, i->b)[first_lane(lanes)] & MAX_COUNT;
    return i + 1;
}

/* ---- decoding ---- */

static bool take_address(decoder *dc, const ptx_operand *o, insn *out) {
    decoded_address at;
    if (!decode_address(dc, o, &at)) return false;
    out->a = at.slot, out->wide = at.wide, out->imm = at.imm;
    return true;
}

/* Whether other blocks of the cluster may do this to the mbarrier: arrivals, announced bytes. */
static bool can_be_remote(const ptx_instruction *p) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (!strncmp(p->modifiers[k], "arrive", 6) || strstr(p->modifiers[k], "_tx")) return true;
    return false;
}

/* Takes the space of the mbarrier. Without a modifier the address is generic; it is in shared
 * memory either way. */
static bool take_qualifiers(decoder *dc, const ptx_instruction *p, insn *out) {
    static const char *const known[] = {"release", "acquire", "relaxed", "cta", "cluster"};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        decode_take(dc, known[k]);
    const ptx_space given = decode_take_space(dc), remote = PTX_SHARED_CLUSTER;
    out->space = (uint8_t)(given != PTX_GENERIC ? given : can_be_remote(p) ? remote : PTX_SHARED);
    return out->space == PTX_SHARED || (out->space == remote && can_be_remote(p));
}

static exec_fn select_arrive(decoder *dc, const ptx_instruction *p, insn *out, uint8_t flags) {
    const ptx_operand *o = p->operands;
    uint32_t n = p->n_operands;
    if (decode_take(dc, "noComplete")) flags |= ARRIVE_NO_COMPLETE;
    if (decode_take(dc, "expect_tx")) flags |= ARRIVE_EXPECT_TX;
    if (n && o->kind != PTX_ADDRESS) {
        flags |= o->kind == PTX_REGISTER ? ARRIVE_STATE : 0;
        out->d = decode_destination(dc, o++, PTX_B64);
        n--;
    }
    if (n < 1 || n > 2 || !decode_take(dc, "b64") || !take_address(dc, o, out)) return NULL;
    if (flags & (ARRIVE_NO_COMPLETE | ARRIVE_EXPECT_TX) && n != 2) return NULL;
    out->count = n == 2;
    if (out->count) out->b = decode_source(dc, &o[1], PTX_U32);
    out->flags = flags;
    return exec_arrive;
}

static exec_fn select_test(decoder *dc, const ptx_instruction *p, insn *out, uint8_t flags) {
    /* The last operand of try_wait is a time limit, a hint that has no effect here. */
    const uint32_t max_operands = flags & TEST_TRY ? 4 : 3;
    if (decode_take(dc, "parity")) flags |= TEST_PARITY;
    if (p->n_operands < 3 || p->n_operands > max_operands || !decode_take(dc, "b64") ||
        !take_address(dc, &p->operands[1], out))
        return NULL;
    decode_not_predicable(dc); /* because a failed wait yields */
    out->d = decode_destination(dc, &p->operands[0], PTX_PRED);
    out->b = decode_source(dc, &p->operands[2], flags & TEST_PARITY ? PTX_U32 : PTX_B64);
    if (p->n_operands == 4) decode_source(dc, &p->operands[3], PTX_U32);
    out->flags = flags;
    return exec_test;
}

static exec_fn select_mbarrier(decoder *dc, const ptx_instruction *p, insn *out) {
    const ptx_operand *o = p->operands;
    if (!take_qualifiers(dc, p, out)) return NULL;
    if (decode_take(dc, "arrive")) return select_arrive(dc, p, out, 0);
    if (decode_take(dc, "arrive_drop")) return select_arrive(dc, p, out, ARRIVE_DROP);
    if (decode_take(dc, "test_wait")) return select_test(dc, p, out, 0);
    if (decode_take(dc, "try_wait")) return select_test(dc, p, out, TEST_TRY);
    if (decode_take(dc, "inval"))
        return decode_take(dc, "b64") && p->n_operands == 1 && take_address(dc, o, out) ? exec_inval
                                                                                        : NULL;
    if (p->n_operands != 2) return NULL;
    if (decode_take(dc, "pending_count")) {
        if (!decode_take(dc, "b64")) return NULL;
        out->d = decode_destination(dc, &o[0], PTX_U32);
        out->b = decode_source(dc, &o[1], PTX_B64);
        return exec_pending_count;
    }
    const bool init = decode_take(dc, "init");
    if (!init && !decode_take(dc, "expect_tx")) {
        if (!decode_take(dc, "complete_tx")) return NULL;
        out->flags = 1;
    }
    if (!decode_take(dc, "b64") || !take_address(dc, &o[0], out)) return NULL;
    out->b = decode_source(dc, &o[1], PTX_U32);
    return init ? exec_init : exec_tx;
}

opcode_table mbarrier_opcodes = {
    [PTX_OP_mbarrier] = select_mbarrier,
};
