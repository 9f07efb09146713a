/* ld and st in every form and space, one lane at a time; and their decoding. */
#include <string.h>

#include "../machine/machine.h"
#include "../base/lanes.h"
#include "memory.h"
#include "../observe/observer.h"

enum { CHUNK = 16 }; /* maximum bytes per call of lane_reach */

/* ---- one element ---- */

/* Elements of 1, 2, 4 or 8 bytes, aligned in host memory. The kernel decides which types memory
 * holds, hence may_alias. */
typedef uint16_t any_u16 __attribute__((may_alias));
typedef uint32_t any_u32 __attribute__((may_alias));
typedef uint64_t any_u64 __attribute__((may_alias));

static uint64_t read_word(const unsigned char *from, uint32_t width) {
    switch (width) {
    case 1: return __atomic_load_n(from, __ATOMIC_ACQUIRE);
    case 2: return __atomic_load_n((const any_u16 *)from, __ATOMIC_ACQUIRE);
    case 4: return __atomic_load_n((const any_u32 *)from, __ATOMIC_ACQUIRE);
    default: return __atomic_load_n((const any_u64 *)from, __ATOMIC_ACQUIRE);
    }
}

static void write_word(unsigned char *to, uint32_t width, uint64_t value) {
    switch (width) {
    case 1: __atomic_store_n(to, (uint8_t)value, __ATOMIC_RELEASE); break;
    case 2: __atomic_store_n((any_u16 *)to, (uint16_t)value, __ATOMIC_RELEASE); break;
    case 4: __atomic_store_n((any_u32 *)to, (uint32_t)value, __ATOMIC_RELEASE); break;
    default: __atomic_store_n((any_u64 *)to, value, __ATOMIC_RELEASE);
    }
}

/* GPUs access the up to 16 bytes of a vector at once, and code relies on it: CUB keeps a status and
 * its value in one. So does a host's access of 16 bytes, which volatile keeps from being split. */
typedef uint64_t any_pair __attribute__((may_alias, vector_size(CHUNK), aligned(8)));

static void read_chunk(unsigned char *to, const unsigned char *from, uint32_t bytes) {
    if (bytes == CHUNK) {
        *(any_pair *)to = *(const volatile any_pair *)from;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } else {
        const uint64_t value = read_word(from, bytes);
        memcpy(to, &value, bytes);
    }
}

static void write_chunk(unsigned char *to, const unsigned char *from, uint32_t bytes) {
    if (bytes == CHUNK) {
        __atomic_thread_fence(__ATOMIC_RELEASE);
        *(volatile any_pair *)to = *(const any_pair *)from;
    } else {
        uint64_t value = 0;
        memcpy(&value, from, bytes);
        write_word(to, bytes, value);
    }
}

static uint64_t extended(uint64_t value, uint32_t width, bool is_signed) {
    const uint32_t above = 64 - 8 * width;
    return is_signed ? (uint64_t)((int64_t)(value << above) >> above) : value;
}

/* ---- handlers ---- */

const insn *load_any(warp *w, const insn *i) {
    const uint32_t bytes = (uint32_t)i->width * i->count;
    const uint32_t chunk = bytes < CHUNK ? bytes : CHUNK;
    w->polled |= i->flags & MEMORY_STRONG;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const uint64_t address = lane_address(w, i, lane);
        _Alignas(CHUNK) unsigned char values[CHUNK];
        for (uint32_t k = 0; k < i->count; k++) {
            const uint32_t at = k * i->width % chunk;
            if (at == 0) {
                const unsigned char *from = lane_reach(w, i, (ptx_space)i->space, lane,
                                                       address + k * i->width, chunk, false);
                if (!from) return NULL;
                read_chunk(values, from, chunk);
            }
            unsigned char *to = w->frame + i->list[k] + (size_t)lane * i->c;
            if (i->width == CHUNK)
                memcpy(to, values, CHUNK);
            else
                write_word(
                    to, i->c,
                    extended(read_word(values + at, i->width), i->width, i->flags & MEMORY_SIGNED));
        }
    }
    return i + 1;
}

