/* Decodes parsed PTX to a program: one insn per instruction, with all operands at fixed frame
 * offsets.
 *
 * A program also has hidden instructions (ptx == NULL):
 *   reconverge  before every instruction that is a reconvergence point
 *   read time   before every instruction that reads a clock or a timer
 *   skip        a branch around a guarded instruction that cannot run inside exec_guarded
 *   after       from decode_emit_after: copies the results of a call
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "control.h"
#include "decoder.h"
#include "instruction_set.h"
#include "observe.h"
#include "../cost/ptxas_vectorize.h"

enum { STEPS_PER_INSTRUCTION = 64 }; /* for interrupt_due */

/* ---- for select functions ---- */

void decode_own_guard(decoder *dc) {
    dc->own_guard = true;
}
void decode_not_predicable(decoder *dc) {
    dc->not_predicable = true;
}
void decode_emit_after(decoder *dc, insn hidden) {
    dc->after = hidden;
}
exec_fn decode_invalid(decoder *dc, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(dc->reason, sizeof dc->reason, format, args);
    va_end(args);
    return NULL;
}
const ptx_function *decode_caller(decoder *dc) {
    return dc->function;
}

const program *decode_callee(decoder *dc, const ptx_function *function) {
    program *callee = program_find(dc->set, function);
    if (!callee) dc->out_of_memory = true;
    return callee;
}

/* ---- branch targets: indices + 1 while decoding, pointers afterwards ---- */

const insn *decode_target(decoder *dc, uint32_t index) {
    (void)dc;
    return index == PTX_NO_TARGET ? NULL : (const insn *)((uintptr_t)index + 1);
}

const insn **decode_targets(decoder *dc, uint32_t n) {
    target_list *list = decode_alloc(dc, sizeof *list);
    const insn **targets = decode_alloc(dc, n * sizeof *targets);
    if (!targets) return NULL;
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
        for (uint32_t k = 0; k < list->n; k++)
            list->targets[k] = resolved(dc, list->targets[k]);
}

/* ---- instructions ---- */

static void emit(decoder *dc, insn i) {
    insn *larger = decoder_grow(dc, dc->program->code, dc->n_code, sizeof *larger);
    if (!larger) return;
    dc->program->code = larger;
    larger[dc->n_code++] = i;
}

static exec_fn select_handler(decoder *dc, insn *out) {
    const uint32_t all = (1u << dc->ptx->n_modifiers) - 1;
    for (const select_fn *const *table = dc->program->module->isa->opcodes; *table; table++) {
        const select_fn select = (*table)[dc->ptx->op];
        if (!select) continue;
        dc->taken = 0;
        dc->bad_operand = dc->own_guard = dc->not_predicable = dc->reads_time = false;
        dc->after.exec = NULL;
        *out = (insn){.ptx = dc->ptx, .index = (uint32_t)(dc->ptx - dc->function->instructions)};
        const exec_fn handler = select(dc, dc->ptx, out);
        if (handler && dc->taken == all && !dc->bad_operand) return handler;
    }
    return NULL;
}

static smk_code unsupported(const decoder *dc, smk_status *status) {
    const ptx_instruction *p = dc->ptx;
    const char *file = p->file ? p->file : "PTX";
    const uint32_t line = p->file ? p->line : p->ptx_line;
    if (*dc->reason)
        return smk_fail(status, SMK_KERNEL_IMAGE, "%s: %s, in `%.300s` (%s:%u, PTX line %u)",
                        dc->function->name, dc->reason, p->text, file, line, p->ptx_line);
    return smk_fail(status, SMK_UNSUPPORTED,
                    "%s: the emulator does not support the instruction `%s` (%s:%u, PTX line %u); "
                    "run the kernel on device \"cuda\" or compile it without this instruction",
                    dc->function->name, p->text, file, line, p->ptx_line);
}

/* Rejects a frame that is larger than a block's limit, before frame offsets could exceed 32
 * bits. */
static smk_code check_frame(const decoder *dc, smk_status *status) {
    if (dc->program->frame_bytes <= MAX_BLOCK_BYTES) return SMK_OK;
    return smk_fail(status, SMK_KERNEL_IMAGE,
                    "%s: its registers and constants need more than %d bytes per warp",
                    dc->function->name, MAX_BLOCK_BYTES);
}

/* Whether it is a mov to registers with bytes that are only copied. */
static bool copies_registers(const ptx_function *f, const ptx_instruction *p) {
    const ptx_operand *to = p->operands;
    if (p->op != PTX_OP_mov) return false;
    if (to->kind == PTX_REGISTER) return f->registers[to->reg].used != PTX_ALL_USED;
    for (uint32_t k = 0; k < to->n_items; k++)
        if (to->items[k].kind == PTX_REGISTER &&
            f->registers[to->items[k].reg].used != PTX_ALL_USED)
            return true;
    return false;
}

