/* Which shared loads and stores ptxas joins into wider ones.
 *
 * Seen in machine code for sm_90 (CUDA 13.0), within a basic block:
 *
 * Of the loads that go through one register, those whose words lie in one aligned piece of 16 bytes (of 8,
 * where no more can be proved) become one load: the narrowest aligned one of 8 or 16 bytes that covers
 * them all, a word between them that nobody asked for included. It stands where the first of them stood.
 *
 * Four stores of one width that fill an aligned piece, or two that fill half of one, become one store,
 * where the last of them stood. A store to anywhere else, another piece of the same register too, ends
 * the search.
 *
 * Whatever may change shared memory or another thread's view of it ends the search; so do guards.
 * Variables without a register are one memory: neighbours among them join.
 */
#include "ptxas_vectorize.h"

#include <stdlib.h>
#include <string.h>

#include "alignment.h"
#include "atomic_form.h"
#include "../ptx/ptx.h"

enum { MAX_OPEN = 64, MAX_JOINED = 4, NOBODY = 0xffffffff };

/* Where an access is: so many units from a base, and so many bytes into that. */
typedef struct place {
    bool has_register;
    uint32_t reg;
    const ptx_variable *variable; /* NULL also for those whose offset is known */
    int64_t number;
    uint32_t unit, byte;
} place;

/* Loads from one aligned piece of memory, or stores of `element` bytes to one. */
typedef struct piece {
    place at;
    uint32_t first, last, leader_at; /* bytes of the piece: loaded, and where its first load is */
    uint32_t leader, n;
    uint32_t element;            /* 0: loads */
    uint32_t stores[MAX_JOINED]; /* each element's instruction, or NOBODY */
} piece;

typedef struct search {
    const ptx_function *f;
    const low_bits *facts;
    vectorized *out;
    piece open[MAX_OPEN];
    uint32_t n;
} search;

/* Bytes per lane of a plain shared load or store (`kind`); 0: anything else. */
static uint32_t plain_bytes(const ptx_instruction *p, ptx_shared kind) {
    const uint32_t at = kind == SHARED_LOAD ? 1 : 0; /* the address's operand */
    if (ptx_facts(p)->shared != kind || p->guarded || p->n_operands != 2 ||
        p->has & (PTX_HAS_VOLATILE | PTX_HAS_ACQUIRE | PTX_HAS_RELEASE | PTX_HAS_RELAXED) ||
        !(p->has & (PTX_HAS_SHARED | PTX_HAS_SHARED_CTA)) || p->operands[at].kind != PTX_ADDRESS)
        return 0;
    uint32_t bytes = 0;
    for (int t = 0; t < PTX_N_TYPES; t++)
        if (p->types >> t & 1) bytes = ptx_type_size[t];
    return bytes * (p->has & PTX_HAS_V2 ? 2 : p->has & PTX_HAS_V4 ? 4 : 1);
}

static void close_loads(const search *s, const piece *q) {
    if (q->n == 1) return;
    uint32_t width = 8;
    while (q->first / width != q->last / width)
        width *= 2;
    s->out[q->leader] = (vectorized){
        .width = (uint8_t)width,
        .shift = (int8_t)((int)(q->first / width * width) - (int)q->leader_at),
    };
}

/* Elements [from, from + count), if all are there. The last in the text stands for them. */
static bool join_stores(const search *s, const piece *q, uint32_t from, uint32_t count) {
    uint32_t last = from;
    for (uint32_t k = from; k < from + count; k++) {
        if (q->stores[k] == NOBODY) return false;
        if (q->stores[k] > q->stores[last]) last = k;
    }
    for (uint32_t k = from; k < from + count; k++)
        s->out[q->stores[k]].joined = k != last;
    s->out[q->stores[last]].width = (uint8_t)(count * q->element);
    s->out[q->stores[last]].shift = (int8_t)-(int)((last - from) * q->element);
    return true;
}

static void close_piece(search *s, uint32_t k) {
    const piece *q = &s->open[k];
    const uint32_t all = q->element ? q->at.unit / q->element : 0;
    if (!q->element)
        close_loads(s, q);
    else if (!join_stores(s, q, 0, all) && all == MAX_JOINED) {
        join_stores(s, q, 0, 2);
        join_stores(s, q, 2, 2);
    }
    s->open[k] = s->open[--s->n];
}

static void close_all(search *s) {
    while (s->n)
        close_piece(s, s->n - 1);
}

/* All that are open are stores, or all are loads. */
static void close_stores(search *s) {
    if (s->n && s->open[0].element) close_all(s);
}

static void close_register(search *s, const ptx_operand *to) {
    if (to->kind == PTX_REGISTER)
        for (uint32_t k = s->n; k-- > 0;)
            if (s->open[k].at.has_register && s->open[k].at.reg == to->reg) close_piece(s, k);
    for (uint32_t i = 0; to->kind == PTX_VECTOR && i < to->n_items; i++)
        close_register(s, &to->items[i]);
}

/* With the largest unit, at most `largest`, that the address can be proved to stand against; its unit
 * is 0 if that is less than `least`. */
