/* Calls. Parameters and results travel through the threads' local memory, as PTX writes them: the caller
 * stores into call-site .param variables, a call copies them to the callee's parameters, and a hidden
 * instruction behind the call copies the results back.
 *
 * A call takes a frame of the callee and becomes a child fragment of the caller, so lanes that return at
 * different times wait for each other, and lanes may call different functions through a pointer.
 */
#include <stdio.h>
#include <string.h>

#include "block.h"
#include "control.h"
#include "decode.h"

/* An argument or result on the caller's side. */
typedef struct passed {
    bool in_slot; /* a register or constant, else a .param variable */
    uint64_t at;  /* slot, or offset in the caller's local memory */
    uint32_t bytes;
} passed;

typedef struct call_site {
    const program *callee; /* NULL: the address is in slot a */
    const passed *arguments, *results;
    uint32_t n_arguments, n_results;
} call_site;

/* ---- moving bytes ---- */

static void copy_local(local_memory *local, int lane, uint64_t to, uint64_t from, uint32_t bytes) {
    for (uint32_t done = 0; done < bytes;
         done += LOCAL_CHUNK) { /* both start at a chunk or fit in one */
        const uint32_t n = bytes - done < LOCAL_CHUNK ? bytes - done : LOCAL_CHUNK;
        for (uint32_t k = 0; k < n; k++)
            *local_at(local, lane, to + done + k) = *local_at(local, lane, from + done + k);
    }
}

static void pass_argument(warp *w, uint32_t lanes, const passed *p, uint64_t caller_base,
                          uint64_t to) {
    for (; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        if (p->in_slot)
            memcpy(local_at(w->local, lane, to), w->frame + p->at + (size_t)lane * p->bytes,
                   p->bytes);
        else
            copy_local(w->local, lane, to, caller_base + p->at, p->bytes);
    }
}

static const insn *exec_results(warp *w, const insn *i) {
    const call_site *site = i->extra;
    const frame *caller = w->fragment->frame;
    const uint64_t from = caller->local_base + caller->program->local_bytes;
    for (uint32_t k = 0; k < site->n_results; k++) {
        const passed *p = &site->results[k];
        for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
            const int lane = first_lane(lanes);
            if (p->in_slot)
                memcpy(w->frame + p->at + (size_t)lane * p->bytes, local_at(w->local, lane, from),
                       p->bytes);
            else
                copy_local(w->local, lane, caller->local_base + p->at, from, p->bytes);
        }
    }
    return i + 1;
}

/* ---- calling ---- */

static bool enter_function(warp *w, const insn *i, uint32_t lanes, const program *callee) {
    const call_site *site = i->extra;
    const frame *caller = w->fragment->frame;
    const ptx_function *f = callee->function;
    const uint64_t base = caller->local_base + caller->program->local_bytes;
    if (f->n_parameters != site->n_arguments || f->n_returns != site->n_results) {
        warp_fault(w, i, SMK_LAUNCH, lanes,
                   "a call passes %u arguments for %u results to %s, which "
                   "takes %u and returns %u",
                   site->n_arguments, site->n_results, f->name, f->n_parameters, f->n_returns);
        return false;
    }
    if (caller->depth + 1 > MAX_CALL_DEPTH || base + callee->local_bytes > MAX_LOCAL_BYTES) {
        warp_fault(w, i, SMK_LAUNCH, lanes,
                   "stack overflow: call of %s at depth %u with %llu bytes of stack in use; the "
                   "emulator allows %d calls and %d bytes a thread",
                   f->name, caller->depth, (unsigned long long)base, MAX_CALL_DEPTH,
                   MAX_LOCAL_BYTES);
        return false;
    }
    frame *frame = NULL;
    if (local_reserve(w, base + callee->local_bytes))
        frame = frame_take(w, callee, base, caller->depth + 1);
    if (!frame || !fragment_push_call(w, lanes, frame)) {
        if (frame) frame_give(w->block, frame);
        warp_fault(w, i, SMK_MEMORY, lanes, "out of memory: a frame of %s", f->name);
        return false;
    }
    for (uint32_t k = 0; k < site->n_arguments; k++) {
        passed argument = site->arguments[k];
        if (argument.bytes > f->parameters[k]->size)
            argument.bytes = (uint32_t)f->parameters[k]->size;
        pass_argument(w, lanes, &argument, caller->local_base,
                      base + callee->parameters_at + f->parameters[k]->offset);
    }
    return true;
}

static const insn *exec_call(warp *w, const insn *i) {
    const call_site *site = i->extra;
    w->fragment->next = i + 1;
    w->fragment->children = 0;
    return enter_function(w, i, w->active, site->callee) ? fragment_switch(w) : NULL;
}

/* Through a pointer: one child for each function that some lanes call. */
static const insn *exec_call_pointer(warp *w, const insn *i) {
    launch *l = w->block->launch;
    const uint64_t *address = U64(w, i->a);
    w->fragment->next = i + 1;
    w->fragment->children = 0;
    for (uint32_t todo = w->active; todo;) {
        const uint64_t chosen = address[first_lane(todo)];
        uint32_t lanes = 0;
        for (uint32_t left = todo; left; left &= left - 1)
            if (address[first_lane(left)] == chosen) lanes |= left & -left;
        const ptx_function *f = function_at(l->module->ptx, chosen);
        if (!f || f->is_entry || f->is_declaration)
            return warp_fault(w, i, SMK_LAUNCH, lanes,
                              "call of 0x%llx, which is not the address of "
                              "a device function",
                              (unsigned long long)chosen);
        smk_status status = {0};
        const program *callee = program_get(l->module, f, l->observer != NULL, &status);
        if (!callee) return warp_fault(w, i, status.code, lanes, "%s", status.message);
        if (!enter_function(w, i, lanes, callee)) return NULL;
        todo &= ~lanes;
    }
    return fragment_switch(w);
}

