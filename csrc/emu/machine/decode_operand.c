/* For select functions: an instruction's modifiers, and the frame offsets of its operands.
 *
 * ptx/ has allocated the slots of registers. Immediates, special registers and addresses of
 * variables get slots after those, one per distinct value. register_file.c sets their values.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/hash.h"
#include "decoder.h"
#include "../ptx/ptx.h"

enum { CONSTANT_KIND = 0xffff }; /* slot_entry.kind of constants; others have a slot_kind */

struct allocation {
    struct allocation *next;
    _Alignas(16) unsigned char bytes[];
};

/* ---- memory ---- */

void *decode_alloc(decoder *dc, size_t bytes) {
    struct allocation *a = calloc(1, sizeof *a + bytes);
    if (!a) {
        static _Thread_local unsigned char nowhere[DECODE_SMALL];
        dc->out_of_memory = true;
        return bytes <= sizeof nowhere ? nowhere : NULL;
    }
    a->next = dc->program->allocations;
    dc->program->allocations = a;
    return a->bytes;
}

void *decoder_grow(decoder *dc, void *array, uint32_t n, size_t size) {
    if (n & (n - 1)) return array; /* the capacity is n rounded up to a power of two */
    void *larger = realloc(array, (n ? 2 * n : 1) * size);
    if (!larger) dc->out_of_memory = true;
    return larger;
}

/* ---- modifiers ---- */

bool decode_take(decoder *dc, const char *modifier) {
    for (uint32_t k = 0; k < dc->ptx->n_modifiers; k++)
        if (!(dc->taken >> k & 1) && !strcmp(dc->ptx->modifiers[k], modifier)) {
            dc->taken |= 1u << k;
            return true;
        }
    return false;
}

ptx_type decode_take_type(decoder *dc) {
    for (uint32_t k = 0; k < dc->ptx->n_modifiers; k++) {
        if (dc->taken >> k & 1) continue;
        for (int t = 0; t < PTX_N_TYPES; t++)
            if (!strcmp(dc->ptx->modifiers[k], ptx_type_spelling[t])) {
                dc->taken |= 1u << k;
                return (ptx_type)t;
            }
    }
    return PTX_NO_TYPE;
}

ptx_space decode_take_space(decoder *dc) {
    static const struct {
        const char *spelling;
        ptx_space space;
    } spaces[] = {{"global", PTX_GLOBAL},      {"shared", PTX_SHARED},
                  {"shared::cta", PTX_SHARED}, {"shared::cluster", PTX_SHARED_CLUSTER},
                  {"local", PTX_LOCAL},        {"const", PTX_CONST},
                  {"param", PTX_PARAM},        {"param::entry", PTX_PARAM},
                  {"param::func", PTX_PARAM}};
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++)
        if (decode_take(dc, spaces[k].spelling)) return spaces[k].space;
    return PTX_GENERIC;
}

/* ---- frame slots ---- */

uint32_t decoder_slot(decoder *dc, uint32_t element_bytes) {
    const uint32_t at = dc->program->frame_bytes;
    const uint32_t bytes = (LANES * element_bytes + 63) & ~63u;
    if (__builtin_add_overflow(at, bytes, &dc->program->frame_bytes)) dc->out_of_memory = true;
    return at;
}

static uint32_t element_bytes(ptx_type type) {
    return ptx_slot_bytes(type) / LANES;
}

/* The entry with this key, or the empty entry where it belongs. */
static slot_entry *table_probe(const slot_table *t, const slot_entry *of) {
    const uint64_t key = (of->value ^ (uint64_t)of->kind << 40 ^ (uint64_t)of->bytes << 56);
    uint32_t at = (uint32_t)(key * hash_seed() >> 32) & (t->size - 1);
    for (slot_entry *e; (e = &t->entries[at])->bytes; at = (at + 1) & (t->size - 1))
        if (e->value == of->value && e->kind == of->kind && e->bytes == of->bytes) break;
    return &t->entries[at];
}