static place place_of(const search *s, const ptx_operand *at, uint32_t least, uint32_t largest) {
    place out = {.has_register = at->has_register, .variable = at->variable};
    low_bits base = alignment_of_place(at);
    int64_t offset = at->offset;
    if (at->has_register) {
        out.reg = at->reg;
        base = alignment_sum(base, s->facts[at->reg]);
    } else if (at->variable && at->variable->space == PTX_SHARED && !at->variable->external) {
        out.variable = NULL;
        offset += (int64_t)at->variable->offset;
    }
    uint32_t unit = largest;
    while (unit >= least && (base.known & (unit - 1)) != unit - 1)
        unit /= 2;
    if (unit < least) return out;
    /* As if the base lay on a multiple of the unit: where the access stands against that. */
    const int64_t from_base = offset + ((base.value - (uint8_t)(offset & 15)) & (int)(unit - 1));
    out.unit = unit;
    out.byte = (uint32_t)(from_base & (unit - 1));
    out.number = (from_base - out.byte) / unit;
    return out;
}

static bool is_one_base(const place *a, const place *b) {
    return a->has_register == b->has_register && (!a->has_register || a->reg == b->reg) &&
           a->variable == b->variable && a->unit == b->unit;
}

static piece *find_piece(search *s, const place *at) {
    for (uint32_t k = 0; k < s->n; k++)
        if (is_one_base(&s->open[k].at, at) && s->open[k].at.number == at->number)
            return &s->open[k];
    return NULL;
}

static piece *open_piece(search *s, const place *at) {
    if (s->n == MAX_OPEN) close_piece(s, 0);
    s->open[s->n] = (piece){.at = *at};
    memset(s->open[s->n].stores, 0xff, sizeof s->open[s->n].stores);
    return &s->open[s->n++];
}

static void add_load(search *s, uint32_t index, uint32_t bytes) {
    close_stores(s);
    const place at = place_of(s, &s->f->instructions[index].operands[1], 8, 16);
    if (bytes < 4 || bytes >= at.unit) return;
    const uint32_t first = at.byte, last = first + bytes - 1;
    piece *q = find_piece(s, &at);
    if (q) {
        q->first = first < q->first ? first : q->first;
        q->last = last > q->last ? last : q->last;
        s->out[index].joined = true;
    } else {
        q = open_piece(s, &at);
        q->first = first, q->last = last, q->leader_at = first, q->leader = index;
    }
    q->n++;
}

static void add_store(search *s, uint32_t index, uint32_t bytes) {
    const uint32_t largest = bytes * MAX_JOINED < 16 ? bytes * MAX_JOINED : 16;
    place at = {0};
    if (bytes >= 2 && bytes <= 8)
        at = place_of(s, &s->f->instructions[index].operands[0], 2 * bytes, largest);
    if (s->n && (!at.unit || s->open[0].element != bytes || !find_piece(s, &at))) close_all(s);
    if (!at.unit) return;
    piece *q = find_piece(s, &at);
    if (q && q->stores[at.byte / bytes] != NOBODY) {
        close_all(s);
        q = NULL;
    }
    if (!q) q = open_piece(s, &at);
    q->element = bytes;
    q->stores[at.byte / bytes] = index;
}

static bool may_be_shared(const ptx_instruction *p) {
    return !(p->has & (PTX_HAS_GLOBAL | PTX_HAS_LOCAL | PTX_HAS_PARAM | PTX_HAS_CONST));
}

/* Instructions that only compute, or access other memory, do not end the search. */
static bool ends_search(const ptx_instruction *p) {
    switch (ptx_facts(p)->shared) {
    case SHARED_SYNC: return true;
    case SHARED_STORE: return may_be_shared(p) && !plain_bytes(p, SHARED_STORE);
    case SHARED_ATOMIC: return may_be_shared(p);
    default: return false;
    }
}

/* Guarded, volatile, generic, ... */
static bool is_other_load(const ptx_instruction *p) {
    return ptx_facts(p)->shared == SHARED_LOAD && !plain_bytes(p, SHARED_LOAD) && may_be_shared(p);
}

static bool *block_starts(const ptx_function *f) {
    bool *starts = calloc(f->n_instructions + 1, sizeof *starts);
    for (uint32_t k = 0; starts && k < f->n_instructions; k++) {
        const ptx_instruction *p = &f->instructions[k];
        if (ptx_leaves(p)) starts[k + 1] = true;
        for (uint32_t o = 0; o < p->n_operands; o++) {
            const ptx_operand *list = &p->operands[o];
            if (list->kind == PTX_LABEL) starts[list->target] = true;
            for (uint32_t i = 0; list->kind == PTX_TARGETS && i < list->targets->n_items; i++)
                if (list->targets->items[i].kind == PTX_LABEL)
                    starts[list->targets->items[i].target] = true;
        }
    }
    return starts;
}

vectorized *vectorize_accesses(const ptx_function *f, interrupt_poller *poller) {
    low_bits *facts = alignment_of_registers(f, poller);
    bool *starts = block_starts(f);
    uint8_t *forms = atomic_forms(f, poller);
    search *s = malloc(sizeof *s);
    vectorized *out = calloc(f->n_instructions + 1, sizeof *out);
    if (facts && starts && forms && s && out) {
        s->f = f, s->facts = facts, s->out = out, s->n = 0;
        for (uint32_t k = 0; k < f->n_instructions; k++) {
            const ptx_instruction *p = &f->instructions[k];
            if (starts[k] || ends_search(p)) close_all(s);
            const uint32_t loaded = plain_bytes(p, SHARED_LOAD),
                           stored = plain_bytes(p, SHARED_STORE);
            if (loaded)
                add_load(s, k, loaded);
            else if (stored)
                add_store(s, k, stored);
            else if (is_other_load(p))
                close_stores(s);
            if (p->n_operands) close_register(s, p->operands);
            out[k].atomic = forms[k];
        }
        close_all(s);
    } else {
        free(out);
        out = NULL;
    }
    free(facts);
    free(starts);
    free(forms);
    free(s);
    return out;
}
