/* Which loads and stores of shared memory ptxas merges into wider ones.
 *
 * Observed in machine code for sm_90 (CUDA 13.0), within a basic block:
 *
 * Loads. Take the loads from one base register whose words lie in the same aligned 16-byte block
 * (an 8-byte block, if only that alignment can be proved). They become one load, of 8 or 16
 * aligned bytes: the narrowest that covers them all, even if it also reads a word that none of
 * them reads. It replaces the first of them.
 *
 * Stores. Four stores of one width that fill an aligned block, or two that fill an aligned half,
 * become one store, which replaces the last of them. A store to any other block, even with the
 * same base register, closes the group: stores before and after it do not merge.
 *
 * Nothing merges across an instruction that may change shared memory or another thread's view of
 * it, and guarded accesses do not merge. All variables that are addressed without a register
 * share one base, so accesses to neighbouring variables merge.
 */
#include "ptxas_vectorize.h"

#include <stdlib.h>
#include <string.h>

#include "alignment.h"
#include "atomic_form.h"
#include "../ptx/ptx.h"

enum { MAX_GROUPS = 64, MAX_STORES = 4, NO_STORE = 0xffffffff };

/* Base + offset of an access: base + index * alignment + byte. The base is a register, a
 * variable, or both, rounded down to the alignment. */
typedef struct location {
    bool has_register;
    uint32_t reg;
    const ptx_variable *variable; /* NULL also for a variable whose offset is known: see locate */
    int64_t index;
    uint32_t alignment; /* proven, in bytes; 0: less than needed */
    uint32_t byte;
} location;

/* Loads from one aligned block of memory, or stores to one. The block is `where` without its
 * byte. */
typedef struct access_group {
    location where;
    uint32_t first, last;        /* the bytes of the block that the loads read */
    uint32_t first_load;         /* an instruction ... */
    uint32_t first_load_byte;    /* ... and where in the block it starts */
    uint32_t n;                  /* number of loads */
    uint32_t element;            /* stores: bytes of each; 0: this is a group of loads */
    uint32_t stores[MAX_STORES]; /* the instruction that stores each element, or NO_STORE */
} access_group;

typedef struct vectorizer {
    const ptx_function *f;
    const low_bits *facts;
    vectorized *out;
    /* Groups that may still grow: either all of loads, or all of stores. */
    access_group groups[MAX_GROUPS];
    uint32_t n;
} vectorizer;

/* Bytes per lane of a plain shared load or store (`kind`); 0: anything else. */
static uint32_t plain_bytes(const ptx_instruction *p, ptx_shared kind) {
    const uint32_t address = kind == SHARED_LOAD ? 1 : 0; /* operand */
    if (ptx_facts(p)->shared != kind || p->guarded || p->n_operands != 2 ||
        p->has & (PTX_HAS_VOLATILE | PTX_HAS_ACQUIRE | PTX_HAS_RELEASE | PTX_HAS_RELAXED) ||
        !(p->has & (PTX_HAS_SHARED | PTX_HAS_SHARED_CTA)) ||
        p->operands[address].kind != PTX_ADDRESS)
        return 0;
    uint32_t bytes = 0;
    for (int t = 0; t < PTX_N_TYPES; t++)
        if (p->types >> t & 1) bytes = ptx_type_size[t];
    return bytes * (p->has & PTX_HAS_V2 ? 2 : p->has & PTX_HAS_V4 ? 4 : 1);
}

static void flush_loads(const vectorizer *s, const access_group *q) {
    if (q->n == 1) return;
    uint32_t width = 8;
    while (q->first / width != q->last / width)
        width *= 2;
    s->out[q->first_load] = (vectorized){
        .width = (uint8_t)width,
        .shift = (int8_t)((int)(q->first / width * width) - (int)q->first_load_byte),
    };
}

/* Merges the stores of elements [from, from + count) into the last of them in the text. False if
 * an element has no store. */
static bool merge_stores(const vectorizer *s, const access_group *q, uint32_t from,
                         uint32_t count) {
    uint32_t last = from;
    for (uint32_t k = from; k < from + count; k++) {
        if (q->stores[k] == NO_STORE) return false;
        if (q->stores[k] > q->stores[last]) last = k;
    }
    for (uint32_t k = from; k < from + count; k++)
        s->out[q->stores[k]].merged = k != last;
    s->out[q->stores[last]].width = (uint8_t)(count * q->element);
    s->out[q->stores[last]].shift = (int8_t)-(int)((last - from) * q->element);
    return true;
}