/* ---- functions that the driver would provide ---- */

static void read_string(warp *w, const insn *i, int lane, uint64_t address, char *out,
                        size_t size) {
    size_t n = 0;
    for (; n + 1 < size; n++) {
        const unsigned char *c = lane_reach(w, i, PTX_GENERIC, lane, address + n, 1, false);
        if (!c || !*c) break;
        out[n] = (char)*c;
    }
    out[n] = 0;
}

/* What the lane passes as argument k, up to 8 bytes of it. */
static uint64_t argument(const warp *w, const insn *i, int lane, uint32_t k) {
    const call_site *site = i->extra;
    uint64_t value = 0;
    if (k >= site->n_arguments) return 0;
    const passed *p = &site->arguments[k];
    const unsigned char *from =
        p->in_slot ? w->frame + p->at + (size_t)lane * p->bytes
                   : local_at(w->local, lane, w->fragment->frame->local_base + p->at);
    memcpy(&value, from, p->bytes < 8 ? p->bytes : 8);
    return value;
}

/* __assertfail(message, file, line, function, size of a character) */
static const insn *exec_assertion(warp *w, const insn *i) {
    const int lane = first_lane(w->active);
    char message[300], file[300];
    read_string(w, i, lane, argument(w, i, lane, 0), message, sizeof message);
    read_string(w, i, lane, argument(w, i, lane, 1), file, sizeof file);
    return warp_fault(w, i, SMK_LAUNCH, w->active, "assertion `%s` failed at %s:%u", message, file,
                      (unsigned)argument(w, i, lane, 2));
}

/* vprintf(format, arguments): lane by lane. */
static const insn *exec_print(warp *w, const insn *i) {
    const frame *caller = w->fragment->frame;
    const uint64_t result_at = caller->local_base + caller->program->local_bytes;
    int32_t result;
    if (!local_reserve(w, result_at + sizeof result))
        return warp_fault(w, i, SMK_MEMORY, w->active, "out of memory: a call of printf");
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        if (!print_lane(w, i, lane, argument(w, i, lane, 0), argument(w, i, lane, 1), &result))
            return NULL;
        memcpy(local_at(w->local, lane, result_at), &result, sizeof result);
    }
    return i + 1;
}

static const insn *exec_external(warp *w, const insn *i) {
    const call_site *site = i->extra;
    return warp_fault(w, i, SMK_UNSUPPORTED, w->active,
                      "call of %s, which has no body in this PTX; the emulator does not provide it",
                      site->callee->function->name);
}

static exec_fn provided(const char *name) {
    if (!strcmp(name, "__assertfail")) return exec_assertion;
    return strcmp(name, "vprintf") ? exec_external : exec_print;
}

/* ---- decoding ---- */

static bool decode_passed(decoder *dc, const ptx_operand *list, bool result, const passed **out,
                          uint32_t *n) {
    passed *p = decode_alloc(dc, (list->n_items + 1) * sizeof *p);
    if (!p) return false;
    for (uint32_t k = 0; k < list->n_items; k++) {
        const ptx_operand *o = &list->items[k];
        const ptx_variable *v = o->variable;
        const ptx_type type = decode_register_type(dc, o);
        if (type != PTX_NO_TYPE && type != PTX_PRED) {
            p[k].in_slot = true;
            p[k].bytes = ptx_slot_bytes(type) / LANES;
            p[k].at = result ? decode_destination(dc, o, type) : decode_source(dc, o, type);
        } else if (o->kind == PTX_SYMBOL && v && v->space == PTX_PARAM) {
            if (!decode_in_local(dc, v, &p[k].at)) return false;
            p[k].bytes = (uint32_t)v->size;
        } else if (o->kind == PTX_IMMEDIATE && !result) {
            p[k].in_slot = true;
            p[k].bytes = 8;
            p[k].at = decode_source(dc, o, PTX_B64);
        } else {
            return false;
        }
    }
    *out = p;
    *n = list->n_items;
    return true;
}

static exec_fn select_call(decoder *dc, const ptx_instruction *p, insn *out) {
    static const ptx_operand none = {.kind = PTX_VECTOR};
    const ptx_operand *o = p->operands, *end = o + p->n_operands;
    const ptx_operand *results = &none, *arguments = &none;
    call_site *site = decode_alloc(dc, sizeof *site);
    decode_take(dc, "uni");
    decode_apart(dc);
    out->extra = site;
    if (o < end && o->kind == PTX_VECTOR) results = o++;
    if (o == end) return NULL;
    const ptx_operand *target = o++;
    if (o < end && o->kind == PTX_VECTOR) arguments = o;
    if (!decode_passed(dc, results, true, &site->results, &site->n_results) ||
        !decode_passed(dc, arguments, false, &site->arguments, &site->n_arguments))
        return NULL;
    if (site->n_results) decode_follow(dc, (insn){.exec = exec_results, .extra = site});
    if (target->kind == PTX_REGISTER) {
        out->a = decode_source(dc, target, PTX_U64);
        return exec_call_pointer;
    }
    if (target->kind != PTX_SYMBOL || !target->function) return NULL;
    site->callee = decode_callee(dc, target->function);
    if (!target->function->is_declaration) return exec_call;
    return provided(target->function->name);
}

const opcode_row call_opcodes[] = {
    {"call", select_call},
    {NULL, NULL},
};
