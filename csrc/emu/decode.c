/* From parsed PTX to a program: one insn an instruction, all its operands at fixed places of the frame.
 *
 * Beside the PTX's own instructions a program has hidden ones (ptx == NULL), where work belongs to a
 * place in the code and not to an instruction:
 *   join    stands before every instruction where diverged lanes meet again
 *   skip    jumps over an instruction that must not run under the guard wrapper
 *   others  follow an instruction whose select function asked for it (results of calls)
 */
#include "decode.h"

#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "control.h"
#include "isa.h"
#include "observe.h"

struct allocation {
    struct allocation *next;
    _Alignas(16) unsigned char bytes[];
};

typedef struct target_list {
    const insn **targets;
    uint32_t n;
    struct target_list *next;
} target_list;

struct decoder {
    program *program;
    const ptx_function *function;
    const ptx_instruction *ptx;
    uint32_t taken;     /* modifiers, as bits */
    bool refused;       /* an operand that nobody can serve */
    bool out_of_memory;
    bool own_guard, apart;
    insn follow;        /* hidden, behind the instruction, if it has a handler */
    uint32_t scratch;   /* the sinks' slot; 0: none yet (slot 0 is never it) */
    uint32_t capacity, n_code;
    uint32_t *first;    /* position of each PTX instruction's first insn */
    bool *meets;        /* lanes may meet before this one */
    target_list *lists;
};

/* ---- memory that lives as long as the program ---- */

void *decode_alloc(decoder *dc, size_t bytes) {
    struct allocation *a = calloc(1, sizeof *a + bytes);
    if (!a) {
        static _Thread_local unsigned char nowhere[4096];
        dc->out_of_memory = true;
        return nowhere;
    }
    a->next = dc->program->allocations;
    dc->program->allocations = a;
    return a->bytes;
}

static void *grow(decoder *dc, void *array, uint32_t n, size_t size) {
    if (n & (n - 1)) return array; /* room until the next power of two */
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
    } spaces[] = {{"global", PTX_GLOBAL},       {"shared", PTX_SHARED},
                  {"shared::cta", PTX_SHARED},  {"local", PTX_LOCAL},
                  {"const", PTX_CONST},         {"param", PTX_PARAM},
                  {"param::entry", PTX_PARAM},  {"param::func", PTX_PARAM}};
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++)
        if (decode_take(dc, spaces[k].spelling)) return spaces[k].space;
    return PTX_GENERIC;
}

void decode_own_guard(decoder *dc) { dc->own_guard = true; }
void decode_apart(decoder *dc) { dc->apart = true; }
void decode_follow(decoder *dc, insn follow) { dc->follow = follow; }
const ptx_function *decode_caller(decoder *dc) { return dc->function; }

const program *decode_callee(decoder *dc, const ptx_function *function) {
    program *callee = program_find(dc->program->module, function, dc->program->observed);
    if (!callee) dc->out_of_memory = true;
    return callee;
}

/* ---- slots ---- */

static uint32_t new_slot(decoder *dc, uint32_t element_bytes) {
    const uint32_t at = dc->program->frame_bytes;
    dc->program->frame_bytes += (LANES * element_bytes + 63) & ~63u;
    return at;
}

static uint32_t element_bytes(ptx_type type) { return ptx_slot_bytes(type) / LANES; }

static uint32_t constant_slot_of(decoder *dc, uint64_t bits, uint32_t bytes) {
    program *p = dc->program;
    for (uint32_t k = 0; k < p->n_constants; k++)
        if (p->constants[k].bits == bits && p->constants[k].bytes == bytes)
            return p->constants[k].offset;
    constant_slot *larger = grow(dc, p->constants, p->n_constants, sizeof *larger);
    if (!larger) return 0;
    p->constants = larger;
    const uint32_t at = new_slot(dc, bytes);
    p->constants[p->n_constants++] = (constant_slot){at, bytes, bits};
    return at;
}

uint32_t decode_constant(decoder *dc, uint64_t bits, ptx_type type) {
    const uint32_t bytes = element_bytes(type);
    if (type == PTX_PRED) bits = bits ? 0xffffffff : 0;
    else if (bytes < 8) bits &= (1ull << 8 * bytes) - 1;
    return constant_slot_of(dc, bits, bytes);
}