static smk_code decode_one(decoder *dc, uint32_t k, smk_status *status) {
    dc->ptx = &dc->function->instructions[k];
    dc->first[k] = dc->n_code;
    if (dc->reconverges[k]) emit(dc, (insn){.exec = exec_reconverge, .index = k});
    insn out;
    out.exec = select_handler(dc, &out);
    if (dc->out_of_memory)
        return smk_fail_memory(status, sizeof(insn) * dc->function->n_instructions, "decoded PTX");
    if (check_frame(dc, status)) return status->code;
    if (!out.exec) return unsupported(dc, status);
    if (copies_registers(dc->function, dc->ptx)) {
        out.unobserved = out.exec;
        out.exec = exec_moved;
    }
    if (out.unobserved && !dc->program->observed) {
        out.exec = out.unobserved;
        out.unobserved = NULL;
    }
    if (dc->reads_time) emit(dc, (insn){.exec = exec_read_time, .index = k});
    if (dc->ptx->guarded) {
        out.guard = dc->function->registers[dc->ptx->guard].slot;
        out.guard_negated = dc->ptx->guard_negated;
        if (dc->not_predicable) {
            const insn *after = decode_target(dc, k + 1);
            dc->reconverges[k + 1] = true;
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
    if (dc->after.exec) emit(dc, dc->after);
    return SMK_OK;
}

/* The reconvergence point of lanes that diverge at p. None at an unguarded return or exit:
 * waiting there gains nothing, and a thread that waits to exit would hold up barriers. */
static uint32_t reconvergence_point(const ptx_function *f, const ptx_instruction *p) {
    if (p->reconvergence == PTX_NO_TARGET) return PTX_NO_TARGET;
    const ptx_instruction *there = &f->instructions[p->reconvergence];
    const ptx_control control = ptx_facts(there)->control;
    const bool leaves = control == CONTROL_RETURN || control == CONTROL_EXIT;
    return leaves && !there->guarded ? PTX_NO_TARGET : p->reconvergence;
}

const insn *decode_reconvergence_point(decoder *dc) {
    return decode_target(dc, reconvergence_point(dc->function, dc->ptx));
}

static void find_reconvergence_points(decoder *dc) {
    for (uint32_t k = 0; k < dc->function->n_instructions; k++) {
        const ptx_instruction *p = &dc->function->instructions[k];
        const uint32_t there =
            ptx_diverges(p) ? reconvergence_point(dc->function, p) : PTX_NO_TARGET;
        if (there != PTX_NO_TARGET) dc->reconverges[there] = true;
    }
}

static uint64_t in_chunks(uint64_t bytes) {
    return (bytes + LOCAL_CHUNK - 1) & ~(uint64_t)(LOCAL_CHUNK - 1);
}

smk_code decode_function(program *p, program_set *set, smk_status *status) {
    const ptx_function *f = p->function;
    decoder dc = {.program = p, .set = set, .function = f};
    smk_code code = SMK_OK;
    p->frame_bytes = f->frame_bytes;
    if (!f->is_entry) {
        p->parameters_at = in_chunks(f->returns_bytes);
        p->variables_at = p->parameters_at + in_chunks(f->parameters_bytes);
    }
    p->local_bytes = p->variables_at + in_chunks(f->local_bytes);
    decoder_slot(&dc, 2); /* unused: offset 0 stands for "no slot yet" */
    dc.first = calloc(f->n_instructions + 1, sizeof *dc.first);
    dc.reconverges = calloc(f->n_instructions + 1, sizeof *dc.reconverges);
    if (!dc.first || !dc.reconverges) {
        code = smk_fail_memory(status, f->n_instructions * sizeof *dc.first, "decoded PTX");
        goto out;
    }
    find_reconvergence_points(&dc);
    for (uint32_t k = 0; k < f->n_instructions && !code; k++)
        code = interrupt_due(set->poller, STEPS_PER_INSTRUCTION)
                   ? smk_fail(status, SMK_INTERRUPTED, "interrupted")
                   : decode_one(&dc, k, status);
    if (code) goto out;
    /* Lanes that run past the last instruction exit. */
    dc.first[f->n_instructions] = dc.n_code;
    emit(&dc, (insn){.exec = exec_exit});
    if (dc.out_of_memory) {
        code = smk_fail_memory(status, sizeof(insn) * f->n_instructions, "decoded PTX");
        goto out;
    }
    if (p->observed && !(p->vectorized = vectorize_accesses(f, set->poller))) {
        code = set->poller->stopped
                   ? smk_fail(status, SMK_INTERRUPTED, "interrupted")
                   : smk_fail_memory(status, f->n_instructions * sizeof(vectorized), "decoded PTX");
        goto out;
    }
    resolve_targets(&dc);
out:
    free(dc.first);
    free(dc.reconverges);
    free(dc.slots.entries);
    return code;
}
