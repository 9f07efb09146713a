/* A warp's instruction loop, and what handlers use: active lanes, guards, faults. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "block.h"
#include "../base/lanes.h"

void warp_set_active(warp *w, uint32_t active) {
    if (w->active == active) return;
    w->active = active;
    lanes_spread(active, w->mask);
}

uint32_t guard_lanes(const warp *w, const insn *i) {
    const uint32_t holds = lanes_bits(PRED(w, i->guard));
    return (i->guard_negated ? ~holds : holds) & w->active;
}

const insn *exec_guarded(warp *w, const insn *i) {
    const uint32_t active = w->active;
    const uint32_t lanes = guard_lanes(w, i);
    if (lanes == active) return i->body(w, i);
    if (!lanes) return i + 1;
    lanes_u32 mask;
    memcpy(mask, w->mask, sizeof mask);
    warp_set_active(w, lanes);
    const insn *next = i->body(w, i);
    w->active = active;
    memcpy(w->mask, mask, sizeof mask);
    return next;
}

static const insn *run_slice(warp *w, const insn *i) {
    const uint64_t end = w->clock + w->block->launch->slice;
    do
        i = i->exec(w, i);
    while (i && ++w->clock < end);
    return i;
}

/* Inlined twice, so that runs without a recorder have no more to do. */
static inline __attribute__((always_inline)) const insn *
run_slice_with(warp *w, const insn *i, const emu_observer *observer, bool steps) {
    const uint64_t end = w->clock + w->block->launch->slice;
    const _Atomic bool *stop = &w->block->launch->stop; /* observers are slow, so check it often */
    const program *at = NULL;
    emu_executed *executed = NULL;
    do {
        const program *p = w->split->frame->program;
        if (p != at && observer->executed)
            executed = observer->executed(w->block->observer_state, p->function);
        at = p;
        emu_step step = {w, i, w->split->frame, w->active, w->active};
        if (i->ptx && (executed || steps)) {
            const uint32_t lanes = i->exec == exec_guarded ? guard_lanes(w, i) : w->active;
            if (executed) executed[i->index].warps++;
            if (executed) executed[i->index].lanes += count_lanes(lanes);
            step.executed = lanes;
        }
        i = i->exec(w, i);
        if (steps) observer->step(w->block->observer_state, &step);
    } while (i && ++w->clock < end && !atomic_load_explicit(stop, memory_order_relaxed));
    return i;
}

static const insn *run_slice_observed(warp *w, const insn *i) {
    const emu_observer *observer = w->block->observer;
    return observer->step ? run_slice_with(w, i, observer, true)
                          : run_slice_with(w, i, observer, false);
}

/* The innermost loop around instruction `index`: the shortest branch back over it. NULL: none. */
static const ptx_instruction *loop_around(const ptx_function *f, uint32_t index,
                                          const ptx_instruction **last) {
    const ptx_instruction *first = NULL;
    for (uint32_t k = index; k < f->n_instructions; k++) {
        const ptx_instruction *p = &f->instructions[k];
        for (uint32_t n = 0; n < p->n_operands; n++) {
            const ptx_operand *o = &p->operands[n];
            if (o->kind != PTX_LABEL || o->target > index) continue;
            const ptx_instruction *begin = &f->instructions[o->target];
            if (first && p - begin >= *last - first) continue;
            first = begin;
            *last = p;
        }
    }
    return first;
}

/* The lines of a loop in the file of instruction `in`. */
static void describe_loop(const ptx_instruction *first, const ptx_instruction *last,
                          const ptx_instruction *in, char *out, size_t size) {
    uint32_t min = UINT32_MAX, max = 0;
    for (const ptx_instruction *p = first; p <= last; p++) {
        if (!p->file || !in->file || strcmp(p->file, in->file) != 0 || !p->line) continue;
        min = p->line < min ? p->line : min;
        max = p->line > max ? p->line : max;
    }
    if (max == 0)
        snprintf(out, size, ", in the loop of PTX lines %u to %u", first->ptx_line, last->ptx_line);
    else if (min == max)
        snprintf(out, size, ", in a loop on that line");
    else
        snprintf(out, size, ", in the loop of lines %u to %u", min, max);
}