uint32_t decode_special(decoder *dc, unsigned kind, uint32_t bytes, int64_t addend) {
    program *p = dc->program;
    for (uint32_t k = 0; k < p->n_specials; k++) {
        const special_slot *s = &p->specials[k];
        if (s->kind == kind && s->bytes == bytes && s->addend == addend) return s->offset;
    }
    special_slot *larger = grow(dc, p->specials, p->n_specials, sizeof *larger);
    if (!larger) return 0;
    p->specials = larger;
    const uint32_t at = new_slot(dc, bytes);
    p->specials[p->n_specials++] =
        (special_slot){.offset = at, .kind = (uint16_t)kind, .bytes = (uint16_t)bytes, .addend = addend};
    return at;
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

/* A variable's address: a constant, or relative to a slot that each frame fills (slot_kind). */
static uint64_t variable_address(decoder *dc, const ptx_variable *v, unsigned *kind) {
    uint64_t offset = v->offset;
    *kind = 0;
    switch (v->space) {
    case PTX_SHARED:
        if (v->external) *kind = SLOT_DYNAMIC_SHARED;
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
    if (o->function)
        return decode_constant(dc, function_address(dc->program->module->ptx, o->function), type);
    if (!o->variable) {
        dc->refused = true;
        return 0;
    }
    unsigned kind;
    const uint64_t address = variable_address(dc, o->variable, &kind) + (uint64_t)o->offset;
    return kind ? decode_special(dc, kind, element_bytes(type), (int64_t)address)
                : decode_constant(dc, address, type);
}

ptx_type decode_register_type(decoder *dc, const ptx_operand *o) {
    const bool named = o->kind == PTX_REGISTER || (o->kind == PTX_ADDRESS && o->has_register);
    return named ? dc->function->registers[o->reg].type : PTX_NO_TYPE;
}

uint32_t decode_source(decoder *dc, const ptx_operand *o, ptx_type type) {
    switch (o->kind) {
    case PTX_REGISTER:
        if (ptx_slot_bytes(decode_register_type(dc, o)) < ptx_slot_bytes(type)) break;
        return dc->function->registers[o->reg].slot;
    case PTX_IMMEDIATE: return decode_constant(dc, ptx_immediate_bits(o, type), type);
    case PTX_SPECIAL:
        if (!frame_knows(o->special)) break;
        return decode_special(dc, o->special, element_bytes(type), 0);
    case PTX_SYMBOL: return symbol_slot(dc, o, type);
    default: break;
    }
    dc->refused = true;
    return 0;
}

uint32_t decode_destination(decoder *dc, const ptx_operand *o, ptx_type type) {
    if (o->kind == PTX_REGISTER &&
        ptx_slot_bytes(decode_register_type(dc, o)) >= ptx_slot_bytes(type))
        return dc->function->registers[o->reg].slot;
    if (o->kind != PTX_SINK) {
        dc->refused = true;
        return 0;
    }
    if (!dc->scratch) dc->scratch = new_slot(dc, 16);
    return dc->scratch;
}

bool decode_address(decoder *dc, const ptx_operand *o, decoded_address *out) {
    if (o->kind != PTX_ADDRESS) return false;
    unsigned kind = 0;
    out->imm = o->offset;
    if (o->variable) out->imm += (int64_t)variable_address(dc, o->variable, &kind);
    if (o->has_register) {
        const ptx_register *r = &dc->function->registers[o->reg];
        const uint32_t bytes = ptx_slot_bytes(r->type) / LANES;
        out->slot = r->slot;
        out->wide = bytes == 8;
        return !kind && (bytes == 4 || bytes == 8) && r->type != PTX_PRED;
    }
    out->wide = true;
    out->slot = kind ? decode_special(dc, kind, 8, 0) : constant_slot_of(dc, 0, 8);
    return true;
}

/* ---- targets: indices while decoding, pointers in the end ---- */

const insn *decode_target(decoder *dc, uint32_t index) {
    (void)dc;
    return index == PTX_NO_TARGET ? NULL : (const insn *)((uintptr_t)index + 1);
}

const insn **decode_targets(decoder *dc, uint32_t n) {
    target_list *list = decode_alloc(dc, sizeof *list);
    const insn **targets = decode_alloc(dc, n * sizeof *targets);
    *list = (target_list){targets, n, dc->lists};
    dc->lists = list;
    return targets;
}

static const insn *resolved(const decoder *dc, const insn *target) {
    return target ? &dc->program->code[dc->first[(uintptr_t)target - 1]] : NULL;
}

static void resolve_targets(decoder *dc) {
    for (uint32_t k = 0; k < dc->n_code; k++) {
        insn *i = &dc->program->code[k];
        i->target = resolved(dc, i->target);
        i->reconverge = resolved(dc, i->reconverge);
    }
    for (target_list *list = dc->lists; list; list = list->next)
        for (uint32_t k = 0; k < list->n; k++) list->targets[k] = resolved(dc, list->targets[k]);
}

/* ---- instructions ---- */

static void emit(decoder *dc, insn i) {
    insn *larger = grow(dc, dc->program->code, dc->n_code, sizeof *larger);
    if (!larger) return;
    dc->program->code = larger;
    larger[dc->n_code++] = i;
}

static exec_fn select_handler(decoder *dc, insn *out) {
    const uint32_t all = (1u << dc->ptx->n_modifiers) - 1;
    for (const opcode_row *const *table = isa_opcodes(); *table; table++)
        for (const opcode_row *row = *table; row->opcode; row++) {
            if (strcmp(row->opcode, dc->ptx->opcode)) continue;
            dc->taken = 0;
            dc->refused = dc->own_guard = dc->apart = false;
            dc->follow.exec = NULL;
            *out = (insn){.ptx = dc->ptx, .index = (uint32_t)(dc->ptx - dc->function->instructions)};
            const exec_fn handler = row->select(dc, dc->ptx, out);
            if (handler && dc->taken == all && !dc->refused) return handler;
        }
    return NULL;
}

static smk_code unsupported(const decoder *dc, smk_status *status) {
    const ptx_instruction *p = dc->ptx;
    const char *file = p->file ? p->file : "PTX";
    const uint32_t line = p->file ? p->line : p->ptx_line;
    return smk_fail(status, SMK_UNSUPPORTED,
                    "%s: the emulator does not know the instruction `%s` (%s:%u, PTX line %u); "
                    "run the kernel on device \"cuda\" or compile it without this instruction",
                    dc->function->name, p->text, file, line, p->ptx_line);
}

static smk_code decode_one(decoder *dc, uint32_t k, smk_status *status) {
    dc->ptx = &dc->function->instructions[k];
    dc->first[k] = dc->n_code;
    if (dc->meets[k]) emit(dc, (insn){.exec = exec_join, .index = k});
    insn out;
    out.exec = select_handler(dc, &out);
    if (dc->out_of_memory)
        return smk_fail_memory(status, sizeof(insn) * dc->function->n_instructions, "decoded PTX");
    if (!out.exec) return unsupported(dc, status);
    if (out.observed) { /* a memory instruction's handler, named so by memory files */
        if (dc->program->observed) out.exec = exec_observed;
        else out.observed = NULL;
    }
    if (dc->ptx->guarded) {
        out.guard = dc->function->registers[dc->ptx->guard].slot;
        out.guard_negated = dc->ptx->guard_negated;
        if (dc->apart) {
            const insn *after = decode_target(dc, k + 1);
            dc->meets[k + 1] = true;
            emit(dc, (insn){.exec = exec_branch,
                            .guard = out.guard,
                            .guard_negated = !out.guard_negated,
                            .target = after,
                            .reconverge = after,
                            .index = k});
        } else if (!dc->own_guard) {
            out.body = out.exec;
            out.exec = exec_guarded;
        }
    }
    emit(dc, out);
    if (dc->follow.exec) emit(dc, dc->follow);
    return SMK_OK;
}

/* Where lanes that part at p meet again. Not at a plain return or exit: nothing is gained by waiting there,
 * and a thread that has come so far must not hold up barriers. */
static uint32_t meeting_point(const ptx_function *f, const ptx_instruction *p) {
    if (p->reconvergence == PTX_NO_TARGET) return PTX_NO_TARGET;
    const ptx_instruction *there = &f->instructions[p->reconvergence];
    const bool leaves = !strcmp(there->opcode, "ret") || !strcmp(there->opcode, "exit");
    return leaves && !there->guarded ? PTX_NO_TARGET : p->reconvergence;
}

const insn *decode_meeting_point(decoder *dc) {
    return decode_target(dc, meeting_point(dc->function, dc->ptx));
}

/* Lanes part at branches under a guard and at computed ones. */
static void find_meeting_points(decoder *dc) {
    for (uint32_t k = 0; k < dc->function->n_instructions; k++) {
        const ptx_instruction *p = &dc->function->instructions[k];
        const bool parts = !strcmp(p->opcode, "brx") || (p->guarded && !strcmp(p->opcode, "bra"));
        const uint32_t there = parts ? meeting_point(dc->function, p) : PTX_NO_TARGET;
        if (there != PTX_NO_TARGET) dc->meets[there] = true;
    }
}

static uint64_t in_chunks(uint64_t bytes) {
    return (bytes + LOCAL_CHUNK - 1) & ~(uint64_t)(LOCAL_CHUNK - 1);
}

smk_code decode_function(program *p, smk_status *status) {
    const ptx_function *f = p->function;
    decoder dc = {.program = p, .function = f};
    smk_code code = SMK_OK;
    p->frame_bytes = f->frame_bytes;
    if (!f->is_entry) {
        p->parameters_at = in_chunks(f->returns_bytes);
        p->variables_at = p->parameters_at + in_chunks(f->parameters_bytes);
    }
    p->local_bytes = p->variables_at + in_chunks(f->local_bytes);
    new_slot(&dc, 2); /* so that no slot of decode's own is at 0 */
    dc.first = calloc(f->n_instructions + 1, sizeof *dc.first);
    dc.meets = calloc(f->n_instructions + 1, sizeof *dc.meets);
    if (!dc.first || !dc.meets) {
        code = smk_fail_memory(status, f->n_instructions * sizeof *dc.first, "decoded PTX");
        goto out;
    }
    find_meeting_points(&dc);
    for (uint32_t k = 0; k < f->n_instructions && !code; k++) code = decode_one(&dc, k, status);
    if (code) goto out;
    /* Where a guarded last instruction does not leave, the thread ends. */
    dc.first[f->n_instructions] = dc.n_code;
    emit(&dc, (insn){.exec = exec_exit});
    if (dc.out_of_memory) {
        code = smk_fail_memory(status, sizeof(insn) * f->n_instructions, "decoded PTX");
        goto out;
    }
    resolve_targets(&dc);
    p->decoded = true;
out:
    free(dc.first);
    free(dc.meets);
    return code;
}