/* Finds or adds the entry of a value. A new entry has offset 0. NULL: out of memory. */
static slot_entry *table_find_or_add(decoder *dc, unsigned kind, uint32_t bytes, uint64_t value) {
    const slot_table old = dc->slots;
    if (2 * (old.n + 1) > old.size) {
        const uint32_t size = old.size ? 2 * old.size : 64;
        slot_table larger = {calloc(size, sizeof *larger.entries), old.n, size};
        if (!larger.entries) {
            dc->out_of_memory = true;
            return NULL;
        }
        for (uint32_t k = 0; k < old.size; k++)
            if (old.entries[k].bytes) *table_probe(&larger, &old.entries[k]) = old.entries[k];
        free(old.entries);
        dc->slots = larger;
    }
    const slot_entry key = {.value = value, .kind = kind, .bytes = bytes};
    slot_entry *e = table_probe(&dc->slots, &key);
    if (!e->bytes) {
        *e = key;
        dc->slots.n++;
    }
    return e;
}

static uint32_t constant_slot_of(decoder *dc, uint64_t bits, uint32_t bytes) {
    program *p = dc->program;
    slot_entry *e = table_find_or_add(dc, CONSTANT_KIND, bytes, bits);
    if (!e || e->offset) return e ? e->offset : 0;
    constant_slot *larger = decoder_grow(dc, p->constants, p->n_constants, sizeof *larger);
    if (!larger) return 0;
    p->constants = larger;
    e->offset = decoder_slot(dc, bytes);
    larger[p->n_constants++] = (constant_slot){e->offset, bytes, bits};
    return e->offset;
}

uint32_t decode_constant(decoder *dc, uint64_t bits, ptx_type type) {
    const uint32_t bytes = element_bytes(type);
    if (type == PTX_PRED)
        bits = bits ? 0xffffffff : 0;
    else if (bytes < 8)
        bits &= (1ull << 8 * bytes) - 1;
    return constant_slot_of(dc, bits, bytes);
}

/* Frame offset of a slot whose value is set per frame: a ptx_special or slot_kind (program.h). */
static uint32_t special_slot_of(decoder *dc, unsigned kind, uint32_t bytes, int64_t addend) {
    program *p = dc->program;
    slot_entry *e = table_find_or_add(dc, kind, bytes, (uint64_t)addend);
    if (!e || e->offset) return e ? e->offset : 0;
    special_slot *larger = decoder_grow(dc, p->specials, p->n_specials, sizeof *larger);
    if (!larger) return 0;
    p->specials = larger;
    e->offset = decoder_slot(dc, bytes);
    larger[p->n_specials++] = (special_slot){
        .offset = e->offset, .kind = (uint16_t)kind, .bytes = (uint16_t)bytes, .addend = addend};
    return e->offset;
}

/* ---- operands ---- */

bool decode_in_local(decoder *dc, const ptx_variable *v, uint64_t *offset) {
    const ptx_function *f = dc->function;
    *offset = v->offset;
    if (v->space == PTX_LOCAL || v->call_site) {
        *offset += dc->program->variables_at;
        return true;
    }
    if (f->is_entry) return false;
    for (uint32_t k = 0; k < f->n_returns; k++)
        if (f->returns[k] == v) return true;
    *offset += dc->program->parameters_at;
    return true;
}

/* A variable's address: a constant (*kind 0), or an offset from the value of a special slot
 * (*kind: a slot_kind). */
static uint64_t variable_address(decoder *dc, const ptx_variable *v, unsigned *kind) {
    uint64_t offset = v->offset;
    *kind = 0;
    switch (v->space) {
    case PTX_SHARED:
        *kind = v->external ? SLOT_DYNAMIC_SHARED : SLOT_SHARED_BASE;
        return v->external ? 0 : offset;
    case PTX_CONST: return REGION_BASE(REGION_CONST) + offset;
    case PTX_GLOBAL: return REGION_BASE(REGION_GLOBAL) + offset;
    default:
        if (!decode_in_local(dc, v, &offset)) return REGION_BASE(REGION_PARAM) + offset;
        *kind = SLOT_LOCAL_BASE;
        return offset;
    }
}

