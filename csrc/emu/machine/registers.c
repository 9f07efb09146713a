/* setmaxnreg: warps give registers back to the pool of their block, and take others from it.
 *
 * At launch each warp has the kernel's registers per thread, and the pool is empty. .inc waits
 * until the pool has what the warp lacks. Registers are counted per thread of a warp: one of them
 * is 32 of the register file.
 *
 * How many registers a kernel has at launch is ptxas's decision; these are its rules, as ptxas 13
 * applies them. Where none of them says how many, ptxas drops setmaxnreg, and it has no effect here
 * either. A warp that exits keeps its registers, and the wrong direction is an error (measured on
 * an H200).
 */
#include <string.h>

#include "block.h"
#include "decode.h"

enum { REGISTER_UNIT = 8, MIN_REGISTERS = 24, MAX_REGISTERS = 256, WARPGROUP = 128 };
enum { REGISTER_FILE = 64 * 1024, RESIDENT_THREADS = 2048 }; /* per SM */

/* ---- at launch ---- */

static bool is_inc(const ptx_instruction *p) {
    return p->op == PTX_OP_setmaxnreg && p->n_modifiers && !strcmp(p->modifiers[0], "inc") &&
           p->n_operands == 1 && p->operands[0].kind == PTX_IMMEDIATE;
}

/* The most that the kernel, or a function that it may call, asks for. 0: none does. */
static uint32_t max_requested(const ptx_module *module, const ptx_function *kernel) {
    uint64_t max = 0;
    for (uint32_t n = 0; n < module->n_functions; n++) {
        const ptx_function *f = module->functions[n];
        for (uint32_t k = 0; (f == kernel || !f->is_entry) && k < f->n_instructions; k++) {
            const ptx_instruction *p = &f->instructions[k];
            if (is_inc(p) && p->operands[0].bits > max) max = p->operands[0].bits;
        }
    }
    return max < MAX_REGISTERS ? (uint32_t)max : MAX_REGISTERS;
}

static bool multiplies_by_warpgroups(const ptx_function *f) {
    for (uint32_t k = 0; k < f->n_instructions; k++) {
        const ptx_instruction *p = &f->instructions[k];
        if (p->op == PTX_OP_wgmma && p->n_modifiers && !strcmp(p->modifiers[0], "mma_async"))
            return true;
    }
    return false;
}

/* What .minnctapersm blocks of .maxntid or .reqntid threads leave for each thread. 0: not known.
 * Without .minnctapersm it is 1 for a kernel with wgmma and two warpgroups. */
static uint32_t registers_by_blocks(const ptx_function *f) {
    const uint32_t *threads = f->required_threads[0] ? f->required_threads : f->max_threads;
    uint64_t resident = f->min_blocks[0], block = 1;
    for (int k = 0; k < 3; k++)
        block *= threads[k] <= MAX_THREADS ? threads[k] : MAX_THREADS;
    if (!resident) resident = block > WARPGROUP && multiplies_by_warpgroups(f);
    resident *= (block + WARPGROUP - 1) / WARPGROUP * WARPGROUP;
    if (!resident || resident > RESIDENT_THREADS) return 0;
    return (uint32_t)(REGISTER_FILE / resident / REGISTER_UNIT * REGISTER_UNIT);
}

uint32_t launch_registers(const ptx_module *module, const ptx_function *kernel) {
    const uint32_t by_blocks = registers_by_blocks(kernel), given = kernel->max_registers[0];
    uint32_t registers = given && (!by_blocks || given < by_blocks) ? given : by_blocks;
    if (!registers) return 0;
    const uint32_t requested = max_requested(module, kernel);
    if (requested && registers > requested) registers = requested;
    if (registers > MAX_REGISTERS) registers = MAX_REGISTERS;
    if (registers < MIN_REGISTERS) registers = MIN_REGISTERS;
    return (registers + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
}

/* ---- running ---- */

static void take(warp *w, uint32_t registers) {
    w->block->free_registers -= registers - w->registers;
    w->registers = registers;
}

/* Warps that wait go on where the pool now has enough for them. */
static void give_back(warp *w, uint32_t registers) {
    block *b = w->block;
    b->free_registers += w->registers - registers;
    w->registers = registers;
    for (uint32_t k = 0; k < b->launch->n_warps; k++) {
        warp *other = &b->warps[k];
        warp_split *s = other->waiting;
        while (s && s->wait != WAIT_REGISTERS)
            s = s->link;
        if (!s || s->waits_for - other->registers > b->free_registers) continue;
        take(other, s->waits_for);
        split_resume(other, s, s->next + 1);
    }
}

static const insn *fault_lanes(warp *w, const insn *i) {
    return warp_fault(w, i, SMK_LAUNCH, w->active,
                      "%d of the warp's %d threads execute setmaxnreg, which all of them must do "
                      "together; keep it out of divergent code",
                      __builtin_popcount(w->active), __builtin_popcount(w->alive));
}

static const insn *fault_direction(warp *w, const insn *i, const char *problem) {
    return warp_fault(w, i, SMK_LAUNCH, w->active,
                      "setmaxnreg.%s to %u registers per thread, but the warp has %u (the kernel "
                      "starts with %u)",
                      problem, (uint32_t)i->imm, w->registers, w->block->launch->registers);
}

static const insn *exec_dec(warp *w, const insn *i) {
    const uint32_t registers = (uint32_t)i->imm;
    if (w->active != w->alive) return fault_lanes(w, i);
    if (!w->registers) return i + 1;
    if (registers > w->registers) return fault_direction(w, i, "dec");
    give_back(w, registers);
    return i + 1;
}

static const insn *exec_inc(warp *w, const insn *i) {
    const uint32_t registers = (uint32_t)i->imm;
    if (w->active != w->alive) return fault_lanes(w, i);
    if (!w->registers) return i + 1;
    if (registers < w->registers) return fault_direction(w, i, "inc");
    if (registers - w->registers > w->block->free_registers)
        return split_wait(w, i, WAIT_REGISTERS, registers);
    take(w, registers);
    return i + 1;
}

/* ---- decoding ---- */

static exec_fn select_setmaxnreg(decoder *dc, const ptx_instruction *p, insn *out) {
    decode_not_predicable(dc);
    const bool inc = decode_take(dc, "inc");
    if (!inc && !decode_take(dc, "dec")) return NULL;
    if (!decode_take(dc, "sync") || !decode_take(dc, "aligned") || !decode_take(dc, "u32"))
        return NULL;
    if (p->n_operands != 1 || p->operands[0].kind != PTX_IMMEDIATE || p->operands[0].is_float)
        return decode_invalid(dc,
                              "setmaxnreg takes one integer constant, the registers per thread");
    const uint64_t registers = p->operands[0].bits;
    if (registers < MIN_REGISTERS || registers > MAX_REGISTERS || registers % REGISTER_UNIT)
        return decode_invalid(dc,
                              "setmaxnreg to %lld registers; they must be %d to %d, and a "
                              "multiple of %d",
                              (long long)registers, MIN_REGISTERS, MAX_REGISTERS, REGISTER_UNIT);
    out->imm = (int64_t)registers;
    return inc ? exec_inc : exec_dec;
}

opcode_table register_opcodes = {
    [PTX_OP_setmaxnreg] = select_setmaxnreg,
};