const insn *store_any(warp *w, const insn *i) {
    const uint32_t bytes = (uint32_t)i->width * i->count;
    const uint32_t chunk = bytes < CHUNK ? bytes : CHUNK;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const uint64_t address = lane_address(w, i, lane);
        _Alignas(CHUNK) unsigned char values[CHUNK];
        unsigned char *to = NULL;
        for (uint32_t k = 0; k < i->count; k++) {
            const uint32_t at = k * i->width % chunk;
            if (at == 0)
                to = lane_reach(w, i, (ptx_space)i->space, lane, address + k * i->width, chunk,
                                true);
            if (!to) return NULL;
            const unsigned char *from = w->frame + i->list[k] + (size_t)lane * i->c;
            if (i->width == CHUNK)
                memcpy(values, from, CHUNK);
            else
                write_word(values + at, i->width, read_word(from, i->c));
            if (at + i->width == chunk) write_chunk(to, values, chunk);
        }
    }
    return i + 1;
}

/* ---- decoding ---- */

/* Cache hints have no effect here. */
static void take_cache_hints(decoder *dc, const ptx_instruction *p) {
    static const char *const hints[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak"};
    for (size_t k = 0; k < sizeof hints / sizeof *hints; k++)
        decode_take(dc, hints[k]);
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (!strncmp(p->modifiers[k], "L1::", 4) || !strncmp(p->modifiers[k], "L2::", 4))
            decode_take(dc, p->modifiers[k]);
}

static bool take_strength(decoder *dc) {
    static const char *const strong[] = {"volatile", "relaxed", "acquire", "release", "mmio"};
    static const char *const scopes[] = {"cta", "cluster", "gpu", "sys"};
    bool is_strong = false;
    for (size_t k = 0; k < sizeof strong / sizeof *strong; k++)
        is_strong |= decode_take(dc, strong[k]);
    for (size_t k = 0; k < sizeof scopes / sizeof *scopes && is_strong; k++)
        decode_take(dc, scopes[k]);
    return is_strong;
}

static uint8_t take_count(decoder *dc) {
    if (decode_take(dc, "v2")) return 2;
    if (decode_take(dc, "v4")) return 4;
    return decode_take(dc, "v8") ? 8 : 1;
}

/* The frame offset of an element's register, which may be wider than the element. */
static uint32_t element_slot(decoder *dc, const ptx_operand *o, ptx_type type, bool load) {
    const ptx_type declared = decode_register_type(dc, o);
    const ptx_type own = declared == PTX_NO_TYPE ? type : declared;
    return load ? decode_destination(dc, o, own) : decode_source(dc, o, own);
}

/* Bytes per lane of the operand's register; 0: a sink, which has any size. */
static uint32_t element_bytes(decoder *dc, const ptx_operand *o, ptx_type type) {
    const ptx_type declared = decode_register_type(dc, o);
    if (declared != PTX_NO_TYPE) return ptx_slot_bytes(declared) / LANES;
    return o->kind == PTX_SINK ? 0 : ptx_slot_bytes(type) / LANES;
}

bool memory_decode(decoder *dc, const ptx_instruction *p, insn *out, uint8_t operation) {
    const bool load = operation == EMU_LOAD;
    if (p->n_operands < 2) return false;
    const ptx_operand *address = &p->operands[load ? 1 : 0], *value = &p->operands[load ? 0 : 1];
    take_cache_hints(dc, p);
    out->flags = take_strength(dc) ? MEMORY_STRONG : 0;
    out->operation = operation;
    out->space = (uint8_t)decode_take_space(dc);
    out->count = take_count(dc);
    const ptx_type type = decode_take_type(dc);
    decoded_address at;
    if (type == PTX_NO_TYPE || type == PTX_PRED || !decode_address(dc, address, &at)) return false;
    out->width = ptx_type_size[type];
    out->a = at.slot, out->wide = at.wide, out->imm = at.imm;
    if (type == PTX_S8 || type == PTX_S16 || type == PTX_S32) out->flags |= MEMORY_SIGNED;
    const ptx_operand *items = value->kind == PTX_VECTOR ? value->items : value;
    const uint32_t n = value->kind == PTX_VECTOR ? value->n_items : 1;
    if (n != out->count || (uint32_t)out->width * n > MAX_VECTOR_BYTES) return false;
    uint32_t *list = decode_alloc(dc, n * sizeof *list);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t bytes = element_bytes(dc, &items[k], type);
        if (bytes && out->c && bytes != out->c) return false;
        if (bytes) out->c = bytes;
        list[k] = element_slot(dc, &items[k], type, load);
    }
    if (!out->c) out->c = ptx_slot_bytes(type) / LANES;
    out->list = list;
    out->d = list[0];
    return out->c >= out->width;
}