static uint32_t symbol_slot(decoder *dc, const ptx_operand *o, ptx_type type) {
    if (o->function) return decode_constant(dc, function_address(o->function), type);
    if (!o->variable) {
        dc->bad_operand = true;
        return 0;
    }
    unsigned kind;
    const uint64_t address = variable_address(dc, o->variable, &kind) + (uint64_t)o->offset;
    return kind ? special_slot_of(dc, kind, element_bytes(type), (int64_t)address)
                : decode_constant(dc, address, type);
}

ptx_type decode_register_type(decoder *dc, const ptx_operand *o) {
    const bool named = o->kind == PTX_REGISTER || (o->kind == PTX_ADDRESS && o->has_register);
    return named ? dc->function->registers[o->reg].type : PTX_NO_TYPE;
}

/* A register must have the size of the instruction's type. ld, st and cvt also allow wider
 * registers: their select functions pass the declared type instead. */
static bool has_size_of(decoder *dc, const ptx_operand *o, ptx_type type) {
    const ptx_type declared = decode_register_type(dc, o);
    return ptx_slot_bytes(declared) == ptx_slot_bytes(type) &&
           (declared == PTX_PRED) == (type == PTX_PRED);
}

uint32_t decode_source(decoder *dc, const ptx_operand *o, ptx_type type) {
    switch (o->kind) {
    case PTX_REGISTER:
        if (!has_size_of(dc, o, type)) break;
        return dc->function->registers[o->reg].slot;
    case PTX_IMMEDIATE: return decode_constant(dc, ptx_immediate_bits(o, type), type);
    case PTX_SPECIAL:
        if (o->special == PTX_SPECIAL_OTHER) break;
        dc->reads_time |= special_is_time(o->special);
        return special_slot_of(dc, o->special, element_bytes(type), 0);
    case PTX_SYMBOL: return symbol_slot(dc, o, type);
    default: break;
    }
    dc->bad_operand = true;
    return 0;
}

uint32_t decode_destination(decoder *dc, const ptx_operand *o, ptx_type type) {
    if (o->kind == PTX_REGISTER && has_size_of(dc, o, type))
        return dc->function->registers[o->reg].slot;
    if (o->kind != PTX_SINK) {
        dc->bad_operand = true;
        return 0;
    }
    if (!dc->scratch) dc->scratch = decoder_slot(dc, 16);
    return dc->scratch;
}

/* Whether a modifier of the instruction names .shared, so that its addresses are offsets there. */
static bool names_shared(const ptx_instruction *p) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (!strncmp(p->modifiers[k], "shared", strlen("shared"))) return true;
    return false;
}

bool decode_address(decoder *dc, const ptx_operand *o, decoded_address *out) {
    if (o->kind != PTX_ADDRESS) return false;
    unsigned kind = 0;
    out->imm = o->offset;
    if (o->variable) /* unsigned, so that the sum wraps like an address */
        out->imm = (int64_t)((uint64_t)out->imm + variable_address(dc, o->variable, &kind));
    if (o->variable && o->variable->space == PTX_SHARED && !names_shared(dc->ptx))
        out->imm += (int64_t)REGION_BASE(REGION_SHARED); /* a generic address */
    if (o->has_register) {
        const ptx_register *r = &dc->function->registers[o->reg];
        const uint32_t bytes = ptx_slot_bytes(r->type) / LANES;
        out->slot = r->slot;
        out->wide = bytes == 8;
        return !kind && (bytes == 4 || bytes == 8) && r->type != PTX_PRED;
    }
    out->wide = true;
    out->slot = kind ? special_slot_of(dc, kind, 8, 0) : constant_slot_of(dc, 0, 8);
    return true;
}
