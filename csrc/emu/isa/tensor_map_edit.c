/* tensormap.replace and tensormap.cp_fenceproxy: kernels that make tensor maps. tensor_map.c has
 * the encoding. A replacement is reported as a store to the map's first 16 bytes: what it does to
 * the others depends on the encoding, which is opaque. */
#include <string.h>

#include "tensor_map.h"
#include "../base/lanes.h"
#include "memory.h"

/* Copies a map between memory and `map`. False after a fault. */
static bool move_map(warp *w, const insn *i, int lane, ptx_space space, uint64_t address,
                     unsigned char map[SMK_TENSOR_MAP_BYTES], bool write) {
    if (address % SMK_TENSOR_MAP_ALIGN) {
        warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                   "a tensor map at 0x%llx; its address must be a multiple of %d",
                   (unsigned long long)address, SMK_TENSOR_MAP_ALIGN);
        return false;
    }
    for (uint32_t at = 0; at < SMK_TENSOR_MAP_BYTES; at += TILE_CHUNK) {
        unsigned char *there = lane_reach(w, i, space, lane, address + at, TILE_CHUNK, write);
        if (!there) return false;
        memcpy(write ? there : map + at, write ? map + at : there, TILE_CHUNK);
    }
    return true;
}

/* ---- tensormap.replace ---- */

typedef struct field_row {
    const char *name;
    tensor_map_field field;
    bool of_dimension; /* the second operand is the dimension */
    uint32_t dimensions;
} field_row;

/* Of the fields without a place in the encoding only the value 0 is supported. */
static const field_row rows[] = {{"global_address", TENSOR_MAP_ADDRESS, false, 0},
                                 {"rank", TENSOR_MAP_RANK, false, 0},
                                 {"box_dim", TENSOR_MAP_BOX, true, SMK_TENSOR_RANK},
                                 {"global_dim", TENSOR_MAP_SIZE, true, SMK_TENSOR_RANK},
                                 {"global_stride", TENSOR_MAP_STRIDE, true, SMK_TENSOR_RANK - 1},
                                 {"element_stride", TENSOR_MAP_STEP, true, SMK_TENSOR_RANK},
                                 {"elemtype", TENSOR_MAP_TYPE, false, 0},
                                 {"swizzle_mode", TENSOR_MAP_SWIZZLE, false, 0},
                                 {"fill_mode", TENSOR_MAP_FILL, false, 0},
                                 {"interleave_layout", TENSOR_MAP_NOTHING, false, 0},
                                 {"swizzle_atomicity", TENSOR_MAP_NOTHING, false, 0}};

typedef struct replace_form {
    tensor_map_field field;
    uint32_t dimension, value; /* value: frame offset */
    bool wide;
} replace_form;

static const insn *exec_replace(warp *w, const insn *i) {
    const replace_form *f = i->extra;
    const ptx_space space = (ptx_space)i->space;
    lanes_u64 address = {0};
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        unsigned char map[SMK_TENSOR_MAP_BYTES];
        address[lane] = lane_address(w, i, lane);
        if (!move_map(w, i, lane, space, address[lane], map, false)) return NULL;
        tensor_map_replace(map, f->field, f->dimension,
                           f->wide ? U64(w, f->value)[lane] : U32(w, f->value)[lane]);
        if (!move_map(w, i, lane, space, address[lane], map, true)) return NULL;
    }
    if (w->block->observer) observe_access(w, i, space, EMU_STORE, TILE_CHUNK, address, w->active);
    return i + 1;
}

static const field_row *take_field(decoder *dc) {
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (decode_take(dc, rows[k].name)) return &rows[k];
    return NULL;
}

static bool is_constant(const ptx_operand *o, uint64_t limit) {
    return o->kind == PTX_IMMEDIATE && !o->is_float && o->bits < limit;
}

