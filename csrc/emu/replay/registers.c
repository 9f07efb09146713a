/* Which registers an instruction changed.
 *
 * opcodes.def says which operands an instruction writes. After each instruction their slots are
 * compared with the shadow frame. A shuffle or a barrier with a result may complete in a later
 * step, perhaps of another warp: until then it is `unfinished`. */
#include <stdlib.h>
#include <string.h>

#include "recorder.h"

uint32_t register_bytes(ptx_type type) {
    return type == PTX_PRED ? 0 : ptx_slot_bytes(type) / LANES;
}

void shadow_frames_free(shadow_frame *frames) {
    for (shadow_frame *next; frames; frames = next) {
        next = frames->next;
        free(frames->owner);
        free(frames->bytes);
        free(frames);
    }
}

/* NULL: out of memory, or there are so many frames (a deep recursion) that the recording's limit
 * has no room for this one: its registers are then missing. */
static shadow_frame *shadow_new(recorder *r, live_block *b, const frame *f) {
    const uint32_t function = recorder_function(r, f->program->function);
    const uint32_t bytes = f->program->function->frame_bytes;
    const size_t size = sizeof(shadow_frame) + bytes + bytes / SLOT_UNIT * sizeof(uint32_t);
    if (r->live_bytes + size > r->out->max_bytes / 2) return NULL;
    shadow_frame *s = calloc(1, sizeof *s);
    if (s) {
        r->live_bytes += size;
        b->bytes += size;
        *s = (shadow_frame){.frame = f,
                            .function = function,
                            .owner = malloc(bytes / SLOT_UNIT * sizeof *s->owner + 1),
                            .bytes = malloc(bytes + 1)};
        if (s->owner) memset(s->owner, 0xff, bytes / SLOT_UNIT * sizeof *s->owner);
    }
    if (s && s->owner && s->bytes && function != NONE) return s;
    shadow_frames_free(s);
    r->out_of_memory = true;
    return NULL;
}

static void push_register(recorder *r, const live_warp *w, const shadow_frame *s, uint32_t index) {
    const recorded_function *f = &r->functions.items[s->function];
    const ptx_register *reg = &f->function->registers[index];
    if (r->phase != IN_WINDOW || !w->recorded || w->id == NONE) return;
    PUSH(r, delta_warp, w->id);
    PUSH(r, delta_register, f->first_register + index);
    PUSH(r, delta_at, COUNT(r, words));
    PUSH(r, delta_kind, vector_push(&r->columns, s->bytes + reg->slot, register_bytes(reg->type)));
}

/* Another call of a function has its own registers, under the same names. */
static void show_all(recorder *r, const live_warp *w, const shadow_frame *s) {
    const uint32_t n = r->functions.items[s->function].function->frame_bytes / SLOT_UNIT;
    for (uint32_t k = 0; k < n; k++)
        if (s->owner[k] != NONE) push_register(r, w, s, s->owner[k]);
}

/* The frame's shadow, which becomes the first of the warp's list. */
static shadow_frame *shadow_of(recorder *r, live_block *b, live_warp *w, const frame *f) {
    shadow_frame **link = &w->frames;
    if (*link && (*link)->frame == f) return *link;
    while (*link && (*link)->frame != f)
        link = &(*link)->next;
    shadow_frame *s = *link;
    if (s)
        *link = s->next;
    else if (!(s = shadow_new(r, b, f)))
        return NULL;
    bool other_call = false;
    for (const shadow_frame *k = w->frames; k && !other_call; k = k->next)
        other_call = k != s && k->function == s->function;
    if (other_call) show_all(r, w, s);
    s->next = w->frames;
    return w->frames = s;
}