void warp_describe(const warp *w, const ptx_function *f, const insn *i, char *out, size_t size) {
    char position[300], loop[100] = "";
    const block *b = w->block;
    const uint32_t thread = w->index * LANES + (w->active ? (uint32_t)first_lane(w->active) : 0);
    const ptx_instruction *last = NULL;
    const ptx_instruction *first = i->ptx ? loop_around(f, i->index, &last) : NULL;
    if (first) describe_loop(first, last, i->ptx, loop, sizeof loop);
    snprintf(out, size, "block (%u, %u, %u), thread (%u, %u, %u) is at %s%s", b->index[0],
             b->index[1], b->index[2], thread % b->launch->block[0],
             thread / b->launch->block[0] % b->launch->block[1],
             thread / b->launch->block[0] / b->launch->block[1],
             source_position(i, position, sizeof position), loop);
}

/* Adds 1 to each slice: a slice that is only a failed try_wait executes nothing, but must count
 * towards the limit, or such a warp could run for ever. */
static void count_instructions(const warp *w, const ptx_function *f, const insn *i,
                               uint64_t executed) {
    launch *l = w->block->launch;
    char message[1200], at[500];
    if (atomic_fetch_add(&l->instructions, executed + 1) <= l->max_instructions) return;
    warp_describe(w, f, i, at, sizeof at);
    snprintf(
        message, sizeof message,
        "kernel %.200s has run more than max_instructions = %" PRIu64
        " warp instructions, and may never end: %s; raise the limit, or pass None for no limit",
        l->program->function->name, l->max_instructions, at);
    launch_fail(l, SMK_LAUNCH, message);
}

void warp_run(warp *w) {
    launch *l = w->block->launch;
    const uint64_t before = w->clock;
    w->slice_start = before;
    if (!w->split) split_switch(w);
    w->yielded = false;
    const emu_observer *observer = w->block->observer;
    const insn *i = w->split->next, *const first = i;
    const ptx_function *f = w->split->frame->program->function;
    i = observer ? run_slice_observed(w, i) : run_slice(w, i);
    if (observer && observer->exhausted && observer->exhausted(w->block->observer_state))
        launch_fail(
            l, SMK_MEMORY,
            "out of memory: the hazard detector's record of this kernel's accesses, or the "
            "recording; trace fewer blocks (blocks=...), or without hazards (hazards=False)");
    w->block->time += w->clock - before;
    w->slice_start = w->clock;
    if (l->max_instructions) count_instructions(w, f, first, w->clock - before);
    if (i) split_rotate(w, i);
}

/* ---- faults ---- */

const char *source_position(const insn *i, char *out, size_t size) {
    const ptx_instruction *p = i->ptx;
    if (!p)
        snprintf(out, size, "?");
    else if (p->file) { /* without its folder: compilers differ in whether they write it */
        const char *slash = strrchr(p->file, '/');
        snprintf(out, size, "%s:%u", slash ? slash + 1 : p->file, p->line);
    } else
        snprintf(out, size, "PTX line %u", p->ptx_line);
    return out;
}

static void format_fault(const warp *w, const insn *i, uint32_t thread, const char *format,
                         va_list arguments, char *out, size_t size) {
    const block *b = w->block;
    const launch *l = b->launch;
    char position[512], sentence[2048];
    vsnprintf(sentence, sizeof sentence, format, arguments);
    snprintf(out, size,
             "kernel %s, %s: %s; block (%u, %u, %u), thread (%u, %u, %u), instruction `%.200s`",
             l->program->function->name, source_position(i, position, sizeof position), sentence,
             b->index[0], b->index[1], b->index[2], thread % l->block[0],
             thread / l->block[0] % l->block[1], thread / l->block[0] / l->block[1],
             i->ptx ? i->ptx->text : "");
}

static uint32_t first_thread(const warp *w, uint32_t lanes) {
    return w->index * LANES + (uint32_t)(lanes ? first_lane(lanes) : 0);
}

const insn *warp_fault(warp *w, const insn *i, smk_code code, uint32_t lanes, const char *format,
                       ...) {
    char message[sizeof((smk_status *)0)->message];
    va_list arguments;
    va_start(arguments, format);
    format_fault(w, i, first_thread(w, lanes), format, arguments, message, sizeof message);
    va_end(arguments);
    launch_fail(w->block->launch, code, message);
    return NULL;
}

const insn *warp_fault_at(warp *w, const insn *i, uint32_t lanes, const emu_fault *what,
                          const char *format, ...) {
    char message[sizeof((smk_status *)0)->message];
    emu_fault fault = *what;
    va_list arguments;
    va_start(arguments, format);
    format_fault(w, i, first_thread(w, lanes), format, arguments, message, sizeof message);
    va_end(arguments);
    fault.ptx = i->ptx;
    fault.block = w->block->index;
    fault.thread = first_thread(w, lanes);
    fault.message = message;
    launch_fail_at(w->block->launch, SMK_LAUNCH, &fault);
    return NULL;
}