/* Closes a group, and merges its accesses if they qualify. */
static void flush_group(vectorizer *s, uint32_t k) {
    const access_group *q = &s->groups[k];
    const uint32_t all = q->element ? q->where.alignment / q->element : 0;
    if (!q->element)
        flush_loads(s, q);
    else if (!merge_stores(s, q, 0, all) && all == MAX_STORES) {
        merge_stores(s, q, 0, 2);
        merge_stores(s, q, 2, 2);
    }
    s->groups[k] = s->groups[--s->n];
}

static void flush_all(vectorizer *s) {
    while (s->n)
        flush_group(s, s->n - 1);
}

static void flush_stores(vectorizer *s) {
    if (s->n && s->groups[0].element) flush_all(s);
}

/* Closes the groups whose base register is the destination `to`: its value changes. */
static void flush_register(vectorizer *s, const ptx_operand *to) {
    if (to->kind == PTX_REGISTER)
        for (uint32_t k = s->n; k-- > 0;)
            if (s->groups[k].where.has_register && s->groups[k].where.reg == to->reg)
                flush_group(s, k);
    for (uint32_t i = 0; to->kind == PTX_VECTOR && i < to->n_items; i++)
        flush_register(s, &to->items[i]);
}

/* Splits an address by the largest power of two, from `min` to `max`, modulo which it is
 * statically known. If there is none, the result's alignment is 0. */
static location locate(const vectorizer *s, const ptx_operand *address, uint32_t min,
                       uint32_t max) {
    location out = {.has_register = address->has_register, .variable = address->variable};
    low_bits base = alignment_of_symbol(address);
    int64_t offset = address->offset;
    if (address->has_register) {
        out.reg = address->reg;
        base = alignment_sum(base, s->facts[address->reg]);
    } else if (address->variable && address->variable->space == PTX_SHARED &&
               !address->variable->external) {
        out.variable = NULL;
        offset += (int64_t)address->variable->offset;
    }
    uint32_t alignment = max;
    while (alignment >= min && (base.known & (alignment - 1)) != alignment - 1)
        alignment /= 2;
    if (alignment < min) return out;
    /* The offset from the base rounded down to a multiple of the alignment. */
    const int64_t from_base =
        offset + ((base.value - (uint8_t)(offset & 15)) & (int)(alignment - 1));
    out.alignment = alignment;
    out.byte = (uint32_t)(from_base & (alignment - 1));
    out.index = (from_base - out.byte) / alignment;
    return out;
}

static bool same_base(const location *a, const location *b) {
    return a->has_register == b->has_register && (!a->has_register || a->reg == b->reg) &&
           a->variable == b->variable && a->alignment == b->alignment;
}

static access_group *find_group(vectorizer *s, const location *where) {
    for (uint32_t k = 0; k < s->n; k++)
        if (same_base(&s->groups[k].where, where) && s->groups[k].where.index == where->index)
            return &s->groups[k];
    return NULL;
}

static access_group *add_group(vectorizer *s, const location *where) {
    if (s->n == MAX_GROUPS) flush_group(s, 0);
    s->groups[s->n] = (access_group){.where = *where};
    memset(s->groups[s->n].stores, 0xff, sizeof s->groups[s->n].stores);
    return &s->groups[s->n++];
}

static void add_load(vectorizer *s, uint32_t index, uint32_t bytes) {
    flush_stores(s);
    const location where = locate(s, &s->f->instructions[index].operands[1], 8, 16);
    if (bytes < 4 || bytes >= where.alignment) return;
    const uint32_t first = where.byte, last = first + bytes - 1;
    access_group *q = find_group(s, &where);
    if (q) {
        q->first = first < q->first ? first : q->first;
        q->last = last > q->last ? last : q->last;
        s->out[index].merged = true;
    } else {
        q = add_group(s, &where);
        q->first = first, q->last = last, q->first_load_byte = first, q->first_load = index;
    }
    q->n++;
}

static void add_store(vectorizer *s, uint32_t index, uint32_t bytes) {
    const uint32_t max = bytes * MAX_STORES < 16 ? bytes * MAX_STORES : 16;
    location where = {0};
    if (bytes >= 2 && bytes <= 8)
        where = locate(s, &s->f->instructions[index].operands[0], 2 * bytes, max);
    if (s->n && (!where.alignment || s->groups[0].element != bytes || !find_group(s, &where)))
        flush_all(s);
    if (!where.alignment) return;
    access_group *q = find_group(s, &where);
    if (q && q->stores[where.byte / bytes] != NO_STORE) {
        flush_all(s);
        q = NULL;
    }
    if (!q) q = add_group(s, &where);
    q->element = bytes;
    q->stores[where.byte / bytes] = index;
}