/* Of the function's instruction `index`, which ran in this frame. */
static void compare(recorder *r, live_block *b, live_warp *w, uint32_t index, const frame *frame) {
    shadow_frame *s = shadow_of(r, b, w, frame);
    if (!s) return;
    const recorded_function *f = &r->functions.items[s->function];
    for (uint32_t k = f->first_write[index]; k < f->first_write[index + 1]; k++) {
        const ptx_register *reg = &f->function->registers[f->writes[k]];
        const uint32_t bytes = ptx_slot_bytes(reg->type);
        unsigned char *known = s->bytes + reg->slot;
        uint32_t *owner = &s->owner[reg->slot / SLOT_UNIT];
        const unsigned char *now = frame->slots + reg->slot;
        if (*owner == f->writes[k] && !memcmp(known, now, bytes)) continue;
        *owner = f->writes[k];
        memcpy(known, now, bytes);
        push_register(r, w, s, f->writes[k]);
    }
}

/* ---- instructions that other lanes or warps complete ---- */

static bool still_waits(const warp *w, const unfinished *u) {
    for (const warp_split *s = w->waiting; s; s = s->link)
        if (s->next == u->insn && s->frame == u->frame) return true;
    return false;
}

static void compare_unfinished(recorder *r, live_block *b, const warp *w) {
    live_warp *to = &b->warps[w->index];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < to->n_unfinished; k++) {
        const unfinished u = to->unfinished[k];
        compare(r, b, to, u.insn->index, u.frame);
        if (still_waits(w, &u)) to->unfinished[kept++] = u;
    }
    to->n_unfinished = kept;
}

static void note_unfinished(recorder *r, const warp *w, live_block *b, const insn *i,
                            const frame *f) {
    live_warp *to = &b->warps[w->index];
    const unfinished u = {i, f};
    const recorded_function *function =
        &r->functions.items[recorder_function(r, f->program->function)];
    const bool has_result = function->first_write[i->index] < function->first_write[i->index + 1];
    if (!has_result || !still_waits(w, &u) || to->n_unfinished == MAX_UNFINISHED) return;
    for (uint32_t k = 0; k < to->n_unfinished; k++)
        if (to->unfinished[k].insn == i && to->unfinished[k].frame == f) return;
    to->unfinished[to->n_unfinished++] = u;
    b->has_unfinished = true;
}

/* The call whose results the hidden instruction takes, or the instruction itself. */
static uint32_t index_of(const insn *i) {
    return i->ptx ? i->index : i[-1].index;
}

void registers_step(recorder *r, const warp *w, const insn *i, const frame *f) {
    live_block *b = &r->members.items[w->block->member];
    if (recorder_function(r, f->program->function) == NONE) return;
    compare(r, b, &b->warps[w->index], index_of(i), f);
    if (b->has_unfinished) {
        b->has_unfinished = false;
        for (uint32_t k = 0; k < r->launch->n_warps; k++) {
            if (b->warps[k].n_unfinished) compare_unfinished(r, b, &w->block->warps[k]);
            b->has_unfinished |= b->warps[k].n_unfinished > 0;
        }
    }
    if (w->waiting && i->ptx) note_unfinished(r, w, b, i, f);
}

/* ---- the window's start ---- */

static void snapshot_warp(recorder *r, const live_warp *w) {
    for (const shadow_frame *s = w->frames; s; s = s->next) {
        const recorded_function *f = &r->functions.items[s->function];
        bool shown = false; /* by a more recent call of the function */
        for (const shadow_frame *k = w->frames; k != s; k = k->next)
            shown |= k->function == s->function;
        for (uint32_t k = 0; !shown && k < f->function->frame_bytes / SLOT_UNIT; k++) {
            if (s->owner[k] == NONE) continue;
            const ptx_register *reg = &f->function->registers[s->owner[k]];
            PUSH(r, initial_warp, w->id);
            PUSH(r, initial_register, f->first_register + s->owner[k]);
            PUSH(r, initial_at, COUNT(r, words));
            PUSH(r, initial_kind,
                 vector_push(&r->columns, s->bytes + reg->slot, register_bytes(reg->type)));
        }
    }
}

void registers_snapshot(recorder *r) {
    for (uint32_t member = 0; member < r->members.n; member++) {
        live_block *b = &r->members.items[member];
        for (uint32_t k = 0; b->live && b->recorded && k < r->launch->n_warps; k++)
            if (b->warps[k].recorded && recorder_warp(r, member, k) != NONE)
                snapshot_warp(r, &b->warps[k]);
    }
}