static exec_fn select_replace(decoder *dc, const ptx_instruction *p, insn *out) {
    replace_form *f = decode_alloc(dc, sizeof *f);
    const field_row *row =
        decode_take(dc, "tile") && decode_take(dc, "b1024") ? take_field(dc) : NULL;
    decoded_address at;
    if (!row || p->n_operands != 2u + row->of_dimension) return NULL;
    const ptx_operand *o = p->operands, *value = &o[p->n_operands - 1];
    out->space = (uint8_t)decode_take_space(dc);
    const ptx_type type = decode_take_type(dc);
    if ((type != PTX_B32 && type != PTX_B64) || !decode_address(dc, &o[0], &at)) return NULL;
    if (row->of_dimension && !is_constant(&o[1], row->dimensions)) return NULL;
    if (row->field == TENSOR_MAP_NOTHING && !is_constant(value, 1)) return NULL;
    f->field = row->field;
    f->dimension = row->of_dimension ? (uint32_t)o[1].bits : 0;
    f->wide = type == PTX_B64;
    f->value = decode_source(dc, value, type);
    out->a = at.slot, out->wide = at.wide, out->imm = at.imm;
    out->extra = f;
    return exec_replace;
}

/* ---- tensormap.cp_fenceproxy ---- */

typedef struct copy_form {
    decoded_address to, from;
} copy_form;

/* A lane per 4 bytes of the map. */
static void report_copy(warp *w, const insn *i, uint64_t to, uint64_t from) {
    enum { WIDTH = SMK_TENSOR_MAP_BYTES / LANES };
    lanes_u64 read, written;
    for (uint64_t l = 0; l < LANES; l++) {
        read[l] = from + l * WIDTH;
        written[l] = to + l * WIDTH;
    }
    observe_access(w, i, PTX_SHARED, EMU_LOAD, WIDTH, read, w->active);
    observe_access(w, i, PTX_GLOBAL, EMU_STORE, WIDTH, written, w->active);
    observe_sync(w, i, EMU_FENCE, w->active);
}

/* One copy per warp: all lanes have the same addresses. */
static const insn *exec_copy(warp *w, const insn *i) {
    const copy_form *f = i->extra;
    const int lane = first_lane(w->active);
    const uint64_t to = decoded_lane_address(w, &f->to, lane);
    const uint64_t from = decoded_lane_address(w, &f->from, lane);
    unsigned char map[SMK_TENSOR_MAP_BYTES];
    if (!move_map(w, i, lane, PTX_SHARED, from, map, false) ||
        !move_map(w, i, lane, PTX_GLOBAL, to, map, true))
        return NULL;
    if (w->block->observer) report_copy(w, i, to, from);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return i + 1;
}

static exec_fn select_copy(decoder *dc, const ptx_instruction *p, insn *out) {
    static const char *const needed[] = {"global",  "shared::cta", "tensormap::generic",
                                         "release", "sync",        "aligned"};
    static const char *const scopes[] = {"cta", "cluster", "gpu", "sys"};
    copy_form *f = decode_alloc(dc, sizeof *f);
    bool valid = p->n_operands == 3, scope = false;
    for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
        valid = valid && decode_take(dc, needed[k]);
    for (size_t k = 0; k < sizeof scopes / sizeof *scopes; k++)
        scope = scope || decode_take(dc, scopes[k]);
    const ptx_operand *bytes = &p->operands[2];
    if (!valid || !scope || !is_constant(bytes, SMK_TENSOR_MAP_BYTES + 1) ||
        bytes->bits != SMK_TENSOR_MAP_BYTES || !decode_address(dc, &p->operands[0], &f->to) ||
        !decode_address(dc, &p->operands[1], &f->from))
        return NULL;
    out->extra = f;
    return exec_copy;
}

static exec_fn select_tensormap(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take(dc, "replace")) return select_replace(dc, p, out);
    return decode_take(dc, "cp_fenceproxy") ? select_copy(dc, p, out) : NULL;
}

opcode_table tensor_map_opcodes = {[PTX_OP_tensormap] = select_tensormap};