static bool may_be_shared(const ptx_instruction *p) {
    return !(p->has & (PTX_HAS_GLOBAL | PTX_HAS_LOCAL | PTX_HAS_PARAM | PTX_HAS_CONST));
}

/* Whether no access may move across the instruction. Arithmetic and accesses to other memory are
 * no barriers. */
static bool is_memory_barrier(const ptx_instruction *p) {
    switch (ptx_facts(p)->shared) {
    case SHARED_SYNC: return true;
    case SHARED_STORE: return may_be_shared(p) && !plain_bytes(p, SHARED_STORE);
    case SHARED_ATOMIC: return may_be_shared(p);
    default: return false;
    }
}

/* A load that may read shared memory, but is guarded, volatile, generic, ... */
static bool is_other_load(const ptx_instruction *p) {
    return ptx_facts(p)->shared == SHARED_LOAD && !plain_bytes(p, SHARED_LOAD) && may_be_shared(p);
}

static bool *find_block_starts(const ptx_function *f) {
    bool *block_starts = calloc(f->n_instructions + 1, sizeof *block_starts);
    for (uint32_t k = 0; block_starts && k < f->n_instructions; k++) {
        const ptx_instruction *p = &f->instructions[k];
        if (ptx_leaves(p)) block_starts[k + 1] = true;
        for (uint32_t o = 0; o < p->n_operands; o++) {
            const ptx_operand *list = &p->operands[o];
            if (list->kind == PTX_LABEL) block_starts[list->target] = true;
            for (uint32_t i = 0; list->kind == PTX_TARGETS && i < list->targets->n_items; i++)
                if (list->targets->items[i].kind == PTX_LABEL)
                    block_starts[list->targets->items[i].target] = true;
        }
    }
    return block_starts;
}

/* cp.async has its source size in bits 0 to 3 of the source address (LDGSTS.ZFILL), unless ptxas
 * proves that these bits of it are 0: then all is read, or nothing. */
static bool may_fill(const ptx_function *f, const ptx_instruction *p, const low_bits *facts) {
    enum { SIZE = 3, BITS = 15, SLOT_OF_32_BITS = 128 };
    if (p->op != PTX_OP_cp || p->n_operands <= SIZE) return false;
    const ptx_operand *size = &p->operands[SIZE];
    if (size->kind == PTX_IMMEDIATE) return size->bits & BITS;
    if (size->kind != PTX_REGISTER) return false;
    const ptx_type type = f->registers[size->reg].type;
    if (type == PTX_PRED || ptx_slot_bytes(type) != SLOT_OF_32_BITS)
        return false; /* a predicate, or a cache policy */
    const low_bits known = facts[size->reg];
    return known.known != BITS || known.value;
}

vectorized *vectorize_accesses(const ptx_function *f, interrupt_poller *poller) {
    low_bits *facts = alignment_of_registers(f, poller);
    bool *block_starts = find_block_starts(f);
    uint8_t *forms = atomic_forms(f, poller);
    vectorizer *s = malloc(sizeof *s);
    vectorized *out = calloc(f->n_instructions + 1, sizeof *out);
    if (facts && block_starts && forms && s && out) {
        s->f = f, s->facts = facts, s->out = out, s->n = 0;
        for (uint32_t k = 0; k < f->n_instructions; k++) {
            const ptx_instruction *p = &f->instructions[k];
            if (block_starts[k] || is_memory_barrier(p)) flush_all(s);
            const uint32_t loaded = plain_bytes(p, SHARED_LOAD),
                           stored = plain_bytes(p, SHARED_STORE);
            if (loaded)
                add_load(s, k, loaded);
            else if (stored)
                add_store(s, k, stored);
            else if (is_other_load(p))
                flush_stores(s);
            if (p->n_operands) flush_register(s, p->operands);
            out[k].atomic = forms[k];
            out[k].fills = may_fill(f, p, facts);
        }
        flush_all(s);
    } else {
        free(out);
        out = NULL;
    }
    free(facts);
    free(block_starts);
    free(forms);
    free(s);
    return out;
}
